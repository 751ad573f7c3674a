// Package merkletest holds every merkle.Store to its contract.
package merkletest

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/merkle"
)

// Run tests a store. Each call of fresh returns a new, empty store. Open opens that store again, with its contents.
func Run(t *testing.T, fresh func(t *testing.T) (open func() merkle.Store)) {
	for name, test := range map[string]func(*testing.T, func() merkle.Store){
		"checkpoints": checkpoints, "hashes": hashes, "abandon": abandon, "a tree that grows": grows,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkpoints(t *testing.T, open func() merkle.Store) {
	ctx := t.Context()
	s := open()
	if _, err := s.Checkpoint(ctx, "ws_a"); !errors.Is(err, merkle.ErrNone) {
		t.Errorf("a checkpoint that was never kept: got %v, want ErrNone", err)
	}
	if found, err := s.Workspaces(ctx); err != nil || len(found) != 0 {
		t.Errorf("workspaces of an empty store: %v, %v", found, err)
	}
	must(t, s.Keep(ctx, "ws_b", []byte("first")))
	must(t, s.Keep(ctx, "ws_b", []byte("second, which is longer")))
	must(t, s.Keep(ctx, "ws_b", []byte("third")))
	must(t, s.Keep(ctx, "ws_a", []byte("other")))
	must(t, s.WriteHashes(ctx, "ws_c", 0, []merkle.Hash{{1}})) // without a checkpoint
	for _, s := range []merkle.Store{s, open()} {
		note, err := s.Checkpoint(ctx, "ws_b")
		if err != nil || string(note) != "third" {
			t.Errorf("got %q, %v, want the last that was kept", note, err)
		}
		found, err := s.Workspaces(ctx)
		if err != nil || !slices.Equal(found, []id.Workspace{"ws_a", "ws_b"}) {
			t.Errorf("workspaces %v, %v", found, err)
		}
	}
}

func hashes(t *testing.T, open func() merkle.Store) {
	ctx := t.Context()
	s := open()
	if n, err := s.Stored(ctx, "ws_a"); err != nil || n != 0 {
		t.Errorf("stored %d, %v, want none", n, err)
	}
	must(t, s.WriteHashes(ctx, "ws_a", 0, []merkle.Hash{{1}, {2}, {3}, {4}}))
	must(t, s.WriteHashes(ctx, "ws_a", 4, []merkle.Hash{{5}}))
	must(t, s.WriteHashes(ctx, "ws_a", 2, []merkle.Hash{{33}, {44}})) // drops what lies behind
	for _, s := range []merkle.Store{s, open()} {
		if n, err := s.Stored(ctx, "ws_a"); err != nil || n != 4 {
			t.Errorf("stored %d, %v, want 4", n, err)
		}
		got, err := s.ReadHashes(ctx, "ws_a", []int64{0, 1, 3, 2, 3})
		if err != nil || !slices.Equal(got, []merkle.Hash{{1}, {2}, {44}, {33}, {44}}) {
			t.Errorf("got %v, %v", got, err)
		}
		if _, err := s.ReadHashes(ctx, "ws_a", []int64{4}); err == nil {
			t.Error("a hash was read that is not there")
		}
		if n, err := s.Stored(ctx, "ws_b"); err != nil || n != 0 {
			t.Errorf("another workspace has %d hashes, %v", n, err)
		}
	}
	if err := s.WriteHashes(ctx, "ws_a", 6, []merkle.Hash{{7}}); err == nil {
		t.Error("a gap was left")
	}
	must(t, s.WriteHashes(ctx, "ws_a", 1, nil))
	if n, err := s.Stored(ctx, "ws_a"); err != nil || n != 1 {
		t.Errorf("stored %d, %v, want 1: writing nothing drops the rest", n, err)
	}
}

func abandon(t *testing.T, open func() merkle.Store) {
	ctx := t.Context()
	s := open()
	if err := s.Abandon(ctx, "ws_a", "because"); !errors.Is(err, merkle.ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
	must(t, s.Keep(ctx, "ws_a", []byte("note")))
	must(t, s.WriteHashes(ctx, "ws_a", 0, []merkle.Hash{{1}}))
	must(t, s.Abandon(ctx, "ws_a", "because"))
	for _, s := range []merkle.Store{s, open()} {
		if _, err := s.Checkpoint(ctx, "ws_a"); !errors.Is(err, merkle.ErrNone) {
			t.Errorf("got %v, want ErrNone", err)
		}
		if n, err := s.Stored(ctx, "ws_a"); err != nil || n != 0 {
			t.Errorf("stored %d, %v, want none", n, err)
		}
	}
	must(t, s.Keep(ctx, "ws_a", []byte("anew")))
	if note, err := s.Checkpoint(ctx, "ws_a"); err != nil || !bytes.Equal(note, []byte("anew")) {
		t.Errorf("got %q, %v", note, err)
	}
}

// grows builds a tree leaf by leaf through an Edge that is read from the store each time, and compares it with the one of package tlog.
func grows(t *testing.T, open func() merkle.Store) {
	ctx := t.Context()
	s := open()
	var stored []merkle.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]merkle.Hash, error) {
		out := make([]merkle.Hash, len(indexes))
		for i, n := range indexes {
			out[i] = stored[n]
		}
		return out, nil
	})
	for n := range int64(70) {
		want, err := tlog.TreeHash(n, reader)
		must(t, err)
		got, err := merkle.RootAt(ctx, s, "ws_a", uint64(n))
		must(t, err)
		edge, err := merkle.EdgeAt(ctx, s, "ws_a", uint64(n))
		must(t, err)
		if got != want || edge.Root() != want || edge.Size() != uint64(n) {
			t.Fatalf("size %d: root %s, edge of %d %s, want %s", n, got, edge.Size(), edge.Root(), want)
		}
		leaf := merkle.Hash{byte(n), 7}
		more, err := tlog.StoredHashesForRecordHash(n, leaf, reader)
		must(t, err)
		added := edge.Add(leaf, nil)
		if !slices.Equal(added, more) {
			t.Fatalf("size %d: got %v, want %v", n, added, more)
		}
		must(t, s.WriteHashes(ctx, "ws_a", tlog.StoredHashCount(n), added))
		stored = append(stored, more...)
	}
}
