package policy

import "agentbox/internal/domain/event"

// SideEffect is the class of what an action does to the world, from nothing to everything.
type SideEffect string

// The side effect classes.
const (
	Pure       SideEffect = "pure"       // changes and reveals nothing
	Read       SideEffect = "read"       // reveals something of the workspace, changes nothing
	Filesystem SideEffect = "filesystem" // changes files of a space
	Process    SideEffect = "process"    // runs code
	Network    SideEffect = "network"    // leaves the machine
	Control    SideEffect = "control"    // changes what Agentbox itself holds: spaces, runs, policy
)

// Kind describes an action type: what it may do and how carefully it is treated.
type Kind struct {
	Type        string     `json:"type"`
	SideEffect  SideEffect `json:"side_effect"`
	Zone        event.Zone `json:"zone"`
	Reversible  bool       `json:"reversible"`
	Idempotent  bool       `json:"idempotent"`   // may be done again after a crash that hid its outcome
	PreApproval bool       `json:"pre_approval"` // asks a person whatever the bundle says
	Title       string     `json:"title"`        // a few words for people, the verb first
}

// The action types. Their names are the `action` of approvals, the `action` of Cedar policies and the words of the YAML form.
const (
	MessageSend   = "message.send"
	FileRead      = "file.read"
	FileList      = "file.list"
	FileArchive   = "file.archive"
	FileCreate    = "file.create"
	FileEdit      = "file.edit"
	FileDelete    = "file.delete"
	ShellExec     = "shell.exec"
	SpaceCreate   = "space.create"
	SpaceStart    = "space.start" // start the processes of a space, at first or again
	SpaceUpdate   = "space.update"
	SpaceDestroy  = "space.destroy"
	SpaceDiff     = "space.diff"   // compare two snapshots of a space's files
	SpaceRewind   = "space.rewind" // make a space's files what they were in a snapshot
	SpaceFork     = "space.fork"   // make a space whose files begin as a snapshot of another's
	RunStart      = "run.start"
	RunImport     = "run.import"    // take a transcript of a run that was executed elsewhere into the record
	RunContinue   = "run.continue"  // go on after an operation whose outcome a crash hid
	ContentSweep  = "content.sweep" // remove content that nothing names, and snapshots beyond those that are kept
	ExternalWrite = "external.write"
	AuditRedact   = "audit.redact" // destroy the data of events for good

	WorkspaceImport = "workspace.import" // take a workspace of another installation into this one
)

// kinds is the registry of actions. What is not in it is denied.
var kinds = map[string]Kind{
	MessageSend:   {MessageSend, Pure, event.Sandbox, true, true, false, "say something"},
	FileRead:      {FileRead, Read, event.Sandbox, true, true, false, "read a file"},
	FileList:      {FileList, Read, event.Sandbox, true, true, false, "list files"},
	FileArchive:   {FileArchive, Read, event.Sandbox, true, true, false, "download files"},
	FileCreate:    {FileCreate, Filesystem, event.Supervised, true, false, false, "write a file"},
	FileEdit:      {FileEdit, Filesystem, event.Supervised, true, false, false, "change a file"},
	FileDelete:    {FileDelete, Filesystem, event.Supervised, false, false, false, "delete a file"},
	ShellExec:     {ShellExec, Process, event.Supervised, false, false, false, "run a command"},
	SpaceCreate:   {SpaceCreate, Control, event.Supervised, true, false, false, "make a space"},
	SpaceStart:    {SpaceStart, Control, event.Supervised, true, true, false, "start a space"},
	SpaceUpdate:   {SpaceUpdate, Control, event.Supervised, true, true, false, "change a space"},
	SpaceDestroy:  {SpaceDestroy, Control, event.Supervised, false, true, false, "destroy a space"},
	SpaceDiff:     {SpaceDiff, Read, event.Sandbox, true, true, false, "compare snapshots"},
	SpaceRewind:   {SpaceRewind, Filesystem, event.Supervised, true, true, false, "rewind a space's files"},
	SpaceFork:     {SpaceFork, Control, event.Supervised, true, false, false, "fork a space"},
	RunStart:      {RunStart, Control, event.Supervised, true, false, false, "start a run"},
	RunImport:     {RunImport, Control, event.Supervised, true, true, false, "import a transcript"},
	RunContinue:   {RunContinue, Control, event.Supervised, true, true, true, "go on after an interrupted operation"},
	ContentSweep:  {ContentSweep, Control, event.Supervised, false, true, false, "free what nothing names"},
	ExternalWrite: {ExternalWrite, Network, event.HighStakes, false, false, true, "write to the outside world"},
	AuditRedact:   {AuditRedact, Control, event.HighStakes, false, true, false, "redact events"},

	WorkspaceImport: {WorkspaceImport, Control, event.HighStakes, false, true, false, "import a workspace"},
}

// KindOf returns the registry's entry for an action type.
func KindOf(actionType string) (Kind, bool) {
	k, ok := kinds[actionType]
	return k, ok
}
