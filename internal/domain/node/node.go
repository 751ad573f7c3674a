// Package node describes the daemons that work on one log, and gives up a daemon that never comes back.
package node

import (
	"context"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// EntityType is that of the events of a node.
const EntityType = "node"

// Member is a daemon that works on the log, or has worked on it.
type Member struct {
	Node    id.Node   `json:"id"`
	NodeID  id.Node   `json:"node_id" doc:"The same as id, under the name that every other document has for it"`
	Address string    `json:"address" doc:"Where the other daemons reach it"`
	Since   time.Time `json:"since" doc:"When it joined last, by its own clock"`
	Epoch   int64     `json:"epoch" doc:"How often it has joined"`
	Alive   bool      `json:"alive" doc:"It works now"`
	Leads   bool      `json:"leads" doc:"It does what only one of them may do"`
	Removed bool      `json:"removed" doc:"It was given up, and cannot come back"`
}

// Members knows the daemons of a log.
type Members interface {
	// Members returns all daemons that work or have worked on the log, in the order in which they first joined.
	Members(ctx context.Context) ([]Member, error)
	// Remove gives one up that does not live: whatever it writes is refused from here on. One that was given up stays so.
	Remove(ctx context.Context, n id.Node) error
}

// EventRemoved is recorded in the installation's own workspace when a node is given up.
const EventRemoved = "node.removed"

// Removed is the data of EventRemoved.
type Removed struct {
	Node   id.Node `json:"removed_node_id"`
	Reason string  `json:"reason,omitempty"`
}

// MaxReason is how long the reason of a removal may be, in bytes.
const MaxReason = 1_000

// The refusals of nodes.
var (
	// ErrNone means that there is no such node.
	ErrNone = fault.New(fault.NotFound, "node_not_found", "no daemon of that node has ever worked on the log")
	// ErrAlive means that a node which lives is not given up.
	ErrAlive = fault.New(fault.Conflict, "node_alive", "the daemon of that node works; only one that never comes back is given up").With(
		"stop it first")
	// ErrRemoved means that this daemon was given up.
	ErrRemoved = fault.New(fault.Unavailable, "node_removed",
		"this daemon was given up: its spaces were ended, and it does nothing more on this log").
		With("start it with a new data directory, as a new node")
	// ErrReason refuses a reason that is too long.
	ErrReason = fault.New(fault.Invalid, "invalid_reason", "a reason has at most %d bytes of UTF-8", MaxReason)
)

// Away is the fault for a thing on a node that does not answer.
func Away(n id.Node, why string) *fault.Error {
	return fault.New(fault.Unavailable, "node_unavailable", "the requested data lies on the node %s, %s", n, why).
		With("start its daemon again; if it never comes back, its owner gives it up with: agentbox node remove " + string(n))
}

// Remains returns what stays of the data of a node's event when they are redacted; nil for an event of something else.
func Remains(e event.Event) (any, error) {
	if e.Type != EventRemoved {
		return nil, nil
	}
	d, err := event.Decode[Removed](e)
	return Removed{Node: d.Node}, err
}
