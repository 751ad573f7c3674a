package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/evidence"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Evidence makes the record of the work of a run that has ended.
type Evidence struct {
	service  *Service
	settling *settling
}

// Of returns the evidence of a run that was collected, and its manifest as it is stored.
func (ev *Evidence) Of(ctx context.Context, ws id.Workspace, r id.Run) (evidence.Record, json.RawMessage, error) {
	if _, err := ev.service.Find(ctx, ws, r); err != nil {
		return evidence.Record{}, nil, err
	}
	if err := ev.settling.wait(ctx, r); err != nil {
		return evidence.Record{}, nil, err
	}
	doc, _, err := found[evidence.Record](ctx, ev.service.Docs, ws, evidence.Projection, string(r), evidence.ErrNotFound)
	if err != nil {
		return doc, nil, err
	}
	stored, err := ev.service.Blobs.Open(ctx, doc.Content.Digest)
	if err != nil {
		return doc, nil, err
	}
	defer stored.Close()
	raw, err := io.ReadAll(io.LimitReader(stored, doc.Content.Size))
	if err != nil {
		return doc, nil, fault.Wrap(err, fault.Unavailable, "content_unreadable", "the manifest cannot be read")
	}
	return doc, raw, nil
}

// Finalize collects the evidence of a run that has ended, with or without an engine. It does not collect it twice; then created is false.
func (ev *Evidence) Finalize(ctx context.Context, origin event.Origin, ws id.Workspace, r id.Run) (created bool, err error) {
	if err := ev.settling.wait(ctx, r); err != nil {
		return false, err
	}
	return ev.finalize(ctx, origin, ws, r, func(ctx context.Context, a policy.Action, b event.Batch) error {
		_, err := ev.service.Gate.Record(ctx, origin, a, b)
		return err
	})
}

// finalize is Finalize with a function that records the evidence.
func (ev *Evidence) finalize(ctx context.Context, origin event.Origin, ws id.Workspace, r id.Run, record func(context.Context,
	policy.Action,
	event.Batch) error) (created bool, err error) {
	doc, err := ev.service.Find(ctx, ws, r)
	if err != nil {
		return false, err
	}
	if !doc.Status.Ended() {
		return false, evidence.ErrNotEnded
	}
	if _, _, err := found[evidence.Record](ctx, ev.service.Docs, ws, evidence.Projection, string(r), evidence.ErrNotFound); !errors.Is(err,
		evidence.ErrNotFound) {
		return false, err
	}
	m, err := ev.collect(ctx, doc)
	if err != nil {
		return false, err
	}
	canonical, err := m.Canonical()
	if err != nil {
		return false, err
	}
	action := policy.Action{
		Type: policy.EvidenceCollect, Workspace: ws, Room: doc.Room, Principal: origin.Principal, Token: origin.Token, Run: r,
		Content: event.DigestOf(canonical), Size: int64(len(canonical)),
	}
	room, err := ev.service.contentRoom(ctx, ws, int64(len(canonical)))
	if err != nil {
		return false, err
	}
	defer ev.service.Blobs.Hold()()
	stored, err := ev.service.Blobs.Put(ctx, bytes.NewReader(canonical), int64(len(canonical)))
	if err != nil {
		return false, err
	}
	data := evidence.Created{
		ID: id.New[id.Evidence](ev.service.IDs), Run: r, Hash: event.DigestOf(canonical), Root: m.Root, Window: m.Window,
		Completeness: m.Completeness,
		Content:      evidence.Content{Digest: stored.Digest, Size: stored.Size},
	}
	for try := 1; ; try++ {
		err = record(ctx, action, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{draft(evidence.EventCreated, origin, doc, data).About(evidence.EntityType, string(r))},
			Documents: append(room, event.DocumentVersion{Projection: evidence.Projection, Key: string(r)}),
		}))
		if !errors.Is(err, journal.ErrConflict) {
			return err == nil, err
		}
		if _, _, look := found[evidence.Record](ctx, ev.service.Docs, ws, evidence.Projection, string(r), evidence.ErrNotFound); !errors.Is(look,
			evidence.ErrNotFound) {
			return false, look // somebody else has, and it is the same
		}
		if try == tries {
			return false, err
		}
		if room, err = ev.service.contentRoom(ctx, ws, int64(len(canonical))); err != nil {
			return false, err
		}
	}
}

// collect makes the manifest of a run that has ended. However many events it has, so many are read that a manifest points to, and a page.
func (ev *Evidence) collect(ctx context.Context, doc run.Run) (evidence.Manifest, error) {
	var events []event.Event
	q := journal.Query{Workspace: doc.Workspace, Run: doc.ID, From: 1, Limit: journal.MaxRead}
	for {
		page, err := ev.service.Log.Read(ctx, q)
		if err != nil {
			return evidence.Manifest{}, err
		}
		events = append(events, page...)
		n, ended := evidence.Ended(events)
		if !ended && len(events) > evidence.MaxEvents || n > evidence.MaxEvents {
			return ev.abridge(ctx, doc, events[:evidence.MaxEvents-evidence.LastEvents])
		}
		if ended || len(page) < q.Limit {
			break
		}
		q.From = page[len(page)-1].Seq + 1
	}
	return evidence.Collect(doc.Workspace, doc.ID, doc.Room, events, nil)
}

// abridge makes the manifest of a run that has more events than one points to from the first ones and from those before its end.
func (ev *Evidence) abridge(ctx context.Context, doc run.Run, first []event.Event) (evidence.Manifest, error) {
	q := journal.Query{Workspace: doc.Workspace, Run: doc.ID, From: 1, Types: evidence.Ends(), Limit: 1}
	end, err := ev.service.Log.Read(ctx, q)
	if err != nil {
		return evidence.Manifest{}, err
	}
	if len(end) == 0 {
		return evidence.Manifest{}, evidence.ErrNoEvents
	}
	left := first[len(first)-1].Seq + 1
	last, err := ev.service.Log.Read(ctx, journal.Query{Workspace: doc.Workspace, Run: doc.ID, From: left, Before: end[0].Seq + 1, Last: true,
		Limit: evidence.LastEvents})
	if err != nil {
		return evidence.Manifest{}, err
	}
	return evidence.Collect(doc.Workspace, doc.ID, doc.Room, append(first, last...), &evidence.Gap{From: left, To: last[0].Seq - 1})
}

// settle collects the evidence of a run in the background, after an engine or a person has ended it. Callers that ask for the evidence
// meanwhile wait. The end was judged already, and the evidence is not judged again, because the principal may no longer exist. If it cannot
// be collected now, the next request collects it. If other daemons can be asked for it, settle finishes before the caller gets an answer.
func (ev *Evidence) settle(ctx context.Context, origin event.Origin, doc run.Run) {
	origin.Key = "" // that of the end
	ev.settling.begin(doc.ID, ev.service.Together, func() {
		ctx := context.WithoutCancel(ctx)
		_, err := ev.finalize(ctx, origin, doc.Workspace, doc.ID, func(ctx context.Context, _ policy.Action, b event.Batch) error {
			_, err := ev.service.Log.Append(ctx, b)
			return err
		})
		if err != nil {
			ev.service.Logger.Warn("collect the evidence of a run", "code", "evidence_not_collected", "run", doc.ID, "error", err)
		}
	})
}

// Wait returns when the evidence of every run that has ended is collected. It is called before the log is closed.
func (ev *Evidence) Wait() { ev.settling.working.Wait() }

// settlers is how many runs are settled in the background at the same time. mostSettling is how many runs are being settled or wait for it.
// Beyond that, the goroutine that ends a run settles the run itself.
const (
	settlers     = 4
	mostSettling = 256
)

// settling are the runs whose evidence is being collected. Make it with newSettling.
type settling struct {
	queue   chan struct{} // holds a token for each collection that waits or runs
	slots   chan struct{} // holds a token for each collection that runs
	working sync.WaitGroup

	mu   sync.Mutex // guards done
	done map[id.Run]chan struct{}
}

func newSettling() *settling {
	return &settling{queue: make(chan struct{}, mostSettling), slots: make(chan struct{}, settlers), done: map[id.Run]chan struct{}{}}
}

func (s *settling) begin(r id.Run, atOnce bool, do func()) {
	done := make(chan struct{})
	s.mu.Lock()
	s.done[r] = done // a run ends once
	s.mu.Unlock()
	settle := func() {
		defer func() {
			s.mu.Lock()
			delete(s.done, r)
			s.mu.Unlock()
			close(done)
		}()
		do()
	}
	if atOnce {
		settle()
		return
	}
	select {
	case s.queue <- struct{}{}:
		s.working.Go(func() {
			s.slots <- struct{}{}
			settle()
			<-s.slots
			<-s.queue
		})
	default:
		settle()
	}
}

// wait returns when the evidence of a run is not being collected any more.
func (s *settling) wait(ctx context.Context, r id.Run) error {
	s.mu.Lock()
	done := s.done[r]
	s.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func evidenceDefinition() projection.Definition {
	return projection.Define(evidence.Projection, 2, about(evidence.EntityType), func(r evidence.Record, _ string,
		e event.Event) (evidence.Record, error) {
		return r.Evolve(e)
	}, nil).
		Leads(evidence.EntityType, nil)
}
