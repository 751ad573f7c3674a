package gate_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
)

// rivalled is a log in which somebody else is first, once, before something is recorded, or always.
type rivalled struct {
	journal.Journal
	before  func()
	after   func() // once, after something was recorded
	always  bool
	appends int
}

func (r *rivalled) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	r.appends++
	if do := r.before; do != nil {
		r.before = nil
		do()
	}
	if r.always {
		return event.Receipt{}, journal.ErrConflict
	}
	receipt, err := r.Journal.Append(ctx, b)
	if do := r.after; do != nil {
		r.after = nil
		do()
	}
	return receipt, err
}

// rivals returns a house over such a log, and the gate of somebody else over the same.
func rivals(t *testing.T) (*house, *rivalled, *gate.Gate) {
	t.Helper()
	log := &rivalled{}
	h := build(t, func(p *gate.Parts) { log.Journal, p.Log = p.Log, log })
	parts := h.parts
	parts.Log = log.Journal
	other, err := gate.New(parts)
	if err != nil {
		t.Fatal(err)
	}
	return h, log, other
}

// The decision of an approval carries the time of the gate's clock, by which it was decided.
func TestTheTimeOfWhatIsDecided(t *testing.T) {
	ctx := t.Context()
	late := &clock{}
	h := build(t, func(p *gate.Parts) {
		late.set(p.Clock.Now().Add(time.Hour))
		p.Clock = late
	})
	otto := h.person("otto", principal.Operator)
	standing, _ := h.granted(t, 10)
	if err := h.Approvals.Revoke(ctx, h.origin(h.owner), ws, standing, ""); err != nil {
		t.Fatal(err)
	}
	_, q := h.twoPersons("rm -r two")
	if _, err := h.decide(q, otto, policy.Approve); err != nil {
		t.Fatal(err)
	}
	_, q = h.asked(h.shell("standard", "rm -r withdrawn"))
	if _, err := h.Withdraw(ctx, h.origin(h.owner), q.ID, "", event.Batch{Workspace: ws}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.KillSwitch.Throw(ctx, h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.KillSwitch.Lift(ctx, h.origin(h.owner), ws, ""); err != nil {
		t.Fatal(err)
	}
	_, q = h.asked(h.shell("standard", "rm -r expired"))
	want := map[string]time.Time{policy.ApprovalExpiredType: q.ExpiresAt}
	if err := h.Approvals.Step(ctx, q.ExpiresAt); err != nil {
		t.Fatal(err)
	}
	for _, typ := range []string{policy.ApprovalRequestedType, policy.ApprovalDecidedType, policy.ApprovalAssentedType,
		policy.ApprovalWithdrawnType, policy.StandingGrantedType, policy.StandingRevokedType, policy.KillSwitchThrownType,
		policy.KillSwitchLiftedType} {
		want[typ] = late.Now()
	}
	for _, e := range h.events() {
		if at, ok := want[e.Type]; ok && !e.OccurredAt.Equal(at) {
			t.Errorf("%s occurred at %s, want %s", e.Type, e.OccurredAt, at)
		}
	}
	for typ := range want {
		if h.count(typ) == 0 {
			t.Errorf("nothing of the type %s was recorded", typ)
		}
	}
}

// Only who acts asks, about what needs an answer, in their own workspace, until a time that may be.
func TestWhatIsNoQuestion(t *testing.T) {
	ctx := t.Context()
	h := build(t, nil)
	now, plain := h.clock.Now(), event.Batch{Workspace: ws}
	a := h.shell("standard", "rm -r scratch")
	foreign := event.Batch{Workspace: ws, Drafts: []event.Draft{event.New("test.said", h.origin(h.agent), "ws_other", "", struct{}{})}}
	elsewhere := codeOf(policy.Belongs(foreign, ws))
	r, ofTwo := h.judge(a), h.judge(h.shell("standard", "rm -r a; rm -r b"))
	forged := r
	forged.Decision.Reason += "!"
	for name, c := range map[string]struct {
		ruling policy.Ruling
		by     id.Principal
		ask    policy.Ask
		with   event.Batch
		code   string
	}{
		"as it is":                   {r, h.agent, policy.Ask{}, plain, ""},
		"a ruling that was changed":  {forged, h.agent, policy.Ask{}, plain, policy.ErrPermitMismatch.Code},
		"by another":                 {r, h.owner, policy.Ask{}, plain, "principal_mismatch"},
		"of what is allowed":         {h.judge(h.shell("standard", "ls")), h.agent, policy.Ask{}, plain, "nothing_to_ask"},
		"of what is denied":          {h.judge(h.shell("standard", "sudo ls")), h.agent, policy.Ask{}, plain, "nothing_to_ask"},
		"in another workspace":       {r, h.agent, policy.Ask{}, event.Batch{Workspace: "ws_other"}, elsewhere},
		"with events of another one": {r, h.agent, policy.Ask{}, foreign, elsewhere},
		"until now":                  {r, h.agent, policy.Ask{ExpiresAt: now}, plain, policy.ErrInvalidExpiry.Code},
		"until a moment later":       {r, h.agent, policy.Ask{ExpiresAt: now.Add(time.Millisecond)}, plain, ""},
		"as long as can be":          {r, h.agent, policy.Ask{ExpiresAt: now.Add(policy.MaxQuestionTime)}, plain, ""},
		"too long": {r, h.agent, policy.Ask{ExpiresAt: now.Add(policy.MaxQuestionTime + 1)}, event.Batch{Workspace: ws},
			policy.ErrInvalidExpiry.Code},
		"for a run":           {r, h.agent, policy.Ask{Scope: policy.ScopeRun}, plain, ""},
		"for no scope":        {r, h.agent, policy.Ask{Scope: "always"}, plain, codeOf(policy.ErrInvalidScope)},
		"of two, for a run":   {ofTwo, h.agent, policy.Ask{Scope: policy.ScopeRun}, plain, codeOf(policy.ErrStandingImpossible)},
		"of two, once":        {ofTwo, h.agent, policy.Ask{Scope: policy.ScopeOnce}, plain, ""},
		"what nothing varies": {r, h.agent, policy.Ask{Scope: policy.ScopeTemplate}, plain, codeOf(policy.ErrTemplateImpossible)},
	} {
		before := h.count(policy.ApprovalRequestedType)
		q, err := h.Ask(ctx, h.origin(c.by), c.ruling, c.ask, c.with)
		if got := fault.CodeOf(err); got != c.code {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, c.code)
		}
		if n := h.count(policy.ApprovalRequestedType) - before; (n == 1) != (c.code == "") {
			t.Errorf("%s: %d questions were recorded", name, n)
		}
		if err != nil {
			continue
		}
		requested, err := event.Decode[policy.ApprovalRequested](h.last(policy.ApprovalRequestedType))
		if err != nil || requested.Scope != cmp.Or(c.ask.Scope, policy.ScopeOnce) {
			t.Errorf("%s: it asks for %q, %v", name, requested.Scope, err)
		}
		if until := c.ask.ExpiresAt; !until.IsZero() && !q.ExpiresAt.Equal(until) {
			t.Errorf("%s: it is open until %s, want %s", name, q.ExpiresAt, until)
		}
	}
	if err := h.Quarantine(ctx, h.origin(h.owner), ws, h.agent, true, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Ask(ctx, h.origin(h.agent), r, policy.Ask{}, plain); fault.CodeOf(err) != policy.ReasonAgentQuarantined {
		t.Errorf("what has become impossible: got %v", err)
	}
}

func codeOf(err error) string { return fault.CodeOf(err) }

// A question carries who asked and for whom, in which thread, what the agent says in bounds, and how many have to answer.
func TestWhatAQuestionCarries(t *testing.T) {
	ctx := t.Context()
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	a.Bundle = h.bundle("preset: standard\napprovers: 2\n", false).Hash
	r := h.judge(a)
	thread, approval := id.New[id.Thread](h.ids), id.New[id.Approval](h.ids)
	origin := h.origin(h.agent)
	origin.By = "usr_00000000000000000000000009"
	with := h.intent(a)
	for _, c := range []struct {
		through, want id.Principal
		words, shown  string
	}{
		{"", origin.By, strings.Repeat("x", policy.MaxAgentWords), strings.Repeat("x", policy.MaxAgentWords)},
		{"usr_00000000000000000000000008", "usr_00000000000000000000000008", strings.Repeat("x", policy.MaxAgentWords+1),
			strings.Repeat("x", policy.MaxAgentWords) + "..."},
		{"", origin.By, strings.Repeat("x", policy.MaxAgentWords-1) + "é", strings.Repeat("x", policy.MaxAgentWords-1) + "..."},
	} {
		q, err := h.Ask(ctx, origin, r, policy.Ask{Approval: approval, Thread: thread, AgentTitle: "my title", AgentWords: c.words,
			Through: c.through, Unsealed: []string{"a file"}}, with)
		if err != nil {
			t.Fatal(err)
		}
		if q.ID != approval || q.Thread != thread || q.RequestedBy != h.agent || q.Through != c.want || q.Approvers != 2 || q.Run != run ||
			q.Space != space || q.Room != room || q.Scope != policy.ScopeOnce ||
			!q.ExpiresAt.Equal(h.clock.Now().Add(policy.DefaultQuestionTime)) {
			t.Errorf("got %+v", q)
		}
		if q.Question.AgentWords != c.shown || q.Question.AgentTitle != "my title" || strings.Join(q.Question.Unsealed, "|") != "a file" {
			t.Errorf("got the title %q, %q, and %d bytes of words, want %d", q.Question.AgentTitle, q.Question.Unsealed,
				len(q.Question.AgentWords), len(c.shown))
		}
		if want := "; 2 persons have to approve it"; !strings.HasSuffix(q.Question.Why, want) ||
			!strings.Contains(q.Question.Why, "(rules: ") {
			t.Errorf("it says why: %q", q.Question.Why)
		}
		approval = id.New[id.Approval](h.ids)
	}
	if n := h.count("tool.invoked"); n != 3 {
		t.Errorf("%d events of the caller were recorded with three questions", n)
	}
	_, plain := h.asked(h.shell("standard", "PATH=x ls"))
	if plain.Question.Template != "" || strings.Contains(plain.Question.Why, "persons") ||
		strings.Contains(plain.Question.Why, "(rules: )") {
		t.Errorf("got the template %q and %q", plain.Question.Template, plain.Question.Why)
	}
	if _, err := h.Ask(ctx, origin, r, policy.Ask{Approval: plain.ID}, with); err == nil {
		t.Error("a second question has the name of another one")
	}
}

// A question that is asked once stays one question while it counts, even if others send it. A run asks for its effects itself.
func TestAskingOnce(t *testing.T) {
	ctx := t.Context()
	h := build(t, nil)
	external := policy.Action{Type: policy.ExternalWrite, Workspace: ws, Room: room, Principal: h.agent, Target: "example.com",
		Bundle: h.bundles["permissive"].Hash}
	r := h.judge(external)
	once := func(origin event.Origin) (policy.Approval, error) {
		return h.AskOnce(ctx, origin, r, event.Batch{Workspace: ws})
	}
	sent := h.origin(h.owner)
	sent.By = "svc_00000000000000000000000009"
	first, err := once(sent)
	if err != nil || first.RequestedBy != h.agent || first.Through != sent.By {
		t.Fatalf("got %+v, %v, want a question of the agent through %s", first, err, sent.By)
	}
	if again, err := once(h.origin(h.agent)); err != nil || again.ID != first.ID {
		t.Errorf("asked again: got %s, %v, want %s", again.ID, err, first.ID)
	}
	if _, err := h.decide(first, h.owner, policy.Refuse); err != nil {
		t.Fatal(err)
	}
	if again, err := once(h.origin(h.agent)); err != nil || again.ID != first.ID || again.Status != policy.Denied {
		t.Errorf("denied: got %s %s, %v, want %s", again.ID, again.Status, err, first.ID)
	}
	h.clock.set(first.ExpiresAt)
	second, err := once(h.origin(h.owner))
	if err != nil || second.ID == first.ID || second.Through != h.owner {
		t.Errorf("when it counts no more: got %s through %s, %v, want another one", second.ID, second.Through, err)
	}
	if third, err := once(h.origin(h.agent)); err != nil || third.ID != second.ID {
		t.Errorf("asked again: got %s, %v, want %s", third.ID, err, second.ID)
	}
	h.clock.set(second.ExpiresAt)
	if own, err := once(h.origin(h.agent)); err != nil || own.ID == second.ID || own.Through != "" {
		t.Errorf("the agent itself asks: got %s through %q, %v, want another one through nobody", own.ID, own.Through, err)
	}
	forged := r
	forged.Decision.Reason += "!"
	if _, err := h.AskOnce(ctx, h.origin(h.agent), forged, event.Batch{Workspace: ws}); fault.CodeOf(err) != policy.ErrPermitMismatch.Code {
		t.Errorf("a ruling that was changed: got %v", err)
	}
	if _, err := h.AskOnce(ctx, h.origin(h.agent), h.judge(h.shell("standard", "rm -r x")), event.Batch{Workspace: ws}); fault.CodeOf(
		err) != "nothing_to_ask" {
		t.Errorf("an effect of a run: got %v", err)
	}
	outside := h.shell("standard", "rm -r x")
	outside.Run, outside.Space = "", ""
	if q, err := h.AskOnce(ctx, h.origin(h.agent), h.judge(outside), event.Batch{Workspace: ws}); err != nil || q.ID == "" {
		t.Errorf("such an effect outside of a run: got %+v, %v", q, err)
	}
	fetch := policy.Action{Type: policy.HTTPFetch, Workspace: ws, Room: room, Principal: h.agent, Target: "example.com", Method: "GET",
		Run: h.shell("standard", "rm -r x").Run, Bundle: h.bundles["permissive"].Hash}
	r = h.judge(fetch)
	q, err := once(h.origin(h.agent))
	if err != nil || q.ID == "" {
		t.Errorf("a request to the network for a run: got %+v, %v", q, err)
	}
	if again, err := once(h.origin(h.agent)); err != nil || again.ID != q.ID {
		t.Errorf("the same request asked again: got %s, %v, want %s", again.ID, err, q.ID)
	}
}

// Who requested a question, or sent it, takes it back while it is open, but not what a run in a space waits for.
func TestWhoTakesAQuestionBack(t *testing.T) {
	ctx := t.Context()
	h := build(t, nil)
	sender, other := h.person("sender", principal.Viewer), h.person("other", principal.Overlord)
	bad := h.person("bad", principal.Operator)
	ask := func(through id.Principal, change func(*policy.Action)) policy.Approval {
		a := h.shell("standard", "rm -r scratch")
		a.Run, a.Space = "", ""
		change(&a)
		q, err := h.Ask(ctx, h.origin(a.Principal), h.judge(a), policy.Ask{Through: through}, event.Batch{Workspace: ws})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	same := func(*policy.Action) {}
	reason := strings.Repeat("x", policy.MaxReasonBytes)
	for _, c := range []struct {
		name, reason string
		q            policy.Approval
		by           id.Principal
		want         error
	}{
		{"who asked", "", ask(sender, same), h.agent, nil},
		{"who sent it", reason, ask(sender, same), sender, nil},
		{"another one", "", ask(sender, same), other, approvals.ErrNotRequester},
		{"another one, of what nobody sent", "", ask("", same), other, approvals.ErrNotRequester},
		{"a long reason", reason + "x", ask(sender, same), h.agent, policy.ErrReasonTooLong},
		{"in a run without a space", "", ask("", func(a *policy.Action) { a.Run = run }), h.agent, nil},
		{"in a space without a run", "", ask("", func(a *policy.Action) { a.Space = space }), h.agent, nil},
		{"of a run in a space", "", ask("", func(a *policy.Action) { a.Run, a.Space = run, space }), h.agent, approvals.ErrRunAsks},
		{"outside, of a run in a space", "", ask("", func(a *policy.Action) {
			*a = h.file("permissive", policy.ExternalWrite, "")
			a.Target = "example.com"
		}), h.agent, nil},
		{"who is quarantined", "", ask(bad, same), bad, approvals.ErrNotRequester},
		{"who is quarantined, of their own", "", ask("", func(a *policy.Action) { a.Principal = bad }), bad, approvals.ErrNotRequester},
	} {
		if c.by == bad {
			if err := h.Quarantine(ctx, h.origin(h.owner), ws, bad, true, ""); err != nil {
				t.Fatal(err)
			}
		}
		for round := range 2 { // the second time nothing is left to do
			before := h.count(policy.ApprovalWithdrawnType)
			doc, err := h.Approvals.TakeBack(ctx, h.origin(c.by), ws, c.q.ID, c.reason)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			}
			want, events := policy.Withdrawn, 1-round
			if c.want != nil {
				want, events = policy.Pending, 0
			}
			if doc.Status != want || h.count(policy.ApprovalWithdrawnType)-before != events {
				t.Errorf("%s, round %d: the question is %s", c.name, round, doc.Status)
			}
			if text := c.reason; c.want == nil && (doc.Reason != text && text != "" ||
				text == "" && doc.Reason != "withdrawn_by_requester") {
				t.Errorf("%s: its reason is %.40q", c.name, doc.Reason)
			}
		}
	}
	if _, err := h.Approvals.TakeBack(ctx, h.origin(h.agent), ws, id.New[id.Approval](h.ids), ""); !errors.Is(err, approvals.ErrNotFound) {
		t.Errorf("one that is not there: got %v", err)
	}
	q := ask("", same)
	if _, err := h.Approvals.TakeBack(ctx, h.origin("usr_00000000000000000000000009"), ws, q.ID, ""); fault.CodeOf(
		err) != policy.ReasonPrincipalNotFound {
		t.Errorf("a stranger: got %v", err)
	}
	h.approve(q, h.owner)
	if _, err := h.Approvals.TakeBack(ctx, h.origin(h.agent), ws, q.ID, ""); !errors.Is(err, policy.ErrAlreadyDecided) {
		t.Errorf("one that has its answer: got %v", err)
	}
}

// If another question is first, the gate asks, withdraws and asks again, up to the bound. A changed document that the caller expects is
// reported at once.
func TestSomebodyElseIsFirstWithAQuestion(t *testing.T) {
	ctx := t.Context()
	stale := event.Batch{Workspace: ws, Documents: []event.DocumentVersion{{Projection: policy.ApprovalProjection, Key: "appr_none",
		Version: 7}}}
	h, log, other := rivals(t)
	_, q := h.asked(h.shell("standard", "rm -r one"))
	hold := func() {
		if _, err := other.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Hold}); err != nil {
			t.Error(err)
		}
	}
	r := h.judge(h.shell("standard", "rm -r two"))
	ask := func(with event.Batch) error {
		_, err := h.Ask(ctx, h.origin(h.agent), r, policy.Ask{}, with)
		return err
	}
	withdraw := func(with event.Batch) error {
		_, err := h.Withdraw(ctx, h.origin(h.agent), q.ID, "", with)
		return err
	}
	count := func(name string, do func(event.Batch) error, with event.Batch, want error, appends int) {
		t.Helper()
		log.appends = 0
		if err := do(with); !errors.Is(err, want) || log.appends != appends {
			t.Errorf("%s: got %v after %d appends, want %v after %d", name, err, log.appends, want, appends)
		}
	}
	plain := event.Batch{Workspace: ws}
	log.always = true
	count("asked in vain", ask, plain, journal.ErrConflict, journal.Tries)
	count("withdrawn in vain", withdraw, plain, journal.ErrConflict, journal.Tries)
	log.always = false
	count("asked over what has changed", ask, stale, journal.ErrConflict, 1)
	count("withdrawn over what has changed", withdraw, stale, journal.ErrConflict, 1)
	log.before = func() {
		third := h.judge(h.shell("standard", "rm -r three"))
		if _, err := other.Ask(ctx, h.origin(h.agent), third, policy.Ask{}, plain); fault.CodeOf(err) != policy.ErrPermitMismatch.Code {
			t.Errorf("the ruling of another gate: got %v", err)
		}
		if third, err := other.Judge(ctx, third.Action); err != nil {
			t.Error(err)
		} else if _, err := other.Ask(ctx, h.origin(h.agent), third, policy.Ask{}, plain); err != nil {
			t.Error(err)
		}
	}
	count("asked behind another question", ask, plain, nil, 2)
	log.before = hold
	count("withdrawn while it is held", withdraw, plain, nil, 2)
	if doc, err := h.Approvals.Get(ctx, ws, q.ID); err != nil || doc.Status != policy.Withdrawn {
		t.Errorf("it is %s, %v", doc.Status, err)
	}
	// The time of a question is over, and somebody takes it back first: it is not ended once more.
	_, q = h.asked(h.shell("standard", "rm -r four"))
	log.before = func() {
		if _, err := other.Withdraw(ctx, h.origin(h.agent), q.ID, "", plain); err != nil {
			t.Error(err)
		}
	}
	if err := h.Approvals.Step(ctx, q.ExpiresAt); err != nil {
		t.Error(err)
	}
	if doc, err := h.Approvals.Get(ctx, ws, q.ID); err != nil || doc.Status != policy.Withdrawn {
		t.Errorf("it is %s, %v", doc.Status, err)
	}
}

// A step looks behind every page of open questions. It is the system that ends them, where there is one.
func TestAStepLooksBehindManyQuestions(t *testing.T) {
	ctx := t.Context()
	const system = id.Principal("svc_00000000000000000000000007")
	for _, before := range []int{99, 100} {
		h := build(t, func(p *gate.Parts) {
			if p.QuestionTime = 2 * time.Hour; before == 100 {
				p.System = system
			}
		})
		second, err := h.Agent(ctx, h.origin(h.owner), ws, "second")
		if err != nil {
			t.Fatal(err)
		}
		ruling := h.judge(h.shell("standard", "rm -r long"))
		for range before {
			if _, err := h.Ask(ctx, h.origin(h.agent), ruling, policy.Ask{}, event.Batch{Workspace: ws}); err != nil {
				t.Fatal(err)
			}
		}
		a := h.shell("standard", "rm -r short")
		a.Principal = second
		r := h.judge(a)
		q, err := h.Ask(ctx, h.origin(second), r, policy.Ask{ExpiresAt: h.clock.Now().Add(time.Hour)}, event.Batch{Workspace: ws})
		if err != nil {
			t.Fatal(err)
		}
		h.clock.move(time.Hour)
		if err := h.Approvals.Step(ctx, h.clock.Now()); err != nil {
			t.Fatal(err)
		}
		want := system
		if before != 100 {
			want = second
		}
		if doc, err := h.Approvals.Get(ctx, ws, q.ID); err != nil || doc.Status != policy.Expired ||
			h.count(policy.ApprovalExpiredType) != 1 {
			t.Errorf("behind %d: it is %s, %v", before, doc.Status, err)
		}
		if last := h.events(); last[len(last)-1].Principal != want {
			t.Errorf("%s has ended it, want %s", last[len(last)-1].Principal, want)
		}
	}
}

// The other person who could decide is found behind every page of those who cannot.
func TestTheOtherPersonIsFoundBehindMany(t *testing.T) {
	for _, before := range []int{998, 999} { // beside the owner
		h := build(t, nil)
		batch := event.Batch{Workspace: ws}
		register := func(role principal.Role) {
			p := id.NewPrincipal(h.ids, id.User)
			draft := event.New(principal.RegisteredType, h.origin(h.owner), ws, "", principal.Registered{Principal: p, Kind: id.User,
				Role: role, Name: fmt.Sprint("p", len(batch.Drafts))})
			batch.Drafts = append(batch.Drafts, draft.About(principal.Entity, string(p)))
			if len(batch.Drafts) == 100 || role != principal.Viewer {
				if _, err := h.log.Append(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
				batch.Drafts = nil
			}
		}
		for range before {
			register(principal.Viewer)
		}
		register(principal.Operator)
		a := h.shell("standard", "rm -r scratch")
		a.Principal = h.owner
		_, q := h.asked(a)
		if _, err := h.decide(q, h.owner, policy.Approve); !errors.Is(err, approvals.ErrOwnRequest) {
			t.Errorf("behind %d: got %v, want %v", before, err, approvals.ErrOwnRequest)
		}
	}
}

// An action that begins after an answer follows from the answer, unless it belongs to a run or follows from another event.
func TestWhatIsBegunFollowsFromItsAnswer(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	r, q := h.asked(a)
	h.approve(q, h.owner)
	origin := h.origin(h.agent)
	bare, ofRun := event.New("test.bare", origin, ws, room, struct{}{}), event.New("test.run", origin, ws, room, struct{}{}).In(run, "")
	other := event.New("test.other", origin, ws, room, struct{}{})
	other.Follows = event.Subject{Type: policy.StandingEntity, ID: "std_1"}
	before := len(h.events())
	if _, _, err := h.Begin(t.Context(), r, q.ID, event.Batch{Workspace: ws, Drafts: []event.Draft{bare, ofRun, other}}); err != nil {
		t.Fatal(err)
	}
	decided := h.last(policy.ApprovalDecidedType)
	for _, e := range h.events()[before:] {
		follows := e.Causation == decided.ID
		if want := e.Type == "test.bare"; want != follows && e.Type != policy.ApprovalUsedType {
			t.Errorf("%s is caused by %s, the answer is %s", e.Type, e.Causation, decided.ID)
		}
	}
	if used := h.last(policy.ApprovalUsedType); used.Run != run || used.Room != room || used.Principal != h.agent ||
		used.Correlation != origin.Correlation {
		t.Errorf("its use is recorded as %+v", used.Header)
	}
}

func (h *house) last(typ string) event.Event {
	h.t.Helper()
	found, err := h.log.Read(context.Background(), journal.Query{Workspace: ws, Types: []string{typ}, Last: true, Limit: 1})
	if err != nil || len(found) != 1 {
		h.t.Fatalf("no event %s: %v", typ, err)
	}
	return found[0]
}

// Standing approvals are listed the newest first, page by page.
func TestStandingApprovalsAreListed(t *testing.T) {
	h := build(t, nil)
	first, _ := h.granted(t, 10)
	if err := h.Approvals.Revoke(t.Context(), h.origin(h.owner), ws, first, ""); err != nil {
		t.Fatal(err)
	}
	second, _ := h.granted(t, 10)
	for _, c := range []struct {
		after id.Standing
		limit int
		want  []id.Standing
	}{{"", 10, []id.Standing{second, first}}, {"", 1, []id.Standing{second}}, {second, 10, []id.Standing{first}}} {
		found, err := h.Approvals.Standings(t.Context(), ws, c.after, c.limit)
		if err != nil || len(found) != len(c.want) {
			t.Errorf("after %q, at most %d: got %d, %v", c.after, c.limit, len(found), err)
			continue
		}
		for i, s := range found {
			if s.ID != c.want[i] {
				t.Errorf("after %q, at most %d: got %s, want %s", c.after, c.limit, s.ID, c.want[i])
			}
		}
	}
}

// Who waits for their turn to ask waits no longer than they want to.
func TestWhoeverWaitsToAskWaitsNoLongerThanTheyWant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, log, _ := rivals(t)
		r := h.judge(h.shell("standard", "rm -r scratch"))
		log.before = func() {
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := h.Ask(soon, h.origin(h.agent), r, policy.Ask{}, event.Batch{Workspace: ws}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while another question is recorded: got %v, want %v", err, context.DeadlineExceeded)
			}
		}
		for range 2 {
			if _, err := h.Ask(t.Context(), h.origin(h.agent), r, policy.Ask{}, event.Batch{Workspace: ws}); err != nil {
				t.Error(err)
			}
		}
	})
}
