package rooms_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/room"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/spaces"
)

const ws = id.DefaultWorkspace

// clock goes on by a millisecond at each look.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.IsZero() {
		c.now = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	}
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func (c *clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// house is the service with everything around it.
type house struct {
	*rooms.Service
	t      testing.TB
	log    *memory.Journal
	gate   *gate.Gate
	people *identity.Service
	ids    *id.Source
	owner  principal.Caller
}

func build(t testing.TB) *house {
	t.Helper()
	c := &clock{}
	h := &house{t: t, ids: id.NewSource(c.Now, rand.Reader)}
	var err error
	if h.log, err = memory.NewJournal(append(append(gate.Definitions(), spaces.Definition()), rooms.Definitions()...), c, h.ids,
		rand.Reader); err != nil {
		t.Fatal(err)
	}
	if h.gate, err = gate.New(gate.Parts{Log: h.log, Docs: h.log, Evaluator: cedar.New(), Clock: c, IDs: h.ids}); err != nil {
		t.Fatal(err)
	}
	h.people = identity.New(identity.Parts{Log: h.log, Docs: h.log, Gate: h.gate, Clock: c, IDs: h.ids, Entropy: rand.Reader})
	h.Service = rooms.New(rooms.Parts{Log: h.log, Docs: h.log, Gate: h.gate, IDs: h.ids})
	owner, err := h.people.Owner(t.Context(), ws, "Olga")
	if err != nil {
		t.Fatal(err)
	}
	h.owner = principal.Caller{Principal: owner, Workspace: ws, Role: principal.Overlord}
	return h
}

func (h *house) person(role principal.Role) principal.Caller {
	h.t.Helper()
	p, err := h.people.AddPerson(h.t.Context(), origin(h.owner), ws, "person "+string(role), role)
	if err != nil {
		h.t.Fatal(err)
	}
	return principal.Caller{Principal: p, Workspace: ws, Role: role}
}

func (h *house) agent(name string) principal.Caller {
	h.t.Helper()
	p, err := h.people.Agent(h.t.Context(), origin(h.owner), ws, name)
	if err != nil {
		h.t.Fatal(err)
	}
	return principal.Caller{Principal: p, Workspace: ws}
}

// engine registers a service.
func (h *house) engine() principal.Caller {
	h.t.Helper()
	p := id.NewPrincipal(h.ids, id.Service)
	draft := event.New(principal.RegisteredType, origin(h.owner), ws, "", principal.Registered{Principal: p, Kind: id.Service,
		Name: "engine"}).About(principal.Entity, string(p))
	if _, err := h.log.Append(h.t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
		h.t.Fatal(err)
	}
	return principal.Caller{Principal: p, Workspace: ws}
}

func (h *house) thread() room.Thread {
	h.t.Helper()
	t, err := h.CreateThread(h.t.Context(), origin(h.owner), ws, id.DefaultRoom, room.ThreadCreated{Title: "talk"})
	if err != nil {
		h.t.Fatal(err)
	}
	return t
}

func (h *house) post(who principal.Caller, t id.Thread, text string) room.Message {
	h.t.Helper()
	m, err := h.Post(h.t.Context(), origin(who), who, t, room.MessageCreated{Content: text})
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

func origin(who principal.Caller) event.Origin { return event.Origin{Principal: who.Principal} }

// Identity comes from the key. The sender in a body counts if the caller is that principal or may speak for it, and the event has both.
func TestTrapIdentityFromTheBody(t *testing.T) {
	h := build(t)
	thread := h.thread()
	worker, other, engine := h.agent("worker"), h.agent("other"), h.engine()
	admin, operator := h.person(principal.Admin), h.person(principal.Operator)
	stranger := string(id.NewPrincipal(h.ids, id.Agent))
	for _, c := range []struct {
		name   string
		who    principal.Caller
		typ    id.PrincipalKind
		sender string
		code   string
	}{
		{"himself", operator, "", "", ""},
		{"himself by name", operator, id.User, string(operator.Principal), ""},
		{"himself as another kind", operator, id.Agent, string(operator.Principal), "invalid_sender"},
		{"a kind without a name", operator, id.Agent, "", "invalid_sender"},
		{"a name that is none", operator, id.Agent, "codex", "invalid_sender"},
		{"an owner for an agent", h.owner, id.Agent, string(worker.Principal), ""},
		{"an admin for an agent", admin, "", string(worker.Principal), ""},
		{"an engine for an agent", engine, id.Agent, string(worker.Principal), ""},
		{"an operator for an agent", operator, id.Agent, string(worker.Principal), "sender_not_permitted"},
		{"an agent for another", worker, id.Agent, string(other.Principal), "sender_not_permitted"},
		{"an owner for a person", h.owner, id.User, string(operator.Principal), "sender_not_permitted"},
		{"an engine for the owner", engine, id.User, string(h.owner.Principal), "sender_not_permitted"},
		{"an owner for a service", h.owner, id.Service, string(engine.Principal), "sender_not_permitted"},
		{"an agent that is not there", h.owner, id.Agent, stranger, "sender_not_found"},
		{"an agent that is not there, for who may not", operator, id.Agent, stranger, "sender_not_permitted"},
	} {
		posted, err := h.Post(t.Context(), origin(c.who), c.who, thread.ID, room.MessageCreated{Content: c.name, SenderType: c.typ,
			Sender: c.sender})
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %q", c.name, err, c.code)
			continue
		}
		if err != nil {
			continue
		}
		e, err := h.log.Get(t.Context(), ws, posted.Event)
		want := c.sender
		if want == "" {
			want = string(c.who.Principal)
		}
		if err != nil || e.Actor.ID != want || e.Principal != c.who.Principal || posted.Sender != want || posted.By != c.who.Principal ||
			e.Actor.Type != id.Principal(want).Kind() {
			t.Errorf("%s: recorded is %+v by %s, answered %+v, %v", c.name, e.Actor, e.Principal, posted, err)
		}
	}
}

// A principal who speaks for an agent has no more right to than the agent itself.
func TestNobodySpeaksForAnAgentThatMayNot(t *testing.T) {
	h := build(t)
	thread, worker := h.thread(), h.agent("worker")
	if err := h.people.Quarantine(t.Context(), origin(h.owner), ws, worker.Principal, true, "odd"); err != nil {
		t.Fatal(err)
	}
	_, err := h.Post(t.Context(), origin(h.owner), h.owner, thread.ID, room.MessageCreated{Content: "x", Sender: string(worker.Principal)})
	if fault.CodeOf(err) != policy.ReasonAgentQuarantined {
		t.Errorf("got %v, want %s", err, policy.ReasonAgentQuarantined)
	}
	refused, err := h.log.Read(t.Context(), journal.Query{Workspace: ws, Types: []string{policy.DeniedType}})
	if err != nil || len(refused) != 1 {
		t.Errorf("%d refusals are recorded, %v, want 1", len(refused), err)
	}
	if found, err := h.Messages(t.Context(), ws, thread.ID, "", 10); err != nil || len(found) != 0 {
		t.Errorf("the thread has %d messages, %v", len(found), err)
	}
}

func texts(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("t", i)
	}
	return list
}

// Each limit at its edge, and one beyond.
func TestLimits(t *testing.T) {
	h := build(t)
	thread := h.thread()
	x := strings.Repeat
	tools := func(list []string) room.Created { return room.Created{Title: "t", Context: room.Context{Tools: &list}} }
	prompt := func(n int) room.Created {
		text := x("x", n)
		return room.Created{Title: "t", Context: room.Context{Prompt: &text}}
	}
	memory := func(n int) room.Created {
		text := x("x", n)
		return room.Created{Title: "t", Context: room.Context{Memory: &text}}
	}
	for name, c := range map[string]struct {
		at, beyond room.Created
	}{
		"title":      {room.Created{Title: x("x", room.MaxTitle)}, room.Created{Title: x("x", room.MaxTitle+1)}},
		"lines":      {room.Created{Title: "größe 日本"}, room.Created{Title: "a\nb"}},
		"blank":      {room.Created{Title: "."}, room.Created{Title: "  "}},
		"topic":      {room.Created{Title: "t", Topic: x("x", room.MaxTopic)}, room.Created{Title: "t", Topic: x("x", room.MaxTopic+1)}},
		"mode":       {room.Created{Title: "t", Mode: x("x", room.MaxWord)}, room.Created{Title: "t", Mode: x("x", room.MaxWord+1)}},
		"word":       {room.Created{Title: "t", Lang: "pt-BR"}, room.Created{Title: "t", Lang: "pt BR"}},
		"tool set":   {room.Created{Title: "t", ToolPolicy: x("x", room.MaxRef)}, room.Created{Title: "t", ToolPolicy: x("x", room.MaxRef+1)}},
		"prompt":     {prompt(room.MaxPrompt), prompt(room.MaxPrompt + 1)},
		"memory":     {memory(room.MaxMemory), memory(room.MaxMemory + 1)},
		"tools":      {tools(texts(room.MaxAllowed)), tools(texts(room.MaxAllowed + 1))},
		"tool":       {tools([]string{x("x", room.MaxName)}), tools([]string{x("x", room.MaxName+1)})},
		"empty tool": {tools([]string{}), tools([]string{""})},
	} {
		if _, err := h.CreateRoom(t.Context(), origin(h.owner), ws, c.at); err != nil {
			t.Errorf("%s at the limit: %v", name, err)
		}
		if _, err := h.CreateRoom(t.Context(), origin(h.owner), ws, c.beyond); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s beyond it: %v, want invalid", name, err)
		}
	}
	for name, c := range map[string]struct {
		at, beyond room.MessageCreated
		kind       fault.Kind
	}{
		"content": {room.MessageCreated{Content: x("x", room.MaxContent)}, room.MessageCreated{Content: x("x", room.MaxContent+1)},
			fault.Exhausted},
		"labels": {room.MessageCreated{Content: "c", Labels: texts(room.MaxLabels)}, room.MessageCreated{Content: "c",
			Labels: texts(room.MaxLabels + 1)}, fault.Invalid},
		"label": {room.MessageCreated{Content: "c", Labels: []string{x("x", room.MaxWord)}}, room.MessageCreated{Content: "c",
			Labels: []string{x("x", room.MaxWord+1)}}, fault.Invalid},
		"version": {room.MessageCreated{Content: "c", SchemaVersion: x("1", room.MaxWord)}, room.MessageCreated{Content: "c",
			SchemaVersion: x("1", room.MaxWord+1)}, fault.Invalid},
		"text":    {room.MessageCreated{Content: "é"}, room.MessageCreated{Content: "\xff"}, fault.Invalid},
		"nothing": {room.MessageCreated{Content: "."}, room.MessageCreated{Content: " \n"}, fault.Invalid},
	} {
		if _, err := h.Post(t.Context(), origin(h.owner), h.owner, thread.ID, c.at); err != nil {
			t.Errorf("%s at the limit: %v", name, err)
		}
		if _, err := h.Post(t.Context(), origin(h.owner), h.owner, thread.ID, c.beyond); err == nil || fault.KindOf(err) != c.kind {
			t.Errorf("%s beyond it: %v, want %s", name, err, c.kind)
		}
	}
}

func TestTheContextIsInherited(t *testing.T) {
	h := build(t)
	text := func(s string) *string { return &s }
	list := func(s ...string) *[]string { s = append([]string{}, s...); return &s }
	holds := func(r id.Room, want room.Context) {
		t.Helper()
		doc, err := h.Room(t.Context(), ws, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.Context(t.Context(), doc)
		if err != nil || shown(got) != shown(want) {
			t.Errorf("got %s, %v, want %s", shown(got), err, shown(want))
		}
	}
	set := func(d room.DefaultsSet) {
		t.Helper()
		if _, err := h.SetDefaults(t.Context(), origin(h.owner), ws, d); err != nil {
			t.Fatal(err)
		}
	}
	lab, err := h.CreateRoom(t.Context(), origin(h.owner), ws, room.Created{Title: "lab", Context: room.Context{Tools: list()}})
	if err != nil {
		t.Fatal(err)
	}
	holds(id.DefaultRoom, room.Context{})
	holds(lab.ID, room.Context{Tools: list()})
	set(room.DefaultsSet{Context: room.Context{Prompt: text("be kind"), Tools: list("shell"), Models: list("small")}})
	holds(id.DefaultRoom, room.Context{Prompt: text("be kind"), Tools: list("shell"), Models: list("small")})
	holds(lab.ID, room.Context{Prompt: text("be kind"), Tools: list(), Models: list("small")}) // nothing is allowed there, still
	if _, err := h.UpdateRoom(t.Context(), origin(h.owner), ws, id.DefaultRoom,
		room.Updated{Context: room.Context{Prompt: text("")}}); err != nil {
		t.Fatal(err)
	}
	holds(id.DefaultRoom, room.Context{Prompt: text(""), Tools: list("shell"), Models: list("small")})
	if _, err := h.UpdateRoom(t.Context(), origin(h.owner), ws, id.DefaultRoom,
		room.Updated{Inherit: []string{room.FieldPrompt}}); err != nil {
		t.Fatal(err)
	}
	set(room.DefaultsSet{Inherit: []string{room.FieldTools}})
	holds(id.DefaultRoom, room.Context{Prompt: text("be kind"), Models: list("small")})
	if _, err := h.UpdateRoom(t.Context(), origin(h.owner), "ws_other", lab.ID, room.Updated{Title: text("mine")}); !errors.Is(err,
		room.ErrNoRoom) {
		t.Errorf("a room through another workspace: %v, want %v", err, room.ErrNoRoom)
	}
}

func shown(c room.Context) string {
	out := ""
	for _, p := range []*string{c.Prompt, c.Memory} {
		if p != nil {
			out += fmt.Sprintf("%q ", *p)
		}
		out += "|"
	}
	for _, p := range []*[]string{c.Tools, c.Models} {
		if p != nil {
			out += fmt.Sprintf("%q ", *p)
		}
		out += "|"
	}
	return out
}

// Agents and members may say what was said; only owners and admins say what agents are told.
func TestWhoConfigures(t *testing.T) {
	h := build(t)
	text := "x"
	for who, may := range map[*principal.Caller][2]bool{
		new(h.owner): {true, true}, new(h.person(principal.Admin)): {true, true}, new(h.person(principal.Operator)): {true, false},
		new(h.agent("worker")): {true, false}, new(h.engine()): {true, false}, new(h.person(principal.Viewer)): {false, false},
	} {
		for i, u := range []room.Updated{{Context: room.Context{Memory: &text}}, {Context: room.Context{Prompt: &text}}} {
			if _, err := h.UpdateRoom(t.Context(), origin(*who), ws, id.DefaultRoom, u); may[i] != (err == nil) || err != nil &&
				fault.CodeOf(err) != policy.ReasonRoleTooLow {
				t.Errorf("%s %s, %d: got %v, want allowed: %t", who.Principal, who.Role, i, err, may[i])
			}
		}
		if _, err := h.SetDefaults(t.Context(), origin(*who), ws,
			room.DefaultsSet{Context: room.Context{Memory: &text}}); may[1] != (err == nil) {
			t.Errorf("%s %s sets the defaults: %v, want allowed: %t", who.Principal, who.Role, err, may[1])
		}
	}
}

// Of many who post while the thread is closed and opened, each message lies in front of the closing or behind the opening.
func TestPostsAndClosingsAreInOneOrder(t *testing.T) {
	h := build(t)
	thread := h.thread()
	refused, over := make(chan struct{}, 1), make(chan struct{})
	var posting sync.WaitGroup
	for n := range 8 {
		posting.Go(func() {
			for {
				_, err := h.Post(t.Context(), origin(h.owner), h.owner, thread.ID, room.MessageCreated{Content: fmt.Sprint(n)})
				if errors.Is(err, room.ErrClosed) {
					select {
					case refused <- struct{}{}:
					default:
					}
				} else if err != nil && !errors.Is(err, journal.ErrConflict) {
					t.Error(err)
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	for n := range 20 {
		status := []room.Status{room.Closed, room.Open}[n%2]
		if _, err := h.UpdateThread(t.Context(), origin(h.owner), ws, thread.ID, room.ThreadUpdated{Status: &status}); err != nil {
			t.Error(err)
		}
		if n == 0 { // it is closed for the first time, and others go on to post
			select {
			case <-refused:
			case <-time.After(time.Minute):
				t.Error("no post was refused while the thread was closed")
			}
		}
	}
	close(over)
	posting.Wait()
	events, err := h.log.Read(t.Context(), journal.Query{Workspace: ws, Thread: thread.ID, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	doc := room.Thread{}
	for _, e := range events {
		if e.Type == room.EventMessageCreated && doc.Status != room.Open {
			t.Fatalf("event %d posts into a thread that is %s", e.Seq, doc.Status)
		}
		if doc, err = doc.Evolve(e); err != nil {
			t.Fatal(err)
		}
	}
}

// A request that is sent again is answered as it was, whatever has happened meanwhile, and records nothing.
func TestRepeatsAreAnsweredAsTheyWere(t *testing.T) {
	h := build(t)
	thread := h.thread()
	once := event.Origin{Principal: h.owner.Principal, Key: "http:1", Command: event.DigestOf([]byte("post"))}
	first, err := h.Post(t.Context(), once, h.owner, thread.ID, room.MessageCreated{Content: "once"})
	if err != nil {
		t.Fatal(err)
	}
	closed := room.Closed
	if _, err := h.UpdateThread(t.Context(), origin(h.owner), ws, thread.ID, room.ThreadUpdated{Status: &closed}); err != nil {
		t.Fatal(err)
	}
	again, err := h.Post(t.Context(), once, h.owner, thread.ID, room.MessageCreated{Content: "once"})
	if err != nil || again.ID != first.ID || again.Content != "once" {
		t.Errorf("got %+v, %v, want %+v", again, err, first)
	}
	if found, err := h.Messages(t.Context(), ws, thread.ID, "", 10); err != nil || len(found) != 1 {
		t.Errorf("the thread has %d messages, %v, want 1", len(found), err)
	}
}

// A page of a thread is a range of one index, whatever else there is.
func TestPages(t *testing.T) {
	h := build(t)
	one, two := h.thread(), h.thread()
	var want []id.Message
	for n := range 25 {
		want = append([]id.Message{h.post(h.owner, one.ID, fmt.Sprint(n)).ID}, want...)
		h.post(h.owner, two.ID, "elsewhere")
	}
	var got []id.Message
	for before := id.Message(""); ; {
		page, err := h.Messages(t.Context(), ws, one.ID, before, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			got = append(got, m.ID)
		}
		if len(page) < 10 {
			break
		}
		before = page[9].ID
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	at, err := h.Message(t.Context(), ws, want[10])
	if err != nil {
		t.Fatal(err)
	}
	before, err := rooms.ParseBefore(at.CreatedAt.Add(time.Millisecond).Format(time.RFC3339Nano))
	if err != nil {
		t.Fatal(err)
	}
	if page, err := h.Messages(t.Context(), ws, one.ID, before, 1); err != nil || len(page) != 1 || page[0].ID != want[10] &&
		page[0].ID != want[11] {
		t.Errorf("in front of the time of %s lies %+v, %v", want[10], page, err)
	}
	for _, text := range []string{"yesterday", "msg_", "th_01M7YNAYM0SM228XA4K3G6VDD4", "2026-11-22"} {
		if _, err := rooms.ParseBefore(text); !errors.Is(err, rooms.ErrBefore) {
			t.Errorf("%q: %v, want %v", text, err, rooms.ErrBefore)
		}
	}
}

// The default room is in every list once, the last, whether or not anything was said of it.
func TestTheDefaultRoomIsListedOnce(t *testing.T) {
	h := build(t)
	title := "hall"
	for _, change := range []func() error{
		func() error { return nil },
		func() error {
			_, err := h.CreateRoom(t.Context(), origin(h.owner), ws, room.Created{Title: "lab"})
			return err
		},
		func() error {
			_, err := h.UpdateRoom(t.Context(), origin(h.owner), ws, id.DefaultRoom, room.Updated{Title: &title})
			return err
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{1, 2, 10} {
			var all []room.Room
			for after := id.Room(""); ; {
				page, err := h.Rooms(t.Context(), ws, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				all = append(all, page...)
				after = page[len(page)-1].ID
			}
			seen := 0
			for _, r := range all {
				if r.ID == id.DefaultRoom {
					seen++
				}
			}
			if seen != 1 || all[len(all)-1].ID != id.DefaultRoom {
				t.Errorf("by %d: got %+v", limit, all)
			}
		}
	}
	if r, err := h.Room(t.Context(), ws, id.DefaultRoom); err != nil || r.Title != "hall" || r.ID != id.DefaultRoom {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A principal who is unknown in the workspace cannot act in it, and no refusal of theirs is recorded.
func TestNobody(t *testing.T) {
	h := build(t)
	nobody := principal.Caller{Principal: id.NewPrincipal(h.ids, id.User), Workspace: ws}
	before, err := h.log.Head(context.Background(), ws)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.CreateRoom(t.Context(), origin(nobody), ws, room.Created{Title: "x", ToolPolicy: "p"}); fault.CodeOf(
		err) != policy.ReasonPrincipalNotFound {
		t.Errorf("got %v", err)
	}
	if after, err := h.log.Head(context.Background(), ws); err != nil || after != before {
		t.Errorf("%d events were recorded, %v", after-before, err)
	}
}

// A post into a closed thread is refused and records nothing; once the thread is open again, posts are taken.
func TestAClosedThreadTakesNoPosts(t *testing.T) {
	h := build(t)
	thread := h.thread()
	post := func() error {
		_, err := h.Post(t.Context(), origin(h.owner), h.owner, thread.ID, room.MessageCreated{Content: "hello"})
		return err
	}
	set := func(status room.Status) {
		t.Helper()
		if _, err := h.UpdateThread(t.Context(), origin(h.owner), ws, thread.ID, room.ThreadUpdated{Status: &status}); err != nil {
			t.Fatal(err)
		}
	}
	set(room.Closed)
	before, err := h.log.Head(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	if err := post(); !errors.Is(err, room.ErrClosed) {
		t.Errorf("closed: got %v, want %v", err, room.ErrClosed)
	}
	if after, err := h.log.Head(t.Context(), ws); err != nil || after != before {
		t.Errorf("closed: %d events were recorded, %v", after-before, err)
	}
	set(room.Open)
	if err := post(); err != nil {
		t.Errorf("open again: %v", err)
	}
}
