package tools_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/tools"
)

// TestEveryOperationIsATool compares the tools with the operations of the protocol, field by field.
func TestEveryOperationIsATool(t *testing.T) {
	byName := map[string]tool.Tool{}
	for _, x := range tools.Builtin() {
		if err := x.Check(); err != nil {
			t.Error(err)
		}
		byName[x.Name] = x
	}
	background := []string{"stdin", "pty", "tag"}
	for _, spec := range run.Specs() {
		if tools.Own(spec.Type) {
			continue
		}
		x, ok := byName[spec.Type]
		if !ok {
			t.Errorf("%s is no tool", spec.Type)
			continue
		}
		if x.Effect != spec.Effect() || x.Effect == "" || x.Title == "" || x.Description == "" {
			t.Errorf("%s: %+v", spec.Type, x)
		}
		var schema struct {
			Properties map[string]struct {
				Type string `json:"type"`
			} `json:"properties"`
			Required   []string `json:"required"`
			Additional bool     `json:"additionalProperties"`
		}
		if err := json.Unmarshal(x.Input, &schema); err != nil || schema.Additional {
			t.Fatalf("%s: %v", spec.Type, err)
		}
		known := 0
		for _, f := range spec.Fields {
			p, ok := schema.Properties[f.Name]
			if slices.Contains(background, f.Name) {
				if ok {
					t.Errorf("%s offers %s", spec.Type, f.Name)
				}
				continue
			}
			if known++; !ok || p.Type != f.Kind || slices.Contains(schema.Required, f.Name) != f.Required {
				t.Errorf("%s.%s: %+v, required %v", spec.Type, f.Name, p, schema.Required)
			}
		}
		if known != len(schema.Properties) {
			t.Errorf("%s has other parameters than the operation: %v", spec.Type, schema.Properties)
		}
	}
}

// TestTheSchemasAreSchemas compiles each schema, and gives it arguments that fit and some that do not.
func TestTheSchemasAreSchemas(t *testing.T) {
	good := map[string]string{
		"message": `{"content": "hello"}`, "createFile": `{"path": "a", "content": "x", "overwrite": true}`, "readFile": `{"path": "a"}`,
		"editFile": `{"path": "a", "edits": [{"oldContent": "x", "newContent": ""}]}`, "deleteFile": `{"path": "a"}`,
		"shell":      `{"command": "ls", "timeout": 1000, "env": {"A": "b"}}`,
		"code":       `{"language": "python", "code": "1", "context": "main", "timeout": 1000}`,
		"ask_person": `{"question": "why?"}`, "search": `{"words": "plan b", "limit": 5}`,
		"http_fetch":       `{"url": "https://a.example/", "method": "HEAD", "raw": true}`,
		"md_read":          `{"path": "a.md", "heading": "A > B"}`,
		"md_write":         `{"path": "a.md", "content": "# A"}`,
		"spawn":            `{"task": "count", "blueprint": "counter", "space": "new"}`,
		"capsule_write":    `{"capsule": "plan", "text": "first look"}`,
		"capsule_read":     `{"from": "children", "number": 1000, "capsule": "manifest"}`,
		"artifact_read":    `{"from": "siblings", "number": 1, "artifact": "a.txt", "offset": 0, "length": 1}`,
		"html_to_markdown": `{"html": "<p>a</p>", "base_url": "https://a.example/x"}`,
	}
	for _, x := range tools.Builtin() {
		parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(string(x.Input)))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(x.Name, parsed); err != nil {
			t.Fatal(err)
		}
		schema, err := compiler.Compile(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		fits := func(text string) error {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			return schema.Validate(v)
		}
		if err := fits(good[x.Name]); err != nil {
			t.Errorf("%s refuses %s: %v", x.Name, good[x.Name], err)
		}
		if _, err := tools.Prepare(x.Name, json.RawMessage(good[x.Name])); err != nil {
			t.Errorf("%s is not prepared of %s: %v", x.Name, good[x.Name], err)
		}
		for _, bad := range []string{`{}`, `[]`, strings.Replace(good[x.Name], "{", `{"more": 1, `, 1)} {
			if fits(bad) == nil {
				t.Errorf("%s takes %s", x.Name, bad)
			}
			if _, err := tools.Prepare(x.Name, json.RawMessage(bad)); err == nil {
				t.Errorf("%s is prepared of %s", x.Name, bad)
			}
		}
	}
}

// TestTheSetOfToolsHasAHash offers sets and wants a hash for each.
func TestTheSetOfToolsHasAHash(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range []tool.Offer{{}, {Classes: []string{"read"}}, {Classes: []string{"read", "process"}}, {Names: []string{"shell"}}} {
		_, hash, err := tools.Offered(o)
		if err != nil || seen[hash.String()] {
			t.Errorf("%+v: %s, %v", o, hash, err)
		}
		seen[hash.String()] = true
	}
}

// TestWhoIsOfferedToStartSubAgents holds that spawn comes with the number of sub-agents and not with its class, and that a denial wins.
func TestWhoIsOfferedToStartSubAgents(t *testing.T) {
	for name, c := range map[string]struct {
		b    blueprint.Blueprint
		want bool
	}{
		"nobody says":    {blueprint.Blueprint{}, false},
		"its class":      {blueprint.Blueprint{Tools: blueprint.Tools{Classes: []string{"process"}}}, false},
		"its name alone": {blueprint.Blueprint{Tools: blueprint.Tools{Allow: []string{"spawn"}}}, false},
		"a number":       {blueprint.Blueprint{Limits: blueprint.Limits{Children: 1}}, true},
		"denied": {blueprint.Blueprint{Limits: blueprint.Limits{Children: 1}, Tools: blueprint.Tools{Classes: []string{"pure"},
			Deny: []string{"spawn"}}}, false},
	} {
		offered, _, err := tools.Offered(tools.OfferOf(c.b))
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(offered, func(x tool.Tool) bool { return x.Name == tool.Spawn }); got != c.want {
			t.Errorf("%s: offered %t", name, got)
		}
	}
}

// TestWhoIsOfferedTheToolsOfCapsules holds that they come with what a blueprint writes and is shown, and neither with a class nor a name.
func TestWhoIsOfferedTheToolsOfCapsules(t *testing.T) {
	all := tools.Among()
	for name, c := range map[string]struct {
		b    blueprint.Blueprint
		want []string
	}{
		"nobody says":     {blueprint.Blueprint{}, nil},
		"their classes":   {blueprint.Blueprint{Tools: blueprint.Tools{Classes: []string{"read", "record"}}}, nil},
		"their names":     {blueprint.Blueprint{Tools: blueprint.Tools{Allow: all}}, nil},
		"a risk":          {blueprint.Blueprint{Comms: blueprint.Comms{Capsule: []string{"risk"}}}, all[:1]},
		"a manifest only": {blueprint.Blueprint{Comms: blueprint.Comms{Capsule: []string{"manifest"}}}, nil},
		"a source":        {blueprint.Blueprint{Context: blueprint.Context{Sources: []string{"plan_capsules"}}}, all[1:2]},
		"lists":           {blueprint.Blueprint{Context: blueprint.Context{Sources: []string{"artifact_manifests"}}}, all[1:]},
		"denied": {blueprint.Blueprint{Comms: blueprint.Comms{Capsule: []string{"plan"}}, Tools: blueprint.Tools{Classes: []string{"pure"},
			Deny: []string{"capsule_write"}}}, nil},
	} {
		offered, _, err := tools.Offered(tools.OfferOf(c.b))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range all {
			if slices.ContainsFunc(offered, func(x tool.Tool) bool { return x.Name == name }) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: offered %v, want %v", name, got, c.want)
		}
	}
}

// TestALineAboutACall holds the line about a call of the daemon's own tools, as people see it who watch the run.
func TestALineAboutACall(t *testing.T) {
	for prepared, want := range map[string]string{
		`{"type":"http_fetch","id":"call","url":"https://a.example/"}`:        "https://a.example/",
		`{"type":"ask_person","question":"  Which?\nThis or that?"}`:          "Which?",
		`{"type":"spawn","task":"` + strings.Repeat("é", 120) + `"}`:          strings.Repeat("é", 120),
		`{"type":"spawn","task":"` + strings.Repeat("é", 121) + `"}`:          strings.Repeat("é", 120) + "…",
		`{"type":"capsule_write","capsule":"plan","text":"Look.\nWrite."}`:    "Look.",
		`{"type":"artifact_read","from":"children","artifact":"a.txt"}`:       "a.txt",
		`{"type":"capsule_read","from":"children"}`:                           "children",
		`{"type":"message","content":7}`:                                      "",
		`{`:                                                                   "",
		`{"type":"md_write","path":"a.md","content":"# A","heading":"A > B"}`: "a.md",
	} {
		if got := tools.Summary(json.RawMessage(prepared)); got != want {
			t.Errorf("%.60s: got %q, want %q", prepared, got, want)
		}
	}
}
