package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/yamltext"
)

// Limits of a text in the short form.
const (
	MaxYAMLBytes = 64 << 10
	maxYAMLDepth = 8
	maxEntries   = 1_000 // of one list
	maxEntry     = 512   // bytes of one entry
)

// keys are the words of the short form, by section.
var keys = map[string][]string{
	"":       {"name", "preset", "limits", "files", "approvers", "weakest_tier", "withhold", "allow", "ask", "deny"},
	"limits": {"file_bytes", "command_ms"},
	"files":  {"read", "write"},
	"allow":  {"commands", "paths", "domains", "tools", "traits", "actions", "delegated"},
	"ask":    {"commands", "paths", "domains", "tools", "traits", "actions"},
	"deny":   {"commands", "paths", "domains", "tools", "traits", "actions"},

	"withhold": {"paths", "except"},
}

func refuse(n *yaml.Node, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	if n != nil && n.Line > 0 {
		msg = fmt.Sprintf("line %d, column %d: %s", n.Line, n.Column, msg)
	}
	return fault.New(fault.Invalid, "policy_invalid", "%s", msg)
}

// parse reads a text in the short form over a spec: its values replace those of the spec.
func parse(text []byte, spec Spec) (Spec, error) {
	if len(text) > MaxYAMLBytes {
		return Spec{}, fault.New(fault.Invalid, "policy_too_large", "the policy has %d bytes; the limit is %d", len(text), MaxYAMLBytes)
	}
	if err := shallow(text); err != nil {
		return Spec{}, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return spec, nil
	}
	if err != nil {
		f := yamltext.FaultOf(text, err, func(r io.Reader) error { return yaml.NewDecoder(r).Decode(new(yaml.Node)) })
		return Spec{}, refuse(nil, "%s", f)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Spec{}, refuse(nil, "there is more than one document")
	}
	root := doc.Content[0]
	if err := plain(root, 0); err != nil {
		return Spec{}, err
	}
	if root.Tag == "!!null" {
		return spec, nil
	}
	if err := spec.read(root); err != nil {
		return Spec{}, err
	}
	return spec, nil
}

// shallow refuses text with so deeply nested brackets that parsing it would take long.
func shallow(text []byte) error {
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			if depth++; depth > 64 {
				return refuse(nil, "brackets are nested more than 64 deep")
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return nil
}

// plain refuses YAML features that a policy does not need and an attack does: anchors, aliases, merges, custom tags, depth.
func plain(n *yaml.Node, depth int) error {
	switch {
	case depth > maxYAMLDepth:
		return refuse(n, "the policy is nested more than %d deep", maxYAMLDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return refuse(n, "anchors and aliases are not allowed; write the value out")
	case n.Tag == "!!merge":
		return refuse(n, "merge keys are not allowed; write the values out")
	case n.Style&yaml.TaggedStyle != 0:
		return refuse(n, "tags are not allowed")
	case len(n.Content) > 2*maxEntries:
		return refuse(n, "there are more than %d entries", maxEntries)
	}
	for _, child := range n.Content {
		if err := plain(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// section calls f for each key of a mapping, which must be one of the section's, once.
func section(n *yaml.Node, name string, f func(key string, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return refuse(n, "%s must be an object with some of %s", cmpName(name), strings.Join(keys[name], ", "))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !slices.Contains(keys[name], key.Value) {
			return refuse(key, "%s has no key %.64q; did you mean %s?", cmpName(name), key.Value, policy.Nearest(key.Value, keys[name]))
		}
		if seen[key.Value] {
			return refuse(key, "%s has the key %s twice", cmpName(name), key.Value)
		}
		seen[key.Value] = true
		if err := f(key.Value, value); err != nil {
			return err
		}
	}
	return nil
}

func cmpName(name string) string {
	if name == "" {
		return "the policy"
	}
	return name
}

func (s *Spec) read(root *yaml.Node) error {
	// The preset is laid under everything else, wherever it stands in the text.
	if i := slices.IndexFunc(root.Content, func(n *yaml.Node) bool { return n.Value == "preset" }); root.Kind == yaml.MappingNode && i >= 0 &&
		i%2 == 0 && i+1 < len(root.Content) {
		base, err := Preset(root.Content[i+1].Value)
		if err != nil {
			return refuse(root.Content[i+1], "there is no preset %.64q; use restrictive, standard or permissive", root.Content[i+1].Value)
		}
		*s = base
	}
	return section(root, "", func(key string, value *yaml.Node) error {
		switch key {
		case "name":
			if value.Kind != yaml.ScalarNode || value.Value == "" || len(value.Value) > 64 {
				return refuse(value, "name must be a text of 1 to 64 bytes")
			}
			s.Name = value.Value
		case "limits":
			return section(value, key, s.limit)
		case "files":
			return section(value, key, s.file)
		case "approvers":
			n, err := strconv.Atoi(value.Value)
			if err != nil || value.Kind != yaml.ScalarNode || value.Tag != "!!int" || n < 1 || n > policy.MaxApprovers {
				return refuse(value, "approvers must be a whole number from 1 to %d", policy.MaxApprovers)
			}
			if s.Approvers = n; n == 1 {
				s.Approvers = 0 // the same policy has one form, and one hash
			}
		case "weakest_tier":
			if value.Kind != yaml.ScalarNode || value.Tag != "!!str" || !policy.TierName(value.Value) {
				return refuse(value, "weakest_tier must be the name of a tier, such as namespace")
			}
			s.WeakestTier = value.Value
		case "withhold":
			return section(value, key, s.withhold)
		case "allow":
			return section(value, key, s.allow)
		case "ask":
			return section(value, key, s.ask)
		case "deny":
			return section(value, key, s.deny)
		}
		return nil
	})
}

func (s *Spec) limit(key string, value *yaml.Node) error {
	most := map[string]int64{"file_bytes": 1 << 30, "command_ms": 3_600_000}[key]
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil || value.Kind != yaml.ScalarNode || value.Tag != "!!int" || n < 1 || n > most {
		return refuse(value, "%s must be a whole number from 1 to %d", key, most)
	}
	if key == "file_bytes" {
		s.FileBytes = n
	} else {
		s.CommandMS = n
	}
	return nil
}

func (s *Spec) file(key string, value *yaml.Node) error {
	if value.Tag != "!!bool" || value.Value != "true" && value.Value != "false" {
		return refuse(value, "%s must be true or false", key)
	}
	if key == "read" {
		s.Read = value.Value == "true"
	} else {
		s.Write = value.Value == "true"
	}
	return nil
}

func (s *Spec) withhold(key string, value *yaml.Node) error {
	list, err := texts(key, value)
	if err != nil {
		return err
	}
	if key == "paths" {
		s.Withhold.Paths = list
	} else {
		s.Withhold.Except = list
	}
	return nil
}

// texts reads a list of entries.
func texts(key string, value *yaml.Node) ([]string, error) {
	if value.Kind != yaml.SequenceNode || len(value.Content) > maxEntries {
		return nil, refuse(value, "%s must be a list of at most %d texts", key, maxEntries)
	}
	list := make([]string, len(value.Content))
	for i, n := range value.Content {
		if n.Kind != yaml.ScalarNode || n.Value == "" || n.Tag == "!!null" {
			return nil, refuse(n, "%s holds something that is not a text", key)
		}
		if err := entry(key, n.Value); err != nil {
			return nil, refuse(n, "%s", err.Error())
		}
		list[i] = n.Value
	}
	return list, nil
}

// allow reads the allowed actions. It refuses an action that cannot be given, so that no policy seems to give it. Actions outside can be
// permitted in a space, also the workspace's own types. Of the other actions, only those that can be given to agents and services.
func (s *Spec) allow(key string, value *yaml.Node) error {
	if err := s.Allow.read(key, value); err != nil || key != "actions" && key != "delegated" {
		return err
	}
	for i, n := range value.Content {
		if !slices.Contains(policy.Givable(), n.Value) && (key != "actions" || !policy.Outside(n.Value) && n.Value != policy.AgentTool) {
			return refuse(value.Content[i], "%s cannot be given to agents and services; what can: %s", n.Value, strings.Join(policy.Givable(), ", "))
		}
	}
	return nil
}

// ask reads the actions that ask. Only actions outside, the opening of ports and requests to models ask by their type.
func (s *Spec) ask(key string, value *yaml.Node) error {
	if err := s.Ask.read(key, value); err != nil {
		return err
	}
	if key != "actions" {
		return withoutPorts(key, value)
	}
	for i, n := range value.Content {
		if !policy.Askable(n.Value) {
			return refuse(value.Content[i],
				"%s is not asked about by its type, for it is done inside; ask about commands, paths or traits, or refuse it in deny", n.Value)
		}
	}
	return nil
}

// deny reads the refusals.
func (s *Spec) deny(key string, value *yaml.Node) error {
	if err := s.Deny.read(key, value); err != nil {
		return err
	}
	return withoutPorts(key, value)
}

// withoutPorts refuses domains with a port: such an entry is about fetching alone, so in a refusal it would promise too much.
func withoutPorts(key string, value *yaml.Node) error {
	if key != "domains" {
		return nil
	}
	for i, n := range value.Content {
		if policy.IsEndpoint(n.Value) {
			return refuse(value.Content[i], "%q is not a domain here: a host in small letters without a port, *.host, or *", n.Value)
		}
	}
	return nil
}

func (l *Lists) read(key string, value *yaml.Node) error {
	list, err := texts(key, value)
	if err != nil {
		return err
	}
	switch key {
	case "commands":
		l.Commands = list
	case "paths":
		l.Paths = list
	case "domains":
		l.Domains = list
	case "tools":
		l.Tools = list
	case "traits":
		l.Traits = list
	case "actions":
		l.Actions = list
	case "delegated":
		l.Delegated = list
	}
	return nil
}
