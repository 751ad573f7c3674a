package localengine

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/external"
	"agentbox/internal/service/runs"
	"agentbox/internal/surface/wires"
)

// performer works on runs of the kind errand.Agent: the daemon's own loop, or the program that the blueprint names.
func performer(d *agentDesk, loop *agents.Loop) func(context.Context, errand.Work) (errand.Result, error) {
	outside := &external.Engine{Records: &externalDesk{d}, Models: d.Models, Clock: d.Clock, Logger: d.Logger, Read: loop.Read}
	if !d.Floating {
		outside.Drift = d.Blueprints.Verify
	}
	return func(ctx context.Context, w errand.Work) (errand.Result, error) {
		if m, ok := errand.ReadMission(w.Input); ok {
			if ended, err := d.orphaned(ctx, w, m); ended != nil || err != nil {
				return *cmp.Or(ended, &errand.Result{}), err
			}
			b, _, err := d.Blueprints.Read(ctx, w.Workspace, m.Blueprint, m.Edition)
			if err == nil && b.Adapter.Kind == blueprint.ExternalCLI {
				return outside.Perform(ctx, w)
			}
		}
		return loop.Perform(ctx, w)
	}
}

// startExternal refuses a task that no external agent can be given, and returns what the run records of how it is started.
func startExternal(b blueprint.Blueprint, task string) (event.Digest, error) {
	return external.Hash(), external.Check(b, task)
}

// externalDesk is where external agents are reported and done.
type externalDesk struct{ *agentDesk }

var _ external.Records = (*externalDesk)(nil)

// Past implements external.Records.
func (d *externalDesk) Past(ctx context.Context, w errand.Work) ([]errand.Progress, error) {
	return d.desk.Past(ctx, w)
}

// Invoke implements external.Records.
func (d *externalDesk) Invoke(ctx context.Context, w errand.Work, s id.Step, index int,
	operation json.RawMessage) (errand.Verdict, error) {
	return d.desk.Invoke(ctx, w, s, index, operation)
}

// Operate implements external.Records.
func (d *externalDesk) Operate(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space,
	operation json.RawMessage) (errand.Outcome, error) {
	return d.operate(ctx, w, call, in, operation, true, func(run.Run) {})
}

// Ended implements external.Records.
func (d *externalDesk) Ended(ctx context.Context, w errand.Work, child id.Run) (external.Ended, error) {
	doc, err := d.Runs.History.Find(ctx, w.Workspace, child)
	if err != nil {
		return external.Ended{}, err
	}
	told, err := d.Runs.History.Events(ctx, doc)
	if err != nil {
		return external.Ended{}, err
	}
	for _, e := range told.Events {
		if e.Type == run.ResApprovalRequired {
			continue
		}
		if e.Stdout != nil && len(e.Omitted) > 0 { // the result has the beginning of a long output, and its end is wanted
			tail, err := d.tail(ctx, child)
			if err != nil {
				return external.Ended{}, err
			}
			e.Stdout = &tail
		}
		return external.Ended{Result: e, Found: true}, nil
	}
	return external.Ended{}, nil
}

// tail returns the last part of what a command printed, as far as its live output has it.
func (d *externalDesk) tail(ctx context.Context, of id.Run) (string, error) {
	const most, page = 256 << 10, 256
	var text []byte
	for from := uint64(1); ; {
		frames, err := d.Runs.Live.Read(ctx, of, from, page)
		if err != nil {
			return "", err
		}
		for _, f := range frames {
			from = f.N + 1
			if f.Kind == livestream.Stdout {
				text = append(text, f.Data...)
			}
		}
		if len(text) > 2*most {
			text = append([]byte(nil), text[len(text)-most:]...)
		}
		if len(frames) < page {
			return string(text), nil
		}
	}
}

// errLight refuses a space whose programs have no sockets.
var errLight = fault.New(fault.Conflict, "space_not_heavy", "an external agent works in a heavy space, and this one is nano").
	With("leave space_id out, so that one is made; or promote the space: agentbox space promote SPACE")

// The bounds of what programs of a space may ask of the daemon. A program that keeps a connection open and says nothing loses it.
const (
	inletHead = 10 * time.Second // to send the head of a request
	inletRead = time.Minute      // to send all of a request
	inletIdle = 2 * time.Minute  // between two requests
	headBytes = 64 << 10         // of a request's head
)

// Open implements external.Records.
func (d *externalDesk) Open(ctx context.Context, w errand.Work, in id.Space, o external.Offer) (int, func(), error) {
	doc, err := d.Spaces.Catalog.Space(ctx, w.Workspace, in)
	if err != nil {
		return 0, nil, err
	}
	if doc.Tier == space.Nano {
		return 0, nil, errLight
	}
	instance, err := d.Spaces.Living.Instance(ctx, doc)
	if err != nil {
		return 0, nil, err
	}
	asking, ok := instance.(space.Asking)
	if !ok {
		return 0, nil, space.ErrNoPorts
	}
	inlet, err := asking.Inlet(ctx)
	if err != nil {
		return 0, nil, err
	}
	ask := func(ctx context.Context, q wires.Question, emit func(model.Delta) error) (model.Reply, error) {
		return o.Answer(ctx, external.Question(q), emit)
	}
	wire := wires.New(ask, o.Models)
	if o.Permit != nil {
		wire.Offer(func(ctx context.Context, p wires.Permission) (wires.Verdict, error) {
			d, err := o.Permit(ctx, external.Use(p))
			return wires.Verdict(d), err
		})
	}
	serving, stop := context.WithCancel(ctx)
	server := &http.Server{
		Handler: wire, BaseContext: func(net.Listener) context.Context { return serving }, ErrorLog: quiet(),
		ReadHeaderTimeout: inletHead, ReadTimeout: inletRead, IdleTimeout: inletIdle, MaxHeaderBytes: headBytes,
	}
	listener := newInward(serving, inlet)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends when the listener is closed, or the space ends
	}()
	return inlet.Port(), func() {
		stop()
		_ = server.Close() // it closes the listener, and every connection
		inlet.Close()
		<-done
	}, nil
}

// operate executes an operation under a call, in the space's queue or beside it. It calls asks with the run in the space each time that one
// waits for a person.
func (d *desk) operate(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space, operation json.RawMessage,
	beside bool, asks func(run.Run)) (errand.Outcome, error) {
	asked, err := d.Engines.Find(ctx, w.Workspace, w.Run)
	if err != nil {
		return errand.Outcome{}, err
	}
	message, err := run.ParseOperations([]json.RawMessage{operation})
	if err != nil {
		return errand.Outcome{}, err
	}
	doc, err := d.Runs.Start(context.WithoutCancel(ctx), event.Origin{Principal: asked.CreatedBy, Token: asked.Token,
		Correlation: asked.Correlation}, runs.Request{
		Workspace: w.Workspace, Space: in, Message: message, Background: beside,
		Under: func(ctx context.Context) (run.Under, error) {
			return d.Engines.Steps.Vouch(ctx, w.Workspace, w.Token, call)
		},
	})
	for err == nil && !doc.Status.Ended() {
		_, asked := doc.Pending()
		if asked != "" {
			asks(doc)
		}
		doc, err = d.Runs.History.WaitPast(ctx, w.Workspace, doc.ID, asked)
		if ctx.Err() != nil {
			return errand.Outcome{}, context.Cause(ctx)
		}
	}
	return errand.Outcome{Child: doc.ID, Status: string(doc.Status), OK: doc.Status == run.Succeeded && doc.Succeeded()}, err
}
