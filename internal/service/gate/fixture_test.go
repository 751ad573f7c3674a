package gate_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	runs "agentbox/internal/domain/run"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/workspaces"
)

const ws = id.DefaultWorkspace

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

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
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

var _ io.Reader = (*chance)(nil)

// house is a gate with everything around it.
type house struct {
	*gate.Gate
	*identity.Service
	t       testing.TB
	log     *memory.Journal
	clock   *clock
	ids     *id.Source
	entropy *chance
	parts   gate.Parts
	owner   id.Principal
	agent   id.Principal
	bundles map[string]policy.Bundle
}

// evaluator compiles each bundle once for all tests, by the hash of the bundle.
var evaluator = cedar.New()

func build(t testing.TB, change func(*gate.Parts)) *house {
	t.Helper()
	c := &clock{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	entropy := &chance{}
	ids := id.NewSource(c.Now, entropy)
	nobodys := projection.Define(runs.Projection, 1, func(event.Event) []string { return nil }, func(r runs.Run, _ string,
		_ event.Event) (runs.Run, error) {
		return r, nil
	}, nil)
	log, err := memory.NewJournal(append(append(gate.Definitions(), rooms.Definitions()...), spaces.Definition(), workspaces.Definition(),
		nobodys), c, ids, entropy)
	if err != nil {
		t.Fatal(err)
	}
	parts := gate.Parts{Log: log, Docs: log, Evaluator: evaluator, Clock: c, IDs: ids}
	if change != nil {
		change(&parts)
	}
	h := &house{t: t, log: log, clock: c, ids: ids, entropy: entropy, parts: parts, bundles: map[string]policy.Bundle{}}
	h.restart()
	ctx := context.Background()
	if h.owner, err = h.Owner(ctx, ws, "Olga Owner"); err != nil {
		t.Fatal(err)
	}
	if h.agent, err = h.Agent(ctx, h.origin(h.owner), ws, "worker"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"restrictive", "standard", "permissive"} {
		if h.bundles[name], err = h.Bundles.Pin(ctx, h.origin(h.owner), ws, name, nil); err != nil {
			t.Fatal(err)
		}
	} // The preset standard, with the guard on names that its wall covers for what people bring in.
	guard := []byte(`{"deny":{"paths":["*.env","*.key","*.pem",".git/**"]}}`)
	if h.bundles["guarded"], err = h.Bundles.Pin(ctx, h.origin(h.owner), ws, "standard", guard); err != nil {
		t.Fatal(err)
	}

	return h
}

// restart makes the gate anew over the same log.
func (h *house) restart() {
	h.t.Helper()
	g, err := gate.New(h.parts)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Gate = g
	h.Service = identity.New(identity.Parts{Log: h.parts.Log, Docs: h.parts.Docs, Gate: g, Clock: h.parts.Clock, IDs: h.parts.IDs,
		Entropy: h.entropy})
}

func (h *house) origin(p id.Principal) event.Origin {
	return event.Origin{Principal: p, Correlation: "cor_test"}
}

// person adds a person with a role.
func (h *house) person(name string, role principal.Role) id.Principal {
	h.t.Helper()
	p, err := h.AddPerson(context.Background(), h.origin(h.owner), ws, name, role)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// service registers a program.
func (h *house) service(name string, role principal.Role) id.Principal {
	h.t.Helper()
	p := id.NewPrincipal(h.ids, id.Service)
	draft := event.New(principal.RegisteredType, h.origin(h.owner), ws, "", principal.Registered{Principal: p, Kind: id.Service, Name: name,
		Role: role})
	batch := event.Batch{Workspace: ws, Drafts: []event.Draft{draft.About(principal.Entity, string(p))}}
	if _, err := h.log.Append(context.Background(), batch); err != nil {
		h.t.Fatal(err)
	}
	return p
}

const (
	room  = id.Room("room_00000000000000000000000000")
	space = id.Space("spc_00000000000000000000000001")
	run   = id.Run("run_00000000000000000000000001")
)

// shell is the action of a command line under a preset.
func (h *house) shell(preset, command string) policy.Action {
	return policy.Action{
		Type: policy.ShellExec, Workspace: ws, Room: room, Space: space, Run: run, Principal: h.agent, Operation: "op-1",
		Command: command, Argv: []string{"/bin/bash", "-c", command}, TimeoutMS: 10_000, Bundle: h.bundles[preset].Hash,
	}
}

func (h *house) file(preset, typ, path string) policy.Action {
	return policy.Action{
		Type: typ, Workspace: ws, Room: room, Space: space, Run: run, Principal: h.agent, Operation: "op-1", Path: path,
		Bundle: h.bundles[preset].Hash,
	}
}

func (h *house) judge(a policy.Action) policy.Ruling {
	h.t.Helper()
	r, err := h.Judge(context.Background(), a)
	if err != nil {
		h.t.Fatalf("judge %s: %v", policy.Title(a), err)
	}
	return r
}

// intent is what a caller records before an effect.
func (h *house) intent(a policy.Action) event.Batch {
	draft := event.New("tool.invoked", h.origin(a.Principal), ws, a.Room, map[string]string{"title": policy.Title(a)}).In(a.Run, a.Step)
	return event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}
}

// asked asks about an action that needs approval.
func (h *house) asked(a policy.Action) (policy.Ruling, policy.Approval) {
	h.t.Helper()
	r := h.judge(a)
	if r.Decision.Outcome != policy.RequireApproval {
		h.t.Fatalf("%s: got %s (%s), want require_approval", policy.Title(a), r.Decision.Outcome, r.Decision.Reason)
	}
	q, err := h.Ask(context.Background(), h.origin(a.Principal), r, policy.Ask{}, event.Batch{Workspace: ws})
	if err != nil {
		h.t.Fatalf("ask: %v", err)
	}
	return r, q
}

func (h *house) approve(q policy.Approval, by id.Principal) policy.Approval {
	h.t.Helper()
	doc, err := h.Approvals.Decide(context.Background(), h.origin(by), ws, q.ID, policy.Answer{Decision: policy.Approve})
	if err != nil {
		h.t.Fatalf("approve: %v", err)
	}
	return doc
}

// count returns how many events of a type the workspace has.
func (h *house) count(typ string) int {
	h.t.Helper()
	n := 0
	for _, e := range h.events() {
		if e.Type == typ {
			n++
		}
	}
	return n
}

func (h *house) events() []event.Event {
	h.t.Helper()
	return h.eventsOf(ws)
}

func (h *house) eventsOf(ws id.Workspace) []event.Event {
	h.t.Helper()
	var all []event.Event
	for {
		page, err := h.log.Read(context.Background(), journal.Query{Workspace: ws, From: uint64(len(all)) + 1, Limit: journal.MaxRead})
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, page...)
		if len(page) < journal.MaxRead {
			return all
		}
	}
}

// dump writes every document of a projection.
func (h *house) dump(name string) string {
	h.t.Helper()
	docs, err := h.log.Documents(context.Background(), projection.Query{Workspace: ws, Name: name, Limit: 1000})
	if err != nil {
		h.t.Fatal(err)
	}
	var out strings.Builder
	for _, d := range docs {
		fmt.Fprintf(&out, "%s %d %d %s\n", d.Key, d.Version, d.Seq, d.Body)
	}
	return out.String()
}
