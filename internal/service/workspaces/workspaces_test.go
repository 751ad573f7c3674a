package workspaces_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/workspaces"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const home = id.DefaultWorkspace

// clock stands still.
type clock struct{ now time.Time }

func (c clock) Now() time.Time                                    { return c.now }
func (c clock) NewTimer(time.Duration) (<-chan time.Time, func()) { panic("nobody waits here") }

// log is a journal whose daemon dies in front of its next append of a type, as often as it is told to.
type log struct {
	*memory.Journal
	mu   sync.Mutex
	dies string
	race func() // done once in front of the next append of the type
}

// Append implements journal.Journal.
func (l *log) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	l.mu.Lock()
	hit := l.dies != "" && b.Drafts[0].Type == l.dies
	race := l.race
	if hit && race != nil {
		l.dies, l.race = "", nil
	}
	l.mu.Unlock()
	switch {
	case hit && race != nil:
		race()
	case hit:
		return event.Receipt{}, journal.ErrClosed
	}
	return l.Journal.Append(ctx, b)
}

func (l *log) before(typ string, race func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dies, l.race = typ, race
}

// house is the service in memory with an owner of the installation.
type house struct {
	*workspaces.Service
	t      *testing.T
	log    *log
	gate   *gate.Gate
	people *identity.Service
	owner  principal.Caller
}

func open(t *testing.T) *house {
	t.Helper()
	c := clock{time.UnixMilli(1_800_000_000_000).UTC()}
	ids := id.NewSource(c.Now, rand.Reader)
	base, err := memory.NewJournal(documents.All(), c, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, log: &log{Journal: base}}
	t.Cleanup(func() {
		if err := base.Close(); err != nil {
			t.Error(err)
		}
	})
	h.gate, err = gate.New(gate.Parts{Log: h.log, Docs: base, Evaluator: cedar.New(), Clock: c, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	h.people = identity.New(identity.Parts{Log: h.log, Docs: base, Gate: h.gate, Clock: c, IDs: ids, Entropy: rand.Reader,
		Secret: []byte("0123456789abcdef0123456789abcdef")})
	h.Service = workspaces.New(workspaces.Parts{Log: h.log, Docs: base, Gate: h.gate, IDs: ids, Owner: h.people.Owner,
		IssueKey: h.people.IssueKey})
	h.owner = h.caller(home)
	return h
}

// caller is the owner of a workspace.
func (h *house) caller(ws id.Workspace) principal.Caller {
	h.t.Helper()
	owner, err := h.people.Owner(context.Background(), ws, "owner")
	if err != nil {
		h.t.Fatal(err)
	}
	return principal.Caller{Principal: owner, Workspace: ws, Role: principal.Overlord}
}

// as is what somebody asks for, once.
func as(c principal.Caller, key string) event.Origin {
	o := event.Origin{Principal: c.Principal}
	if key != "" {
		o.Key, o.Command = key, event.DigestOf([]byte(key))
	}
	return o
}

func (h *house) make(ws id.Workspace) {
	h.t.Helper()
	if _, err := h.Create(h.t.Context(), as(h.owner, ""), home, workspaces.Request{Created: workspace.Created{Workspace: ws}}); err != nil {
		h.t.Fatal(err)
	}
}

// told are the types of the events of a workspace that tell of it.
func (h *house) told(ws id.Workspace) (types []string) {
	h.t.Helper()
	found, err := h.log.Read(h.t.Context(), journal.Query{Workspace: ws, Limit: 1000})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range found {
		if workspace.Tells(e) || e.EntityType == workspace.EntityType {
			types = append(types, e.Type)
		}
	}
	return types
}

func (h *house) want(what string, err error, code string) {
	h.t.Helper()
	if got := fault.CodeOf(err); got != code {
		h.t.Errorf("%s: %q (%v), want %q", what, got, err, code)
	}
}

// TestACrashLeavesNothingHalfMade dies in front of each event of a creation. A repeat of the request finishes it, once; of another
// request under the same name nothing comes.
func TestACrashLeavesNothingHalfMade(t *testing.T) {
	for _, typ := range []string{workspace.EventCreateOrdered, workspace.EventCreated, principal.RegisteredType, principal.KeyIssuedType} {
		t.Run(typ, func(t *testing.T) {
			h, ctx := open(t), t.Context()
			q := workspaces.Request{Created: workspace.Created{Workspace: "ws_new", Tasks: 7}, Owner: "Nora"}
			h.log.before(typ, nil)
			if _, err := h.Create(ctx, as(h.owner, "one"), home, q); err == nil {
				t.Fatal("it was made by a daemon that died")
			}
			h.log.before("", nil)
			if typ != workspace.EventCreateOrdered {
				other := workspaces.Request{Created: workspace.Created{Workspace: "ws_new", Tasks: 9}}
				_, err := h.Create(ctx, as(h.owner, "two"), home, other)
				if typ == workspace.EventCreated {
					h.want("another order of a name that nobody has taken", err, "")
					_, err = h.Create(ctx, as(h.owner, "one"), home, q)
					h.want("the first order then", err, workspace.ErrExists.Code)
					return
				}
				h.want("another order of the same name", err, workspace.ErrExists.Code)
			}
			made, err := h.Create(ctx, as(h.owner, "one"), home, q)
			if err != nil || made.ID != "ws_new" || made.Tasks != 7 || made.Owner == "" || made.Text == "" {
				t.Fatalf("the repeat: %+v, %v", made, err)
			}
			again, err := h.Create(ctx, as(h.owner, "one"), home, q)
			if err != nil || again.Text != "" || again.Key.ID != made.Key.ID || again.Owner != made.Owner {
				t.Errorf("the second repeat: %+v, %v", again, err)
			}
			if got := h.told("ws_new"); len(got) != 1 || got[0] != workspace.EventCreated {
				t.Errorf("the workspace was told of %v", got)
			}
			if who, err := h.people.Authenticate(ctx, made.Text); err != nil || who.Principal != made.Owner || who.Workspace != "ws_new" {
				t.Errorf("the key is of %+v, %v", who, err)
			}
		})
	}
}

// TestAChangeThatACrashCutOff dies between the order of a change and the change, and repeats it; a later change is not undone by a repeat.
func TestAChangeThatACrashCutOff(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.make("ws_a")
	for _, s := range []struct {
		typ string
		do  func(key string) (workspace.Workspace, error)
		ok  func(workspace.Workspace) bool
	}{
		{workspace.EventUpdated, func(key string) (workspace.Workspace, error) {
			return h.Update(ctx, as(h.owner, key), h.owner, workspace.Updated{Workspace: "ws_a", Name: "Wide", Tasks: 50})
		}, func(w workspace.Workspace) bool { return w.Tasks == 50 && w.Name == "Wide" }},
		{workspace.EventArchived, func(key string) (workspace.Workspace, error) {
			return h.Archive(ctx, as(h.owner, key), h.owner, "ws_a", "over")
		}, workspace.Workspace.Archived},
		{workspace.EventUnarchived, func(key string) (workspace.Workspace, error) {
			return h.Unarchive(ctx, as(h.owner, key), h.owner, "ws_a", "back")
		}, func(w workspace.Workspace) bool { return !w.Archived() && w.Reason == "" && w.ArchivedAt.IsZero() }},
	} {
		key := s.typ
		h.log.before(s.typ, nil)
		if _, err := s.do(key); err == nil {
			t.Errorf("%s by a daemon that died", s.typ)
		}
		h.log.before("", nil)
		for n := range 3 {
			if doc, err := s.do(key); err != nil || !s.ok(doc) {
				t.Errorf("%s, repeat %d: %+v, %v", s.typ, n, doc, err)
			}
		}
	}
	if got, want := fmt.Sprint(h.told("ws_a")), fmt.Sprint([]string{workspace.EventCreated, workspace.EventUpdated, workspace.EventArchived,
		workspace.EventUnarchived}); got != want {
		t.Errorf("the workspace was told of %s, want %s", got, want)
	}
	if doc, err := h.Archive(ctx, as(h.owner, workspace.EventArchived), h.owner, "ws_a", "over"); err != nil || doc.Archived() {
		t.Errorf("a repeat of the archiving archived it again: %+v, %v", doc, err)
	}
	orders := 0
	for _, typ := range h.told(home) {
		if typ != workspace.EventCreateOrdered {
			orders++
		}
	}
	if orders != 3 {
		t.Errorf("%d changes were ordered, want 3", orders)
	}
}

// TestOfAnEffectAndAnArchivingOneComesFirst archives a workspace between the decision about an effect in it and its intent.
func TestOfAnEffectAndAnArchivingOneComesFirst(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.make("ws_a")
	who := h.caller("ws_a")
	action := policy.Action{Type: policy.RoomCreate, Workspace: "ws_a", Principal: who.Principal}
	intent := event.Batch{Workspace: "ws_a", Drafts: []event.Draft{event.New("room.created", as(who, ""), "ws_a",
		"room_01M7YNAYM0SMK245AEDNVB5CNW", map[string]string{"title": "late"})}}
	h.log.before("room.created", func() {
		if _, err := h.Archive(ctx, as(h.owner, ""), h.owner, "ws_a", "now"); err != nil {
			t.Error(err)
		}
	})
	_, err := h.gate.Record(ctx, as(who, ""), action, intent)
	h.want("an effect that was decided before", err, policy.ReasonArchived)
	found, err := h.log.Read(ctx, journal.Query{Workspace: "ws_a", Types: []string{"room.created"}})
	if err != nil || len(found) != 0 {
		t.Errorf("it is in the log: %v, %v", found, err)
	}
	if _, err := h.Unarchive(ctx, as(h.owner, ""), h.owner, "ws_a", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.gate.Record(ctx, as(who, ""), action, intent); err != nil {
		t.Errorf("after it is unarchived: %v", err)
	}
}

// TestOfTwoChangesAtOnceNoneIsLost archives while somebody changes the number of tasks.
func TestOfTwoChangesAtOnceNoneIsLost(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.make("ws_a")
	h.log.before(workspace.EventArchived, func() {
		if _, err := h.Update(ctx, as(h.owner, ""), h.owner, workspace.Updated{Workspace: "ws_a", Tasks: 9}); err != nil {
			t.Error(err)
		}
	})
	doc, err := h.Archive(ctx, as(h.owner, "k"), h.owner, "ws_a", "over")
	if err != nil || !doc.Archived() || doc.Tasks != 9 {
		t.Errorf("%+v, %v", doc, err)
	}
	h.log.before(workspace.EventUnarchived, func() {
		if _, err := h.Unarchive(ctx, as(h.owner, ""), h.owner, "ws_a", ""); err != nil {
			t.Error(err)
		}
	})
	if doc, err = h.Unarchive(ctx, as(h.owner, ""), h.owner, "ws_a", ""); err != nil || doc.Archived() {
		t.Errorf("%+v, %v", doc, err)
	}
	n := 0
	for _, typ := range h.told("ws_a") {
		if typ == workspace.EventUnarchived {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it was unarchived %d times", n)
	}
}

func TestWhoMayChangeWorkspaces(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.make("ws_a")
	h.make("ws_b")
	own := h.caller("ws_a")
	_, err := h.Update(ctx, as(own, ""), own, workspace.Updated{Workspace: "ws_a", Tasks: 1000})
	h.want("to give oneself more", err, workspace.ErrNotHere.Code)
	_, err = h.Archive(ctx, as(own, ""), own, "ws_b", "")
	h.want("to archive another one", err, workspace.ErrNone.Code)
	if doc, err := h.Archive(ctx, as(own, ""), own, "ws_a", "enough"); err != nil || !doc.Archived() {
		t.Errorf("one's own: %+v, %v", doc, err)
	}
	_, err = h.Unarchive(ctx, as(own, ""), own, "ws_a", "")
	h.want("to unarchive one's own", err, workspace.ErrNotHere.Code)
	person, err := h.people.AddPerson(ctx, as(h.owner, ""), home, "Mia", principal.Member)
	if err != nil {
		t.Fatal(err)
	}
	member := principal.Caller{Principal: person, Workspace: home, Role: principal.Member}
	for what, do := range map[string]func() error{
		"update": func() error {
			_, err := h.Update(ctx, as(member, ""), member, workspace.Updated{Workspace: "ws_b", Tasks: 9})
			return err
		},
		"unarchive": func() error { _, err := h.Unarchive(ctx, as(member, ""), member, "ws_a", ""); return err },
		"archive":   func() error { _, err := h.Archive(ctx, as(member, ""), member, "ws_b", ""); return err },
	} {
		before, err := h.log.Head(ctx, home)
		if err != nil {
			t.Fatal(err)
		}
		h.want(what+" by a member", do(), policy.ReasonRoleTooLow)
		if after, err := h.log.Head(ctx, home); err != nil || after != before+1 {
			t.Errorf("%s by a member is recorded by %d events, %v", what, after-before, err)
		}
	}
	for _, u := range []workspace.Updated{{Workspace: "ws_b"}, {Workspace: "ws_b", Tasks: -1}, {Workspace: "ws_b", Tasks: workspace.MaxTasks +
		1}} {
		if _, err := h.Update(ctx, as(h.owner, ""), h.owner, u); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", u, err)
		}
	}
	doc, err := h.Update(ctx, as(h.owner, ""), h.owner, workspace.Updated{Workspace: home, Tasks: workspace.MaxTasks})
	if err != nil || doc.Tasks != workspace.MaxTasks || doc.Name != string(home) {
		t.Errorf("the installation's own: %+v, %v", doc, err)
	}
	_, err = h.Update(ctx, as(h.owner, ""), h.owner, workspace.Updated{Workspace: "ws_none", Tasks: 1})
	h.want("one that is not there", err, workspace.ErrNone.Code)
}
