// Package redaction makes the log forget: it destroys the data of events and the content that they brought, and leaves every proof
// unchanged.
//
// A redaction is recorded first, through the gate, and done then. The next start finishes it after a crash, because the record decides. The
// content that an event names, and the live output of its operation, are destroyed before its data, because the data name them.
package redaction

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/node"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// MaxEvents is how many events one request may redact.
const MaxEvents = 10 * journal.MaxBatch

// The refusals of a redaction.
var (
	ErrTarget = fault.New(fault.Invalid, "redaction_target_required",
		"name the event, or the run whose events are to be redacted; one of the two")
	ErrReason = fault.New(fault.Invalid, "reason_required", "a redaction has a reason, of at most %d bytes of UTF-8: it is what stays",
		policy.MaxReasonBytes)
	ErrNotPossible = fault.New(fault.Invalid, "not_redactable",
		"events of this type say who may do what, or what was redacted; they hold no text of anybody and are never redacted")
	ErrActive = fault.New(fault.Conflict, "redaction_too_early", "the subject of the event is still under way and needs its data").
			With("wait until the run has ended and its questions are answered, or end it: agentbox runs cancel")
	ErrTooMany = fault.New(fault.Exhausted, "redaction_too_large", "the run has more than %d events; redact them one by one, or by retention",
		MaxEvents)
)

// Parts are the dependencies of the service.
type Parts struct {
	Log      journal.Journal
	Bodies   journal.Redactor // of the same log
	Docs     projection.Reader
	Gate     policy.Gate
	Contents []vault.Forgetter // of what lies outside the log
	Clock    event.Clock
	Logger   *slog.Logger
	System   id.Principal // redacts events that are past their time

	Retention Retention
}

// Service destroys data. Its methods are safe for concurrent use.
type Service struct {
	Parts

	busy   sync.Mutex // held while something is redacted: two of the same event would each record it
	sweeps map[sweepRef]*sweep

	stepped time.Time             // when the last step was
	counted map[id.Workspace]bool // of which it is known that no run ended in the future
}

// New returns a service of the given parts.
func New(p Parts) *Service {
	return &Service{Parts: p, sweeps: map[sweepRef]*sweep{}, counted: map[id.Workspace]bool{}}
}

// Request names the events to redact, and the reason.
type Request struct {
	Event  id.Event
	Run    id.Run // every event of it that holds text
	Reason string
}

// Redaction is one redacted event, as the log says it.
type Redaction struct {
	Event     id.Event     // that was redacted
	Type      string       // of it
	Seq       uint64       // its place in the workspace
	By        id.Event     // the event.redacted
	Principal id.Principal // the requester
	Reason    string
	At        time.Time
	Run       id.Run
}

// Receipt is the result of a request.
type Receipt struct {
	Redactions []Redaction
	Remains    vault.Remains
}

// Remains returns what stays of the data of an event when it is redacted, an object; ErrNotPossible for one that is never redacted.
func Remains(e event.Event) (json.RawMessage, error) {
	for _, of := range []func(event.Event) (any, error){
		run.Remains, step.Remains, space.Remains, policy.Remains,
		room.Remains, incident.Remains, label.Remains, blueprint.Remains, model.Remains, mcp.Remains, leak.Remains, node.Remains,
	} {
		left, err := of(e)
		if err != nil {
			return nil, err
		}
		if left != nil {
			return json.Marshal(left)
		}
	}
	return nil, ErrNotPossible
}

// Redact records the redaction of an event, or of every event of a run, and does it. A repeat returns the earlier answer.
func (r *Service) Redact(ctx context.Context, origin event.Origin, ws id.Workspace, q Request) (Receipt, error) {
	if (q.Event == "") == (q.Run == "") {
		return Receipt{}, ErrTarget
	}
	if strings.TrimSpace(q.Reason) == "" || len(q.Reason) > policy.MaxReasonBytes || !utf8.ValidString(q.Reason) {
		return Receipt{}, ErrReason
	}
	r.busy.Lock()
	defer r.busy.Unlock()
	targets, err := r.targets(ctx, ws, q)
	if err != nil {
		return Receipt{}, err
	}
	receipt := Receipt{Redactions: []Redaction{}}
	if len(targets) == 0 { // all of it was redacted before
		receipt.Redactions, err = r.before(ctx, ws, q)
		return receipt, err
	}
	action := policy.Action{Type: policy.AuditRedact, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Target: string(q.Event),
		Run: q.Run}
	for len(targets) > 0 {
		some := targets[:min(len(targets), journal.MaxBatch)]
		targets = targets[len(some):]
		recorded, err := r.record(ctx, origin, action, some, q.Reason)
		if err != nil {
			return receipt, err
		}
		origin.Key = "" // the first batch bears it
		remains, err := r.forget(ctx, ws, some)
		receipt.Redactions = append(receipt.Redactions, recorded...)
		receipt.Remains = together(receipt.Remains, remains)
		if err != nil {
			return receipt, err
		}
	}
	return receipt, nil
}

// Redacted repeats the answer of an earlier request, except for the content.
func (r *Service) Redacted(ctx context.Context, ws id.Workspace, q Request) (Receipt, error) {
	found, err := r.before(ctx, ws, q)
	return Receipt{Redactions: found}, err
}

// targets reads the events that a request means and that hold data still.
func (r *Service) targets(ctx context.Context, ws id.Workspace, q Request) ([]event.Event, error) {
	if q.Event != "" {
		e, err := r.Log.Get(ctx, ws, q.Event)
		if err != nil {
			return nil, err
		}
		if _, err := Remains(e); err != nil && e.Withheld == "" {
			return nil, err
		}
		if err := r.ended(ctx, &e); err != nil {
			return nil, err
		}
		return r.open(ctx, ws, []event.Event{e})
	}
	doc, _, err := r.run(ctx, ws, q.Run)
	if err != nil {
		return nil, err
	}
	if !doc.Status.Ended() {
		return nil, ErrActive
	}
	var found []event.Event
	for from := uint64(1); ; {
		page, err := r.Log.Read(ctx, journal.Query{Workspace: ws, Run: q.Run, From: from, Limit: journal.MaxRead})
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			from = e.Seq + 1
			if _, err := Remains(e); err == nil {
				found = append(found, e)
			}
		}
		if len(found) > MaxEvents {
			return nil, ErrTooMany
		}
		if len(page) < journal.MaxRead {
			return r.open(ctx, ws, found)
		}
	}
}

// open returns those of the events of which no redaction was recorded.
func (r *Service) open(ctx context.Context, ws id.Workspace, events []event.Event) ([]event.Event, error) {
	recorded, err := r.Bodies.Unfinished(ctx, ws)
	if err != nil {
		return nil, err
	}
	known := map[uint64]bool{}
	for _, seq := range recorded {
		known[seq] = true
	}
	var left []event.Event
	unfinished := false
	for _, e := range events {
		unfinished = unfinished || known[e.Seq]
		if e.Withheld == "" && !known[e.Seq] {
			left = append(left, e)
		}
	}
	if unfinished { // an earlier request could not finish; this one does
		return left, r.finish(ctx, ws)
	}
	return left, nil
}

// ended refuses an event of a run, or of a question, that is under way: it would go on without the data that it needs.
func (r *Service) ended(ctx context.Context, e *event.Event) error {
	if e.EntityType == policy.ApprovalEntity {
		doc, _, err := projection.Load[policy.Approval](ctx, r.Docs, e.Workspace, policy.ApprovalProjection, e.EntityID)
		if err != nil && !errors.Is(err, projection.ErrNotFound) {
			return err
		}
		if err == nil && (doc.Open() || doc.Status == policy.Approved && !doc.Used && r.Clock.Now().Before(doc.ExpiresAt)) {
			return ErrActive
		}
	}
	if e.Run == "" {
		return nil
	}
	doc, _, err := projection.Load[run.Run](ctx, r.Docs, e.Workspace, run.Projection, string(e.Run))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return err
	}
	if err == nil && !doc.Status.Ended() {
		return ErrActive
	}
	return nil
}

// record records redactions, with the permission for it.
func (r *Service) record(ctx context.Context, origin event.Origin, action policy.Action, targets []event.Event, reason string) ([]Redaction,
	error) {
	ruling, err := r.through().Allow(ctx, origin, action)
	if err != nil {
		return nil, err
	}
	drafts, err := drafts(origin, targets, func(event.Event) string { return reason })
	if err != nil {
		return nil, err
	}
	_, receipt, err := r.Gate.Begin(ctx, ruling, "", origin.Once(event.Batch{Workspace: action.Workspace, Drafts: drafts}))
	if err != nil {
		return nil, err
	}
	return redactionsIn(receipt.Events)
}

// through takes actions through the gate.
func (r *Service) through() policy.Client { return policy.Client{Gate: r.Gate, Append: r.Log.Append} }

func drafts(origin event.Origin, targets []event.Event, reason func(event.Event) string) ([]event.Draft, error) {
	drafts := make([]event.Draft, len(targets))
	for i, e := range targets {
		left, err := Remains(e)
		if err != nil {
			return nil, err
		}
		drafts[i] = event.RedactionOf(origin, e, reason(e), left)
	}
	return drafts, nil
}

// redactionsIn reads the redactions among events.
func redactionsIn(events []event.Event) ([]Redaction, error) {
	found := []Redaction{}
	for _, e := range events {
		if e.Type != event.RedactedType {
			continue
		}
		d, err := event.Decode[event.Redacted](e)
		if err != nil {
			return nil, err
		}
		found = append(found, Redaction{Event: e.Causation, Type: d.Type, Seq: d.Seq, By: e.ID, Principal: e.Principal, Reason: d.Reason,
			At: e.OccurredAt, Run: e.Run})
	}
	return found, nil
}

// forget does a recorded redaction: content first, then data.
func (r *Service) forget(ctx context.Context, ws id.Workspace, targets []event.Event) (vault.Remains, error) {
	ctx = context.WithoutCancel(ctx) // it is recorded
	var remains vault.Remains
	for _, contents := range r.Contents {
		left, err := contents.ForgetContent(ctx, targets)
		if err != nil {
			return remains, err
		}
		remains = together(remains, left)
	}
	seqs := make([]uint64, len(targets))
	for i, e := range targets {
		seqs[i] = e.Seq
	}
	return remains, r.Bodies.Redact(ctx, ws, seqs)
}

func together(a, b vault.Remains) vault.Remains {
	return vault.Remains{
		Forgotten: a.Forgotten + b.Forgotten, Shared: append(a.Shared, b.Shared...), Live: append(a.Live, b.Live...), Missed: append(a.Missed,
			b.Missed...),
	}
}

// before returns the recorded redactions that a request means.
func (r *Service) before(ctx context.Context, ws id.Workspace, q Request) ([]Redaction, error) {
	query := journal.Query{Workspace: ws, Run: q.Run, Types: []string{event.RedactedType}, From: 1, Limit: journal.MaxRead}
	if q.Event != "" {
		e, err := r.Log.Get(ctx, ws, q.Event)
		if err != nil {
			return nil, err
		}
		query.Run, query.From = e.Run, e.Seq
	}
	all := []Redaction{}
	for {
		page, err := r.Log.Read(ctx, query)
		if err != nil {
			return nil, err
		}
		found, err := redactionsIn(page)
		if err != nil {
			return nil, err
		}
		for i, f := range found {
			query.From = page[i].Seq + 1
			if q.Event == "" || f.Event == q.Event {
				all = append(all, f)
			}
		}
		if len(page) < query.Limit || q.Event != "" && len(all) > 0 {
			return all, nil
		}
	}
}

// List returns redactions of a workspace after a place of the log, in order, at most limit of them, and the place to continue from.
func (r *Service) List(ctx context.Context, ws id.Workspace, after uint64, limit int) ([]Redaction, uint64, error) {
	events, err := r.Log.Read(ctx, journal.Query{Workspace: ws, Types: []string{event.RedactedType}, From: after + 1, Limit: limit})
	if err != nil {
		return nil, 0, err
	}
	if len(events) > 0 {
		after = events[len(events)-1].Seq
	}
	found, err := redactionsIn(events)
	return found, after, err
}

// Recover finishes redactions that are recorded and not done.
func (r *Service) Recover(ctx context.Context) error {
	workspaces, err := r.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	r.busy.Lock()
	defer r.busy.Unlock()
	for _, ws := range workspaces {
		if err := r.finish(ctx, ws); err != nil {
			return err
		}
	}
	return nil
}

func (r *Service) finish(ctx context.Context, ws id.Workspace) error {
	for {
		seqs, err := r.Bodies.Unfinished(ctx, ws)
		if err != nil || len(seqs) == 0 {
			return err
		}
		var targets []event.Event
		for _, seq := range seqs {
			found, err := r.Log.Read(ctx, journal.Query{Workspace: ws, From: seq, Before: seq + 1, Limit: 1})
			if err != nil {
				return err
			}
			targets = append(targets, found...)
		}
		if _, err := r.forget(ctx, ws, targets); err != nil {
			return err
		}
	}
}
