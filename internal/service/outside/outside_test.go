package outside_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/outside"
)

const (
	ws   = id.DefaultWorkspace
	near = id.DefaultRoom
	far  = id.Room("room_00000000000000000000000009")
)

// clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) NewTimer(time.Duration) (<-chan time.Time, func()) { panic("nobody waits here") }

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// court is the service in memory, with an owner, an agent that asks, and an admin.
type court struct {
	*outside.Service
	t            *testing.T
	log          *memory.Journal
	gate         *gate.Gate
	people       *identity.Service
	clock        *clock
	hands        *engines.Service
	owner, agent principal.Caller
}

var errNowhere = fault.New(fault.NotFound, "room_not_found", "there is no such room")

func convene(t *testing.T) *court {
	t.Helper()
	c := &court{t: t, clock: &clock{now: time.UnixMilli(1_800_000_000_000).UTC()}}
	ids := id.NewSource(c.clock.Now, rand.Reader)
	var err error
	if c.log, err = memory.NewJournal(documents.All(), c.clock, ids, rand.Reader); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.log.Close(); err != nil {
			t.Error(err)
		}
	})
	if c.gate, err = gate.New(gate.Parts{Log: c.log, Docs: c.log, Evaluator: cedar.New(), Clock: c.clock, IDs: ids}); err != nil {
		t.Fatal(err)
	}
	c.people = identity.New(identity.Parts{Log: c.log, Docs: c.log, Gate: c.gate, Clock: c.clock, IDs: ids, Entropy: rand.Reader})
	place := func(_ context.Context, _ id.Workspace, in id.Room, _ id.Thread) error {
		if in != "" && in != near && in != far {
			return errNowhere
		}
		return nil
	}
	c.Service = outside.New(outside.Parts{Log: c.log, Docs: c.log, Gate: c.gate, Clock: c.clock, Place: place})
	c.hands = engines.New(engines.Parts{Log: c.log, Docs: c.log, Blobs: memory.NewBlobs(), Gate: c.gate, Clock: c.clock, IDs: ids,
		Place: place})
	t.Cleanup(c.hands.Evidence.Wait)
	owner, err := c.people.Owner(t.Context(), ws, "owner")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := c.people.Agent(t.Context(), event.Origin{Principal: owner}, ws, "mailer")
	if err != nil {
		t.Fatal(err)
	}
	c.owner, c.agent = principal.Caller{Principal: owner, Workspace: ws, Role: principal.Overlord}, principal.Caller{Principal: agent,
		Workspace: ws}
	return c
}

func mail(to string) outside.Question {
	return outside.Question{Action: policy.ExternalWrite, Room: near, Target: to, Zone: event.HighStakes}
}

// evaluate asks under a key; "" for none.
func (c *court) evaluate(q outside.Question, key string) outside.Answer {
	c.t.Helper()
	origin := event.Origin{Principal: c.agent.Principal}
	if key != "" {
		origin.Key, origin.Command = key, event.DigestOf([]byte(key))
	}
	a, err := c.Evaluate(c.t.Context(), origin, c.agent, q, false)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c *court) ask(q outside.Question) policy.Approval {
	c.t.Helper()
	doc, err := c.Ask(c.t.Context(), event.Origin{Principal: c.agent.Principal}, c.agent, q, outside.Words{Title: "please"}, policy.Ask{})
	if err != nil {
		c.t.Fatal(err)
	}
	return doc
}

func (c *court) decide(q policy.Approval, word policy.DecisionWord) error {
	_, err := c.gate.Approvals.Decide(c.t.Context(), event.Origin{Principal: c.owner.Principal}, ws, q.ID, policy.Answer{Decision: word})
	return err
}

// TestWhatAnAnswerRestsOn evaluates the same question after everything that can become of the one that was asked about it.
func TestWhatAnAnswerRestsOn(t *testing.T) {
	for name, c := range map[string]struct {
		then    func(*court, policy.Approval) error
		q       outside.Question
		allowed bool
		open    bool // the answer names the question
	}{
		"nobody has answered": {func(*court, policy.Approval) error { return nil }, mail("a.example"), false, true},
		"held":                {func(c *court, q policy.Approval) error { return c.decide(q, policy.Hold) }, mail("a.example"), false, true},
		"approved":            {func(c *court, q policy.Approval) error { return c.decide(q, policy.Approve) }, mail("a.example"), true, true},
		"held, then approved": {func(c *court, q policy.Approval) error {
			return errors.Join(c.decide(q, policy.Hold), c.decide(q, policy.Approve))
		}, mail("a.example"), true, true},
		"denied": {func(c *court, q policy.Approval) error { return c.decide(q, policy.Refuse) }, mail("a.example"), false,
			false},
		"approved for another": {func(c *court, q policy.Approval) error { return c.decide(q, policy.Approve) }, mail("b.example"), false,
			false},
		"approved in another room": {func(c *court, q policy.Approval) error { return c.decide(q, policy.Approve) },
			outside.Question{Action: policy.ExternalWrite, Room: far, Target: "a.example", Zone: event.HighStakes}, false, false},
		"the last moment of it": {func(c *court, q policy.Approval) error {
			err := c.decide(q, policy.Approve)
			c.clock.move(policy.DefaultQuestionTime - time.Nanosecond)
			return err
		}, mail("a.example"), true, true},
		"it has expired": {func(c *court, q policy.Approval) error {
			err := c.decide(q, policy.Approve)
			c.clock.move(policy.DefaultQuestionTime)
			return err
		}, mail("a.example"), false, false},
		"nobody has answered in time": {func(c *court, _ policy.Approval) error {
			c.clock.move(policy.DefaultQuestionTime)
			return nil
		}, mail("a.example"), false, false},
	} {
		court := convene(t)
		q := court.ask(mail("a.example"))
		if err := c.then(court, q); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a := court.evaluate(c.q, "")
		if a.Decision.Allowed() != c.allowed || a.Blocked == c.allowed || (a.Approval == q.ID) != c.open || a.Event == "" {
			t.Errorf("%s: got %+v", name, a)
		}
		if a = court.evaluate(c.q, ""); a.Decision.Allowed() {
			t.Errorf("%s: allowed a second time: %+v", name, a)
		}
	}
}

// TestADecisionIsFinal decides twice, and evaluates between.
func TestADecisionIsFinal(t *testing.T) {
	c := convene(t)
	q := c.ask(mail("a.example"))
	if err := c.decide(q, policy.Refuse); err != nil {
		t.Fatal(err)
	}
	if err := c.decide(q, policy.Approve); !errors.Is(err, policy.ErrAlreadyDecided) {
		t.Errorf("decided twice: %v", err)
	}
	if a := c.evaluate(mail("a.example"), ""); a.Decision.Allowed() {
		t.Errorf("after a no: %+v", a)
	}
}

// TestARefusalDoesNotBurnTheKey evaluates under one key before and after a person's yes.
func TestARefusalDoesNotBurnTheKey(t *testing.T) {
	c := convene(t)
	if a := c.evaluate(mail("a.example"), "k"); a.Decision.Allowed() {
		t.Fatalf("got %+v", a)
	}
	if _, known, err := journal.Recall(t.Context(), c.log, ws, "k", event.DigestOf([]byte("k"))); err != nil || known {
		t.Errorf("the key of what was refused is known: %t, %v", known, err)
	}
	q := c.ask(mail("a.example"))
	if a := c.evaluate(mail("a.example"), "k"); a.Decision.Allowed() || a.Approval != q.ID {
		t.Fatalf("got %+v", a)
	}
	if err := c.decide(q, policy.Approve); err != nil {
		t.Fatal(err)
	}
	if a := c.evaluate(mail("a.example"), "k"); !a.Decision.Allowed() || a.Approval != q.ID {
		t.Errorf("the same request after a yes: got %+v", a)
	}
}

// TestWhatIsNotJudged asks what cannot be asked, and about what is done by Agentbox itself.
func TestWhatIsNotJudged(t *testing.T) {
	c := convene(t)
	of := func(change func(*outside.Question)) outside.Question {
		q := mail("a.example")
		change(&q)
		return q
	}
	created, err := c.hands.Create(t.Context(), event.Origin{Principal: c.owner.Principal}, engines.Request{Workspace: ws, Room: near,
		Title: "a run"})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		q    outside.Question
		code string // of the error, or of the refusal
	}{
		"no action":         {of(func(q *outside.Question) { q.Action = "" }), "missing_action"},
		"no zone":           {of(func(q *outside.Question) { q.Zone = "outer" }), "invalid_zone"},
		"a list as request": {of(func(q *outside.Question) { q.Request = []byte(`[1]`) }), "invalid_request"},
		"a secret": {of(func(q *outside.Question) {
			q.Request = []byte(`{"key":"ghp_012345678901234567890123456789012345"}`)
		}), "request_holds_secret"},
		"no run":                {of(func(q *outside.Question) { q.Run = "run_00000000000000000000000001" }), "run_not_found"},
		"a run of another room": {of(func(q *outside.Question) { q.Run, q.Room = created.ID, far }), "run_room_mismatch"},
		"no room":               {of(func(q *outside.Question) { q.Room = "room_00000000000000000000000001" }), "room_not_found"},
		"for the owner":         {of(func(q *outside.Question) { q.Principal = c.owner.Principal }), "may_not_act_for"},
		"another actor":         {of(func(q *outside.Question) { q.ActorType = "user" }), policy.ReasonActorMismatch},
		"a command":             {of(func(q *outside.Question) { q.Action = policy.ShellExec }), policy.ReasonNotOutside},
		"an unknown action":     {of(func(q *outside.Question) { q.Action = "moon.land" }), policy.ReasonUnknownAction},
	} {
		a, err := c.Evaluate(t.Context(), event.Origin{Principal: c.agent.Principal}, c.agent, x.q, false)
		got := fault.CodeOf(err)
		if err == nil {
			got = a.Decision.ReasonCode
		}
		if got != x.code || err == nil && (!a.Blocked || a.Event == "") {
			t.Errorf("%s: got %q (%+v, %v), want %q", name, got, a, err, x.code)
		}
	}
	if a, err := c.Evaluate(t.Context(), event.Origin{Principal: c.agent.Principal}, c.agent, mail("a.example"), true); err != nil ||
		!a.Preview || a.Event != "" {
		t.Errorf("a preview: got %+v, %v", a, err)
	}
	if _, err := c.Ask(t.Context(), event.Origin{Principal: c.agent.Principal}, c.agent, mail("a.example"),
		outside.Words{Title: string(make([]byte, outside.MaxTitle+1))}, policy.Ask{}); fault.CodeOf(err) != "invalid_title" {
		t.Errorf("too long a title: %v", err)
	}
}
