package memory

import (
	"context"
	"slices"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/livestream"
)

var _ livestream.Store = (*Livestreams)(nil)

// Livestreams is a store of live output in memory.
type Livestreams struct {
	clock event.Clock

	mu   sync.Mutex // guards runs and their content
	runs map[id.Run]*frames
}

type frames struct {
	all   []livestream.Frame
	grown chan struct{} // closed and replaced when a frame is added
}

// NewLivestreams returns an empty store that stamps frames by the clock.
func NewLivestreams(clock event.Clock) *Livestreams {
	return &Livestreams{clock: clock, runs: map[id.Run]*frames{}}
}

// Append implements livestream.Store.
func (l *Livestreams) Append(ctx context.Context, run id.Run, f livestream.Frame) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	f, err := livestream.Check(run, f)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of(run)
	if n := len(r.all); n > 0 && r.all[n-1].Kind == livestream.Complete {
		return 0, livestream.ErrComplete
	}
	f.N, f.Data = uint64(len(r.all))+1, slices.Clone(f.Data)
	if f.At.IsZero() {
		f.At = l.clock.Now()
	}
	f.At = livestream.Stamp(f.At)
	r.all = append(r.all, f)
	close(r.grown)
	r.grown = make(chan struct{})
	return f.N, nil
}

// Read implements livestream.Store.
func (l *Livestreams) Read(ctx context.Context, run id.Run, from uint64, limit int) ([]livestream.Frame, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := livestream.CheckRead(limit); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []livestream.Frame{}
	r := l.runs[run]
	if r == nil {
		return found, nil
	}
	at := min(max(from, 1)-1, uint64(len(r.all)))
	for _, f := range r.all[at:min(at+uint64(limit), uint64(len(r.all)))] {
		f.Data = slices.Clone(f.Data)
		found = append(found, f)
	}
	return found, nil
}

// Wait implements livestream.Store.
func (l *Livestreams) Wait(ctx context.Context, run id.Run, after uint64) error {
	for {
		l.mu.Lock()
		r := l.of(run)
		n, grown := uint64(len(r.all)), r.grown
		l.mu.Unlock()
		if n > after {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Sync implements livestream.Store; memory has nothing to make durable.
func (l *Livestreams) Sync(ctx context.Context, _ id.Run) error { return ctx.Err() }

// Forget implements livestream.Store.
func (l *Livestreams) Forget(run id.Run, operations ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.runs[run]; r != nil {
		for i, f := range r.all {
			if slices.Contains(operations, f.Operation) {
				r.all[i] = livestream.Forgotten(f)
			}
		}
	}
	return nil
}

func (l *Livestreams) of(run id.Run) *frames {
	r := l.runs[run]
	if r == nil {
		r = &frames{grown: make(chan struct{})}
		l.runs[run] = r
	}
	return r
}
