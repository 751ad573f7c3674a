//go:build linux && !portable

package overlay

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
)

const origin = "spc_01ARZ3NDEKTSV4RRFFQ69G5FAV"

// newHome makes a frozen tree with one file and the home of a space that lies over it.
func newHome(t *testing.T) (home string, b Below) {
	t.Helper()
	dir := t.TempDir()
	probe := filepath.Join(dir, "probe")
	if err := errors.Join(os.Mkdir(probe, 0o700), Probe(probe)); err != nil {
		t.Skipf("this host lets spaces share no files: %v", err)
	}
	home, b = filepath.Join(dir, "home"), Below{Tree: origin, User: probeUser}
	files := filepath.Join(dir, Frozen, origin, Files)
	err := errors.Join(os.MkdirAll(files, 0o755), os.WriteFile(filepath.Join(files, "f"), []byte("shared"), 0o600), os.Mkdir(home, 0o700),
		Lay(home, b))
	for _, p := range []string{files, filepath.Join(files, "f")} {
		err = errors.Join(err, os.Chown(p, probeOwner, probeOwner))
	}
	if err != nil {
		t.Fatal(err)
	}
	return home, b
}

func TestOneOverlayAtATime(t *testing.T) {
	home, b := newHome(t)
	found, ok, err := Find(home)
	if err != nil || !ok || found != b {
		t.Fatalf("found %+v, %v, %v; want %+v", found, ok, err, b)
	}
	layers, err := b.Layers(home)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Mount(layers)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Openat(int(first.Fd()), "files/f", unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Write(fd, []byte("mine"))
		err = errors.Join(err, unix.Close(fd))
	}
	if err != nil {
		t.Fatal(err)
	}
	// Who looks needs not wait, and changes nothing.
	view, err := View(layers)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if err := holds(view, "files/f", "mine"); err != nil {
		t.Error(err)
	}
	if err := unix.Mkdirat(int(view.Fd()), "files/d", 0o700); !errors.Is(err, unix.EROFS) {
		t.Errorf("made in a view: %v, want %v", err, unix.EROFS)
	}
	// The next one waits for the end of the first.
	type mounted struct {
		file *os.File
		err  error
	}
	second := make(chan mounted)
	go func() {
		file, err := Mount(layers)
		second <- mounted{file, err}
	}()
	first.Close()
	got := <-second
	if got.err != nil {
		t.Fatal(got.err)
	}
	defer got.file.Close()
	if err := holds(got.file, "files/f", "mine"); err != nil {
		t.Error(err)
	}
}

func TestWhatLiesBelowIsNamedInOneForm(t *testing.T) {
	home := t.TempDir()
	if _, ok, err := Find(home); ok || err != nil {
		t.Errorf("a space of its own: %v, %v", ok, err)
	}
	for _, text := range []string{"x", "../../etc 5", origin, origin + " five", "/" + origin + " 5"} {
		if err := os.Symlink(text, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := Find(home); ok || fault.CodeOf(err) != "space_damaged" {
			t.Errorf("%q: %v, %v", text, ok, err)
		}
		if err := Unlay(home); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (Below{Tree: origin}).Layers(home); fault.CodeOf(err) != "space_files_missing" {
		t.Errorf("a tree that is not there: %v", err)
	}
}
