package space

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// ChangeProjection is the name of the documents of file changes that came over the API.
const ChangeProjection = "file_changes"

// The events of files that a person or a program opens over the API. Operations of runs have the events of their run instead.
const (
	EventFileBegun = "file.begun" // a change is about to be made
	EventFileEnded = "file.ended" // how it went
	EventFileRead  = "file.read"  // something was read or listed
)

// FileBegun is the data of file.begun.
type FileBegun struct {
	Space   id.Space     `json:"space_id"`
	Action  string       `json:"action"`
	Path    string       `json:"path"`
	Content event.Digest `json:"content_sha256,omitzero"`
	Size    int64        `json:"size_bytes,omitempty"`
	Mode    string       `json:"mode,omitempty"` // requested
	Hash    event.Digest `json:"action_sha256"`

	Withheld bool `json:"withheld,omitempty"` // of a file that is kept from code
}

// FileEnded is the data of file.ended. Unknown means that the daemon ended in between.
type FileEnded struct {
	Space   id.Space `json:"space_id"`
	Change  id.Event `json:"change_id"` // the file.begun event
	OK      bool     `json:"ok"`
	Unknown bool     `json:"unknown,omitempty"`
	Error   string   `json:"error,omitempty"` // a stable code
	Entry   *Entry   `json:"entry,omitempty"` // of the file as it was written
}

// FileRead is the data of file.read.
type FileRead struct {
	Space  id.Space     `json:"space_id"`
	Action string       `json:"action"`
	Path   string       `json:"path"`
	Hash   event.Digest `json:"action_sha256"`

	Withheld bool `json:"withheld,omitempty"` // of a file that is kept from code
	Watch    bool `json:"watch,omitempty"`    // the folder is watched from then on
}

// Change is the document of one change, under the id of its file.begun event.
type Change struct {
	FileBegun
	Workspace id.Workspace `json:"workspace_id"`
	Room      id.Room      `json:"room_id"`
	Principal id.Principal `json:"principal_id"`
	BegunAt   time.Time    `json:"begun_at"`
	Open      bool         `json:"open"`
	OK        bool         `json:"ok"`
	Unknown   bool         `json:"unknown,omitempty"`
	Error     string       `json:"error,omitempty"`
	Entry     *Entry       `json:"entry,omitempty"`
}

// ChangeSubject is the type of subject that file changes are.
const ChangeSubject = "file_change"

// ChangeOn returns the subject of a change, so that the event that ends the change follows the event that began it.
func ChangeOn(change id.Event) event.Subject {
	return event.Subject{Type: ChangeSubject, ID: string(change)}
}

// ChangeOf returns the id of the change that the event is about, "" for none.
func ChangeOf(e event.Event) (id.Event, error) {
	switch e.Type {
	case EventFileBegun:
		return e.ID, nil
	case EventFileEnded:
		d, err := event.Decode[FileEnded](e)
		return d.Change, err
	}
	return "", nil
}

// EvolveChange returns the change after the event. It is pure.
func EvolveChange(c Change, e event.Event) (Change, error) {
	switch e.Type {
	case EventFileBegun:
		d, err := event.Decode[FileBegun](e)
		return Change{FileBegun: d, Workspace: e.Workspace, Room: e.Room, Principal: e.Principal, BegunAt: e.OccurredAt, Open: true}, err
	case EventFileEnded:
		d, err := event.Decode[FileEnded](e)
		c.Open, c.OK, c.Unknown, c.Error, c.Entry = false, d.OK, d.Unknown, d.Error, d.Entry
		return c, err
	}
	return c, nil
}
