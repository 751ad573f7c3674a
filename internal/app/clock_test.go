package app

import (
	"testing"
	"time"
)

// A clock that jumps ahead is believed once it has stayed so for a while; one that is set back, or right again, at once.
func TestSteady(t *testing.T) {
	const year = 365 * 24 * time.Hour
	begin := time.UnixMilli(1_800_000_000_000)
	s := newSteady(begin)
	var passed time.Duration // in truth
	for _, c := range []struct {
		name   string
		takes  time.Duration
		off    time.Duration // what the clock says beyond what is true
		want   time.Duration // of the same
		jumped time.Duration
	}{
		{"a second", time.Second, 0, 0, 0},
		{"a minute ahead", time.Second, jump, jump, 0},
		{"right again", time.Second, 0, 0, 0},
		{"a year ahead", time.Second, year, 0, year},
		{"still ahead", time.Second, year, 0, 0},
		{"right again", time.Second, 0, 0, 0},
		{"a year ahead again", time.Second, year, 0, year},
		{"nearly long enough", believeAfter - 2*time.Second, year, 0, 0},
		{"long enough", time.Second, year, year, 0},
		{"set back by a year", time.Second, 0, 0, 0},
		{"set back by a day", time.Second, -24 * time.Hour, -24 * time.Hour, 0},
		{"set right", time.Second, 0, -24 * time.Hour, 24 * time.Hour},
		{"left right", believeAfter, 0, 0, 0},
		{"an hour without a look", time.Hour, 0, 0, 0},
	} {
		passed += c.takes
		now, jumped := s.step(begin.Add(passed).Add(c.off), c.takes)
		if got := now.Sub(begin.Add(passed)); got != c.want || jumped != c.jumped {
			t.Errorf("%s: got %s off and a jump of %s, want %s and %s", c.name, got, jumped, c.want, c.jumped)
		}
	}
}
