package disk_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/disk"
	"agentbox/internal/kernel/blob"
)

func TestBlobsFlipped(t *testing.T) {
	dir := t.TempDir()
	s, err := disk.OpenBlobs(t.Context(), dir, keys(t), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 1000, 1 << 20, 1<<20 + 1, 3 << 20} { // both sides of what is served from memory
		content := bytes.Repeat([]byte("x"), size)
		ref, err := s.Put(t.Context(), bytes.NewReader(content), 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, ref.Digest.Hex()[:2], ref.Digest.Hex()[2:]+".sealed")
		for name, damage := range map[string]func() error{
			"a flipped bit": func() error {
				raw, err := os.ReadFile(path)
				raw[len(raw)-size/2-1] ^= 1
				return errors.Join(err, os.WriteFile(path, raw, 0o600))
			},
			"a flipped bit of its head": func() error {
				raw, err := os.ReadFile(path)
				raw[3] ^= 1
				return errors.Join(err, os.WriteFile(path, raw, 0o600))
			},
			"another length": func() error {
				raw, err := os.ReadFile(path)
				raw[33] ^= 1
				return errors.Join(err, os.WriteFile(path, raw, 0o600))
			},
			"a missing byte": func() error { return grown(path, -1) },
			"a byte more":    func() error { return grown(path, 1) },
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Open(t.Context(), ref.Digest); fault.CodeOf(err) != "content_corrupt" {
				t.Errorf("%d bytes with %s: %v, want content_corrupt", size, name, err)
			}
			content = bytes.Repeat([]byte("x"), size)
			if _, err := s.Put(t.Context(), bytes.NewReader(content), 1<<30); err != nil {
				t.Fatal(err)
			}
			f, err := s.Open(t.Context(), ref.Digest)
			if err != nil {
				t.Fatalf("%d bytes put again after %s: %v", size, name, err)
			}
			if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, content) {
				t.Errorf("read %d bytes, %v, want %d", len(got), err, size)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestBlobsOfAnEarlierVersion reads what lies there unsealed, seals it when it is put again, sweeps it and forgets it.
func TestBlobsOfAnEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	s, err := disk.OpenBlobs(t.Context(), dir, keys(t), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(content string) (event.Digest, string) {
		d := event.DigestOf([]byte(content))
		path := filepath.Join(dir, d.Hex()[:2], d.Hex()[2:])
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return d, path
	}
	d, path := plain("put before")
	read := func() string {
		f, err := s.Open(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	if got := read(); got != "put before" {
		t.Errorf("it holds %q", got)
	}
	if _, err := s.Put(t.Context(), strings.NewReader("put before"), 100); err != nil || read() != "put before" {
		t.Errorf("put again: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unsealed one is there still: %v", err)
	}
	d, path = plain("a secret")
	if err := s.Forget(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was forgotten is there still: %v", err)
	}
	if err := os.WriteFile(path, []byte("changed by the disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), d); fault.CodeOf(err) != "content_corrupt" {
		t.Errorf("other content under its name: %v", err)
	}
}

// grown changes the length of a file.
func grown(path string, by int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, info.Size()+by)
}

func TestBlobsLeaveNothingHalfWritten(t *testing.T) {
	dir := t.TempDir()
	half := filepath.Join(dir, "staging", "half")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := disk.OpenBlobs(t.Context(), dir, keys(t), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), strings.NewReader("too large"), 3); fault.CodeOf(err) != blob.ErrTooLarge.Code {
		t.Errorf("9 bytes where 3 are taken: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "staging")); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting takes root")
	}
	dir := t.TempDir()
	inMountNamespace(t, func() error {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
			return err
		}
		s, err := disk.OpenBlobs(t.Context(), filepath.Join(dir, "blobs"), keys(t), rand.Reader)
		if err != nil {
			return err
		}
		if _, err := s.Put(t.Context(), bytes.NewReader(make([]byte, 1<<20)), 1<<20); fault.CodeOf(err) != "disk_full" {
			t.Errorf("1 MiB of content on 256 KiB: %v, want disk_full", err)
		}
		f := fence{houseIn(t, filepath.Join(dir, "spaces")), t.TempDir()}
		_, err = f.Write(t, "a/f", strings.Repeat("x", 1<<20), false)
		if full, ok := errors.AsType[*fault.Error](err); !ok || full.Code != "disk_full" || strings.Contains(full.Msg, dir) {
			t.Errorf("a file of 1 MiB on 256 KiB: %v, want disk_full without the host's path", err)
		}
		if _, err := f.Write(t, "a/f", "fits", false); err != nil {
			t.Errorf("a small file afterwards: %v", err)
		}
		return nil
	})
}
