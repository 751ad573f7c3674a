package policy

import (
	"slices"

	"agentbox/internal/domain/event"
)

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
	Record     SideEffect = "record"     // says something in the log and does nothing else: rooms, messages, steps, incidents
)

// Reaches reports whether what has this side effect reaches beyond the log: then the kill switch stops it, and it counts against the quota.
// What does not know its side effect does.
func (s SideEffect) Reaches() bool { return s != Pure && s != Read && s != Record }

// Kind describes an action type: what it may do and how carefully it is treated.
type Kind struct {
	Type        string     `json:"type"`
	SideEffect  SideEffect `json:"side_effect"`
	Zone        event.Zone `json:"zone"`
	Reversible  bool       `json:"reversible"`
	Idempotent  bool       `json:"idempotent"`   // may be done again after a crash that hid its outcome
	PreApproval bool       `json:"pre_approval"` // asks a person whatever the bundle says
	Title       string     `json:"title"`        // a few words for people, the verb first

	Outside    bool     `json:"outside,omitempty"` // it is done outside of Agentbox, by who asks before
	PostReview bool     `json:"post_review"`       // a person looks at it afterwards
	Cost       Cost     `json:"cost,omitempty"`
	Recovery   Recovery `json:"recovery,omitempty"`

	// Of a Record, and of what is done outside: who may do it. A bundle may forbid it or ask, but need not permit it.
	Role     string `json:"role,omitempty"`     // the least role of a person; "" is nobody
	Agents   bool   `json:"agents,omitempty"`   // agents may
	Services bool   `json:"services,omitempty"` // services may, engines among them
	Halts    bool   `json:"halts,omitempty"`    // who records it acts on the world by it, so that the kill switch stops it

	Declared int `json:"declared_version,omitempty"` // of a type that the workspace declared: the version of its declaration

	Anywhere bool `json:"anywhere,omitempty"` // belongs to no room by its nature, so that the rooms of a capability token do not bound it
}

// record describes an action whose whole effect is its event. Who says who may do it beside people of the role: "agents", "services".
func record(typ, title, role string, who ...string) Kind {
	return Kind{
		Type: typ, SideEffect: Record, Zone: event.Supervised, Reversible: true, Title: title,
		Role: role, Agents: slices.Contains(who, "agents"), Services: slices.Contains(who, "services"),
	}
}

// asking is a kind that asks a person whatever the bundle says.
func asking(k Kind) Kind {
	k.PreApproval = true
	return k
}

// halting is a kind that the kill switch stops although its whole effect here is its event: what is recorded is about to be done by somebody.
func halting(k Kind) Kind {
	k.Halts = true
	return k
}

// Stops reports whether the kill switch stops the action.
func (k Kind) Stops() bool { return k.Halts || k.SideEffect.Reaches() }

// anywhere is the kind of an action that belongs to no room by its nature.
func anywhere(k Kind) Kind {
	k.Anywhere = true
	return k
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
	SpaceDiff     = "space.diff"    // compare two snapshots of a space's files
	SpaceRewind   = "space.rewind"  // make a space's files what they were in a snapshot
	SpaceFork     = "space.fork"    // make a space whose files begin as a snapshot of another's
	SpacePolicy   = "space.policy"  // pin another policy to a living space
	SpacePromote  = "space.promote" // run a space's code in a heavier tier from now on
	RunStart      = "run.start"
	RunImport     = "run.import"    // take a transcript of a run that was executed elsewhere into the record
	RunContinue   = "run.continue"  // go on after an operation whose outcome a crash hid
	ContentSweep  = "content.sweep" // remove content that nothing names, and snapshots beyond those that are kept
	ExternalWrite = "external.write"
	AuditRedact   = "audit.redact" // destroy the data of events for good

	WorkspaceImport    = "workspace.import" // take a workspace of another installation into this one
	WorkspaceCreate    = "workspace.create"
	WorkspaceUpdate    = "workspace.update"  // change how a workspace is called, or how many of its tasks run at the same time
	WorkspaceArchive   = "workspace.archive" // end what is done in a workspace
	WorkspaceUnarchive = "workspace.unarchive"

	NodeRemove = "node.remove" // give up a daemon of the installation that never comes back

	RoomCreate    = "room.create"
	RoomUpdate    = "room.update"    // change what a room is called, or the summary of what was said in it
	RoomConfigure = "room.configure" // set what agents in a room, or in every room, are told and may use
	RoomRead      = "room.read"      // say how far one has read
	ThreadCreate  = "thread.create"
	ThreadUpdate  = "thread.update"
	MessageCreate = "message.create" // post a message into a thread

	IncidentOpen  = "incident.open"
	IncidentRCA   = "incident.rca"   // write down the root cause of an incident
	IncidentLearn = "incident.learn" // write down what was learned of an incident
	IncidentClose = "incident.close"

	LabelSet   = "label.set"
	LabelLower = "label.lower" // let anybody nearer to a resource than before
	DataAccess = "data.access"

	// DataAccessUnjustified is to come near personal data for another purpose than they are kept for, without a justification.
	DataAccessUnjustified = "data.access.unjustified"

	RunCreate       = "run.create" // ask for a run that an engine executes
	RunClaim        = "run.claim"
	RunRenew        = "run.lease.heartbeat" // go on owning a run
	RunRelease      = "run.lease.release"
	RunBegin        = "run.begin" // start a run by hand
	RunComplete     = "run.complete"
	RunFail         = "run.fail"
	StepCreate      = "step.create"
	ToolCall        = "tool.call"   // call a tool, which an engine does itself
	ToolReport      = "tool.report" // say what came of a tool call
	ArtifactCreate  = "artifact.create"
	ArtifactStore   = "artifact.store" // keep the content of an artifact
	EvidenceCollect = "evidence.collect"

	PolicyEvaluate  = "policy.evaluate"  // ask whether something may be done outside
	ApprovalRequest = "approval.request" // ask a person about what is to be done outside

	ApprovalDecide = "approval.decide" // answer a question; who may follows the question, too
	StandingRevoke = "standing.revoke"

	ActionTypeDeclare = "action_type.declare" // declare an action type of the workspace's own, or change it
	ActionTypeRetire  = "action_type.retire"

	KillSwitchSet = "kill_switch.set"
	RunCancel     = "run.cancel"

	AgentRegister   = "agent.register"
	AgentQuarantine = "agent.quarantine" // stop a principal from doing anything, or end that
	PrincipalAdd    = "principal.add"
	PrincipalRole   = "principal.role"   // give a person another role
	PrincipalEnsure = "principal.ensure" // register whom another program knew
	KeyIssue        = "key.issue"
	KeyRevoke       = "key.revoke"
	PassphraseSet   = "passphrase.set" // by which one logs in oneself

	EngineRegister = "engine.register" // register an engine, or deactivate it
	EngineToken    = "engine.token"    // issue a token of an engine, or revoke it

	CapabilityGrant  = "capability.grant"
	CapabilityRevoke = "capability.revoke"
)

// kinds is the registry of actions. What is not in it is denied.
var kinds = map[string]Kind{
	MessageSend:   {Type: MessageSend, SideEffect: Pure, Zone: event.Sandbox, Reversible: true, Idempotent: true, Title: "say something"},
	FileRead:      {Type: FileRead, SideEffect: Read, Zone: event.Sandbox, Reversible: true, Idempotent: true, Title: "read a file"},
	FileList:      {Type: FileList, SideEffect: Read, Zone: event.Sandbox, Reversible: true, Idempotent: true, Title: "list files"},
	FileArchive:   {Type: FileArchive, SideEffect: Read, Zone: event.Sandbox, Reversible: true, Idempotent: true, Title: "download files"},
	FileCreate:    {Type: FileCreate, SideEffect: Filesystem, Zone: event.Supervised, Reversible: true, Title: "write a file"},
	FileEdit:      {Type: FileEdit, SideEffect: Filesystem, Zone: event.Supervised, Reversible: true, Title: "change a file"},
	FileDelete:    {Type: FileDelete, SideEffect: Filesystem, Zone: event.Supervised, Title: "delete a file"},
	ShellExec:     {Type: ShellExec, SideEffect: Process, Zone: event.Supervised, Title: "run a command"},
	SpaceCreate:   {Type: SpaceCreate, SideEffect: Control, Zone: event.Supervised, Reversible: true, Title: "make a space"},
	SpaceStart:    {Type: SpaceStart, SideEffect: Control, Zone: event.Supervised, Reversible: true, Idempotent: true, Title: "start a space"},
	SpaceUpdate:   {Type: SpaceUpdate, SideEffect: Control, Zone: event.Supervised, Reversible: true, Idempotent: true, Title: "change a space"},
	SpaceDestroy:  {Type: SpaceDestroy, SideEffect: Control, Zone: event.Supervised, Idempotent: true, Title: "destroy a space"},
	SpaceDiff:     {Type: SpaceDiff, SideEffect: Read, Zone: event.Sandbox, Reversible: true, Idempotent: true, Title: "compare snapshots"},
	SpaceRewind:   {Type: SpaceRewind, SideEffect: Filesystem, Zone: event.Supervised, Reversible: true, Idempotent: true, Title: "rewind a space's files"},
	SpaceFork:     {Type: SpaceFork, SideEffect: Control, Zone: event.Supervised, Reversible: true, Title: "fork a space"},
	SpacePromote:  {Type: SpacePromote, SideEffect: Control, Zone: event.Supervised, Idempotent: true, Title: "promote a space"},
	RunStart:      {Type: RunStart, SideEffect: Control, Zone: event.Supervised, Reversible: true, Title: "start a run"},
	RunImport:     {Type: RunImport, SideEffect: Control, Zone: event.Supervised, Reversible: true, Idempotent: true, Title: "import a transcript"},
	RunContinue:   {Type: RunContinue, SideEffect: Control, Zone: event.Supervised, Reversible: true, Idempotent: true, PreApproval: true, Title: "go on after an interrupted operation"},
	ContentSweep:  {Type: ContentSweep, SideEffect: Control, Zone: event.Supervised, Idempotent: true, Title: "free what nothing names"},
	ExternalWrite: risky(ExternalWrite, "write to the outside world", HighCost),
	AuditRedact:   {Type: AuditRedact, SideEffect: Control, Zone: event.HighStakes, Idempotent: true, Title: "redact events"},

	WorkspaceImport: {Type: WorkspaceImport, SideEffect: Control, Zone: event.HighStakes, Idempotent: true, Title: "import a workspace"},

	WorkspaceCreate:    record(WorkspaceCreate, "make a workspace", "admin"),
	WorkspaceUpdate:    record(WorkspaceUpdate, "change a workspace", "admin"),
	WorkspaceArchive:   record(WorkspaceArchive, "archive a workspace", "admin"),
	WorkspaceUnarchive: record(WorkspaceUnarchive, "unarchive a workspace", "admin"),

	NodeRemove: record(NodeRemove, "give up a node", "overlord"),

	SpacePolicy: record(SpacePolicy, "change the policy of a space", "operator"),

	RoomCreate:    record(RoomCreate, "make a room", "member"),
	RoomUpdate:    record(RoomUpdate, "change a room", "member", "agents", "services"),
	RoomConfigure: record(RoomConfigure, "set what agents are told and may use in a room", "admin"),
	RoomRead:      record(RoomRead, "say how far one has read a room", "viewer", "agents", "services"),
	ThreadCreate:  record(ThreadCreate, "begin a thread", "member", "agents", "services"),
	ThreadUpdate:  record(ThreadUpdate, "change a thread", "member", "agents", "services"),
	MessageCreate: record(MessageCreate, "post a message", "member", "agents", "services"),

	IncidentOpen:  record(IncidentOpen, "open an incident", "member", "agents", "services"),
	IncidentRCA:   record(IncidentRCA, "write down the cause of an incident", "member", "agents", "services"),
	IncidentLearn: record(IncidentLearn, "write down what was learned", "member", "agents", "services"),
	IncidentClose: record(IncidentClose, "close an incident", "operator"),

	LabelSet:   record(LabelSet, "label a resource", "member", "agents", "services"),
	LabelLower: record(LabelLower, "lower the label of a resource", "admin"),
	DataAccess: record(DataAccess, "come near data", "viewer", "agents", "services"),

	DataAccessUnjustified: asking(record(DataAccessUnjustified, "come near personal data without a justification", "viewer", "agents", "services")),

	RunCreate:       record(RunCreate, "ask for a run", "member", "agents", "services"),
	RunClaim:        record(RunClaim, "claim a run", "member", "services"),
	RunRenew:        record(RunRenew, "go on owning a run", "member", "services"),
	RunRelease:      record(RunRelease, "give a run back", "member", "services"),
	RunBegin:        record(RunBegin, "start a run by hand", "member", "agents", "services"),
	RunComplete:     record(RunComplete, "complete a run", "member", "agents", "services"),
	RunFail:         record(RunFail, "fail a run", "member", "agents", "services"),
	StepCreate:      record(StepCreate, "record a step", "member", "agents", "services"),
	ToolCall:        halting(record(ToolCall, "call a tool", "member", "agents", "services")),
	ToolReport:      record(ToolReport, "report a tool call", "member", "agents", "services"),
	ArtifactStore:   record(ArtifactStore, "keep an artifact's content", "member", "agents", "services"),
	EvidenceCollect: record(EvidenceCollect, "collect the evidence of a run", "member", "agents", "services"),

	PolicyEvaluate:  record(PolicyEvaluate, "ask whether something may be done", "member", "agents", "services"),
	ApprovalRequest: record(ApprovalRequest, "ask a person", "member", "agents", "services"),

	ApprovalDecide:    record(ApprovalDecide, "answer a question", "operator"),
	ActionTypeDeclare: record(ActionTypeDeclare, "declare an action type", "admin"),
	ActionTypeRetire:  record(ActionTypeRetire, "retire an action type", "admin"),

	StandingRevoke: record(StandingRevoke, "end a standing approval", "operator"),
	KillSwitchSet:  record(KillSwitchSet, "throw the kill switch", "member"),
	RunCancel:      record(RunCancel, "end a run", "member", "agents"),

	AgentRegister:   record(AgentRegister, "register an agent", "member", "agents"),
	AgentQuarantine: record(AgentQuarantine, "quarantine a principal", "admin"),
	PrincipalAdd:    record(PrincipalAdd, "add a principal", "admin"),
	PrincipalRole:   record(PrincipalRole, "change a role", "admin"),
	PrincipalEnsure: record(PrincipalEnsure, "register a principal of another program", "admin"),
	KeyIssue:        record(KeyIssue, "make an API key", "viewer", "agents", "services"),
	PassphraseSet:   record(PassphraseSet, "set one's own passphrase", "viewer"),
	KeyRevoke:       record(KeyRevoke, "revoke an API key", "viewer", "agents", "services"),

	EngineRegister: record(EngineRegister, "keep engines", "admin"),
	EngineToken:    record(EngineToken, "keep the tokens of engines", "admin"),

	CapabilityGrant:  anywhere(record(CapabilityGrant, "grant a capability token", "member", "agents")),
	CapabilityRevoke: anywhere(record(CapabilityRevoke, "revoke a capability token", "member", "agents")),
}

// Givable returns the actions that a policy can give to agents and services. What makes spaces, ends them, or changes their bounds or their policy
// stays with people.
func Givable() []string { return []string{RunImport, RunStart, SpaceRewind, SpaceStart} }

// KindOf returns the registry's entry for an action type.
func KindOf(actionType string) (Kind, bool) {
	k, ok := kinds[actionType]
	if !ok {
		k, ok = outside[actionType]
	}
	return k, ok
}
