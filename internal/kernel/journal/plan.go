package journal

import (
	"fmt"
	"io"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Tip is the end of a stream: the place and the hash of its last event. The zero Tip is that of a stream without events.
type Tip struct {
	Seq  uint64
	Hash event.Digest
}

// Use is the use of a batch's idempotency key.
type Use struct {
	Digest event.Digest `json:"sha256"` // of the command
	First  uint64       `json:"first"`  // the place of the batch's first event
	Count  int          `json:"events"`
}

// Ledger is the log as it stands when a batch is planned, with everything that was planned before it. Each driver has one; it is used by
// one goroutine at a time.
type Ledger interface {
	// Head returns the place of the workspace's last event.
	Head(ws id.Workspace) (uint64, error)
	// Tip returns the end of a stream.
	Tip(ws id.Workspace, s event.Stream) (Tip, error)
	// Used returns the use of a batch key, and whether there is one.
	Used(ws id.Workspace, key string) (Use, bool, error)
	// Taken reports whether an event of the workspace bears the idempotency key.
	Taken(ws id.Workspace, key string) (bool, error)
	// Holds reports whether the log holds an event of that id, in any workspace.
	Holds(e id.Event) (bool, error)
	// Folded returns the version of a document, 0 if there is none. An unknown projection is a fault.
	Folded(ws id.Workspace, projection, key string) (uint64, error)
	// Cause returns the cause of the next event about a subject: its latest event; the zero Cause if the log has none.
	Cause(ws id.Workspace, of event.Subject) (event.Cause, error)
}

// Planner turns batches into events. Every journal uses it between its lock and its disk, so that all journals do the same.
type Planner struct {
	clock   event.Clock
	ids     *id.Source
	entropy io.Reader
	salts   []byte // drawn, not yet used
}

// NewPlanner returns a planner. The ids and salts come from the given sources; a Planner is used by one goroutine at a time.
func NewPlanner(clock event.Clock, ids *id.Source, entropy io.Reader) *Planner {
	return &Planner{clock: clock, ids: ids, entropy: entropy}
}

// Plan returns the events that a checked batch becomes, stamped and chained, or the use of its key if the batch is a repetition. It changes
// nothing: the driver records the events and lets its Ledger know. An error says why the batch is refused.
func (p *Planner) Plan(b event.Batch, l Ledger) ([]event.Event, *Use, error) {
	if b.Key != "" {
		use, used, err := l.Used(b.Workspace, b.Key)
		if err != nil {
			return nil, nil, err
		}
		if used && use.Digest != b.Digest {
			return nil, nil, ErrKeyConflict
		}
		if used {
			return nil, &use, nil
		}
	}
	if err := expected(b, l); err != nil {
		return nil, nil, err
	}
	if err := unique(b, l); err != nil {
		return nil, nil, err
	}
	events, err := p.stamp(b, l)
	return events, nil, err
}

// expected holds the batch's expectations against the log.
func expected(b event.Batch, l Ledger) error {
	for _, want := range b.Streams {
		tip, err := l.Tip(b.Workspace, want.Stream)
		if err != nil {
			return err
		}
		if tip.Seq != want.Version {
			return fault.New(fault.Conflict, ErrConflict.Code,
				"stream %s %.64s is at %d, not at %d: it has changed in the meantime; look again, then retry", want.Stream.Type, want.Stream.ID,
				tip.Seq, want.Version)
		}
	}
	for _, want := range b.Documents {
		version, err := l.Folded(b.Workspace, want.Projection, want.Key)
		if err != nil {
			return err
		}
		if version != want.Version {
			return fault.New(fault.Conflict, ErrConflict.Code,
				"%s %.64s is at version %d, not %d: it has changed in the meantime; look again, then retry", want.Projection, want.Key, version,
				want.Version)
		}
	}
	return nil
}

// unique refuses keys and ids that the log has already.
func unique(b event.Batch, l Ledger) error {
	var named map[id.Event]bool
	for i := range b.Drafts {
		d := &b.Drafts[i]
		if d.IdempotencyKey != "" {
			taken, err := l.Taken(b.Workspace, d.IdempotencyKey)
			if err != nil {
				return err
			}
			if taken {
				return ErrKeyConflict
			}
		}
		if d.ID == "" {
			continue
		}
		held, err := l.Holds(d.ID)
		if err != nil {
			return err
		}
		if held || named[d.ID] {
			return fault.New(fault.Conflict, "event_exists", "the log holds an event %s already", d.ID)
		}
		if named == nil {
			named = map[id.Event]bool{}
		}
		named[d.ID] = true
	}
	return nil
}

func (p *Planner) stamp(b event.Batch, l Ledger) ([]event.Event, error) {
	head, err := l.Head(b.Workspace)
	if err != nil {
		return nil, err
	}
	// A batch seldom has more than one or two streams, so that a list is searched faster than a map.
	type end struct {
		stream event.Stream
		tip    Tip
	}
	var ends []end
	now := p.clock.Now().UTC().Truncate(time.Microsecond)
	correlation, lines := id.Correlation(""), lines{drafts: len(b.Drafts)}
	events := make([]event.Event, len(b.Drafts))
	for i := range b.Drafts {
		e := &events[i]
		e.Header, e.Data = b.Drafts[i].Header, b.Drafts[i].Data
		if e.ID == "" {
			e.ID = id.NewEvent(p.ids)
		}
		if err := lines.follow(l, e, b.Drafts[i].Follows, events[:i]); err != nil {
			return nil, err
		}
		if e.Correlation == "" {
			if correlation == "" {
				correlation = id.New[id.Correlation](p.ids)
			}
			e.Correlation = correlation
		}
		lines.add(e)
		e.OccurredAt = e.OccurredAt.UTC().Truncate(time.Microsecond)
		if b.Drafts[i].OccurredAt.IsZero() {
			e.OccurredAt = now
		}
		at := 0
		for at < len(ends) && ends[at].stream != e.Stream {
			at++
		}
		if at == len(ends) {
			tip, err := l.Tip(b.Workspace, e.Stream)
			if err != nil {
				return nil, err
			}
			ends = append(ends, end{e.Stream, tip})
		}
		salt, err := p.salt()
		if err != nil {
			return nil, err
		}
		e.RecordedAt, e.Seq, e.StreamSeq = now, head+uint64(i)+1, ends[at].tip.Seq+1
		Seal(e, salt, ends[at].tip.Hash)
		ends[at].tip = Tip{Seq: e.StreamSeq, Hash: e.Chain.Hash}
	}
	return events, nil
}

// salt draws a salt; it reads for many at a time, for a read of the system's randomness costs as much as a hash.
func (p *Planner) salt() ([]byte, error) {
	if len(p.salts) < SaltBytes {
		p.salts = make([]byte, 256*SaltBytes)
		if _, err := io.ReadFull(p.entropy, p.salts); err != nil {
			p.salts = nil
			return nil, fmt.Errorf("draw a salt: %w", err)
		}
	}
	salt := p.salts[:SaltBytes:SaltBytes]
	p.salts = p.salts[SaltBytes:]
	return salt, nil
}
