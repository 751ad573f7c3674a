// Package projection is the contract of documents that are folded from events.
//
// A document is a JSON object with a key, an owner (its workspace) and a version, the number of events that were folded into it.
// Documents change with the events that change them, for every reader at once, and can be dropped and rebuilt from the log at any time,
// byte for byte.
package projection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// ErrNotFound means that the workspace has no such document.
var ErrNotFound = fault.New(fault.NotFound, "not_found", "there is no such thing in this workspace")

// Index is one entry under which a document can be found: a name that its Definition declares, and a value.
type Index struct{ Name, Value string }

// Definition says how one kind of document is folded. Make it with Define.
type Definition struct {
	Name    string // snake_case, plural: runs
	Version int    // a new version is rebuilt from the log when the store is opened
	Once    bool   // a key names the one event that makes the document, so that a store need not look whether there is one already

	entity string // of the subjects that its documents are of, "" for a definition that names no causes
	moves  func(event.Event) bool

	keys    func(event.Event) []string
	empty   func() any
	decode  func([]byte) (any, error)
	fold    func(doc any, key string, e event.Event) (any, error)
	indexes func(any) []Index
}

// Define makes a definition for documents of type T. Keys returns the keys of the documents that an event changes, usually none or one.
// Fold returns the document after the event; it must be pure. Indexes, which may be nil, returns the entries under which it can be found.
func Define[T any](name string, version int, keys func(event.Event) []string, fold func(doc T, key string, e event.Event) (T, error),
	indexes func(T) []Index) Definition {
	return Definition{
		Name: name, Version: version, keys: keys,
		empty: func() any { var zero T; return zero },
		decode: func(body []byte) (any, error) {
			var doc T
			err := json.Unmarshal(body, &doc)
			return doc, err
		},
		fold: func(doc any, key string, e event.Event) (any, error) {
			return fold(doc.(T), key, e)
		},
		indexes: func(doc any) []Index {
			if indexes == nil {
				return nil
			}
			return indexes(doc.(T))
		},
	}
}

// Leads marks the definition as the one that knows the causes of events about an entity. The keys of its documents are the ids of the
// entities. Each document remembers its latest event, so that the next event about the entity names it as its cause. An event for which
// quiet returns true is not remembered; quiet may be nil. A definition that begins to lead needs a higher version.
func (d Definition) Leads(entity string, quiet func(event.Event) bool) Definition {
	d.entity = entity
	d.moves = func(e event.Event) bool { return quiet == nil || !quiet(e) }
	return d
}

// Moves reports whether the event is the one that later events about its document name as their cause.
func (d Definition) Moves(e event.Event) bool { return d.moves != nil && d.moves(e) }

// Keys returns the keys of the documents that the event changes.
func (d Definition) Keys(e event.Event) []string { return d.keys(e) }

// State is a document in memory while events are folded into it.
type State struct {
	def     Definition
	key     string
	doc     any
	Version uint64 // events folded so far
	Seq     uint64 // place of the last of them

	cause    event.Cause // of the next event about it, where its definition leads
	withheld bool        // one of them had no data any more
}

// Restore reads a stored document; a nil body is the empty document.
func (d Definition) Restore(key string, body []byte, version, seq uint64) (State, error) {
	s := State{def: d, key: key, Version: version, Seq: seq}
	if body == nil {
		s.doc = d.empty()
		return s, nil
	}
	doc, err := d.decode(body)
	if err != nil {
		return State{}, fmt.Errorf("read document %s %s: %w", d.Name, key, err)
	}
	s.doc = doc
	s.cause, err = d.causeIn(body)
	return s, err
}

// Cause returns the cause of the next event about the document; the zero Cause if its definition does not lead.
func (s State) Cause() event.Cause { return s.cause }

// Fold returns the state after the event. If the data of an event were destroyed, its remains may not be enough for this event or for
// later ones. Then these leave the document unchanged, because a failing fold must not undo a redaction.
func (s State) Fold(e event.Event) (State, error) {
	s.withheld = s.withheld || e.Withheld != ""
	doc, err := s.def.fold(s.doc, s.key, e)
	if err != nil && s.withheld {
		doc, err = s.doc, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("fold %s into %s %s: %w", e.Type, s.def.Name, s.key, err)
	}
	s.doc, s.Version, s.Seq = doc, s.Version+1, e.Seq
	if s.def.Moves(e) {
		s.cause = e.Cause()
	}
	return s, nil
}

// Encode returns the document's bytes and the entries under which it is found, in order and each once.
func (s State) Encode() ([]byte, []Index, error) {
	body, err := json.Marshal(s.doc)
	if err != nil {
		return nil, nil, fmt.Errorf("write document %s %s: %w", s.def.Name, s.key, err)
	}
	body = s.withCause(body)
	if len(body) > MaxBodyBytes {
		return nil, nil, fault.New(fault.Exhausted, "document_too_large", "a document has at most %d bytes; that of %s would have %d",
			MaxBodyBytes, s.def.Name, len(body))
	}
	if body[0] != '{' {
		return nil, nil, fmt.Errorf("write document %s %s: it is not a JSON object", s.def.Name, s.key)
	}
	indexes := slices.Clone(s.def.indexes(s.doc))
	slices.SortFunc(indexes, func(a, b Index) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	indexes = slices.Compact(indexes)
	if len(indexes) > MaxIndexes {
		return nil, nil, fault.New(fault.Exhausted, "document_too_large", "a document is found under at most %d entries; one of %s would have %d",
			MaxIndexes, s.def.Name, len(indexes))
	}
	for _, i := range indexes {
		if i.Name == "" || len(i.Name)+len(i.Value) > MaxKeyBytes {
			return nil, nil, fault.New(fault.Exhausted, "document_too_large",
				"an index entry has a name and with its value at most %d bytes; one of %s has %d", MaxKeyBytes, s.def.Name, len(i.Name)+len(i.Value))
		}
	}
	return body, indexes, nil
}

// Document is a stored document.
type Document struct {
	Key     string
	Version uint64 // events folded into it
	Seq     uint64 // place in the workspace of the last of them
	Body    []byte // JSON
}

// Query lists documents of one projection in the order of their keys.
type Query struct {
	Workspace id.Workspace
	Name      string
	Index     Index  // the zero Index selects all
	After     string // the key after which to go on, exclusive
	Newest    bool   // from the last key downwards
	Limit     int    // 1 to 1000; 0 means 100
}

// Reader reads documents. A document is never older than the last acknowledged append.
type Reader interface {
	// Document returns one document, or ErrNotFound.
	Document(ctx context.Context, ws id.Workspace, name, key string) (Document, error)
	// Documents returns those that the query selects, at most its limit.
	Documents(ctx context.Context, q Query) ([]Document, error)
}

// Lender is a Reader that need not copy the documents in its memory.
type Lender interface {
	// Lend is Document without a copy: the body belongs to the store, and the caller must not change it.
	Lend(ctx context.Context, ws id.Workspace, name, key string) (Document, error)
}

// Lend reads a document whose body the caller only looks at.
func Lend(ctx context.Context, r Reader, ws id.Workspace, name, key string) (Document, error) {
	if l, ok := r.(Lender); ok {
		return l.Lend(ctx, ws, name, key)
	}
	return r.Document(ctx, ws, name, key)
}

// Entry is a document's key under one of the index entries by which it is found.
type Entry struct {
	Index
	Key string
}

// Indexed is a Reader that keeps the entries apart from the documents and can tell them, so that they are held against each other.
type Indexed interface {
	// Entries returns every entry of one projection in a workspace, in no order. If others may write meanwhile, still is false and it
	// returns no entries, because entries have no place in the log by which they could be compared.
	Entries(ctx context.Context, ws id.Workspace, name string) (entries []Entry, still bool, err error)
}

// Store is a Reader that can rebuild its documents.
type Store interface {
	Reader
	// Rebuild folds every document of one projection from the log and swaps the result in.
	Rebuild(ctx context.Context, name string) error
}

// Load reads one document into its type, with its version.
func Load[T any](ctx context.Context, r Reader, ws id.Workspace, name, key string) (T, uint64, error) {
	var doc T
	d, err := r.Document(ctx, ws, name, key)
	if err != nil {
		return doc, 0, err
	}
	if err := json.Unmarshal(d.Body, &doc); err != nil {
		return doc, 0, fmt.Errorf("read document %s %s: %w", name, key, err)
	}
	return doc, d.Version, nil
}

// List reads the documents that a query selects into their type.
func List[T any](ctx context.Context, r Reader, q Query) ([]T, error) {
	found, err := r.Documents(ctx, q)
	if err != nil {
		return nil, err
	}
	docs := make([]T, len(found))
	for i, d := range found {
		if err := json.Unmarshal(d.Body, &docs[i]); err != nil {
			return nil, fmt.Errorf("read document %s %s: %w", q.Name, d.Key, err)
		}
	}
	return docs, nil
}

// Stale reports whether a document that a batch expects has changed. A batch that expects the place of a stream counts as stale.
func Stale(ctx context.Context, r Reader, b event.Batch) (bool, error) {
	if len(b.Streams) > 0 {
		return true, nil
	}
	for _, want := range b.Documents {
		doc, err := r.Document(ctx, b.Workspace, want.Projection, want.Key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, err
		}
		if doc.Version != want.Version {
			return true, nil
		}
	}
	return false, nil
}
