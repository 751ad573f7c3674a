package gc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
)

// DefaultRemember is how many names of content are remembered by default: 64 MiB of memory.
const DefaultRemember = 4 << 20

// name says that an event names content.
type name struct {
	content uint64 // the beginning of its hash; the event is read to know more
	seq     uint64
}

// names are the names of content in the logs of all workspaces, as far as they were read. The first redaction builds them and each one
// extends them, so that a redaction reads only new events. They are in memory only, because an index in the store would cost each append.
type names struct {
	mu   sync.Mutex // guards the fields below
	upTo map[id.Workspace]uint64
	in   map[id.Workspace][]name
	n    int
	over bool // there are more than are remembered: the log is read each time
}

func beginning(d event.Digest) uint64 { return binary.BigEndian.Uint64(d[:8]) }

// namedIn returns the content that an event names, or says to have written.
func namedIn(e event.Event) ([]event.Digest, error) {
	contents, err := run.ContentsOf(e)
	if err != nil {
		return nil, err
	}
	var found []event.Digest
	for _, c := range contents {
		found = append(found, c.Digest)
	}
	if e.Type == run.EventInvoked && !bytes.Contains(e.Data, []byte(policy.FileCreate)) {
		return found, nil
	}
	if d := written(e); !d.IsZero() {
		found = append(found, d)
	}
	return found, nil
}

// named finds the content that events which stay name.
func (s *Service) named(ctx context.Context, b *brought) error {
	workspaces, err := s.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	wanted := map[uint64]bool{}
	for d := range b.content {
		wanted[beginning(d)] = true
	}
	for _, ws := range workspaces {
		if err := s.remember(ctx, ws); err != nil {
			return err
		}
		if s.names.over {
			if err := s.naming(ctx, ws, 1, 0, b.names); err != nil {
				return err
			}
			continue
		}
		for _, n := range s.names.in[ws] {
			if !wanted[n.content] {
				continue
			}
			if err := s.naming(ctx, ws, n.seq, n.seq+1, b.names); err != nil {
				return err
			}
		}
	}
	return nil
}

// naming shows the events between two places, of which the second is the end where it is 0, that may name content.
func (s *Service) naming(ctx context.Context, ws id.Workspace, from, before uint64, see func(event.Event) error) error {
	q := journal.Query{Workspace: ws, From: from, Before: before, Types: append(run.NamingEvents(), run.EventInvoked, space.EventFileBegun),
		Limit: journal.MaxRead}
	for {
		page, err := s.Log.Read(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range page {
			q.From = e.Seq + 1
			if e.Withheld != "" {
				continue
			}
			if err := see(e); err != nil {
				return err
			}
		}
		if len(page) < q.Limit {
			return nil
		}
	}
}

// remember reads the log of a workspace from where it was read before. The lock is held.
func (s *Service) remember(ctx context.Context, ws id.Workspace) error {
	k := &s.names
	if k.over {
		return nil
	}
	if k.in == nil {
		k.upTo, k.in = map[id.Workspace]uint64{}, map[id.Workspace][]name{}
	}
	head, err := s.Log.Head(ctx, ws)
	if err != nil || head == k.upTo[ws] {
		return err
	}
	most := s.Remember
	if most == 0 {
		most = DefaultRemember
	}
	found := k.in[ws]
	err = s.naming(ctx, ws, k.upTo[ws]+1, head+1, func(e event.Event) error {
		named, err := namedIn(e)
		for _, d := range named {
			found = append(found, name{beginning(d), e.Seq})
		}
		if k.n+len(found)-len(k.in[ws]) > most {
			return errTooMany
		}
		return err
	})
	switch {
	case errors.Is(err, errTooMany):
		k.over, k.in = true, nil
		return nil
	case err != nil:
		return err
	}
	k.n += len(found) - len(k.in[ws])
	k.in[ws], k.upTo[ws] = found, head
	return nil
}

// errTooMany ends the reading of names that are too many to be remembered.
var errTooMany = errors.New("more names than are remembered")

// names notes what of the content an event names that stays.
func (b *brought) names(e event.Event) error {
	if b.events[e.ID] {
		return nil
	}
	named, err := namedIn(e)
	for _, d := range named {
		if b.content[d] != "" {
			b.shared[d] = "the event " + string(e.ID) + " names it"
		}
	}
	return err
}
