package runner_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/documents"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/claim"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/runner"
	"agentbox/internal/testkit/wall"
)

const ws = id.DefaultWorkspace

// host is a daemon's services in a bubble of synctest, and the count of what was done in its spaces.
type host struct {
	t     *testing.T
	hands *engines.Service
	gate  *gate.Gate
	log   *memory.Journal
	ids   *id.Source
	owner event.Origin

	mu   sync.Mutex
	done map[string]int // effects, by the operation
	gone bool           // the daemon is down
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, done: map[string]int{}}
	clock := wall.Clock{}
	h.ids = id.NewSource(clock.Now, rand.Reader)
	var err error
	if h.log, err = memory.NewJournal(documents.All(), clock, h.ids, rand.Reader); err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{Log: h.log, Docs: h.log, Evaluator: cedar.New(), Clock: clock, IDs: h.ids})
	if err != nil {
		t.Fatal(err)
	}
	people := identity.New(identity.Parts{Log: h.log, Docs: h.log, Gate: g, Clock: clock, IDs: h.ids, Entropy: rand.Reader})
	tokens, err := claim.NewTokens(make([]byte, claim.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	h.hands = engines.New(engines.Parts{
		Log: h.log, Docs: h.log, Blobs: memory.NewBlobs(), Gate: g, Tokens: tokens, Clock: clock, IDs: h.ids,
		Logger: slog.New(slog.DiscardHandler),
		Place:  func(context.Context, id.Workspace, id.Room, id.Thread) error { return nil },
	})
	h.gate = g
	owner, err := people.Owner(t.Context(), ws, "owner")
	if err != nil {
		t.Fatal(err)
	}
	h.owner = event.Origin{Principal: owner}
	return h
}

func (h *host) ask(operations int) run.Run { return h.order(operations, "") }

// order asks for a run whose order has further fields.
func (h *host) order(operations int, fields string) run.Run {
	h.t.Helper()
	var list []string
	for i := range operations {
		list = append(list, fmt.Sprintf(`{"type":"shell","command":"%d"}`, i))
	}
	input := `{"protocolVersion":"1.0",` + fields + `"space_id":"spc_1","operations":[` + strings.Join(list, ",") + `]}`
	doc, err := h.hands.Create(h.t.Context(), h.owner, engines.Request{Workspace: ws, Room: id.DefaultRoom, Input: json.RawMessage(input)})
	if err != nil {
		h.t.Fatal(err)
	}
	return doc
}

// seat is one engine's way to the host. Every call takes a while, now and then longer than a claim lasts, before and after it is done; an
// engine that was killed hears and says nothing any more.
type seat struct {
	*host
	chance *mrand.Rand
	cruel  bool
	dead   context.Context
}

var errDown = fault.New(fault.Unavailable, "daemon_unreachable", "the daemon is down")

// away is a pause: of the network, of the scheduler, of a machine that sleeps.
func (s seat) away(ctx context.Context) error {
	d := time.Duration(s.chance.IntN(300)) * time.Millisecond
	if s.cruel && s.chance.IntN(12) == 0 {
		d = time.Duration(10+s.chance.IntN(60)) * time.Second
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C: // a call that is on its way arrives, whatever its sender thinks by then
	case <-s.dead.Done():
		return errDown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return errDown
	}
	return nil
}

// call does something with the host and lets the answer take its time too.
func call[T any](ctx context.Context, s seat, do func() (T, error)) (T, error) {
	var none T
	if err := s.away(ctx); err != nil {
		return none, err
	}
	got, err := do()
	if lost := s.away(ctx); lost != nil && s.dead.Err() != nil {
		return none, lost
	}
	return got, err
}

func (s seat) hold(w errand.Work) engines.Hold {
	return engines.Hold{Workspace: ws, Run: w.Run, Token: w.Token}
}

func (s seat) Claim(ctx context.Context, _ time.Duration) (errand.Work, error) {
	return call(ctx, s, func() (errand.Work, error) {
		doc, token, err := s.hands.Claim(context.Background(), s.owner, ws, engines.Wanted{Work: errand.Operations})
		if err != nil {
			return errand.Work{}, err
		}
		input, err := s.hands.Given(context.Background(), doc)
		return errand.Work{Workspace: ws, Run: doc.ID, Token: token, Fence: doc.Fence, Input: input}, err
	})
}

func (s seat) Renew(ctx context.Context, w errand.Work) error {
	_, err := call(ctx, s, func() (run.Run, error) { return s.hands.Renew(context.Background(), s.owner, s.hold(w)) })
	return err
}

func (s seat) Release(ctx context.Context, w errand.Work) error {
	_, err := call(ctx, s, func() (run.Run, error) { return s.hands.Release(context.Background(), s.owner, s.hold(w)) })
	return err
}

func (s seat) End(ctx context.Context, w errand.Work, r errand.Result) error {
	_, err := call(ctx, s, func() (run.Run, error) {
		if r.Failure != "" {
			return s.hands.Fail(context.Background(), s.owner, s.hold(w), r.Failure, r.Message, r.Output)
		}
		return s.hands.Complete(context.Background(), s.owner, s.hold(w), r.Summary, r.Output)
	})
	return err
}

func (s seat) Past(ctx context.Context, w errand.Work) ([]errand.Progress, error) {
	return call(ctx, s, func() ([]errand.Progress, error) {
		steps, err := s.hands.Look.Steps(context.Background(), ws, engines.Of{Run: w.Run}, "", 1000)
		if err != nil {
			return nil, err
		}
		var past []errand.Progress
		for _, doc := range steps {
			var last step.Call
			calls, err := s.hands.Look.Calls(context.Background(), ws, engines.Of{Step: doc.ID}, "", 1)
			if err != nil {
				return nil, err
			}
			for _, c := range calls {
				last = c
			}
			past = append(past, errand.Recorded(doc.ID, doc.Input, asCall(last)))
		}
		return past, nil
	})
}

// asCall is a tool call as an engine reads it.
func asCall(c step.Call) errand.Call {
	return errand.Call{ID: c.ID, Status: string(c.Status), OK: c.Status == step.Succeeded, Child: c.Child, Output: c.Output, Error: c.Error}
}

func (s seat) Step(ctx context.Context, w errand.Work, index int) (id.Step, error) {
	doc, err := call(ctx, s, func() (step.Step, error) {
		input, _ := json.Marshal(errand.At{Index: index})
		return s.hands.Steps.Add(context.Background(), s.owner, s.hold(w), engines.StepRequest{Kind: errand.StepKind, Input: input})
	})
	return doc.ID, err
}

func (s seat) Invoke(ctx context.Context, w errand.Work, in id.Step, index int, operation json.RawMessage) (errand.Verdict, error) {
	return call(ctx, s, func() (errand.Verdict, error) {
		c, no, err := s.hands.Steps.Invoke(context.Background(), s.owner, ws, w.Token, engines.CallRequest{Step: in,
			Tool: run.ToolName(operation)})
		if no != nil {
			return errand.Verdict{Code: no.Decision.ReasonCode}, nil
		}
		return errand.Verdict{Call: c.ID}, err
	})
}

// Operate records the run in the space as the service of runs does, and counts the effect in that very moment.
func (s seat) Operate(ctx context.Context, w errand.Work, c id.ToolCall, in id.Space, operation json.RawMessage) (errand.Outcome, error) {
	return call(ctx, s, func() (errand.Outcome, error) {
		for {
			under, err := s.hands.Steps.Vouch(context.Background(), ws, w.Token, c)
			if err != nil || under.Child != "" {
				return errand.Outcome{Child: under.Child, OK: true}, err
			}
			child := id.New[id.Run](s.ids)
			draft := event.New(run.EventCreated, s.owner, ws, id.DefaultRoom, run.Created{Run: child, Space: in, Operations: []run.Outline{},
				Parent: &under.Parent}).About("space", string(in)).In(child, "")
			ended := event.New(run.EventCompleted, s.owner, ws, id.DefaultRoom, run.Finished{}).About("space", string(in)).In(child, "")
			_, err = s.log.Append(context.Background(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft, ended}, Documents: under.Expect})
			if errors.Is(err, journal.ErrConflict) {
				continue
			}
			if err == nil {
				s.mu.Lock()
				s.done[string(w.Run)+string(operation)]++
				s.mu.Unlock()
			}
			return errand.Outcome{Child: child, OK: err == nil}, err
		}
	})
}

func (s seat) Conclude(ctx context.Context, w errand.Work, c id.ToolCall, _ string, _ errand.Outcome) error {
	_, err := call(ctx, s, func() (step.Call, error) {
		return s.hands.Steps.Succeed(context.Background(), s.owner, ws, engines.Shown{Token: w.Token}, c, nil)
	})
	return err
}

// TestThreat30NoStepIsLostOrDoubled plays histories of engines that sleep beyond their claims in the middle of everything, and are
// killed. A seed is a history; whatever happens, each operation is done once, has one step and one call, and the runs end.
func TestThreat30NoStepIsLostOrDoubled(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				defer func() {
					h.hands.Evidence.Wait()
					if err := h.log.Close(); err != nil {
						t.Error(err)
					}
				}()
				const operations = 4
				var asked []id.Run
				for range 3 {
					asked = append(asked, h.ask(operations).ID)
				}
				ctx, stop := context.WithCancel(t.Context())
				var engines sync.WaitGroup
				for n := range uint64(3) {
					engines.Go(func() {
						for life := uint64(0); ctx.Err() == nil; life++ {
							chance := mrand.New(mrand.NewPCG(seed, n<<32|life))
							dead, kill := context.WithCancel(context.Background())
							// Half of the lives end by a kill, at any moment; the others when the test does.
							death := time.NewTimer(time.Duration(1+chance.IntN(90)) * time.Second)
							done := make(chan struct{})
							s := seat{host: h, chance: locked(chance), cruel: true, dead: dead}
							r := &runner.Runner{Claims: s, Records: s, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler)}
							own, end := context.WithCancel(ctx)
							go func() { defer close(done); _ = r.Run(own) }()
							select {
							case <-death.C:
								kill()
							case <-ctx.Done():
								kill()
							}
							end()
							<-done
							kill()
						}
					})
				}
				deadline := time.Now().Add(4 * time.Hour)
				for {
					time.Sleep(time.Second)
					ended := 0
					for _, r := range asked {
						if doc, err := h.hands.Find(context.Background(), ws, r); err != nil {
							t.Fatal(err)
						} else if doc.Status.Ended() {
							ended++
						}
					}
					if ended == len(asked) {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("%d of %d runs have ended", ended, len(asked))
					}
				}
				stop()
				engines.Wait()
				for _, r := range asked {
					h.verify(r, operations)
				}
			})
		})
	}
}

// locked returns the same chance for several goroutines of one engine.
func locked(of *mrand.Rand) *mrand.Rand { return mrand.New(&source{of: of}) }

type source struct {
	mu sync.Mutex
	of *mrand.Rand
}

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of.Uint64()
}

func (h *host) verify(r id.Run, operations int) {
	h.t.Helper()
	ctx := context.Background()
	doc, err := h.hands.Find(ctx, ws, r)
	if err != nil || doc.Status != run.Succeeded {
		h.t.Fatalf("%s is %s (%s), %v", r, doc.Status, doc.Error, err)
	}
	steps, err := h.hands.Look.Steps(ctx, ws, engines.Of{Run: r}, "", 1000)
	if err != nil || len(steps) != operations {
		h.t.Errorf("%s has %d steps, want %d (%v)", r, len(steps), operations, err)
	}
	calls, err := h.hands.Look.Calls(ctx, ws, engines.Of{Run: r}, "", 1000)
	if err != nil || len(calls) != operations {
		h.t.Errorf("%s has %d calls, want %d (%v)", r, len(calls), operations, err)
	}
	for _, c := range calls {
		if c.Status != step.Succeeded || c.Child == "" {
			h.t.Errorf("%s is %s, with the run %q", c.ID, c.Status, c.Child)
		}
	}
	for i := range operations {
		key := fmt.Sprintf(`%s{"type":"shell","command":"%d"}`, r, i)
		if n := h.done[key]; n != 1 {
			h.t.Errorf("operation %d of %s was done %d times", i, r, n)
		}
	}
	events, err := h.log.Read(ctx, journal.Query{Workspace: ws, Run: r, Limit: 1000})
	if err != nil {
		h.t.Fatal(err)
	}
	last := uint64(0)
	for _, e := range events {
		d, err := event.Decode[struct {
			Fence uint64 `json:"fence"`
		}](e)
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Type == run.EventClaimed {
			last++
		}
		if d.Fence != 0 && d.Fence != last {
			h.t.Errorf("%s of fence %d stands behind the claim of fence %d", e.Type, d.Fence, last)
		}
	}
	h.t.Logf("%s took %d attempts", r, doc.Attempts)
}

// TestAnEngineThatIsStoppedGivesItsRunBack ends an engine in the middle of an operation, as SIGTERM does.
func TestAnEngineThatIsStoppedGivesItsRunBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		defer func() { h.hands.Evidence.Wait(); _ = h.log.Close() }()
		r := h.ask(1000).ID
		s := seat{host: h, chance: locked(mrand.New(mrand.NewPCG(1, 1))), dead: context.Background()}
		engine := &runner.Runner{Claims: s, Records: s, Clock: wall.Clock{}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- engine.Run(ctx) }()
		time.Sleep(time.Minute) // beyond two claims: it was kept by heartbeats
		doc, err := h.hands.Find(t.Context(), ws, r)
		if err != nil || doc.Attempts != 1 || doc.Status != run.Running {
			t.Errorf("got %s in attempt %d, %v", doc.Status, doc.Attempts, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if doc, err = h.hands.Find(context.Background(), ws, r); err != nil || doc.Status != run.Queued || doc.Claim != nil {
			t.Errorf("got %s with the claim %+v, %v", doc.Status, doc.Claim, err)
		}
	})
}

// TestAnEngineOutlivesItsDaemonsRestart takes the daemon away for less than a claim lasts, and for more.
func TestAnEngineOutlivesItsDaemonsRestart(t *testing.T) {
	for name, c := range map[string]struct {
		down     time.Duration
		attempts int
	}{"for a moment": {15 * time.Second, 1}, "for long": {2 * time.Minute, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t)
				defer func() { h.hands.Evidence.Wait(); _ = h.log.Close() }()
				r := h.ask(50).ID
				s := seat{host: h, chance: locked(mrand.New(mrand.NewPCG(2, 2))), dead: context.Background()}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				ended := make(chan error, 1)
				go func() {
					ended <- (&runner.Runner{Claims: s, Records: s, Clock: wall.Clock{}, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
				}()
				down := func(is bool) {
					h.mu.Lock()
					defer h.mu.Unlock()
					h.gone = is
				}
				time.Sleep(10 * time.Second)
				down(true)
				time.Sleep(c.down)
				down(false)
				time.Sleep(5 * time.Minute)
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if doc, err := h.hands.Find(context.Background(), ws, r); err != nil || doc.Attempts != c.attempts {
					t.Errorf("got %s after %d attempts, want %d (%v)", doc.Status, doc.Attempts, c.attempts, err)
				}
				h.verify(r, 50)
			})
		})
	}
}

// TestWhatIsNoOrderFails gives an engine an input that it cannot read.
func TestOrders(t *testing.T) {
	for input, ok := range map[string]bool{
		`{"protocolVersion":"1.0","space_id":"spc_1","operations":[{}]}`: true,
		`{"protocolVersion":"1.1","space_id":"spc_1","operations":[{}]}`: false,
		`{"protocolVersion":"1.0","operations":[{}]}`:                    false,
		`{"protocolVersion":"1.0","space_id":"spc_1","operations":[]}`:   false, `[]`: false,
		``: false, `null`: false, `{"operations":1}`: false,
	} {
		if _, got := errand.ReadOrder(json.RawMessage(input)); got != ok {
			t.Errorf("%s: got %t", input, got)
		}
	}
}
