package disk_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/driver/disk"
)

// Daemons that share a folder: what one has put is not swept by another before Grace is over, and what one begins to store another one that
// opens the folder leaves alone.
func TestSharedBlobs(t *testing.T) {
	dir, keys := t.TempDir(), keys(t)
	open := func(name string) *disk.Blobs {
		t.Helper()
		b, err := disk.OpenSharedBlobs(t.Context(), dir, name, keys, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	mine := open("a")
	half := filepath.Join(dir, "staging-a", "half")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs := open("b")
	if _, err := os.Lstat(half); err != nil {
		t.Errorf("what another daemon stores is gone: %v", err)
	}
	open("a")
	if _, err := os.Lstat(half); !os.IsNotExist(err) {
		t.Errorf("what this daemon left half stored is there: %v", err)
	}
	ref, err := mine.Put(t.Context(), strings.NewReader("put here"), 100)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ref.Digest.Hex()[:2], ref.Digest.Hex()[2:]+".sealed")
	nothing := func(context.Context, func(event.Digest)) error { return nil }
	survey := func() int64 {
		t.Helper()
		found, err := theirs.Survey(t.Context(), nothing)
		if err != nil {
			t.Fatal(err)
		}
		return found.Freed
	}
	for _, c := range []struct {
		age   time.Duration
		freed int64
	}{{0, 0}, {disk.Grace - time.Minute, 0}, {disk.Grace + time.Minute, 1}} {
		at := time.Now().Add(-c.age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		if got := survey(); got != c.freed {
			t.Errorf("%s after it was put %d are freed, want %d", c.age, got, c.freed)
		}
	}
	// Content that is put again is as new.
	if _, err := theirs.Put(t.Context(), strings.NewReader("put here"), 100); err != nil {
		t.Fatal(err)
	}
	if got := survey(); got != 0 {
		t.Errorf("put again a moment ago, %d are freed", got)
	}
}
