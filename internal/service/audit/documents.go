package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// DocumentsReport is the result of verifying a workspace's documents.
type DocumentsReport struct {
	Workspace id.Workspace `json:"workspace_id"`
	OK        bool         `json:"ok"`
	Events    int          `json:"events"`              // that were folded
	Documents int          `json:"documents"`           // that were compared
	Unchecked bool         `json:"unchecked,omitempty"` // nothing could be compared, for the data of an event could not be opened
	Skipped   []string     `json:"skipped,omitempty"`   // projections that were not compared, for another version of the program made them
	Count     int          `json:"findings_count"`
	Findings  []Finding    `json:"findings"` // the first MaxFindings, in order of projection and key
}

// VerifyProjections folds a workspace's whole log in memory and compares every document with the stored one, byte for byte. Others may
// append meanwhile: it folds a changed document up to its present version and compares it there. If nobody writes to the log, it compares
// the index too.
func VerifyProjections(ctx context.Context, log journal.Journal, docs projection.Reader, defs []projection.Definition,
	ws id.Workspace) (DocumentsReport, error) {
	c, err := newComparison(log, docs, defs, ws)
	if err != nil {
		return DocumentsReport{}, err
	}
	return c.finish(ctx, defs)
}

// Audit is Verify and VerifyProjections in one pass over the log. If the log is damaged, it checks the documents as far as possible.
func Audit(ctx context.Context, log journal.Journal, docs projection.Reader, defs []projection.Definition, ws id.Workspace,
	held ...Held) (Report, DocumentsReport, error) {
	c, err := newComparison(log, docs, defs, ws)
	if err != nil {
		return Report{}, DocumentsReport{}, err
	}
	passed := make(chan []event.Event, 8)
	folded := make(chan error, 1)
	go func() {
		var err error
		for events := range passed {
			if err == nil {
				err = c.fold(events)
			}
		}
		folded <- err
	}()
	report, err := verify(ctx, log, ws, held, func(events []event.Event) { passed <- events })
	close(passed)
	bad := <-folded
	if err != nil {
		return report, c.report, err
	}
	if !report.OK {
		documents, err := VerifyProjections(ctx, log, docs, defs, ws)
		if err != nil && ctx.Err() == nil {
			err = nil // the report has the cause
		}
		return report, documents, err
	}
	if bad != nil {
		return report, c.report, bad
	}
	documents, err := c.finish(ctx, defs)
	return report, documents, err
}

func newComparison(log journal.Journal, docs projection.Reader, defs []projection.Definition, ws id.Workspace) (*comparison, error) {
	set, err := projection.NewSet(defs)
	return &comparison{
		log: log, docs: docs, set: set, states: map[projection.Ref]projection.State{},
		report: DocumentsReport{Workspace: ws, OK: true, Findings: []Finding{}},
	}, err
}

// finish folds the rest of the log and compares.
func (c *comparison) finish(ctx context.Context, defs []projection.Definition) (DocumentsReport, error) {
	ws := c.report.Workspace
	head, err := c.log.Head(ctx, ws)
	if err != nil {
		return DocumentsReport{}, err
	}
	if err := c.foldTo(ctx, head); err != nil {
		return DocumentsReport{}, err
	}
	if c.report.Unchecked {
		return c.report, nil
	}
	seen := map[projection.Ref]bool{}
	for _, def := range defs {
		if err := c.compareAll(ctx, def.Name, seen); err != nil {
			return DocumentsReport{}, err
		}
	}
	byName := c.sorted()
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for _, ref := range byName[name] {
			if seen[ref] {
				continue
			}
			// It may have been made after its list was read.
			if _, err := c.docs.Document(ctx, ws, ref.Name, ref.Key); errors.Is(err, projection.ErrNotFound) {
				c.found(DocumentMissing, ref, "the log folds to a document that is not there")
			} else if err != nil {
				return DocumentsReport{}, err
			}
		}
	}
	if indexed, ok := c.docs.(projection.Indexed); ok {
		for _, def := range defs {
			if err := c.compareEntries(ctx, indexed, def.Name, byName[def.Name]); err != nil {
				return DocumentsReport{}, err
			}
		}
	}
	return c.report, nil
}

// compareEntries compares the index entries of a projection's documents, if nothing changes them meanwhile.
func (c *comparison) compareEntries(ctx context.Context, indexed projection.Indexed, name string, refs []projection.Ref) error {
	entries, still, err := indexed.Entries(ctx, c.report.Workspace, name)
	if !still || err != nil {
		return err
	}
	stored := make(map[projection.Entry]bool, len(entries))
	for _, e := range entries {
		stored[e] = true
	}
	for _, ref := range refs {
		_, indexes, err := c.states[ref].Encode()
		if err != nil {
			return err
		}
		for _, i := range indexes {
			if e := (projection.Entry{Index: i, Key: ref.Key}); !stored[e] {
				c.found(IndexMismatch, ref, fmt.Sprintf("the document is not found by %s %s", i.Name, i.Value))
			} else {
				delete(stored, e)
			}
		}
	}
	for _, e := range entries { // the rest of them
		if stored[e] {
			ref := projection.Ref{Workspace: c.report.Workspace, Name: name, Key: e.Key}
			c.found(IndexMismatch, ref, fmt.Sprintf("the document is found by %s %s, which it does not hold", e.Name, e.Value))
		}
	}
	return nil
}

// sorted returns the documents of each projection in the order of their keys.
func (c *comparison) sorted() map[string][]projection.Ref {
	byName := map[string][]projection.Ref{}
	for ref := range c.states {
		byName[ref.Name] = append(byName[ref.Name], ref)
	}
	for _, refs := range byName {
		slices.SortFunc(refs, func(a, b projection.Ref) int { return strings.Compare(a.Key, b.Key) })
	}
	return byName
}

type comparison struct {
	log    journal.Journal
	docs   projection.Reader
	set    *projection.Set
	report DocumentsReport
	folded uint64 // place of the last event
	states map[projection.Ref]projection.State
}

func (c *comparison) found(kind string, ref projection.Ref, detail string) {
	c.report.OK = false
	c.report.Count++
	if len(c.report.Findings) < MaxFindings {
		c.report.Findings = append(c.report.Findings, Finding{Kind: kind, Seq: c.states[ref].Seq, Document: ref.Name + "/" + ref.Key,
			Detail: detail})
	}
}

func (c *comparison) foldTo(ctx context.Context, head uint64) error {
	for c.folded < head {
		events, err := c.log.Read(ctx, journal.Query{Workspace: c.report.Workspace, From: c.folded + 1, Before: head + 1, Limit: journal.MaxRead})
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("the log of %s has no events from %d on and ends at %d: verify it first", c.report.Workspace, c.folded+1, head)
		}
		if err := c.fold(events); err != nil {
			return err
		}
	}
	return nil
}

// fold folds the events that follow those which were folded.
func (c *comparison) fold(events []event.Event) error {
	for _, e := range events {
		if e.Withheld == event.Sealed {
			c.report.Unchecked = true
		}
		if c.folded = e.Seq; c.report.Unchecked {
			continue
		}
		if err := c.set.Fold(e, c.load, c.store); err != nil {
			return err
		}
		c.report.Events++
	}
	return nil
}

func (c *comparison) load(ref projection.Ref) (projection.State, error) {
	if s, ok := c.states[ref]; ok {
		return s, nil
	}
	def, err := c.set.Lookup(ref.Name)
	if err != nil {
		return projection.State{}, err
	}
	return def.Restore(ref.Key, nil, 0, 0)
}

func (c *comparison) store(ref projection.Ref, s projection.State) { c.states[ref] = s }

// compareAll compares every stored document of a projection.
func (c *comparison) compareAll(ctx context.Context, name string, seen map[projection.Ref]bool) error {
	q := projection.Query{Workspace: c.report.Workspace, Name: name, Limit: projection.MaxDocuments}
	for {
		docs, err := c.docs.Documents(ctx, q)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			ref := projection.Ref{Workspace: c.report.Workspace, Name: name, Key: doc.Key}
			seen[ref] = true
			if err := c.compare(ctx, ref, doc); err != nil {
				return err
			}
		}
		if len(docs) < q.Limit {
			return nil
		}
		q.After = docs[len(docs)-1].Key
	}
}

func (c *comparison) compare(ctx context.Context, ref projection.Ref, doc projection.Document) error {
	c.report.Documents++
	if doc.Seq != c.states[ref].Seq {
		// One of them is older than the other. A document that is read now holds every event folded so far, and perhaps later ones.
		var err error
		if doc, err = c.docs.Document(ctx, ref.Workspace, ref.Name, ref.Key); err != nil {
			return err
		}
		head, err := c.log.Head(ctx, ref.Workspace)
		if err != nil {
			return err
		}
		if err := c.foldTo(ctx, min(doc.Seq, head)); err != nil {
			return err
		}
	}
	state, ok := c.states[ref]
	if !ok {
		c.found(DocumentUnfounded, ref, "a document is there that no event made")
		return nil
	}
	body, _, err := state.Encode()
	if err != nil {
		return err
	}
	if doc.Version != state.Version || doc.Seq != state.Seq || !bytes.Equal(doc.Body, body) {
		c.found(DocumentMismatch, ref,
			fmt.Sprintf("the stored document (version %d, event %d, %d bytes) is not what the log folds to (version %d, event %d, %d bytes)",
				doc.Version, doc.Seq, len(doc.Body), state.Version, state.Seq, len(body)))
	}
	return nil
}
