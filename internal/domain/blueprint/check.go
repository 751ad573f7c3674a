package blueprint

import (
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/domain/policy"
)

// Problem is one thing that is wrong in a blueprint.
type Problem struct {
	Path    string `json:"path" doc:"Where, as limits.steps; empty for the whole"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// Check returns everything that is wrong with a blueprint, in the order of its keys; none where it can be used.
func (b Blueprint) Check() []Problem {
	var found []Problem
	walk(reflect.ValueOf(b), Fields(), "", func(path, message string) { found = append(found, Problem{Path: path, Message: message}) })
	return append(found, b.together()...)
}

// walk checks each value by its field.
func walk(v reflect.Value, fields []Field, prefix string, wrong func(path, message string)) {
	say := func(path, message string) {
		if message != "" {
			wrong(path, message)
		}
	}
	for _, f := range fields {
		value, path := v.Field(f.index), prefix+f.Name
		if value.IsZero() {
			if f.Need {
				wrong(path, "is missing: "+lower(f.Doc))
			}
			continue
		}
		switch f.Type {
		case Object:
			walk(value, f.Fields, path+".", wrong)
		case Text, Money:
			say(path, f.Text(value.String()))
		case Number:
			say(path, f.Number(int(value.Int())))
		case List:
			say(path, f.Size(value.Len()))
			for i := range value.Len() {
				say(path+"["+strconv.Itoa(i)+"]", f.Text(value.Index(i).String()))
			}
			if i := repeated(value); i >= 0 && !f.Repeats {
				say(path+"["+strconv.Itoa(i)+"]", "is there twice")
			}
		case Table:
			say(path, f.Size(value.Len()))
			for _, key := range sorted(value) {
				say(path, f.Key(key))
				say(path+"."+key, f.Text(value.MapIndex(reflect.ValueOf(key)).String()))
			}
		}
	}
}

func lower(doc string) string { return strings.ToLower(doc[:1]) + doc[1:] }

// repeated returns the index of the first entry that a list has for the second time, or -1.
func repeated(list reflect.Value) int {
	seen := map[string]bool{}
	for i := range list.Len() {
		text := list.Index(i).String()
		if seen[text] {
			return i
		}
		seen[text] = true
	}
	return -1
}

func sorted(table reflect.Value) []string {
	keys := make([]string, 0, table.Len())
	for _, k := range table.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// together checks what only several values together can get wrong.
func (b Blueprint) together() []Problem {
	var found []Problem
	wrong := func(bad bool, path, message string) {
		if bad {
			found = append(found, Problem{Path: path, Message: message})
		}
	}
	kind := b.Adapter.Kind
	cli := kind == ExternalCLI
	wrong((kind == Internal || cli) && b.Models[DefaultTask] == "", "models.default", "is missing: the model that serves the agent")
	wrong(cli && b.Adapter.Program == "", "adapter.program", "is missing: name the coding agent, or custom with a command")
	custom := b.Adapter.Program == "custom"
	wrong(custom && len(b.Adapter.Command) == 0, "adapter.command", "is missing: the command of a custom program")
	wrong(custom && b.Adapter.Wire == "", "adapter.wire", "is missing: the vendor's wire that the program speaks")
	wrong(!custom && len(b.Adapter.Command) > 0, "adapter.command", "is for the program custom")
	wrong(!custom && b.Adapter.Wire != "", "adapter.wire", "is for the program custom")
	wrong(!cli && b.Adapter.Program != "", "adapter.program", "is for the adapter external_cli")
	wrong(!cli && b.Adapter.Permissions != "", "adapter.permissions", "is for the adapter external_cli")
	wrong(b.Adapter.Permissions != PermissionsAsk && len(b.Adapter.AllowTools) > 0, "adapter.allow_tools", "is for permissions: ask")
	wrong(cli && (b.Space.Tier == "nano"), "space.tier", "must be heavy, auto or an OS tier: a nano space runs no programs of others")
	wrong(kind != Internal && kind != "" && len(b.Tools.MCP) > 0, "tools.mcp",
		"is for the adapter internal: other engines reach servers themselves")
	for i, name := range b.Tools.Deny {
		wrong(slices.Contains(b.Tools.Allow, name), "tools.deny["+strconv.Itoa(i)+"]", "is allowed and denied; leave it in one of them")
	}
	for i, host := range b.Space.Network.Allow {
		bare := strings.TrimPrefix(host, "*.")
		wrong(policy.Host(bare) != bare && !policy.IsEndpoint(host), "space.network.allow_domains["+strconv.Itoa(i)+"]",
			"must be a host such as example.com in small letters, *.example.com for every host below it, or localhost:8080 for one port, also of "+
				"the own network")
	}
	for i, pattern := range b.Artifacts {
		_, err := path.Match(pattern, "")
		wrong(err != nil || strings.HasPrefix(pattern, "/") || strings.Contains(pattern, `\`) ||
			slices.Contains(strings.Split(pattern, "/"), ".."), "artifacts["+strconv.Itoa(i)+"]",
			"must be a path relative to the space's files, without .. and backslashes; * and ? match within one name, ** goes through folders")
	}
	wrong(len(b.Space.Packages) > 0, "space.packages",
		"is not supported: spaces install no packages. Leave it out, and let the agent use what its tier has (agentbox runtimes)")
	wrong(b.Limits.Children == 0 && (slices.Contains(b.Tools.Allow, "spawn") || len(b.Comms.Spawn) > 0), "limits.children",
		"is missing: how many sub-agents it may start")
	b.among(wrong)
	for name := range b.Pins.Models {
		wrong(!slices.Contains(values(b.Models), name), "pins.models."+name, "pins a model that the blueprint does not use")
	}
	slices.SortFunc(found, func(x, y Problem) int { return strings.Compare(x.Path, y.Path) })
	return found
}

// among checks what the blueprint says about other agents.
func (b Blueprint) among(wrong func(bad bool, path, message string)) {
	const needless = "is for the adapter internal: other engines are shown no capsules and write none"
	other := b.Adapter.Kind != Internal && b.Adapter.Kind != ""
	wrong(other && len(b.Comms.Capsule) > 0, "comms.capsules", needless)
	wrong(other && len(b.Context.Sources) > 0, "context.sources", needless)
	allows := func(tool string) bool { return slices.Contains(b.Tools.Allow, tool) }
	wrong(allows("capsule_write") && len(b.Comms.Writes()) == 0, "comms.capsules", "is missing: the types of capsules that it writes")
	wrong(allows("capsule_read") && len(b.Context.Sources) == 0, "context.sources", "is missing: what of its relatives it is shown")
	wrong(allows("artifact_read") && !b.Context.Takes(ManifestCapsule), "context.sources",
		"must name artifact_manifests, which lists the artifacts to read")
	for i, scope := range b.Comms.Scopes {
		wrong(scope == "project" || scope == "workspace", "comms.scopes["+strconv.Itoa(i)+"]",
			"is not supported: only relatives read each other's capsules. Use parent, children, siblings or descendants; people read the "+
				"artifacts of every run")
	}
	wrong(len(b.Comms.Groups) > 0, "comms.groups",
		"is not supported: there are no groups of agents. Leave it out, and name in comms.scopes which relatives may read it")
	wrong(b.Comms.Leases, "comms.request_leases",
		"is not supported: no agent reaches beyond its scopes. Leave it out, and name in comms.scopes which relatives may read it")
	wrong(b.Context.Transcript, "context.transcript",
		"is not supported: no agent reads the transcript of another. Leave it out, and name in context.sources which capsules it is shown")
}

func values(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
