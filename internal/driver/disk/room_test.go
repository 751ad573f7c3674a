package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/freespace"
)

// TestRoom is about both sides of the edge, and about a disk that says nothing.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		free  uint64
		known bool
		want  error
	}{{MinRoom, true, nil}, {MinRoom - 1, true, space.ErrDiskFull}, {0, true, space.ErrDiskFull}, {0, false, nil}} {
		if err := enough("/data/content", c.free, c.known); !errors.Is(err, c.want) || err != nil &&
			(!strings.Contains(err.Error(), "/data/content has ") || !strings.Contains(err.Error(), "at least 1024 KiB are needed")) {
			t.Errorf("%d bytes are free, known %t: %v, want %v", c.free, c.known, err, c.want)
		}
	}
	if _, known := freespace.Free(t.TempDir()); !known {
		t.Error("the disk does not say how much is free")
	}
}

// TestAFullDiskIsNamed is about a write for which the disk had no room.
func TestAFullDiskIsNamed(t *testing.T) {
	dir := t.TempDir()
	err := stored(&fs.PathError{Op: "write", Path: filepath.Join(dir, "content"), Err: syscall.ENOSPC})
	if !errors.Is(err, space.ErrDiskFull) || !strings.Contains(err.Error(), "the disk that holds "+dir+" is full: it has ") ||
		!strings.Contains(err.Error(), " KiB free") {
		t.Errorf("got %v, want the folder and what is free", err)
	}
	if err := stored(syscall.EDQUOT); !errors.Is(err, space.ErrDiskFull) || !strings.Contains(err.Error(), "the data directory") {
		t.Errorf("without a path: got %v", err)
	}
	for _, no := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		err := beneath.Refusal(&fs.PathError{Op: "write", Path: filepath.Join(dir, "a"), Err: no}, "sub/a")
		if !errors.Is(err, space.ErrDiskFull) || strings.Contains(err.Error(), dir) ||
			!strings.Contains(err.Error(), `the disk that holds the data directory is full; "sub/a" cannot be written`) {
			t.Errorf("a file of a space: got %v, want the file, and not where the host keeps it", err)
		}
	}
}

// TestTheDiskLimitIsSaid is about a write of a space that its limit has no room for, and about the last one that fits.
func TestTheDiskLimitIsSaid(t *testing.T) {
	f := &Files{at: &place{home: t.TempDir()}}
	if err := os.MkdirAll(f.at.path(filesFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	empty, err := f.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.limits.DiskBytes = empty.Bytes + 100
	if _, err := f.reserve(t.Context(), 100); err != nil { // it stays under way
		t.Fatalf("100 of 100 bytes that are left: got %v", err)
	}
	_, err = f.reserve(t.Context(), 1)
	want := fmt.Sprintf("occupy %d bytes; 1 more would exceed its disk limit of %d", f.limits.DiskBytes, f.limits.DiskBytes)
	if e, ok := errors.AsType[*fault.Error](err); !ok || !errors.Is(err, space.ErrQuota) ||
		!strings.Contains(e.Msg, want) ||
		!strings.Contains(e.Suggestion, "a space with a larger disk_bytes") {
		t.Errorf("one more byte: got %+v", err)
	}
}
