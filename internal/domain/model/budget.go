package model

import (
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// The scopes of usage, and of the budgets that bound it.
const (
	ScopeRun       = "run"       // over its whole life
	ScopeAgent     = "agent"     // a principal, in a day
	ScopeRoom      = "room"      // in a day
	ScopeWorkspace = "workspace" // in a day
	ScopeModel     = "model"     // an entry, in a day; no budget bounds it
)

// Budget bounds the use of a scope in a day of UTC. Zero values bound nothing.
type Budget struct {
	Scope  string `json:"scope"`        // agent, room or workspace
	ID     string `json:"id,omitempty"` // of the agent or the room; empty for each of them
	Tokens int    `json:"tokens_per_day,omitempty"`
	Cost   Amount `json:"cost_per_day,omitzero"`
}

// CheckBudgets refuses budgets that make no sense, and two for the same scope.
func CheckBudgets(budgets []Budget) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "model_budgets_invalid", format, args...)
	}
	if len(budgets) > MaxBudgets {
		return bad("there are at most %d budgets", MaxBudgets)
	}
	seen := map[[2]string]bool{}
	for i, b := range budgets {
		switch {
		case b.Scope != ScopeAgent && b.Scope != ScopeRoom && b.Scope != ScopeWorkspace:
			return bad("the scope of budget %d is agent, room or workspace", i+1)
		case b.Scope == ScopeWorkspace && b.ID != "" || len(b.ID) > 64:
			return bad("budget %d: id names an agent or a room", i+1)
		case b.Tokens < 0 || b.Cost < 0 || b.Tokens == 0 && b.Cost == 0:
			return bad("budget %d has tokens_per_day or cost_per_day, above 0", i+1)
		case seen[[2]string{b.Scope, b.ID}]:
			return bad("two budgets are for the same %s", b.Scope)
		}
		seen[[2]string{b.Scope, b.ID}] = true
	}
	return nil
}

// Day names the day of UTC to which a time belongs, such as 2026-11-28.
func Day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// UsageKey returns the key of the document of a scope's usage. Day is empty for a run.
func UsageKey(scope, of, day string) string {
	switch {
	case scope == ScopeRun:
		return scope + "/" + of
	case scope == ScopeWorkspace:
		return scope + "/" + day
	}
	return scope + "/" + of + "/" + day
}

// Bound is a limit that holds for a request: a budget, or the limits of its run.
type Bound struct {
	Key    string // of the usage that it bounds
	What   string // for people, such as "the run" or "the room, today until 00:00 UTC"
	Tokens int
	Cost   Amount
}

// Bounds returns the limits that hold for a request: of the run, and of the day. A budget of one agent or room goes before that of each.
func Bounds(budgets []Budget, a Ask, agent id.Principal, day string) []Bound {
	var list []Bound
	if a.Run != "" && (a.Limits.Tokens > 0 || a.Limits.Cost > 0) {
		list = append(list, Bound{UsageKey(ScopeRun, string(a.Run), ""), "the run", a.Limits.Tokens, a.Limits.Cost})
	}
	for _, above := range a.Above {
		if above.Limits.Tokens > 0 || above.Limits.Cost > 0 {
			list = append(list, Bound{UsageKey(ScopeRun, string(above.Run), ""), "the run " + string(above.Run) + ", for which this one works",
				above.Limits.Tokens, above.Limits.Cost})
		}
	}
	for _, s := range []struct{ scope, of, what string }{
		{ScopeAgent, string(agent), "the agent, today until 00:00 UTC"}, {ScopeRoom, string(a.Room), "the room, today until 00:00 UTC"},
		{ScopeWorkspace, "", "the workspace, today until 00:00 UTC"},
	} {
		if s.of == "" && s.scope != ScopeWorkspace {
			continue
		}
		found, ok := Budget{}, false
		for _, b := range budgets {
			if b.Scope == s.scope && (b.ID == s.of || b.ID == "" && !ok) {
				found, ok = b, true
				if b.ID == s.of {
					break
				}
			}
		}
		if ok {
			list = append(list, Bound{UsageKey(s.scope, s.of, day), s.what, found.Tokens, found.Cost})
		}
	}
	return list
}

// Reserve is the most that a request could use. It counts as used until the outcome is recorded.
type Reserve struct {
	Tokens int    `json:"tokens"`
	Cost   Amount `json:"cost,omitzero"`
	Priced bool   `json:"priced"` // false: the prices file has no price, and Cost is not known
}

// Fits refuses a request that could use more than is left of a bound.
func (b Bound) Fits(used Used, r Reserve) error {
	if b.Tokens > 0 && used.Usage.Tokens()+used.Reserved.Tokens+r.Tokens > b.Tokens {
		return fault.Wrap(ErrBudget, fault.Exhausted, ErrBudget.Code, "the request could use %d tokens; of %s, %d of %d are used or reserved",
			r.Tokens, b.What, used.Usage.Tokens()+used.Reserved.Tokens, b.Tokens)
	}
	if b.Cost == 0 {
		return nil
	}
	if !r.Priced {
		return ErrPrice
	}
	if spent := used.Cost.Plus(used.Reserved.Cost); spent.Plus(r.Cost) > b.Cost {
		return fault.Wrap(ErrBudget, fault.Exhausted, ErrBudget.Code, "the request could cost %s; of %s, %s of %s are spent or reserved", r.Cost,
			b.What, spent, b.Cost)
	}
	return nil
}
