package audit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// An evidence that was put together from parts that each are right, or whose data were changed, does not hold.
func TestEvidenceThatWasPutTogether(t *testing.T) {
	a := recorded(t)
	evidence := func(seq uint64) audit.Evidence {
		t.Helper()
		e, err := a.prover.EvidenceAt(t.Context(), ws, seq)
		a.must(err)
		return e
	}
	key := a.prover.PublicKey()
	if proven, err := evidence(6).Check(key); err != nil || !proven.HasData || proven.Seq != 6 || proven.Workspace != ws ||
		proven.Checkpoint.Size != 15 {
		t.Fatalf("as it is: %+v, %v", proven, err)
	}
	// The same log in another workspace, signed with the same key.
	draft := journaltest.Of(journaltest.OtherWorkspace, journaltest.Draft("x"))
	_, err := a.log.Append(t.Context(), journaltest.Batch(draft))
	a.must(err)
	a.sign()
	foreign, err := a.prover.EvidenceAt(t.Context(), journaltest.OtherWorkspace, 1)
	a.must(err)
	for name, change := range map[string]func(e *audit.Evidence){
		"the data":                    func(e *audit.Evidence) { e.Data = []byte(`{}`) },
		"the salt":                    func(e *audit.Evidence) { e.Salt = slices.Clone(e.Salt); e.Salt[0] ^= 1 },
		"the salt is missing":         func(e *audit.Evidence) { e.Salt = nil },
		"the header of another event": func(e *audit.Evidence) { o := evidence(7); e.Header, e.Salt, e.Data = o.Header, o.Salt, o.Data },
		"the proof of another event":  func(e *audit.Evidence) { e.Proof = evidence(7).Proof },
		"the place of another event":  func(e *audit.Evidence) { e.Header = strings.Replace(e.Header, `"seq":6`, `"seq":7`, 1) },
		"the hash of another event":   func(e *audit.Evidence) { e.Proof.EventHash = evidence(7).Proof.EventHash },
		"the place in the proof":      func(e *audit.Evidence) { e.Proof.Seq = 7 },
		"the proof of another log":    func(e *audit.Evidence) { e.Proof = foreign.Proof },
		"a truncated proof":           func(e *audit.Evidence) { e.Proof.Hashes = e.Proof.Hashes[1:] },
		"no proof":                    func(e *audit.Evidence) { e.Proof = merkle.Inclusion{} },
		"a header that is not JSON":   func(e *audit.Evidence) { e.Header = "{" },
	} {
		e := evidence(6)
		change(&e)
		if proven, err := e.Check(key); err == nil || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s was changed: %+v, %v", name, proven, err)
		}
	}
	// Without its data it proves the rest, and does not say that it has them.
	e := evidence(6)
	e.Salt, e.Data = nil, nil
	if proven, err := e.Check(key); err != nil || proven.HasData {
		t.Errorf("without data: %+v, %v", proven, err)
	}
	a.redact(6)
	a.sign()
	e = evidence(6)
	if proven, err := e.Check(key); err != nil || proven.HasData || len(e.Data) != 0 || len(e.Salt) != 0 {
		t.Errorf("redacted: %+v, %v, data %s", proven, err, e.Data)
	}
}

// Events are proven from the first to the last, and no others.
func TestWhichEventsAreProven(t *testing.T) {
	a := recorded(t)
	for seq, want := range map[uint64]error{0: journal.ErrNotFound, 1: nil, 15: nil, 16: journal.ErrNotFound, 1 << 62: journal.ErrNotFound} {
		if e, err := a.prover.EvidenceAt(t.Context(), ws, seq); !errors.Is(err, want) || err == nil && e.Proof.Seq != seq {
			t.Errorf("event %d: %+v, %v, want %v", seq, e.Proof, err, want)
		}
	}
	if _, err := a.prover.Evidence(t.Context(), ws, "evt_none"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an event that is not there: %v", err)
	}
	if _, err := a.prover.Evidence(t.Context(), "ws_none", "evt_none"); !errors.Is(err, merkle.ErrNone) {
		t.Errorf("a workspace that is not there: %v", err)
	}
	broken := audit.NewProver(&reads{Journal: a.log, failAt: 1}, a.trees, a.prover.PublicKey())
	if _, err := broken.EvidenceAt(t.Context(), ws, 1); !errors.Is(err, errRead) {
		t.Errorf("a log that cannot be read: %v", err)
	}
}

// Consistency is proven from each size up to that of the checkpoint, from a stored tree, from one that was cut, and from none.
func TestConsistencyFromEachSize(t *testing.T) {
	a := recorded(t)
	for _, hashes := range []int64{-1, 9, 0} {
		if hashes >= 0 {
			a.must(a.trees.WriteHashes(t.Context(), ws, hashes, nil))
		}
		for old := range uint64(16) {
			proof, err := a.prover.Consistency(t.Context(), ws, old)
			if err != nil || proof.Check(a.prover.PublicKey()) != nil || proof.Old != old || proof.New != 15 {
				t.Errorf("from %d with %d hashes: %+v, %v", old, hashes, proof, err)
			}
		}
		for _, old := range []uint64{16, 17, 1 << 63} {
			if proof, err := a.prover.Consistency(t.Context(), ws, old); fault.CodeOf(err) != "size_invalid" || !strings.Contains(err.Error(),
				"15") {
				t.Errorf("from %d: %+v, %v", old, proof, err)
			}
		}
	}
	if _, err := a.prover.Consistency(t.Context(), "ws_none", 0); !errors.Is(err, merkle.ErrNone) {
		t.Errorf("a workspace that is not there: %v", err)
	}
}

// A checkpoint that stands in the place of another workspace's is none, and nor is one of another key.
func TestACheckpointInTheWrongPlace(t *testing.T) {
	a, b := recorded(t), recorded(t)
	draft := journaltest.Of(journaltest.OtherWorkspace, journaltest.Draft("x"))
	_, err := a.log.Append(t.Context(), journaltest.Batch(draft))
	a.must(err)
	a.sign()
	own, err := a.prover.Checkpoint(t.Context(), ws)
	a.must(err)
	if own.PublicKey != a.prover.PublicKey() || !strings.Contains(own.Note, "/"+string(ws)+"\n15\n") {
		t.Errorf("its own: %+v", own)
	}
	a.must(a.trees.Keep(t.Context(), journaltest.OtherWorkspace, []byte(own.Note)))
	foreign, err := b.prover.Checkpoint(t.Context(), ws)
	a.must(err)
	a.must(a.trees.Keep(t.Context(), "ws_third", []byte(foreign.Note)))
	const code = "checkpoint_invalid"
	for _, in := range []id.Workspace{journaltest.OtherWorkspace, "ws_third"} {
		if got, err := a.prover.Checkpoint(t.Context(), in); fault.CodeOf(err) != code {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
		if _, err := a.prover.EvidenceAt(t.Context(), in, 1); fault.CodeOf(err) != code {
			t.Errorf("%s: an event: %v", in, err)
		}
		if _, err := a.prover.Evidence(t.Context(), in, "evt_x"); fault.CodeOf(err) != code {
			t.Errorf("%s: an event by its id: %v", in, err)
		}
		if _, err := a.prover.Consistency(t.Context(), in, 0); fault.CodeOf(err) != code {
			t.Errorf("%s: consistency: %v", in, err)
		}
		if proof, err := a.prover.ProveRun(t.Context(), in, told); fault.CodeOf(err) != code || proof != nil {
			t.Errorf("%s: a run: %+v, %v", in, proof, err)
		}
	}
}

// A tree that is made again from the log is made of all pages of its hashes.
func TestATreeIsMadeFromPagesOfHashes(t *testing.T) {
	a := recorded(t)
	want := a.transcript().Proof
	a.must(a.trees.WriteHashes(t.Context(), ws, 0, nil))
	for _, n := range []int{1, 7, 14, 15, 16} {
		got, err := audit.NewProver(paged{a.log, n}, a.trees, a.prover.PublicKey()).ProveRun(t.Context(), ws, told)
		if err != nil || len(got.Inclusions) != len(want.Inclusions) {
			t.Fatalf("%d at a time: %+v, %v", n, got, err)
		}
		for i := range got.Inclusions {
			if !slices.Equal(got.Inclusions[i].Hashes, want.Inclusions[i].Hashes) {
				t.Errorf("%d at a time: event %d has another proof", n, got.Inclusions[i].Seq)
			}
		}
	}
}

// paged is a log that tells so many hashes at a time.
type paged struct {
	journal.Journal
	n int
}

func (p paged) Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) ([]event.Digest, error) {
	return journal.Hashes(ctx, p.Journal, ws, from, min(limit, p.n))
}
