package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Limits of a ledger's memory between groups. Beyond these it drops data that it can read again.
const (
	keptStreams   = 4_096
	keptDocuments = 2_048
	keptBytes     = 16 << 20 // of documents, as JSON
)

// standing is the end of a workspace's log, as its row has it.
type standing struct {
	no    int64 // 0 for a workspace that nobody has heard of
	head  uint64
	epoch int64
}

// folding is how the database keeps documents: the number of each projection, for as long as log.folds stays.
type folding struct {
	folds int64
	nos   map[string]int64
}

// ledger is the log of one workspace in the memory of its lane: the log at the head that the lane believes in, and everything planned
// since. A later read may return newer data; then the head has moved, and the transaction fails.
type ledger struct {
	j   *Journal
	ws  id.Workspace
	db  *pgx.Conn
	ctx context.Context
	set *projection.Set

	known bool // the fields below agree with the database
	standing
	was     standing // when the group was begun
	last    event.Digest
	folding *folding
	streams map[event.Stream]*line
	folios  map[docRef]*folio
	kept    int // bytes of folios

	// Of the present group.
	presumes   bool                    // skip the check of new keys: the database finds a duplicate when it is written
	uses       map[string]*journal.Use // of batch keys; nil for one that is not used
	taken      map[string]bool         // event keys
	ids        map[id.Event]bool
	presumed   []*folio // the documents that are
	unfolded   []unfolded
	stale      map[docRef]bool        // the documents of unfolded events
	causes     map[docRef]event.Cause // what of that causes the next event about a document
	dirty      []*folio
	lines      []*line // that it extends
	unnumbered int     // documents and streams that have no number yet

	broken error // the database could not be read; nothing planned since may be recorded
}

type docRef struct{ name, key string }

type line struct {
	no     int64 // 0 where it has no row
	stream event.Stream
	tip    journal.Tip
	dirty  bool
}

type folio struct {
	ref     projection.Ref
	leaf    int64 // 0 where it has no row
	state   projection.State
	indexes []projection.Index // of the row
	fresh   bool               // it is presumed to have no row
	dirty   bool
	body    []byte
	next    []projection.Index
}

var _ journal.Ledger = (*ledger)(nil)

// forget drops everything except the workspace's identity.
func (l *ledger) forget() {
	l.streams, l.folios, l.kept = map[event.Stream]*line{}, map[docRef]*folio{}, 0
}

// look reads the head of the workspace, and locks its row if requested. If the head is unchanged, the memory is current.
func (l *ledger) look(ctx context.Context, db *pgx.Conn, hold bool) error {
	l.ctx, l.db, l.broken = ctx, db, nil
	if folding := l.j.folds.folding.Load(); l.folding != folding {
		l.folding, l.known = folding, false
	}
	if l.known && !hold {
		return nil
	}
	l.forget()
	s, err := l.j.events.readStanding(ctx, db, l.ws, hold)
	if err == nil && s.no == 0 {
		if _, err = db.Exec(ctx, `INSERT INTO workspaces (name) VALUES ($1) ON CONFLICT DO NOTHING`, string(l.ws)); err == nil {
			s, err = l.j.events.readStanding(ctx, db, l.ws, hold)
		}
	}
	l.standing, l.known = s, err == nil
	return err
}

// still returns errMoved if the workspace has moved on.
func (l *ledger) still(ctx context.Context, db *pgx.Conn) error {
	s, err := l.j.events.readStanding(ctx, db, l.ws, false)
	if err == nil && s != l.standing {
		err = errMoved
	}
	return err
}

// begin starts a group. It reads all data of its requests at once. If it presumes, it treats unknown keys as new.
func (l *ledger) begin(ctx context.Context, requests []*request, presumes bool) error {
	l.was, l.presumes = l.standing, presumes
	l.uses, l.taken, l.ids = map[string]*journal.Use{}, map[string]bool{}, map[id.Event]bool{}
	l.presumed, l.unfolded, l.stale, l.causes = nil, nil, map[docRef]bool{}, map[docRef]event.Cause{}
	l.dirty, l.lines, l.unnumbered = nil, nil, 0
	if len(l.streams) > keptStreams || len(l.folios) > keptDocuments || l.kept > keptBytes {
		l.forget()
	}
	return l.prefetch(ctx, requests)
}

// fail notes that the database could not be read.
func (l *ledger) fail(err error) error {
	if err != nil {
		l.broken = err
	}
	return err
}

// Head implements journal.Ledger.
func (l *ledger) Head(id.Workspace) (uint64, error) { return l.head, nil }

// Tip implements journal.Ledger.
func (l *ledger) Tip(_ id.Workspace, s event.Stream) (journal.Tip, error) {
	at, err := l.line(s)
	if err != nil {
		return journal.Tip{}, err
	}
	return at.tip, nil
}

func (l *ledger) line(s event.Stream) (*line, error) {
	if l.streams[s] == nil {
		if err := l.fail(l.readStreams(l.ctx, []event.Stream{s})); err != nil {
			return nil, err
		}
	}
	return l.streams[s], nil
}

// Used implements journal.Ledger.
func (l *ledger) Used(_ id.Workspace, key string) (journal.Use, bool, error) {
	use, asked := l.uses[key]
	if !asked {
		return journal.Use{}, false, l.fail(errors.New("a batch key that nobody has looked up"))
	}
	if use == nil {
		return journal.Use{}, false, nil
	}
	return *use, true, nil
}

// Taken implements journal.Ledger.
func (l *ledger) Taken(_ id.Workspace, key string) (bool, error) { return l.taken[key], nil }

// Holds implements journal.Ledger.
func (l *ledger) Holds(e id.Event) (bool, error) { return l.ids[e], nil }

// Folded implements journal.Ledger.
func (l *ledger) Folded(ws id.Workspace, name, key string) (uint64, error) {
	if l.stale[docRef{name, key}] {
		if err := l.catchUp(); err != nil {
			return 0, l.fail(err)
		}
	}
	f, err := l.folio(projection.Ref{Workspace: ws, Name: name, Key: key})
	if err != nil {
		return 0, err
	}
	return f.state.Version, nil
}

// Cause implements journal.Ledger.
func (l *ledger) Cause(ws id.Workspace, of event.Subject) (event.Cause, error) {
	ref, ok := l.set.LeadingRef(ws, of)
	if !ok {
		return event.Cause{}, nil
	}
	if cause, ok := l.causes[docRef{ref.Name, ref.Key}]; ok {
		return cause, nil
	}
	f, err := l.folio(ref)
	if err != nil {
		return event.Cause{}, err
	}
	return f.state.Cause(), nil
}

// folio returns a document, empty where there is none.
func (l *ledger) folio(ref projection.Ref) (*folio, error) {
	if known := l.folios[docRef{ref.Name, ref.Key}]; known != nil {
		return known, nil
	}
	if _, err := l.set.Lookup(ref.Name); err != nil {
		return nil, err
	}
	if err := l.fail(l.readFolios(l.ctx, []projection.Ref{ref})); err != nil {
		return nil, err
	}
	return l.folios[docRef{ref.Name, ref.Key}], nil
}

// apply adds a planned batch to the ledger.
func (l *ledger) apply(b event.Batch, events []event.Event) error {
	for i := range events {
		e := &events[i]
		at, err := l.line(e.Stream)
		if err != nil {
			return err
		}
		at.tip = journal.Tip{Seq: e.StreamSeq, Hash: e.Chain.Hash}
		if !at.dirty {
			at.dirty = true
			l.lines = append(l.lines, at)
			if at.no == 0 {
				l.unnumbered++
			}
		}
		if e.IdempotencyKey != "" {
			l.taken[e.IdempotencyKey] = true
		}
		if len(b.Drafts) > 0 && b.Drafts[i].ID != "" {
			l.ids[e.ID] = true
		}
	}
	last := &events[len(events)-1]
	if b.Key != "" {
		l.uses[b.Key] = &journal.Use{Digest: b.Digest, First: events[0].Seq, Count: len(events)}
	}
	l.head, l.last = last.Seq, last.Chain.Hash
	return nil
}

// unfolded is an event that is not in its documents yet.
type unfolded struct {
	event *event.Event
	refs  []projection.Ref
}

// fold notes the events of a batch. They are folded when somebody needs one of their documents, or at the end of the group. By then all
// needed documents are known, and one round trip reads them.
func (l *ledger) fold(events []event.Event) error {
	for i := range events {
		refs, err := l.set.Touched(events[i])
		if err != nil {
			return &spoiltError{err}
		}
		l.unfolded = append(l.unfolded, unfolded{&events[i], refs})
		for _, ref := range refs {
			l.stale[docRef{ref.Name, ref.Key}] = true
			if def, err := l.set.Lookup(ref.Name); err == nil && def.Moves(events[i]) {
				l.causes[docRef{ref.Name, ref.Key}] = events[i].Cause()
			}
		}
	}
	return nil
}

// catchUp folds the noted events.
func (l *ledger) catchUp() error {
	left := l.unfolded
	if len(left) == 0 {
		return nil
	}
	l.unfolded = nil
	clear(l.stale)
	clear(l.causes)
	missing := wants{l: l}
	for _, u := range left {
		for _, ref := range u.refs {
			if err := missing.unmade(ref); err != nil {
				return &spoiltError{err}
			}
		}
	}
	if len(missing.refs) > 0 {
		if err := l.fail(l.readFolios(l.ctx, missing.refs)); err != nil {
			return err
		}
	}
	load := func(ref projection.Ref) (projection.State, error) {
		return l.folios[docRef{ref.Name, ref.Key}].state, nil
	}
	for _, u := range left {
		if err := projection.FoldInto(u.refs, *u.event, load, l.save); err != nil {
			return &spoiltError{err}
		}
	}
	return nil
}

// save takes the state of a document after an event.
func (l *ledger) save(ref projection.Ref, s projection.State) {
	f := l.folios[docRef{ref.Name, ref.Key}]
	f.state = s
	if !f.dirty {
		f.dirty = true
		l.dirty = append(l.dirty, f)
		if f.leaf == 0 {
			l.unnumbered++
		}
	}
}

// finish encodes each document that a group has changed once, and numbers new documents and streams.
func (l *ledger) finish(g *group) error {
	if err := l.catchUp(); err != nil {
		return err
	}
	for _, f := range l.presumed {
		if !f.dirty {
			return errMoved // it is not written, so that nobody would find out whether it is new
		}
	}
	for _, f := range l.dirty {
		var err error
		was := len(f.body)
		if f.body, f.next, err = f.state.Encode(); err != nil {
			return &spoiltError{err}
		}
		l.kept += len(f.body) - was
	}
	g.docs = l.dirty
	if l.unnumbered == 0 {
		return nil
	}
	numbers, err := l.j.events.nos.next(l.ctx, l.db, l.unnumbered)
	if err != nil {
		return err
	}
	for _, at := range l.lines {
		if at.no == 0 {
			at.no, numbers = numbers[0], numbers[1:]
		}
	}
	for _, f := range l.dirty {
		if f.leaf == 0 {
			f.leaf, numbers = numbers[0], numbers[1:]
		}
	}
	return nil
}

// settled is called when the group is in the database.
func (l *ledger) settled() {
	for _, at := range l.lines {
		at.dirty = false
	}
	for _, f := range l.dirty {
		f.dirty, f.fresh, f.indexes = false, false, f.next
	}
}

// maxSeq is the largest number of events of a workspace. It is the same in SQLite, so that every log can be moved.
const maxSeq = 1<<40 - 1

func (l *ledger) fits() error {
	if l.head > maxSeq {
		return fault.New(fault.Exhausted, "log_full", "a workspace holds at most %d events", uint64(maxSeq))
	}
	return nil
}

// without returns the entries of a that are not in b.
func without(a, b []projection.Index) (rest []projection.Index) {
	for _, index := range a {
		if !slices.Contains(b, index) {
			rest = append(rest, index)
		}
	}
	return rest
}
