package localengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runner"
)

// How many runs the engine within the daemon works on at the same time: in all, and of one workspace, so that one whose runs wait for
// people does not keep the others waiting.
//
// A run of an agent waits most of its time for a model or for a person, so of these there are more.
const (
	engineHands    = 64
	workspaceHands = 16

	agentHands          = 512
	agentWorkspaceHands = 128
)

// Work executes runs of operations until ctx ends. It does nothing that an engine outside could not do.
func (e *Engine) Work(ctx context.Context) error {
	d := &desk{Engine: e, work: errand.Operations, most: workspaceHands, held: map[id.Workspace]int{}}
	return (&runner.Runner{Claims: d, Records: d, Clock: e.Clock, Logger: e.Logger, Hands: engineHands, Done: d.done}).Run(ctx)
}

// desk claims runs for the engine within the daemon. It calls the services that the API calls too.
type desk struct {
	*Engine
	work string       // the kind of the runs that it claims
	most int          // runs of one workspace at the same time
	last id.Workspace // of the last run that was claimed; used by one claimer at a time

	mu   sync.Mutex // guards held
	held map[id.Workspace]int
}

var (
	_ errand.Claims  = (*desk)(nil)
	_ runner.Stops   = (*desk)(nil)
	_ errand.Records = (*desk)(nil)
)

// done notes that the work on a run has ended.
func (d *desk) done(w errand.Work) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[w.Workspace]--; d.held[w.Workspace] == 0 {
		delete(d.held, w.Workspace)
	}
}

// claimed notes a claimed run, whose work begins now.
func (d *desk) claimed(ws id.Workspace) {
	d.busy(ws)
	d.last = ws
}

// busy notes a run that is worked on from now on.
func (d *desk) busy(ws id.Workspace) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[ws]++
}

// full reports whether as many runs of a workspace are worked on as may be.
func (d *desk) full(ws id.Workspace) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held[ws] >= d.most
}

// fromLast returns the workspaces in their order, beginning behind the one that was served last.
func fromLast(all []id.Workspace, last id.Workspace) []id.Workspace {
	at, found := slices.BinarySearch(all, last)
	if found {
		at++
	}
	return slices.Concat(all[at:], all[:at])
}

// origin names the engine as the recording principal. Its work in spaces is done for the requester of the run.
func (d *desk) origin() event.Origin { return event.Origin{Principal: ID} }

func (d *desk) hold(w errand.Work) engines.Hold {
	return engines.Hold{Workspace: w.Workspace, Run: w.Run, Token: w.Token, Permit: w.Permit}
}

// Claim implements errand.Claims. It waits until it hears of a run in some workspace, and no longer than runner.Poll: of what other
// daemons record, and of claims that have expired, it hears nothing.
func (d *desk) Claim(ctx context.Context, wait time.Duration) (errand.Work, error) {
	late, stop := d.Clock.NewTimer(min(max(wait, 0), runner.Poll))
	defer stop()
	for {
		heard, deaf := d.Engines.Listen(d.work)
		w, err := d.next(ctx)
		if !errors.Is(err, errand.ErrNothing) || wait <= 0 {
			deaf()
			return w, err
		}
		select {
		case <-heard: // and if another one has it, there may be others
		case <-late:
			deaf()
			return w, err
		case <-ctx.Done():
			deaf()
			return w, err
		}
	}
}

// next claims a run of the next workspace that offers one.
func (d *desk) next(ctx context.Context) (errand.Work, error) {
	workspaces, err := d.Log.Workspaces(ctx)
	if err != nil {
		return errand.Work{}, err
	}
	want := engines.Wanted{Work: d.work}
	if d.Shares {
		want.Fits = d.fits
	}
	var failed error
	for _, ws := range fromLast(workspaces, d.last) {
		if d.full(ws) {
			continue
		}
		if offers, err := d.Engines.Offers(ctx, ws, want); err != nil || !offers {
			continue
		}
		may, err := d.mayClaim(ctx, ws)
		if err == nil && !may {
			continue
		}
		var doc run.Run
		var token string
		if err == nil {
			doc, token, err = d.Engines.Claim(ctx, d.origin(), ws, want)
		}
		if errors.Is(err, errand.ErrNothing) {
			continue
		}
		if err != nil { // an error in one workspace does not block the others
			failed = errors.Join(failed, fmt.Errorf("in %s: %w", ws, err))
			continue
		}
		d.claimed(ws)
		given, err := d.Engines.Given(ctx, doc)
		if err != nil {
			d.done(errand.Work{Workspace: ws})
		}
		return errand.Work{Lasts: doc.Claim.Until.Sub(doc.Claim.Since), Workspace: ws, Run: doc.ID, Token: token,
			Permit: d.Engines.Permits.OfClaim(doc), Fence: doc.Fence, Input: given}, err
	}
	if failed != nil {
		// The engine of the daemon serves every workspace: what one of them denies is no reason to end, as it is for one outside.
		return errand.Work{}, errors.New(failed.Error())
	}
	return errand.Work{}, errand.ErrNothing
}

// fits reports whether this daemon can execute a run: its space is here, or nowhere any more, which the engine then reports.
func (e *Engine) fits(ctx context.Context, doc run.Run) (bool, error) {
	given, err := e.Engines.Given(ctx, doc)
	if err != nil {
		return true, nil // who claims it finds out what is wrong with it
	}
	in, ok := errand.SpaceOf(given)
	if !ok {
		return true, nil
	}
	s, err := e.Spaces.Catalog.Space(ctx, doc.Workspace, in)
	if fault.KindOf(err) == fault.NotFound || err == nil && s.Status == space.Destroyed {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return e.Spaces.Ownership.Mine(ctx, s)
}

// mayClaim registers the engine in a workspace, and reports whether it may claim runs there. It returns false without an error for an
// archived workspace, or a refused engine, because every attempt would record a refusal.
func (d *desk) mayClaim(ctx context.Context, ws id.Workspace) (bool, error) {
	doc, _, err := projection.Load[workspace.Workspace](ctx, d.Docs, ws, workspace.Workspaces, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) || doc.Archived() {
		return false, err
	}
	if err := d.register(ctx, ws); err != nil {
		return false, err
	}
	ruling, err := d.Gate.Judge(ctx, policy.Action{Type: policy.RunClaim, Workspace: ws, Principal: ID})
	return ruling.Decision.Allowed(), err
}

// register makes the engine known in a workspace, before it claims its first run.
func (d *desk) register(ctx context.Context, ws id.Workspace) error {
	_, err := d.Identity.Principal(ctx, ws, ID)
	if fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Denied {
		return err
	}
	data := principal.Registered{Principal: ID, Kind: id.Service, Name: "engine of the daemon"}
	_, err = d.Log.Append(ctx, event.Batch{
		Workspace: ws, Drafts: []event.Draft{event.New(principal.RegisteredType, event.Origin{Principal: principal.System}, ws, "",
			data).About(principal.Entity, string(ID))},
		Documents: []event.DocumentVersion{{Projection: principal.Projection, Key: string(ID)}},
	})
	if errors.Is(err, journal.ErrConflict) {
		return nil
	}
	return err
}

// Renew implements errand.Claims.
func (d *desk) Renew(ctx context.Context, w errand.Work) error {
	_, err := d.Engines.Renew(ctx, d.origin(), d.hold(w))
	return err
}

// Cancelled implements runner.Stops.
func (d *desk) Cancelled(ctx context.Context, w errand.Work) bool {
	found, err := d.Engines.Find(ctx, w.Workspace, w.Run)
	return err == nil && found.Status == run.Cancelled
}

// Release implements errand.Claims.
func (d *desk) Release(ctx context.Context, w errand.Work) error {
	_, err := d.Engines.Release(ctx, d.origin(), d.hold(w))
	return err
}

// End implements errand.Claims.
func (d *desk) End(ctx context.Context, w errand.Work, r errand.Result) (err error) {
	if r.Failure != "" {
		_, err = d.Engines.Fail(ctx, d.origin(), d.hold(w), r.Failure, r.Message, r.Output)
	} else {
		_, err = d.Engines.Complete(ctx, d.origin(), d.hold(w), r.Summary, r.Output)
	}
	return err
}

// Past implements errand.Records.
func (d *desk) Past(ctx context.Context, w errand.Work) ([]errand.Progress, error) {
	const page = 1000
	of := engines.Of{Run: w.Run}
	calls := map[id.Step]step.Call{}
	for after := ""; ; {
		found, err := d.Engines.Look.Calls(ctx, w.Workspace, of, after, page)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			after = string(c.ID)
			if _, newer := calls[c.Step]; !newer {
				calls[c.Step] = c
			}
		}
		if len(found) < page {
			break
		}
	}
	var past []errand.Progress
	for after := ""; ; {
		found, err := d.Engines.Look.Steps(ctx, w.Workspace, of, after, page)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			after = string(s.ID)
			c := calls[s.ID]
			call := errand.Call{ID: c.ID, Status: string(c.Status), OK: c.Status == step.Succeeded, Child: c.Child, Output: c.Output, Error: c.Error}
			past = append(past, errand.Recorded(s.ID, s.Input, call))
		}
		if len(found) < page {
			return past, nil
		}
	}
}

// Step implements errand.Records.
func (d *desk) Step(ctx context.Context, w errand.Work, index int) (id.Step, error) {
	input, err := json.Marshal(errand.At{Index: index})
	if err != nil {
		return "", err
	}
	s, err := d.Engines.Steps.Add(ctx, d.origin(), d.hold(w), engines.StepRequest{Kind: errand.StepKind, Title: "operation " +
		strconv.Itoa(index+1), Input: input})
	return s.ID, err
}

// Invoke implements errand.Records.
func (d *desk) Invoke(ctx context.Context, w errand.Work, s id.Step, index int, operation json.RawMessage) (errand.Verdict, error) {
	input, err := json.Marshal(errand.AtOperation(index, run.TypeOf(operation), operation))
	if err != nil {
		return errand.Verdict{}, err
	}
	c, no, err := d.Engines.Steps.Invoke(ctx, d.origin(), w.Workspace, w.Token, engines.CallRequest{Step: s, Tool: run.ToolName(operation),
		Input: input})
	if no != nil {
		return errand.Verdict{Asks: no.Decision.Outcome == policy.RequireApproval, Code: no.Decision.ReasonCode, Reason: no.Decision.Reason}, nil
	}
	return errand.Verdict{Call: c.ID, Permit: d.Engines.Permits.OfCall(w.Workspace, c)}, err
}

// Operate implements errand.Records.
func (d *desk) Operate(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space, operation json.RawMessage) (errand.Outcome,
	error) {
	return d.operate(ctx, w, call, in, operation, false, func(run.Run) {})
}

// Conclude implements errand.Records.
func (d *desk) Conclude(ctx context.Context, w errand.Work, call id.ToolCall, permit string, o errand.Outcome) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	by := engines.Shown{Token: w.Token, Permit: permit}
	if o.OK {
		_, err = d.Engines.Steps.Succeed(ctx, d.origin(), w.Workspace, by, call, raw)
	} else {
		_, err = d.Engines.Steps.Fail(ctx, d.origin(), w.Workspace, by, call, raw, "the operation did not succeed; its run says why")
	}
	if fault.CodeOf(err) == step.ErrCallEnded.Code {
		return nil // it was recorded, and the answer lost
	}
	return err
}
