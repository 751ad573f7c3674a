package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/projection"
)

// recorded tells what events say of runs that belong to a trace.
func (t *Tracer) recorded(ctx context.Context, events []event.Event) {
	for i := range events {
		e := &events[i]
		if e.Run == "" {
			continue
		}
		switch e.Type {
		case run.EventCreated:
			t.begin(e)
		case run.EventSucceeded, run.EventErred, run.EventUnknown:
			t.operated(ctx, e)
		case policy.ApprovalDecidedType, policy.ApprovalExpiredType, policy.ApprovalWithdrawnType:
			t.answered(ctx, e)
		case run.EventCompleted, run.EventFailed, run.EventCancelled:
			t.ended(ctx, e)
		}
	}
}

// appended tells of a batch that was recorded, below the permit that it is for or the step that it belongs to, and of what its events say.
func (t *Tracer) appended(ctx context.Context, events []event.Event, began, ended time.Time) {
	t.recorded(ctx, events)
	if len(events) == 0 {
		return
	}
	r := t.of(ctx, events[0].Workspace, events[0].Run)
	if r == nil {
		return
	}
	at := r.at(events[0].Run, events[0].Step)
	if above := trace.SpanContextFromContext(ctx); above.IsValid() && above.TraceID() == at.parent.TraceID() {
		at.parent = above
	}
	t.moment(at, "log append", began, ended, "", attribute.Int("agentbox.log.events", len(events)))
}

// begin remembers a run that was made.
func (t *Tracer) begin(e *event.Event) {
	d, err := event.Decode[run.Created](*e)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.early, e.Run)
	if known := t.runs[e.Run]; known != nil { // it was expected
		known.began = e.OccurredAt
		return
	}
	t.runs[e.Run] = &traced{parent: parse(d.Trace), began: e.OccurredAt, agent: d.Agent, space: d.Space, steps: map[id.Step]time.Time{}}
}

// later keeps the message about a run that is about to be made, in case its first operation begins with it.
func (t *Tracer) later(r id.Run, tell func(*traced)) {
	if t == nil || r == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs[r] != nil {
		return // the entry is there, and belongs to no sampled trace
	}
	if len(t.early) >= maxEarly {
		clear(t.early)
	}
	t.early[r] = tell
}

// expect remembers a run that one of the drafts makes, before it is recorded, and reports whether there is one.
func (t *Tracer) expect(r id.Run, drafts []event.Draft) bool {
	if t == nil {
		return false
	}
	for i := range drafts {
		d := &drafts[i]
		if d.Type != run.EventCreated || d.Run != r {
			continue
		}
		made, err := event.Decode[run.Created](event.Event{Header: d.Header, Data: d.Data})
		if err != nil {
			return false
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.runs[r] = &traced{parent: parse(made.Trace), agent: made.Agent, space: made.Space, steps: map[id.Step]time.Time{}}
		return true
	}
	return false
}

// now tells the kept messages about a run.
func (t *Tracer) now(which id.Run, r *traced) {
	t.mu.Lock()
	tell := t.early[which]
	delete(t.early, which)
	t.mu.Unlock()
	if tell != nil {
		tell(r)
	}
}

// unexpect forgets a run that was not made.
func (t *Tracer) unexpect(r id.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.runs, r)
}

// of returns a run that has not ended. It returns nil if the run belongs to no sampled trace. A run of an earlier daemon is read from the
// log's documents.
func (t *Tracer) of(ctx context.Context, ws id.Workspace, r id.Run) *traced {
	if t == nil || r == "" {
		return nil
	}
	t.mu.Lock()
	known := t.runs[r]
	t.mu.Unlock()
	if known == nil {
		doc, _, err := projection.Load[run.Run](ctx, t.docs, ws, run.Projection, string(r))
		if err != nil {
			return nil // it is about to be made
		}
		known = &traced{parent: parse(doc.Trace), began: doc.CreatedAt, agent: doc.Agent, space: doc.Space, steps: map[id.Step]time.Time{}}
		for _, p := range doc.Operations {
			if p.Step != "" && !p.BegunAt.IsZero() {
				known.steps[p.Step] = p.BegunAt
			}
		}
		if !doc.Status.Ended() {
			t.mu.Lock()
			if other := t.runs[r]; other != nil {
				known = other
			} else {
				t.runs[r] = known
			}
			t.mu.Unlock()
		}
	}
	if !known.parent.IsSampled() {
		return nil
	}
	return known
}

// at is where a step of a run, or the run itself, stands in the trace.
func (r *traced) at(which id.Run, step id.Step) place {
	about := string(which)
	if step != "" {
		about = string(step)
	}
	return place{which, step, below(r.parent, run.SpanID(about))}
}

// asked remembers when the gate was first asked about a step.
func (t *Tracer) asked(r *traced, step id.Step, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := r.steps[step]; !known && step != "" {
		r.steps[step] = at
	}
}

// operated tells of an operation that has its result, in the words of the conventions for tools of agents.
func (t *Tracer) operated(ctx context.Context, e *event.Event) {
	r := t.of(ctx, e.Workspace, e.Run)
	if r == nil || e.Step == "" {
		return
	}
	t.mu.Lock()
	began, ok := r.steps[e.Step]
	delete(r.steps, e.Step)
	t.mu.Unlock()
	if !ok || began.After(e.OccurredAt) {
		began = e.OccurredAt
	}
	found := texts(e.Data, "tool_name", "result_type", "reason_code")
	tool, outcome := operation(found[0]), operationOutcome(e.Type, found[1])
	told := span{
		name: "execute_tool " + tool, kind: trace.SpanKindInternal, parent: r.at(e.Run, "").parent, self: r.at(e.Run, e.Step).parent,
		began: began, ended: e.OccurredAt,
		attributes: []attribute.KeyValue{
			attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", tool),
			attribute.String("gen_ai.tool.type", "function"),
			attribute.String("gen_ai.tool.call.id", string(e.Step)), attribute.String("gen_ai.agent.id", string(r.agent)),
			attribute.String("agentbox.run.id", string(e.Run)), attribute.String("agentbox.operation.outcome", outcome),
			attribute.String("agentbox.gate.reason", among(found[2], reasons)),
		},
	}
	if outcome != "succeeded" {
		told.failed = outcome
	}
	t.tell(told)
}

// answered tells how long a run waited for a person.
func (t *Tracer) answered(ctx context.Context, e *event.Event) {
	r := t.of(ctx, e.Workspace, e.Run)
	if r == nil {
		return
	}
	doc, status, ok := settled(ctx, t.docs, e)
	if !ok {
		return
	}
	t.tell(span{
		name: "approval", kind: trace.SpanKindInternal, parent: r.at(e.Run, e.Step).parent, self: below(r.parent, run.SpanID(e.EntityID)),
		began: doc.RequestedAt, ended: e.OccurredAt,
		attributes: []attribute.KeyValue{attribute.String("agentbox.approval.id", e.EntityID), attribute.String("agentbox.approval.status",
			string(status))},
	})
}

// ended tells of a run, and forgets it.
func (t *Tracer) ended(ctx context.Context, e *event.Event) {
	r := t.of(ctx, e.Workspace, e.Run)
	t.mu.Lock()
	if known := t.runs[e.Run]; known != nil {
		for _, permit := range known.permits {
			delete(t.permits, permit)
		}
		if t.waking[known.space].run == e.Run {
			delete(t.waking, known.space)
		}
	}
	delete(t.runs, e.Run)
	t.mu.Unlock()
	if r == nil {
		return
	}
	told := span{
		name: "invoke_agent", kind: trace.SpanKindInternal, parent: r.parent, self: r.at(e.Run, "").parent, began: r.began, ended: e.OccurredAt,
		attributes: []attribute.KeyValue{
			attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.id", string(r.agent)),
			attribute.String("agentbox.run.id", string(e.Run)), attribute.String("agentbox.space.id", string(r.space)),
			attribute.String("agentbox.run.status", runStatus[e.Type]),
		},
	}
	if e.Type != run.EventCompleted {
		told.failed = runStatus[e.Type]
	}
	t.tell(told)
}

// moment tells of something that happened at a place, between two moments, below it.
func (t *Tracer) moment(at place, name string, began, ended time.Time, failed string, attributes ...attribute.KeyValue) {
	t.tell(span{name: name, kind: trace.SpanKindInternal, parent: at.parent, self: t.fresh(at.parent, began), began: began, ended: ended,
		failed: failed, attributes: attributes})
}
