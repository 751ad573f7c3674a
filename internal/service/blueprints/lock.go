package blueprints

import (
	"context"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// resolve returns the present content hash of a reference of a blueprint.
func (s *Service) resolve(ctx context.Context, ws id.Workspace, r blueprint.Reference, b blueprint.Blueprint) (event.Digest, error) {
	if r.Kind == blueprint.ToBlueprint {
		entry, err := s.Get(ctx, ws, r.Name)
		if err == nil && !entry.Living() {
			err = blueprint.ErrNotFound
		}
		return entry.Hash, err
	}
	find, ok := s.Resolve[r.Kind]
	if !ok {
		return event.Digest{}, fault.New(fault.Invalid, "reference_unknown", "this daemon has nothing of the kind %s", r.Kind)
	}
	return find(ctx, ws, r.Name, b)
}

// Verify returns the references of a blueprint whose pins do not match the present hashes.
func (s *Service) Verify(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]blueprint.Drift, error) {
	var out []blueprint.Drift
	for _, r := range b.References() {
		now, err := s.resolve(ctx, ws, r, b)
		d := blueprint.Drift{Reference: r, Pinned: b.Pins.Of(r), Now: now.String()}
		switch fault.KindOf(err) {
		case fault.Internal, fault.Unavailable:
			if err != nil {
				return nil, err
			}
		default:
			d.Now, d.Reason = "", err.Error()
		}
		if d.Now == "" || d.Now != d.Pinned {
			out = append(out, d)
		}
	}
	return out, nil
}

// Pins returns the present content hashes of all references of a blueprint. It returns an error for a reference to nothing.
func (s *Service) Pins(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) (blueprint.Pins, error) {
	var pins blueprint.Pins
	for _, r := range b.References() {
		now, err := s.resolve(ctx, ws, r, b)
		if err != nil {
			return pins, fault.Wrap(err, fault.KindOf(err), fault.CodeOf(err), "%s cannot be pinned", r)
		}
		pins = pins.Pin(r, now)
	}
	return pins, nil
}

// Lock returns the text with the present pins of all references, and the pins. The rest of the text stays the same. It returns
// blueprint_form if the pins cannot be written into the text.
func (s *Service) Lock(ctx context.Context, ws id.Workspace, text []byte) ([]byte, blueprint.Pins, error) {
	b, problems := Read(text)
	if err := Refusal(problems); err != nil {
		return nil, blueprint.Pins{}, err
	}
	pins, err := s.Pins(ctx, ws, b)
	if err != nil {
		return nil, pins, err
	}
	locked, err := withPins(text, pins)
	if err != nil {
		return nil, pins, err
	}
	b.Pins = pins
	if again, problems := Read(locked); len(problems) > 0 || !same(b, again) {
		return nil, pins, fault.New(fault.Invalid, "blueprint_form",
			"the pins cannot be written into this text; write the blueprint as YAML in lines, with pins as its last key")
	}
	return locked, pins, nil
}

func same(a, b blueprint.Blueprint) bool {
	x, errX := a.Locked()
	y, errY := b.Locked()
	return errX == nil && errY == nil && x == y
}

// section matches the pins of a text: the line of the key and the indented lines below it.
var section = regexp.MustCompile(`(?m)^pins:.*\n?(?:[ \t]+.*\n?)*`)

// withPins returns the text with other pins. They replace the pins of the text, or come last.
func withPins(text []byte, pins blueprint.Pins) ([]byte, error) {
	var node yaml.Node
	if err := node.Encode(map[string]any{"pins": table(pins)}); err != nil {
		return nil, err
	}
	written, err := yaml.Marshal(&node)
	if err != nil {
		return nil, err
	}
	whole := string(text)
	if at := section.FindStringIndex(whole); at != nil {
		return []byte(whole[:at[0]] + string(written) + whole[at[1]:]), nil
	}
	if whole != "" && !strings.HasSuffix(whole, "\n") {
		whole += "\n"
	}
	return []byte(whole + string(written)), nil
}

// table returns the keys and values of pins as in a text.
func table(p blueprint.Pins) map[string]any {
	out := map[string]any{}
	for key, value := range map[string]string{"policy": p.Policy, "tools": p.Tools, "loop": p.Loop} {
		if value != "" {
			out[key] = value
		}
	}
	for key, value := range map[string]map[string]string{"models": p.Models, "blueprints": p.Blueprints, "mcp": p.MCP} {
		if len(value) > 0 {
			out[key] = value
		}
	}
	return out
}
