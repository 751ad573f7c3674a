package blueprints_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/spaces"
)

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// fixture is a service over a log in memory, whose references can be changed.
type fixture struct {
	*blueprints.Service
	owner  event.Origin
	viewer event.Origin
	things map[blueprint.Reference]string // what there is, by reference
}

func start(t *testing.T) *fixture {
	t.Helper()
	ctx := context.Background()
	c := &clock{now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
	ids := id.NewSource(c.Now, rand.Reader)
	log, err := memory.NewJournal(append(append(gate.Definitions(), blueprints.Definitions()...), spaces.Definition()), c, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{Log: log, Docs: log, Evaluator: cedar.New(), Clock: c, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	people := identity.New(identity.Parts{Log: log, Docs: log, Gate: g, Clock: c, IDs: ids, Entropy: rand.Reader})
	owner, err := people.Owner(ctx, id.DefaultWorkspace, "owner")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{owner: event.Origin{Principal: owner}, viewer: event.Origin{Principal: "usr_nobody"}}
	f.things = map[blueprint.Reference]string{
		{Kind: blueprint.ToPolicy, Name: "standard"}: "p1", {Kind: blueprint.ToTools}: "t1", {Kind: blueprint.ToLoop}: "l1",
		{Kind: blueprint.ToModel, Name: "glm"}: "m1",
	}
	find := func(kind blueprint.Kind) blueprints.Resolve {
		return func(_ context.Context, _ id.Workspace, name string, _ blueprint.Blueprint) (event.Digest, error) {
			if thing, ok := f.things[blueprint.Reference{Kind: kind, Name: name}]; ok {
				return event.DigestOf([]byte(thing)), nil
			}
			return event.Digest{}, fault.New(fault.NotFound, "thing_not_found", "there is no %s %s", kind, name)
		}
	}
	resolve := map[blueprint.Kind]blueprints.Resolve{}
	for _, kind := range []blueprint.Kind{blueprint.ToPolicy, blueprint.ToTools, blueprint.ToLoop, blueprint.ToModel} {
		resolve[kind] = find(kind)
	}
	f.Service = blueprints.New(blueprints.Parts{Docs: log, Gate: g, Clock: c, Resolve: resolve})
	return f
}

// TestVersions registers a blueprint, changes it, takes it away and registers it again.
func TestVersions(t *testing.T) {
	f, ctx, ws := start(t), context.Background(), id.DefaultWorkspace
	register := func(text string, version int) blueprint.Entry {
		t.Helper()
		e, err := f.Register(ctx, f.owner, ws, []byte(text))
		if err != nil || e.Version != version || !e.Living() {
			t.Fatalf("got %+v, %v", e, err)
		}
		return e
	}
	first := register(small, 1)
	if first.Unpinned != 4 || first.Summary.Model != "glm" || first.Summary.Policy != "standard" {
		t.Errorf("got %+v", first)
	}
	register(small, 1) // holds already
	second := register(small+"policy: restrictive\n", 2)
	if second.Hash == first.Hash {
		t.Error("another blueprint has the same hash")
	}
	register("# a comment\n"+small+"policy: restrictive\n", 3) // the text is another, the hash is not
	for version, want := range map[int]string{
		1: small, 2: small + "policy: restrictive\n", 0: "# a comment\n" + small + "policy: restrictive\n",
	} {
		if text, err := f.Text(ctx, ws, "weather-report", version); err != nil || text.Text != want {
			t.Errorf("version %d: got %+v, %v", version, text, err)
		}
	}
	if _, err := f.Text(ctx, ws, "weather-report", 4); !errors.Is(err, blueprint.ErrVersion) {
		t.Errorf("a version that never was: %v", err)
	}
	if e, err := f.Remove(ctx, f.owner, ws, "weather-report", "old"); err != nil || e.Living() || e.Reason != "old" || len(e.Editions) != 3 {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := f.Remove(ctx, f.owner, ws, "weather-report", ""); !errors.Is(err, blueprint.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if found, err := f.List(ctx, ws, false, "", 10); err != nil || len(found) != 0 {
		t.Errorf("got %+v, %v", found, err)
	}
	if found, err := f.List(ctx, ws, true, "", 10); err != nil || len(found) != 1 {
		t.Errorf("got %+v, %v", found, err)
	}
	register(small, 4)
}

// TestWhoMayRegister refuses somebody without a role, also where nothing would change.
func TestWhoMayRegister(t *testing.T) {
	f, ctx, ws := start(t), context.Background(), id.DefaultWorkspace
	for range 2 {
		if _, err := f.Register(ctx, f.viewer, ws, []byte(small)); fault.KindOf(err) != fault.Denied {
			t.Errorf("got %v", err)
		}
		if _, err := f.Remove(ctx, f.viewer, ws, "weather-report", ""); fault.KindOf(err) != fault.Denied {
			t.Errorf("got %v", err)
		}
		if _, err := f.Register(ctx, f.owner, ws, []byte(small)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLockAndVerify pins what a blueprint refers to, changes it, and wants that found.
func TestLockAndVerify(t *testing.T) {
	f, ctx, ws := start(t), context.Background(), id.DefaultWorkspace
	for name, text := range map[string]string{
		"lines": "# what it is\n" + small, "pins in the middle": "pins:\n  policy: sha256:" + strings.Repeat("0", 64) + "\n\n# below\n" + small,
		"no last line feed": strings.TrimSuffix(small, "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			locked, pins, err := f.Lock(ctx, ws, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(small, "\n") {
				if !strings.Contains(string(locked), line) {
					t.Errorf("the line %q is gone from\n%s", line, locked)
				}
			}
			b, problems := blueprints.Read(locked)
			if err := blueprints.Refusal(problems); err != nil || len(b.Unpinned()) != 0 ||
				pins.Models["glm"] != event.DigestOf([]byte("m1")).String() {
				t.Fatalf("got %+v, %v in\n%s", b.Pins, err, locked)
			}
			again, _, err := f.Lock(ctx, ws, locked)
			if err != nil || string(again) != string(locked) {
				t.Errorf("to lock again changes it: %v\n%s", err, again)
			}
			if drift, err := f.Verify(ctx, ws, b); err != nil || len(drift) != 0 {
				t.Errorf("got %+v, %v", drift, err)
			}
		})
	}
	locked, _, err := f.Lock(ctx, ws, []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := blueprints.Read(locked)
	f.things[blueprint.Reference{Kind: blueprint.ToModel, Name: "glm"}] = "m2"
	delete(f.things, blueprint.Reference{Kind: blueprint.ToPolicy, Name: "standard"})
	drift, err := f.Verify(ctx, ws, b)
	names := []string{}
	for _, d := range drift {
		names = append(names, d.String())
	}
	if err != nil || !slices.Equal(names, []string{"policy", "models.glm"}) || drift[0].Reason == "" || drift[1].Now == drift[1].Pinned {
		t.Errorf("got %+v, %v", drift, err)
	}
	if _, _, err := f.Lock(ctx, ws, []byte(small)); fault.CodeOf(err) != "thing_not_found" {
		t.Errorf("what is not there is pinned: %v", err)
	}
	f.things[blueprint.Reference{Kind: blueprint.ToPolicy, Name: "standard"}] = "p1"
	flow := []byte(`{"api_version": 1, "name": "a", "adapter": {"kind": "internal"}, "models": {"default": "glm"}}`)
	if _, _, err := f.Lock(ctx, ws, flow); fault.CodeOf(err) != "blueprint_form" {
		t.Errorf("a text without lines: %v", err)
	}
}

// TestSubAgentsArePinned pins a blueprint that another one may spawn, by its hash without pins.
func TestSubAgentsArePinned(t *testing.T) {
	f, ctx, ws := start(t), context.Background(), id.DefaultWorkspace
	parent := strings.Replace(small, "weather-report", "parent", 1) + "comms: {spawn: [weather-report]}\nlimits: {children: 1}\n"
	if _, _, err := f.Lock(ctx, ws, []byte(parent)); !errors.Is(err, blueprint.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	child, err := f.Register(ctx, f.owner, ws, []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	_, pins, err := f.Lock(ctx, ws, []byte(parent))
	if err != nil || pins.Blueprints["weather-report"] != child.Hash.String() {
		t.Errorf("got %+v, %v", pins, err)
	}
}

// TestWhatABlueprintCannotHave holds that spaces install no packages, that sub-agents are counted, and that agents share only with
// relatives.
func TestWhatABlueprintCannotHave(t *testing.T) {
	for name, c := range map[string]struct{ more, path, says string }{
		"packages":   {"space: {packages: [numpy]}\n", "space.packages", "spaces install no packages"},
		"sub-agents": {"comms: {spawn: [other]}\n", "limits.children", "how many sub-agents"},
		"the tool":   {"tools: {allow: [spawn]}\n", "limits.children", "how many sub-agents"},
		"a protocol": {"tools: {protocol: smoke}\n", "tools.protocol", "calls"},
		"groups":     {"comms: {groups: [all]}\n", "comms.groups", "comms.scopes"},
		"leases":     {"comms: {request_leases: true}\n", "comms.request_leases", "comms.scopes"},
		"transcript": {"context: {transcript: true}\n", "context.transcript", "context.sources"},
		"a project":  {"comms: {scopes: [parent, project]}\n", "comms.scopes[1]", "siblings or descendants"},
		"workspace":  {"comms: {scopes: [workspace]}\n", "comms.scopes[0]", "siblings or descendants"},
		"to write":   {"tools: {allow: [capsule_write]}\ncomms: {capsules: [manifest]}\n", "comms.capsules", "that it writes"},
		"to read":    {"tools: {allow: [capsule_read]}\n", "context.sources", "is shown"},
		"a list": {"tools: {allow: [artifact_read]}\ncontext: {sources: [plan_capsules]}\n", "context.sources",
			"artifact_manifests"},
	} {
		_, problems := blueprints.Read([]byte(small + c.more))
		if len(problems) != 1 || problems[0].Path != c.path || !strings.Contains(problems[0].Message, c.says) {
			t.Errorf("%s: got %+v", name, problems)
		}
	}
	f := start(t)
	_, err := f.Register(t.Context(), f.owner, id.DefaultWorkspace, []byte(small+"space: {packages: [numpy]}\n"))
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "space.packages") {
		t.Errorf("registered: %v", err)
	}
	for _, more := range []string{"comms: {capsules: [plan]}\n", "context: {sources: [plan_capsules]}\n"} {
		other := strings.Replace(small, "kind: internal", "kind: external_cli, program: codex", 1) + more
		if _, problems := blueprints.Read([]byte(other)); len(problems) != 1 || !strings.Contains(problems[0].Message, "adapter internal") {
			t.Errorf("%s of an external agent: %+v", more, problems)
		}
	}
	may := small + "tools: {protocol: text, allow: [capsule_write, capsule_read, artifact_read]}\nlimits: {children: 1}\n" +
		"comms: {spawn: [other], scopes: [parent, children, siblings, descendants], capsules: [status, plan, decision, manifest, risk]}\n" +
		"context: {sources: [artifact_manifests]}\n"
	if _, problems := blueprints.Read([]byte(may)); len(problems) > 0 {
		t.Errorf("what it may have: %+v", problems)
	}
}
