package query

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// The limits of the cached last events of a workspace that somebody follows. A follower that is further behind reads the log directly.
const (
	keptEvents = 256
	keptBytes  = 4 << 20 // of their data, which is held a second time as JSON
)

// Item is an event that is followed. It is shared by all who follow it and may not be changed.
type Item struct {
	event.Event
	encode func() ([]byte, error)
}

func newItem(e event.Event) *Item {
	return &Item{e, sync.OnceValues(func() ([]byte, error) { return json.Marshal(event.Show(e)) })}
}

// JSON returns the event as it is shown, as JSON. It is made once, however many ask; the caller may not change it.
func (i *Item) JSON() ([]byte, error) { return i.encode() }

// Follow yields the events that a query selects, both recorded and new ones, each once and in order, until ctx ends. New events are read
// from the log once for all followers of the workspace, whatever their queries select.
func (r *Service) Follow(ctx context.Context, ws id.Workspace, q Query) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		jq, err := q.read(ws)
		if err == nil && q.Last {
			err = fault.New(fault.Invalid, "query_invalid", "a stream begins at a place; it cannot begin with the last events")
		}
		if err == nil {
			jq, err = jq.Check()
		}
		if err == nil {
			p, leave := r.join(ws)
			defer leave()
			f := follower{log: r.log, present: p, query: jq, yield: func(i *Item) bool { return yield(i, nil) }}
			f.query.From = max(f.query.From, 1)
			err = f.run(ctx)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// follower is one reader of Follow.
type follower struct {
	log     journal.Journal
	present *present
	query   journal.Query // its From moves on behind the yielded events
	yield   func(*Item) bool
	seen    uint64 // place of the workspace up to which the query was answered
	ended   bool   // nothing more is wanted
}

func (f *follower) run(ctx context.Context) error {
	for {
		if err := f.catchUp(ctx); err != nil || f.ended {
			return err
		}
		for near := true; near; {
			if f.query.Before != 0 && f.query.From >= f.query.Before {
				return nil
			}
			if err := f.log.Wait(ctx, f.query.Workspace, f.seen); err != nil {
				return err
			}
			var items []*Item
			var err error
			if items, near, err = f.present.after(ctx, f.seen); err != nil {
				return err
			}
			for _, item := range items {
				if f.seen = item.Seq; f.query.Selects(&item.Event) {
					if f.add(item); f.ended {
						return nil
					}
				}
			}
			f.pass()
		}
	}
}

// catchUp reads recorded events from the log.
func (f *follower) catchUp(ctx context.Context) error {
	for {
		// Ask for the head first: an event that is recorded while we read lies beyond it. The present yields it again, and the follower skips it.
		head, err := f.log.Head(ctx, f.query.Workspace)
		if err != nil {
			return err
		}
		events, err := f.log.Read(ctx, f.query)
		if err != nil {
			return err
		}
		for _, e := range events {
			if f.add(newItem(e)); f.ended {
				return nil
			}
		}
		if len(events) < f.query.Limit {
			f.seen = head
			f.pass()
			return nil
		}
	}
}

func (f *follower) add(item *Item) {
	f.query.From = f.query.Place(&item.Event) + 1
	f.ended = !f.yield(item)
}

// pass moves From past events that were seen and not selected. For a stream, nobody knows how far it has come.
func (f *follower) pass() {
	if f.query.Stream == (event.Stream{}) {
		f.query.From = max(f.query.From, f.seen+1)
	}
}

// present is the last events of a followed workspace. The first follower that sees the log grow reads the new events.
type present struct {
	log       journal.Journal
	workspace id.Workspace
	followers int // the Service's, under its lock

	mu    sync.Mutex // guards all below
	items []*Item    // one place after the other
	bytes int        // of their data
	last  uint64     // place of the newest that was read, also if it is not kept
}

// join returns the present of a workspace, which is kept until the last follower leaves.
func (r *Service) join(ws id.Workspace) (p *present, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p = r.presents[ws]
	if p == nil {
		p = &present{log: r.log, workspace: ws}
		r.presents[ws] = p
	}
	p.followers++
	return p, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if p.followers--; p.followers == 0 {
			delete(r.presents, ws)
		}
	}
}

// after returns the events behind a place that the log has passed; near is false where they are not kept any more.
func (p *present) after(ctx context.Context, seen uint64) (items []*Item, near bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last < seen {
		p.items, p.bytes, p.last = nil, 0, seen // nobody was here for a while
	}
	if p.last == seen {
		return p.read(ctx)
	}
	first := p.last + 1 - uint64(len(p.items))
	if seen+1 < first {
		return nil, false, nil
	}
	return p.items[seen+1-first:], true, nil
}

// read returns the new events, and keeps them.
func (p *present) read(ctx context.Context) ([]*Item, bool, error) {
	events, err := p.log.Read(ctx, journal.Query{Workspace: p.workspace, From: p.last + 1, Limit: keptEvents})
	if err != nil {
		return nil, true, err
	}
	from := len(p.items)
	for _, e := range events {
		p.items = append(p.items, newItem(e))
		p.bytes += len(e.Data)
		p.last = e.Seq
	}
	fresh := p.items[from:]
	drop := 0
	for drop < len(p.items) && (len(p.items)-drop > keptEvents || p.bytes > keptBytes) {
		p.bytes -= len(p.items[drop].Data)
		drop++
	}
	if drop > 0 {
		p.items = slices.Clone(p.items[drop:]) // those who got the older ones go on with them
	}
	return fresh, true, nil
}
