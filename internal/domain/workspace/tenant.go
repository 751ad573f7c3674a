package workspace

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Workspaces is the name of the documents of workspaces. The key of a document is the workspace. The document is in that workspace itself,
// and moves with it.
const Workspaces = "workspaces"

// Kind says whose a workspace is.
type Kind string

// The kinds of workspace.
const (
	Community Kind = "community" // shared by those who meet in it
	Private   Kind = "private"   // of one person: their own memory, drafts and tasks
)

// State is whether anything is done in a workspace.
type State string

// The states of a workspace. An archived one can be read, and nothing else, until it is unarchived.
const (
	ActiveState   State = "active"
	ArchivedState State = "archived"
)

// How many tasks of a workspace run at the same time.
const (
	DefaultTasks = 5
	MaxTasks     = 1_000
)

// Workspace is the document of a workspace. One that was made by an earlier version has none: see Unsaid.
type Workspace struct {
	ID         id.Workspace `json:"workspace_id"`
	Kind       Kind         `json:"kind"`
	Name       string       `json:"display_name"`
	Tasks      int          `json:"max_concurrent_tasks"`
	State      State        `json:"status"`
	CreatedBy  id.Principal `json:"created_by,omitempty"` // a principal of the workspace that requested it
	CreatedAt  time.Time    `json:"created_at,omitzero"`
	ArchivedAt time.Time    `json:"archived_at,omitzero"`
	Reason     string       `json:"reason,omitempty"` // of the archiving
}

// ErrArchived refuses what would be done or recorded in an archived workspace.
var ErrArchived = fault.New(fault.Denied, policy.ReasonArchived,
	"the workspace is archived: nothing is done or said in it any more, and everything in it can be read").
	With("Work in another workspace.")

// Archived reports whether nothing is done in the workspace any more.
func (w Workspace) Archived() bool { return w.State == ArchivedState }

// Unsaid returns the default document of a workspace without events about it.
func Unsaid(ws id.Workspace) Workspace {
	return Workspace{ID: ws, Kind: Community, Name: string(ws), Tasks: DefaultTasks, State: ActiveState}
}

// The events of a workspace. An order is recorded in the workspace of the requester, and its outcome in the workspace itself.
const (
	EventCreateOrdered    = "workspace.create_ordered"
	EventCreated          = "workspace.created"
	EventUpdateOrdered    = "workspace.update_ordered"
	EventUpdated          = "workspace.updated"
	EventArchiveOrdered   = "workspace.archive_ordered"
	EventArchived         = "workspace.archived"
	EventUnarchiveOrdered = "workspace.unarchive_ordered"
	EventUnarchived       = "workspace.unarchived"
)

// Created is the data of workspace.create_ordered and workspace.created.
type Created struct {
	Workspace id.Workspace `json:"new_workspace_id"`
	Kind      Kind         `json:"kind"`
	Name      string       `json:"display_name"`
	Tasks     int          `json:"max_concurrent_tasks"`
}

// Updated is the data of workspace.update_ordered and workspace.updated: the changes. Empty fields stay as they are.
type Updated struct {
	Workspace id.Workspace `json:"updated_workspace_id"`
	Name      string       `json:"display_name,omitempty"`
	Tasks     int          `json:"max_concurrent_tasks,omitempty"`
}

// Archiving is the data of workspace.archive_ordered, workspace.archived, workspace.unarchive_ordered and workspace.unarchived.
type Archiving struct {
	Workspace id.Workspace `json:"archived_workspace_id"`
	Reason    string       `json:"reason,omitempty"`
}

// The errors of checks on the fields of a workspace.
var (
	ErrExists = fault.New(fault.Conflict, "workspace_exists", "there is a workspace of that name in this installation; choose another one")
	ErrNone   = fault.New(fault.NotFound, "workspace_not_found", "there is no such workspace, or it is not yours")
	ErrKeep   = fault.New(fault.Conflict, "workspace_needed", "%s is the installation's own workspace and is never archived",
		id.DefaultWorkspace)
	ErrNotHere = fault.New(fault.Denied, "workspace_not_permitted",
		"workspaces are made, changed and unarchived by the owners of %s, to whom the installation belongs", id.DefaultWorkspace)
)

// MaxReason is how long the reason of an archiving may be, in bytes.
const MaxReason = 1_000

// Check returns an error for values beyond the limits. The caller checks the name.
func (c Created) Check() error {
	if _, err := id.ParseWorkspace(string(c.Workspace)); err != nil {
		return fault.New(fault.Invalid, "invalid_workspace_id", "%v", err)
	}
	if c.Kind != Community && c.Kind != Private {
		return fault.New(fault.Invalid, "invalid_kind", "the kind of a workspace is %s or %s", Community, Private)
	}
	return checkTasks(c.Tasks)
}

func checkTasks(n int) error {
	if n < 1 || n > MaxTasks {
		return fault.New(fault.Invalid, "invalid_max_concurrent_tasks", "max_concurrent_tasks is 1 to %d", MaxTasks)
	}
	return nil
}

// Check returns an error for values beyond the limits, and for an update without a change. The caller checks the name.
func (u Updated) Check() error {
	switch {
	case u.Name == "" && u.Tasks == 0:
		return fault.New(fault.Invalid, "nothing_to_change",
			"nothing was said of the workspace; name what changes: display_name or max_concurrent_tasks")
	case u.Tasks == 0:
		return nil
	}
	return checkTasks(u.Tasks)
}

// Tells reports whether the event changes the document of the workspace that it is recorded in.
func Tells(e event.Event) bool {
	switch e.Type {
	case EventCreated, EventUpdated, EventArchived, EventUnarchived:
		return e.EntityType == EntityType && e.EntityID == string(e.Workspace)
	}
	return false
}

// Evolve returns the workspace after an event that tells of it.
func (w Workspace) Evolve(e event.Event) (Workspace, error) {
	if w.ID == "" {
		w = Unsaid(e.Workspace)
	}
	switch e.Type {
	case EventCreated:
		d, err := event.Decode[Created](e)
		return Workspace{ID: e.Workspace, Kind: d.Kind, Name: d.Name, Tasks: d.Tasks, State: ActiveState, CreatedBy: e.Principal,
			CreatedAt: e.OccurredAt}, err
	case EventUpdated:
		d, err := event.Decode[Updated](e)
		if d.Name != "" {
			w.Name = d.Name
		}
		if d.Tasks != 0 {
			w.Tasks = d.Tasks
		}
		return w, err
	case EventArchived:
		d, err := event.Decode[Archiving](e)
		w.State, w.ArchivedAt, w.Reason = ArchivedState, e.OccurredAt, d.Reason
		return w, err
	case EventUnarchived:
		w.State, w.ArchivedAt, w.Reason = ActiveState, time.Time{}, ""
	}
	return w, nil
}
