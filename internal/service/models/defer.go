package models

import (
	"context"
	"fmt"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/model"
)

// If another request tries whether a model works again, a request looks again after probeFirst, and then after twice as long each time, up
// to probeMost.
const (
	probeFirst = time.Second
	probeMost  = 30 * time.Second
)

// circuitOpen is the code of a model whose circuit breaker is open.
const circuitOpen = "circuit_open"

// deferral is an open circuit that a request meets.
type deferral struct {
	*circuit
	entry string
}

// shut reports whether the circuit breaker of a model is open, and notes it then. A trial goes through: a person wants to know
// whether the model works now.
func (c *asking) shut(e model.Held, at named) bool {
	if c.trial {
		return false
	}
	now := c.s.Clock.Now()
	open := c.s.breakers.admit(at, now)
	if open == nil {
		return false
	}
	if c.open == nil || c.wait(open, now) < c.wait(c.open.circuit, now) {
		c.open = &deferral{open, e.Name}
	}
	c.pass(e, circuitOpen, &model.Failure{Class: model.Busy, Code: circuitOpen, Message: open.reason, After: max(open.until.Sub(now), 0)})
	return true
}

// wait returns how long the request waits for an open circuit.
func (c *asking) wait(open *circuit, now time.Time) time.Duration {
	if open.trying {
		return min(probeFirst<<min(c.probes, 10), probeMost)
	}
	return max(open.until.Sub(now), 0)
}

// report tells the circuit breaker the outcome of a request that it admitted. Of a trial only an answer counts, and closes it: the failures
// of a person's questions are not those of the agents' requests.
func (c *asking) report(at named, f *model.Failure, counts bool) {
	if c.trial && (f != nil || !counts) {
		return
	}
	c.s.breakers.report(at, c.s.Clock.Now(), f, counts)
}

// awaits waits until the circuit breaker of a model may let the request through, and returns false if it does not wait: no circuit is open,
// or the time of the run ends before. The wait counts as time of models, and is recorded before it begins. After a restart no circuit is
// open, and the request is sent at once. An answer to another request ends the wait. Then the next try records what it was spared, and only
// the rest counts; of a daemon that ends between the two the wait counts in full.
func (c *asking) awaits(ctx context.Context) (bool, error) {
	if c.open == nil || c.ask.Time <= 0 { // without a limit of time nothing would bound the wait
		return false, nil
	}
	now := c.s.Clock.Now()
	wait := c.wait(c.open.circuit, now)
	if c.open.trying {
		c.probes++
	}
	wait = (wait + time.Millisecond - 1).Truncate(time.Millisecond) // as the record has it
	if left := c.ask.Time - c.counted(); wait >= left {
		c.last = &model.Failure{Class: model.Busy, Code: circuitOpen, After: wait,
			Message: fmt.Sprintf("%s, and the run may go on for only %s", c.open.reason, max(left, 0).Round(time.Second))}
		return false, nil
	}
	a := c.ask
	draft := event.New(model.EventDeferred, a.Origin, a.Workspace, a.Room, model.Deferred{
		Call: c.call, Step: a.Step, Part: a.Part, Entry: c.open.entry, Code: circuitOpen, Reason: c.open.reason, Until: now.Add(wait).UTC(),
		WaitMS: wait.Milliseconds(),
	}).In(a.Run, "").About(model.CallEntity, c.call)
	draft.OccurredAt = now.UTC()
	if _, err := c.s.Log.Append(ctx, event.Batch{Workspace: a.Workspace, Drafts: []event.Draft{draft}}); err != nil {
		return false, err
	}
	if err := c.look(ctx); err != nil {
		return false, err
	}
	err := c.s.sleep(ctx, wait, c.open.closed)
	c.waited = min(wait, max(c.s.Clock.Now().Sub(now), 0)).Round(time.Millisecond)
	select {
	case <-c.open.closed:
		c.spared += wait - c.waited
	default: // it has lasted as long as was recorded, whatever the clock says
	}
	return true, err
}
