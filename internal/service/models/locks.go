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
	free  chan struct{} // holds one token while nobody has the lock
	users int           // holders and waiters
}

// lock locks all names in sorted order, so that no two callers wait for each other. The caller calls release once.
func (l *locks) lock(ctx context.Context, names ...string) (release func(), err error) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	var taken []string
	release = func() {
		for _, name := range taken {
			l.unlock(name, true)
		}
	}
	for _, name := range names {
		l.mu.Lock()
		one, ok := l.held[name]
		if !ok {
			one = &lock{free: make(chan struct{}, 1)}
			one.free <- struct{}{}
			if l.held == nil {
				l.held = map[string]*lock{}
			}
			l.held[name] = one
		}
		one.users++
		l.mu.Unlock()
		select {
		case <-one.free:
			taken = append(taken, name)
		case <-ctx.Done():
			l.unlock(name, false)
			release()
			return nil, context.Cause(ctx)
		}
	}
	return release, nil
}

// unlock ends the use of a lock. If the caller held it, the next waiter gets it.
func (l *locks) unlock(name string, had bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.held[name]
	if one.users--; one.users == 0 {
		delete(l.held, name)
		return
	}
	if had {
		one.free <- struct{}{}
	}
}
