package models

import (
	"context"
	"slices"
	"sync"
)

// locks are mutexes by name. The zero value is ready.
type locks struct {
	mu   sync.Mutex // guards held
	held map[string]*lock
}

type lock struct {
	turn  chan struct{} // holds one token while nobody has the lock
	users int           // who have it or wait for it
}

// take locks all names, in their order, so that no two callers wait for each other. The caller releases them once.
func (l *locks) take(ctx context.Context, names ...string) (release func(), err error) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	var taken []string
	release = func() {
		for _, name := range taken {
			l.give(name, true)
		}
	}
	for _, name := range names {
		l.mu.Lock()
		one, ok := l.held[name]
		if !ok {
			one = &lock{turn: make(chan struct{}, 1)}
			one.turn <- struct{}{}
			if l.held == nil {
				l.held = map[string]*lock{}
			}
			l.held[name] = one
		}
		one.users++
		l.mu.Unlock()
		select {
		case <-one.turn:
			taken = append(taken, name)
		case <-ctx.Done():
			l.give(name, false)
			release()
			return nil, context.Cause(ctx)
		}
	}
	return release, nil
}

// give ends the use of a lock; of one that was had, somebody else has it next.
func (l *locks) give(name string, had bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.held[name]
	if one.users--; one.users == 0 {
		delete(l.held, name)
		return
	}
	if had {
		one.turn <- struct{}{}
	}
}
