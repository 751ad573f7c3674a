package blueprint

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// Kind is the kind of a thing that a blueprint refers to.
type Kind string

// The kinds of references.
const (
	ToPolicy    Kind = "policy"
	ToTools     Kind = "tools"
	ToLoop      Kind = "loop"
	ToModel     Kind = "model"
	ToBlueprint Kind = "blueprint"
	ToMCP       Kind = "mcp"
)

// Reference is a thing that a blueprint refers to. Those of the kinds policy, tools and loop are one of each.
type Reference struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

// String names the reference as its pin is named in the text.
func (r Reference) String() string {
	switch r.Kind {
	case ToModel:
		return "models." + r.Name
	case ToBlueprint:
		return "blueprints." + r.Name
	case ToMCP:
		return "mcp." + r.Name
	default:
		return string(r.Kind)
	}
}

// Adjustment returns how the blueprint adjusts its preset, for the bundle of the agent's space.
func (b Blueprint) Adjustment() policy.Adjustment {
	return policy.Adjustment{
		ReadOnly: b.Space.Files.Access == "read", Deny: b.Space.Files.Deny, Withhold: b.Space.Files.Withhold, Domains: b.Space.Network.Allow,
		CommandMS: int64(b.Limits.ToolSeconds) * 1000, Tools: b.Adapter.allowed(),
	}
}

// Asks reports whether the questions of the program about its tools go to the gate.
func (a Adapter) Asks() bool { return a.Permissions == PermissionsAsk }

// Tool returns the name of a tool of the program, as policy and the log know it.
func (a Adapter) Tool(name string) string { return a.Program + "." + name }

// allowed returns the tools of the program that need no person.
func (a Adapter) allowed() []string {
	var names []string
	for _, name := range a.AllowTools {
		names = append(names, a.Tool(name))
	}
	return names
}

// References returns everything that the blueprint refers to, in a fixed order, each once.
func (b Blueprint) References() []Reference {
	out := []Reference{{ToPolicy, b.Effective().Policy}, {ToTools, ""}}
	if b.Effective().Adapter.Kind == Internal {
		out = append(out, Reference{ToLoop, ""})
	}
	for _, name := range slices.Compact(slices.Sorted(maps.Values(b.Models))) {
		out = append(out, Reference{ToModel, name})
	}
	for _, name := range slices.Sorted(slices.Values(b.Comms.Spawn)) {
		out = append(out, Reference{ToBlueprint, name})
	}
	for _, name := range b.Tools.servers() {
		out = append(out, Reference{ToMCP, name})
	}
	return out
}

// servers returns the names of the MCP servers, each once.
func (t Tools) servers() []string {
	var names []string
	for _, entry := range t.MCP {
		server, _, _ := strings.Cut(entry, "__")
		names = append(names, server)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Serves reports whether the agent is offered a tool of an MCP server.
func (t Tools) Serves(server, tool string) bool {
	return (slices.Contains(t.MCP, server) || slices.Contains(t.MCP, tool)) && !slices.Contains(t.Deny, tool)
}

// Of returns the pin of a reference; empty where there is none.
func (p Pins) Of(r Reference) string {
	switch r.Kind {
	case ToPolicy:
		return p.Policy
	case ToTools:
		return p.Tools
	case ToLoop:
		return p.Loop
	case ToModel:
		return p.Models[r.Name]
	case ToBlueprint:
		return p.Blueprints[r.Name]
	case ToMCP:
		return p.MCP[r.Name]
	}
	return ""
}

// Pin returns the pins with a reference pinned to a content hash.
func (p Pins) Pin(r Reference, to event.Digest) Pins {
	with := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		if m == nil {
			m = map[string]string{}
		}
		m[r.Name] = to.String()
		return m
	}
	switch r.Kind {
	case ToPolicy:
		p.Policy = to.String()
	case ToTools:
		p.Tools = to.String()
	case ToLoop:
		p.Loop = to.String()
	case ToModel:
		p.Models = with(p.Models)
	case ToBlueprint:
		p.Blueprints = with(p.Blueprints)
	case ToMCP:
		p.MCP = with(p.MCP)
	}
	return p
}

// Drift is a reference whose pin does not match the present hash.
type Drift struct {
	Reference
	Pinned string `json:"pinned,omitempty" doc:"The hash in the blueprint; absent where it has none"`
	Now    string `json:"now,omitempty" doc:"The hash of what is there now; absent where there is nothing"`
	Reason string `json:"reason,omitempty" doc:"Why there is nothing"`
}

// Why says in words why the pin does not fit.
func (d Drift) Why() string {
	switch {
	case d.Now == "":
		return cmp.Or(d.Reason, "there is no such thing now")
	case d.Pinned == "":
		return "not pinned"
	}
	return "changed since it was pinned"
}

// Unfit names the reference, and says why its pin does not fit.
func (d Drift) Unfit() string {
	switch {
	case d.Now == "":
		return d.Reference.String() + ": " + d.Why()
	case d.Pinned == "":
		return d.Reference.String() + " is not pinned"
	}
	return d.Reference.String() + " has changed since it was pinned"
}

// Unfit names references, and says of each why its pin does not fit.
func Unfit(drift []Drift) string {
	all := make([]string, len(drift))
	for n, d := range drift {
		all[n] = d.Unfit()
	}
	return strings.Join(all, ", ")
}

// Unpinned returns the references that have no pin.
func (b Blueprint) Unpinned() []Reference {
	var out []Reference
	for _, r := range b.References() {
		if b.Pins.Of(r) == "" {
			out = append(out, r)
		}
	}
	return out
}
