package vfs_test

import (
	"strings"
	"testing"

	"agentbox/internal/driver/wasm/vfs"
)

// TestWhatIsReadAsAWholeIsHeldOnce: memory for it is made once, and for what a source only says that it holds no more than a bound.
func TestWhatIsReadAsAWholeIsHeldOnce(t *testing.T) {
	d := &disk{}
	whole := strings.Repeat("0123456789abcdef", 3<<16)
	lies := d.file("lies", "abc")
	lies.Size = 1 << 40
	d.folders = map[string][]vfs.Found{".": {d.file("whole", whole), lies}}
	f, at := made(t, limits, vfs.Options{Source: d})
	h, err := f.Open(at, "whole", vfs.Read, 0)
	want(t, err, nil)
	all, err := h.ReadAll()
	want(t, err, nil)
	if string(all) != whole || cap(all) != len(all) {
		t.Errorf("got %d bytes in memory for %d, want %d", len(all), cap(all), len(whole))
	}
	want(t, h.Close(), nil)
	h, err = f.Open(at, "lies", vfs.Read, 0)
	want(t, err, nil)
	if all, err = h.ReadAll(); err == nil {
		t.Errorf("a file that holds less than its source says: got %d bytes", len(all))
	}
	want(t, h.Close(), nil)
}
