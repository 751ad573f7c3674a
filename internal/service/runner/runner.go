// Package runner is an engine: it claims runs, executes their operations, and reports the outcomes.
//
// It is the same within a daemon and outside of it; both speak the contract of package engine. It stops writing as soon as it knows
// that it has lost its claim. The fencing token rejects what it writes before it knows.
package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
)

// The intervals of an engine. Wait is how long it waits for work at a time. Poll applies if the daemon does not let it wait.
const (
	Wait = 20 * time.Second
	Poll = 1200 * time.Millisecond
)

// Runner is an engine. Its fields are set once, before Run.
type Runner struct {
	Claims  errand.Claims
	Records errand.Records
	Clock   event.Clock
	Logger  *slog.Logger
	Once    bool                // it ends when there is nothing to claim
	Hands   int                 // runs that it works on at the same time; 0 means 1
	Done    func(w errand.Work) // is called after each run that it has worked on, whatever the outcome; may be nil

	// Perform does the work of a run, from wherever it stands. It returns an error where it cannot go on at the moment. Nil executes the
	// operations of an order.
	Perform func(ctx context.Context, w errand.Work) (errand.Result, error)
}

// The failures of a run that the engine itself reports.
const (
	FailResult = "result_invalid" // the daemon does not take the result
	FailEngine = "engine_failed"  // the engine could not go on after Tries tries
)

// Tries is how often an engine tries to go on with a run. Between two tries it waits: for errand.Again at first, and then for twice as long
// each time, up to longest. Twelve tries take six minutes.
const (
	Tries   = 12
	longest = time.Minute
)

// errLost ends the work on a run that another engine may have.
var errLost = errors.New("the claim is lost")

// Run claims and executes runs until ctx ends, as many at the same time as it has hands. Then it gives unfinished runs back.
func (r *Runner) Run(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()
	hands := make(chan struct{}, max(r.Hands, 1))
	said := "" // the last reported reason for an empty answer
	for {
		select {
		case hands <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		wait := Wait
		if r.Once {
			wait = 0
		}
		began := r.Clock.Now()
		w, err := r.Claims.Claim(ctx, wait)
		if err == nil {
			said = ""
			working.Go(func() {
				r.execute(ctx, w)
				<-hands
			})
			continue
		}
		<-hands
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, errand.ErrNothing) {
			if kind := fault.KindOf(err); r.Once || kind == fault.Denied || kind == fault.Invalid {
				return err
			}
			r.Logger.Warn("look for a run", "code", "claim_failed", "error", err)
		}
		if why := waitsFor(err); why != said {
			if said = why; why != "" {
				r.Logger.Info("no run can be claimed", "code", "no_run_claimable", "reason", why)
			}
		}
		if r.Once {
			return nil
		}
		if left := Poll - r.Clock.Now().Sub(began); left > 0 {
			errand.Pause(ctx, r.Clock, left)
		}
	}
}

// waitsFor returns the reason in an answer without a run, "" if no run waits at all.
func waitsFor(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != errand.ErrNothing.Code || f.Msg == errand.ErrNothing.Msg {
		return ""
	}
	return f.Msg
}

// Execute works on a run that was claimed elsewhere, as Run does, and returns when it does not work on it any more.
func (r *Runner) Execute(ctx context.Context, w errand.Work) { r.execute(ctx, w) }

// execute works on a run as long as it is this engine's.
func (r *Runner) execute(ctx context.Context, w errand.Work) {
	if r.Done != nil {
		defer r.Done(w)
	}
	working, stop := context.WithCancelCause(ctx)
	beaten := make(chan struct{})
	go func() {
		defer close(beaten)
		if err := r.beat(working, w); err != nil {
			stop(err)
		}
	}()
	r.Logger.Info("a run was claimed", "code", "run_claimed", "run", w.Run, "fence", w.Fence)
	perform := r.Perform
	if perform == nil {
		perform = r.perform
	}
	result, err := r.tried(working, w, perform)
	lost := errors.Is(context.Cause(working), errLost)
	stop(nil)
	<-beaten
	switch {
	case err == nil && result.Failure != "":
		r.Logger.Info("a run has failed", "code", "run_failed", "run", w.Run, "error", result.Failure, "result", result.Message)
	case err == nil:
		r.Logger.Info("a run has succeeded", "code", "run_succeeded", "run", w.Run, "result", result.Summary)
	case (lost || refusedClaim(err)) && r.stopped(context.WithoutCancel(ctx), w):
		r.Logger.Info("somebody has cancelled the run", "code", "claim_ended", "run", w.Run)
	case lost || refusedClaim(err):
		r.Logger.Warn("a run is not this engine's any more", "code", "claim_lost", "run", w.Run, "error", err)
	default: // it was stopped: the next engine goes on
		if err := r.Claims.Release(context.WithoutCancel(ctx), w); err != nil {
			r.Logger.Warn("give a run back", "code", "release_failed", "run", w.Run, "error", err)
		}
	}
}

// Stops is implemented by Claims that know why a run has ended. Then the engine warns of no claim that it has lost because somebody has
// cancelled the run.
type Stops interface {
	// Cancelled reports whether the run was cancelled.
	Cancelled(ctx context.Context, w errand.Work) bool
}

// stopped reports whether somebody has cancelled the run.
func (r *Runner) stopped(ctx context.Context, w errand.Work) bool {
	of, ok := r.Claims.(Stops)
	return ok && of.Cancelled(ctx, w)
}

// tried performs a run and ends it. While it cannot go on it tries again, and keeps its claim. A run that nobody can perform ends as
// failed: given back, it would be claimed and given back for ever.
func (r *Runner) tried(ctx context.Context, w errand.Work,
	perform func(context.Context, errand.Work) (errand.Result, error)) (errand.Result, error) {
	wait := errand.Again
	for try := 1; ; try++ {
		result, err := perform(ctx, w)
		if err == nil {
			err = r.end(ctx, w, result)
		}
		if err == nil || ctx.Err() != nil || refusedClaim(err) {
			return result, err
		}
		r.Logger.Warn("the engine cannot go on with a run", "code", "run_not_performed", "run", w.Run, "try", try, "error", err)
		if try == Tries {
			result = errand.Result{Failure: FailEngine, Message: err.Error()}
			return result, r.end(ctx, w, result)
		}
		if !errand.Pause(ctx, r.Clock, wait) {
			return result, context.Cause(ctx)
		}
		wait = min(2*wait, longest)
	}
}

// end ends a run. A result that cannot be recorded ends it as failed: given back, the run would come to the same result again and again.
func (r *Runner) end(ctx context.Context, w errand.Work, result errand.Result) error {
	// Hook phase: State Transition.
	say := func(result errand.Result) error {
		return errand.Patiently(ctx, r.Clock, func() error {
			err := r.Claims.End(ctx, w, result)
			if fault.CodeOf(err) == "field_too_large" { // which no patience makes smaller
				return fault.Wrap(err, fault.Invalid, FailResult, "the result is too large: %v", err)
			}
			return err
		})
	}
	err := say(result)
	if err != nil && fault.KindOf(err) == fault.Invalid && !refusedClaim(err) {
		r.Logger.Warn("a result cannot be recorded", "code", "result_invalid", "run", w.Run, "error", err)
		return say(errand.Result{Failure: FailResult, Message: err.Error()})
	}
	return err
}

// refusedClaim reports whether an error says that the run is not this engine's.
func refusedClaim(err error) bool {
	switch fault.CodeOf(err) {
	case run.ErrTokenMismatch.Code, run.ErrExpired.Code, run.ErrNotRunning.Code, run.ErrEnded.Code, run.ErrLocked.Code, run.ErrNotFound.Code:
		return true
	}
	return false
}

// beat keeps the claim until ctx ends, and returns errLost when it cannot. Time is measured from before each heartbeat was sent, so that
// the engine believes in its claim for no longer than the daemon does.
func (r *Runner) beat(ctx context.Context, w errand.Work) error {
	good, lasts := r.Clock.Now(), w.Lasts
	if lasts <= 0 {
		lasts = run.ClaimTime
	}
	for wait := run.RenewEvery(lasts); ; {
		if !errand.Pause(ctx, r.Clock, wait) {
			return nil
		}
		sent := r.Clock.Now()
		err := r.renew(ctx, w, good.Add(lasts).Sub(sent))
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			good, wait = sent, run.RenewEvery(lasts)
		case refusedClaim(err) || r.Clock.Now().Sub(good) >= lasts:
			return fmt.Errorf("%w: %w", errLost, err)
		default:
			wait = min(errand.Again, run.RenewEvery(lasts))
		}
	}
}

// renew sends a heartbeat, and waits for its answer for as long as the claim lasts: a daemon that says nothing may have given it to
// another.
func (r *Runner) renew(ctx context.Context, w errand.Work, left time.Duration) error {
	ctx, give := context.WithCancel(ctx)
	defer give()
	over, stop := r.Clock.NewTimer(max(left, 0))
	defer stop()
	go func() {
		select {
		case <-over:
			give()
		case <-ctx.Done():
		}
	}()
	return r.Claims.Renew(ctx, w)
}

// perform executes the operations of a run that have no result yet.
func (r *Runner) perform(ctx context.Context, w errand.Work) (errand.Result, error) {
	order, ok := errand.ReadOrder(w.Input)
	if !ok {
		return errand.Result{Failure: "input_invalid", Message: "the input is not an operations message of protocol 1.0 with a space_id"}, nil
	}
	var past []errand.Progress
	if err := errand.Patiently(ctx, r.Clock, func() (err error) { past, err = r.Records.Past(ctx, w); return err }); err != nil {
		return errand.Result{}, err
	}
	done := make([]errand.Progress, len(order.Operations))
	for _, p := range past {
		if p.Index >= 0 && p.Index < len(done) && (p.Call != "" || done[p.Index].Step == "") {
			done[p.Index] = p
		}
	}
	succeeded := 0
	outcomes := make([]errand.Outcome, len(order.Operations)) // each in its operation's place, executed here or elsewhere
	for i, operation := range order.Operations {
		outcome, err := r.operate(ctx, w, i, operation, order, done[i])
		if err != nil {
			if kind := fault.KindOf(err); ctx.Err() == nil && !refusedClaim(err) && kind != fault.Unavailable && kind != fault.Internal {
				return errand.Result{Failure: fault.CodeOf(err), Message: err.Error()}, nil // no other engine could go on either
			}
			return errand.Result{}, err
		}
		if outcomes[i] = outcome; outcome.OK {
			succeeded++
		}
	}
	output, err := json.Marshal(map[string]any{"operations": outcomes})
	if err != nil || len(output) > run.MaxReport {
		output = nil
	}
	said := fmt.Sprintf("%d of %d operations succeeded", succeeded, len(outcomes))
	if succeeded < len(outcomes) && !order.Continue {
		return errand.Result{Failure: errand.Failed, Message: said, Output: output}, nil
	}
	return errand.Result{Summary: said, Output: output}, nil
}

// operate brings one operation to its end, from wherever it stands.
func (r *Runner) operate(ctx context.Context, w errand.Work, index int, operation json.RawMessage, order errand.Order,
	p errand.Progress) (o errand.Outcome, err error) {
	if p.Ended {
		return p.Outcome, nil
	}
	if p.Step == "" {
		if err := errand.Patiently(ctx, r.Clock, func() (err error) { p.Step, err = r.Records.Step(ctx, w, index); return err }); err != nil {
			return o, err
		}
	}
	permit, waits := "", ""
	for p.Call == "" {
		var v errand.Verdict
		if err := errand.Patiently(ctx, r.Clock, func() (err error) {
			v, err = r.Records.Invoke(ctx, w, p.Step, index, operation)
			return err
		}); err != nil {
			return o, err
		}
		if p.Call = v.Call; p.Call != "" {
			permit = v.Permit
			break
		}
		// While the kill switch is thrown, nothing runs and no outcome is reported. The runner waits for it, as it waits for a person.
		if !v.Asks && v.Code != policy.ReasonKillSwitch {
			return errand.Outcome{Status: errand.Refused, Code: v.Code, Reason: v.Reason}, nil // which is its result
		}
		if waits != v.Code {
			waits = v.Code
			r.Logger.Info("an operation waits", "code", "operation_waits", "run", w.Run, "operation", index+1, "for", v.Code, "reason", v.Reason)
		}
		if !errand.Pause(ctx, r.Clock, errand.Ask) {
			return o, context.Cause(ctx)
		}
	}
	if err := errand.Patiently(ctx, r.Clock, func() (err error) {
		o, err = r.Records.Operate(ctx, w, p.Call, order.Space, operation)
		return err
	}); err != nil {
		return o, err
	}
	return o, errand.Patiently(ctx, r.Clock, func() error { return r.Records.Conclude(ctx, w, p.Call, permit, o) })
}
