package models_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/endpoint"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/models"
	"agentbox/internal/service/spaces"
)

const (
	ws   = id.DefaultWorkspace
	room = id.Room("room_00000000000000000000000000")
	run  = id.Run("run_00000000000000000000000001")
)

// clock is a clock whose timers ring at once and move it on. Those that silent names never ring.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	slept  []time.Duration
	silent func(time.Duration) bool
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent != nil && c.silent(d) {
		return nil, func() {}
	}
	c.slept, c.now = append(c.slept, d), c.now.Add(d)
	rung := make(chan time.Time, 1)
	rung <- c.now
	return rung, func() {}
}

// vendor is an endpoint that answers as its script says, counts, and takes no request without a permit for it.
type vendor struct {
	mu     sync.Mutex
	script map[string][]func(emit func(model.Delta) error) (model.Answer, error) // by entry; the last one ever after
	asked  map[string]int
	keys   []string
}

func (v *vendor) Stream(ctx context.Context, p policy.Permit, to model.Target, r model.Request,
	emit func(model.Delta) error) (model.Answer, error) {
	if err := endpoint.Redeem(p, to, r); err != nil {
		return model.Answer{}, err
	}
	v.mu.Lock()
	n := v.asked[to.Entry.Name]
	v.asked[to.Entry.Name]++
	v.keys = append(v.keys, to.Key.Reveal())
	script := v.script[to.Entry.Name]
	v.mu.Unlock()
	if len(script) == 0 {
		return says("Hi")(emit)
	}
	answer, err := script[min(n, len(script)-1)](emit)
	if ctx.Err() != nil {
		return model.Answer{}, context.Cause(ctx)
	}
	return answer, err
}

func (v *vendor) count(name string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked[name]
}

type step = func(emit func(model.Delta) error) (model.Answer, error)

func says(text string) step {
	return func(emit func(model.Delta) error) (model.Answer, error) {
		a := model.Answer{Parts: []model.Part{model.Text(text)}, Stop: model.StopEnd, Usage: model.Usage{Input: 10, Output: 5}}
		return a, emit(model.Delta{Type: model.TextPart, Text: text})
	}
}

func fails(f model.Failure) step {
	return func(func(model.Delta) error) (model.Answer, error) { return model.Answer{}, &f }
}

// keyBox keeps keys in memory.
type keyBox struct {
	mu   sync.Mutex
	held map[string]model.Secret
}

func (k *keyBox) Key(_ context.Context, _ id.Workspace, name string) (model.Secret, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key, ok := k.held[name]; ok {
		return key, nil
	}
	return model.Secret{}, model.ErrNoKey
}

func (k *keyBox) Set(_ context.Context, p policy.Permit, _ id.Workspace, name string, key model.Secret) error {
	if _, err := p.Redeem(policy.ModelKey); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[name] = key
	return nil
}

func (k *keyBox) Remove(_ context.Context, p policy.Permit, _ id.Workspace, name string) error {
	if _, err := p.Redeem(policy.ModelKey); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, name)
	return nil
}

// lossy is a log that loses the append of some event types, as a crash does.
type lossy struct {
	journal.Journal
	mu   sync.Mutex
	lose string
}

func (l *lossy) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	l.mu.Lock()
	lose := l.lose
	l.mu.Unlock()
	for _, d := range b.Drafts {
		if d.Type == lose {
			return event.Receipt{}, errors.New("the daemon has crashed")
		}
	}
	return l.Journal.Append(ctx, b)
}

type fixture struct {
	*models.Service
	t      *testing.T
	gate   *gate.Gate
	log    *lossy
	docs   projection.Reader
	clock  *clock
	vendor *vendor
	parts  models.Parts
	prices model.Prices
	owner  event.Origin
	agent  event.Origin
}

func start(t *testing.T) *fixture {
	t.Helper()
	c := &clock{now: time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)}
	ids := id.NewSource(c.Now, rand.Reader)
	log, err := memory.NewJournal(append(append(gate.Definitions(), models.Definitions()...), spaces.Definition()), c, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{Log: log, Docs: log, Evaluator: cedar.New(), Clock: c, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	people := identity.New(identity.Parts{Log: log, Docs: log, Gate: g, Clock: c, IDs: ids, Entropy: rand.Reader})
	owner, err := people.Owner(t.Context(), ws, "owner")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, gate: g, log: &lossy{Journal: log}, docs: log, clock: c, owner: event.Origin{Principal: owner},
		vendor: &vendor{script: map[string][]step{}, asked: map[string]int{}}}
	agent, err := people.Agent(t.Context(), f.owner, ws, "writer")
	if err != nil {
		t.Fatal(err)
	}
	f.agent = event.Origin{Principal: agent}
	f.prices = model.Prices{Date: "2026-11-28", Currency: "USD", Models: map[string]model.Price{
		"one": {Input: 1_000_000, Output: 2_000_000}, "two": {Input: 1_000_000, Output: 2_000_000}, "three": {}}}
	f.parts = models.Parts{Log: f.log, Docs: log, Gate: g, Clock: c, IDs: ids, Entropy: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Endpoints: map[string]model.Endpoint{model.OpenAI: f.vendor},
		Keys: &keyBox{held: map[string]model.Secret{}}, Live: memory.NewLivestreams(c),
		Prices: func() model.Prices { return f.prices }}
	f.restart()
	for _, name := range []string{"one", "two", "three"} {
		f.put(model.Entry{Name: name, Model: name + "-1", MaxOutput: 100})
	}
	if err := f.SetRoutes(t.Context(), f.owner, ws, []model.Route{{Models: []string{"one", "two"}}}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) restart() { f.Service = models.New(f.parts) }

func (f *fixture) put(e model.Entry) model.Held {
	f.t.Helper()
	held, err := f.Put(f.t.Context(), f.owner, ws, e)
	if err != nil {
		f.t.Fatal(err)
	}
	return held
}

func request(text string) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text(text)}}}}
}

func (f *fixture) question(n int) model.Ask {
	return model.Ask{Origin: f.agent, Workspace: ws, Room: room, Run: run, Step: n, Class: model.Chat, Request: request("Hello")}
}

// events returns the events of a type.
func (f *fixture) events(typ string) []event.Event {
	f.t.Helper()
	all, err := f.log.Read(f.t.Context(), journal.Query{Workspace: ws, Types: []string{typ}, Limit: 1000})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// used returns the usage of the run, and holds every other scope to it.
func (f *fixture) used() model.Used {
	f.t.Helper()
	of, err := f.UsageOf(f.t.Context(), ws, model.ScopeRun, string(run), "")
	if err != nil {
		f.t.Fatal(err)
	}
	for scope, name := range map[string]string{model.ScopeAgent: string(f.agent.Principal), model.ScopeRoom: string(room),
		model.ScopeWorkspace: ""} {
		other, err := f.UsageOf(f.t.Context(), ws, scope, name, model.Day(f.clock.Now()))
		if err != nil || other.Usage != of.Usage || other.Cost != of.Cost || other.Reserved != of.Reserved || other.Requests != of.Requests {
			f.t.Errorf("the usage of the %s is %+v, %v; that of the run %+v", scope, other, err, of)
		}
	}
	return of
}

// TestARecordedAnswerIsNotPaidAgain asks the same step again, also after a restart, and another request under the same name.
func TestARecordedAnswerIsNotPaidAgain(t *testing.T) {
	f := start(t)
	first, err := f.Ask(t.Context(), f.question(1))
	if err != nil || first.Text() != "Hi" || first.Repeated || first.Entry != "one" || first.Cost != 20 || !first.Priced {
		t.Fatalf("got %+v, %v", first, err)
	}
	for range 3 {
		f.restart()
		again, err := f.Ask(t.Context(), f.question(1))
		if err != nil || again.Text() != "Hi" || !again.Repeated || again.Cost != first.Cost || again.Attempts != 1 {
			t.Fatalf("again: got %+v, %v", again, err)
		}
	}
	other := f.question(1)
	other.Request = request("Something else")
	if _, err := f.Ask(t.Context(), other); !errors.Is(err, model.ErrDiffers) {
		t.Errorf("another request: got %v", err)
	}
	stranger := f.question(1)
	stranger.Origin = f.owner
	if _, err := f.Ask(t.Context(), stranger); !errors.Is(err, model.ErrDiffers) {
		t.Errorf("another principal: got %v", err)
	}
	part := f.question(1)
	part.Part = "compact"
	if _, err := f.Ask(t.Context(), part); err != nil {
		t.Error(err)
	}
	if n, used := f.vendor.count("one"), f.used(); n != 2 || used.Requests != 2 || used.Usage.Tokens() != 30 || used.Cost != 40 ||
		used.Reserved != (model.Reserve{}) {
		t.Errorf("sent %d times, used %+v", n, used)
	}
}

// TestTheSameRequestAtOnce asks one step from many goroutines: it is sent once, and all get its answer.
func TestTheSameRequestAtOnce(t *testing.T) {
	f := start(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if r, err := f.Ask(t.Context(), f.question(1)); err != nil || r.Text() != "Hi" {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	all.Wait()
	if n := f.vendor.count("one"); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// TestACrashBetweenAskingAndTheAnswer loses the answer. The whole reserve of the request stays charged, and the request is sent again.
func TestACrashBetweenAskingAndTheAnswer(t *testing.T) {
	f := start(t)
	f.log.lose = model.EventAnswered
	if _, err := f.Ask(t.Context(), f.question(1)); err == nil {
		t.Fatal("an answer that is not recorded was returned")
	}
	hanging := f.used()
	if hanging.Reserved.Tokens == 0 || hanging.Usage.Tokens() != 0 {
		t.Fatalf("got %+v", hanging)
	}
	f.log.lose = ""
	f.restart()
	seen, a := "", f.question(1)
	a.Emit = func(d model.Delta) error {
		if d.Again {
			seen += "|"
		}
		seen += d.Text
		return nil
	}
	r, err := f.Ask(t.Context(), a)
	if err != nil || r.Attempts != 2 || r.Repeated {
		t.Fatalf("got %+v, %v", r, err)
	}
	if !strings.HasPrefix(seen, "|") || strings.Count(seen, "|") != 1 { // what came before the crash does not count
		t.Errorf("the caller got %q", seen)
	}
	if live := f.watched(a.Run); !strings.HasSuffix(live, seen) || strings.Count(live, "|") != 1 {
		t.Errorf("those who watch got %q, the caller %q", live, seen)
	}
	used := f.used()
	if used.Reserved.Tokens != 0 || used.Usage.Tokens() != hanging.Reserved.Tokens+15 || used.Cost != hanging.Reserved.Cost+20 ||
		used.Guessed != 1 || used.Requests != 2 {
		t.Errorf("got %+v; %+v hung", used, hanging)
	}
	if again, err := f.Ask(t.Context(), f.question(1)); err != nil || !again.Repeated || f.vendor.count("one") != 2 {
		t.Errorf("got %+v, %v", again, err)
	}
}

// TestRetriesAndFallbacks plays failures of each class against a route of two models.
func TestRetriesAndFallbacks(t *testing.T) {
	broken := model.Failure{Class: model.Retry, Message: "broken"}
	for name, c := range map[string]struct {
		one      []step
		asked    [2]int // one, two
		answer   string
		class    model.Class
		waits    int
		waitOf   time.Duration
		nextSaid string
	}{
		"a retry works":           {[]step{fails(broken), says("now")}, [2]int{2, 0}, "now", "", 1, 0, model.NextRetry},
		"retries end":             {[]step{fails(broken)}, [2]int{models.MaxTries, 1}, "Hi", "", 2, 0, model.NextRetry},
		"final goes elsewhere":    {[]step{fails(model.Failure{Class: model.Final})}, [2]int{1, 1}, "Hi", "", 0, 0, model.NextFallback},
		"money goes elsewhere":    {[]step{fails(model.Failure{Class: model.Money})}, [2]int{1, 1}, "Hi", "", 0, 0, model.NextFallback},
		"overflow goes elsewhere": {[]step{fails(model.Failure{Class: model.Overflow})}, [2]int{1, 1}, "Hi", "", 0, 0, model.NextFallback},
		"a refusal goes nowhere": {[]step{fails(model.Failure{Class: model.Refused})}, [2]int{1, 0}, "", model.Refused, 0, 0,
			model.NextNothing},
		"a short Retry-After": {[]step{fails(model.Failure{Class: model.Busy, After: 5 * time.Second}), says("now")}, [2]int{2, 0}, "now", "", 1,
			5 * time.Second, model.NextRetry},
		"a Retry-After over it": {[]step{fails(model.Failure{Class: model.Busy, After: 5*time.Second + 1})}, [2]int{1, 1}, "Hi", "", 0, 0,
			model.NextFallback},
		"a very long Retry-After ": {[]step{fails(model.Failure{Class: model.Busy, After: time.Hour})}, [2]int{1, 1}, "Hi", "", 0, 0,
			model.NextFallback},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			f.vendor.script["one"] = c.one
			r, err := f.Ask(t.Context(), f.question(1))
			if c.class != "" {
				if got, ok := model.FailureOf(err); !ok || got.Class != c.class {
					t.Errorf("got %v", err)
				}
			} else if err != nil || r.Text() != c.answer {
				t.Errorf("got %+v, %v", r, err)
			}
			if got := [2]int{f.vendor.count("one"), f.vendor.count("two")}; got != c.asked {
				t.Errorf("asked %v, want %v", got, c.asked)
			}
			if len(f.clock.slept) != c.waits || c.waitOf > 0 && f.clock.slept[0] != c.waitOf {
				t.Errorf("waited %v", f.clock.slept)
			}
			failed := f.events(model.EventFailed)
			d, err := event.Decode[model.Outcome](failed[0])
			if err != nil || d.Next != c.nextSaid || d.Why == "" {
				t.Errorf("got %+v, %v", d, err)
			}
			if asked := f.events(model.EventAsked); c.asked[1] > 0 {
				last, err := event.Decode[model.Asked](asked[len(asked)-1])
				if err != nil || !strings.HasPrefix(last.Reason, "fallback: one") || len(last.Passed) != 1 {
					t.Errorf("got %+v, %v", last, err)
				}
			}
		})
	}
}

// TestALongRetryAfterOfTheOnlyModel waits up to MaxWait and not longer.
func TestALongRetryAfterOfTheOnlyModel(t *testing.T) {
	for after, want := range map[time.Duration]int{models.MaxWait: 2, models.MaxWait + 1: 1} {
		f := start(t)
		f.vendor.script["three"] = []step{fails(model.Failure{Class: model.Busy, After: after}), says("now")}
		a := f.question(1)
		a.Entry = "three"
		_, err := f.Ask(t.Context(), a)
		if got, _ := model.FailureOf(err); f.vendor.count("three") != want || (want == 1) != (got != nil && got.After == after) {
			t.Errorf("after %s: asked %d times, %v", after, f.vendor.count("three"), err)
		}
	}
}

// TestPicturesGoToModelsThatTakeThem passes the others of the route over, and asks nobody where none takes them.
func TestPicturesGoToModelsThatTakeThem(t *testing.T) {
	f := start(t)
	a := f.question(1)
	a.Request.Messages[0].Parts = append(a.Request.Messages[0].Parts, model.Part{Type: model.ImagePart,
		Image: &model.Image{MediaType: "image/png", Data: []byte("x")}})
	var blind []string
	for _, name := range []string{"one", "two", "three"} {
		held, err := f.Get(t.Context(), ws, name)
		if err != nil {
			t.Fatal(err)
		}
		held.Provider, held.Dialect, held.BaseURL, held.AllowPrivate = model.OpenAI, model.DialectGeneric, "http://127.0.0.1:1", true
		held.Images = name == "two"
		f.put(held.Entry)
		blind = append(blind, name)
	}
	r, err := f.Ask(t.Context(), a)
	if err != nil || r.Entry != "two" || f.vendor.count("one") != 0 {
		t.Fatalf("got %+v, %v of %v", r, err, blind)
	}
	asked, err := event.Decode[model.Asked](f.events(model.EventAsked)[0])
	if err != nil || len(asked.Passed) != 1 || asked.Passed[0].Code != "no_images" {
		t.Errorf("got %+v, %v", asked, err)
	}
	a.Entry, a.Step = "three", 2
	if _, err := f.Ask(t.Context(), a); !errors.Is(err, model.ErrNoImages) || f.vendor.count("three") != 0 {
		t.Errorf("got %v", err)
	}
}

// TestTheCircuitBreaker breaks after five failures, leaves the model alone, tries it once, and closes after an answer.
func TestTheCircuitBreaker(t *testing.T) {
	f := start(t)
	f.vendor.script["three"] = []step{fails(model.Failure{Class: model.Retry})}
	ask := func(n int) error {
		a := f.question(n)
		a.Entry = "three"
		_, err := f.Ask(t.Context(), a)
		return err
	}
	for n := 1; f.vendor.count("three") < 5; n++ {
		if ask(n) == nil {
			t.Fatal("no failure")
		}
	}
	err := ask(10)
	if got, ok := model.FailureOf(err); !ok || got.Code != "circuit_open" || got.After <= 0 || f.vendor.count("three") != 5 {
		t.Fatalf("open: got %v after %d", err, f.vendor.count("three"))
	}
	if refused := f.events(model.EventRefused); len(refused) == 0 {
		t.Error("nothing says that the model was left alone")
	}
	f.clock.now = f.clock.now.Add(31 * time.Second)
	if err := ask(11); err == nil || f.vendor.count("three") != 6 {
		t.Fatalf("half open: got %v after %d", err, f.vendor.count("three"))
	}
	f.clock.now = f.clock.now.Add(61 * time.Second)
	f.vendor.script["three"] = []step{says("Hi")}
	for n := range 3 {
		if err := ask(20 + n); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBudgetsHoldBeforeTheRequest stops at the edge of each budget, and counts reserves.
func TestBudgetsHoldBeforeTheRequest(t *testing.T) {
	f := start(t)
	reserve := f.prices.Reserve(model.Entry{Name: "one", Provider: model.OpenAI, MaxOutput: 100}, request("Hello"))
	for name, c := range map[string]struct {
		limits  model.Limits
		budgets []model.Budget
		want    error
	}{
		"tokens of the run, enough":   {limits: model.Limits{Tokens: reserve.Tokens}},
		"tokens of the run, too few":  {limits: model.Limits{Tokens: reserve.Tokens - 1}, want: model.ErrBudget},
		"cost of the run, enough":     {limits: model.Limits{Cost: reserve.Cost}},
		"cost of the run, too little": {limits: model.Limits{Cost: reserve.Cost - 1}, want: model.ErrBudget},
		"of each room":                {budgets: []model.Budget{{Scope: model.ScopeRoom, Cost: reserve.Cost - 1}}, want: model.ErrBudget},
		"of this room, more than others": {budgets: []model.Budget{{Scope: model.ScopeRoom, Tokens: 1}, {Scope: model.ScopeRoom,
			ID: string(room), Tokens: reserve.Tokens}}},
		"of each agent": {budgets: []model.Budget{{Scope: model.ScopeAgent, Tokens: reserve.Tokens - 1}}, want: model.ErrBudget},
		"of the workspace": {budgets: []model.Budget{{Scope: model.ScopeWorkspace, Tokens: reserve.Tokens - 1}},
			want: model.ErrBudget},
	} {
		f := start(t)
		if err := f.SetBudgets(t.Context(), f.owner, ws, c.budgets); err != nil {
			t.Fatal(err)
		}
		a := f.question(1)
		a.Limits = c.limits
		_, err := f.Ask(t.Context(), a)
		if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if n := f.vendor.count("one"); (n == 0) != (c.want != nil) {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
}

// TestAnUnknownPriceIsNotZero refuses a model without a price under a budget of money. Without such a budget the record says that the price
// is unknown.
func TestAnUnknownPriceIsNotZero(t *testing.T) {
	f := start(t)
	delete(f.prices.Models, "one")
	delete(f.prices.Models, "two")
	a := f.question(1)
	a.Limits.Cost = 1_000_000_000
	if _, err := f.Ask(t.Context(), a); !errors.Is(err, model.ErrPrice) || f.vendor.count("one") != 0 {
		t.Errorf("got %v", err)
	}
	r, err := f.Ask(t.Context(), f.question(2))
	if err != nil || r.Priced || f.used().Unpriced != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestBudgetsHoldAtOnce asks from many goroutines under a budget for three: no more than three are sent.
func TestBudgetsHoldAtOnce(t *testing.T) {
	f := start(t)
	held := make(chan struct{})
	f.vendor.script["three"] = []step{func(emit func(model.Delta) error) (model.Answer, error) { <-held; return says("Hi")(emit) }}
	reserve := f.prices.Reserve(model.Entry{Name: "three", Provider: model.OpenAI, MaxOutput: 100}, request("Hello"))
	if err := f.SetBudgets(t.Context(), f.owner, ws, []model.Budget{{Scope: model.ScopeWorkspace, Tokens: 3*reserve.Tokens + 1}}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	results := make(chan error, 30)
	for n := range 30 {
		all.Go(func() {
			a := f.question(n + 1)
			a.Entry = "three"
			_, err := f.Ask(t.Context(), a)
			results <- err
		})
	}
	for range 27 {
		if err := <-results; !errors.Is(err, model.ErrBudget) {
			t.Errorf("got %v", err)
		}
	}
	close(held)
	all.Wait()
	if n := f.vendor.count("three"); n != 3 {
		t.Errorf("sent %d requests", n)
	}
}
