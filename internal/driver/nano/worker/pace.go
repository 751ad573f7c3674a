package worker

import (
	"time"

	"agentbox/internal/userland/bound"
)

// pace holds an execution to its part of a processor, by waiting while it computes.
type pace struct {
	account *bound.Account
	millis  int64         // thousandths of a processor
	begun   time.Duration // of the process's processor time
	wall    *stopwatch
}

// nap is the longest sleep between checks for cancellation. lead is how far an execution may be ahead: as much as a
// space of the namespace tier may use in one period.
const (
	nap  = 5 * time.Millisecond
	lead = 50 * time.Millisecond
)

func newPace(a *bound.Account, millis int64) *pace {
	p := &pace{account: a, millis: millis, wall: newStopwatch()}
	p.begun = p.processorTime()
	if millis > 0 && millis < 1000 { // one fiber runs at a time: it takes no more than a processor
		a.SetPace(p.keep)
	}
	return p
}

// used returns the processor time since the beginning.
func (p *pace) used() time.Duration { return p.processorTime() - p.begun }

// keep waits until no more was used than may have been by now.
func (p *pace) keep() {
	for p.account.Stopped() == nil {
		over := p.used()*1000/time.Duration(p.millis) - lead - p.wall.elapsed()
		if over <= 0 {
			return
		}
		<-time.NewTimer(min(over, nap)).C
	}
}
