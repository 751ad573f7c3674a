package model

import (
	"context"
	"fmt"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Ask is a request to a model, with its requester, its purpose and its limits.
type Ask struct {
	Origin    event.Origin // the principal who asks, with the token under which they act
	Workspace id.Workspace
	Room      id.Room  // chooses the route, and its budget is charged; "" for none
	Space     id.Space // of the run, whose policy then judges the request; "" for none

	// Run, Step and Part name the request. The same name returns the recorded answer and costs nothing. The same name with another request is
	// ErrDiffers. Without a run nothing is repeated.
	Run  id.Run
	Step int    // of the run, from 1
	Part string // "" for the request of the step itself; a short word, such as compact, for a further one of the same step

	Class   TaskClass // chooses the route where Entry is empty
	Entry   string    // the name of an entry of the catalogue, which answers then, or one to which it falls back
	Request Request
	Limits  Limits // of the run

	// Above are the runs for which the run works, the nearest first, with their limits. Its use counts for each of them, too.
	Above []Above

	// Time is how long models may work on the request in all, over every try, also those before a restart. Waits for an open circuit breaker
	// count. 0 bounds nothing; then the request does not wait for a circuit breaker.
	Time time.Duration

	// Emit gets the pieces of the answer while they come, for those who watch. It may be nil, and ends the request by an error. After a piece
	// with Again, those before it do not count: another try begins. A repeated answer has no pieces.
	Emit func(Delta) error
}

// Limits bound the whole use of a run, this request included. Zero values bound nothing.
type Limits struct {
	Tokens int    `json:"tokens,omitempty"`
	Cost   Amount `json:"cost,omitzero"`
}

// Above is a run for which another one works.
type Above struct {
	Run    id.Run
	Limits Limits
}

// MaxAbove bounds how many runs a request counts for besides its own.
const MaxAbove = 8

// MaxPart bounds the length of Ask.Part, in bytes.
const MaxPart = 32

// Name returns the name of the request in its workspace, "" for a request without a run.
func (a Ask) Name() string {
	if a.Run == "" {
		return ""
	}
	name := fmt.Sprintf("%s/%d", a.Run, a.Step)
	if a.Part != "" {
		name += "/" + a.Part
	}
	return name
}

// AboveRuns returns the runs for which the request counts besides its own.
func (a Ask) AboveRuns() []id.Run {
	var runs []id.Run
	for _, above := range a.Above {
		runs = append(runs, above.Run)
	}
	return runs
}

// Check refuses what cannot be asked, before anything is done for it.
func (a Ask) Check() error {
	if a.Run != "" && a.Step < 1 || a.Run == "" && (a.Step != 0 || a.Part != "") {
		return invalid("a request of a run names a step from 1; a request without a run names none")
	}
	if a.Part != "" && (len(a.Part) > MaxPart || !named(a.Part)) {
		return invalid("part has 1 to %d of a-z, 0-9, . _ and -", MaxPart)
	}
	if a.Limits.Tokens < 0 || a.Limits.Cost < 0 || a.Time < 0 {
		return invalid("limits must not be negative")
	}
	if len(a.Above) > MaxAbove || len(a.Above) > 0 && a.Run == "" {
		return invalid("a request of a run counts for at most %d runs above it", MaxAbove)
	}
	return a.Request.Check()
}

// Reply is the answer to an Ask.
type Reply struct {
	Answer
	Entry    string `json:"entry"`             // of the catalogue, which answered
	Attempts int    `json:"attempts"`          // requests that were sent for it, failed ones among them
	Cost     Amount `json:"cost"`              // of all attempts; 0 where Priced is false
	Priced   bool   `json:"priced"`            // the prices file has a price for every attempt
	Repeated bool   `json:"repeated,omitzero"` // it was recorded before: nothing was sent

	// Took is how long models have worked on it, as it is recorded: the sum over all tries, and over the waits for an open circuit
	// breaker. It is set beside an error, too.
	Took time.Duration `json:"-"`
}

// Asker asks models, as package service/models does: through the gate, within budgets, along a route, with retries, and recorded. An error
// of a vendor is a *Failure: the last one where every model of the route failed. An error of the gate is a refusal. ErrBudget is that of a
// budget, for which nothing was sent. An answer is whole and recorded, or there is none. Any goroutine may call Ask.
type Asker interface {
	Ask(ctx context.Context, a Ask) (Reply, error)
}

// The refusals of an Asker.
var (
	// ErrDiffers means that the run asked something else under this name before.
	ErrDiffers = fault.New(fault.Conflict, "model_request_differs", "the run asked another request in this step before")
	// ErrBudget means that the request could cost more than a budget has left.
	ErrBudget = fault.New(fault.Exhausted, "model_budget_exceeded", "the request could cost more than the budget has left")
	// ErrPrice means that a budget of money holds and the price of the model is not known.
	ErrPrice = fault.New(fault.Exhausted, "model_price_unknown", "a budget of money holds, and the price of the model is not known")
	// ErrTime means that models have worked on the request for as long as they may.
	ErrTime = fault.New(fault.Exhausted, "model_time_exceeded", "models have worked on the request for as long as they may")
	// ErrNotFound means that the catalogue has no such entry.
	ErrNotFound = fault.New(fault.NotFound, "model_not_found", "there is no such model in the catalogue")
	// ErrNoRoute means that no entry answers requests of the task class.
	ErrNoRoute = fault.New(fault.NotFound, "model_route_missing", "no model answers requests of this task class")
	// ErrNoImages means that a model takes no pictures.
	ErrNoImages = fault.New(fault.Invalid, "model_without_images", "the model takes no pictures").
			With("choose one that does: /model NAME in a chat, or models.default of the blueprint\n" +
			"if it does take them, write its entry anew: agentbox model add NAME --model MODEL --images --replace\n" +
			"and with its other flags; then lock and register the blueprints that name it")
	// ErrNoKey means that the key that an entry names is not kept here.
	ErrNoKey = fault.New(fault.NotFound, "model_key_missing", "the key that the model names is not set")
)
