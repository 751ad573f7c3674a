//go:build linux

package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/disk/internal/beneath"
)

// tree makes a directory with everything that a data directory may hold.
func tree(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(dir, "spaces/spc_1/files/deep/er"), 0o755))
	check(os.MkdirAll(filepath.Join(dir, "spaces/spc_1/files/closed"), 0o755))
	check(os.WriteFile(filepath.Join(dir, "log.db"), []byte("the old log"), 0o600))
	check(os.WriteFile(filepath.Join(dir, "spaces/spc_1/files/run.sh"), []byte("#!/bin/sh\n"), 0o755))
	check(os.WriteFile(filepath.Join(dir, "spaces/spc_1/files/deep/er/empty"), nil, 0o644))
	check(os.WriteFile(filepath.Join(dir, "spaces/spc_1/files/closed/big"), noise(1_600_000), 0o400))
	check(os.Symlink("/etc/shadow", filepath.Join(dir, "spaces/spc_1/files/out")))
	check(os.Symlink("deep", filepath.Join(dir, "spaces/spc_1/files/in")))
	check(unix.Mkfifo(filepath.Join(dir, "spaces/spc_1/files/pipe"), 0o600))
	check(os.WriteFile(filepath.Join(dir, "owner.key"), []byte("secret"), 0o600))
	check(os.Chmod(filepath.Join(dir, "spaces/spc_1/files/closed"), 0o500))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "spaces/spc_1/files/closed"), 0o700) })
	if os.Geteuid() == 0 {
		check(os.Lchown(filepath.Join(dir, "spaces/spc_1/files/run.sh"), 1_879_048_192, 1_879_048_192))
	}
	return dir
}

// noise is content that repeats nothing.
func noise(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(b)
	return b
}

// kept is the backup of a tree, its log replaced by another file.
func kept(t testing.TB, dir string) []byte {
	t.Helper()
	log := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(log, []byte("the log of one moment"), 0o644); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	sum, err := Write(t.Context(), &b, dir, Options{
		Header: Header{Made: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Program: "test"}, Replace: map[string]string{"log.db": log},
		Leave: func(p string) bool { return p == "owner.key" },
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Files != 4 || sum.Skipped != 1 || sum.Changed != 0 {
		t.Fatalf("got %+v, want 4 files and one pipe that was skipped", sum)
	}
	return b.Bytes()
}

// listing describes a tree, path by path.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == "." || st.Mode&unix.S_IFMT == unix.S_IFIFO {
			return nil
		}
		content := ""
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			raw, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			content = string(raw)
		case unix.S_IFLNK:
			if content, err = os.Readlink(p); err != nil {
				return err
			}
			st.Mode = unix.S_IFLNK
		}
		found[rel] = strings.Join([]string{os.FileMode(st.Mode).String(), string(rune(st.Uid)), content}, " ")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestARestoredTreeIsTheOneThatWasKept keeps and restores: names, contents, modes, owners and links are the same, keys are not there.
func TestARestoredTreeIsTheOneThatWasKept(t *testing.T) {
	dir, to := tree(t), t.TempDir()
	sum, err := Restore(t.Context(), bytes.NewReader(kept(t, dir)), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(to, "spaces/spc_1/files/closed"), 0o700) })
	if sum.Files != 4 || sum.Program != "test" {
		t.Errorf("got %+v", sum)
	}
	want := listing(t, dir)
	delete(want, "owner.key")
	want["log.db"] = strings.Replace(want["log.db"], "the old log", "the log of one moment", 1)
	if diff := cmp.Diff(want, listing(t, to)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestDamagedBackups cuts a backup at many places and changes bytes: none of it is taken.
func TestDamagedBackups(t *testing.T) {
	whole := kept(t, tree(t))
	refused := func(name string, raw []byte) {
		t.Helper()
		to := t.TempDir()
		_, err := Restore(t.Context(), bytes.NewReader(raw), to, nil)
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for n := range 64 {
		refused("cut", whole[:len(whole)*n/64])
	}
	refused("cut by its last byte", whole[:len(whole)-1])
	for n := range 64 {
		changed := bytes.Clone(whole)
		changed[10+(len(whole)-20)*n/64] ^= 0x10
		refused("changed", changed)
	}
}

// again unpacks a backup, changes its entries, and packs it.
func again(t *testing.T, raw []byte, change func(h *tar.Header, content []byte) []byte, more ...tar.Header) []byte {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	compress := gzip.NewWriter(&b)
	out := tar.NewWriter(compress)
	archive := tar.NewReader(in)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == manifestName {
			for _, m := range more {
				m.Uid, m.Gid = os.Geteuid(), os.Getegid()
				if err := out.WriteHeader(&m); err != nil {
					t.Fatal(err)
				}
			}
		}
		content = change(h, content)
		h.Size = int64(len(content))
		if err := errors.Join(out.WriteHeader(h), write(out, content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), compress.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(w io.Writer, content []byte) error {
	_, err := w.Write(content)
	return err
}

// TestHostileBackups are well-formed archives that want to write elsewhere, or hold what their manifest does not.
func TestHostileBackups(t *testing.T) {
	whole := kept(t, tree(t))
	same := func(_ *tar.Header, content []byte) []byte { return content }
	outside := filepath.Join(t.TempDir(), "outside")
	link := tar.Header{Name: "data/link", Typeflag: tar.TypeSymlink, Linkname: filepath.Dir(outside), Mode: 0o777}
	for name, raw := range map[string][]byte{
		"above":          again(t, whole, same, tar.Header{Name: "data/../../x", Typeflag: tar.TypeReg}),
		"absolute":       again(t, whole, same, tar.Header{Name: outside, Typeflag: tar.TypeReg}),
		"no data":        again(t, whole, same, tar.Header{Name: "elsewhere", Typeflag: tar.TypeReg}),
		"through a link": again(t, whole, same, link, tar.Header{Name: "data/link/outside", Typeflag: tar.TypeReg}),
		"hard link":      again(t, whole, same, tar.Header{Name: "data/hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}),
		"device":         again(t, whole, same, tar.Header{Name: "data/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}),
		"twice":          again(t, whole, same, tar.Header{Name: "data/log.db", Typeflag: tar.TypeReg}),
		"one more":       again(t, whole, same, tar.Header{Name: "data/more", Typeflag: tar.TypeReg}),
		"other content": again(t, whole, func(h *tar.Header, content []byte) []byte {
			if h.Name == "data/log.db" {
				return []byte("the log of two moments")
			}
			return content
		}),
		"other mode": again(t, whole, func(h *tar.Header, content []byte) []byte {
			if h.Name == "data/log.db" {
				h.Mode = 0o4755
			}
			return content
		}),
		"a line less": again(t, whole, func(h *tar.Header, content []byte) []byte {
			if h.Name == manifestName {
				return content[bytes.IndexByte(content, '\n')+1:]
			}
			return content
		}),
		"a line more": again(t, whole, func(h *tar.Header, content []byte) []byte {
			if h.Name == manifestName {
				return append(content, content...)
			}
			return content
		}),
	} {
		if _, err := Restore(t.Context(), bytes.NewReader(raw), t.TempDir(), nil); fault.CodeOf(err) != "backup_invalid" {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Lstat(outside); err == nil {
			t.Fatalf("%s: a file was written outside", name)
		}
	}
	newer := again(t, whole, func(h *tar.Header, content []byte) []byte {
		if h.Name == headerName {
			raw, _ := json.Marshal(Header{Version: Version + 1, Program: "9.9"})
			return raw
		}
		return content
	})
	if _, err := Restore(t.Context(), bytes.NewReader(newer), t.TempDir(), nil); fault.CodeOf(err) != "backup_version" {
		t.Errorf("newer: got %v", err)
	}
}

// TestAFileThatShrinksIsKeptInItsSize keeps a file that is shorter than it was said to be, and one that is longer.
func TestAFileThatShrinksIsKeptInItsSize(t *testing.T) {
	var b bytes.Buffer
	w := &writer{ctx: t.Context(), tar: tar.NewWriter(&b)}
	if err := w.file(Entry{Path: "f", Type: typeFile, Size: 10}, strings.NewReader("short"), beneath.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := w.file(Entry{Path: "g", Type: typeFile, Size: 3}, strings.NewReader("longer"), beneath.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := w.tar.Close(); err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(&b)
	for _, want := range []string{"short\x00\x00\x00\x00\x00", "lon"} {
		if _, err := archive.Next(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(archive); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if w.sum.Changed != 1 {
		t.Errorf("%d files have changed, want 1", w.sum.Changed)
	}
}
