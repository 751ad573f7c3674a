// Package rules writes policies: it reads the short YAML form, knows the presets, and compiles both to Cedar.
package rules

import (
	"embed"
	"slices"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// Lists are the names of one answer: allow, ask or deny.
type Lists struct {
	Commands []string // a name, a name with the words that must follow it, or *
	Paths    []string // globs at any depth: * matches everything, also slashes
	Domains  []string // a host, *.host for it and its subdomains, or *
	Tools    []string // names
	Traits   []string // traits of commands

	Actions   []string // types of actions: allowed are those outside and some of policy.Givable; asked about are those outside
	Delegated []string // of allow only: some of policy.Givable, for agents and services under a capability token that names them
}

// Spec is a policy in the short form.
type Spec struct {
	Name      string
	FileBytes int64
	CommandMS int64
	Approvers int // number of persons who have to approve a question; 0 means one

	WeakestTier string // in which code may run; "" accepts every tier

	Read  bool // files may be read
	Write bool // files may be made, changed and deleted
	Allow Lists
	Ask   Lists
	Deny  Lists

	Withhold policy.Withhold // files that people bring in and code must not see
}

// The names of the presets, from the strictest to the freest.
const (
	Restrictive = "restrictive"
	Standard    = "standard"
	Permissive  = "permissive"
)

// Names returns the names of the presets, from the strictest to the freest.
func Names() []string { return []string{Restrictive, Standard, Permissive} }

//go:embed presets/*.yaml
var presets embed.FS

// Preset returns a preset by its name.
func Preset(name string) (Spec, error) {
	if !slices.Contains(Names(), name) {
		return Spec{}, fault.New(fault.Invalid, "policy_unknown", "there is no policy preset %.64q", name).
			With("Use one of restrictive, standard and permissive.")
	}
	text, err := presets.ReadFile("presets/" + name + ".yaml")
	if err != nil {
		return Spec{}, fault.Wrap(err, fault.Internal, "policy_unknown", "the preset %s is missing from this program", name)
	}
	return parse(text, Spec{})
}

// PresetText returns the text of a preset in the short form, for people.
func PresetText(name string) (string, error) {
	if _, err := Preset(name); err != nil {
		return "", err
	}
	text, err := presets.ReadFile("presets/" + name + ".yaml")
	return string(text), err
}

// Resolve returns the bundle of a preset with overrides: an object of the short form, as JSON or YAML, whose lists and numbers replace the
// preset's. Empty overrides, also null, change nothing.
func Resolve(preset string, overrides []byte) (policy.Bundle, error) {
	spec, err := Preset(preset)
	if err != nil {
		return policy.Bundle{}, err
	}
	if spec, err = parse(overrides, spec); err != nil {
		return policy.Bundle{}, err
	}
	return Compile(spec)
}

// FromYAML returns the bundle of a text in the short form.
func FromYAML(text []byte) (policy.Bundle, error) {
	spec, err := parse(text, Spec{})
	if err != nil {
		return policy.Bundle{}, err
	}
	return Compile(spec)
}
