package worker

import "time"

// stopwatch measures on the monotonic clock how long something took.
type stopwatch struct{ from time.Time }

func newStopwatch() *stopwatch { return &stopwatch{time.Now()} }

func (s *stopwatch) elapsed() time.Duration { return time.Since(s.from) }
