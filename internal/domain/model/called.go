package model

import (
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The event types of requests.
const (
	EventAsked    = "model.asked"    // a request is about to be sent
	EventAnswered = "model.answered" // its answer
	EventFailed   = "model.failed"   // why it has none
	EventRefused  = "model.refused"  // nothing was sent: a budget, a price, or no model that can be asked
	EventDeferred = "model.deferred" // nothing is sent for some time: the circuit breaker of a model is open
)

// Asked is the data of model.asked.
type Asked struct {
	Call    string       `json:"call_id"` // the name of the request, or an id where it has none
	Step    int          `json:"run_step,omitempty"`
	Part    string       `json:"part,omitempty"`
	Class   TaskClass    `json:"task_class,omitempty"`
	Attempt int          `json:"attempt"` // from 1, over the whole life of the call
	Entry   string       `json:"model"`
	Model   string       `json:"endpoint_model"` // as the endpoint calls it
	Request event.Digest `json:"request_sha256"`
	Reserve Reserve      `json:"reserve"`
	Day     string       `json:"day"`
	Reason  string       `json:"reason"`                // why this model, and why now
	Passed  []Passed     `json:"passed_over,omitempty"` // models that went before it and were not asked
	Waited  int64        `json:"waited_ms,omitempty"`   // before this try
	Spared  int64        `json:"spared_ms,omitempty"`   // of the waits that were recorded since the try before: answers cut them short
	Above   []id.Run     `json:"above_run_ids,omitempty"`
}

// Passed is a model that was not asked, and why.
type Passed struct {
	Entry  string `json:"model"`
	Code   string `json:"code"` // stable: circuit_open, budget, price_unknown, refused, failed
	Reason string `json:"reason"`
}

// Next steps after a failure.
const (
	NextRetry    = "retry"    // retry with the same model
	NextFallback = "fallback" // try the next model of the route
	NextNothing  = "nothing"  // the caller gets the failure
)

// Outcome is the data of model.answered and of model.failed.
type Outcome struct {
	Call    string  `json:"call_id"`
	Attempt int     `json:"attempt"`
	Entry   string  `json:"model"`
	Day     string  `json:"day"`     // of the asking
	Reserve Reserve `json:"reserve"` // of the asking, which ends; zero where it has ended before
	Usage   Usage   `json:"usage"`
	Cost    Amount  `json:"cost"`
	Priced  bool    `json:"priced"`
	Guessed bool    `json:"usage_guessed,omitempty"` // nobody told the usage: it is all that was reserved
	Millis  int64   `json:"duration_ms"`
	First   int64   `json:"first_piece_ms,omitempty"`

	Above []id.Run `json:"above_run_ids,omitempty"` // for which it counts besides its own run

	Answer *Answer `json:"answer,omitempty"`

	Failure *Failure `json:"failure,omitempty"`
	Next    string   `json:"next,omitempty"`
	Why     string   `json:"why,omitempty"` // for Next
	WaitMS  int64    `json:"wait_ms,omitempty"`
}

// Unsent is the data of model.refused.
type Unsent struct {
	Call    string       `json:"call_id"`
	Step    int          `json:"run_step,omitempty"`
	Part    string       `json:"part,omitempty"`
	Class   TaskClass    `json:"task_class,omitempty"`
	Request event.Digest `json:"request_sha256"`
	Code    string       `json:"code"`
	Reason  string       `json:"reason"`
	Passed  []Passed     `json:"passed_over,omitempty"`
}

// Deferred is the data of model.deferred.
type Deferred struct {
	Call   string    `json:"call_id"`
	Step   int       `json:"run_step,omitempty"`
	Part   string    `json:"part,omitempty"`
	Entry  string    `json:"model"`
	Code   string    `json:"code"` // circuit_open
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
	WaitMS int64     `json:"wait_ms"` // counts as time of models from the beginning of the wait, less what the next try was spared
}

// maxAttempts is how many attempts the document of a call lists, the last ones.
const maxAttempts = 20

// Attempt is one request that was sent.
type Attempt struct {
	N       int       `json:"attempt"`
	Entry   string    `json:"model"`
	AskedAt time.Time `json:"asked_at"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	Reserve Reserve   `json:"reserve"`
	Day     string    `json:"day"`
	Reason  string    `json:"reason,omitempty"`
	Class   Class     `json:"failure_class,omitempty"`
	Code    string    `json:"failure_code,omitempty"`
}

// Open reports whether the outcome of the attempt is not recorded.
func (a Attempt) Open() bool { return a.N > 0 && a.EndedAt.IsZero() }

// Called is the document of a request.
type Called struct {
	ID        string       `json:"call_id"`
	Run       id.Run       `json:"run_id,omitempty"`
	Room      id.Room      `json:"room_id,omitempty"`
	Step      int          `json:"run_step,omitempty"`
	Part      string       `json:"part,omitempty"`
	Class     TaskClass    `json:"task_class,omitempty"`
	Principal id.Principal `json:"principal_id"`
	Request   event.Digest `json:"request_sha256"`
	Attempts  int          `json:"attempts"`
	Tries     []Attempt    `json:"tries"` // the last ones
	Usage     Usage        `json:"usage"` // of all attempts
	Cost      Amount       `json:"cost"`
	Millis    int64        `json:"duration_ms,omitempty"` // of all attempts; one whose end a crash hid counts nothing
	Waited    int64        `json:"waited_ms,omitempty"`   // for open circuit breakers
	Unpriced  bool         `json:"unpriced,omitempty"`    // the price of an attempt is not known
	Answered  id.Event     `json:"answer_event_id,omitempty"`
	Entry     string       `json:"model,omitempty"` // which answered
	Stop      Stop         `json:"stop,omitempty"`
}

// Last returns the last attempt, the zero Attempt where there is none.
func (c Called) Last() Attempt {
	if len(c.Tries) == 0 {
		return Attempt{}
	}
	return c.Tries[len(c.Tries)-1]
}

// Evolve returns the document after an event of the request.
func (c Called) Evolve(e event.Event) (Called, error) {
	switch e.Type {
	case EventAsked:
		d, err := event.Decode[Asked](e)
		if err != nil {
			return c, err
		}
		c.ID, c.Run, c.Room, c.Step, c.Part, c.Class, c.Principal = d.Call, e.Run, e.Room, d.Step, d.Part, d.Class, e.Principal
		c.Request, c.Attempts = d.Request, d.Attempt
		tries := slices.Concat(c.Tries, []Attempt{{N: d.Attempt, Entry: d.Entry, AskedAt: e.OccurredAt, Reserve: d.Reserve, Day: d.Day,
			Reason: d.Reason}})
		c.Tries = tries[max(0, len(tries)-maxAttempts):]
		c.Waited = max(c.Waited-max(d.Spared, 0), 0)
	case EventDeferred:
		d, err := event.Decode[Deferred](e)
		if err != nil {
			return c, err
		}
		c.ID, c.Run, c.Room, c.Step, c.Part, c.Principal = d.Call, e.Run, e.Room, d.Step, d.Part, e.Principal
		c.Waited += max(d.WaitMS, 0)
	case EventAnswered, EventFailed:
		d, err := event.Decode[Outcome](e)
		if err != nil {
			return c, err
		}
		c.Tries = append([]Attempt(nil), c.Tries...)
		for i := range c.Tries {
			if t := &c.Tries[i]; t.N == d.Attempt && t.Open() {
				t.EndedAt = e.OccurredAt
				if d.Failure != nil {
					t.Class, t.Code = d.Failure.Class, d.Failure.Code
				}
			}
		}
		c.Millis += max(d.Millis, 0) // the clock may have been set back
		c.Usage, c.Cost, c.Unpriced = c.Usage.Add(d.Usage), c.Cost.Plus(d.Cost), c.Unpriced || !d.Priced && d.Usage.Tokens() > 0
		if e.Type == EventAnswered && c.Answered == "" {
			c.Answered, c.Entry = e.ID, d.Entry
			if d.Answer != nil {
				c.Stop = d.Answer.Stop
			}
		}
	}
	return c, nil
}

// Remains returns what stays of an event's data after a redaction: the request without its texts, the usage and the cost. It is nil
// for events of other kinds, and for those of the catalogue, which hold nothing that is said.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case EventAsked:
		d, err := event.Decode[Asked](e)
		return d, err
	case EventAnswered, EventFailed:
		d, err := event.Decode[Outcome](e)
		if d.Answer != nil {
			d.Answer = &Answer{Stop: d.Answer.Stop, Usage: d.Answer.Usage, Unknown: d.Answer.Unknown, Model: d.Answer.Model}
		}
		if d.Failure != nil {
			d.Failure.Message = ""
		}
		return d, err
	case EventRefused:
		d, err := event.Decode[Unsent](e)
		return d, err
	case EventDeferred:
		d, err := event.Decode[Deferred](e)
		d.Reason = ""
		return d, err
	}
	return nil, nil
}
