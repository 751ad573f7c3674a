package vfs_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

func TestASymbolicLinkPointsToAPath(t *testing.T) {
	f, at := empty(t)
	for target, err := range map[string]error{
		"": vfs.ENOENT, "a\x00b": vfs.EINVAL, strings.Repeat("a", vfs.MaxPath): vfs.ENAMETOOLONG, strings.Repeat("a", vfs.MaxPath-1): nil,
	} {
		want(t, f.Symlink(target, at, "l"), err)
	}
}

func TestAHardLinkKnowsHowManyNamesThereAre(t *testing.T) {
	d := &disk{bytes: 1 << 20, left: 100}
	a, b := d.file("a", "hard"), d.file("d/b", "hard")
	a.Same, a.Links, b.Same, b.Links = 9, 3, 9, 3
	d.folders = map[string][]vfs.Found{".": {a, {Name: "d", Kind: vfs.Directory, Mode: 0o755}}, "d": {b}}
	f, at := made(t, limits, vfs.Options{Source: d})
	links := func(path string) int {
		i, err := f.Stat(at, path, true)
		want(t, err, nil)
		return i.Links
	}
	if n := links("a"); n != 3 {
		t.Fatalf("%d names, want 3", n)
	}
	want(t, f.Unlink(at, "a"), nil)
	if n := links("d/b"); n != 2 {
		t.Fatalf("%d names, want 2", n)
	}
	if got := get(t, f, at, "d/b"); got != "hard" {
		t.Fatalf("got %q", got)
	}
}

func TestHolesAreZero(t *testing.T) {
	f, at := empty(t)
	h, err := f.Open(at, "f", vfs.Read|vfs.Write|vfs.Create, 0o644)
	want(t, err, nil)
	_, err = h.WriteAt([]byte("end"), 1000)
	want(t, err, nil)
	want(t, h.Truncate(2000), nil)
	want(t, h.Truncate(1001), nil)
	want(t, h.Truncate(1100), nil)
	p := make([]byte, 2000)
	n, err := h.ReadAt(p, 0)
	if n != 1100 || !errors.Is(err, io.EOF) || strings.Trim(string(p[:n]), "\x00") != "e" {
		t.Fatalf("got %d bytes, %v, %q", n, err, strings.Trim(string(p[:n]), "\x00"))
	}
}

func TestEachOperationCostsGas(t *testing.T) {
	l := limits
	l.Gas = 100_000
	for name, do := range map[string]func(f *vfs.FS, at vfs.At) error{
		"stat":   func(f *vfs.FS, at vfs.At) error { _, err := f.Stat(at, "f", true); return err },
		"list":   func(f *vfs.FS, at vfs.At) error { _, err := f.List(at, "."); return err },
		"rename": func(f *vfs.FS, at vfs.At) error { return f.Rename(at, "f", at, "f") },
		"long":   func(f *vfs.FS, at vfs.At) error { _, err := f.Stat(at, strings.Repeat("./", 2000), true); return err },
	} {
		f, at := made(t, l, vfs.Options{Bytes: 1 << 20, Files: 10})
		put(t, f, at, "f", "x")
		var err error
		for range 10_000 {
			if err = do(f, at); err != nil {
				break
			}
		}
		if stopped, ok := errors.AsType[*bound.Stopped](err); !ok || stopped.Limit != bound.Gas {
			t.Errorf("%s: got %v, want the end of its gas", name, err)
		}
	}
}
