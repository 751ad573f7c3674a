package incidents_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/incidents"
)

const (
	ws   = id.DefaultWorkspace
	near = id.DefaultRoom
	far  = id.Room("room_00000000000000000000000009")

	thread = id.Thread("th_00000000000000000000000001")
	other  = id.Thread("th_00000000000000000000000002")
)

// clock stands still.
type clock struct{ now time.Time }

func (c clock) Now() time.Time                                    { return c.now }
func (c clock) NewTimer(time.Duration) (<-chan time.Time, func()) { panic("nobody waits here") }

// office is the service in memory.
type office struct {
	*incidents.Service
	t      *testing.T
	log    *memory.Journal
	hands  *engines.Service
	origin event.Origin
	viewer event.Origin
}

func open(t *testing.T) *office {
	t.Helper()
	c := clock{time.UnixMilli(1_800_000_000_000).UTC()}
	ids := id.NewSource(c.Now, rand.Reader)
	log, err := memory.NewJournal(documents.All(), c, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	g, err := gate.New(gate.Parts{Log: log, Docs: log, Evaluator: cedar.New(), Clock: c, IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	people := identity.New(identity.Parts{Log: log, Docs: log, Gate: g, Clock: c, IDs: ids, Entropy: rand.Reader})
	place := func(_ context.Context, _ id.Workspace, in id.Room, _ id.Thread) error {
		if in != "" && in != near && in != far {
			return fault.New(fault.NotFound, "room_not_found", "there is no such room")
		}
		return nil
	}
	o := &office{t: t, log: log}
	o.Service = incidents.New(incidents.Parts{Docs: log, Gate: g, Clock: c, IDs: ids, Place: place})
	o.hands = engines.New(engines.Parts{Log: log, Docs: log, Blobs: memory.NewBlobs(), Gate: g, Clock: c, IDs: ids, Place: place})
	t.Cleanup(o.hands.Evidence.Wait)
	owner, err := people.Owner(t.Context(), ws, "owner")
	if err != nil {
		t.Fatal(err)
	}
	o.origin = event.Origin{Principal: owner}
	viewer, err := people.AddPerson(t.Context(), o.origin, ws, "viewer", principal.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	o.viewer = event.Origin{Principal: viewer}
	return o
}

func (o *office) want(what string, err error, code string) {
	o.t.Helper()
	if got := fault.CodeOf(err); got != code {
		o.t.Errorf("%s: got %q (%v), want %q", what, got, err, code)
	}
}

func (o *office) head() uint64 {
	o.t.Helper()
	n, err := o.log.Head(o.t.Context(), ws)
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}

func said(key string) incident.Opened {
	return incident.Opened{Title: "it leaks", Severity: "high", Key: key}
}

// TestWhereAnIncidentIs opens incidents in all places that there are, and in some that there are not.
func TestWhereAnIncidentIs(t *testing.T) {
	o := open(t)
	made := map[string]id.Run{}
	for name, in := range map[string]id.Thread{"threaded": thread, "plain": ""} {
		r, err := o.hands.Create(t.Context(), o.origin, engines.Request{Workspace: ws, Room: near, Thread: in, Title: name})
		if err != nil {
			t.Fatal(err)
		}
		made[name] = r.ID
	}
	for name, c := range map[string]struct {
		at, want incidents.Place
		code     string
	}{
		"nowhere": {incidents.Place{}, incidents.Place{}, ""},
		"a room":  {incidents.Place{Room: far}, incidents.Place{Room: far}, ""},
		"no room": {incidents.Place{Room: "room_00000000000000000000000001"}, incidents.Place{}, "room_not_found"},
		"a run":   {incidents.Place{Run: made["plain"]}, incidents.Place{Room: near, Run: made["plain"]}, ""},
		"a run with a thread": {incidents.Place{Run: made["threaded"]}, incidents.Place{Room: near, Thread: thread, Run: made["threaded"]},
			""},
		"a run and its thread": {incidents.Place{Room: near, Thread: thread, Run: made["threaded"]}, incidents.Place{Room: near,
			Thread: thread, Run: made["threaded"]}, ""},
		"a run without, in a thread": {incidents.Place{Thread: other, Run: made["plain"]}, incidents.Place{Room: near, Thread: other,
			Run: made["plain"]}, ""},
		"a run of another room":   {incidents.Place{Room: far, Run: made["plain"]}, incidents.Place{}, "run_room_mismatch"},
		"a run of another thread": {incidents.Place{Thread: other, Run: made["threaded"]}, incidents.Place{}, "run_thread_mismatch"},
		"no run":                  {incidents.Place{Run: "run_00000000000000000000000001"}, incidents.Place{}, "run_not_found"},
	} {
		doc, deduped, err := o.Open(t.Context(), o.origin, ws, c.at, said(""))
		o.want(name, err, c.code)
		if err == nil && (deduped || (incidents.Place{Room: doc.Room, Thread: doc.Thread, Run: doc.Run}) != c.want ||
			doc.Status != incident.Open || doc.OpenedBy != o.origin.Principal) {
			t.Errorf("%s: got %+v", name, doc)
		}
	}
	_, _, err := o.Open(t.Context(), o.viewer, ws, incidents.Place{}, said(""))
	o.want("by a viewer", err, policy.ReasonRoleTooLow)
}

// TestOfOneKeyThereIsOneIncident opens with one key, at once and afterwards.
func TestOfOneKeyThereIsOneIncident(t *testing.T) {
	o := open(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	found, fresh := map[id.Incident]int{}, 0
	for range 16 {
		all.Go(func() {
			doc, deduped, err := o.Open(t.Context(), o.origin, ws, incidents.Place{Room: near}, said("run_failed:1"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if found[doc.ID]++; !deduped {
				fresh++
			}
		})
	}
	all.Wait()
	if len(found) != 1 || fresh != 1 {
		t.Errorf("%d incidents, %d of them fresh, want one", len(found), fresh)
	}
	before := o.head()
	if _, deduped, err := o.Open(t.Context(), o.origin, ws, incidents.Place{Room: far}, said("run_failed:1")); err != nil || !deduped {
		t.Errorf("afterwards: deduped %t, %v", deduped, err)
	}
	for name, change := range map[string]func(*incident.Opened){
		"another title": func(x *incident.Opened) { x.Title += "!" }, "another severity": func(x *incident.Opened) { x.Severity = "low" },
		"another category": func(x *incident.Opened) { x.Category += "x" }, "about a thing": func(x *incident.Opened) {
			x.EntityType,
				x.EntityID = "thing", "t_1"
		},
	} {
		other := said("run_failed:1")
		change(&other)
		_, _, err := o.Open(t.Context(), o.origin, ws, incidents.Place{Room: near}, other)
		o.want(name, err, "idempotency_conflict")
	}
	if now := o.head(); now != before {
		t.Errorf("a repeat recorded %d events", now-before)
	}
	if _, deduped, err := o.Open(t.Context(), o.origin, ws, incidents.Place{}, said("run_failed:2")); err != nil || deduped {
		t.Errorf("another key: deduped %t, %v", deduped, err)
	}
	for n, want := range map[int]string{incident.MaxKey: "", incident.MaxKey + 1: "invalid_idempotency_key"} {
		_, _, err := o.Open(t.Context(), o.origin, ws, incidents.Place{}, said(strings.Repeat("k", n)))
		o.want(fmt.Sprint("a key of ", n), err, want)
	}
}

// TestAnIncidentIsClosedOnceAndWithWhatItTaught goes through the life of one.
func TestAnIncidentIsClosedOnceAndWithWhatItTaught(t *testing.T) {
	o, ctx := open(t), t.Context()
	doc, _, err := o.Open(ctx, o.origin, ws, incidents.Place{Room: near}, said(""))
	if err != nil {
		t.Fatal(err)
	}
	end := func() error {
		_, err := o.Close(ctx, o.origin, ws, doc.ID, "mended")
		return err
	}
	analyse := func() error {
		_, err := o.Analyse(ctx, o.origin, ws, doc.ID, "a seal was worn", nil)
		return err
	}
	learn := func() error {
		_, err := o.Learn(ctx, o.origin, ws, doc.ID, "look at seals", nil)
		return err
	}
	o.want("closed without a cause", end(), "incident_close_blocked_missing_rca")
	o.want("no cause", func() error { _, err := o.Analyse(ctx, o.origin, ws, doc.ID, "", nil); return err }(), "missing_rca_payload")
	o.want("the cause", analyse(), "")
	o.want("closed without a lesson", end(), "incident_close_blocked_missing_learning")
	o.want("no note", func() error { _, err := o.Learn(ctx, o.origin, ws, doc.ID, "", nil); return err }(), "missing_note")
	var all sync.WaitGroup
	for range 8 { // each is decided on what the incident is then
		all.Go(func() { o.want("a lesson", learn(), "") })
	}
	all.Wait()
	if now, err := o.Incident(ctx, ws, doc.ID); err != nil || len(now.Learning) != 8 {
		t.Errorf("%d of 8 lessons are kept, %v", len(now.Learning), err)
	}
	o.want("closed by a viewer", func() error { _, err := o.Close(ctx, o.viewer, ws, doc.ID, ""); return err }(), policy.ReasonRoleTooLow)
	o.want("closed", end(), "")
	o.want("closed twice", end(), "incident_already_closed")
	o.want("a cause afterwards", analyse(), "incident_closed")
	o.want("a lesson afterwards", learn(), "incident_closed")
	o.want("another one", func() error { _, err := o.Incident(ctx, ws, "inc_00000000000000000000000001"); return err }(), "incident_not_found")
	o.want("through another workspace", func() error { _, err := o.Incident(ctx, "ws_other", doc.ID); return err }(), "incident_not_found")
}

// TestIncidentsAreListed selects by room, run and state.
func TestIncidentsAreListed(t *testing.T) {
	o, ctx := open(t), t.Context()
	r, err := o.hands.Create(ctx, o.origin, engines.Request{Workspace: ws, Room: near, Title: "a run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []incidents.Place{{}, {Room: near}, {Room: far}, {Run: r.ID}} {
		if _, _, err := o.Open(ctx, o.origin, ws, at, said("")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		f    incidents.Filter
		want int
	}{
		{incidents.Filter{}, 4}, {incidents.Filter{Limit: 3}, 3}, {incidents.Filter{Room: near}, 2}, {incidents.Filter{Room: far,
			Status: incident.Open}, 1},
		{incidents.Filter{Run: r.ID}, 1}, {incidents.Filter{Run: r.ID, Status: incident.Closed}, 0}, {incidents.Filter{Status: incident.Open}, 4},
	} {
		if found, err := o.Incidents(ctx, ws, c.f); err != nil || len(found) != c.want {
			t.Errorf("%+v: got %d, %v, want %d", c.f, len(found), err, c.want)
		}
	}
}
