package journaltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// secretNotes appends notes, every third of which holds a text that is to be forgotten, and returns those.
func secretNotes(t *testing.T, l Log, n int) (secret []event.Event) {
	t.Helper()
	for i := range n {
		text := fmt.Sprint("open ", i)
		if i%3 == 0 {
			text = fmt.Sprint("private ", i)
		}
		d := InRoom(id.Room(fmt.Sprint("room_", i%4)), text).About("note", fmt.Sprint("n", i%7))
		if i%2 == 0 {
			d = d.In(id.Run(fmt.Sprint("run_", i%5)), "")
		}
		if e := appendAll(t, l, Batch(d))[0]; i%3 == 0 {
			secret = append(secret, e)
		}
	}
	return secret
}

// remains is the remaining data after the suite's redactions.
const remains = `{"n":1}`

// recordRedactions appends the redactions of events and returns their places.
func recordRedactions(t *testing.T, l Log, targets []event.Event) (seqs []uint64) {
	t.Helper()
	var drafts []event.Draft
	for _, e := range targets {
		drafts = append(drafts, event.RedactionOf(event.Origin{Principal: User}, e, "told to", json.RawMessage(remains)))
		seqs = append(seqs, e.Seq)
	}
	appendAll(t, l, Batch(drafts...))
	return seqs
}

// forgotten holds redacted events against what they were.
func forgotten(t *testing.T, l Log, were []event.Event) {
	t.Helper()
	for _, was := range were {
		e, err := l.Get(t.Context(), Workspace, was.ID)
		must(t, err)
		if e.Withheld != event.Forgotten || string(e.Data) != remains || e.Chain.Salt != nil || e.Redaction != event.RedactFull ||
			e.Chain.Redaction != was.Redaction {
			t.Errorf("redacted event %d is %+v", e.Seq, e)
		}
		if e.Chain.Hash != was.Chain.Hash || e.Chain.Commitment != was.Chain.Commitment || journal.HashOf(&e) != was.Chain.Hash {
			t.Errorf("redacted event %d does not hash to what it did", e.Seq)
		}
	}
	all := read(t, l, journal.Query{Limit: journal.MaxRead})
	raw, err := json.Marshal(all)
	must(t, err)
	followed, err := json.Marshal(read(t, l, journal.Query{From: all[len(all)/2].Seq, Limit: journal.MaxRead, Follows: true}))
	must(t, err)
	if text := string(raw) + string(followed) + Documents(t, l, "notes", "rooms"); strings.Contains(text, "private") {
		t.Errorf("the text is still there: %.200s", text[strings.Index(text, "private"):])
	}
	for _, e := range all {
		redacted := slices.ContainsFunc(were, func(was event.Event) bool { return was.ID == e.ID })
		if (e.Withheld != "") != redacted {
			t.Errorf("event %d is withheld: %q", e.Seq, e.Withheld)
		}
	}
}

func redaction(t *testing.T, d Driver) {
	l := open(t, d, Notes(1), Rooms(1))
	secret := secretNotes(t, l, 120)
	seqs := recordRedactions(t, l, secret)
	open, err := l.Unfinished(t.Context(), Workspace)
	must(t, err)
	if !slices.Equal(open, seqs) {
		t.Errorf("unfinished are %v, want %v", open, seqs)
	}
	before, err := l.Get(t.Context(), Workspace, secret[0].ID)
	if err != nil || before.Withheld != "" {
		t.Errorf("a redaction that is recorded and not done: %+v, %v", before, err)
	}
	must(t, l.Redact(t.Context(), Workspace, seqs[:7]))
	must(t, l.Redact(t.Context(), Workspace, append(slices.Clone(seqs), seqs...))) // some are done already
	forgotten(t, l, secret)
	if open, err := l.Unfinished(t.Context(), Workspace); err != nil || len(open) != 0 {
		t.Errorf("unfinished are %v, %v, want none", open, err)
	}
	must(t, CheckChains(t.Context(), l, Workspace))
	sameAfterRebuild(t, l, "notes", "rooms")
	doc, _, err := projection.Load[NoteDoc](t.Context(), l, Workspace, "notes", "n0")
	if err != nil || doc.Sum == 0 {
		t.Errorf("the document is %+v, %v; want what remains to be folded", doc, err)
	}
	// The log goes on.
	secretNotes(t, l, 2)
	appendAll(t, l, Batch(Draft("more").About("note", "n0")))
	sameAfterRebuild(t, l, "notes", "rooms")
	must(t, CheckChains(t.Context(), l, Workspace))
}

func redactsAsRecorded(t *testing.T, d Driver) {
	l := open(t, d, Notes(1), Rooms(1))
	secret := secretNotes(t, l, 9)
	for _, seqs := range [][]uint64{{secret[0].Seq}, {secret[0].Seq, secret[1].Seq}, {99}} {
		if err := l.Redact(t.Context(), Workspace, seqs); !errors.Is(err, journal.ErrUnrecorded) {
			t.Errorf("redact %v without a record: %v, want %v", seqs, err, journal.ErrUnrecorded)
		}
		if seqs[0] == secret[0].Seq && len(seqs) == 1 {
			recordRedactions(t, l, secret[:1])
			must(t, l.Redact(t.Context(), Workspace, seqs))
			must(t, l.Redact(t.Context(), Workspace, nil))
		}
	}
	if e, err := l.Get(t.Context(), Workspace, secret[1].ID); err != nil || e.Withheld != "" {
		t.Errorf("an event beside: %+v, %v", e, err)
	}
	if err := l.Redact(t.Context(), Workspace, make([]uint64, journal.MaxBatch+1)); fault.CodeOf(err) != "batch_too_large" {
		t.Errorf("too many at once: %v, want batch_too_large", err)
	}
	if err := l.Redact(t.Context(), OtherWorkspace, []uint64{1}); err == nil {
		t.Error("an event of a workspace that is not there was redacted")
	}
	// Once more of the same changes nothing: the first record counts.
	recordRedactions(t, l, secret[:1])
	if open, err := l.Unfinished(t.Context(), Workspace); err != nil || len(open) != 0 {
		t.Errorf("unfinished are %v, %v, want none", open, err)
	}
}

func restartOfRedaction(t *testing.T, d Driver) {
	setup := NewSetup(Notes(1), Rooms(1))
	l := d.Open(t, setup)
	secret := secretNotes(t, l, 60)
	seqs := recordRedactions(t, l, secret)
	must(t, l.Redact(t.Context(), Workspace, seqs[:5]))
	l = d.Reopen(t, l, setup)
	open, err := l.Unfinished(t.Context(), Workspace)
	must(t, err)
	if !slices.Equal(open, seqs[5:]) {
		t.Errorf("unfinished after a restart are %v, want %v", open, seqs[5:])
	}
	must(t, l.Redact(t.Context(), Workspace, open))
	l = d.Reopen(t, l, setup)
	forgotten(t, l, secret)
	sameAfterRebuild(t, l, "notes", "rooms")
	l = d.Reopen(t, l, setup.With(Notes(1), Rooms(2)))
	forgotten(t, l, secret)
}
