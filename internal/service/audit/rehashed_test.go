package audit_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// unproven returns the transcript of a recorded run without its proof, as somebody has it who makes every hash anew.
func (a *archive) unproven() *run.Transcript {
	t := a.transcript()
	t.Proof = nil
	for i := range t.Events {
		t.Events[i] = event.Clone(t.Events[i])
	}
	return t
}

// chain makes the hashes of the events from an index on anew, each with that of the one before it in its stream, but for the first one's.
func chain(events []event.Event, from int) {
	for i := from; i < len(events); i++ {
		e := &events[i]
		for j := i - 1; j >= 0 && i > from; j-- {
			if events[j].Stream == e.Stream {
				if events[j].StreamSeq+1 == e.StreamSeq {
					e.Chain.Prev = events[j].Chain.Hash
				}
				break
			}
		}
		e.Chain.Hash = journal.HashOf(e)
	}
}

// A transcript whose hashes were made anew after it was changed still has to be one chain of one run.
func TestAttestRefusesWhatWasHashedAnew(t *testing.T) {
	a := recorded(t)
	whole := a.unproven()
	chain(whole.Events, 0)
	if got, err := audit.Attest(whole); err != nil || got.Whole != len(whole.Events) {
		t.Fatalf("unchanged: got %+v, %v", got, err)
	}
	links := 0
	for i := range whole.Events {
		for name, change := range map[string]func(*event.Event){
			"another run":       func(e *event.Event) { e.Run = otherRun },
			"another workspace": func(e *event.Event) { e.Workspace = "ws_other" },
		} {
			told := a.unproven()
			change(&told.Events[i])
			chain(told.Events, i)
			if got, err := audit.Attest(told); !forged(err) {
				t.Errorf("event %d of %s: got %+v, %v", i, name, got, err)
			}
		}
		for j := i - 1; j >= 0; j-- {
			if told := a.unproven(); told.Events[j].Stream == told.Events[i].Stream {
				told.Events[i].Seq = told.Events[j].Seq
				chain(told.Events, i)
				if got, err := audit.Attest(told); !forged(err) {
					t.Errorf("event %d at the place of event %d in the log: got %+v, %v", i, j, got, err)
				}
				told = a.unproven()
				told.Events[i].StreamSeq = told.Events[j].StreamSeq
				chain(told.Events, i)
				if got, err := audit.Attest(told); !forged(err) {
					t.Errorf("event %d at the place of event %d in its stream: got %+v, %v", i, j, got, err)
				}
				break
			}
		}
		told := a.unproven()
		told.Events[i].Chain.Prev = event.DigestOf([]byte("another"))
		chain(told.Events, i)
		follows := false
		for j := range i {
			follows = follows || told.Events[j].Stream == told.Events[i].Stream && told.Events[j].StreamSeq+1 == told.Events[i].StreamSeq
		}
		if got, err := audit.Attest(told); forged(err) != follows {
			t.Errorf("event %d is chained to another one: got %+v, %v", i, got, err)
		}
		if follows {
			links++
		}
	}
	if links == 0 {
		t.Error("no event of the transcript follows another one in its stream")
	}
	told := a.unproven()
	told.Events[3].Redaction = event.RedactFull // it says so, and has its data all the same
	if got, err := audit.Attest(told); err != nil || got.Whole != len(told.Events) {
		t.Errorf("an event that says it was redacted: got %+v, %v", got, err)
	}
}

// An event that does not fit to those before it is refused, also where a later event came without its data and nothing is compared any
// more.
func TestAttestRefusesWhatCannotBeFolded(t *testing.T) {
	a := newArchive(t)
	nothing, err := json.Marshal(run.Message{ProtocolVersion: run.Protocol})
	a.must(err)
	a.append(workroom, told, run.EventCreated, run.Created{Run: told, Input: run.Input{Digest: event.DigestOf(nothing)}})
	a.append(workroom, told, run.EventSucceeded, run.Ended{Index: 3})
	a.append(workroom, told, run.EventStarted, run.Started{Run: told})
	events, err := a.log.Read(t.Context(), journal.Query{Workspace: ws, Run: told, Limit: 10})
	a.must(err)
	events[2].Data, events[2].Chain.Salt = nil, nil
	doc := run.Run{ID: told, Workspace: ws, Operations: []run.Progress{}}
	if got, err := audit.Attest(&run.Transcript{Header: run.TranscriptHeader{Run: doc}, Events: events}); !forged(err) ||
		!strings.Contains(err.Error(), "event 2 does not fit") {
		t.Errorf("got %+v, %v", got, err)
	}

	b := newArchive(t)
	b.append(workroom, told, run.EventCreated, run.Created{Run: told})
	b.append(workroom, told, run.EventStarted, map[string]any{"snapshot": 7})
	events, err = b.log.Read(t.Context(), journal.Query{Workspace: ws, Run: told, Limit: 10})
	b.must(err)
	events[0].Data, events[0].Chain.Salt = nil, nil
	if got, err := audit.Attest(&run.Transcript{Header: run.TranscriptHeader{Run: doc}, Events: events}); !forged(err) {
		t.Errorf("a start that cannot be read, where no files are told: got %+v, %v", got, err)
	}
}

// No proof comes out of another log than the one that was signed, and what is wrong with a checkpoint is told apart.
func TestNoProofOutOfAnotherLog(t *testing.T) {
	a, b := recorded(t), newArchive(t)
	for range 15 {
		b.append(workroom, otherRun, "note.written", map[string]string{"text": "another log"})
	}
	b.sign()
	a.must(a.trees.WriteHashes(t.Context(), ws, 0, nil))
	strange := audit.NewProver(b.log, a.trees, a.prover.PublicKey())
	proof, err := strange.Consistency(t.Context(), ws, 3)
	if fault.CodeOf(err) != "log_replaced" {
		t.Errorf("consistency: got %+v, %v", proof, err)
	}
	if got, err := strange.EvidenceAt(t.Context(), ws, 1); fault.CodeOf(err) != "log_replaced" {
		t.Errorf("an event: got %+v, %v", got, err)
	}
	foreign, err := b.prover.Checkpoint(t.Context(), ws)
	a.must(err)
	a.must(a.trees.Keep(t.Context(), "ws_third", []byte(foreign.Note)))
	if _, err := a.prover.Checkpoint(t.Context(), "ws_third"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("signed by another: %v", err)
	}
	own, err := a.prover.Checkpoint(t.Context(), ws)
	a.must(err)
	a.must(a.trees.Keep(t.Context(), "ws_third", []byte(own.Note)))
	if _, err := a.prover.Checkpoint(t.Context(), "ws_third"); fault.KindOf(err) != fault.Internal {
		t.Errorf("of another workspace: %v", err)
	}
}

// liar is a log that tells another hash of each event than it has, or none at all.
type liar struct {
	journal.Journal
	fails error
}

func (l liar) Get(ctx context.Context, ws id.Workspace, which id.Event) (event.Event, error) {
	e, err := l.Journal.Get(ctx, ws, which)
	e.Chain.Hash = event.DigestOf([]byte("another"))
	return e, err
}

func (l liar) Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) ([]event.Digest, error) {
	if l.fails != nil {
		return nil, l.fails
	}
	return journal.Hashes(ctx, l.Journal, ws, from, limit)
}

// Where no proof comes out of the stored tree and the log neither, the error is the log's; and a log that has grown since proves what was
// signed.
func TestWhatTheLogSaysOfALostTree(t *testing.T) {
	a := recorded(t)
	first, err := a.log.Read(t.Context(), journal.Query{Workspace: ws, Limit: 1})
	a.must(err)
	if got, err := audit.NewProver(liar{a.log, nil}, a.trees, a.prover.PublicKey()).Evidence(t.Context(), ws, first[0].ID); !errors.Is(err,
		merkle.ErrProof) {
		t.Errorf("an event with another hash: got %+v, %v", got, err)
	}
	a.must(a.trees.WriteHashes(t.Context(), ws, 0, nil))
	broken := errors.New("broken")
	if got, err := audit.NewProver(liar{a.log, broken}, a.trees, a.prover.PublicKey()).Consistency(t.Context(), ws, 3); !errors.Is(err,
		broken) {
		t.Errorf("a log that cannot be read: got %+v, %v", got, err)
	}
	a.append(workroom, otherRun, "note.written", map[string]string{"text": "later"})
	for _, n := range []int{7, 100} {
		prover := audit.NewProver(paged{a.log, n}, a.trees, a.prover.PublicKey())
		if proof, err := prover.Consistency(t.Context(), ws, 3); err != nil || proof.New != 15 || proof.Check(a.prover.PublicKey()) != nil {
			t.Errorf("a log that has grown, %d hashes at a time: got %+v, %v", n, proof, err)
		}
	}
}

// A header that was signed into a log at another place than it names, or that cannot be read, proves no event.
func TestAHeaderNamesItsPlace(t *testing.T) {
	private, key, err := merkle.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, _, err := private.Signer()
	if err != nil {
		t.Fatal(err)
	}
	for header, holds := range map[string]bool{
		`{"workspace_id":"ws_dev","seq":1,"event_id":"evt_1"}`: true, `{"workspace_id":"ws_other","seq":1,"event_id":"evt_1"}`: false,
		`{"workspace_id":"ws_dev","seq":2,"event_id":"evt_1"}`: false, `{"workspace_id":"ws_dev","seq":1,"event_id":7}`: false,
	} {
		hash := event.DigestOf([]byte(header))
		leaf := merkle.LeafHash(1, hash)
		signed, err := merkle.Checkpoint{Origin: merkle.OriginOf(key.Name(), ws), Size: 1, Root: leaf}.Sign(signer)
		if err != nil {
			t.Fatal(err)
		}
		e := audit.Evidence{Header: header, Proof: merkle.Inclusion{Seq: 1, EventHash: hash, Record: string(merkle.LeafOf(1, hash)),
			Hashes: []string{}, Checkpoint: string(signed), PublicKey: key}}
		if got, err := e.Check(key); (err == nil) != holds || err != nil && fault.CodeOf(err) != merkle.ErrProof.Code {
			t.Errorf("%s: got %+v, %v", header, got, err)
		}
	}
}
