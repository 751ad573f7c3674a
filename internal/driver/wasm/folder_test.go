package wasm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/driver/wasm/vfs"
)

// TestNoMoreIsWrittenThanFits takes changes from a worker that keeps to no bound.
func TestNoMoreIsWrittenThanFits(t *testing.T) {
	dir := t.TempDir()
	begin := func(bytes int64) *changes { return &changes{folder: &folder{path: dir, bytes: bytes}} }
	add := func(c *changes, size int64) error {
		return c.Add(vfs.Change{Op: vfs.WriteFile, Path: "f", Size: size}, strings.NewReader(""))
	}
	c := begin(1000)
	if err := errors.Join(add(c, 600), add(c, 400)); err != nil {
		t.Errorf("what fits: %v", err)
	}
	if err := add(c, 1); !errors.Is(err, errOverfull) {
		t.Errorf("a byte more: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old"), make([]byte, 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	c = begin(1000) // it was made smaller
	if err := add(c, 2000); err != nil {
		t.Errorf("what was there: %v", err)
	}
	if err := add(c, 1); !errors.Is(err, errOverfull) {
		t.Errorf("a byte more than there was: got %v", err)
	}
}
