package model

import (
	"math"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// MaxTokens is the most tokens of a kind that one answer can have used. No window of a model is near it.
const MaxTokens = 1_000_000_000

// Credible reports whether the numbers can be those of one answer. An endpoint chooses them, and sums of larger ones overflow, so that a
// budget would hold no more.
func (u Usage) Credible() bool {
	return min(u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning) >= 0 &&
		max(u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning) <= MaxTokens
}

// Tokens returns the sum of the input and the output.
func (u Usage) Tokens() int { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// Plus returns the sum of two amounts that are not negative. It never overflows: more than an Amount holds is the most that it holds.
func (a Amount) Plus(b Amount) Amount {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Used is the document of a scope's use.
type Used struct {
	Scope    string    `json:"scope"`
	ID       string    `json:"id,omitempty"`  // of the run, the agent, the room or the model
	Day      string    `json:"day,omitempty"` // of UTC; of a run the day of its first request
	Requests int       `json:"requests"`      // that were sent, failed ones among them
	Failed   int       `json:"failed"`
	Usage    Usage     `json:"usage"`
	Cost     Amount    `json:"cost"`
	Unpriced int       `json:"unpriced,omitempty"` // requests whose price is not known; their cost is not in Cost
	Guessed  int       `json:"guessed,omitempty"`  // requests whose usage nobody told; they count with all that they could use
	Reserved Reserve   `json:"reserved"`           // by requests that are under way, or whose outcome a crash hid
	LastAt   time.Time `json:"last_at,omitzero"`
}

// Evolve returns the document after an event of a request. Key is that of the document.
func (u Used) Evolve(e event.Event) (Used, error) {
	switch e.Type {
	case EventAsked:
		d, err := event.Decode[Asked](e)
		if err != nil {
			return u, err
		}
		u.Requests++
		u.Reserved.Tokens += d.Reserve.Tokens
		u.Reserved.Cost = u.Reserved.Cost.Plus(d.Reserve.Cost)
		if u.Day == "" {
			u.Day = d.Day
		}
	case EventAnswered, EventFailed:
		d, err := event.Decode[Outcome](e)
		if err != nil {
			return u, err
		}
		u.Reserved.Tokens = max(u.Reserved.Tokens-d.Reserve.Tokens, 0)
		u.Reserved.Cost = max(u.Reserved.Cost-d.Reserve.Cost, 0)
		u.Usage, u.Cost = u.Usage.Add(d.Usage), u.Cost.Plus(d.Cost)
		if e.Type == EventFailed {
			u.Failed++
		}
		if !d.Priced && d.Usage.Tokens() > 0 {
			u.Unpriced++
		}
		if d.Guessed {
			u.Guessed++
		}
	default:
		return u, nil
	}
	u.LastAt = e.OccurredAt
	return u, nil
}

// Scoped is a scope whose usage an event changes.
type Scoped struct{ Scope, ID, Day string }

// Key returns the key of its document.
func (s Scoped) Key() string { return UsageKey(s.Scope, s.ID, s.Day) }

// ScopesOf returns the scopes whose usage an event changes.
func ScopesOf(e event.Event) []Scoped {
	if e.Type != EventAsked && e.Type != EventAnswered && e.Type != EventFailed {
		return nil
	}
	d, err := event.Decode[struct {
		Entry string   `json:"model"`
		Day   string   `json:"day"`
		Above []id.Run `json:"above_run_ids"`
	}](e)
	if err != nil || d.Day == "" {
		return nil
	}
	list := []Scoped{{ScopeWorkspace, "", d.Day}, {ScopeModel, d.Entry, d.Day}}
	if e.Principal != "" {
		list = append(list, Scoped{ScopeAgent, string(e.Principal), d.Day})
	}
	if e.Room != "" {
		list = append(list, Scoped{ScopeRoom, string(e.Room), d.Day})
	}
	if e.Run != "" {
		list = append(list, Scoped{Scope: ScopeRun, ID: string(e.Run)})
	}
	for _, above := range d.Above[:min(len(d.Above), MaxAbove)] {
		list = append(list, Scoped{Scope: ScopeRun, ID: string(above)})
	}
	return list
}
