package run

import (
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// LoadProjection is the name of the documents of a workspace's running work. The key of one is the workspace.
const LoadProjection = "run_loads"

// Load lists the runs that are under way in a workspace. A run takes its place when it starts. It gives the place back when it ends, when
// its engine gives it back, and while it waits for a person. A run under an engine's tool call uses the place of the engine's run. A
// background run takes none.
type Load struct {
	Running []id.Run `json:"running"` // in the order in which they took their places
}

// LoadEvents are the types of the events that may change a workspace's running work.
var LoadEvents = []string{EventStarted, EventResumed, EventSuspended, EventReleased, EventCompleted, EventFailed, EventCancelled}

// IsHeartbeat reports whether an event only says that an engine lives. Nothing follows from it.
func IsHeartbeat(e event.Event) bool { return e.Type == EventRenewed }

// Loads reports whether the event may change the running work of its workspace.
func Loads(e event.Event) bool { return e.Run != "" && slices.Contains(LoadEvents, e.Type) }

// Evolve returns the load after an event. It is pure.
func (l Load) Evolve(e event.Event) (Load, error) {
	enters, child := false, false
	switch e.Type {
	case EventStarted:
		d, err := event.Decode[Started](e)
		if err != nil {
			return l, err
		}
		enters, child = true, d.Child || d.Background
	case EventResumed:
		d, err := event.Decode[Resumed](e)
		if err != nil {
			return l, err
		}
		enters, child = true, d.Child || d.Background
	}
	left := make([]id.Run, 0, len(l.Running)+1)
	for _, r := range l.Running {
		if r != e.Run {
			left = append(left, r)
		}
	}
	if enters && !child {
		left = append(left, e.Run)
	}
	return Load{Running: left}, nil
}

// Room returns how many more runs may run where most may.
func (l Load) Room(most int) int { return max(0, most-len(l.Running)) }

// Tasks says how full a workspace is.
type Tasks struct {
	Running int `json:"running"` // at this moment
	Most    int `json:"most"`    // that may
	Silent  int `json:"silent"`  // of those that run, with engines that were not heard of for longer than their claims last
}

// AmpleRoom is how far from full a workspace must be so that runs take their places without checking the others. AtOnceFree is how many
// runs of one daemon do so at once. So 16 daemons with that many runs each cannot fill the rest.
const (
	AmpleRoom  = 256
	AtOnceFree = 16
)

// Ample reports whether so many places are free that runs need not wait for each other. AtOnce is how many runs of one daemon take a place
// at the same time. Then they are recorded in one commit. Otherwise a run that takes a place expects the load to be unchanged.
func (l Load) Ample(most, atOnce int) bool { return l.Room(most) > AmpleRoom && atOnce <= AtOnceFree }

// Has reports whether the run has its place.
func (l Load) Has(r id.Run) bool { return slices.Contains(l.Running, r) }

// ErrFull refuses to start a run where as many run in the workspace as may. It waits as it is.
var ErrFull = fault.New(fault.Exhausted, "too_many_tasks",
	"the workspace has the largest number of running runs, so this one waits").
	With("wait for one to end, or have an owner of the installation raise the number: agentbox workspace update WORKSPACE --tasks N")
