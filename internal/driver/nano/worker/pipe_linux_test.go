package worker

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPipesAreWide holds that a frame of content goes through a pipe of a worker at once. Files that are not pipes are left alone.
func TestPipesAreWide(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	widen(r)
	size, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil || size < piece {
		t.Errorf("a pipe holds %d bytes, %v", size, err)
	}
	widen(t)
	if f, err := os.Open(os.DevNull); err != nil {
		t.Error(err)
	} else {
		widen(f)
		_ = f.Close()
	}
}
