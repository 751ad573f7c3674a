package gate_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	spaces "agentbox/internal/domain/space"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/bundles"
	"agentbox/internal/service/gate/killswitch"
	"agentbox/internal/service/identity"
)

func TestKillSwitchStopsEveryEffect(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	var halted []error
	h.KillSwitch.OnHalt(func(_ id.Workspace, cause error) { halted = append(halted, cause) })
	effect, read := h.shell("standard", "ls"), h.file("standard", policy.FileRead, "a.txt")
	asking := h.shell("standard", "rm -r scratch")
	r, q := h.asked(asking)
	h.approve(q, h.owner)
	under := h.judge(effect)
	inFlight, _, err := h.Begin(ctx, under, "", h.intent(effect))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, "something smells"); err != nil {
		t.Fatal(err)
	}
	if len(halted) != 1 || !errors.Is(halted[0], killswitch.ErrThrown) {
		t.Errorf("got %v, want the work under way to be halted once", halted)
	}
	if by, ok := halted[0].(policy.Halt); !ok || by.Event() != h.thrown() {
		t.Errorf("the work under way was halted by %v, want by the event %s", halted[0], h.thrown())
	}
	check := func(when string) {
		t.Helper()
		if d := h.judge(effect).Decision; d.Outcome != policy.Deny || d.ReasonCode != policy.ReasonKillSwitch {
			t.Errorf("%s: got %s %s, want kill_switch_active", when, d.Outcome, d.ReasonCode)
		}
		if d := h.judge(read).Decision; d.Outcome != policy.Allow {
			t.Errorf("%s: reading: got %s", when, d.Outcome)
		}
	}
	check("thrown")
	if by := h.KillSwitch.Last(ws); by == nil || by.Event() != h.thrown() {
		t.Errorf("the last throw is %v, want the event %s", by, h.thrown())
	}
	if _, err := inFlight.Redeem(policy.ShellExec); !errors.Is(err, killswitch.ErrThrown) {
		t.Errorf("a permit of before: got %v, want %v", err, killswitch.ErrThrown)
	}
	for name, ruling := range map[string]policy.Ruling{"allowed before": under, "approved before": r} {
		approval := id.Approval("")
		if name == "approved before" {
			approval = q.ID
		}
		if err := begin(h, ruling, approval); fault.CodeOf(err) != policy.ReasonKillSwitch {
			t.Errorf("%s: got %v", name, err)
		}
	}
	h.restart()
	check("after a restart")
	for _, c := range []struct {
		who  id.Principal
		code string
	}{
		{h.agent, policy.ReasonRoleTooLow}, {h.person("m", principal.Member), policy.ReasonRoleTooLow}, {h.person("o", principal.Operator),
			policy.ReasonRoleTooLow},
		{h.person("a", principal.Admin), ""},
	} {
		_, err := h.KillSwitch.Lift(ctx, h.origin(c.who), ws, "")
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s lifts it: got %v, want %q", c.who, err, c.code)
		}
	}
	if d := h.judge(effect).Decision; d.Outcome != policy.Allow {
		t.Errorf("lifted: got %s", d.Outcome)
	}
	h.restart()
	if err := begin(h, h.judge(asking), q.ID); err != nil {
		t.Errorf("the approval outlives it: %v", err)
	}
}

func TestKillSwitchInShadowModeStops(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.Shadow = true })
	if _, err := h.KillSwitch.Throw(context.Background(), h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	if d := h.judge(h.shell("standard", "ls")).Decision; d.Allowed() {
		t.Errorf("got %+v, want a refusal", d)
	}
}

func TestKillSwitchNeedsNoLog(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "ls")
	permit, _, err := h.Begin(context.Background(), h.judge(a), "", h.intent(a))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.log.Close(); err != nil {
		t.Fatal(err)
	}
	doc, err := h.KillSwitch.Throw(context.Background(), h.origin(h.owner), ws, "")
	if fault.CodeOf(err) != "kill_switch_not_recorded" || !doc.On {
		t.Errorf("got %v, %v, want it thrown and the error that it was not recorded", doc, err)
	}
	_, err = permit.Redeem(policy.ShellExec)
	if !errors.Is(err, killswitch.ErrThrown) {
		t.Errorf("got %v, want %v", err, killswitch.ErrThrown)
	}
	if by, ok := errors.AsType[policy.Halt](err); !ok || by.Event() != "" {
		t.Errorf("got %v, want a throw of which there is no event", err)
	}
}

func TestWhoMayThrowTheKillSwitch(t *testing.T) {
	h := build(t, nil)
	for _, c := range []struct {
		who id.Principal
		ok  bool
	}{
		{h.owner, true}, {h.person("m", principal.Member), true}, {h.person("v", principal.Viewer), false}, {h.agent, false}, {"usr_0", false},
	} {
		_, err := h.KillSwitch.Throw(context.Background(), h.origin(c.who), ws, "")
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v, want allowed: %t", c.who, err, c.ok)
		}
	}
}

func TestShadowRecordsWhatWouldHaveBeenRefused(t *testing.T) {
	ctx := context.Background()
	h := build(t, func(p *gate.Parts) { p.Shadow = true })
	for _, c := range []struct {
		command string
		outcome policy.Outcome
		typ     string
	}{
		{"sudo ls", policy.Deny, policy.DeniedType}, {"rm -r x", policy.RequireApproval, policy.RequiresApprovalType},
	} {
		a := h.shell("standard", c.command)
		r := h.judge(a)
		if r.Decision.Outcome != c.outcome || !r.Decision.Shadow || !r.Decision.Allowed() {
			t.Errorf("%s: got %+v", c.command, r.Decision)
		}
		before := h.count(c.typ)
		permit, _, err := h.Begin(ctx, r, "", h.intent(a))
		if err != nil {
			t.Fatalf("%s: %v", c.command, err)
		}
		if _, err := permit.Redeem(policy.ShellExec); err != nil {
			t.Errorf("%s: %v", c.command, err)
		}
		if got := h.count(c.typ) - before; got != 1 {
			t.Errorf("%s: got %d records, want 1", c.command, got)
		}
	}
	for name, a := range map[string]policy.Action{
		"cannot be parsed":  h.shell("standard", "if"),
		"unknown action":    {Type: "moon.land", Workspace: ws, Principal: h.agent},
		"unknown principal": {Type: policy.ShellExec, Workspace: ws, Principal: "agt_00000000000000000000000000", Command: "ls"},
		"capability token":  {Type: policy.FileRead, Workspace: ws, Principal: h.agent, Token: "cap_1", Path: "a"},
	} {
		if d := h.judge(a).Decision; d.Allowed() {
			t.Errorf("%s: shadow lets it pass: %+v", name, d)
		}
	}
}

func TestOrderOfTheChecks(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	bad, err := h.Agent(ctx, h.origin(h.owner), ws, "bad")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, bad, true, "odd"); err != nil {
		t.Fatal(err)
	}
	// Everything is wrong with it; each check that is passed uncovers the next.
	a := policy.Action{
		Type: "moon.land", Workspace: ws, Principal: "agt_00000000000000000000000000", Token: "cap_1", Bundle: event.DigestOf([]byte("none")),
		Cwd: "..",
	}
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code string
		mend func()
	}{
		{policy.ReasonActionInvalid, func() { a.Cwd = "" }},
		{policy.ReasonPrincipalNotFound, func() { a.Principal = bad }},
		{policy.ReasonAgentQuarantined, func() { a.Principal = h.agent }},
		{policy.ReasonKillSwitch, func() {
			if _, err := h.KillSwitch.Lift(ctx, h.origin(h.owner), ws, ""); err != nil {
				t.Fatal(err)
			}
		}},
		{policy.ReasonTokenNotFound, func() { a.Token = "" }},
		{policy.ReasonUnknownAction, func() { a.Type = policy.ShellExec }},
		{policy.ReasonPolicyUnavailable, func() { a.Bundle = h.bundles["standard"].Hash }},
		{policy.ReasonDefaultAllow, nil},
	} {
		if got := h.judge(a).Decision.ReasonCode; got != c.code {
			t.Fatalf("got %s, want %s", got, c.code)
		}
		if c.mend != nil {
			c.mend()
			a.Command = "ls"
		}
	}
}

func TestMalformedActionsAreRefused(t *testing.T) {
	h := build(t, nil)
	for name, change := range map[string]func(*policy.Action){
		"shown is not what runs":     func(a *policy.Action) { a.Argv[2] = "sudo ls" },
		"shown is not all that runs": func(a *policy.Action) { a.Argv = append(a.Argv, "x") },
		"not a shell command":        func(a *policy.Action) { a.Argv[1] = "-lc" },
		"upwards":                    func(a *policy.Action) { a.Cwd = "../x" },
		"not clean":                  func(a *policy.Action) { a.Cwd = "a/../b" },
		"absolute":                   func(a *policy.Action) { a.Path = "/etc" },
		"NUL":                        func(a *policy.Action) { a.Path = "a\x00" },
		"negative":                   func(a *policy.Action) { a.Size = -1 },
		"not UTF-8":                  func(a *policy.Action) { a.Operation = "\xff" },
		"inexact":                    func(a *policy.Action) { a.Fence = 1 << 60 },
	} {
		a := h.shell("standard", "ls")
		change(&a)
		if d := h.judge(a).Decision; d.Outcome != policy.Deny {
			t.Errorf("%s: got %s", name, d.Outcome)
		}
	}
}

func TestLimitsAreClampedAndEnforced(t *testing.T) {
	h := build(t, nil)
	for _, c := range []struct{ asked, want int64 }{{0, 30_000}, {1_000, 1_000}, {30_000, 30_000}, {30_001, 30_000}, {3_600_000, 30_000}} {
		a := h.shell("standard", "ls")
		a.TimeoutMS = c.asked
		r := h.judge(a)
		if r.Action.TimeoutMS != c.want || r.Decision.Outcome != policy.Allow {
			t.Errorf("asked for %d ms: got %d, %s", c.asked, r.Action.TimeoutMS, r.Decision.Outcome)
		}
	}
	read := h.file("restrictive", policy.FileRead, "a")
	read.MaxBytes = 10 << 20
	if r := h.judge(read); r.Action.MaxBytes != 1<<20 {
		t.Errorf("reading under restrictive: got at most %d bytes, want 1 MiB", r.Action.MaxBytes)
	}
	for size, want := range map[int64]policy.Outcome{10 << 20: policy.Allow, 10<<20 + 1: policy.Deny} {
		write := h.file("standard", policy.FileCreate, "a")
		write.Size = size
		if d := h.judge(write).Decision; d.Outcome != want || want == policy.Deny && d.ReasonCode != policy.ReasonLimitExceeded {
			t.Errorf("writing %d bytes: got %s %s", size, d.Outcome, d.ReasonCode)
		}
	}
}

func TestRolesOfPeople(t *testing.T) {
	h := build(t, nil)
	viewer, member := h.person("v", principal.Viewer), h.person("m", principal.Member)
	for _, c := range []struct {
		who  id.Principal
		typ  string
		want policy.Outcome
	}{
		{viewer, policy.FileRead, policy.Allow}, {viewer, policy.FileCreate, policy.Deny}, {viewer, policy.SpaceCreate, policy.Deny},
		{viewer, policy.RunStart, policy.Deny},
		{member, policy.FileCreate, policy.Allow}, {member, policy.SpaceCreate, policy.Allow}, {member, policy.RunStart, policy.Allow},
		{h.agent, policy.SpaceCreate, policy.Deny}, {h.agent, policy.RunStart, policy.Deny}, {h.agent, policy.FileCreate, policy.Allow},
		{h.agent, policy.RunContinue, policy.RequireApproval}, {h.agent, policy.ExternalWrite, policy.Deny}, {h.agent, policy.MessageSend,
			policy.Allow},
	} {
		a := h.file("standard", c.typ, "")
		a.Principal = c.who
		if strings.HasPrefix(c.typ, "file.") {
			a.Path = "a.txt"
		}
		if d := h.judge(a).Decision; d.Outcome != c.want {
			t.Errorf("%s %s: got %s (%s), want %s", c.who.Kind(), c.typ, d.Outcome, d.Reason, c.want)
		}
	}
	external := h.file("permissive", policy.ExternalWrite, "")
	external.Target = "example.com"
	if d := h.judge(external).Decision; d.Outcome != policy.RequireApproval {
		t.Errorf("permissive asks for each host: got %s", d.Outcome)
	}
}

func TestKeys(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	bearer, key, err := h.IssueKey(ctx, h.origin(h.owner), ws, h.owner, "laptop")
	if err != nil {
		t.Fatal(err)
	}
	caller, err := h.Authenticate(ctx, bearer)
	if err != nil || caller.Principal != h.owner || caller.Workspace != ws || caller.Role != principal.Overlord || caller.Key != key.ID {
		t.Fatalf("got %+v, %v", caller, err)
	}
	for _, e := range h.events() {
		if strings.Contains(string(e.Data), bearer[len(bearer)-20:]) {
			t.Errorf("%s holds the key", e.Type)
		}
	}
	last := bearer[len(bearer)-1]
	flipped := bearer[:len(bearer)-1] + string(rune('A'+(last-'A'+1)%26))
	_, other, err := h.IssueKey(ctx, h.origin(h.owner), ws, h.owner, "other")
	if err != nil {
		t.Fatal(err)
	}
	swapped := strings.Replace(bearer, strings.TrimPrefix(string(key.ID), "key_"), strings.TrimPrefix(string(other.ID), "key_"), 1)
	for name, text := range map[string]string{
		"empty": "", "garbage": "x", "flipped": flipped, "another key's name": swapped, "shortened": bearer[:len(bearer)-1], "extended": bearer +
			"A",
		"another workspace": strings.Replace(bearer, "abk_dev", "abk_other", 1), "only the prefix": "abk_", "long": "abk_" + strings.Repeat("x",
			1<<20),
		"key id": string(key.ID), "small letters": strings.ToLower(bearer),
	} {
		if _, err := h.Authenticate(ctx, text); !errors.Is(err, principal.ErrUnauthenticated) {
			t.Errorf("%s: got %v, want %v", name, err, principal.ErrUnauthenticated)
		}
	}
	if err := h.RevokeKey(ctx, h.origin(h.owner), ws, key.ID, "lost", false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Authenticate(ctx, bearer); !errors.Is(err, principal.ErrUnauthenticated) {
		t.Errorf("revoked: got %v", err)
	}
	h.restart()
	if _, err := h.Authenticate(ctx, bearer); !errors.Is(err, principal.ErrUnauthenticated) {
		t.Errorf("revoked, after a restart: got %v", err)
	}
	member := h.person("Mia", principal.Member)
	theirs, _, err := h.IssueKey(ctx, h.origin(h.owner), ws, member, "phone")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, member, true, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Authenticate(ctx, theirs); fault.CodeOf(err) != policy.ReasonAgentQuarantined {
		t.Errorf("quarantined: got %v", err)
	}
}

func TestThereIsOneOwnerAndOneAgentOfAName(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	owners, agents := make(chan id.Principal, 20), make(chan id.Principal, 20)
	for range 20 {
		go func() {
			p, err := h.Owner(ctx, "ws_new", "Nora")
			if err != nil {
				t.Errorf("owner: %v", err)
			}
			owners <- p
			a, err := h.Agent(ctx, h.origin(h.owner), ws, "twin")
			if err != nil {
				t.Errorf("agent: %v", err)
			}
			agents <- a
		}()
	}
	first, twin := <-owners, <-agents
	for range 19 {
		if p := <-owners; p != first {
			t.Errorf("got two owners: %s and %s", first, p)
		}
		if a := <-agents; a != twin {
			t.Errorf("got two agents of one name: %s and %s", twin, a)
		}
	}
	viewer := h.person("v", principal.Viewer)
	if _, err := h.Agent(ctx, h.origin(viewer), ws, "mine"); !errors.Is(err, identity.ErrMayNotRegister) {
		t.Errorf("a viewer makes an agent: got %v", err)
	}
	for _, name := range []string{"", " x", "a\nb", "a\x1b", strings.Repeat("x", principal.MaxName+1), "\xff"} {
		if _, err := h.Agent(ctx, h.origin(h.owner), ws, name); !errors.Is(err, principal.ErrInvalidName) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestProjectionsRebuildToTheSame(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	_, r := h.granted(t, 3)
	if err := begin(h, r, ""); err != nil {
		t.Fatal(err)
	}
	_, q := h.asked(h.shell("standard", "rm -r other"))
	if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Hold,
		Reason: "let me look <>&"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, "drill"); err != nil {
		t.Fatal(err)
	}
	for _, d := range gate.Definitions() {
		before := h.dump(d.Name)
		if err := h.log.Rebuild(ctx, d.Name); err != nil {
			t.Fatal(err)
		}
		if after := h.dump(d.Name); after != before {
			t.Errorf("%s: rebuilt\n%s\nwas\n%s", d.Name, after, before)
		}
	}
}

func TestBundlesArePinned(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	b, err := h.Bundles.Pin(ctx, h.origin(h.owner), ws, "standard", []byte(`{"deny":{"commands":["ls"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	n := h.count(policy.BundlePinnedType)
	if _, err := h.Bundles.Pin(ctx, h.origin(h.owner), ws, "standard", []byte(`{"deny":{"commands":["ls"]}}`)); err != nil ||
		h.count(policy.BundlePinnedType) != n {
		t.Errorf("pinned twice: %v, %d events, want %d", err, h.count(policy.BundlePinnedType), n)
	}
	h.restart()
	found, err := h.Bundles.Bundle(ctx, ws, b.Hash)
	if err != nil || found.Cedar != b.Cedar {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := h.Bundles.Bundle(ctx, "ws_other", b.Hash); !errors.Is(err, bundles.ErrNotFound) {
		t.Errorf("in another workspace: got %v", err)
	}
	b.Cedar += " "
	if err := h.Bundles.PinBundle(ctx, h.origin(h.owner), ws, b); fault.CodeOf(err) != policy.ReasonPolicyUnavailable {
		t.Errorf("a bundle that is not what its hash says: got %v", err)
	}
	for _, preset := range []string{"loose", "../standard", "Standard"} {
		if _, err := h.Bundles.Pin(ctx, h.origin(h.owner), ws, preset, nil); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: got %v", preset, err)
		}
	}
}

func TestExplainRecordsNothing(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	head, err := h.log.Head(ctx, ws)
	if err != nil {
		t.Fatal(err)
	}
	e, err := h.Explain(ctx, h.shell("standard", "ls | sudo tee x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if e.Decision.Outcome != policy.Deny || len(e.Parts) < 3 || e.Parts[0].Outcome != policy.Allow || e.Shown == "" {
		t.Errorf("got %+v", e)
	}
	trial, err := h.Bundles.ReadPolicy([]byte("allow:\n  commands: ['*']\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = h.Explain(ctx, h.shell("standard", "sudo ls"), &trial); err != nil || e.Decision.Outcome != policy.Allow {
		t.Errorf("under a trial policy: got %s, %v", e.Decision.Outcome, err)
	}
	if _, err := h.Bundles.ReadPolicy([]byte("permit (principal, action, resource)"), true); fault.KindOf(err) != fault.Invalid {
		t.Errorf("Cedar that is not finished: got %v", err)
	}
	if after, err := h.log.Head(ctx, ws); err != nil || after != head {
		t.Errorf("the log grew from %d to %d", head, after)
	}
}

func TestGateReportsAStoreThatCannotBeRead(t *testing.T) {
	h := build(t, nil)
	if err := h.log.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := h.Judge(ctx, h.shell("standard", "ls")); err == nil || r.Decision.Outcome == policy.Allow {
		t.Errorf("got %+v, %v, want an error", r.Decision, err)
	}
}

// pinned records a space under a policy.
func (h *house) pinned(s id.Space, bundle event.Digest, env map[string]string) {
	h.t.Helper()
	draft := event.New(spaces.EventCreated, h.origin(h.owner), ws, room, spaces.Created{Space: s, Name: "a", Tier: "namespace", Bundle: bundle,
		Env: env})
	if _, err := h.log.Append(context.Background(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft.About(spaces.EntityType,
		string(s))}}); err != nil {
		h.t.Fatal(err)
	}
}

func TestASpacePinsItsPolicy(t *testing.T) {
	h := build(t, nil)
	h.pinned(space, h.bundles["restrictive"].Hash, nil)
	for preset, code := range map[string]string{
		"permissive": policy.ReasonPolicyUnavailable, "standard": policy.ReasonPolicyUnavailable, "restrictive": policy.ReasonNoPolicy,
	} {
		if d := h.judge(h.shell(preset, "ls")).Decision; d.Outcome != policy.Deny || d.ReasonCode != code {
			t.Errorf("named %s: got %s %s, want %s", preset, d.Outcome, d.ReasonCode, code)
		}
	}
	a := h.shell("restrictive", "ls")
	a.Bundle = event.Digest{}
	if r := h.judge(a); r.Action.Bundle != h.bundles["restrictive"].Hash || r.Decision.Outcome != policy.Deny {
		t.Errorf("named none: got %s under %s, want that of the space", r.Decision.Outcome, r.Action.Bundle)
	}
	a.Space = "spc_00000000000000000000000009"
	if r := h.judge(a); r.Action.Bundle != h.bundles["standard"].Hash {
		t.Errorf("named none, no space: got %s, want standard", r.Action.Bundle)
	}
}

func TestOnlyTheSpaceMayChangeWhatCommandsMean(t *testing.T) {
	h := build(t, nil)
	h.pinned(space, h.bundles["standard"].Hash, map[string]string{"NODE_OPTIONS": "--max-old-space-size=256"})
	for _, c := range []struct {
		env  map[string]string
		want policy.Outcome
	}{
		{nil, policy.Allow},
		{map[string]string{"LANG": "C", "NODE_OPTIONS": "--max-old-space-size=256"}, policy.Allow},
		{map[string]string{"NODE_OPTIONS": "--require ./x.js"}, policy.RequireApproval},
		{map[string]string{"PATH": "/tmp"}, policy.RequireApproval},
		{map[string]string{"LD_PRELOAD": "x"}, policy.RequireApproval},
		{map[string]string{"BASH_FUNC_ls%%": "() { rm x; }"}, policy.RequireApproval},
	} {
		a := h.shell("standard", "ls")
		a.Env = c.env
		if d := h.judge(a).Decision; d.Outcome != c.want {
			t.Errorf("%v: got %s (%s), want %s", c.env, d.Outcome, d.Reason, c.want)
		}
	}
}

// TestTheLastKeyOfAnOwnerIsKept revokes the keys of an owner one after the other: the last one only where that is said, and of two that are
// revoked at once one stays.
func TestTheLastKeyOfAnOwnerIsKept(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	var keys []id.Key
	for _, name := range []string{"one", "two", "three"} {
		_, key, err := h.IssueKey(ctx, h.origin(h.owner), ws, h.owner, name)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.ID)
	}
	if err := h.RevokeKey(ctx, h.origin(h.owner), ws, keys[0], "", false); err != nil {
		t.Fatal(err)
	}
	wrong := make([]error, 2)
	var both sync.WaitGroup
	for n := range wrong {
		both.Go(func() { wrong[n] = h.RevokeKey(ctx, h.origin(h.owner), ws, keys[n+1], "", false) })
	}
	both.Wait()
	refused := 0
	for _, err := range wrong {
		if err != nil {
			refused++
		}
	}
	if refused != 1 {
		t.Fatalf("of the last two keys %d were refused: %v", refused, wrong)
	}
	last := keys[1]
	if wrong[0] == nil {
		last = keys[2]
	}
	if err := h.RevokeKey(ctx, h.origin(h.owner), ws, last, "", false); fault.CodeOf(err) != "last_owner_key" {
		t.Errorf("the last key: got %v, want last_owner_key", err)
	}
	if err := h.RevokeKey(ctx, h.origin(h.owner), ws, last, "", true); err != nil {
		t.Errorf("the last key, as was said: %v", err)
	}
}
