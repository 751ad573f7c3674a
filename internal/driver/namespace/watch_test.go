//go:build linux

package namespace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"x", "a/x", "a/b/x"} {
		if err := os.WriteFile(filepath.Join(dir, f), make([]byte, 8192), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, _, err := measure(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	// Neither a link to something large nor a hole counts.
	if err := os.Symlink("/usr", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "x"), 1<<30); err != nil {
		t.Fatal(err)
	}
	bytes, files, err := measure(t.Context(), dir)
	if err != nil || files != 6 || bytes < 3*8192 || bytes > before+64<<10 {
		t.Errorf("got %d bytes in %d files, %v, want about %d in 6", bytes, files, err, before)
	}
}

func TestMeasureDepth(t *testing.T) {
	for folders, want := range map[int]error{deepest: nil, deepest + 1: errTooDeep} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", folders)), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, _, err := measure(t.Context(), dir); !errors.Is(err, want) {
			t.Errorf("%d folders below one another: got %v, want %v", folders, err, want)
		}
	}
}

// TestMeasureSwap replaces a folder by a link to the host's root while it is measured: the walk never follows it.
func TestMeasureSwap(t *testing.T) {
	dir := t.TempDir()
	at, aside := filepath.Join(dir, "at"), filepath.Join(dir, "aside")
	if err := os.MkdirAll(filepath.Join(at, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", aside); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, aside, unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 2000 {
		if _, files, err := measure(t.Context(), dir); err != nil || files > 4 {
			t.Errorf("got %d files, %v, want at most 4", files, err)
			break
		}
	}
	close(stop)
	<-stopped
}
