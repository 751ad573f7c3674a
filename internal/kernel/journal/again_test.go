package journal_test

import (
	"errors"
	"fmt"
	"testing"

	"agentbox/internal/kernel/journal"
)

// TestAgain holds how often a change is tried: while somebody else is first, at most Tries times, and never after another error.
func TestAgain(t *testing.T) {
	other := errors.New("the disk has failed")
	for name, c := range map[string]struct {
		lost int // how often somebody else is first
		then error
		runs int
		want error
	}{
		"nobody else":      {0, nil, 1, nil},
		"twice too late":   {2, nil, 3, nil},
		"another error":    {0, other, 1, other},
		"then another":     {1, other, 2, other},
		"always too late":  {1_000, nil, journal.Tries, journal.ErrConflict},
		"another key only": {0, journal.ErrKeyConflict, 1, journal.ErrKeyConflict},
	} {
		runs := 0
		err := journal.Again(func() error {
			if runs++; runs <= c.lost {
				return fmt.Errorf("append: %w", journal.ErrConflict)
			}
			return c.then
		})
		if runs != c.runs || !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %d runs and %v, want %d and %v", name, runs, err, c.runs, c.want)
		}
	}
}
