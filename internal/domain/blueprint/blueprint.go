// Package blueprint defines an agent: its adapter, models, instructions, tools, space, policy, budgets, limits and pins.
package blueprint

import (
	"encoding/json"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// Version is the version of the format that this program reads.
const Version = 1

// MaxBytes bounds the text of a blueprint.
const MaxBytes = 128 << 10

// The adapters: what runs the agent.
const (
	Internal    = "internal"     // the daemon's own loop
	ExternalCLI = "external_cli" // a program in the agent's space, which asks the daemon for a model
	Remote      = "remote"       // an engine of somebody else, which claims the run over the API
)

// The ways to treat the questions of a program about its tools.
const (
	PermissionsOff = "off" // the default
	PermissionsAsk = "ask"
)

// DefaultTask is the task class whose model serves every class that the blueprint does not name.
const DefaultTask = "default"

// Blueprint is the whole definition of an agent. The tags say what a value may be: fields reads them, and everything else (the reader of
// YAML, the JSON Schema and the documentation) is derived from it.
type Blueprint struct {
	APIVersion   int               `json:"api_version" doc:"The version of this format" min:"1" max:"1" need:"yes"`
	Name         string            `json:"name" doc:"The agent's name in the workspace" pattern:"^[a-z][a-z0-9-]{0,62}$" like:"small letters, digits and hyphens, a letter first, 63 at most" need:"yes"`
	Description  string            `json:"description,omitempty" doc:"What the agent is for, in one line" max:"500"`
	Adapter      Adapter           `json:"adapter,omitzero" doc:"What runs the agent" need:"yes"`
	Models       map[string]string `json:"models,omitempty" doc:"The model for each task class; default serves every class that is not named" keys:"^[a-z][a-z0-9_]{0,31}$" pattern:"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$" like:"the name of a model" max:"16"`
	Instructions string            `json:"instructions,omitempty" doc:"What the agent is told before its task" max:"65536"`
	Tools        Tools             `json:"tools,omitzero" doc:"Which tools the agent is offered"`
	Space        Space             `json:"space,omitzero" doc:"The space in which the agent works"`
	Policy       string            `json:"policy,omitempty" doc:"The preset that binds the agent's space" enum:"restrictive,standard,permissive"`
	Context      Context           `json:"context,omitzero" doc:"What the model is shown, and how much of it"`
	Comms        Comms             `json:"comms,omitzero" doc:"What the agent shares with other agents, and which it may start"`
	Artifacts    []string          `json:"artifacts,omitempty" doc:"Files of the space that each run keeps when it ends: paths, in which * and ? match within one name and ** goes through folders" max:"20" each:"500"`
	Limits       Limits            `json:"limits,omitzero" doc:"Where a run of the agent ends at the latest"`
	Pins         Pins              `json:"pins,omitzero" doc:"The content hash of everything that the blueprint refers to; agentbox blueprint lock writes it"`
}

// Adapter names the program that runs the agent.
type Adapter struct {
	Kind         string   `json:"kind" doc:"internal is the daemon's own loop, external_cli a program in the space, remote an engine that claims the run over the API" enum:"internal,external_cli,remote" need:"yes"`
	Program      string   `json:"program,omitempty" doc:"For external_cli: a coding agent that the daemon knows, or custom with a command" enum:"opencode,codex,claude,custom"`
	Command      []string `json:"command,omitempty" doc:"For external_cli with program custom: the command; {task}, {model} and {base_url} are replaced in each word" max:"64" each:"4096" repeats:"yes"`
	Wire         string   `json:"wire,omitempty" doc:"For external_cli with program custom: the vendor's wire that it speaks to a model" enum:"chat,responses,messages"`
	EnvInjection string   `json:"env_injection,omitempty" doc:"For external_cli: how it gets its task" enum:"argument,stdin,env,file"`
	Permissions  string   `json:"permissions,omitempty" doc:"For external_cli: off lets the program use its tools without a question, ask takes each question about a tool to the gate" enum:"off,ask"`
	AllowTools   []string `json:"allow_tools,omitempty" doc:"For external_cli with permissions ask: tools, as the program names them, that need no person in a space that is made for the agent" pattern:"^[A-Za-z0-9_.:/-]{1,100}$" like:"a name of letters, digits and _.:/- of at most 100 characters" max:"100" each:"100"`
}

// The wires of Adapter.Wire.
const (
	WireChat      = "chat"      // OpenAI's chat completions
	WireResponses = "responses" // OpenAI's responses
	WireMessages  = "messages"  // Anthropic's messages
)

// Tools say which tools the agent is offered. Policy still decides each call.
type Tools struct {
	Classes []string `json:"classes,omitempty" doc:"Offer every tool whose side effect is one of these" enum:"pure,read,filesystem,process,network,record" max:"6"`
	Allow   []string `json:"allow,omitempty" doc:"Offer these tools too" max:"200" each:"128"`
	Deny    []string `json:"deny,omitempty" doc:"Never offer these, whatever else is said" max:"200" each:"128"`
	MCP     []string `json:"mcp,omitempty" doc:"Offer the tools of these MCP servers of the workspace, or single tools as server__tool" pattern:"^[a-z][a-z0-9-]{0,23}(__[A-Za-z0-9_-]{1,61})?$" like:"the name of an MCP server, or server__tool" max:"64" each:"64"`
	// Protocol is "" for what the model's entry in the catalogue says.
	Protocol string `json:"protocol,omitempty" doc:"How the model calls tools: calls as its vendor does it, text as fenced operations in plain text; without it as the entry of the model says" enum:"calls,text"`
}

// Space is the space in which the agent works.
type Space struct {
	Tier     string            `json:"tier,omitempty" doc:"How it is isolated: auto, nano, heavy or the name of a tier" enum:"auto,nano,heavy,namespace,gvisor,microvm"`
	TTL      int               `json:"ttl_seconds,omitempty" doc:"How long the space lives" unit:"seconds" min:"60" max:"2592000"`
	MemoryMB int               `json:"memory_mb,omitempty" doc:"Its memory" unit:"MiB" min:"16" max:"1048576"`
	DiskMB   int               `json:"disk_mb,omitempty" doc:"The size of its files" unit:"MiB" min:"1" max:"1048576"`
	Files    Files             `json:"files,omitzero" doc:"Which files its code and its operations reach"`
	Network  Network           `json:"network,omitzero" doc:"Which hosts it reaches"`
	Packages []string          `json:"packages,omitempty" doc:"Packages that its code may import" max:"100" each:"128"`
	Env      map[string]string `json:"env,omitempty" doc:"Its environment; no secrets, for the model sees it" keys:"^[A-Za-z_][A-Za-z0-9_]{0,127}$" max:"64" each:"4096"`
}

// Files narrow the preset's rights to files. A refusal of the preset stays a refusal.
type Files struct {
	Access   string   `json:"access,omitempty" doc:"read: no file is changed by an operation; write: as the preset says" enum:"read,write"`
	Deny     []string `json:"deny,omitempty" doc:"Patterns of paths that operations and commands must not name" max:"200" each:"255"`
	Withhold []string `json:"withhold,omitempty" doc:"Patterns of files that neither code nor operations reach" max:"200" each:"255"`
}

// Network names the hosts that the agent reaches.
type Network struct {
	Allow []string `json:"allow_domains,omitempty" doc:"Hosts, as example.com or *.example.com; none where none is named" max:"200" each:"253"`
}

// Context chooses the texts that the model gets.
type Context struct {
	Tokens     int      `json:"tokens,omitempty" doc:"The longest context that is sent to the model; the agent compacts before it is met" unit:"tokens" min:"1000" max:"10000000"`
	ToolResult int      `json:"tool_result_chars,omitempty" doc:"The longest result of a tool that is shown whole; the rest is an artifact" unit:"characters" min:"200" max:"1000000"`
	Status     int      `json:"status_capsule_chars,omitempty" doc:"The longest status or risk capsule that it writes, and that it is shown" unit:"characters" min:"100" max:"100000"`
	Plan       int      `json:"plan_capsule_chars,omitempty" doc:"The longest plan capsule that it writes, and that it is shown" unit:"characters" min:"100" max:"100000"`
	Decision   int      `json:"decision_capsule_chars,omitempty" doc:"The longest decision capsule that it writes, and all decisions of one relative that it is shown" unit:"characters" min:"100" max:"100000"`
	Manifest   int      `json:"manifest_chars,omitempty" doc:"The longest list of the artifacts of a relative" unit:"characters" min:"100" max:"100000"`
	Sources    []string `json:"sources,omitempty" doc:"What of its relatives it is shown, as far as their comms.capsules name it, too" enum:"status_capsules,plan_capsules,decision_capsules,artifact_manifests" max:"4"`
	Transcript bool     `json:"transcript,omitempty" doc:"Not supported: no agent reads the transcript of another"`
}

// Comms say with whom the agent may speak.
type Comms struct {
	Scopes  []string `json:"scopes,omitempty" doc:"Which relatives may read its capsules and the list of its artifacts; without it parent, children and siblings" enum:"parent,children,siblings,descendants,project,workspace" max:"6"`
	Groups  []string `json:"groups,omitempty" doc:"Not supported: there are no groups of agents" max:"32" each:"63"`
	Leases  bool     `json:"request_leases,omitempty" doc:"Not supported: no agent reaches beyond its scopes"`
	Spawn   []string `json:"spawn,omitempty" doc:"Blueprints of which it may start sub-agents" max:"32" each:"63"`
	Capsule []string `json:"capsules,omitempty" doc:"Capsules that it gives its relatives: those of these types that it writes, and with manifest the list of its artifacts" enum:"status,plan,decision,manifest,risk" max:"5"`
}

// Limits end a run of the agent.
type Limits struct {
	Steps       int    `json:"steps,omitempty" doc:"Requests to a model" min:"1" max:"10000"`
	Tokens      int    `json:"tokens,omitempty" doc:"Tokens that models read and write for it" unit:"tokens" min:"1" max:"1000000000"`
	Cost        Amount `json:"cost,omitempty" doc:"What models may cost, in the currency of the prices file" pattern:"^[0-9]{1,9}([.][0-9]{1,6})?$" like:"an amount such as 2.50"`
	Seconds     int    `json:"seconds,omitempty" doc:"Time from its start, without the time in which it waits for a person" unit:"seconds" min:"1" max:"2592000"`
	ToolSeconds int    `json:"tool_seconds,omitempty" doc:"Time of one tool call" unit:"seconds" min:"1" max:"3600"`
	Concurrency int    `json:"concurrency,omitempty" doc:"Tool calls side by side" min:"1" max:"32"`
	Children    int    `json:"children,omitempty" doc:"Sub-agents, over its whole life" min:"1" max:"1000"`
	Depth       int    `json:"depth,omitempty" doc:"Generations of sub-agents below it" min:"1" max:"8"`
}

// Pins are the content hashes of the blueprint's references, by kind and name.
type Pins struct {
	Policy     string            `json:"policy,omitempty" doc:"Of the policy bundle" pattern:"^sha256:[0-9a-f]{64}$" like:"sha256: and 64 hexadecimal digits"`
	Tools      string            `json:"tools,omitempty" doc:"Of the tools that the agent is offered: name, schema, side effect" pattern:"^sha256:[0-9a-f]{64}$" like:"sha256: and 64 hexadecimal digits"`
	Loop       string            `json:"loop,omitempty" doc:"Of the daemon's loop: the version of its prompts and of its rules" pattern:"^sha256:[0-9a-f]{64}$" like:"sha256: and 64 hexadecimal digits"`
	Models     map[string]string `json:"models,omitempty" doc:"Of the entry of each model" pattern:"^sha256:[0-9a-f]{64}$" like:"sha256: and 64 hexadecimal digits" keys:"^.{1,128}$" max:"16"`
	Blueprints map[string]string `json:"blueprints,omitempty" doc:"Of each blueprint that it may spawn" pattern:"^sha256:[0-9a-f]{64}$" like:"sha256: and 64 hexadecimal digits" keys:"^.{1,63}$" max:"32"`
	MCP        map[string]string `json:"mcp,omitempty" doc:"Of each MCP server, and of the tools of it that people trust" pattern:"^sha256:[0-9a-f]{64}$" like:"sha256: and 64 hexadecimal digits" keys:"^.{1,63}$" max:"64"`
}

// Amount is an amount of money as a decimal text, so that no binary fraction rounds it.
type Amount string

// The values that hold where a blueprint says nothing.
const (
	DefaultSteps       = 50
	DefaultSeconds     = 900
	DefaultToolSeconds = 60
	DefaultConcurrency = 4
	DefaultContext     = 128_000 // tokens
	DefaultToolResult  = 16_000  // characters
	DefaultStatus      = 1_500
	DefaultPlan        = 3_000
	DefaultDecision    = 3_000
	DefaultManifest    = 2_000
	DefaultTTL         = 12 * 60 * 60
	DefaultDepth       = 3
)

// Effective returns the blueprint with every default written out. It is for those who run it; its hash is not the blueprint's.
func (b Blueprint) Effective() Blueprint {
	set := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	if b.Adapter.Kind == "" {
		b.Adapter.Kind = Internal
	}
	if b.Policy == "" {
		b.Policy = "standard"
	}
	if b.Space.Tier == "" {
		b.Space.Tier = "auto"
	}
	if b.Tools.Classes == nil && b.Tools.Allow == nil && b.Tools.MCP == nil {
		b.Tools.Classes = []string{string(policy.Pure), string(policy.Read), string(policy.Filesystem), string(policy.Process),
			string(policy.Record)}
	}
	set(&b.Limits.Steps, DefaultSteps)
	set(&b.Limits.Seconds, DefaultSeconds)
	set(&b.Limits.ToolSeconds, DefaultToolSeconds)
	set(&b.Limits.Concurrency, DefaultConcurrency)
	set(&b.Limits.Depth, DefaultDepth)
	set(&b.Context.Tokens, DefaultContext)
	set(&b.Context.ToolResult, DefaultToolResult)
	set(&b.Context.Status, DefaultStatus)
	set(&b.Context.Plan, DefaultPlan)
	set(&b.Context.Decision, DefaultDecision)
	set(&b.Context.Manifest, DefaultManifest)
	set(&b.Space.TTL, DefaultTTL)
	return b
}

// Model returns the model for a task class.
func (b Blueprint) Model(class string) string {
	if name, ok := b.Models[class]; ok {
		return name
	}
	return b.Models[DefaultTask]
}

// Answering returns the blueprint with another model for all task classes; with "" it is unchanged.
func (b Blueprint) Answering(name string) Blueprint {
	if name != "" {
		b.Models = map[string]string{DefaultTask: name}
	}
	return b
}

// Hash returns the content hash of the blueprint: of its values, without its pins and without the comments and the order of its text. Two
// texts with the same values have the same hash.
func (b Blueprint) Hash() (event.Digest, error) {
	b.Pins = Pins{}
	return b.digest()
}

// Locked returns the content hash of the blueprint with its pins: what a session records that it ran with.
func (b Blueprint) Locked() (event.Digest, error) { return b.digest() }

func (b Blueprint) digest() (event.Digest, error) {
	raw, err := json.Marshal(b)
	if err != nil {
		return event.Digest{}, err
	}
	canonical, err := policy.Canonicalize(raw)
	if err != nil {
		return event.Digest{}, err
	}
	return event.DigestOf(canonical), nil
}
