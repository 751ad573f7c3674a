//go:build linux

package platter_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/testkit/platter"
)

// traced names the folder in which a child process of the test works.
const traced = "AGENTBOX_TEST_TRACED"

func TestMain(m *testing.M) {
	dir := os.Getenv(traced)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := work(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work does to files what drivers do.
func work(dir string) error {
	top, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, "x"))
	if err != nil {
		return err
	}
	step := func(more ...error) { err = errors.Join(append(more, err)...) }
	_, wrote := file.WriteAt([]byte("onetwo"), 2)
	_, again := file.Write([]byte("abc"))
	step(os.Mkdir(filepath.Join(dir, "a"), 0o700), top.MkdirAll("a/b", 0o700), wrote, again, file.Sync())
	fmt.Println("said so")
	step(os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "a", "z")), file.Truncate(7), unix.Fallocate(int(file.Fd()), 0, 0, 20))
	step(os.WriteFile(filepath.Join(dir, "y"), []byte("gone"), 0o600), top.Remove("y"), os.Mkdir(filepath.Join(dir, "c"), 0o700),
		os.Remove(filepath.Join(dir, "c")))
	step(os.Link(filepath.Join(dir, "a", "z"), filepath.Join(dir, "linked")))
	_, later := file.WriteAt([]byte("both"), 0)
	step(later)
	folder, opened := os.Open(filepath.Join(dir, "a"))
	step(opened, folder.Sync(), folder.Close(), file.Close(), top.Close())
	step(os.WriteFile(filepath.Join(filepath.Dir(dir), "elsewhere"), []byte("x"), 0o600))
	return err
}

// The record of a program has all its calls on the files of a folder.
func TestTrace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), traced+"="+dir)
	child.Stderr = os.Stderr
	disk := platter.Load(nil)
	if err := platter.Trace(child, dir, disk); err != nil {
		t.Fatal(err)
	}
	m := at(disk, -1)
	want, err := platter.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Killed(); got.Digest() != want.Digest() {
		t.Errorf("recorded %q, and there is %q", written(got), written(want))
	}
	if got := written(m.Cut()); got != "" {
		t.Errorf("after a power cut there is %q, want nothing: the top was not synced", got)
	}
	if !slices.Equal(m.Marks, []any{"said so"}) {
		t.Errorf("the marks are %v", m.Marks)
	}
}
