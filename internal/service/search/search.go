// Package search finds messages: it reads the log into a full-text index and searches that.
package search

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
	"agentbox/internal/kernel/fulltext"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// Limits of an answer.
const (
	MaxResults     = 100
	DefaultResults = 20
	ExcerptChars   = 280
)

// Bounds of one batch for the index.
const (
	window  = 5_000 // places of the log
	atOnce  = 500   // messages of one step into the index
	waiting = 40    // windows for which a search waits before it answers from the present index
)

// Parts are the dependencies of the service.
type Parts struct {
	Log    journal.Journal
	Bodies journal.Redactor // of the same log
	Docs   projection.Reader
	Index  fulltext.Index
}

// Service keeps the index. Its methods are safe for concurrent use.
type Service struct {
	Parts
	busy sync.Mutex // held while the index changes
}

var _ vault.Forgetter = (*Service)(nil)

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{Parts: p} }

// Result is a message that was found.
type Result struct {
	Type       string           `json:"type"` // message
	Message    id.Message       `json:"message_id"`
	Thread     id.Thread        `json:"thread_id"`
	Room       id.Room          `json:"room_id"`
	SenderType id.PrincipalKind `json:"sender_type"`
	Sender     string           `json:"sender_id"`
	CreatedAt  time.Time        `json:"created_at"`
	Excerpt    string           `json:"excerpt"`
}

// Answer is the matches, the newest first, and how much of the log is indexed.
type Answer struct {
	Results []Result
	Indexed uint64 // the place up to which the log was taken in
	Head    uint64 // the place of the last event when the search began; beyond Indexed where the index lags
}

// Query asks for messages.
type Query struct {
	Words  string    // with spaces between
	Room   id.Room   // only texts of this room; "" for everywhere
	Thread id.Thread // only texts of this thread; "" for everywhere
	Limit  int       // 1 to MaxResults; 0 for DefaultResults

	Shows func(room.Message) (bool, error) // whether the caller may see a message; hidden ones count as absent; nil shows all
}

// Search finds messages of a workspace that have every word of a query. It waits until the index has come to where the log was when it was
// asked, unless that is far: then the answer says how far the index has come.
func (l *Service) Search(ctx context.Context, ws id.Workspace, q Query) (Answer, error) {
	words, err := fulltext.Words(q.Words)
	if err != nil {
		return Answer{}, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultResults
	}
	limit = min(max(limit, 1), MaxResults)
	head, err := l.Log.Head(ctx, ws)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Results: []Result{}, Head: head}
	if a.Indexed, err = l.catchUp(ctx, ws, head, waiting); err != nil {
		return Answer{}, err
	}
	for before := uint64(0); ; {
		hits, err := l.Index.Search(ctx, fulltext.Query{Workspace: ws, Room: q.Room, Thread: q.Thread, Words: words, Before: before,
			Limit: limit})
		if err != nil {
			return Answer{}, err
		}
		for _, h := range hits {
			before = h.Place
			m, _, err := projection.Load[room.Message](ctx, l.Docs, ws, room.MessageProjection, h.Key)
			if errors.Is(err, projection.ErrNotFound) || err == nil && !fulltext.Matches(m.Content, words) {
				continue // it was redacted a moment ago
			}
			if err != nil {
				return Answer{}, err
			}
			if q.Shows != nil {
				if may, err := q.Shows(m); err != nil {
					return Answer{}, err
				} else if !may {
					continue
				}
			}
			a.Results = append(a.Results, Result{
				Type: "message", Message: m.ID, Thread: m.Thread, Room: m.Room, SenderType: m.SenderType, Sender: m.Sender, CreatedAt: m.CreatedAt,
				Excerpt: fulltext.Excerpt(m.Content, words, ExcerptChars),
			})
			if len(a.Results) == limit {
				return a, nil
			}
		}
		if len(hits) < limit {
			return a, nil
		}
	}
}

// Step indexes new events of every workspace, so that a search need not wait for it.
func (l *Service) Step(ctx context.Context) error {
	workspaces, err := l.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, ws := range workspaces {
		head, err := l.Log.Head(ctx, ws)
		if err == nil {
			_, err = l.catchUp(ctx, ws, head, waiting)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Through indexes everything that was recorded before the call. Text that was redacted by then is removed.
func (l *Service) Through(ctx context.Context) error {
	workspaces, err := l.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		head, err := l.Log.Head(ctx, ws)
		for place := uint64(0); err == nil && place < head; {
			if err = ctx.Err(); err == nil {
				place, err = l.catchUp(ctx, ws, head, waiting)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// catchUp takes the log in up to a place, at most so many windows of it, and returns how far it has come.
func (l *Service) catchUp(ctx context.Context, ws id.Workspace, head uint64, windows int) (uint64, error) {
	l.busy.Lock()
	defer l.busy.Unlock()
	place, err := l.Index.Place(ctx, ws)
	if err != nil {
		return 0, err
	}
	if now, err := l.Log.Head(ctx, ws); err != nil {
		return 0, err
	} else if place > now { // it is the index of another log
		if err := l.Index.Reset(ctx, ws); err != nil {
			return 0, err
		}
		place = 0
	}
	for range windows {
		if place >= head {
			break
		}
		if place, err = l.index(ctx, ws, place, min(head, place+window)); err != nil {
			return 0, err
		}
	}
	return place, nil
}

// index indexes the events after one place and up to another, or as many as one step holds. It returns how far it has come.
func (l *Service) index(ctx context.Context, ws id.Workspace, from, to uint64) (uint64, error) {
	events, err := l.Log.Read(ctx, journal.Query{
		Workspace: ws, From: from + 1, Before: to + 1, Types: []string{room.EventMessageCreated, event.RedactedType}, Limit: atOnce,
	})
	if err != nil {
		return 0, err
	}
	if len(events) == atOnce {
		to = events[len(events)-1].Seq
	}
	going, err := l.going(ctx, ws)
	if err != nil {
		return 0, err
	}
	var entries []fulltext.Entry
	var gone []uint64
	for _, e := range events {
		if e.Type == event.RedactedType {
			d, err := event.Decode[event.Redacted](e)
			if err != nil {
				return 0, err
			}
			if d.Type == room.EventMessageCreated {
				gone = append(gone, d.Seq)
			}
			continue
		}
		if e.Withheld != "" || going[e.Seq] {
			continue
		}
		d, err := event.Decode[room.MessageCreated](e)
		if err != nil {
			return 0, err
		}
		entries = append(entries, fulltext.Entry{Place: e.Seq, Key: e.EntityID, Room: e.Room, Thread: d.Thread, Text: d.Content})
	}
	if err := l.Index.Take(ctx, ws, to, entries); err != nil {
		return 0, err
	}
	if len(gone) > 0 { // another daemon may have redacted it
		err = l.Index.Forget(ctx, ws, gone...)
	}
	return to, err
}

// going are the places of events whose redaction is recorded while their data are there still.
func (l *Service) going(ctx context.Context, ws id.Workspace) (map[uint64]bool, error) {
	seqs, err := l.Bodies.Unfinished(ctx, ws)
	found := map[uint64]bool{}
	for _, seq := range seqs {
		found[seq] = true
	}
	return found, err
}

// ForgetContent implements vault.Forgetter. The redaction is recorded before the call, so a removed text is not indexed again.
func (l *Service) ForgetContent(ctx context.Context, events []event.Event) (vault.Remains, error) {
	l.busy.Lock()
	defer l.busy.Unlock()
	places := map[id.Workspace][]uint64{}
	for _, e := range events {
		if e.Type == room.EventMessageCreated {
			places[e.Workspace] = append(places[e.Workspace], e.Seq)
		}
	}
	for ws, seqs := range places {
		if err := l.Index.Forget(ctx, ws, seqs...); err != nil {
			return vault.Remains{}, err
		}
	}
	return vault.Remains{}, nil
}
