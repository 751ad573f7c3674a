package workdir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentbox/internal/driver/nano/workdir"
	"agentbox/internal/userland/vfs"
)

// folders makes a folder with a secret and, beside it, the folder of an execution.
func folders(t *testing.T) (outside, inside string, f *workdir.Folder) {
	t.Helper()
	dir := t.TempDir()
	outside, inside = filepath.Join(dir, "outside"), filepath.Join(dir, "inside")
	for _, path := range []string{outside, inside} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(outside, "secret"), "secret")
	f, err := workdir.Open(inside, 1<<30, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return outside, inside, f
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// holds checks what a file holds.
func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Fatalf("%s: got %q, %v, want %q", path, got, err, want)
	}
}

// content is a change that writes a file.
func content(path, text string) vfs.Change {
	return vfs.Change{Op: vfs.WriteFile, Path: path, Mode: 0o644, Modified: time.Unix(1e9, 0), Content: [][]byte{[]byte(text)},
		Size: int64(len(text))}
}

func TestChangesAreApplied(t *testing.T) {
	_, inside, f := folders(t)
	write(t, filepath.Join(inside, "old"), "old")
	write(t, filepath.Join(inside, "gone"), "gone")
	sparse := content("d/sparse", "x")
	sparse.Size = 1 << 20
	if err := f.Apply([]vfs.Change{
		{Op: vfs.Remove, Path: "gone"}, {Op: vfs.Take, Path: "old", Slot: 1}, {Op: vfs.MakeDir, Path: "d", Mode: 0o700}, content("d/new", "new"),
		sparse,
		{Op: vfs.Put, Path: "d/moved", Slot: 1}, {Op: vfs.Link, Path: "name", Target: "d/new"}, {Op: vfs.SetMode, Path: "d/moved", Mode: 0o600},
		{Op: vfs.SetTime, Path: "d", Modified: time.Unix(2e9, 0)},
	}, "", nil); err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join(inside, "d", "new"), "new")
	holds(t, filepath.Join(inside, "name"), "new")
	holds(t, filepath.Join(inside, "d", "moved"), "old")
	holds(t, filepath.Join(inside, "d", "sparse"), "x"+strings.Repeat("\x00", 1<<20-1))
	all, err := os.ReadDir(inside)
	if err != nil || len(all) != 2 {
		t.Fatalf("got %v, %v, want d and name: nothing is left of the stage", all, err)
	}
	if info, err := os.Stat(filepath.Join(inside, "d")); err != nil || !info.ModTime().Equal(time.Unix(2e9, 0)) {
		t.Fatalf("got %v, %v", info.ModTime(), err)
	}
	found, err := f.List("d")
	if err != nil || len(found) != 3 {
		t.Fatalf("got %v, %v", found, err)
	}
	p := make([]byte, 10)
	if n, err := f.Read("d/moved", p, 1); string(p[:n]) != "ld" {
		t.Fatalf("got %q, %v", p[:n], err)
	}
}

// TestPathsOfChangesAreHostile tries everything with paths that no honest change has.
func TestPathsOfChangesAreHostile(t *testing.T) {
	outside, inside, f := folders(t)
	write(t, filepath.Join(inside, "file"), "file")
	for _, path := range []string{
		"", ".", "..", "../outside/secret", "/etc/hostname", filepath.Join(outside, "secret"), "a/../../outside/secret", "file/..", "./file",
		"file/", "//file",
		"d//x", "x\x00y", "../outside", "file/x", strings.Repeat("n", 256), strings.Repeat("d/", 5000) + "x",
	} {
		for op := vfs.Remove; op <= vfs.SetMode; op++ {
			c := content(path, "changed")
			c.Op, c.Slot, c.Target = op, 1, "file"
			if path == "." && (op == vfs.SetMode || op == vfs.SetTime) {
				continue
			}
			err := f.Apply([]vfs.Change{c}, "", nil)
			if err == nil && op != vfs.Remove && op != vfs.RemoveDir { // what is not there is gone already
				t.Errorf("op %d of %.60q: want an error", op, path)
			}
			if op == vfs.Link {
				c.Path, c.Target = "new", path
				if err := f.Apply([]vfs.Change{c}, "", nil); err == nil {
					t.Errorf("a name for %.60q: want an error", path)
				}
			}
		}
		if _, err := f.List(path); err == nil && path != "." {
			t.Errorf("list %.60q: want an error", path)
		}
		if _, err := f.Read(path, make([]byte, 1), 0); err == nil {
			t.Errorf("read %.60q: want an error", path)
		}
	}
	holds(t, filepath.Join(outside, "secret"), "secret")
	holds(t, filepath.Join(inside, "file"), "file")
	if all, err := os.ReadDir(inside); err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
}

func TestWhatCannotBeAppliedDoesNotHinderTheRest(t *testing.T) {
	_, inside, f := folders(t)
	write(t, filepath.Join(inside, "stays"), "stays")
	if err := os.MkdirAll(filepath.Join(inside, "full", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := f.Apply([]vfs.Change{
		{Op: vfs.RemoveDir, Path: "full"}, {Op: vfs.Remove, Path: "full"}, {Op: vfs.Remove, Path: "not there"}, {Op: vfs.Take, Path: "stays",
			Slot: 1},
		{Op: vfs.Put, Path: "nowhere/moved", Slot: 1}, {Op: vfs.Put, Path: "x", Slot: 2}, content("new", "new"),
	}, "", nil)
	if err == nil || !strings.Contains(err.Error(), `move to "nowhere/moved"`) || !strings.Contains(err.Error(), `remove folder "full"`) ||
		strings.Contains(err.Error(), "not there") {
		t.Fatalf("got %v", err)
	}
	holds(t, filepath.Join(inside, "new"), "new")
	holds(t, filepath.Join(inside, "stays"), "stays") // what has found no place is where it was
	if _, err := os.Stat(filepath.Join(inside, "full", "sub")); err != nil {
		t.Fatal(err)
	}
	var many []vfs.Change
	for range 1000 {
		many = append(many, vfs.Change{Op: vfs.Put, Path: "x", Slot: 7})
	}
	if err := f.Apply(many, "", nil); err == nil || len(err.Error()) > 2000 {
		t.Fatalf("an error of %d bytes", len(err.Error()))
	}
}

func TestWhatACrashLeftIsNotTouched(t *testing.T) {
	_, inside, f := folders(t)
	if err := os.Mkdir(filepath.Join(inside, ".agentbox-apply-0"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(inside, ".agentbox-apply-0", "f1"), "left")
	if err := f.Apply([]vfs.Change{content("new", "new")}, "", nil); err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join(inside, ".agentbox-apply-0", "f1"), "left")
	holds(t, filepath.Join(inside, "new"), "new")
}

// TestAFileIsThereAsAWhole reads a file while it is written over and over.
func TestAFileIsThereAsAWhole(t *testing.T) {
	_, inside, f := folders(t)
	path := filepath.Join(inside, "file")
	texts := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	write(t, path, texts[0])
	done := make(chan error)
	go func() {
		for i := range 200 {
			if err := f.Apply([]vfs.Change{content("file", texts[i%2])}, "", nil); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
		got, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) || err == nil && string(got) != texts[0] && string(got) != texts[1] {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
	}
}

func TestAHugeFolderIsListed(t *testing.T) {
	_, inside, f := folders(t)
	for i := range 5000 {
		write(t, filepath.Join(inside, fmt.Sprintf("file.%d", i)), "")
	}
	found, err := f.List(".")
	if err != nil || len(found) != 5000 {
		t.Fatalf("got %d, %v", len(found), err)
	}
}
