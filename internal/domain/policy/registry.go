package policy

import (
	"slices"
	"strings"

	"agentbox/internal/domain/event"
)

// SideEffect is the class of an action's effect on the world, from nothing to everything.
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

// Reaches reports whether an action with this side effect reaches beyond the log. Then the kill switch stops it, and it counts against the
// quota. An unknown side effect does.
func (s SideEffect) Reaches() bool { return s != Pure && s != Read && s != Record }

// Kind describes an action type: its possible effects and how strictly it is judged.
type Kind struct {
	Type        string     `json:"type"`
	SideEffect  SideEffect `json:"side_effect"`
	Zone        event.Zone `json:"zone"`
	Reversible  bool       `json:"reversible"`
	Idempotent  bool       `json:"idempotent"`   // may be done again after a crash that hid its outcome
	PreApproval bool       `json:"pre_approval"` // asks a person under every bundle
	Title       string     `json:"title"`        // a few words for people, the verb first

	Outside    bool     `json:"outside,omitempty"` // a principal does it outside of Agentbox and asks first
	PostReview bool     `json:"post_review"`       // a person looks at it afterwards
	Cost       Cost     `json:"cost,omitempty"`
	Recovery   Recovery `json:"recovery,omitempty"`

	// For an action of RulesRole: who may do it. A bundle may forbid it or ask, but need not permit it.
	Role     string `json:"role,omitempty"`     // the least role of a person; "" is nobody
	Agents   bool   `json:"agents,omitempty"`   // agents may
	Services bool   `json:"services,omitempty"` // services may, engines among them
	Halts    bool   `json:"halts,omitempty"`    // the recording principal acts on the world by it, so the kill switch stops it

	Declared int `json:"declared_version,omitempty"` // of a type that the workspace declared: the version of its declaration

	Anywhere bool `json:"anywhere,omitempty"` // belongs to no room by its nature, so that the rooms of a capability token do not bound it

	Rules    Rules    `json:"-"` // which rules of a policy permit it; without any it is denied
	Template Template `json:"-"` // the parts that may vary under a standing approval of scope template
	Clamp    Clamp    `json:"-"` // the number that the policy's limit bounds
	Givable  bool     `json:"-"` // a policy can give it to agents and services, although people do it otherwise
	Impact   string   `json:"-"` // its effects, in sentences, if the side effect does not say them
}

// Rules is the class of rules by which the short form of a policy permits an action.
type Rules string

// The classes of rules. The zero value is none, so that nothing permits the action.
const (
	RulesReads    Rules = "reads"    // those of files, as something that reads
	RulesWrites   Rules = "writes"   // those of files, as something that writes
	RulesCommands Rules = "commands" // those of commands
	RulesHosts    Rules = "hosts"    // those of domains
	RulesControl  Rules = "control"  // people may; agents and services where a policy gives it to them
	RulesOwn      Rules = "own"      // a rule of its own in every policy
	RulesRole     Rules = "role"     // Role, Agents and Services say who may; a policy can only forbid it or ask
)

// Template says what of an action may vary under a standing approval of scope template.
type Template string

// The templates. The zero value is none: then the action makes no template.
const (
	TemplateWords   Template = "words"   // words of a command that name a file of a folder
	TemplateFile    Template = "file"    // the name of a file of a folder
	TemplateContent Template = "content" // the name of a file of a folder, and the content
	TemplateRequest Template = "request" // the values of a request, to the same target
)

// Clamp names the number of an action that a limit of the policy bounds. The gate lowers a larger number to the limit.
type Clamp string

// The clamps. The zero value is none.
const (
	ClampBytes Clamp = "bytes" // MaxBytes, by Limits.FileBytes
	ClampTime  Clamp = "time"  // TimeoutMS, by Limits.CommandMS; not that of a background run
)

// record describes an action whose whole effect is its event. Who names those who may do it besides people of the role: "agents",
// "services".
func record(typ, title, role string, who ...string) Kind {
	return Kind{
		Type: typ, SideEffect: Record, Zone: event.Supervised, Reversible: true, Title: title, Rules: RulesRole,
		Role: role, Agents: slices.Contains(who, "agents"), Services: slices.Contains(who, "services"),
	}
}

// unjustified is a kind that asks a person under every bundle, because a disclosure cannot be undone.
func unjustified(k Kind) Kind {
	k.PreApproval = true
	k.Impact = "Personal data are used for another purpose than they are kept for. This cannot be undone."
	return k
}

// hosted is a kind that the rules of domains permit.
func hosted(k Kind) Kind {
	k.Rules = RulesHosts
	return k
}

// halting is a kind that the kill switch stops although its whole effect here is its event: somebody will act on the record.
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
	SpaceRewind   = "space.rewind"  // restore a space's files from a snapshot
	SpaceFork     = "space.fork"    // make a space whose files begin as a snapshot of another's
	SpacePolicy   = "space.policy"  // pin another policy to a living space
	SpacePromote  = "space.promote" // run a space's code in a heavier tier from now on
	PortExpose    = "port.expose"   // let requests from outside reach a port of a space
	RunStart      = "run.start"
	RunImport     = "run.import"    // take a transcript of a run that was executed elsewhere into the record
	RunContinue   = "run.continue"  // go on after an operation whose outcome a crash hid
	ContentSweep  = "content.sweep" // remove content that nothing names, and snapshots beyond those that are kept
	ExternalWrite = "external.write"
	HTTPFetch     = "http.fetch"         // get a page of the web, at a public address
	HTTPPrivate   = "http.fetch.private" // get a page at an address of the own network or of this machine
	AuditRedact   = "audit.redact"       // destroy the data of events for good

	WorkspaceImport    = "workspace.import" // take a workspace of another installation into this one
	WorkspaceCreate    = "workspace.create"
	WorkspaceUpdate    = "workspace.update"  // change how a workspace is called, or how many of its tasks run at the same time
	WorkspaceArchive   = "workspace.archive" // end the work in a workspace
	WorkspaceUnarchive = "workspace.unarchive"

	NodeRemove = "node.remove" // give up a daemon of the installation that never comes back

	RoomCreate    = "room.create"
	RoomUpdate    = "room.update"    // change the name of a room, or the summary of its messages
	RoomConfigure = "room.configure" // set instructions and rights of agents in one room, or in all rooms
	RoomRead      = "room.read"      // say how far one has read
	ThreadCreate  = "thread.create"
	ThreadUpdate  = "thread.update"
	MessageCreate = "message.create" // post a message into a thread

	IncidentOpen  = "incident.open"
	IncidentRCA   = "incident.rca"   // write down the root cause of an incident
	IncidentLearn = "incident.learn" // record the lessons of an incident
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
	ToolReport      = "tool.report" // report the outcome of a tool call
	ArtifactCreate  = "artifact.create"
	ArtifactStore   = "artifact.store" // keep the content of an artifact
	EvidenceCollect = "evidence.collect"

	PolicyEvaluate  = "policy.evaluate"  // ask whether something may be done outside
	ApprovalRequest = "approval.request" // ask a person about an action outside

	ApprovalDecide = "approval.decide" // answer a question; the question also bounds who may
	StandingRevoke = "standing.revoke"

	ActionTypeDeclare = "action_type.declare" // declare an action type of the workspace's own, or change it
	ActionTypeRetire  = "action_type.retire"

	BlueprintRegister = "blueprint.register" // register a blueprint, or a new version of it
	BlueprintRemove   = "blueprint.remove"

	AgentTool = "agent.tool" // let a coding agent of others use one of its own tools, about which it asks

	ModelCall      = "model.call"      // send a request to an endpoint of a model
	ModelConfigure = "model.configure" // change the catalogue of models, the routes and the budgets
	ModelKey       = "model.key"       // set a key for endpoints of models, or remove it

	MCPConnect        = "mcp.connect"         // begin a session with an MCP server: in the space, or at a public address
	MCPConnectPrivate = "mcp.connect.private" // begin one with a server at an address of the own network or of this machine
	MCPCall           = "mcp.call"            // call a tool of an MCP server
	MCPConfigure      = "mcp.configure"       // add an MCP server, change it or remove it
	MCPTrust          = "mcp.trust"           // look at the tools of an MCP server, and release them for agents

	KillSwitchSet = "kill_switch.set"
	RunCancel     = "run.cancel"

	AgentRegister   = "agent.register"
	AgentQuarantine = "agent.quarantine" // stop a principal from doing anything, or end that
	PrincipalAdd    = "principal.add"
	PrincipalRole   = "principal.role"   // give a person another role
	PrincipalEnsure = "principal.ensure" // register a person that another program knows
	KeyIssue        = "key.issue"
	KeyRevoke       = "key.revoke"
	PassphraseSet   = "passphrase.set" // by which one logs in oneself

	EngineRegister = "engine.register" // register an engine, or deactivate it
	EngineToken    = "engine.token"    // issue a token of an engine, or revoke it

	CapabilityGrant  = "capability.grant"
	CapabilityRevoke = "capability.revoke"
)

// table is the registry of actions. A row says everything about an action type; a type without a row is denied. A lookup starts at the
// beginning, so the most frequent actions come first.
var table = []Kind{
	{
		Type: MessageSend, Title: "say something", SideEffect: Pure, Zone: event.Sandbox, Reversible: true, Idempotent: true,
		Rules: RulesOwn,
	},
	{
		Type: FileRead, Title: "read a file", SideEffect: Read, Zone: event.Sandbox, Reversible: true, Idempotent: true,
		Rules: RulesReads, Template: TemplateFile, Clamp: ClampBytes,
	},
	{
		Type: FileList, Title: "list files", SideEffect: Read, Zone: event.Sandbox, Reversible: true, Idempotent: true,
		Rules: RulesReads,
	},
	{
		Type: FileArchive, Title: "download files", SideEffect: Read, Zone: event.Sandbox, Reversible: true, Idempotent: true,
		Rules: RulesReads,
	},
	{
		Type: FileCreate, Title: "write a file", SideEffect: Filesystem, Zone: event.Supervised, Reversible: true,
		Rules: RulesWrites, Template: TemplateContent,
	},
	{
		Type: FileEdit, Title: "change a file", SideEffect: Filesystem, Zone: event.Supervised, Reversible: true,
		Rules: RulesWrites, Template: TemplateContent, Clamp: ClampBytes,
	},
	{
		Type: FileDelete, Title: "delete a file", SideEffect: Filesystem, Zone: event.Supervised,
		Rules: RulesWrites, Template: TemplateFile,
	},
	{
		Type: ShellExec, Title: "run a command", SideEffect: Process, Zone: event.Supervised,
		Rules: RulesCommands, Template: TemplateWords, Clamp: ClampTime,
	},
	{
		Type: SpaceCreate, Title: "make a space", SideEffect: Control, Zone: event.Supervised, Reversible: true, Rules: RulesControl,
	},
	{
		Type: SpaceStart, Title: "start a space", SideEffect: Control, Zone: event.Supervised, Reversible: true, Idempotent: true,
		Rules: RulesControl, Givable: true,
	},
	{
		Type: SpaceUpdate, Title: "change a space", SideEffect: Control, Zone: event.Supervised, Reversible: true, Idempotent: true,
		Rules: RulesControl,
	},
	{
		Type: SpaceDestroy, Title: "destroy a space", SideEffect: Control, Zone: event.Supervised, Idempotent: true,
		Rules: RulesControl,
	},
	{
		Type: SpaceDiff, Title: "compare snapshots", SideEffect: Read, Zone: event.Sandbox, Reversible: true, Idempotent: true,
		Rules: RulesReads,
	},
	{
		Type: SpaceRewind, Title: "rewind a space's files", SideEffect: Filesystem, Zone: event.Supervised, Reversible: true, Idempotent: true,
		Rules: RulesControl, Givable: true,
	},
	{
		Type: SpaceFork, Title: "fork a space", SideEffect: Control, Zone: event.Supervised, Reversible: true, Rules: RulesControl,
	},
	{
		Type: SpacePromote, Title: "promote a space", SideEffect: Control, Zone: event.Supervised, Idempotent: true,
		Rules: RulesControl,
	},
	{
		Type: PortExpose, Title: "open a port of a space", SideEffect: Control, Zone: event.Supervised, Reversible: true, Idempotent: true,
		Rules: RulesControl, Givable: true,
		Impact: "Requests from outside reach the program that listens on this port of the space, and its answers leave the space. By method " +
			"link, everybody who has the address can ask until it ends; by link_external, its pages may also load from other hosts. The port " +
			"can be closed; what has left does not come back.",
	},
	{
		Type: RunStart, Title: "start a run", SideEffect: Control, Zone: event.Supervised, Reversible: true,
		Rules: RulesControl, Givable: true,
	},
	{
		Type: RunImport, Title: "import a transcript", SideEffect: Control, Zone: event.Supervised, Reversible: true, Idempotent: true,
		Rules: RulesControl, Givable: true,
	},
	{
		Type: RunContinue, Title: "go on after an interrupted operation", SideEffect: Control, Zone: event.Supervised, Reversible: true,
		Idempotent:  true,
		PreApproval: true,
		Rules:       RulesOwn,
		Impact:      "The run goes on with its next operation. The interrupted one is not repeated, and what it did is not known.",
	},
	{
		Type: ContentSweep, Title: "free what nothing names", SideEffect: Control, Zone: event.Supervised, Idempotent: true,
		Rules: RulesControl,
	},
	hosted(risky(ExternalWrite, "write to the outside world", HighCost)),
	{
		Type: HTTPFetch, Title: "fetch from the web", SideEffect: Network, Zone: event.Supervised, Idempotent: true, Cost: LowCost,
		Rules: RulesHosts, Impact: "Sends the address with everything in it to its host. What was sent cannot be taken back.",
	},
	{
		Type: HTTPPrivate, Title: "fetch from the own network", SideEffect: Network, Zone: event.Supervised, Idempotent: true, Cost: LowCost,
		Rules: RulesHosts, Impact: "Asks a machine of the own network, or this one, as the daemon reaches it.",
	},
	{
		Type: MCPConnect, Title: "reach an MCP server", SideEffect: Network, Zone: event.Supervised, Idempotent: true, Cost: LowCost,
		Rules: RulesHosts, Impact: "Tells the server that an agent is there, and asks it which tools it has.",
	},
	{
		Type: MCPConnectPrivate, Title: "reach an MCP server of the own network", SideEffect: Network, Zone: event.Supervised, Idempotent: true,
		Cost: LowCost, Rules: RulesHosts, Impact: "Asks a machine of the own network, or this one, as the daemon reaches it.",
	},
	{
		Type: MCPCall, Title: "call a tool of an MCP server", SideEffect: Network, Zone: event.Supervised, Cost: MediumCost, Rules: RulesOwn,
		Impact: "The server gets the arguments, and does with them what its tool does. Nobody here can take that back.",
	},
	{Type: AuditRedact, Title: "redact events", SideEffect: Control, Zone: event.HighStakes, Idempotent: true, Rules: RulesOwn},

	{
		Type: WorkspaceImport, Title: "import a workspace", SideEffect: Control, Zone: event.HighStakes, Idempotent: true,
		Rules: RulesOwn,
	},

	record(WorkspaceCreate, "make a workspace", "admin"),
	record(WorkspaceUpdate, "change a workspace", "admin"),
	record(WorkspaceArchive, "archive a workspace", "admin"),
	record(WorkspaceUnarchive, "unarchive a workspace", "admin"),

	record(NodeRemove, "give up a node", "overlord"),

	record(SpacePolicy, "change the policy of a space", "operator"),

	record(RoomCreate, "make a room", "member"),
	record(RoomUpdate, "change a room", "member", "agents", "services"),
	record(RoomConfigure, "set what agents are told and may use in a room", "admin"),
	record(RoomRead, "say how far one has read a room", "viewer", "agents", "services"),
	record(ThreadCreate, "begin a thread", "member", "agents", "services"),
	record(ThreadUpdate, "change a thread", "member", "agents", "services"),
	record(MessageCreate, "post a message", "member", "agents", "services"),

	record(IncidentOpen, "open an incident", "member", "agents", "services"),
	record(IncidentRCA, "write down the cause of an incident", "member", "agents", "services"),
	record(IncidentLearn, "write down what was learned", "member", "agents", "services"),
	record(IncidentClose, "close an incident", "operator"),

	record(LabelSet, "label a resource", "member", "agents", "services"),
	record(LabelLower, "lower the label of a resource", "admin"),
	record(DataAccess, "come near data", "viewer", "agents", "services"),

	unjustified(record(DataAccessUnjustified, "come near personal data without a justification", "viewer", "agents", "services")),

	record(RunCreate, "ask for a run", "member", "agents", "services"),
	record(RunClaim, "claim a run", "member", "services"),
	record(RunRenew, "go on owning a run", "member", "services"),
	record(RunRelease, "give a run back", "member", "services"),
	record(RunBegin, "start a run by hand", "member", "agents", "services"),
	record(RunComplete, "complete a run", "member", "agents", "services"),
	record(RunFail, "fail a run", "member", "agents", "services"),
	record(StepCreate, "record a step", "member", "agents", "services"),
	halting(record(ToolCall, "call a tool", "member", "agents", "services")),
	{
		Type: ModelCall, Title: "ask a model", SideEffect: Network, Zone: event.Supervised, Idempotent: true, Cost: LowCost,
		Role: "member", Agents: true, Services: true, Rules: RulesRole,
		Impact: "Sends the conversation to the model's endpoint, which may cost money. Sent text cannot be taken back.",
	},
	{
		Type: AgentTool, Title: "let a coding agent use a tool", SideEffect: Process, Zone: event.Supervised, Cost: LowCost,
		Role: "member", Agents: true, Services: true, Rules: RulesRole,
		Impact: "The program in the space uses its tool with this input. What it can reach is bounded by the space. " +
			"The approval binds the program only as far as it keeps to its own question.",
	},
	record(ToolReport, "report a tool call", "member", "agents", "services"),
	record(ArtifactStore, "keep an artifact's content", "member", "agents", "services"),
	record(EvidenceCollect, "collect the evidence of a run", "member", "agents", "services"),

	record(PolicyEvaluate, "ask whether something may be done", "member", "agents", "services"),
	record(ApprovalRequest, "ask a person", "member", "agents", "services"),

	record(ApprovalDecide, "answer a question", "operator"),
	record(ActionTypeDeclare, "declare an action type", "admin"),
	record(ActionTypeRetire, "retire an action type", "admin"),
	record(BlueprintRegister, "register a blueprint", "member"),
	record(BlueprintRemove, "remove a blueprint", "member"),
	record(ModelConfigure, "change the catalogue of models", "admin"),
	record(ModelKey, "keep the keys of models", "admin"),

	record(MCPConfigure, "keep MCP servers", "admin"),
	record(MCPTrust, "release the tools of MCP servers", "operator"),

	record(StandingRevoke, "end a standing approval", "operator"),
	record(KillSwitchSet, "throw the kill switch", "member"),
	record(RunCancel, "end a run", "member", "agents"),

	record(AgentRegister, "register an agent", "member", "agents"),
	record(AgentQuarantine, "quarantine a principal", "admin"),
	record(PrincipalAdd, "add a principal", "admin"),
	record(PrincipalRole, "change a role", "admin"),
	record(PrincipalEnsure, "register a principal of another program", "admin"),
	record(KeyIssue, "make an API key", "viewer", "agents", "services"),
	record(PassphraseSet, "set one's own passphrase", "viewer"),
	record(KeyRevoke, "revoke an API key", "viewer", "agents", "services"),

	record(EngineRegister, "keep engines", "admin"),
	record(EngineToken, "keep the tokens of engines", "admin"),

	anywhere(record(CapabilityGrant, "grant a capability token", "member", "agents")),
	anywhere(record(CapabilityRevoke, "revoke a capability token", "member", "agents")),

	// Done outside of Agentbox, by programs that ask before they act, beside ExternalWrite; and actions on outputs.
	risky(EmailSend, "send an e-mail", MediumCost),
	risky(PaymentExecute, "pay", HighCost),
	risky(APICallMutating, "change something by an API", HighCost),
	{
		Type: APICallIdempotent, Title: "call an API that changes nothing twice", SideEffect: Network, Zone: event.Supervised,
		Reversible: true, Idempotent: true, Outside: true, Role: "member", Agents: true, Services: true, Rules: RulesRole,
		Template: TemplateRequest,
	},
	{
		Type: QuestionAsk, Title: "put a question to a person", SideEffect: Pure, Zone: event.Sandbox, Reversible: true, PreApproval: true,
		Outside: true, Role: "member", Agents: true, Services: true, Rules: RulesRole, Template: TemplateRequest,
		Impact: "Nothing is done. The requester learns the answer.",
	},
	record(ArtifactCreate, "record an artifact", "member", "agents", "services"),
	record("artifact.update", "change an output", "member", "agents", "services"),
}

// Registry returns every kind of action, by name.
func Registry() []Kind {
	list := make([]Kind, len(table))
	for i := range table {
		list[i] = table[i].graded()
	}
	slices.SortFunc(list, func(a, b Kind) int { return strings.Compare(a.Type, b.Type) })
	return list
}

// Givable returns the actions that a policy can give to agents and services, by name. Only people make spaces, end them, or change their
// bounds or their policy.
func Givable() []string {
	var list []string
	for i := range table {
		if table[i].Givable {
			list = append(list, table[i].Type)
		}
	}
	slices.Sort(list)
	return list
}

// Askable reports whether a policy can ask about an action by its type: it is done outside, or its request is sent again until a person
// has answered.
func Askable(name string) bool {
	return Outside(name) || name == PortExpose || name == ModelCall || name == AgentTool
}

// Ruled returns the actions that a class of rules permits, in the order of the table.
func Ruled(class Rules) []string {
	var list []string
	for i := range table {
		if table[i].Rules == class {
			list = append(list, table[i].Type)
		}
	}
	return list
}

// KindOf returns the registry's entry for an action type.
func KindOf(actionType string) (Kind, bool) {
	for i := range table {
		if table[i].Type == actionType {
			return table[i], true
		}
	}
	return Kind{}, false
}
