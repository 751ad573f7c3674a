package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/blob"
)

// naming is a mark that names contents.
func naming(all ...event.Digest) blob.Mark {
	return func(_ context.Context, named func(event.Digest)) error {
		for _, d := range all {
			named(d)
		}
		return nil
	}
}

// fixture holds the stores that the tests of sweeps need.
type fixture struct {
	open  func(t *testing.T) blob.Store
	issue func(policy.Action) policy.Permit
}

func (h fixture) permit(typ string) policy.Permit {
	return h.issue(policy.Action{Type: typ, Workspace: id.DefaultWorkspace, Principal: "usr_00000000000000000000000000"})
}

func (h fixture) sweep(t *testing.T, s blob.Store, mark blob.Mark) content.Freed {
	t.Helper()
	freed, err := s.Sweep(t.Context(), h.permit(policy.ContentSweep), mark)
	if err != nil {
		t.Fatal(err)
	}
	return freed
}

func there(t *testing.T, s blob.Store, d event.Digest) bool {
	t.Helper()
	f, err := s.Open(t.Context(), d)
	if errors.Is(err, blob.ErrNotFound) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return true
}

func (h fixture) sweeps(t *testing.T) {
	t.Run("forgets", func(t *testing.T) {
		s := h.open(t)
		secret, other := put(t, s, []byte("a secret")).Digest, put(t, s, []byte("another")).Digest
		for range 2 { // again does nothing
			if err := s.Forget(t.Context(), secret, event.DigestOf([]byte("never stored"))); err != nil {
				t.Fatal(err)
			}
		}
		if there(t, s, secret) || !there(t, s, other) {
			t.Error("what was forgotten is there, or the other is not")
		}
		if again := put(t, s, []byte("a secret")).Digest; again != secret || string(read(t, s, again)) != "a secret" {
			t.Error("it cannot be put again")
		}
	})
	t.Run("sweeps what nothing names", func(t *testing.T) {
		s := h.open(t)
		named, unnamed := put(t, s, []byte("named")).Digest, put(t, s, []byte("unnamed")).Digest
		mark := naming(named, event.DigestOf([]byte("never stored")))
		found, err := s.Survey(t.Context(), mark)
		if err != nil || found.Kept != 1 || found.Freed != 1 || found.FreedBytes < 1 || found.KeptBytes < 1 {
			t.Errorf("a survey found %+v, %v, want one to keep and one to free", found, err)
		}
		if !there(t, s, unnamed) {
			t.Fatal("a survey has removed something")
		}
		if freed := h.sweep(t, s, mark); freed != found {
			t.Errorf("freed %+v, want what the survey said: %+v", freed, found)
		}
		if there(t, s, unnamed) || !there(t, s, named) {
			t.Error("the unnamed is there, or the named is not")
		}
		if again := put(t, s, []byte("unnamed")); !there(t, s, again.Digest) {
			t.Error("what was swept cannot be put again")
		}
	})
	t.Run("sweeps nothing that is held", func(t *testing.T) {
		s := h.open(t)
		before := put(t, s, []byte("before")).Digest
		twice := put(t, s, []byte("twice")).Digest
		release := s.Hold()
		held := put(t, s, []byte("held")).Digest
		put(t, s, []byte("twice"))
		other := s.Hold()
		other()
		h.sweep(t, s, naming())
		if there(t, s, before) || !there(t, s, held) || !there(t, s, twice) {
			t.Errorf("before the hold: %t, put under it: %t, put again under it: %t; want only the last two", there(t, s, before), there(t, s, held),
				there(t, s, twice))
		}
		release()
		if freed := h.sweep(t, s, naming()); freed.Freed != 2 || there(t, s, held) {
			t.Errorf("freed after the release: %+v, want two", freed)
		}
	})
	t.Run("sweeps nothing that is put while it asks what is named", func(t *testing.T) {
		s := h.open(t)
		old := put(t, s, []byte("old")).Digest
		var late event.Digest
		h.sweep(t, s, func(context.Context, func(event.Digest)) error {
			late = put(t, s, []byte("late")).Digest
			put(t, s, []byte("old")) // it was found, and is put anew
			return nil
		})
		if !there(t, s, late) || !there(t, s, old) {
			t.Error("a content that was put during the sweep is gone")
		}
	})
	t.Run("sweeps nothing where it cannot be told what is named", func(t *testing.T) {
		s := h.open(t)
		d := put(t, s, []byte("perhaps named")).Digest
		broken := errors.New("the log cannot be read")
		if _, err := s.Sweep(t.Context(), h.permit(policy.ContentSweep), func(context.Context, func(event.Digest)) error {
			return broken
		}); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
		for name, p := range map[string]policy.Permit{"no permit": {}, "a permit for something else": h.permit(policy.RunStart)} {
			if _, err := s.Sweep(t.Context(), p, naming()); err == nil {
				t.Errorf("swept with %s", name)
			}
		}
		if !there(t, s, d) {
			t.Error("it is gone")
		}
	})
	t.Run("goes on reading what is swept", func(t *testing.T) {
		s := h.open(t)
		body := bytes.Repeat([]byte("read on"), 400_000)
		f, err := s.Open(t.Context(), put(t, s, body).Digest)
		if err != nil {
			t.Fatal(err)
		}
		h.sweep(t, s, naming())
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, body) {
			t.Errorf("read %d bytes, %v, want %d", len(got), err, len(body))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("loses nothing to sweeps beside it", func(t *testing.T) {
		s := h.open(t)
		var mu sync.Mutex
		names := map[event.Digest]bool{}
		mark := func(_ context.Context, named func(event.Digest)) error {
			mu.Lock()
			defer mu.Unlock()
			for d := range names {
				named(d)
			}
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		var sweeping, putting sync.WaitGroup
		sweeping.Go(func() {
			for ctx.Err() == nil {
				h.sweep(t, s, mark)
			}
		})
		for n := range 4 {
			putting.Go(func() {
				for i := range 50 {
					release := s.Hold()
					d := put(t, s, fmt.Appendf(nil, "%d", (n*50+i)%120)).Digest // some of them twice
					mu.Lock()
					names[d] = true
					mu.Unlock()
					release()
				}
			})
		}
		putting.Wait()
		stop()
		sweeping.Wait()
		for d := range names {
			if !there(t, s, d) {
				t.Errorf("%s is named and gone", d)
			}
		}
	})
}
