// Package workspace is the events of a workspace as a whole, such as its import from another installation.
package workspace

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Projection is the name of the documents of imports. The key of a document is the imported workspace. The document is in the workspace of
// the requester.
const Projection = "workspace_imports"

// IndexPending finds the imports that have begun and not ended; its only value is "true".
const IndexPending = "pending"

// EntityType is the entity of the events: the workspace that is imported.
const EntityType = "workspace"

// Status is where an import stands.
type Status string

// The states of an import.
const (
	Begun    Status = "begun"
	Imported Status = "imported"
	Failed   Status = "failed" // nothing of it is here; it may begin again
)

// Import is the document of an import.
type Import struct {
	ImportBegun
	Status Status   `json:"status"`
	Spaces int      `json:"spaces_ended"`
	Error  string   `json:"error,omitempty"` // the code of what kept it from being done
	By     id.Event `json:"begun_event_id"`  // the event with which it began
}

// The events of an import.
const (
	EventImportBegun  = "workspace.import_begun"
	EventImported     = "workspace.imported"
	EventImportFailed = "workspace.import_failed"
)

// ImportBegun is the data of workspace.import_begun: the file and its contents.
type ImportBegun struct {
	Workspace id.Workspace `json:"imported_workspace_id"`
	File      event.Digest `json:"file_sha256"`
	Size      int64        `json:"file_bytes"`
	Made      time.Time    `json:"made_at"`
	Events    uint64       `json:"events"`
	Contents  int          `json:"contents"`
	Missing   int          `json:"contents_missing"`
	Root      string       `json:"root_hash"`       // of the tree over all events
	Signed    uint64       `json:"checkpoint_size"` // of the checkpoint that came along; 0 for none
	PublicKey string       `json:"public_key"`      // that verifies it
}

// ImportEnded is the data of workspace.imported and workspace.import_failed.
type ImportEnded struct {
	Workspace id.Workspace `json:"imported_workspace_id"`
	Spaces    int          `json:"spaces_ended"` // which lived there, and whose files stayed there
	Error     string       `json:"error,omitempty"`
}

// Touches reports whether the event changes the document of an import, whose key is then the event's entity.
func Touches(e event.Event) bool {
	switch e.Type {
	case EventImportBegun, EventImported, EventImportFailed:
		return e.EntityType == EntityType
	}
	return false
}

// Evolve returns the import after the event. It is pure.
func Evolve(i Import, e event.Event) (Import, error) {
	if e.Type == EventImportBegun {
		d, err := event.Decode[ImportBegun](e)
		return Import{ImportBegun: d, Status: Begun, By: e.ID}, err
	}
	d, err := event.Decode[ImportEnded](e)
	i.Status, i.Spaces, i.Error = Imported, d.Spaces, d.Error
	if e.Type == EventImportFailed {
		i.Status = Failed
	}
	return i, err
}
