package audit_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// The proof of a run has every event of it that the last checkpoint covers, in order, and no other; there is none before anything was
// signed.
func TestProveRun(t *testing.T) {
	a := newArchive(t)
	a.record()
	if proof, err := a.prover.ProveRun(t.Context(), ws, told); proof != nil || err != nil {
		t.Fatalf("before anything was signed: %+v, %v", proof, err)
	}
	a.sign()
	places := func(r id.Run) []uint64 {
		t.Helper()
		proof, err := a.prover.ProveRun(t.Context(), ws, r)
		a.must(err)
		all := []uint64{}
		for _, i := range proof.Inclusions {
			all = append(all, i.Seq)
		}
		return all
	}
	want := []uint64{2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14}
	if got := places(told); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := places("run_none"); len(got) != 0 {
		t.Errorf("of a run without events: %v", got)
	}
	if proof, err := a.prover.ProveRun(t.Context(), ws, "run_none"); err != nil || proof.Inclusions == nil {
		t.Errorf("of a run without events: %+v, %v, want an empty list", proof, err)
	}
	// Events after the checkpoint are not proven, up to the very last one.
	a.append(workroom, told, run.EventForgotten, run.Forgotten{Run: told})
	a.append(workroom, told, run.EventForgotten, run.Forgotten{Run: told})
	if got := places(told); !slices.Equal(got, want) {
		t.Errorf("behind the checkpoint: got %v, want %v", got, want)
	}
	a.sign()
	if got := places(told); !slices.Equal(got, append(want, 16, 17)) {
		t.Errorf("under the next checkpoint: got %v", got)
	}
}

// A run of more events than are read at a time is proven to its end, on both sides of the edge of a page.
func TestProveRunOfManyPages(t *testing.T) {
	for _, n := range []int{journal.MaxRead - 1, journal.MaxRead, journal.MaxRead + 1, 2*journal.MaxRead + 1} {
		a := newArchive(t)
		var drafts []event.Draft
		for i := range n {
			draft := event.New("note.written", event.Origin{Principal: journaltest.User}, ws, workroom, journaltest.Note{N: i}).In(told, "")
			drafts = append(drafts, draft)
		}
		for chunk := range slices.Chunk(drafts, 500) {
			_, err := a.log.Append(t.Context(), journaltest.Batch(chunk...))
			a.must(err)
		}
		a.sign()
		counting := &reads{Journal: a.log}
		proof, err := audit.NewProver(counting, fewHashes{a.trees}, a.prover.PublicKey()).ProveRun(t.Context(), ws, told)
		if err != nil || len(proof.Inclusions) != n || counting.n != n/journal.MaxRead+1 {
			t.Fatalf("%d events: %d are proven in %d reads, %v", n, len(proof.Inclusions), counting.n, err)
		}
		for i, inclusion := range proof.Inclusions {
			if inclusion.Seq != uint64(i)+1 {
				t.Fatalf("%d events: event %d stands in place %d", n, inclusion.Seq, i)
			}
		}
	}
}

// fewHashes is a store as it is; its type hides what else the store can do.
type fewHashes struct{ merkle.Store }

// reads counts how often a log is read, and fails from a read on.
type reads struct {
	journal.Journal
	n, failAt int
}

var errRead = errors.New("the log cannot be read")

func (r *reads) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	if r.n++; r.failAt > 0 && r.n >= r.failAt {
		return nil, errRead
	}
	return r.Journal.Read(ctx, q)
}

// Nothing is proven from a tree that was cut or changed: the proofs come out of the log then, and are the same. Where the log is not the
// one that was signed, there is none.
func TestProveRunFromATruncatedTree(t *testing.T) {
	a := recorded(t)
	want := a.transcript().Proof
	for _, size := range []int64{0, 1, 7, 20} {
		a.must(a.trees.WriteHashes(t.Context(), ws, size, nil))
		got, err := a.prover.ProveRun(t.Context(), ws, told)
		if err != nil || got.Checkpoint != want.Checkpoint || !slices.EqualFunc(got.Inclusions, want.Inclusions, func(x, y run.Inclusion) bool {
			return x.Seq == y.Seq && slices.Equal(x.Hashes, y.Hashes)
		}) {
			t.Errorf("%d hashes are left: %+v, %v", size, got, err)
		}
		a.must(a.signer.Recover(t.Context()))
		stored, err := a.trees.Stored(t.Context(), ws)
		a.must(err)
		if stored == size {
			t.Fatalf("%d hashes are all", size)
		}
	}
	bad := make([]merkle.Hash, 26)
	a.must(a.trees.WriteHashes(t.Context(), ws, 0, bad))
	if got, err := a.prover.ProveRun(t.Context(), ws, told); err != nil || len(got.Inclusions) != 11 {
		t.Errorf("from zeroed hashes: %+v, %v", got, err)
	}
	for _, c := range []struct {
		name string
		log  journal.Journal
		code string
	}{
		{"a log that lost its end", hashesOf{a.log, func(all []event.Digest) []event.Digest { return all[:14] }}, "log_replaced"},
		{"an empty log", hashesOf{a.log, func(all []event.Digest) []event.Digest { return nil }}, "log_replaced"},
		{"another first event", hashesOf{a.log, func(all []event.Digest) []event.Digest { all[0][0] ^= 1; return all }}, "log_replaced"},
		{"a log that cannot be read", &reads{Journal: a.log, failAt: 1}, ""},
	} {
		proof, err := audit.NewProver(c.log, a.trees, a.prover.PublicKey()).ProveRun(t.Context(), ws, told)
		if err == nil || c.code != "" && fault.CodeOf(err) != c.code || c.code == "" && !errors.Is(err, errRead) {
			t.Errorf("%s: got %+v, %v, want %q", c.name, proof, err, c.code)
		}
	}
	// The second read of the log fails too.
	if _, err := audit.NewProver(&reads{Journal: a.log, failAt: 2}, a.trees, a.prover.PublicKey()).ProveRun(t.Context(), ws,
		told); !errors.Is(err, errRead) {
		t.Errorf("a second read that fails: %v", err)
	}
}

// hashesOf is a log whose hashes are others.
type hashesOf struct {
	journal.Journal
	change func([]event.Digest) []event.Digest
}

func (h hashesOf) Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) ([]event.Digest, error) {
	all, err := journal.Hashes(ctx, h.Journal, ws, 1, journal.MaxHashes)
	if err != nil {
		return nil, err
	}
	all = h.change(all)
	all = all[min(int(from)-1, len(all)):]
	return all[:min(limit, len(all))], nil
}
