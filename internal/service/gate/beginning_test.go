package gate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
)

// At a glance only reading is permitted, and only what the gate itself has allowed.
func TestWhatIsPermittedAtAGlance(t *testing.T) {
	h := build(t, nil)
	read := h.judge(h.file("standard", policy.FileRead, "a"))
	forged := read
	forged.Decision.Reason += "!"
	bare := read
	bare.Seal = nil
	unknown := h.file("standard", "moon.land", "")
	asked := h.file("standard", policy.FileRead, "docs/a")
	asked.Bundle = h.bundle("preset: standard\nask: {paths: ['docs/**']}\n", false).Hash
	for name, c := range map[string]struct {
		ruling policy.Ruling
		code   string
	}{
		"reading":                     {read, ""},
		"a ruling that was changed":   {forged, policy.ErrPermitMismatch.Code},
		"a ruling without a seal":     {bare, policy.ErrPermitMismatch.Code},
		"what writes":                 {h.judge(h.file("standard", policy.FileCreate, "a")), "intent_missing"},
		"a command":                   {h.judge(h.shell("standard", "ls")), "intent_missing"},
		"no action":                   {h.judge(unknown), "intent_missing"},
		"what is refused":             {h.judge(h.file("guarded", policy.FileRead, "a.env")), policy.ReasonPolicyForbids},
		"what a person is asked":      {h.judge(asked), policy.ReasonPolicyAsks},
		"what is listed, and no more": {h.judge(h.file("standard", policy.FileList, "")), ""},
	} {
		permit, err := h.Glance(c.ruling)
		if got := fault.CodeOf(err); got != c.code {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
		if _, err := permit.Redeem(c.ruling.Action.Type); (err == nil) != (c.code == "") {
			t.Errorf("%s: its permit says %v", name, err)
		}
	}
}

// A beginning that meets a conflict is repeated, up to the bound. A changed document that the caller expects is reported at once. An
// unrecorded beginning counts for nobody.
func TestSomebodyElseIsFirstWithAnEffect(t *testing.T) {
	for _, together := range []bool{false, true} {
		h, log, other := rivals(t)
		h.parts.EffectsPerHour, h.parts.Together = 2, together
		h.restart()
		a := h.shell("standard", "ls")
		r := h.judge(a)
		log.always, log.appends = true, 0
		if err := begin(h, r, ""); !errors.Is(err, journal.ErrConflict) || log.appends != journal.Tries {
			t.Errorf("in vain: got %v after %d appends, want %d", err, log.appends, journal.Tries)
		}
		log.always, log.appends = false, 0
		intent := h.intent(a)
		intent.Documents = []event.DocumentVersion{{Projection: policy.ApprovalProjection, Key: "appr_none", Version: 7}}
		if _, _, err := h.Begin(t.Context(), r, "", intent); !errors.Is(err, journal.ErrConflict) || log.appends != 1 {
			t.Errorf("over what has changed: got %v after %d appends, want 1", err, log.appends)
		}
		standing, covered := h.granted(t, 10)
		log.appends = 0
		log.before = func() {
			r, err := other.Judge(t.Context(), covered.Action)
			if err == nil {
				_, _, err = other.Begin(t.Context(), r, "", h.intent(r.Action))
			}
			if err != nil {
				t.Error(err)
			}
		}
		if err := begin(h, covered, ""); err != nil || log.appends != 2 {
			t.Errorf("while another use is recorded: got %v after %d appends, want 2", err, log.appends)
		}
		found, err := h.Approvals.Standings(t.Context(), ws, "", 1)
		if err != nil || len(found) != 1 || found[0].ID != standing || found[0].Used != 2 {
			t.Errorf("got %+v, %v, want two uses", found, err)
		}
		// The other gate counts no effects, so that of two one is left.
		if again := h.judge(covered.Action); again.Decision.Reason != "a standing approval covers it: use 3 of 10" {
			t.Errorf("got %s", again.Decision.Reason)
		}
		if err := begin(h, r, ""); err != nil {
			t.Errorf("together %t: the second of two: %v", together, err)
		}
		if err := begin(h, r, ""); fault.CodeOf(err) != policy.ReasonQuotaExceeded {
			t.Errorf("together %t: the third of two: %v", together, err)
		}
		if full := h.judge(covered.Action); full.Standing != "" || full.Decision.ReasonCode != policy.ReasonQuotaExceeded {
			t.Errorf("together %t: covered and no effect is left: got %s, %s", together, full.Standing, full.Decision.ReasonCode)
		}
		h.clock.move(time.Hour - 1)
		if err := begin(h, r, ""); fault.CodeOf(err) != policy.ReasonQuotaExceeded {
			t.Errorf("together %t: right before the hour is over: %v", together, err)
		}
		h.clock.move(1)
		for i, want := range []string{"", "", policy.ReasonQuotaExceeded} {
			if err := begin(h, r, ""); fault.CodeOf(err) != want {
				t.Errorf("together %t: effect %d of the next hour: got %v, want %q", together, i+1, err, want)
			}
		}
		counted, err := event.Decode[policy.EffectCounted](h.last(policy.EffectCountedType))
		if err != nil || counted.Principal != h.agent || !counted.Window.Equal(h.clock.Now()) {
			t.Errorf("together %t: it is counted as %+v, %v", together, counted, err)
		}
	}
}

// In mode shadow an answer is used where there is one, and then nothing was refused.
func TestAnAnswerInShadowModeIsUsed(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.Shadow = true })
	r := h.judge(h.shell("standard", "rm -r scratch"))
	q, err := h.Ask(t.Context(), h.origin(h.agent), r, policy.Ask{}, event.Batch{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	h.approve(q, h.owner)
	before := h.count(policy.RequiresApprovalType)
	if err := begin(h, r, q.ID); err != nil {
		t.Fatal(err)
	}
	if n := h.count(policy.RequiresApprovalType); n != before || h.count(policy.ApprovalUsedType) != 1 {
		t.Errorf("%d refusals were recorded, and %d uses", n-before, h.count(policy.ApprovalUsedType))
	}
	if err := begin(h, r, "appr_00000000000000000000000000"); !errors.Is(err, approvals.ErrNotFound) {
		t.Errorf("an answer that is not there: got %v", err)
	}
}

// An action of another workspace, or beside a ruling that the gate did not make, does not begin.
func TestWhatIsNotBegun(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "ls")
	r := h.judge(a)
	other, err := h.Agent(t.Context(), h.origin(h.owner), ws, "other")
	if err != nil {
		t.Fatal(err)
	}
	b := a
	b.Principal = other
	theirs := h.judge(b)
	b.Command, b.Argv = "sudo ls", []string{"/bin/bash", "-c", "sudo ls"}
	denied := h.judge(b)
	forged := theirs
	forged.Decision.Reason += "!"
	elsewhere := h.intent(a)
	elsewhere.Workspace = "ws_other"
	foreign := event.Batch{Workspace: "ws_other", Drafts: []event.Draft{event.New("test.said", h.origin(h.agent), "ws_other", room,
		struct{}{})}}
	vector := a
	vector.Argv = nil
	for name, c := range map[string]struct {
		ruling policy.Ruling
		intent event.Batch
		with   []policy.Ruling
		code   string
	}{
		"as it is":                   {r, h.intent(a), nil, ""},
		"with another":               {r, h.intent(a), []policy.Ruling{theirs}, ""},
		"with one that was changed":  {r, h.intent(a), []policy.Ruling{forged}, policy.ErrPermitMismatch.Code},
		"with one that is denied":    {r, h.intent(a), []policy.Ruling{denied}, policy.ErrApart.Code},
		"changed, with another":      {forged, h.intent(a), []policy.Ruling{r}, policy.ErrPermitMismatch.Code},
		"in another workspace":       {r, elsewhere, nil, codeOf(policy.Belongs(elsewhere, ws))},
		"wholly in another one":      {r, foreign, nil, codeOf(policy.Belongs(elsewhere, ws))},
		"a command without a vector": {h.judge(vector), h.intent(a), nil, policy.ReasonActionInvalid},
		"with nothing of its own":    {r, event.Batch{Workspace: ws}, nil, ""},
	} {
		before := len(h.events())
		permit, receipt, err := h.Begin(t.Context(), c.ruling, "", c.intent, c.with...)
		if got := fault.CodeOf(err); got != c.code {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
		if n := len(h.events()) - before; (n == 1) != (c.code == "") || (permit == policy.Permit{}) != (c.code != "") ||
			len(receipt.Events) != n {
			t.Errorf("%s: %d events were recorded", name, n)
		}
	}
}

// A request that the caller's kind or role rules out is refused before its body is read, and the refusal is recorded.
func TestWhatIsBarred(t *testing.T) {
	h := build(t, nil)
	service := id.NewPrincipal(h.ids, id.Service)
	user := id.NewPrincipal(h.ids, id.User)
	for _, c := range []struct {
		action string
		who    id.Principal
		role   principal.Role
		least  principal.Role
		barred bool
	}{
		{"moon.land", user, principal.Viewer, principal.Overlord, false},
		{policy.RoomCreate, user, principal.Member, "", false},
		{policy.RoomCreate, user, principal.Viewer, "", true},
		{policy.RoomCreate, user, "", "", true},
		{policy.RoomCreate, h.agent, "", "", true},
		{policy.RoomCreate, service, "", "", true}, // it is not for agents either, for whom it might act
		{policy.MessageCreate, h.agent, "", "", false},
		{policy.MessageCreate, service, "", "", false}, // it may act for an agent
		{policy.MessageCreate, user, principal.Viewer, "", true},
		{policy.MessageCreate, user, principal.Member, principal.Overlord, false}, // the registry names the role
		{policy.ExternalWrite, user, principal.Member, "", false},
		{policy.ExternalWrite, user, principal.Member, principal.Overlord, false}, // of it, too
		{policy.ExternalWrite, user, principal.Viewer, "", true},
		{policy.ExternalWrite, h.agent, "", "", false},
		{policy.RunCancel, service, "", "", false}, // nor is this for services, but it may act for an agent
		{policy.QuestionAsk, user, principal.Viewer, "", true},
		{policy.QuestionAsk, user, principal.Member, "", false},
		{policy.QuestionAsk, service, "", "", false},
		{policy.FileRead, user, principal.Viewer, "", false},
		{policy.FileRead, user, "", "", false},
		{policy.FileRead, user, principal.Viewer, principal.Member, true},
		{policy.FileRead, user, principal.Member, principal.Member, false},
		{policy.FileRead, h.agent, "", principal.Member, false},
		{policy.FileCreate, user, principal.Viewer, "", true},
		{policy.FileCreate, user, principal.Member, "", false},
		{policy.FileCreate, user, principal.Member, principal.Operator, true},
		{policy.FileCreate, h.agent, "", "", false},
		{policy.FileCreate, service, "", principal.Member, false},
	} {
		before := h.count(policy.DeniedType)
		a := policy.Action{Type: c.action, Workspace: ws, Principal: c.who}
		err := h.Barred(t.Context(), h.origin(c.who), principal.Caller{Principal: c.who, Workspace: ws, Role: c.role}, a, c.least)
		want := ""
		if c.barred {
			want = policy.ReasonRoleTooLow
		}
		if got := fault.CodeOf(err); got != want {
			t.Errorf("%s of %s %s, at least %q: got %v, want %q", c.action, c.who.Kind(), c.role, c.least, err, want)
		}
		if n := h.count(policy.DeniedType) - before; (n == 1) != c.barred {
			t.Errorf("%s of %s %s: %d refusals were recorded", c.action, c.who.Kind(), c.role, n)
		}
	}
}

// The record of a refusal has the time of the gate's clock and the hash of the action's canonical bytes.
func TestWhatIsRecordedOfARefusal(t *testing.T) {
	late := &clock{}
	h := build(t, func(p *gate.Parts) {
		late.set(p.Clock.Now().Add(time.Hour))
		p.Clock = late
	})
	vera := h.person("Vera", principal.Viewer)
	a := policy.Action{Type: policy.ExternalWrite, Workspace: ws, Principal: vera, Target: "a.org", Request: []byte(`{"n":1}`)}
	canonical, err := a.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	before := len(h.events())
	err = h.Barred(t.Context(), h.origin(vera), principal.Caller{Principal: vera, Workspace: ws, Role: principal.Viewer}, a, "")
	recorded := h.events()[before:]
	if fault.CodeOf(err) != policy.ReasonRoleTooLow || len(recorded) != 1 {
		t.Fatalf("got %v and %d events", err, len(recorded))
	}
	said, err := event.Decode[policy.Refused](recorded[0])
	if err != nil || !recorded[0].OccurredAt.Equal(late.Now()) || said.Decision.Action != event.DigestOf(canonical) {
		t.Errorf("recorded at %s: %+v, %v", recorded[0].OccurredAt, said, err)
	}
}

// The standard policy needs not be pinned to be judged by, and any other one has to be.
func TestTheStandardPolicyNeedNotBePinned(t *testing.T) {
	g := newGrants(t)
	_, agent := g.elsewhere()
	a := policy.Action{Type: policy.FileCreate, Workspace: otherWS, Room: room, Principal: agent, Path: "a"}
	for name, c := range map[string]struct {
		bundle event.Digest
		code   string
	}{
		"none": {event.Digest{}, policy.ReasonDefaultAllow}, "standard": {g.Bundles.Standard().Hash, policy.ReasonDefaultAllow},
		"permissive": {g.bundles["permissive"].Hash, policy.ReasonPolicyUnavailable},
	} {
		a.Bundle = c.bundle
		if d := g.judge(a).Decision; d.ReasonCode != c.code {
			t.Errorf("%s: got %s (%s), want %s", name, d.ReasonCode, d.Reason, c.code)
		}
	}
}

// The words of a decision, where they are not the words of a rule.
func TestWhatDecisionsSay(t *testing.T) {
	h := build(t, nil)
	unknown := h.file("standard", "moon.land", "")
	impossible := h.file("standard", "MOON", "")
	external := h.file("permissive", policy.ExternalWrite, "")
	external.Target = "example.com"
	for name, c := range map[string]struct {
		a                  policy.Action
		reason, suggestion string
	}{
		"an action that could be declared": {unknown, "there is no action moon.land", "an admin declares one of your own"},
		"one that could not":               {impossible, "there is no action MOON", "lists those that there are."},
		"a command that cannot be read":    {h.shell("standard", "if"), "the command is refused: ", "Correct the command"},
		"a command that changes others":    {h.shell("standard", "PATH=x ls"), "it changes what later commands mean: ", "Leave it out"},
		"one that is only known then": {h.shell("standard", "$x"), "a command that is only known when it runs: ",
			"Write the command out"},
		"what nothing permits": {h.shell("standard", "nosuch x"), "nothing in the policy standard permits nosuch x",
			"policy show standard"},
	} {
		d := h.judge(c.a).Decision
		if !strings.HasPrefix(d.Reason, c.reason) || !strings.Contains(d.Suggestion, c.suggestion) {
			t.Errorf("%s: got %q, %q", name, d.Reason, d.Suggestion)
		}
	}
}

// The caller's events are recorded unchanged, also where more is recorded with them. The kill switch ends only effects.
func TestBeginningChangesNothingOfTheCallers(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 10 })
	r, q := h.asked(h.shell("standard", "rm -r scratch"))
	h.approve(q, h.owner)
	intent := event.Batch{Workspace: ws, Drafts: make([]event.Draft, 1, 8), Documents: make([]event.DocumentVersion, 0, 8)}
	intent.Drafts[0] = event.New("test.said", h.origin(h.agent), ws, room, struct{}{})
	if _, _, err := h.Begin(t.Context(), r, q.ID, intent); err != nil {
		t.Fatal(err)
	}
	if intent.Drafts[0].Follows != (event.Subject{}) || intent.Drafts[:2][1].Type != "" || intent.Documents[:1][0].Key != "" {
		t.Errorf("the caller has %+v and %+v now", intent.Drafts[:2], intent.Documents[:1])
	}
	read, write := h.judge(h.file("standard", policy.FileRead, "a")), h.judge(h.file("standard", policy.FileCreate, "a"))
	var permits []policy.Permit
	for _, ruling := range []policy.Ruling{read, write} {
		permit, _, err := h.Begin(t.Context(), ruling, "", h.intent(ruling.Action))
		if err != nil {
			t.Fatal(err)
		}
		permits = append(permits, permit)
	}
	if _, err := h.KillSwitch.Throw(t.Context(), h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := permits[0].Redeem(policy.FileRead); err != nil {
		t.Errorf("reading: %v", err)
	}
	if _, err := permits[1].Redeem(policy.FileCreate); fault.CodeOf(err) != policy.ReasonKillSwitch {
		t.Errorf("writing: got %v", err)
	}
}

// An effect that begins while another one is judged, begun or recorded is the last one of the hour for one of them only.
func TestTheLastEffectOfAnHourIsOne(t *testing.T) {
	for _, together := range []bool{false, true} {
		for _, of := range []string{"", policy.QuotaProjection} {
			w := &watched{}
			h := build(t, func(p *gate.Parts) {
				w.Journal, w.docs = p.Log, p.Docs
				p.Log, p.Docs, p.EffectsPerHour, p.Together = w, w, 1, together
			})
			r := h.judge(h.shell("standard", "ls"))
			if of != "" && !together {
				h.restart() // so that it reads how far the log has counted
				r = policy.Ruling{}
			}
			nested := func() {
				if err := begin(h, h.judge(h.shell("standard", "ls")), ""); err != nil {
					t.Error(err)
				}
			}
			w.of, w.meanwhile = of, nested
			if r.Canonical == nil {
				r, _ = h.Judge(t.Context(), h.shell("standard", "ls"))
			}
			if err := begin(h, r, ""); fault.CodeOf(err) != policy.ReasonQuotaExceeded || h.count(policy.EffectCountedType) != 1 {
				t.Errorf("together %t, %q: got %v, and %d effects are counted", together, of, err, h.count(policy.EffectCountedType))
			}
		}
	}
	h, log, _ := rivals(t)
	h.parts.EffectsPerHour, h.parts.Together = 1, true
	h.restart()
	r := h.judge(h.shell("standard", "ls"))
	log.before = func() {
		if err := begin(h, r, ""); err != nil {
			t.Error(err)
		}
	}
	if err := begin(h, r, ""); fault.CodeOf(err) != policy.ReasonQuotaExceeded || h.count(policy.EffectCountedType) != 1 {
		t.Errorf("while another one is recorded: got %v", err)
	}
}

// An hour begins with its first effect, also for a daemon that begins in the middle of it.
func TestAnHourOutlivesARestart(t *testing.T) {
	h := build(t, func(p *gate.Parts) { p.EffectsPerHour = 1 })
	a := h.shell("standard", "ls")
	if err := begin(h, h.judge(a), ""); err != nil {
		t.Fatal(err)
	}
	h.clock.move(30 * time.Minute)
	h.restart()
	if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonQuotaExceeded {
		t.Errorf("in the middle: got %s", d.ReasonCode)
	}
	h.clock.move(30 * time.Minute)
	if err := begin(h, h.judge(a), ""); err != nil {
		t.Errorf("an hour after its first effect: %v", err)
	}
}

// The workspace of the installation is not looked up, whatever its document says.
func TestBeginningInTheWorkspaceOfTheInstallation(t *testing.T) {
	g := newGrants(t)
	g.record(ws, workspace.EventArchived, workspace.EntityType, string(ws), workspace.Archiving{Workspace: ws})
	if err := begin(g.house, g.judge(g.shell("standard", "ls")), ""); err != nil {
		t.Error(err)
	}
}

// An action that was allowed under one declaration does not begin under another one, also where that comes while the action is recorded.
func TestNothingBeginsUnderAnotherDeclaration(t *testing.T) {
	h, log, _ := rivals(t)
	h.declare(nil)
	other := func(text string) { h.declare(func(d *policy.Declare) { d.Description = text }) }
	r := h.judge(h.deploys())
	other("deploy anything")
	if err := begin(h, r, ""); !errors.Is(err, policy.ErrPermitMismatch) {
		t.Errorf("declared anew before: got %v, want %v", err, policy.ErrPermitMismatch)
	}
	r = h.judge(h.deploys())
	log.before = func() { other("deploy something") }
	if err := begin(h, r, ""); !errors.Is(err, policy.ErrPermitMismatch) || h.count("tool.invoked") != 0 {
		t.Errorf("declared anew meanwhile: got %v, want %v", err, policy.ErrPermitMismatch)
	}
	if err := begin(h, h.judge(h.deploys()), ""); err != nil {
		t.Errorf("as it is declared: %v", err)
	}
}

// Two actions of two workspaces are not recorded in one commit.
func TestTwoWorkspacesInOneCommit(t *testing.T) {
	g := newGrants(t)
	_, agent := g.elsewhere()
	r := g.judge(g.shell("standard", "ls"))
	other := g.judge(policy.Action{Type: policy.FileCreate, Workspace: otherWS, Room: room, Principal: agent, Path: "a"})
	if _, _, err := g.Begin(t.Context(), r, "", g.intent(r.Action), other); !errors.Is(err, policy.ErrApart) {
		t.Errorf("got %v, want %v", err, policy.ErrApart)
	}
}

// Of two effects in one commit both are counted or none; and what was allowed under a token does not begin when that was revoked.
func TestWhatIsNotBegunCountsForNobody(t *testing.T) {
	w := &watched{}
	g := newGrantsOver(t, func(p *gate.Parts) {
		w.Journal, w.docs = p.Log, p.Docs
		p.Log, p.Docs, p.EffectsPerHour = w, w, 1
	})
	a := g.shell("standard", "ls")
	mine := g.judge(a)
	a.Principal = g.other
	theirs := g.judge(a)
	w.meanwhile = func() {
		if err := begin(g.house, theirs, ""); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := g.Begin(t.Context(), mine, "", g.intent(mine.Action), theirs); fault.CodeOf(err) != policy.ReasonQuotaExceeded {
		t.Errorf("with an effect that is none any more: got %v", err)
	}
	if err := begin(g.house, mine, ""); err != nil {
		t.Errorf("what was not begun has counted: %v", err)
	}
	write := g.file("standard", policy.FileRead, "a")
	write.Token = g.grant(g.agent)
	r := g.judge(write)
	g.revoke(write.Token)
	if err := begin(g.house, r, ""); fault.CodeOf(err) != policy.ReasonTokenRevoked {
		t.Errorf("under a token that was revoked: got %v", err)
	}
}

// The list of tools that holds is that of the room in which something is done: the space's own, and that of the action where the space is
// about to be made. It is asked again before the effect.
func TestTheListThatHoldsBeforeTheEffect(t *testing.T) {
	for _, housed := range []bool{true, false} {
		h := build(t, nil)
		a := h.shell("standard", "ls")
		if housed {
			h.housed()
			a.Room = "room_00000000000000000000000009"
		}
		r := h.judge(a)
		if r.Decision.Outcome != policy.Allow {
			t.Fatalf("got %+v", r.Decision)
		}
		h.roomLists("readFile")
		if err := begin(h, r, ""); fault.CodeOf(err) != policy.ReasonToolNotAllowed {
			t.Errorf("in a space that is there, %t: got %v", housed, err)
		}
	}
}

// A workspace of which there is no document lives.
func TestBeginningInAWorkspaceWithoutADocument(t *testing.T) {
	g := newGrants(t)
	const bare = id.Workspace("ws_bare")
	owner, err := g.Owner(t.Context(), bare, "Olaf")
	if err != nil {
		t.Fatal(err)
	}
	r := g.judge(policy.Action{Type: policy.FileCreate, Workspace: bare, Room: room, Principal: owner, Path: "a"})
	intent := event.Batch{Workspace: bare, Drafts: []event.Draft{event.New("tool.invoked", g.origin(owner), bare, room, struct{}{})}}
	if _, _, err := g.Begin(t.Context(), r, "", intent); err != nil {
		t.Error(err)
	}
}
