// Package audit proves that the log is as it was recorded and that the documents match the log.
//
// The chain alone finds an event that was changed, dropped, moved or added. It also finds a missing end of the log if the separately kept
// heads still name it. A signed checkpoint finds a log that was replaced as a whole, or that lost its end and every head that names it. The
// last checkpoint of this installation is enough, or, if that was replaced too, one that a witness keeps.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// MaxFindings is how many findings a report lists; it counts all.
const MaxFindings = 100

// The kinds of finding.
const (
	PrevHashMismatch   = "prev_hash_mismatch"  // an event does not continue the one before it in its stream
	EventHashMismatch  = "event_hash_mismatch" // an event's envelope is not the one that was hashed
	EventHashMissing   = "event_hash_missing"  // an event has no hash
	CommitmentMismatch = "commitment_mismatch" // an event's data are not those that were committed to
	DataMissing        = "data_missing"        // an event's data are gone, and no event says that they were redacted
	KeyMissing         = "key_missing"         // the key of one thing is not here, while keys of others of its kind are
	SeqGap             = "seq_gap"             // a place is empty, in the workspace or in a stream
	Truncated          = "truncated"           // the last events of a stream or of the workspace are missing
	RecordDamaged      = "record_damaged"      // an entry cannot be read
	HeadMismatch       = "head_mismatch"       // a stream has events beyond its recorded head, or ends with another one than that names
	StreamMismatch     = "stream_mismatch"     // an event is filed under another stream than its own
	KeyMismatch        = "key_mismatch"        // a key by which repeats are known is not that of its event
	CheckpointMismatch = "checkpoint_mismatch" // the log is not the one that a checkpoint was signed for
	CheckpointInvalid  = "checkpoint_invalid"  // a checkpoint cannot be read, or the key did not sign it
	DocumentMismatch   = "document_mismatch"   // a document is not what the log folds to
	DocumentMissing    = "document_missing"    // the log folds to a document that is not there
	DocumentUnfounded  = "document_unfounded"  // a document is there that no event made
	IndexMismatch      = "index_mismatch"      // a document has another key than its content says
	SchemaMismatch     = "schema_mismatch"     // the database has a table, an index, a trigger or a view that is not the log's, or lacks one
	SnapshotDamaged    = "snapshot_damaged"    // a snapshot of a space cannot be read, or is not what its hash names
)

// Finding is one error, as exactly as it can be named.
type Finding struct {
	Kind      string       `json:"kind"`
	Seq       uint64       `json:"seq,omitempty"` // place in the workspace
	Stream    event.Stream `json:"stream,omitzero"`
	StreamSeq uint64       `json:"stream_seq,omitempty"`
	Event     id.Event     `json:"event_id,omitempty"`
	Document  string       `json:"document,omitempty"` // projection/key
	Expected  event.Digest `json:"expected,omitzero"`
	Actual    event.Digest `json:"actual,omitzero"`
	Detail    string       `json:"detail"` // a sentence for people
}

// StreamReport is one stream as it was verified.
type StreamReport struct {
	Stream   event.Stream `json:"stream"`
	Events   int          `json:"events"`
	LastSeq  uint64       `json:"last_stream_seq"`
	LastHash event.Digest `json:"last_event_hash"`
}

// Report is the result of verifying a workspace.
type Report struct {
	Workspace id.Workspace `json:"workspace_id"`
	OK        bool         `json:"ok"`
	Checked   int          `json:"checked"` // events that were read and held against their hashes
	// of them, whose data were destroyed, as an event says: their headers were checked, their data cannot be
	Redacted int            `json:"redacted"`
	Sealed   int            `json:"sealed"`      // of them, whose data could not be opened, for their key is not here: not checked either
	Head     uint64         `json:"head"`        // place up to which was verified
	Streams  []StreamReport `json:"streams"`     // in order of type and id
	Held     []HeldReport   `json:"checkpoints"` // that the log was held against
	Count    int            `json:"findings_count"`
	Findings []Finding      `json:"findings"` // the first MaxFindings, in the order of the log; the first is where to look
}

func (r *Report) found(f Finding) {
	r.Count++
	r.OK = false
	if len(r.Findings) < MaxFindings {
		r.Findings = append(r.Findings, f)
	}
}

// Verify walks every event of a workspace. It checks each one against its commitment, its hash and the chain of its stream. It checks the
// ends of the streams against their recorded heads, and the whole log against checkpoints that were read before. Others may append
// meanwhile. It returns an error only if the log cannot be read at all.
func Verify(ctx context.Context, log journal.Journal, ws id.Workspace, held ...Held) (Report, error) {
	return verify(ctx, log, ws, held, func([]event.Event) {})
}

// verify lets seen have every event, in order, as long as none is missing.
func verify(ctx context.Context, log journal.Journal, ws id.Workspace, held []Held, seen func([]event.Event)) (Report, error) {
	w := newWalk(log, ws)
	w.seen, w.claims = seen, newClaims(held)
	head, err := log.Head(ctx, ws)
	if err != nil {
		return Report{}, err
	}
	if err := w.upTo(ctx, head); err != nil {
		return Report{}, err
	}
	// Later appends lie beyond these heads, and the heads that follow lie beyond the events that are walked now.
	before, err := log.Streams(ctx, ws)
	if err != nil {
		return Report{}, err
	}
	if head, err = log.Head(ctx, ws); err != nil {
		return Report{}, err
	}
	if err := w.upTo(ctx, head); err != nil {
		return Report{}, err
	}
	after, err := log.Streams(ctx, ws)
	if err != nil {
		return Report{}, err
	}
	if err := w.settleClaims(ctx); err != nil {
		return Report{}, err
	}
	w.settleRedactions()
	w.settleKeys()
	w.heads(before, after)
	for _, s := range w.streams {
		w.report.Streams = append(w.report.Streams, *s)
	}
	slices.SortFunc(w.report.Streams, func(a, b StreamReport) int {
		return strings.Compare(a.Stream.Type+" "+a.Stream.ID, b.Stream.Type+" "+b.Stream.ID)
	})
	return w.report, nil
}

// VerifyStream walks one stream of a workspace from its beginning. It checks each of the first limit events against its commitment, its
// hash and the one before it. If it reaches the end, it checks the end against the stream's recorded head.
func VerifyStream(ctx context.Context, log journal.Journal, ws id.Workspace, stream event.Stream, limit int) (Report, error) {
	w := newWalk(log, ws)
	heads, err := log.Streams(ctx, ws)
	if err != nil {
		return Report{}, err
	}
	for from := uint64(1); w.report.Checked < limit; {
		events, err := log.Read(ctx, journal.Query{Workspace: ws, Stream: stream, From: from, Limit: min(journal.MaxRead,
			limit-w.report.Checked)})
		if damage, ok := errors.AsType[*journal.Damage](err); ok {
			w.report.found(Finding{Kind: RecordDamaged, Seq: damage.Seq, Stream: damage.Stream, StreamSeq: damage.StreamSeq, Event: damage.ID,
				Detail: damage.Detail})
			break
		}
		if err != nil {
			return Report{}, err
		}
		for i := range events {
			w.hold(&events[i], sumsOf(&events[i]))
			from = events[i].StreamSeq + 1
		}
		if len(events) == 0 {
			heads = slices.DeleteFunc(heads, func(v event.StreamVersion) bool { return v.Stream != stream })
			w.heads(heads, append(heads, event.StreamVersion{Stream: stream, Version: max(from-1, headOf(heads))}))
			break
		}
	}
	w.settleKeys()
	for _, s := range w.streams {
		w.report.Streams = append(w.report.Streams, *s)
	}
	return w.report, nil
}

func headOf(heads []event.StreamVersion) uint64 {
	if len(heads) == 0 {
		return 0
	}
	return heads[0].Version
}

// walk is a verification under way.
type walk struct {
	log     journal.Journal
	report  Report
	streams map[event.Stream]*StreamReport
	claims  claims
	seen    func([]event.Event)
	gone    map[id.Event]Finding // events without data, of which no redaction was met yet
	sealed  []Finding            // the first MaxFindings of the events whose key is not here
	lacking int                  // events whose key is not here
	opened  int                  // events whose data could be read
}

func newWalk(log journal.Journal, ws id.Workspace) *walk {
	return &walk{
		log: log, streams: map[event.Stream]*StreamReport{}, seen: func([]event.Event) {}, gone: map[id.Event]Finding{},
		report: Report{Workspace: ws, OK: true, Findings: []Finding{}, Streams: []StreamReport{}, Held: []HeldReport{}},
	}
}

// upTo verifies from where the walk stands to a place, inclusive.
func (w *walk) upTo(ctx context.Context, head uint64) error {
	for w.report.Head < head {
		for p := range pieces(ctx, w.log, w.report.Workspace, w.report.Head+1, head+1) {
			if !p.whole() {
				break
			}
			for i := range p.events {
				w.check(&p.events[i], p.sums[i])
			}
			w.seen(p.events)
		}
		if w.report.Head == head {
			break
		}
		// Something is wrong in the next piece.
		if err := w.carefully(ctx, min(w.report.Head+journal.MaxRead, head)); err != nil {
			return err
		}
	}
	return nil
}

// carefully verifies as upTo does, and skips unreadable entries.
func (w *walk) carefully(ctx context.Context, head uint64) error {
	for w.report.Head < head {
		q := journal.Query{Workspace: w.report.Workspace, From: w.report.Head + 1, Before: head + 1, Limit: journal.MaxRead}
		events, err := w.log.Read(ctx, q)
		if damage, ok := errors.AsType[*journal.Damage](err); ok && damage.Seq >= q.From {
			if err := w.around(ctx, q, damage); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		for i := range events {
			w.check(&events[i], sumsOf(&events[i]))
		}
		if len(events) < q.Limit {
			w.missing(head + 1)
		}
	}
	return nil
}

// around verifies the entries before a damaged one, reports it, and continues after it.
func (w *walk) around(ctx context.Context, q journal.Query, damage *journal.Damage) error {
	for w.report.Head+1 < damage.Seq {
		q.From, q.Before = w.report.Head+1, damage.Seq
		events, err := w.log.Read(ctx, q)
		if err != nil {
			return err
		}
		for i := range events {
			w.check(&events[i], sumsOf(&events[i]))
		}
		if len(events) < q.Limit {
			w.missing(damage.Seq)
		}
	}
	w.report.found(Finding{Kind: RecordDamaged, Seq: damage.Seq, Stream: damage.Stream, StreamSeq: damage.StreamSeq, Event: damage.ID,
		Detail: damage.Detail})
	w.report.Head = damage.Seq
	return nil
}

// missing reports the places from where the walk stands up to before, exclusive, if there are any.
func (w *walk) missing(before uint64) {
	first := w.report.Head + 1
	if first >= before {
		return
	}
	w.report.found(Finding{Kind: SeqGap, Seq: first, Detail: fmt.Sprintf("%d events are missing, from place %d on", before-first, first)})
	w.report.Head = before - 1
}

// check holds an event against its place in the workspace, and against itself and its stream.
func (w *walk) check(e *event.Event, s sums) {
	w.missing(e.Seq)
	w.report.Head = e.Seq
	w.hold(e, s)
	w.claims.add(e.Seq, s.leaf)
}

// hold holds an event against its own hashes and the one before it in its stream.
func (w *walk) hold(e *event.Event, sum sums) {
	w.report.Checked++
	s := w.streams[e.Stream]
	if s == nil {
		s = &StreamReport{Stream: e.Stream}
		w.streams[e.Stream] = s
	}
	finding := func(kind string, expected, actual event.Digest, detail string, args ...any) {
		w.report.found(Finding{
			Kind: kind, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, Event: e.ID, Expected: expected, Actual: actual,
			Detail: fmt.Sprintf(detail, args...),
		})
	}
	none := event.Digest{}
	switch hash := sum.hash; {
	case e.Chain.Hash.IsZero():
		finding(EventHashMissing, hash, none, "the event has no hash")
	case e.Chain.HashVersion != journal.HashVersion:
		finding(EventHashMismatch, hash, e.Chain.Hash, "the event says that its hash is of version %d, which is not known", e.Chain.HashVersion)
	case e.Chain.Hash != hash:
		finding(EventHashMismatch, hash, e.Chain.Hash,
			"the event's envelope has been changed since it was recorded, or it was recorded at another place")
	}
	if e.Withheld == "" {
		w.opened++
	}
	switch commitment := sum.commitment; {
	case e.Withheld == event.Forgotten:
		w.report.Redacted++
		w.gone[e.ID] = Finding{Kind: DataMissing, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, Event: e.ID,
			Detail: "the event's data are gone, and no event says that they were redacted"}
	case e.Withheld == event.Sealed:
		w.report.Sealed++
		w.unopened(Finding{
			Kind: KeyMissing, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, Event: e.ID,
			Detail: "the event names a key that is not here, while the keys of other events are: its data cannot be checked",
		})
	case e.Withheld != "":
		w.report.Sealed++
	case e.Chain.Commitment != commitment:
		finding(CommitmentMismatch, commitment, e.Chain.Commitment, "the event's data have been changed since it was recorded")
	}
	if e.Type == event.RedactedType {
		delete(w.gone, e.Causation)
	}
	switch {
	case e.StreamSeq != s.LastSeq+1:
		finding(SeqGap, none, none, "the event is number %d of its stream and follows number %d", e.StreamSeq, s.LastSeq)
	case e.Chain.Prev != s.LastHash:
		finding(PrevHashMismatch, s.LastHash, e.Chain.Prev, "the event does not continue the one before it in its stream")
	}
	s.Events, s.LastSeq, s.LastHash = s.Events+1, e.StreamSeq, e.Chain.Hash
}

// settleRedactions reports events whose data are gone without a redaction. The event of a redaction comes after the redacted event.
func (w *walk) settleRedactions() {
	found := slices.SortedFunc(maps.Values(w.gone), func(a, b Finding) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, f := range found {
		w.report.found(f)
	}
}

// unopened notes an event whose key is not here.
func (w *walk) unopened(f Finding) {
	if w.lacking++; len(w.sealed) < MaxFindings {
		w.sealed = append(w.sealed, f)
	}
}

// settleKeys reports the events whose keys are not here, where the data of at least one other event could be opened. A log without any key
// is a log that was restored without its keys; a log that lacks some of them was changed.
func (w *walk) settleKeys() {
	if w.lacking == 0 || w.opened == 0 {
		return
	}
	for _, f := range w.sealed {
		w.report.found(f)
	}
	w.report.Count += w.lacking - len(w.sealed)
}

// heads holds the ends of the streams against their heads, as they were recorded before and after the last events were walked.
func (w *walk) heads(before, after []event.StreamVersion) {
	latest := map[event.Stream]uint64{}
	for _, head := range after {
		latest[head.Stream] = head.Version
	}
	for _, head := range before {
		last, hash := uint64(0), head.Hash
		if s := w.streams[head.Stream]; s != nil {
			last, hash = s.LastSeq, s.LastHash
		}
		if last == head.Version && hash != head.Hash {
			w.report.found(Finding{
				Kind: HeadMismatch, Stream: head.Stream, StreamSeq: last, Expected: hash, Actual: head.Hash,
				Detail: "the head of the stream names another hash than that of its last event: the next event would not continue it",
			})
		}
		if last < head.Version {
			w.report.found(Finding{Kind: Truncated, Stream: head.Stream, StreamSeq: last + 1,
				Detail: fmt.Sprintf("the stream ends at number %d and its head says %d: the last events are missing", last, head.Version)})
		}
	}
	for stream, s := range w.streams {
		if s.LastSeq > latest[stream] {
			w.report.found(Finding{Kind: HeadMismatch, Stream: stream, StreamSeq: s.LastSeq,
				Detail: fmt.Sprintf("the stream has an event number %d and its head says %d", s.LastSeq, latest[stream])})
		}
	}
}
