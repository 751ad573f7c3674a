package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// inside reports whether a driver does an action of a run in a space with a permit, and so at a place that only the permit tells.
func inside(action string) bool {
	operation, ok := run.SpecOfAction(action)
	return ok && operation.Action == action && operation.InSpace()
}

// permitted remembers where an action belongs that may be done now: all that a driver is given is its permit.
func (t *Tracer) permitted(r *traced, a policy.Action, permit event.Digest) {
	if !inside(a.Type) {
		return
	}
	at := r.at(a.Run, a.Step)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.permits[permit] = at
	r.permits = append(r.permits, permit)
	if a.Type == policy.ShellExec {
		t.waking[a.Space] = at
	}
}

// glanced is permitted for what only reads, which is allowed without a look at anything that is not in memory: the gate has judged it
// before.
func (t *Tracer) glanced(a policy.Action, permit event.Digest) {
	if t == nil {
		return
	}
	t.mu.Lock()
	r := t.runs[a.Run]
	t.mu.Unlock()
	if r != nil && r.parent.IsSampled() {
		t.permitted(r, a, permit)
	}
}

// redeem returns where that belongs which a permit is about to be redeemed for: below the step of a run, else below the request that ctx
// serves.
func (t *Tracer) redeem(ctx context.Context, permit event.Digest) (place, bool) {
	if t == nil {
		return place{}, false
	}
	t.mu.Lock()
	at, ok := t.permits[permit]
	delete(t.permits, permit)
	t.mu.Unlock()
	if ok {
		return at, true
	}
	return t.asking(ctx)
}

// asking returns the place of the request that ctx serves, where anybody follows it.
func (t *Tracer) asking(ctx context.Context) (place, bool) {
	at := place{parent: parse(t.request(ctx))}
	return at, at.parent.IsSampled()
}

// commanded tells of a command that was run in a space.
func (t *Tracer) commanded(at place, tier string, began, ended time.Time, exit space.Exit, err error) {
	class := exitClass(exit, err)
	failed := class
	if class == "zero" {
		failed = ""
	}
	t.moment(at, "space exec", began, ended, failed, attribute.String("agentbox.space.tier", tier), attribute.String("agentbox.command.exit",
		class),
		attribute.Int("process.exit.code", exit.Code))
}

// phase is a part of the start of a space.
type phase struct {
	name         string
	began, ended time.Time
}

// Phase tells of a phase of the start of a space that has ended just now. Of a space that nobody follows nothing is kept.
func (t *Tracer) Phase(s id.Space, name string, ended time.Time, took time.Duration) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.starting[s]; ok {
		t.starting[s] = append(known, phase{name, ended.Add(-took), ended})
	}
}

// start begins to follow the start of a space, for the command that is about to run in it, else for the request that ctx serves. The
// function that it returns is called when the space has started, or has not.
func (t *Tracer) start(ctx context.Context, s id.Space, tier string, began time.Time) (started func(ended time.Time, err error)) {
	if t == nil {
		return func(time.Time, error) {}
	}
	t.mu.Lock()
	at, ok := t.waking[s]
	delete(t.waking, s)
	t.mu.Unlock()
	if !ok {
		at, ok = t.asking(ctx)
	}
	if !ok {
		return func(time.Time, error) {}
	}
	t.mu.Lock()
	t.starting[s] = []phase{}
	t.mu.Unlock()
	return func(ended time.Time, err error) {
		t.mu.Lock()
		phases := t.starting[s]
		delete(t.starting, s)
		t.mu.Unlock()
		self := t.fresh(at.parent, began)
		for _, p := range phases {
			t.moment(place{parent: self}, "space start "+p.name, p.began, p.ended, "")
		}
		t.tell(span{
			name: "space start", kind: trace.SpanKindInternal, parent: at.parent, self: self, began: began, ended: ended, failed: fault.CodeOf(err),
			attributes: []attribute.KeyValue{attribute.String("agentbox.space.id", string(s)), attribute.String("agentbox.space.tier", tier)},
		})
	}
}
