//go:build unix

package worker

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestPolled: a read of a worker's pipe can end by a deadline, so the runtime polls it and no thread blocks on it. A source that is not
// a pipe is read as before.
func TestPolled(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(ends[0]), "in"), os.NewFile(uintptr(ends[1]), "out")
	defer w.Close()
	defer r.Close()
	in, ok := Polled(r).(*os.File)
	if !ok {
		t.Fatal("a pipe is not a file any more")
	}
	if err := in.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatalf("nobody polls it: %v", err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read after the deadline: got %v", err)
	}
	if err := in.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if n, err := in.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("got %d bytes and %v, want what was written", n, err)
	}
	plain, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if Polled(plain) != plain {
		t.Error("a file was changed")
	}
	if b := new(bytes.Buffer); Polled(b) != b {
		t.Error("a buffer was changed")
	}
}
