package engines_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/claim"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/spaces"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ws = id.DefaultWorkspace

// clock is set by the test, ahead and back; in a bubble it is that of the bubble.
type clock struct {
	bubble bool
	mu     sync.Mutex
	now    time.Time
}

// Now implements event.Clock.
func (c *clock) Now() time.Time {
	if c.bubble {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NewTimer implements event.Clock.
func (c *clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	if !c.bubble {
		panic("nobody waits here")
	}
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// house is the engines service in memory, with an owner and engines.
type house struct {
	*engines.Service
	t      testing.TB
	log    *memory.Journal
	blobs  *memory.Blobs
	gate   *gate.Gate
	people *identity.Service
	clock  *clock
	owner  event.Origin
}

// newHouse makes a house. The caller closes its log: a property makes many in one test.
func newHouse(t testing.TB) *house {
	return newHouseOn(t, &clock{now: time.UnixMilli(1_800_000_000_000).UTC()})
}

func newHouseOn(t testing.TB, c *clock) *house {
	t.Helper()
	h := &house{t: t, clock: c, blobs: memory.NewBlobs()}
	ids := id.NewSource(h.clock.Now, rand.Reader)
	var err error
	if h.log, err = memory.NewJournal(documents.All(), h.clock, ids, rand.Reader); err != nil {
		t.Fatal(err)
	}
	if h.gate, err = gate.New(gate.Parts{Log: h.log, Docs: h.log, Evaluator: evaluator, Clock: h.clock, IDs: ids}); err != nil {
		t.Fatal(err)
	}
	h.people = identity.New(identity.Parts{Log: h.log, Docs: h.log, Gate: h.gate, Clock: h.clock, IDs: ids, Entropy: rand.Reader})
	tokens, err := claim.NewTokens(make([]byte, claim.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	seal, err := policy.NewSeal(make([]byte, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	h.Service = engines.New(engines.Parts{
		Seal: seal,
		Log:  h.log, Docs: h.log, Blobs: h.blobs, MaxContent: 1 << 30, Gate: h.gate, Tokens: tokens, Clock: h.clock, IDs: ids,
		Logger: slog.New(slog.DiscardHandler),
		Place:  func(context.Context, id.Workspace, id.Room, id.Thread) error { return nil },
	})
	owner, err := h.people.Owner(context.Background(), ws, "owner")
	if err != nil {
		t.Fatal(err)
	}
	h.owner = event.Origin{Principal: owner}
	return h
}

// open is newHouse for a test of its own.
func open(t *testing.T) *house {
	h := newHouse(t)
	t.Cleanup(h.close)
	return h
}

func (h *house) close() {
	h.Evidence.Wait()
	if err := h.log.Close(); err != nil {
		h.t.Error(err)
	}
}

func (h *house) ask(input string) run.Run {
	h.t.Helper()
	q := engines.Request{Workspace: ws, Room: spaces.DefaultRoom, Title: "a run"}
	if input != "" {
		q.Input = json.RawMessage(input)
	}
	doc, err := h.Create(context.Background(), h.owner, q)
	if err != nil {
		h.t.Fatal(err)
	}
	return doc
}

func (h *house) claim() (run.Run, engines.Hold) {
	h.t.Helper()
	doc, token, err := h.Claim(context.Background(), h.owner, ws, engines.Wanted{})
	if err != nil {
		h.t.Fatal(err)
	}
	return doc, engines.Hold{Workspace: ws, Run: doc.ID, Token: token}
}

func (h *house) code(err error, want string) {
	h.t.Helper()
	if got := fault.CodeOf(err); got != want {
		h.t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func (h *house) head() uint64 {
	h.t.Helper()
	head, err := h.log.Head(context.Background(), ws)
	if err != nil {
		h.t.Fatal(err)
	}
	return head
}

// evaluator is one for all tests: it keeps what it compiled, by the digest of the bundle.
var evaluator = cedar.New()
