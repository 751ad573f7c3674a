package localengine

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"agentbox/internal/documents"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/claim"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/tools"
	"agentbox/internal/testkit/wall"
)

// desktop is an agent's run that this engine has claimed, over a log in memory.
type desktop struct {
	*agentDesk
	work errand.Work
}

// seat begins and claims the run of a blueprint.
func seat(t *testing.T, text string) *desktop {
	t.Helper()
	ctx, ws, clock := t.Context(), id.DefaultWorkspace, wall.Clock{}
	ids := id.NewSource(clock.Now, rand.Reader)
	log, err := memory.NewJournal(documents.All(), clock, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	g, err := gate.New(gate.Parts{Log: log, Docs: log, Evaluator: cedar.New(), Clock: clock, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := claim.NewTokens(make([]byte, claim.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	seal, err := policy.NewSeal(make([]byte, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	e := New(Parts{Log: log, Docs: log, Gate: g, Clock: clock, Logger: slog.New(slog.DiscardHandler),
		Blueprints: blueprints.New(blueprints.Parts{Docs: log, Gate: g, Clock: clock}),
		Engines: engines.New(engines.Parts{
			Seal: seal, Log: log, Docs: log, Blobs: memory.NewBlobs(), MaxContent: 1 << 30, Gate: g, Tokens: tokens, Clock: clock, IDs: ids,
			Logger: slog.New(slog.DiscardHandler),
			Place:  func(context.Context, id.Workspace, id.Room, id.Thread) error { return nil },
		}),
	})
	e.Identity = identity.New(identity.Parts{Log: log, Docs: log, Gate: g, Clock: clock, IDs: ids, Entropy: rand.Reader})
	owner, err := e.Identity.Owner(ctx, ws, "owner")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Blueprints.Register(ctx, event.Origin{Principal: owner}, ws, []byte(text)); err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(errand.Mission{Version: 1, Blueprint: "writer", Edition: 1, Space: "spc_1", Task: "write"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Engines.Create(ctx, event.Origin{Principal: owner}, engines.Request{Workspace: ws, Input: input}); err != nil {
		t.Fatal(err)
	}
	d := &desktop{agentDesk: &agentDesk{desk: &desk{Engine: e, work: errand.Agent}}}
	if err := d.register(ctx, ws); err != nil {
		t.Fatal(err)
	}
	doc, token, err := e.Engines.Claim(ctx, d.origin(), ws, engines.Wanted{Work: errand.Agent})
	if err != nil {
		t.Fatal(err)
	}
	d.work = errand.Work{Workspace: ws, Run: doc.ID, Token: token, Fence: doc.Fence, Input: input}
	return d
}

// call records a call of a tool in a step of its own.
func (d *desktop) call(t *testing.T, name, arguments string) relatives {
	t.Helper()
	s, err := d.Engines.Steps.Add(t.Context(), d.origin(), d.hold(d.work), engines.StepRequest{Kind: errand.TurnKind})
	if err != nil {
		t.Fatal(err)
	}
	q := engines.CallRequest{Step: s.ID, Tool: name}
	made, no, err := d.Engines.Steps.Invoke(t.Context(), d.origin(), d.work.Workspace, d.work.Token, q)
	if err != nil || no != nil {
		t.Fatal(no, err)
	}
	return relatives{use{agentDesk: d.agentDesk, work: d.work, call: made.ID, name: name, args: json.RawMessage(arguments)}}
}

// TestACallThatWritesACapsuleIsRepeated makes one call twice, as after a crash before its outcome was recorded. The second time nothing
// is recorded, and the outcome is the same.
func TestACallThatWritesACapsuleIsRepeated(t *testing.T) {
	d := seat(t, "api_version: 1\nname: writer\nadapter: {kind: internal}\nmodels: {default: any}\ncomms: {capsules: [plan]}\n")
	u := d.call(t, "capsule_write", `{"capsule":"plan","text":"First look."}`)
	head := func() uint64 {
		n, err := d.Log.Head(t.Context(), d.work.Workspace)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := head()
	first, err := u.capsuleWrite(t.Context())
	if err != nil || !first.OK || first.Text != "written: 11 of 3000 characters" || head() == before {
		t.Fatalf("got %+v, %v", first, err)
	}
	before = head()
	again, err := u.capsuleWrite(t.Context())
	if err != nil || again != first || head() != before {
		t.Errorf("the second time: %+v, %v, %d events", again, err, head()-before)
	}
	kept, err := d.Engines.Look.Artifacts(t.Context(), d.work.Workspace, engines.Of{Run: d.work.Run}, "", 10)
	if err != nil || len(kept) != 1 || kept[0].Kind != capsuleKind || kept[0].Title != "plan" || kept[0].Stored == nil {
		t.Errorf("%d artifacts are there: %+v, %v", len(kept), kept, err)
	}
	// Another call with the same text is another capsule: it may be the newest again.
	other := d.call(t, "capsule_write", `{"capsule":"plan","text":"First look."}`)
	before = head()
	if _, err := other.capsuleWrite(t.Context()); err != nil || head() == before {
		t.Errorf("another call: %v", err)
	}
}

// TestACapsuleHasNoSecret holds that what looks like a secret is not stored.
func TestACapsuleHasNoSecret(t *testing.T) {
	d := seat(t, "api_version: 1\nname: writer\nadapter: {kind: internal}\nmodels: {default: any}\ncomms: {capsules: [risk]}\n")
	o, err := d.call(t, "capsule_write", `{"capsule":"risk","text":"The key is AKIA`+`IOSFODNN7EXAMPLF."}`).capsuleWrite(t.Context())
	if err != nil || !o.OK || o.Text != "written: 32 of 1500 characters, without what looks like a secret" {
		t.Fatalf("got %+v, %v", o, err)
	}
	kept, err := d.Engines.Look.Artifacts(t.Context(), d.work.Workspace, engines.Of{Run: d.work.Run}, "", 10)
	if err != nil || len(kept) != 1 {
		t.Fatalf("%+v, %v", kept, err)
	}
	if text, err := d.read(t.Context(), d.work, kept[0].ID, 100); err != nil || text != "The key is [redacted]." {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestHowManyRelativesAreShown holds the edges of a call of capsule_read.
func TestHowManyRelativesAreShown(t *testing.T) {
	for _, c := range []struct {
		have, number int
		first, shown int
		text, err    string
	}{
		{0, 0, 0, 0, "you have no children\n", ""}, {0, 1, 0, 0, "", "you have no children"},
		{3, 0, 1, 3, "", ""}, {3, 3, 3, 1, "", ""}, {3, 4, 0, 0, "", "from children the last number is 3"},
		{50, 0, 1, 50, "", ""}, {51, 0, 2, 50, "the first 1 of the children are left out; read one of them by its number\n", ""},
		{51, 1, 1, 1, "", ""},
	} {
		var all []place
		for n := range c.have {
			all = append(all, place{name: fmt.Sprint(n + 1)})
		}
		got, text, err := chosen(all, tools.CapsuleRead{From: "children", Number: c.number})
		if len(got) != c.shown || c.shown > 0 && got[0].name != fmt.Sprint(c.first) || text != c.text || (err == nil) != (c.err == "") ||
			err != nil && err.Error() != c.err {
			t.Errorf("%d of %d: got %v, %q, %v", c.number, c.have, got, text, err)
		}
	}
}

// TestATaskWithALongPlan holds that a plan never makes a task too long to be given.
func TestATaskWithALongPlan(t *testing.T) {
	task := strings.Repeat("t", 64<<10)
	for name, plan := range map[string]string{"letters": strings.Repeat("\U0001f600", 100_000), "lines": strings.Repeat("\n\t\n", 33_000)} {
		if got := planned(task, plan, 100_000); len(got) > errand.MaxTask || !strings.HasPrefix(got, task+"\n\nThe plan of your parent:\n  ") {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
	if got := planned("Go.", "First.\n", 6); got != "Go.\n\nThe plan of your parent:\n  First.\n" {
		t.Errorf("got %q", got)
	}
}

// TestATokenBoundsWhatIsRead holds that a run under a capability token that is not in force is shown nothing.
func TestATokenBoundsWhatIsRead(t *testing.T) {
	d := seat(t, "api_version: 1\nname: writer\nadapter: {kind: internal}\nmodels: {default: any}\ncontext: {sources: [plan_capsules]}\n")
	u := d.call(t, "capsule_read", `{"from":"children"}`)
	var err error
	if u.asked, err = d.Engines.Find(t.Context(), d.work.Workspace, d.work.Run); err != nil {
		t.Fatal(err)
	}
	if o, err := u.capsuleRead(t.Context()); err != nil || o.Text != "you have no children\n" {
		t.Errorf("without a token: %+v, %v", o, err)
	}
	u.asked.Token = "cap_unknown"
	if o, err := u.capsuleRead(t.Context()); fault.KindOf(err) != fault.Denied {
		t.Errorf("under another token: %+v, %v", o, err)
	}
}
