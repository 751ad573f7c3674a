package agentcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// recordedRun is a daemon with one run: its log, its frames, and how it ended.
type recordedRun struct {
	past   []event.Event // before the conversation begins
	events []event.Event // from then on
	frames []client.Frame
	ends   chan struct{} // the last frame comes when it is closed
	ended  client.RunShown
	clock  event.Clock // of the conversation

	breaks  bool         // the first stream of the log ends at once, and then the log is shut
	streams atomic.Int64 // of the log
	shut    atomic.Bool  // its log cannot be read
}

const ownRun = id.Run("run_own")

// of returns an event of the run.
func of(t *testing.T, typ string, data any) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	e := event.Event{}
	e.Run, e.Type, e.Data = ownRun, typ, raw
	return e
}

// framesOf numbers frames.
func framesOf(t *testing.T, frames ...any) (all []client.Frame) {
	t.Helper()
	for n, f := range frames {
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		kind := client.FrameResult
		switch f.(type) {
		case model.Delta:
			kind = client.FrameDelta
		case run.Outline:
			kind = client.FrameOperation
		}
		all = append(all, client.Frame{N: uint64(n + 1), Kind: kind, Data: raw})
	}
	return all
}

// serve answers the requests of a conversation.
func (d *recordedRun) serve(w http.ResponseWriter, r *http.Request) {
	send := func(n uint64, kind string, data any) {
		raw, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", n, kind, raw)
		_ = http.NewResponseController(w).Flush()
	}
	from := func() (n uint64) {
		_, _ = fmt.Sscan(r.URL.Query().Get("from_seq"), &n)
		return n
	}
	events := func(list []event.Event, first uint64, do func(event.Event)) {
		for n, e := range list {
			if e.Seq = first + uint64(n); e.Seq >= from() && strings.Contains(r.URL.Query().Get("event_types"), e.Type) {
				do(e)
			}
		}
	}
	if r.URL.Path == "/v1/events/stream" && d.streams.Add(1) == 1 && d.breaks {
		d.shut.Store(true)
	}
	if strings.HasPrefix(r.URL.Path, "/v1/events") && d.shut.Load() {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":"log_unavailable","detail":"the database does not answer"}`))
		return
	}
	switch r.URL.Path {
	case "/v1/events":
		list := client.EventList{Next: uint64(len(d.past) + 1)}
		events(d.past, 1, func(e event.Event) { list.Events = append(list.Events, e) })
		select {
		case <-d.ends:
			list.Next += uint64(len(d.events))
			events(d.events, uint64(len(d.past)+1), func(e event.Event) { list.Events = append(list.Events, e) })
		default:
		}
		_ = json.NewEncoder(w).Encode(list)
	case "/v1/events/stream":
		w.Header().Set("Content-Type", "text/event-stream")
		events(d.events, uint64(len(d.past)+1), func(e event.Event) { send(e.Seq, "message", e) })
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "/v1/runs/run_own/stream":
		w.Header().Set("Content-Type", "text/event-stream")
		for _, f := range d.frames {
			send(f.N, f.Kind, f.Data)
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-d.ends:
			send(uint64(len(d.frames)+1), client.FrameComplete, struct{}{})
		case <-r.Context().Done():
		}
	default:
		_ = json.NewEncoder(w).Encode(d.ended)
	}
}

// attends follows the run in a conversation that is no terminal. It returns what the conversation shows, and a function that waits for its
// end.
func (d *recordedRun) attends(t *testing.T, status run.Status) (*chatScreen, func()) {
	t.Helper()
	daemon := httptest.NewServer(http.HandlerFunc(d.serve))
	screen := &chatScreen{}
	i := &cmdline.Invocation{Host: cmdline.Host{Out: screen, Err: screen, Clock: d.clock}}
	p := &term.Printer{Out: screen}
	c := &chat{i: i, api: client.New(daemon.URL, "abk_x"), out: p, err: p}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.attend(ctx, run.Run{ID: ownRun, Status: status}) }()
	t.Cleanup(func() {
		stop()
		daemon.Close()
	})
	return screen, func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Errorf("the conversation ends with %v\n%s", err, screen)
		}
	}
}

// TestAConversationSaysThatTheAgentWaits follows a run that waits for the circuit of its model. The line is that of `agent run`.
func TestAConversationSaysThatTheAgentWaits(t *testing.T) {
	const line = "  waits until 2286-11-20 17:46:40.000 UTC: the model main is left alone\n"
	wait := of(t, model.EventDeferred, model.Deferred{Reason: "the model main is left alone", Until: time.Unix(1e10, 0)})
	over := of(t, model.EventDeferred, model.Deferred{Reason: "an old wait", Until: time.Unix(1e9, 0)})
	asked := of(t, model.EventAsked, model.Asked{})
	said := framesOf(t, model.Delta{Type: model.TextPart, Text: "I think."})
	for name, c := range map[string]struct {
		past, events []event.Event
		want         int
	}{
		"while it is followed":         {nil, []event.Event{asked, wait}, 1},
		"one that is short":            {nil, []event.Event{over, wait}, 1},
		"a run that waits is resumed":  {[]event.Event{over, asked, wait}, nil, 1},
		"a run that waited is resumed": {[]event.Event{wait, asked}, []event.Event{wait}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := &recordedRun{past: c.past, events: c.events, frames: said, ends: make(chan struct{}), clock: hostClock{},
				ended: client.RunShown{Run: run.Run{ID: ownRun, Status: run.Succeeded}}}
			screen, ended := d.attends(t, run.Running)
			screen.sees(t, line, 1)
			close(d.ends)
			ended()
			if n := strings.Count(screen.String(), line); n != c.want {
				t.Errorf("it says %d times that it waits, want %d\n%s", n, c.want, screen)
			}
			if old := strings.Contains(screen.String(), "an old wait"); old != (name == "one that is short") {
				t.Errorf("it says of the old wait: %t\n%s", old, screen)
			}
		})
	}
}

// TestLargeEventsAreReadInSmallerPages has a log whose pages are too large for a client. The conversation asks for half as many until the
// daemon answers, and does without the log where one event is too large.
func TestLargeEventsAreReadInSmallerPages(t *testing.T) {
	const total = 30
	for _, c := range []struct {
		fits, place int // events of a page that fit together, and where the conversation has come to
		limits      []int
	}{
		{eventsAtOnce, total + 1, []int{20, 20, 20}},
		{eventsAtOnce - 1, total + 1, []int{20, 10, 10, 10, 10}},
		{9, total + 1, []int{20, 10, 5, 5, 5, 5, 5, 5, 5}},
		{1, total + 1, append([]int{20, 10, 5, 2}, slices.Repeat([]int{1}, total+1)...)},
		{0, 0, []int{20, 10, 5, 2, 1}},
	} {
		var limits []int
		daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var from, limit int
			_, _ = fmt.Sscan(r.URL.Query().Get("from_seq"), &from)
			_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
			limits = append(limits, limit)
			page := client.EventList{Next: uint64(from)}
			for ; len(page.Events) < limit && page.Next <= total; page.Next++ {
				page.Events = append(page.Events, of(t, model.EventAsked, model.Asked{}))
			}
			if len(page.Events) > c.fits {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				_, _ = w.Write([]byte(`{"error":"answer_too_large","detail":"ask for less at once"}`))
				return
			}
			_ = json.NewEncoder(w).Encode(page)
		}))
		a := &attended{chat: &chat{api: client.New(daemon.URL, "abk_x")}, run: run.Run{ID: ownRun}}
		a.catchUp(t.Context())
		daemon.Close()
		if !slices.Equal(limits, c.limits) || a.place != uint64(c.place) || a.deaf != (c.fits == 0) {
			t.Errorf("%d fit: asked for %v, at %d, deaf %t; want %v, at %d", c.fits, limits, a.place, a.deaf, c.limits, c.place)
		}
	}
}
