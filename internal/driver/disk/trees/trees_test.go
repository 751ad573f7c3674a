package trees_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/kernel/merkle/merkletest"
)

type clock struct{}

func (clock) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func (clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

func TestConformance(t *testing.T) {
	merkletest.Run(t, func(t *testing.T) func() merkle.Store {
		dir := filepath.Join(t.TempDir(), "proofs")
		return func() merkle.Store { return trees.Open(dir, clock{}) }
	})
}

// Kept files are for the daemon's user alone, and abandoned files stay as evidence.
func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "proofs")
	s := trees.Open(dir, clock{})
	for _, err := range []error{
		s.Keep(t.Context(), "ws_a", []byte("note")), s.WriteHashes(t.Context(), "ws_a", 0, []merkle.Hash{{1}}), s.Abandon(t.Context(), "ws_a",
			"because"),
		s.Keep(t.Context(), "ws_a", []byte("again")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"ws_a/abandoned/20260102T030405.000000Z.checkpoint": "note", "ws_a/abandoned/20260102T030405.000000Z.reason": "because\n",
		"ws_a/checkpoint": "again",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(text) != want {
			t.Errorf("%s: got %q, %v, want %q", name, text, err, want)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := s.Abandon(t.Context(), "ws_a", "within the same microsecond"); err == nil {
		t.Error("evidence was overwritten")
	}
	if err := s.Keep(t.Context(), "ws_../x", nil); err == nil {
		t.Error("a name that leaves the folder was taken")
	}
}
