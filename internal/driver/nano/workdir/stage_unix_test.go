//go:build unix

package workdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentbox/internal/userland/vfs"
)

// TestNamesThatAreTaken holds what code can do by taking the names of stages: at most maxStages are tried, and the error says what to do.
func TestNamesThatAreTaken(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, 1<<20, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	change := []vfs.Change{{Op: vfs.WriteFile, Path: "x", Mode: 0o644, Content: [][]byte{[]byte("x")}, Size: 1}}
	for n := range maxStages {
		if err := f.Apply(change, "", nil); err != nil {
			t.Fatalf("with %d names taken: %v", n, err)
		}
		if err := os.Mkdir(filepath.Join(dir, stageName(n)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Apply(change, "", nil); err == nil || !strings.Contains(err.Error(), "remove them") {
		t.Errorf("with all of them taken: %v", err)
	}
}

// TestAStageIsTheSpacesOwn holds that the space's code can remove the remains of a crash in any tier.
func TestAStageIsTheSpacesOwn(t *testing.T) {
	if os.Geteuid() != 0 || !hasOwners {
		t.Skip("only root gives files away")
	}
	const uid = 12345
	dir := t.TempDir()
	f, err := Open(dir, 1<<20, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a := &applier{folder: f, owner: &Owner{uid, uid}, slots: map[int]string{}}
	if err := a.stage(""); err != nil {
		t.Fatal(err)
	}
	if err := a.fill("f1", vfs.Change{Mode: 0o644, Content: [][]byte{[]byte("half")}, Size: 4}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{stageName(0), stageName(0) + "/f1"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || owner(info) != uid {
			t.Errorf("%s belongs to %d, %v, want %d", name, owner(info), err, uid)
		}
	}
	if err := a.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, stageName(0))); !os.IsNotExist(err) {
		t.Errorf("the stage is left: %v", err)
	}
}

// owner is whom a file belongs to.
func owner(info fs.FileInfo) int {
	if info == nil {
		return -1
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
