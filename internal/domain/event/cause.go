package event

import "agentbox/internal/domain/id"

// Subject names a thing that events are about: an entity, a step or a run. The zero Subject names nothing.
type Subject struct{ Type, ID string }

// Beginning is followed by what begins something in an existing thing, such as a request that writes a file into a space: it has no cause
// in the log, and keeps the correlation of its request.
var Beginning = Subject{Type: "beginning", ID: "beginning"}

// The types of the subjects that a header names in fields of their own.
const (
	RunSubject  = "run"
	StepSubject = "step"
)

// The types of entities that only say where something happens. The events of a run there follow from the run.
const (
	spacePlace     = "space"
	workspacePlace = "workspace"
)

// Cause is the part of an event that a later event inherits: its id as the causation, and its correlation. The zero Cause is none.
type Cause struct {
	Event       id.Event       `json:"event_id"`
	Correlation id.Correlation `json:"correlation_id"`
}

// Cause returns what an event that follows from this one inherits.
func (h Header) Cause() Cause { return Cause{h.ID, h.Correlation} }

// Subjects returns the things that an event is about, the most precise first: its entity, its step, its run. An entity that only says
// where a run does something is none of them.
func (h Header) Subjects() (subjects [3]Subject, n int) {
	place := h.Run != "" && (h.EntityType == spacePlace || h.EntityType == workspacePlace)
	if h.EntityID != "" && !place {
		subjects[n], n = Subject{h.EntityType, h.EntityID}, n+1
	}
	if h.Step != "" && (n == 0 || subjects[0] != Subject{StepSubject, string(h.Step)}) {
		subjects[n], n = Subject{StepSubject, string(h.Step)}, n+1
	}
	if h.Run != "" && (n == 0 || subjects[0] != Subject{RunSubject, string(h.Run)}) {
		subjects[n], n = Subject{RunSubject, string(h.Run)}, n+1
	}
	return subjects, n
}
