package audit_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

const (
	told     = id.Run("run_00000000000000000000000001")
	otherRun = id.Run("run_00000000000000000000000002")
	workroom = id.Room("room_00000000000000000000000000")
)

// archive is a log in memory in which a run is recorded, its tree, and the key under which it is signed.
type archive struct {
	t       *testing.T
	log     *memory.Journal
	trees   *memory.Trees
	signer  *audit.Signer
	prover  *audit.Prover
	message run.Message
	results []run.Result
	start   run.Snapshot
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	setup := journaltest.NewSetup()
	log, err := memory.NewJournal(nil, setup.Clock, setup.IDs, setup.Entropy)
	private, public, failed := merkle.NewKey(rand.Reader)
	a := &archive{t: t, log: log, trees: memory.NewTrees(), start: run.Snapshot{Root: event.DigestOf([]byte("files")), Files: 3, Bytes: 40}}
	a.must(errors.Join(err, failed))
	a.signer, err = audit.NewSigner(log, a.trees, private)
	a.must(err)
	a.must(a.signer.Recover(t.Context()))
	a.prover = audit.NewProver(log, a.trees, public)
	return a
}

func (a *archive) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *archive) append(room id.Room, r id.Run, typ string, data any) event.Event {
	a.t.Helper()
	draft := event.New(typ, event.Origin{Principal: journaltest.User, Correlation: "cor_told"}, ws, room, data).In(r, "")
	receipt, err := a.log.Append(a.t.Context(), journaltest.Batch(draft))
	a.must(err)
	return receipt.Events[0]
}

func (a *archive) sign() {
	a.t.Helper()
	a.must(a.signer.Step(a.t.Context()))
}

// record records a run of three operations among events of others: the first has its result in its event, that of the second is stored,
// and the third is skipped by policy without an intent.
func (a *archive) record() {
	a.t.Helper()
	yes, no, out := true, false, "hello\n"
	a.message = run.Message{ProtocolVersion: run.Protocol, Operations: []run.Operation{
		{Type: run.OpShell, ID: "greet", Command: "echo hello"}, {Type: run.OpReadFile, ID: "read", Path: "f"}, {Type: run.OpDeleteFile,
			ID: "drop", Path: "f"},
	}}
	a.results = []run.Result{
		{Type: "shell", OperationID: "greet", Success: &yes, Stdout: &out}, {Type: run.ResError, OperationID: "read", Success: &no,
			Error: "no such file"},
		{Type: run.ResUnknown, OperationID: "drop", Success: &no},
	}
	stored, err := json.Marshal(a.results[1])
	a.must(err)
	input, err := json.Marshal(a.message)
	a.must(err)
	var outlines []run.Outline
	for _, op := range a.message.Operations {
		outlines = append(outlines, run.Outline{ID: op.ID, Type: op.Type, Summary: op.Summary()})
	}
	noise := func(room id.Room) { a.append(room, otherRun, "note.written", journaltest.Note{Text: "of another run"}) }
	noise(workroom)
	a.append(workroom, told, run.EventCreated, run.Created{
		Run: told, Agent: "agt_1", Title: "a run", Operations: outlines, Message: &a.message,
		Input: run.Input{Digest: event.DigestOf(input), Size: int64(len(input)), Inline: true},
	})
	a.append(workroom, told, run.EventStarted, run.Started{Run: told, Kept: run.Kept{Snapshot: &a.start}})
	a.append(workroom, told, run.EventInvoked, run.Invoked{Run: told, Operation: "greet", Index: 0, Decision: "allow"})
	a.append("", told, "policy.decided", journaltest.Note{Text: "in the stream of the workspace"})
	a.append(workroom, told, run.EventSucceeded, run.Ended{Run: told, Operation: "greet", Index: 0, Kind: "shell", Result: &a.results[0]})
	noise(workroom)
	noise("")
	a.append(workroom, told, run.EventInvoked, run.Invoked{Run: told, Operation: "read", Index: 1, Decision: "allow"})
	a.append("", told, "policy.decided", journaltest.Note{Text: "the second one in that stream"})
	a.append(workroom, told, run.EventErred, run.Ended{
		Run: told, Operation: "read", Index: 1, Kind: run.ResError, Stored: &run.Input{Digest: event.DigestOf(stored), Size: int64(len(stored))},
	})
	a.append(workroom, told, "note.written", journaltest.Note{Text: "tells nothing of how it stands"})
	a.append(workroom, told, run.EventUnknown, run.Ended{Run: told, Operation: "drop", Index: 2, Kind: run.ResUnknown, Result: &a.results[2]})
	a.append(workroom, told, run.EventCompleted, run.Finished{Run: told})
	noise(workroom)
}

// transcript tells the run as its events do, with the proof of the last checkpoint.
func (a *archive) transcript() *run.Transcript {
	a.t.Helper()
	events, err := a.log.Read(a.t.Context(), journal.Query{Workspace: ws, Run: told, Limit: journal.MaxRead})
	a.must(err)
	t := &run.Transcript{Events: events}
	for _, e := range events {
		if run.Touches(e) {
			t.Header.Run, err = run.Evolve(t.Header.Run, e)
			a.must(err)
		}
	}
	start := a.start
	t.Header.Start = &start
	for i, op := range a.message.Operations {
		t.Asked = append(t.Asked, run.Asked{Index: i, Operation: op})
	}
	for i, p := range t.Header.Run.Operations {
		if p.State == run.Done {
			t.Outcomes = append(t.Outcomes, run.OutcomeOf(i, p, a.results[i]))
		}
	}
	t.Proof, err = a.prover.ProveRun(a.t.Context(), ws, told)
	a.must(err)
	return t
}

func recorded(t *testing.T) *archive {
	t.Helper()
	a := newArchive(t)
	a.record()
	a.sign()
	return a
}

func forged(err error) bool { return fault.CodeOf(err) == "transcript_forged" }

// The report counts the checked facts: the events, those with their data, the outcomes in such data, and the proven events.
func TestAttestCountsWhatHolds(t *testing.T) {
	a := recorded(t)
	whole := a.transcript()
	signed, err := a.prover.Checkpoint(t.Context(), ws)
	a.must(err)
	c := signed.Checkpoint
	full := run.Attestation{
		Events: 11, Whole: 11, Bound: 3, Proven: 11,
		Origin: c.Origin, Size: c.Size, Root: c.Root.String(), PublicKey: string(a.prover.PublicKey()),
	}
	if got, err := audit.Attest(whole); err != nil || got != full {
		t.Errorf("got %+v, %v, want %+v", got, err, full)
	}
	blank := func(t *run.Transcript, i int) { t.Events[i].Data, t.Events[i].Chain.Salt = nil, nil }
	for _, c := range []struct {
		name                 string
		change               func(*run.Transcript)
		whole, bound, proven int
	}{
		{"without a proof", func(t *run.Transcript) { t.Proof = nil }, 11, 3, 0},
		{"one event is proven", func(t *run.Transcript) { t.Proof.Inclusions = t.Proof.Inclusions[4:5] }, 11, 3, 1},
		{"none is proven", func(t *run.Transcript) { t.Proof.Inclusions = nil }, 11, 3, 0},
		{"without an outcome", func(t *run.Transcript) { t.Outcomes = t.Outcomes[1:] }, 11, 2, 11},
		{"an outcome was forgotten", func(t *run.Transcript) {
			t.Outcomes[0].Forgotten, t.Outcomes[0].Result = true, run.Result{Type: "shell"}
		}, 11, 2, 11},
		{"without what is of an event that tells of no result", func(t *run.Transcript) { blank(t, 9-1) }, 10, 3, 11},
		{"without the data of a result", func(t *run.Transcript) { blank(t, 4) }, 10, 2, 11},
		{"without the data of all results", func(t *run.Transcript) { blank(t, 4); blank(t, 7); blank(t, 9) }, 8, 0, 11},
		{"without data", func(t *run.Transcript) {
			for i := range t.Events {
				blank(t, i)
			}
		}, 0, 0, 11},
		{"the start is not told", func(t *run.Transcript) { t.Header.Start = nil }, 11, 3, 11},
		{"an operation was taken out", func(t *run.Transcript) {
			t.Asked[0].Operation.Command, t.Asked[0].Removed = "", map[string]run.Removed{"command": {}}
		}, 11, 3, 11},
	} {
		told := a.transcript()
		c.change(told)
		got, err := audit.Attest(told)
		if err != nil || got.Events != 11 || got.Whole != c.whole || got.Bound != c.bound || got.Proven != c.proven {
			t.Errorf("%s: got %+v, %v, want %d, %d, %d", c.name, got, err, c.whole, c.bound, c.proven)
		}
		if (told.Proof == nil) != (got.Origin == "" && got.Size == 0 && got.Root == "" && got.PublicKey == "") {
			t.Errorf("%s: it names %+v", c.name, got)
		}
	}
}

// A transcript that says anything else than its events is refused, whatever was changed.
func TestAttestRefusesWhatContradictsItself(t *testing.T) {
	a := recorded(t)
	other := event.DigestOf([]byte("other"))
	otherOut := "hullo\n"
	for name, change := range map[string]func(t *run.Transcript){
		"an event of another run":          func(t *run.Transcript) { t.Header.Run.ID = otherRun },
		"an event of another workspace":    func(t *run.Transcript) { t.Header.Run.Workspace = journaltest.OtherWorkspace },
		"one event says another run":       func(t *run.Transcript) { t.Events[3].Run = otherRun },
		"one event says another workspace": func(t *run.Transcript) { t.Events[3].Workspace = journaltest.OtherWorkspace },
		"data":                             func(t *run.Transcript) { t.Events[0].Data = json.RawMessage(`{}`) },
		"data of what tells nothing":       func(t *run.Transcript) { t.Events[3].Data = json.RawMessage(`{}`) },
		"a salt":                           func(t *run.Transcript) { t.Events[0].Chain.Salt[0] ^= 1 },
		"a hash":                           func(t *run.Transcript) { t.Events[3].Chain.Hash = other },
		"a type":                           func(t *run.Transcript) { t.Events[3].Type = "note.written" },
		"a level that was never recorded":  func(t *run.Transcript) { t.Events[3].Chain.Redaction = event.RedactPartial },
		"a level that says it is redacted": func(t *run.Transcript) {
			t.Events[3].Type, t.Events[3].Redaction = "note.written", event.RedactFull
		},
		"an order of the log": func(t *run.Transcript) {
			t.Events[3], t.Events[2] = t.Events[2], t.Events[3]
			t.Events[4].Seq = 1
		},
		"an order in a stream":                func(t *run.Transcript) { t.Events[5], t.Events[4] = t.Events[4], t.Events[5] },
		"an event twice":                      func(t *run.Transcript) { t.Events = slices.Insert(t.Events, 4, t.Events[3]) },
		"the last event is cut":               func(t *run.Transcript) { t.Events = t.Events[:10] },
		"the first event is cut":              func(t *run.Transcript) { t.Events = t.Events[1:] },
		"a result is cut":                     func(t *run.Transcript) { t.Events = slices.Delete(t.Events, 4, 5) },
		"no events":                           func(t *run.Transcript) { t.Events = nil },
		"how it ended":                        func(t *run.Transcript) { t.Header.Run.Status = run.Failed },
		"that it has not ended":               func(t *run.Transcript) { t.Header.Run.Status = run.Running },
		"its title":                           func(t *run.Transcript) { t.Header.Run.Title = "another" },
		"an operation that was asked for":     func(t *run.Transcript) { t.Asked[0].Operation.Command = "echo hullo" },
		"an operation that is missing":        func(t *run.Transcript) { t.Asked = t.Asked[:2] },
		"the files at its start":              func(t *run.Transcript) { t.Header.Start.Root = other },
		"an id of an outcome":                 func(t *run.Transcript) { t.Outcomes[0].ID = "other" },
		"a decision of an outcome":            func(t *run.Transcript) { t.Outcomes[0].Decision = "deny" },
		"a result in its event":               func(t *run.Transcript) { t.Outcomes[0].Result.Stdout = &otherOut },
		"a result that is stored":             func(t *run.Transcript) { t.Outcomes[1].Result.Error = "other" },
		"a result that nobody knows":          func(t *run.Transcript) { t.Outcomes[2].Result.Error = "other" },
		"an outcome that is told twice":       func(t *run.Transcript) { t.Outcomes[1].Index = 0 },
		"a proof of an event that it has not": func(t *run.Transcript) { t.Proof.Inclusions[0].Seq = 1 },
		"a proof of no event":                 func(t *run.Transcript) { t.Proof.Inclusions[0].Seq = 0 },
		"a proof of an event behind its end":  func(t *run.Transcript) { t.Proof.Inclusions[0].Seq = 1 << 40 },
		"an event that is proven twice":       func(t *run.Transcript) { t.Proof.Inclusions[1] = t.Proof.Inclusions[0] },
		"proofs in each other's place": func(t *run.Transcript) {
			p := t.Proof.Inclusions
			p[0].Hashes, p[1].Hashes = p[1].Hashes, p[0].Hashes
		},
		"a proof that is too short":  func(t *run.Transcript) { p := &t.Proof.Inclusions[0]; p.Hashes = p.Hashes[1:] },
		"a proof that is too long":   func(t *run.Transcript) { p := &t.Proof.Inclusions[0]; p.Hashes = append(p.Hashes, p.Hashes[0]) },
		"an empty proof":             func(t *run.Transcript) { t.Proof.Inclusions[0].Hashes = nil },
		"a proof that is not a text": func(t *run.Transcript) { t.Proof.Inclusions[0].Hashes[0] = "?" },
	} {
		told := a.transcript()
		for i := range told.Events {
			told.Events[i] = event.Clone(told.Events[i])
		}
		change(told)
		if got, err := audit.Attest(told); !forged(err) {
			t.Errorf("%s was changed: got %+v, %v", name, got, err)
		}
	}
}

// An operation that has no result yet has no outcome, in a run that has not ended as in one whose later events were left out.
func TestAttestRefusesAnOutcomeOfWhatIsNotDone(t *testing.T) {
	a := recorded(t)
	told := a.transcript()
	told.Events = told.Events[:7] // to the intent of the second operation and what was said beside it
	told.Header.Run, told.Proof = run.Run{}, nil
	for _, e := range told.Events {
		if run.Touches(e) {
			var err error
			told.Header.Run, err = run.Evolve(told.Header.Run, e)
			a.must(err)
		}
	}
	told.Outcomes = told.Outcomes[:1]
	if got, err := audit.Attest(told); err != nil || got.Events != 7 || got.Bound != 1 {
		t.Fatalf("a run that has not ended: %+v, %v", got, err)
	}
	for i := range told.Events {
		told.Events[i].Data, told.Events[i].Chain.Salt = nil, nil
	}
	if got, err := audit.Attest(told); err != nil || got.Events != 7 || got.Whole != 0 {
		t.Errorf("a run that has not ended, without data: %+v, %v", got, err)
	}
	for _, status := range []run.Status{run.Succeeded, run.Failed, run.Cancelled} {
		was := told.Header.Run.Status
		told.Header.Run.Status = status
		if got, err := audit.Attest(told); !forged(err) {
			t.Errorf("it says %s, and no event does: %+v, %v", status, got, err)
		}
		told.Header.Run.Status = was
	}
	p := told.Header.Run.Operations[1]
	told.Outcomes = append(told.Outcomes, run.OutcomeOf(1, p, a.results[1]))
	if got, err := audit.Attest(told); !forged(err) {
		t.Errorf("an outcome of an operation that is under way: %+v, %v", got, err)
	}
}

// A start that its event did not keep is none, and an event whose data are not of its type contradicts the transcript: it is not an
// error of the program.
func TestAttestRefusesWhatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name, typ string
		data      any
	}{
		{"a creation", run.EventCreated, map[string]any{"run_id": 7}},
		{"a start", run.EventStarted, map[string]any{"snapshot": 7}},
		{"a result", run.EventSucceeded, map[string]any{"index": "one"}},
		{"a result of an operation that is not there", run.EventSucceeded, run.Ended{Index: 3}},
		{"a start that kept no files", run.EventStarted, run.Started{Run: told}},
	} {
		a := newArchive(t)
		a.append(workroom, told, run.EventCreated, run.Created{Run: told})
		a.append(workroom, told, c.typ, c.data)
		events, err := a.log.Read(t.Context(), journal.Query{Workspace: ws, Run: told, Limit: 10})
		a.must(err)
		if c.typ == run.EventCreated {
			events = events[1:]
		}
		doc := run.Run{ID: told, Workspace: ws, Operations: []run.Progress{}}
		if got, err := audit.Attest(&run.Transcript{Header: run.TranscriptHeader{Run: doc, Start: &a.start}, Events: events}); !forged(err) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
		// The same where the run cannot be folded, because an event came without its data.
		events, err = a.log.Read(t.Context(), journal.Query{Workspace: ws, Run: told, Limit: 10})
		a.must(err)
		events[0].Data, events[0].Chain.Salt = nil, nil
		got, err := audit.Attest(&run.Transcript{Header: run.TranscriptHeader{Run: doc, Start: &a.start}, Events: events})
		if unfolded := c.name == "a result of an operation that is not there"; unfolded != (err == nil) || err != nil && !forged(err) {
			t.Errorf("%s, behind an event without data: got %+v, %v", c.name, got, err)
		}
	}
}

// How long its data are kept is decided after a run has ended: that does not change how it ended, with its data or without.
func TestAttestOfARunThatWasRetainedAndForgotten(t *testing.T) {
	for _, later := range [][]string{{run.EventRetained}, {run.EventForgotten}, {run.EventRetained, run.EventRetained, run.EventForgotten}} {
		a := newArchive(t)
		a.record()
		for _, typ := range later {
			a.append(workroom, told, typ, struct{}{})
		}
		n := 11 + len(later)
		got := a.transcript()
		if it, err := audit.Attest(got); err != nil || it.Events != n || it.Whole != n || it.Bound != 3 {
			t.Errorf("%v: got %+v, %v", later, it, err)
		}
		for i := range got.Events {
			got.Events[i].Data, got.Events[i].Chain.Salt = nil, nil
		}
		if it, err := audit.Attest(got); err != nil || it.Events != n || it.Whole != 0 {
			t.Errorf("%v: without data: got %+v, %v", later, it, err)
		}
		for _, status := range []run.Status{run.Failed, run.Running, ""} {
			got.Header.Run.Status = status
			if it, err := audit.Attest(got); !forged(err) {
				t.Errorf("%v: it says %q: got %+v, %v", later, status, it, err)
			}
		}
	}
}

// An event about a call is in the run and tells nothing of how the run stands.
func TestAttestLeavesCallsToTheirOwnDocuments(t *testing.T) {
	a := newArchive(t)
	a.record()
	call := event.New(run.EventErred, event.Origin{Principal: journaltest.User}, ws, workroom, run.Ended{Run: told, Index: 700,
		Kind: "x"}).In(told, "").About(run.CallEntity, "call_1")
	_, err := a.log.Append(t.Context(), journaltest.Batch(call))
	a.must(err)
	a.sign()
	if got, err := audit.Attest(a.transcript()); err != nil || got.Events != 12 || got.Whole != 12 || got.Bound != 3 || got.Proven != 12 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// redact destroys the data of an event of the log.
func (a *archive) redact(seq uint64) {
	a.t.Helper()
	events, err := a.log.Read(a.t.Context(), journal.Query{Workspace: ws, From: seq, Limit: 1})
	a.must(err)
	_, err = a.log.Append(a.t.Context(), journaltest.Batch(event.RedactionOf(event.Origin{Principal: journaltest.User}, events[0], "a test",
		nil)))
	a.must(errors.Join(err, a.log.Redact(a.t.Context(), ws, []uint64{seq})))
}

// A redacted event is still what its hash says, whether the transcript says the level that was recorded or only that the event was
// redacted. A level that was not recorded does not pass.
func TestAttestOfRedactedEvents(t *testing.T) {
	a := recorded(t)
	const result = 6 // the place of the first result
	a.redact(result)
	a.sign()
	told := a.transcript()
	at := slices.IndexFunc(told.Events, func(e event.Event) bool { return e.Seq == result })
	e := &told.Events[at]
	if e.Withheld == "" || e.Redaction != event.RedactFull || len(e.Chain.Salt) > 0 {
		t.Fatalf("it was not redacted: %+v", e)
	}
	told.Outcomes[0].Forgotten = true
	check := func(name string, holds bool) {
		t.Helper()
		got, err := audit.Attest(told)
		if holds && (err != nil || got.Events != 12 || got.Whole != 11 || got.Bound != 2 || got.Proven != 12) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if !holds && !forged(err) {
			t.Errorf("%s: got %+v, %v, want a refusal", name, got, err)
		}
	}
	check("with the recorded level", true)
	e.Chain.Redaction = ""
	check("without the recorded level", true)
	e.Redaction = event.RedactNone
	check("as it read before", true)
	e.Redaction = event.RedactPartial
	check("a level that was not recorded", false)
}

// The level that an event was recorded with may be partial.
func TestAttestOfAnEventThatWasRecordedInPart(t *testing.T) {
	a := newArchive(t)
	created := event.New(run.EventCreated, event.Origin{Principal: journaltest.User}, ws, workroom, run.Created{Run: told}).In(told, "")
	created.Redaction = event.RedactPartial
	receipt, err := a.log.Append(t.Context(), journaltest.Batch(created))
	a.must(err)
	e := event.Clone(receipt.Events[0])
	doc := run.Run{ID: told, Workspace: ws}
	e.Redaction, e.Data, e.Chain.Salt = event.RedactFull, nil, nil
	if got, err := audit.Attest(&run.Transcript{Header: run.TranscriptHeader{Run: doc}, Events: []event.Event{e}}); err != nil ||
		got.Events != 1 || got.Whole != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A proof is checked against the key that it names, and has to be of the run's workspace. Without its data a transcript has nothing
// else to contradict it.
func TestAttestChecksTheCheckpoint(t *testing.T) {
	a, b := recorded(t), newArchive(t)
	b.append(workroom, told, "note.written", journaltest.Note{Text: "another log"})
	b.record()
	b.sign()
	for name, c := range map[string]struct {
		change func(*run.Proof)
		code   string
	}{
		"no key":        {func(p *run.Proof) { p.PublicKey = "none" }, "public_key_invalid"},
		"another key":   {func(p *run.Proof) { p.PublicKey = string(b.prover.PublicKey()) }, "checkpoint_invalid"},
		"no checkpoint": {func(p *run.Proof) { p.Checkpoint = "" }, "checkpoint_invalid"},
		"another size": {func(p *run.Proof) {
			p.Checkpoint = strings.Replace(p.Checkpoint, "\n15\n", "\n16\n", 1)
		}, "checkpoint_invalid"},
		"the whole proof of another": {func(p *run.Proof) { *p = *b.transcript().Proof }, "transcript_forged"},
	} {
		told := a.transcript()
		if !strings.Contains(told.Proof.Checkpoint, "\n15\n") {
			t.Fatalf("the checkpoint is not one of 15 events: %s", told.Proof.Checkpoint)
		}
		c.change(told.Proof)
		if got, err := audit.Attest(told); err == nil || c.code != "public_key_invalid" && fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, c.code)
		}
	}
	// A checkpoint that the same key signed for another workspace.
	draft := journaltest.Of(journaltest.OtherWorkspace, journaltest.Draft("x"))
	_, err := a.log.Append(t.Context(), journaltest.Batch(draft))
	a.must(err)
	a.sign()
	foreign, err := a.prover.Checkpoint(t.Context(), journaltest.OtherWorkspace)
	a.must(err)
	told := a.transcript()
	told.Proof.Checkpoint, told.Proof.Inclusions = foreign.Note, nil
	if got, err := audit.Attest(told); !forged(err) || got.Origin != "" {
		t.Errorf("a checkpoint of another workspace: got %+v, %v", got, err)
	}
}
