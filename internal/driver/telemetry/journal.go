package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Journal is a journal whose appends are counted.
type Journal struct {
	journal.Journal
	docs    projection.Reader
	clock   event.Clock
	metrics *Metrics
	tracer  *Tracer
	logger  *slog.Logger
}

var (
	_ journal.Journal = (*Journal)(nil)
	_ journal.Hasher  = (*Journal)(nil)
)

// WrapJournal counts the events that are appended to a journal. It tells the tracer and the daemon's log of them, unless they are nil.
// Docs holds the journal's documents.
func WrapJournal(j journal.Journal, docs projection.Reader, clock event.Clock, m *Metrics, t *Tracer, logger *slog.Logger) *Journal {
	return &Journal{j, docs, clock, m, t, logger}
}

// Append implements journal.Journal.
func (j *Journal) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	began := j.clock.Now()
	receipt, err := j.Journal.Append(ctx, b)
	ended := j.clock.Now()
	j.metrics.appending.Observe(ended.Sub(began).Seconds())
	switch {
	case err == nil && receipt.Replayed:
		j.metrics.appends.WithLabelValues("repeated").Inc()
	case err == nil:
		j.metrics.appends.WithLabelValues("recorded").Inc()
		j.metrics.tallies.of(b.Workspace).appends.Add(1)
		j.metrics.recorded(receipt.Events)
		j.settled(ctx, receipt.Events)
		j.tell(ctx, receipt.Events)
		if j.tracer != nil {
			j.tracer.appended(ctx, receipt.Events, began, ended)
		}
	case fault.KindOf(err) == fault.Conflict || fault.KindOf(err) == fault.Invalid:
		j.metrics.appends.WithLabelValues("refused").Inc()
	default:
		j.metrics.appends.WithLabelValues("failed").Inc()
	}
	return receipt, err
}

// Hashes implements journal.Hasher, as well as the journal underneath can.
func (j *Journal) Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) ([]event.Digest, error) {
	return journal.Hashes(ctx, j.Journal, ws, from, limit)
}

// Committed counts a durable commit of the log.
func (m *Metrics) Committed(batches int, took time.Duration) {
	m.grouped.Observe(float64(batches))
	m.committing.Observe(took.Seconds())
}

// approvalStatus maps an event of a question to the question's status.
var approvalStatus = map[string]string{
	policy.ApprovalRequestedType: "requested", policy.ApprovalExpiredType: string(policy.Expired),
	policy.ApprovalWithdrawnType: string(policy.Withdrawn),
}

// runStatus maps an event of a run to the run's status.
var runStatus = map[string]string{
	run.EventCreated: "created", run.EventSuspended: string(run.AwaitingApproval), run.EventCompleted: string(run.Succeeded),
	run.EventFailed: string(run.Failed), run.EventCancelled: string(run.Cancelled),
}

// recorded counts what events tell.
func (m *Metrics) recorded(events []event.Event) {
	m.events.Add(float64(len(events)))
	for i := range events {
		e := &events[i]
		switch e.Type {
		case run.EventSucceeded, run.EventErred, run.EventUnknown:
			found := texts(e.Data, "tool_name", "result_type")
			m.operations.WithLabelValues(operation(found[0]), operationOutcome(e.Type, found[1])).Inc()
		case policy.ApprovalDecidedType:
			m.approvals.WithLabelValues(among(texts(e.Data, "status")[0], answersOf)).Inc()
		default:
			if word := runStatus[e.Type]; word != "" {
				m.runs.WithLabelValues(word).Inc()
			} else if word := approvalStatus[e.Type]; word != "" {
				m.approvals.WithLabelValues(word).Inc()
			}
		}
	}
}

// settled counts how long the questions had waited that events settle for good.
func (j *Journal) settled(ctx context.Context, events []event.Event) {
	for i := range events {
		if doc, status, ok := settled(ctx, j.docs, &events[i]); ok {
			j.metrics.waited.WithLabelValues(string(status)).Observe(max(0, events[i].OccurredAt.Sub(doc.RequestedAt)).Seconds())
		}
	}
}

// settled returns the question that an event settles for good, and what became of it. The event says so: the document may have gone
// further since. A question that somebody only looks into waits on. One whose document cannot be read is not counted, for nobody knows
// when it was asked.
func settled(ctx context.Context, docs projection.Reader, e *event.Event) (policy.Approval, policy.ApprovalStatus, bool) {
	status := policy.ApprovalStatus(approvalStatus[e.Type])
	if e.Type == policy.ApprovalDecidedType {
		status = policy.ApprovalStatus(texts(e.Data, "status")[0])
	}
	switch status {
	case policy.Approved, policy.Denied, policy.Expired, policy.Withdrawn:
		doc, _, err := projection.Load[policy.Approval](context.WithoutCancel(ctx), docs, e.Workspace, policy.ApprovalProjection, e.EntityID)
		return doc, status, err == nil
	}
	return policy.Approval{}, "", false
}

// answersOf are what a person's answer makes of a question.
var answersOf = []string{string(policy.Approved), string(policy.Denied), string(policy.Held)}

// operationOutcome is how an operation ended: its event says whether, and its result says that it was refused.
func operationOutcome(typ, result string) string {
	switch {
	case typ == run.EventUnknown:
		return "unknown"
	case typ == run.EventSucceeded:
		return "succeeded"
	case result == run.ResPolicyDenied:
		return "denied"
	}
	return "failed"
}

// texts reads fields of an event's data that are short words; "" for those that are not there. The data is the program's own: the first
// field of a name is the one that is meant, and no text can hold one, for within a text a quotation mark is escaped.
func texts(data json.RawMessage, names ...string) []string {
	found := make([]string, len(names))
	for i, name := range names {
		at := bytes.Index(data, []byte(`"`+name+`":"`))
		if at < 0 {
			continue
		}
		word, _, _ := bytes.Cut(data[at+len(name)+4:], []byte(`"`))
		found[i] = string(word)
	}
	return found
}
