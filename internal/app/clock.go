package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// Clock is the machine's clock, the only one that the daemon has.
type Clock struct{}

var _ event.Clock = Clock{}

// Now returns the present time.
func (Clock) Now() time.Time { return time.Now() }

// NewTimer returns a channel that receives once after d, and a function that releases the timer early.
func (Clock) NewTimer(d time.Duration) (c <-chan time.Time, stop func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// every calls step at once and then each time d has passed, until done is closed; step reports its own errors.
func every(clock event.Clock, done <-chan struct{}, d time.Duration, step func(now time.Time)) {
	for {
		step(clock.Now())
		c, stop := clock.NewTimer(d)
		select {
		case <-c:
		case <-done:
			stop()
			return
		}
	}
}

// behind makes new identifiers sort behind those of the log, even if the clock was set back.
func behind(ctx context.Context, log journal.Journal, ids *id.Source) error {
	workspaces, err := log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		last, err := log.Read(ctx, journal.Query{Workspace: ws, Last: true, Limit: 1})
		if err != nil {
			return err
		}
		for i := range last {
			ids.Behind(last[i].ID)
		}
	}
	return nil
}

// When a jump of the clock is believed. A mistaken jump ahead would otherwise end every space, and redact data that must be kept for years,
// before anybody could correct it.
const (
	jump         = time.Minute      // ahead of the time that has passed
	believeAfter = 10 * time.Minute // of such a clock
)

// steady is the time that decides what has expired. It follows the clock, also back, but not at once far ahead.
type steady struct {
	mu    sync.Mutex
	last  time.Time     // the last reading, with the monotonic clock's
	now   time.Time     // the steady time then
	ahead time.Duration // for how long the clock has been ahead of that
}

func newSteady(now time.Time) *steady { return &steady{last: now, now: now.Round(0)} }

// at takes a reading of the clock.
func (s *steady) at(reading time.Time) (now time.Time, jumped time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	passed := reading.Sub(s.last) // by the monotonic clock
	s.last = reading
	return s.step(reading.Round(0), passed)
}

// step takes what the clock says and how much time has passed since it was last asked. Jumped is by how much it has gone ahead of that,
// if it is the first time and not believed yet. The lock is held.
func (s *steady) step(wall time.Time, passed time.Duration) (now time.Time, jumped time.Duration) {
	expected := s.now.Add(passed)
	switch {
	case wall.Sub(expected) <= jump, s.ahead+passed >= believeAfter && s.ahead > 0:
		s.now, s.ahead = wall, 0
	default:
		if s.ahead == 0 {
			jumped = wall.Sub(expected)
		}
		s.now, s.ahead = expected, max(s.ahead+passed, 1)
	}
	return s.now, jumped
}

// steadily is every for steps that end expired things.
func (up *upkeep) steadily(done <-chan struct{}, step func(now time.Time)) {
	every(up.app.clock, done, stepPeriod, func(reading time.Time) {
		now, jumped := up.app.steady.at(reading)
		if jumped > 0 {
			up.app.logger.Warn("the clock has jumped ahead; what expires by that ends when it stays so for ten minutes", "code", "clock_jumped",
				"error",
				fmt.Errorf("by %s", jumped))
		}
		step(now)
	})
}
