package space

import (
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// The events of a pause.
const (
	EventPaused  = "space.paused"  // its processes stand still, and no operation begins in it
	EventResumed = "space.resumed" // they go on
)

// The ways in which the processes of a paused space are kept from running.
const (
	PausedByFreezer = "freezer" // the freezer of control groups of version 2
	PausedBySignals = "signals" // SIGSTOP to each process
	PausedNothing   = "none"    // the space had no processes
)

// The causes of a resumption.
const (
	ResumeRequested = "requested"
	ResumeRun       = "run" // a run was sent to a space whose pause permits that
)

// PausedData is the data of space.paused.
type PausedData struct {
	Space       id.Space  `json:"space_id"`
	Method      string    `json:"method"`                  // freezer, signals or none
	Reason      string    `json:"reason,omitempty"`        // of the caller, for a person
	ResumeOnRun bool      `json:"resume_on_run,omitempty"` // a run that is sent to the space resumes it
	AtEnd       bool      `json:"at_end,omitempty"`        // the time of the space was over, and it asked to be paused then
	ExpiresAt   time.Time `json:"expires_at,omitzero"`     // the new end of its life; zero leaves it
}

// ResumedData is the data of space.resumed.
type ResumedData struct {
	Space     id.Space  `json:"space_id"`
	Cause     string    `json:"cause"`                     // requested or run
	ExpiresAt time.Time `json:"expires_at,omitzero"`       // the new end of its life; zero leaves it
	Ended     bool      `json:"processes_ended,omitempty"` // the paused processes are gone: the daemon or the space ended meanwhile
}

// Pause tells of a space that is paused.
type Pause struct {
	At          time.Time    `json:"at"`
	By          id.Principal `json:"by"`
	Method      string       `json:"method"` // freezer, signals or none
	Reason      string       `json:"reason,omitempty"`
	ResumeOnRun bool         `json:"resume_on_run,omitempty"`
	AtEnd       bool         `json:"at_end,omitempty"` // its time was over, and it was made with pause_at_end
	Resumes     Status       `json:"resumes_as"`       // its status without the pause
}

// Pausing is an Instance whose processes can stand still. An Instance without it has no processes between its commands.
type Pausing interface {
	// Pause stops every process of the space and returns how: PausedByFreezer or PausedBySignals. The time limits of commands stop too. A
	// command that begins later stands still as well. A command that is cancelled still ends. Pause may be called again.
	Pause() (method string, err error)
	// Resume lets the processes go on. It may be called again.
	Resume() error
}

// The refusals of a pause.
var (
	// ErrPaused refuses code in a paused space.
	ErrPaused = fault.New(fault.Conflict, "space_paused", "the space is paused; no code runs in it").
			With("resume it first: agentbox space resume")
	// ErrAlreadyPaused refuses to pause a paused space.
	ErrAlreadyPaused = fault.New(fault.Conflict, "space_already_paused", "the space is paused already")
	// ErrNotPaused refuses to resume a space that is not paused.
	ErrNotPaused = fault.New(fault.Conflict, "space_not_paused",
		"the space was not paused; if a run in it waits for a person, it goes on with the answer")
)
