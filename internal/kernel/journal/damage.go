package journal

import (
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Damage is the error of a Read that met an entry which differs from the recorded one. It names the entry as far as possible.
type Damage struct {
	Workspace id.Workspace
	Seq       uint64 // 0 if not known
	Stream    event.Stream
	StreamSeq uint64
	ID        id.Event
	Detail    string
}

// Error says which entry is damaged and how.
func (d *Damage) Error() string {
	return fmt.Sprintf("entry %d of workspace %s is damaged: %s", d.Seq, d.Workspace, d.Detail)
}

// Unwrap returns the fault that a caller is shown.
func (d *Damage) Unwrap() error {
	return fault.New(fault.Internal, "log_damaged", "entry %d of workspace %s is damaged; run agentbox audit verify and restore a backup",
		d.Seq, d.Workspace)
}

// Misfiled is an event that stands under another key than that of its record, which the chain covers.
type Misfiled struct {
	Seq    uint64 // place in the workspace
	Stream bool   // it is filed under another stream; else it is about its key
	Detail string // a sentence for people
}
