package blueprints_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/service/blueprints"
)

const small = `api_version: 1
name: weather-report
adapter: {kind: internal}
models: {default: glm}
`

// TestWhatIsWrongIsNamedByItsPlace reads texts that are wrong in one way, and wants line, column and what to do.
func TestWhatIsWrongIsNamedByItsPlace(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"empty": {"", "the blueprint is empty; `agentbox blueprint init` writes one to begin with"},
		"a cut list": {small + "tools: {allow: [shell}\nlimits: {}\n",
			`line 6, column 1: a comma or a ] is missing before this: "limits: {}"; or the fault is above it: what the parser reads there ` +
				`begins on line 5: "tools: {allow: [shell}"`},
		"a tab":         {small + "tools:\n\tallow: [shell]\n", `line 6, column 2: indent with spaces and not with tabs: "allow: [shell]"`},
		"two documents": {small + "---\na: 1\n", "there is more than one document"},
		"a list":        {"- a\n", "line 1, column 1: must be an object with some of api_version, name"},
		"an unknown key": {small + "limit: {steps: 1}\n",
			"line 5, column 1: the blueprint has no key \"limit\"; did you mean limits?"},
		"an unknown subkey": {small + "limits:\n  step: 1\n", "line 6, column 3: limits has no key \"step\"; did you mean steps?"},
		"a key twice":       {small + "name: other\n", "line 5, column 1: name is there twice"},
		"a text for number": {small + "limits: {steps: many}\n",
			"line 5, column 17: limits.steps must be a whole number from 1 to 10000, not \"many\""},
		"a fraction":        {small + "limits: {steps: 1.5}\n", "limits.steps must be a whole number from 1 to 10000, not \"1.5\""},
		"zero":              {small + "limits: {steps: 0}\n", "line 5, column 17: limits.steps must be a whole number from 1 to 10000"},
		"too many":          {small + "limits: {steps: 10001}\n", "limits.steps must be a whole number from 1 to 10000"},
		"negative":          {small + "limits: {steps: -1}\n", "limits.steps must be a whole number from 1 to 10000"},
		"beyond an integer": {small + "limits: {steps: 99999999999999999999}\n", "limits.steps must be a whole number from 1 to 10000"},
		"a number for text": {small + "description: 7\n", "line 5, column 14: description must be a text; put 7 in quotes"},
		"a truth for text":  {small + "description: yes\n", "" /* YAML 1.2: a text */},
		"no value":          {small + "description:\n", "description has no value; write one, or leave the key out"},
		"an empty list":     {small + "tools: {allow: []}\n", "tools.allow must not be empty; leave the key out instead"},
		"an empty table":    {small + "space: {env: {}}\n", "space.env must not be empty; leave the key out instead"},
		"an empty text":     {small + "description: ''\n", "description must not be empty; leave the key out instead"},
		"a text for a list": {small + "tools: {allow: shell}\n",
			"line 5, column 16: tools.allow must be a list, not \"shell\"; write [shell]"},
		"twice in a list":   {small + "tools: {allow: [shell, shell]}\n", "line 5, column 24: tools.allow[1] is there twice"},
		"a word of no enum": {small + "policy: strict\n", "line 5, column 9: policy must be one of restrictive, standard, permissive"},
		"a bad name": {strings.Replace(small, "weather-report", "Weather", 1),
			"line 2, column 7: name must be small letters, digits and hyphens"},
		"no name": {strings.Replace(small, "name: weather-report\n", "", 1),
			"name is missing: the agent's name in the workspace"},
		"no adapter": {strings.Replace(small, "adapter: {kind: internal}\n", "", 1), "adapter is missing: what runs the agent"},
		"no model": {strings.Replace(small, "default", "code", 1),
			"line 4, column 9: models.default is missing: the model that serves the agent"},
		"another version": {strings.Replace(small, "version: 1", "version: 2", 1), "api_version must be a whole number from 1 to 1"},
		"an alias": {small + "instructions: &a x\ndescription: *a\n",
			"line 5, column 15: anchors and aliases are not allowed; write the value out"},
		"a merge": {small + "limits:\n  <<: {steps: 1}\n", "merge keys are not allowed"},
		"a tag":   {small + "description: !!str 7\n", "tags are not allowed"},
		"a host": {small + "space: {network: {allow_domains: ['http://']}}\n",
			"space.network.allow_domains[0] must be a host such as example.com"},
		"allowed and denied": {small + "tools: {allow: [shell], deny: [shell]}\n", "tools.deny[0] is allowed and denied"},
		"a foreign command":  {small + "space: {env: {'A B': x}}\n", "space.env has the key \"A B\", which does not match"},
		"no program": {strings.Replace(small, "internal", "external_cli", 1),
			"adapter.program is missing: name the coding agent, or custom with a command"},
		"a nano space for a program": {
			strings.Replace(small, "kind: internal", "kind: external_cli, program: codex", 1) + "space: {tier: nano}\n",
			"space.tier must be heavy, auto or an OS tier"},
		"no command": {strings.Replace(small, "kind: internal", "kind: external_cli, program: custom", 1),
			"adapter.command is missing: the command of a custom program; line 3, column 10: adapter.wire is missing"},
		"questions of the daemon's own loop": {strings.Replace(small, "kind: internal", "kind: internal, permissions: ask", 1),
			"line 3, column 40: adapter.permissions is for the adapter external_cli"},
		"questions in another way": {strings.Replace(small, "kind: internal", "kind: external_cli, program: claude, permissions: maybe", 1),
			"adapter.permissions must be one of off, ask"},
		"tools of a program that asks nothing": {
			strings.Replace(small, "kind: internal", "kind: external_cli, program: claude, permissions: off, allow_tools: [Read]", 1),
			"adapter.allow_tools is for permissions: ask"},
		"a tool that is none": {
			strings.Replace(small, "kind: internal", "kind: external_cli, program: claude, permissions: ask, allow_tools: [a b]", 1),
			"adapter.allow_tools[0] must be a name of letters"},
		"a program that asks": {
			strings.Replace(small, "kind: internal", "kind: external_cli, program: claude, permissions: ask, allow_tools: [Read]", 1), ""},
		"a pin of nothing": {small + "pins: {models: {other: 'sha256:" + strings.Repeat("0", 64) + "'}}\n",
			"pins a model that the blueprint does not use"},
		"a pin that is none": {small + "pins: {policy: 'sha256:0'}\n", "pins.policy must be sha256: and 64 hexadecimal digits"},
		"an amount":          {small + "limits: {cost: 1e3}\n", "limits.cost must be an amount such as 2.50"},
		"not YAML":           {"a: [", "line 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := blueprints.Read([]byte(tt.text))
			err := blueprints.Refusal(problems)
			if tt.want == "" {
				if err != nil {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestTheEdgesOfABlueprint reads texts at each limit and one beyond it.
func TestTheEdgesOfABlueprint(t *testing.T) {
	list := func(n int) string {
		entries := make([]string, n)
		for i := range entries {
			entries[i] = fmt.Sprintf("t%d", i)
		}
		return "[" + strings.Join(entries, ", ") + "]"
	}
	tests := map[string]struct{ fits, tooMuch string }{
		"text": {small + strings.Repeat("#", blueprint.MaxBytes-len(small)), small + strings.Repeat("#", blueprint.MaxBytes-len(small)+1)},
		"name": {strings.Replace(small, "weather-report", strings.Repeat("a", 63), 1),
			strings.Replace(small, "weather-report", strings.Repeat("a", 64), 1)},
		"description":  {small + "description: " + strings.Repeat("a", 500), small + "description: " + strings.Repeat("a", 501)},
		"instructions": {small + "instructions: " + strings.Repeat("a", 65_536), small + "instructions: " + strings.Repeat("a", 65_537)},
		"tools":        {small + "tools: {allow: " + list(200) + "}", small + "tools: {allow: " + list(201) + "}"},
		"steps":        {small + "limits: {steps: 10000}", small + "limits: {steps: 10001}"},
		"cost":         {small + "limits: {cost: 999999999.999999}", small + "limits: {cost: 1000000000}"},
		"brackets":     {small + "description: '" + strings.Repeat("[", 64) + "'", small + "description: '" + strings.Repeat("[", 65) + "'"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, problems := blueprints.Read([]byte(tt.fits)); len(problems) > 0 {
				t.Errorf("what fits is refused: %v", blueprints.Refusal(problems))
			}
			if _, problems := blueprints.Read([]byte(tt.tooMuch)); len(problems) == 0 {
				t.Error("what is too much is read")
			}
		})
	}
}

// TestTheSameBlueprintHasOneHash writes one blueprint in several forms, and others that differ.
func TestTheSameBlueprintHasOneHash(t *testing.T) {
	hash := func(text string) string {
		t.Helper()
		b, problems := blueprints.Read([]byte(text))
		if err := blueprints.Refusal(problems); err != nil {
			t.Fatal(err)
		}
		h, err := b.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h.String()
	}
	want := hash(small)
	pinned := "pins: {policy: 'sha256:" + strings.Repeat("0", 64) + "'}\n"
	for _, same := range []string{
		"# a comment\n" + small,
		"models:\n  default: glm\nadapter:\n  kind: internal\nname: 'weather-report'\napi_version: 1\n",
		`{"api_version": 1, "name": "weather-report", "adapter": {"kind": "internal"}, "models": {"default": "glm"}}`,
		small + pinned,
	} {
		if got := hash(same); got != want {
			t.Errorf("another hash for\n%s", same)
		}
	}
	seen := map[string]bool{want: true}
	for _, other := range []string{small + "policy: standard\n", small + "description: x\n", strings.Replace(small, "glm", "other", 1)} {
		if h := hash(other); seen[h] {
			t.Errorf("the same hash for\n%s", other)
		} else {
			seen[h] = true
		}
	}
	b, _ := blueprints.Read([]byte(small))
	c, _ := blueprints.Read([]byte(small + pinned))
	x, _ := b.Locked()
	y, _ := c.Locked()
	if x == y {
		t.Error("the pins do not count in what a session records")
	}
}

// TestTheSchemaKnowsEveryKey reads the schema and compares it with the fields, and with a blueprint that has a value for each.
func TestTheSchemaKnowsEveryKey(t *testing.T) {
	raw, err := blueprint.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	keys := 0
	var walk func(fields []blueprint.Field, schema map[string]any, path string)
	walk = func(fields []blueprint.Field, schema map[string]any, path string) {
		properties, ok := schema["properties"].(map[string]any)
		if !ok || len(properties) != len(fields) || schema["additionalProperties"] != false {
			t.Errorf("%s: the schema has %d keys and is open: %v", path, len(properties), schema["additionalProperties"])
		}
		for _, f := range fields {
			keys++
			at, ok := properties[f.Name].(map[string]any)
			if !ok || at["description"] != f.Doc || f.Doc == "" {
				t.Errorf("%s%s: the schema says %v", path, f.Name, at)
				continue
			}
			if f.Type == blueprint.Number && (f.Max == 0 || at["maximum"] != float64(f.Max) || at["minimum"] != float64(f.Min)) {
				t.Errorf("%s%s: bounds %v", path, f.Name, at)
			}
			if f.Type == blueprint.List && f.Enum == nil && (f.Max == 0 || f.Each == 0) {
				t.Errorf("%s%s has no bounds", path, f.Name)
			}
			if f.Type == blueprint.Object {
				walk(f.Fields, at, path+f.Name+".")
			}
		}
	}
	walk(blueprint.Fields(), schema, "")
	if keys < 50 {
		t.Errorf("the schema was compared for %d keys only", keys)
	}
}

// FuzzRead reads any text, and what is read without a problem reads again from its JSON with the same hash.
func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(small + "space: {env: {A: ''}, network: {allow_domains: ['*.example.com']}}\nlimits: {cost: 1.50}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, problems := blueprints.Read(text)
		if len(problems) > 0 {
			return
		}
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		again, problems := blueprints.Read(raw)
		if err := blueprints.Refusal(problems); err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		x, _ := b.Locked()
		if y, _ := again.Locked(); x != y {
			t.Errorf("another hash for\n%s", raw)
		}
	})
}
