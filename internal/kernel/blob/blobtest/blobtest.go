// Package blobtest is the conformance suite of stores of content.
//
// Every store that passes it can replace any other.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/iotest"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/blob"
)

// Run tests the store that open makes. Issue makes permits, as the gate does. A non-nil reopen closes the store and opens it again on the
// same medium.
func Run(t *testing.T, issue func(policy.Action) policy.Permit, open func(t *testing.T) blob.Store, reopen func(t *testing.T,
	s blob.Store) blob.Store) {
	t.Run("returns what was put", func(t *testing.T) {
		s := open(t)
		for _, content := range [][]byte{{}, []byte("a"), []byte("forged\nline\x00\xff\x1b[31m"), bytes.Repeat([]byte("0123456789"), 200_000)} {
			ref := put(t, s, content)
			if want := (blob.Ref{Digest: event.DigestOf(content), Size: int64(len(content))}); ref != want {
				t.Errorf("put returned %+v, want %+v", ref, want)
			}
			if got := read(t, s, ref.Digest); !bytes.Equal(got, content) {
				t.Errorf("read %d bytes that differ from the %d put", len(got), len(content))
			}
		}
	})
	t.Run("seeks", func(t *testing.T) {
		s := open(t)
		ref := put(t, s, []byte("0123456789"))
		f, err := s.Open(t.Context(), ref.Digest)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if at, err := f.Seek(-3, io.SeekEnd); at != 7 || err != nil {
			t.Fatalf("seek to %d, %v, want 7", at, err)
		}
		if got, err := io.ReadAll(f); string(got) != "789" || err != nil {
			t.Errorf("read %q, %v, want 789", got, err)
		}
	})
	t.Run("takes max bytes and not one more", func(t *testing.T) {
		s := open(t)
		content := []byte("12345678")
		if _, err := s.Put(t.Context(), bytes.NewReader(content), 7); !errors.Is(err, blob.ErrTooLarge) {
			t.Errorf("8 bytes with a bound of 7: %v, want %v", err, blob.ErrTooLarge)
		}
		for _, stored := range [][]byte{content, content[:7]} {
			if f, err := s.Open(t.Context(), event.DigestOf(stored)); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("%q is there after a refusal: %v", stored, err)
				_ = f.Close()
			}
		}
		if _, err := s.Put(t.Context(), bytes.NewReader(content), 8); err != nil {
			t.Errorf("8 bytes with a bound of 8: %v", err)
		}
	})
	t.Run("keeps nothing of content that breaks off", func(t *testing.T) {
		s := open(t)
		broken := errors.New("cut off")
		if _, err := s.Put(t.Context(), io.MultiReader(bytes.NewReader([]byte("half")), iotest.ErrReader(broken)), 100); !errors.Is(err, broken) {
			t.Errorf("put of a broken reader: %v, want %v", err, broken)
		}
		if _, err := s.Open(t.Context(), event.DigestOf([]byte("half"))); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("the half is there: %v", err)
		}
	})
	t.Run("knows nothing of other content", func(t *testing.T) {
		s := open(t)
		put(t, s, []byte("known"))
		for _, d := range []event.Digest{{}, event.DigestOf([]byte("unknown"))} {
			if _, err := s.Open(t.Context(), d); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("open %s: %v, want %v", d, err, blob.ErrNotFound)
			}
		}
	})
	t.Run("does not change with the bytes of the caller", func(t *testing.T) {
		s := open(t)
		content := []byte("mine")
		ref := put(t, s, content)
		content[0] = 'x'
		got := read(t, s, ref.Digest)
		got[1] = 'x'
		if again := read(t, s, ref.Digest); string(again) != "mine" {
			t.Errorf("read %q, want mine", again)
		}
	})
	t.Run("takes the same content from many at once", func(t *testing.T) {
		s := open(t)
		content := bytes.Repeat([]byte("same"), 10_000)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				ref, err := s.Put(t.Context(), bytes.NewReader(content), 1<<20)
				if err != nil || ref.Digest != event.DigestOf(content) {
					t.Errorf("put: %v, %v", ref, err)
				}
			})
		}
		wg.Wait()
		if got := read(t, s, event.DigestOf(content)); !bytes.Equal(got, content) {
			t.Errorf("read %d bytes that differ from the %d put", len(got), len(content))
		}
	})
	fixture{open, issue}.sweeps(t)
	t.Run("refuses an ended context", func(t *testing.T) {
		s := open(t)
		ref := put(t, s, []byte("there"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Put(ctx, bytes.NewReader([]byte("late")), 10); !errors.Is(err, context.Canceled) {
			t.Errorf("put: %v, want %v", err, context.Canceled)
		}
		if _, err := s.Open(ctx, ref.Digest); !errors.Is(err, context.Canceled) {
			t.Errorf("open: %v, want %v", err, context.Canceled)
		}
	})
	if reopen == nil {
		return
	}
	t.Run("keeps content over a restart", func(t *testing.T) {
		s := open(t)
		ref := put(t, s, []byte("lasting"))
		s = reopen(t, s)
		if got := read(t, s, ref.Digest); string(got) != "lasting" {
			t.Errorf("read %q, want lasting", got)
		}
	})
}

func put(t *testing.T, s blob.Store, content []byte) blob.Ref {
	t.Helper()
	ref, err := s.Put(t.Context(), bytes.NewReader(content), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func read(t *testing.T, s blob.Store, d event.Digest) []byte {
	t.Helper()
	f, err := s.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return content
}
