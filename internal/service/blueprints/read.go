package blueprints

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/yamltext"
)

const (
	maxDepth    = 8      // of nested lists and objects
	maxBrackets = 64     // of nested brackets, checked before the text is parsed
	maxNodes    = 20_000 // values of a text
)

// Read reads the text of a blueprint and returns all its problems. The text is YAML without anchors, aliases, tags and
// merge keys; JSON is YAML.
func Read(text []byte) (blueprint.Blueprint, []blueprint.Problem) {
	root, problem := parse(text)
	if problem != nil {
		return blueprint.Blueprint{}, []blueprint.Problem{*problem}
	}
	return blueprint.Decode(root)
}

// Refusal returns blueprint_invalid with the first ten problems of a text, nil if there are none.
func Refusal(problems []blueprint.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, 0, len(problems))
	for _, p := range problems[:min(len(problems), 10)] {
		lines = append(lines, Say(p))
	}
	if more := len(problems) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return fault.New(fault.Invalid, "blueprint_invalid", "%s", strings.Join(lines, "; "))
}

// Say returns a problem as one line for people.
func Say(p blueprint.Problem) string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", p.Line, p.Column)
	}
	if p.Path != "" && !strings.Contains(p.Message, "has no key") {
		b.WriteString(p.Path + " ")
	}
	b.WriteString(p.Message)
	return b.String()
}

func parse(text []byte) (blueprint.Node, *blueprint.Problem) {
	whole := func(format string, args ...any) (blueprint.Node, *blueprint.Problem) {
		return blueprint.Node{}, &blueprint.Problem{Message: fmt.Sprintf(format, args...)}
	}
	if len(text) > blueprint.MaxBytes {
		return whole("the blueprint has %d bytes; the limit is %d", len(text), blueprint.MaxBytes)
	}
	if brackets(text) > maxBrackets {
		return whole("brackets are nested more than %d deep", maxBrackets)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return whole("the blueprint is empty; `agentbox blueprint init` writes one to begin with")
	} else if err != nil {
		f := yamltext.FaultOf(text, err, func(r io.Reader) error { return yaml.NewDecoder(r).Decode(new(yaml.Node)) })
		return blueprint.Node{}, &blueprint.Problem{Line: f.Line, Column: f.Column, Message: f.Message}
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return whole("there is more than one document")
	}
	r := reader{}
	root := r.node(doc.Content[0], 0)
	return root, r.problem
}

// brackets returns the largest depth of nested brackets. A parser takes long for very deep ones.
func brackets(text []byte) int {
	depth, deepest := 0, 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return deepest
}

// reader converts the nodes of the YAML parser, up to the first problem.
type reader struct {
	nodes   int
	problem *blueprint.Problem
}

func (r *reader) node(n *yaml.Node, depth int) blueprint.Node {
	out := blueprint.Node{Line: n.Line, Column: n.Column, Scalar: n.Value}
	r.nodes++
	switch {
	case r.problem != nil:
		return out
	case r.nodes > maxNodes:
		r.refuse(n, "there are more than %d values", maxNodes)
	case depth > maxDepth:
		r.refuse(n, "the blueprint is nested more than %d deep", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.refuse(n, "anchors and aliases are not allowed; write the value out")
	case n.Tag == "!!merge":
		r.refuse(n, "merge keys are not allowed; write the values out")
	case n.Style&yaml.TaggedStyle != 0:
		r.refuse(n, "tags are not allowed")
	case n.Kind == yaml.MappingNode:
		out.Shape = blueprint.Mapping
		for i := 0; i+1 < len(n.Content); i += 2 {
			out.Keys = append(out.Keys, r.node(n.Content[i], depth+1))
			out.Values = append(out.Values, r.node(n.Content[i+1], depth+1))
		}
	case n.Kind == yaml.SequenceNode:
		out.Shape = blueprint.Array
		for _, entry := range n.Content {
			out.Values = append(out.Values, r.node(entry, depth+1))
		}
	default:
		out.Shape, out.Scalar = scalar(n)
	}
	return out
}

func (r *reader) refuse(n *yaml.Node, format string, args ...any) {
	if r.problem == nil {
		r.problem = &blueprint.Problem{Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)}
	}
}

// scalar returns the shape of a plain value. Times, and other types that YAML guesses, are texts.
func scalar(n *yaml.Node) (blueprint.Shape, string) {
	switch n.Tag {
	case "!!null":
		return blueprint.Null, n.Value
	case "!!bool":
		truth := false
		if n.Decode(&truth) != nil {
			return blueprint.String, n.Value
		}
		return blueprint.Boolean, strconv.FormatBool(truth)
	case "!!int":
		return blueprint.Integer, n.Value
	case "!!float":
		return blueprint.Decimal, n.Value
	default:
		return blueprint.String, n.Value
	}
}
