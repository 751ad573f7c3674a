package rules

import (
	"encoding/json"
	"slices"

	"agentbox/internal/domain/policy"
)

// Overrides returns the overrides that adjust a preset, in the short form as JSON; nil where nothing is adjusted. Overrides replace whole
// lists, so each list holds the preset's entries too.
func Overrides(preset string, a policy.Adjustment) ([]byte, error) {
	spec, err := Preset(preset)
	if err != nil {
		return nil, err
	}
	type section = map[string]any
	out := section{}
	put := func(name, key string, value any) {
		if out[name] == nil {
			out[name] = section{}
		}
		out[name].(section)[key] = value
	}
	if a.ReadOnly && spec.Write {
		put("files", "write", false)
	}
	if len(a.Deny) > 0 {
		put("deny", "paths", union(spec.Deny.Paths, a.Deny))
	}
	if len(a.Withhold) > 0 {
		put("withhold", "paths", union(spec.Withhold.Paths, a.Withhold))
	}
	if len(a.Domains) > 0 {
		put("allow", "domains", union(spec.Allow.Domains, a.Domains))
	}
	if len(a.Tools) > 0 {
		put("allow", "tools", union(spec.Allow.Tools, a.Tools))
	}
	if a.CommandMS > 0 && a.CommandMS < spec.CommandMS {
		put("limits", "command_ms", a.CommandMS)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return json.Marshal(out)
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, entry := range b {
		if !slices.Contains(out, entry) {
			out = append(out, entry)
		}
	}
	return out
}
