// Package livestreamtest is the conformance suite of stores of live output.
//
// Every store that passes it can replace any other.
package livestreamtest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/livestream"
)

const run id.Run = "run_01ARZ3NDEKTSV4RRFFQ69G5FAV"

// fixed is a clock that stands still.
type fixed struct{ at time.Time }

func (c fixed) Now() time.Time { return c.at }

func (fixed) NewTimer(time.Duration) (<-chan time.Time, func()) {
	return make(chan time.Time), func() {}
}

// Run tests the store that open makes with the given clock. A non-nil reopen closes the store and opens it again on the same medium.
// It is long because it is the whole suite: each part is a test of its own.
//
//nolint:cyclop // it is the list of all cases
func Run(t *testing.T, open func(t *testing.T, c event.Clock) livestream.Store, reopen func(t *testing.T,
	s livestream.Store) livestream.Store) {
	clock := fixed{time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)}
	t.Run("numbers frames from 1 and returns them as they were", func(t *testing.T) {
		s := open(t, clock)
		said := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("east", 3600))
		sent := []livestream.Frame{
			{Kind: livestream.Operation, Operation: "op-1", Data: []byte(`{"type":"shell"}`)},
			{Kind: livestream.Stdout, Operation: "op-1", Data: []byte("id: 7\nevent: complete\n\n\x00\xff\x1b[2J")},
			{Kind: livestream.Stderr, Operation: "op-1", At: said},
			{Kind: livestream.Complete, N: 99, Data: []byte(`{}`)},
		}
		for i, f := range sent {
			if n := add(t, s, run, f); n != uint64(i)+1 {
				t.Errorf("frame %d got number %d", i+1, n)
			}
		}
		got := read(t, s, run, 1, 10)
		if len(got) != len(sent) {
			t.Fatalf("%d frames, want %d", len(got), len(sent))
		}
		for i, f := range got {
			want := sent[i]
			want.N, want.At = uint64(i)+1, livestream.Stamp(clock.at)
			if i == 2 {
				want.At = said.UTC()
			}
			if f.N != want.N || !f.At.Equal(want.At) || f.At.Location() != time.UTC || f.Kind != want.Kind || f.Operation != want.Operation ||
				!bytes.Equal(f.Data, want.Data) || f.Data == nil {
				t.Errorf("frame %d\n got %+v\nwant %+v", i+1, f, want)
			}
		}
	})
	t.Run("resumes from any number", func(t *testing.T) {
		s := open(t, clock)
		for i := range 20 {
			add(t, s, run, livestream.Frame{Kind: livestream.Stdout, Data: []byte{byte(i)}})
		}
		for from := range uint64(23) {
			for _, limit := range []int{1, 7, 1000} {
				first := max(from, 1)
				want := []uint64{}
				for n := first; n <= 20 && len(want) < limit; n++ {
					want = append(want, n)
				}
				got := []uint64{}
				for _, f := range read(t, s, run, from, limit) {
					got = append(got, f.N)
				}
				if !slices.Equal(got, want) {
					t.Errorf("from %d, at most %d: %v, want %v", from, limit, got, want)
				}
			}
		}
	})
	t.Run("keeps runs apart", func(t *testing.T) {
		s := open(t, clock)
		add(t, s, run, livestream.Frame{Kind: livestream.Stdout, Data: []byte("a")})
		const other id.Run = "run_01ARZ3NDEKTSV4RRFFQ69G5FAW"
		if n := add(t, s, other, livestream.Frame{Kind: livestream.Stdout, Data: []byte("b")}); n != 1 {
			t.Errorf("first frame of the other run has number %d", n)
		}
		if got := read(t, s, other, 1, 10); len(got) != 1 || string(got[0].Data) != "b" {
			t.Errorf("the other run has %+v", got)
		}
		if got := read(t, s, "run_01ARZ3NDEKTSV4RRFFQ69G5FAX", 1, 10); len(got) != 0 {
			t.Errorf("a run without frames has %+v", got)
		}
	})
	t.Run("takes nothing after the last frame", func(t *testing.T) {
		s := open(t, clock)
		add(t, s, run, livestream.Frame{Kind: livestream.Complete})
		for _, kind := range []string{livestream.Stdout, livestream.Complete} {
			if _, err := s.Append(t.Context(), run, livestream.Frame{Kind: kind}); !errors.Is(err, livestream.ErrComplete) {
				t.Errorf("%s after complete: %v, want %v", kind, err, livestream.ErrComplete)
			}
		}
		if got := read(t, s, run, 1, 10); len(got) != 1 {
			t.Errorf("%d frames, want 1", len(got))
		}
	})
	t.Run("refuses at the edge of each limit", func(t *testing.T) {
		s := open(t, clock)
		for _, c := range []struct {
			name  string
			frame livestream.Frame
			code  string
		}{
			{"output at its limit", livestream.Frame{Kind: livestream.Stdout, Data: make([]byte, livestream.MaxFrameBytes)}, ""},
			{"output beyond it", livestream.Frame{Kind: livestream.Stdout, Data: make([]byte, livestream.MaxFrameBytes+1)}, "frame_too_large"},
			{"a result at its limit", livestream.Frame{Kind: livestream.Result, Data: make([]byte, livestream.MaxJSONBytes)}, ""},
			{"a result beyond it", livestream.Frame{Kind: livestream.Result, Data: make([]byte, livestream.MaxJSONBytes+1)}, "frame_too_large"},
			{"a kind that is none", livestream.Frame{Kind: "stdin"}, "frame_invalid"},
			{"no kind", livestream.Frame{}, "frame_invalid"},
		} {
			if _, err := s.Append(t.Context(), run, c.frame); fault.CodeOf(err) != c.code {
				t.Errorf("%s: %v, want %q", c.name, err, c.code)
			}
		}
		for limit, code := range map[int]string{0: "limit_invalid", 1: "", livestream.MaxRead: "", livestream.MaxRead + 1: "limit_invalid"} {
			if _, err := s.Read(t.Context(), run, 1, limit); fault.CodeOf(err) != code {
				t.Errorf("read with limit %d: %v, want %q", limit, err, code)
			}
		}
	})
	t.Run("does not change with the bytes of the caller", func(t *testing.T) {
		s := open(t, clock)
		mine := []byte("mine")
		add(t, s, run, livestream.Frame{Kind: livestream.Stdout, Data: mine})
		mine[0] = 'x'
		read(t, s, run, 1, 1)[0].Data[1] = 'x'
		if got := read(t, s, run, 1, 1)[0].Data; string(got) != "mine" {
			t.Errorf("frame holds %q, want mine", got)
		}
	})
	t.Run("wakes every reader and loses none of many writers' frames", func(t *testing.T) {
		s := open(t, clock)
		const writers, each, readers = 8, 50, 4
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range each {
					if _, err := s.Append(t.Context(), run, livestream.Frame{Kind: livestream.Stdout, Data: []byte("x")}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range readers {
			wg.Go(func() {
				next := uint64(1)
				for next <= writers*each {
					if err := s.Wait(t.Context(), run, next-1); err != nil {
						t.Error(err)
						return
					}
					frames, err := s.Read(t.Context(), run, next, 37)
					if err != nil || len(frames) == 0 {
						t.Errorf("after Wait: %d frames, %v", len(frames), err)
						return
					}
					for _, f := range frames {
						if f.N != next {
							t.Errorf("got frame %d, want %d", f.N, next)
							return
						}
						next++
					}
				}
			})
		}
		wg.Wait()
	})
	t.Run("waits no longer than its context", func(t *testing.T) {
		s := open(t, clock)
		add(t, s, run, livestream.Frame{Kind: livestream.Stdout})
		if err := s.Wait(t.Context(), run, 0); err != nil {
			t.Errorf("a frame is there: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Wait(ctx, run, 1) }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("wait: %v, want %v", err, context.Canceled)
		}
		if err := s.Sync(ctx, run); !errors.Is(err, context.Canceled) {
			t.Errorf("sync: %v, want %v", err, context.Canceled)
		}
	})
	if reopen == nil {
		return
	}
	t.Run("goes on after a restart", func(t *testing.T) {
		s := open(t, clock)
		add(t, s, run, livestream.Frame{Kind: livestream.Stdout, Data: []byte("before")})
		if err := s.Sync(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		s = reopen(t, s)
		if n := add(t, s, run, livestream.Frame{Kind: livestream.Complete, Data: []byte("after")}); n != 2 {
			t.Errorf("the first frame after the restart has number %d, want 2", n)
		}
		if got := read(t, s, run, 1, 10); len(got) != 2 || string(got[0].Data) != "before" || string(got[1].Data) != "after" {
			t.Errorf("after the restart: %+v", got)
		}
		s = reopen(t, s)
		if _, err := s.Append(t.Context(), run, livestream.Frame{Kind: livestream.Stdout}); !errors.Is(err, livestream.ErrComplete) {
			t.Errorf("after complete and a restart: %v, want %v", err, livestream.ErrComplete)
		}
	})
}

func add(t *testing.T, s livestream.Store, r id.Run, f livestream.Frame) uint64 {
	t.Helper()
	n, err := s.Append(t.Context(), r, f)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func read(t *testing.T, s livestream.Store, r id.Run, from uint64, limit int) []livestream.Frame {
	t.Helper()
	frames, err := s.Read(t.Context(), r, from, limit)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}
