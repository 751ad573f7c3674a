package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Where nothing can be made the answer is an error, and not an endless recursion.
func TestFoldersThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, "dangling", "x"), filepath.Join(file, "x"), "", filepath.Join(dir, strings.Repeat("x", 300))}
	if runtime.GOOS == "linux" {
		paths = append(paths, "/proc/x", "/proc/x/y/z")
	}
	for _, path := range paths {
		if err := Create(path); err == nil {
			t.Errorf("%.60q was made", path)
		}
	}
	deep := filepath.Join(dir, "a", "b", "c")
	for range 2 {
		if err := Create(deep); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(deep); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", info, err)
	}
	if err := Create(file); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file in the way: %v", err)
	}
}
