package identity_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/workspaces"
)

const (
	ws   = id.DefaultWorkspace
	room = id.Room("room_00000000000000000000000001")
)

// clock is a clock that stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// chance is a source of bytes that is the same in every run.
type chance struct {
	mu sync.Mutex
	n  uint64
}

func (c *chance) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range p {
		if i%32 == 0 {
			c.n++
		}
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, c.n))
		p[i] = sum[i%32]
	}
	return len(p), nil
}

// office is the identity service with the gate that it asks, and some people.
type office struct {
	*identity.Service
	t                                                   *testing.T
	gate                                                *gate.Gate
	log                                                 *memory.Journal
	clock                                               *clock
	owner, admin, operator, member, viewer, agent, stub id.Principal
}

// evaluator is one for all tests: it keeps what it compiled, by the digest of the bundle.
var evaluator = cedar.New()

func open(t *testing.T) *office {
	t.Helper()
	return openOver(t, nil)
}

// openOver is open with a service that reads and writes over a log that may fail.
func openOver(t *testing.T, f *frail) *office {
	t.Helper()
	c, entropy := &clock{now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}, &chance{}
	ids := id.NewSource(c.Now, entropy)
	log, err := memory.NewJournal(append(gate.Definitions(), spaces.Definition(), runs.Definition(), workspaces.Definition()), c, ids, entropy)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{Log: log, Docs: log, Evaluator: evaluator, Clock: c, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t, gate: g, log: log, clock: c}
	parts := identity.Parts{Log: log, Docs: log, Gate: g, Clock: c, IDs: ids, Entropy: entropy,
		Secret: []byte("0123456789abcdef0123456789abcdef")}
	if f != nil {
		*f = frail{Journal: log, docs: log, entropy: entropy, garbled: f.garbled}
		parts.Log, parts.Docs, parts.Entropy = f, f, chanceOf{f}
	}
	o.Service = identity.New(parts)
	o.Cheapen()
	ctx := t.Context()
	if o.owner, err = o.Owner(ctx, ws, "Olga"); err != nil {
		t.Fatal(err)
	}
	for role, p := range map[principal.Role]*id.Principal{principal.Admin: &o.admin, principal.Operator: &o.operator,
		principal.Member: &o.member, principal.Viewer: &o.viewer} {
		if *p, err = o.AddPerson(ctx, o.as(o.owner), ws, string(role), role); err != nil {
			t.Fatal(err)
		}
	}
	if o.agent, err = o.Agent(ctx, o.as(o.owner), ws, "worker"); err != nil {
		t.Fatal(err)
	}
	if o.stub, err = o.Agent(ctx, o.as(o.agent), ws, "worker's own"); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) as(p id.Principal) event.Origin {
	return event.Origin{Principal: p, Correlation: "cor_test"}
}

// under is as, under a capability token.
func (o *office) under(p id.Principal, t id.Token) event.Origin {
	origin := o.as(p)
	origin.Token = t
	return origin
}

// give grants a token, which has to succeed.
func (o *office) give(origin event.Origin, g token.Grant) identity.Issued {
	o.t.Helper()
	made, err := o.Grant(o.t.Context(), origin, ws, g)
	if err != nil {
		o.t.Fatalf("grant: %v", err)
	}
	return made
}

// want compares the code of an error, "" for none.
func (o *office) want(what string, err error, code string) {
	o.t.Helper()
	if got := fault.CodeOf(err); got != code || (err == nil) != (code == "") {
		o.t.Errorf("%s: got %q (%v), want %q", what, got, err, code)
	}
}

// says records that somebody posted a message in a room, under a token.
func (o *office) says(p id.Principal, t id.Token, in id.Room) error {
	_, err := o.gate.Record(o.t.Context(), o.under(p, t), policy.Action{Type: policy.MessageCreate, Workspace: ws, Room: in, Principal: p},
		event.Batch{
			Workspace: ws, Drafts: []event.Draft{event.New("test.said", o.under(p, t), ws, in, struct{}{})},
		})
	return err
}

// last returns the last event of a type.
func (o *office) last(typ string) event.Event {
	o.t.Helper()
	found, err := o.log.Read(context.Background(), journal.Query{Workspace: ws, Types: []string{typ}, Last: true, Limit: 1})
	if err != nil || len(found) != 1 {
		o.t.Fatalf("no event %s: %v", typ, err)
	}
	return found[0]
}

func (o *office) count(typ string) int {
	o.t.Helper()
	found, err := o.log.Read(context.Background(), journal.Query{Workspace: ws, Types: []string{typ}, Limit: journal.MaxRead})
	if err != nil {
		o.t.Fatal(err)
	}
	return len(found)
}
