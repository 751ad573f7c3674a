package cedar

import (
	"encoding/json"
	"slices"

	cedar "github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"agentbox/internal/domain/policy"
)

// attributes are the names of everything that stands in a context.
var attributes = []string{
	"workspace", "role", "path", "size_bytes", "max_bytes", "overwrite", "mode", "command", "args", "line", "traits", "timeout_ms", "tool",
	"method",
	"target", "host", "delegated",
}

// attribute returns what stands in the context under one of those names.
func attribute(f *policy.Facts, name string) types.Value {
	switch name {
	case "workspace":
		return types.String(f.Workspace)
	case "role":
		return types.String(f.Role)
	case "path":
		return types.String(f.Path)
	case "size_bytes":
		return types.Long(f.Size)
	case "max_bytes":
		return types.Long(f.MaxBytes)
	case "overwrite":
		return types.Boolean(f.Overwrite)
	case "mode":
		return types.String(f.Mode)
	case "command":
		return types.String(f.Command)
	case "args":
		return texts(f.Args)
	case "line":
		return types.String(f.Line)
	case "traits":
		return texts(f.Traits)
	case "timeout_ms":
		return types.Long(f.TimeoutMS)
	case "tool":
		return types.String(f.Tool)
	case "method":
		return types.String(f.Method)
	case "host":
		return types.String(f.Host())
	case "delegated":
		return types.Boolean(f.Delegated)
	}
	return types.String(f.Target)
}

// request writes facts as a Cedar request, with those attributes of the context that the policies look at.
func (c *chapter) request(f *policy.Facts) cedar.Request {
	kind := cedar.EntityType("Nobody")
	if len(f.Principal) > 4 {
		if k, ok := kinds[string(f.Principal[:4])]; ok {
			kind = k
		}
	}
	resource := types.NewEntityUID("Workspace", types.String(f.Workspace))
	if f.Space != "" {
		resource = types.NewEntityUID("Space", types.String(f.Space))
	}
	context := make(types.RecordMap, len(c.looks))
	for _, name := range c.looks {
		context[types.String(name)] = attribute(f, name)
	}
	return cedar.Request{
		Principal: types.NewEntityUID(kind, types.String(f.Principal)),
		Action:    types.NewEntityUID(actionType, types.String(f.Action)),
		Resource:  resource,
		Context:   types.NewRecord(context),
	}
}

func texts(list []string) types.Set {
	if len(list) == 0 {
		return types.Set{}
	}
	values := make([]types.Value, len(list))
	for i, text := range list {
		values[i] = types.String(text)
	}
	return types.NewSet(values...)
}

// lookedAt returns the attributes of the context that the policies look at: all of them, where one does anything with the context but take
// an attribute by its name or ask whether it has it.
func lookedAt(policies []*cedar.Policy) []string {
	l := look{names: map[string]bool{}}
	for _, p := range policies {
		var tree any
		raw, err := p.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(raw, &tree)
		}
		if err != nil {
			return attributes
		}
		l.walk(tree)
	}
	if l.whole {
		return attributes
	}
	return slices.DeleteFunc(slices.Clone(attributes), func(name string) bool { return !l.names[name] })
}

// look gathers what policies look at, from their JSON form.
type look struct {
	names map[string]bool
	whole bool
}

func (l *look) walk(tree any) {
	switch node := tree.(type) {
	case []any:
		for _, child := range node {
			l.walk(child)
		}
	case map[string]any:
		if node["Var"] == "context" {
			l.whole = true
		}
		for key, child := range node {
			if name, ok := ofContext(child); ok && (key == "." || key == "has") {
				l.names[name] = true
				continue
			}
			l.walk(child)
		}
	}
}

// ofContext returns the attribute that the operands of an access or of a test name, where they are of the context.
func ofContext(operands any) (string, bool) {
	node, _ := operands.(map[string]any)
	left, _ := node["left"].(map[string]any)
	name, ok := node["attr"].(string)
	return name, ok && len(left) == 1 && left["Var"] == "context"
}
