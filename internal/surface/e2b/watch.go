package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The bounds of watchers whose events the client polls.
const (
	maxWatchers       = 16               // of one sandbox
	maxEveryWatcher   = 1000             // of all sandboxes
	maxWatcherEvents  = 4096             // that wait to be asked for
	watcherForgotten  = 10 * time.Minute // without a question
	watcherFirstEvent = 50 * time.Millisecond
)

// watchers tell what becomes of the files of a sandbox: as a stream, or to those who ask again and again.
type watchers struct {
	api   api
	clock event.Clock
	ids   *id.Source
	files *fileSystem

	mu   sync.Mutex // guards open
	open map[string]*watcher
}

func (ws *watchers) routes(add func(pattern string, h handler)) {
	const calls = "POST /filesystem.Filesystem/"
	add(calls+"WatchDir", ws.watch)
	add(calls+"CreateWatcher", ws.create)
	add(calls+"GetWatcherEvents", ws.events)
	add(calls+"RemoveWatcher", ws.remove)
}

// watchRequest names a folder.
type watchRequest struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
	Entry     bool   `json:"includeEntry"`
}

// toldEvent is a message of /v1 about a file, or the end of a watch.
type toldEvent struct {
	Path       string `json:"path"`
	From       string `json:"from"`
	Type       string `json:"type"`
	Size       int64  `json:"size_bytes"`
	Attributes bool   `json:"attributes_only"`
	Reason     string `json:"reason"`
}

// follow yields an empty list when the watch has begun, and then events as E2B tells them. It ends with nil where the folder went away.
func (ws *watchers) follow(ctx context.Context, c *caller, q watchRequest) iter.Seq2[[]map[string]any, error] {
	return func(yield func([]map[string]any, error) bool) {
		at, inside := locate(q.Path)
		if !inside {
			yield(nil, invalid("%.200q lies outside the files of the sandbox, which are in %s; only these are watched", q.Path, home))
			return
		}
		query := url.Values{"path": {at}, "recursive": {strconv.FormatBool(q.Recursive)}}
		for f, err := range ws.api.messages(ctx, c, "/v1/spaces/"+url.PathEscape(c.sandbox)+"/watch?"+query.Encode(), "ended") {
			var e toldEvent
			if err == nil {
				err = json.Unmarshal(f.data, &e)
			}
			switch {
			case err != nil:
			case f.kind == "overflow":
				err = &refusal{Status: http.StatusConflict, Code: "data_loss",
					Message: "more happened than could be told; list the folder, and watch it again"}
			case f.kind == "ended" && e.Reason == "watched_folder_removed":
				return
			case f.kind == "ended":
				err = &refusal{Status: http.StatusConflict, Code: "aborted", Message: "the watch has ended: " + e.Reason}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(ws.translated(ctx, c, q, f.kind, at, e), nil) {
				return
			}
		}
	}
}

// translated returns an event as E2B's own daemon tells it: names are relative to the folder, a new file is created and written, and a
// rename reports the old name, and then the creation of the new name.
func (ws *watchers) translated(ctx context.Context, c *caller, q watchRequest, kind, at string, e toldEvent) []map[string]any {
	below := func(p string) string { return strings.TrimPrefix(strings.TrimPrefix(p, at), "/") }
	if at == "." {
		below = func(p string) string { return p }
	}
	out := []map[string]any{}
	add := func(typ, p string, there bool) {
		one := map[string]any{"name": below(p), "type": "EVENT_TYPE_" + typ}
		if q.Entry && there {
			if found, err := ws.files.look(ctx, c, p); err == nil {
				one["entry"] = found.entry(path.Join(told(q.Path), below(p)))
			}
		}
		out = append(out, one)
	}
	switch kind {
	case "created":
		add("CREATE", e.Path, true)
		if e.Type == "file" && e.Size > 0 {
			add("WRITE", e.Path, true)
		}
	case "changed":
		if e.Attributes {
			add("CHMOD", e.Path, true)
		} else {
			add("WRITE", e.Path, true)
		}
	case "removed":
		if e.Path != at {
			add("REMOVE", e.Path, false)
		}
	case "renamed":
		add("RENAME", e.From, false)
		add("CREATE", e.Path, true)
	}
	return out
}

func (ws *watchers) watch(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q watchRequest
	if err := first(r, &q); err != nil {
		return err
	}
	ctx, expired, stop := limit(ws.clock, r)
	defer stop()
	var out *stream
	quiet := func() {}
	defer func() { quiet() }()
	for events, err := range ws.follow(ctx, c, q) {
		if err != nil && out == nil && !expired() {
			return gone(err)
		}
		if out == nil {
			out = newStream(w)
			if err == nil {
				err = out.send(map[string]any{"start": map[string]any{}})
			}
			quiet = beat(ws.clock, r, func() { _ = out.send(map[string]any{"keepalive": map[string]any{}}) })
		}
		for _, e := range events {
			if err == nil {
				err = out.send(map[string]any{"filesystem": e})
			}
		}
		if err != nil {
			finish(out, err, expired())
			return nil
		}
	}
	if out != nil {
		finish(out, nil, expired())
	}
	return nil
}

// watcher collects events for polling clients.
type watcher struct {
	sandbox string
	stop    context.CancelFunc
	ended   chan struct{} // closed when it collects no more

	mu    sync.Mutex // guards the fields below
	queue []map[string]any
	err   error         // why it ended, or that events were lost
	news  chan struct{} // closed at the next event
	asked time.Time
}

func (ws *watchers) create(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q watchRequest
	if err := read(r, &q); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	made := &watcher{sandbox: c.sandbox, stop: cancel, ended: make(chan struct{}), news: make(chan struct{}), asked: ws.clock.Now()}
	name := "wat_" + strings.TrimPrefix(string(id.New[id.Request](ws.ids)), "req_")
	if err := ws.keep(name, made); err != nil {
		cancel()
		return err
	}
	begun := make(chan error, 1)
	go ws.collect(ctx, c, q, name, made, begun)
	select {
	case err := <-begun:
		if err != nil {
			return gone(err)
		}
	case <-r.Context().Done():
		cancel()
		return r.Context().Err()
	}
	return answer(w, http.StatusOK, map[string]any{"watcherId": name})
}

// keep remembers a watcher, within the bounds.
func (ws *watchers) keep(name string, made *watcher) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	count := 0
	for name, other := range ws.open {
		if other.over() && other.idle(made.asked) >= watcherForgotten {
			delete(ws.open, name)
			continue
		}
		if other.sandbox == made.sandbox {
			count++
		}
	}
	if count >= maxWatchers || len(ws.open) >= maxEveryWatcher {
		return &refusal{Status: http.StatusTooManyRequests, Code: "resource_exhausted",
			Message: "a sandbox has at most " + strconv.Itoa(maxWatchers) + " watchers; stop one of them"}
	}
	ws.open[name] = made
	return nil
}

// collect fills the queue of a watcher until its watch ends, it is removed, or nobody asks any more. It tells begun once how it began.
func (ws *watchers) collect(ctx context.Context, c *caller, q watchRequest, name string, made *watcher, begun chan<- error) {
	defer close(made.ended)
	defer made.stop()
	stopped, tidied := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(tidied)
		ws.tidy(made, stopped)
	}()
	defer func() { close(stopped); <-tidied }()
	started := false
	for events, err := range ws.follow(ctx, c, q) {
		if !started {
			started = true
			begun <- err
			if err != nil {
				ws.forget(name)
				return
			}
		}
		made.add(events, err)
	}
	if !started {
		begun <- notFound("there is no folder %.200q", q.Path)
		ws.forget(name)
		return
	}
	if ctx.Err() != nil {
		ws.forget(name) // nobody asked for long, or it was removed
	}
}

// tidy stops a watcher that nobody has asked for long.
func (ws *watchers) tidy(made *watcher, stopped <-chan struct{}) {
	for {
		over, release := ws.clock.NewTimer(watcherForgotten)
		select {
		case <-over:
		case <-stopped:
			release()
			return
		}
		if made.idle(ws.clock.Now()) >= watcherForgotten {
			made.stop()
		}
	}
}

func (ws *watchers) forget(name string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.open, name)
}

// idle returns how long nobody has asked.
func (m *watcher) idle(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.asked)
}

// over reports whether the watcher collects no more.
func (m *watcher) over() bool {
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}

// add appends events. If too many wait, they are lost, and the next poll gets an error that says so.
func (m *watcher) add(events []map[string]any, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queue = append(m.queue, events...); len(m.queue) > maxWatcherEvents {
		m.queue, m.err = nil, errWatcherFull
	}
	if err != nil {
		m.err = err
	}
	close(m.news)
	m.news = make(chan struct{})
}

var errWatcherFull = &refusal{Status: http.StatusConflict, Code: "data_loss",
	Message: "more events waited than are kept; list the folder, and ask again"}

// take returns the events that wait and forgets them, or an error after them.
func (m *watcher) take(now time.Time) ([]map[string]any, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = now
	events, err := m.queue, m.err
	if m.queue = nil; len(events) > 0 {
		return events, m.news, nil
	}
	if errors.Is(err, errWatcherFull) {
		m.err = nil
	}
	return []map[string]any{}, m.news, err
}

// named returns a watcher of the caller's sandbox.
func (ws *watchers) named(r *http.Request, c *caller) (string, *watcher, error) {
	var q struct {
		Watcher string `json:"watcherId"`
	}
	if err := read(r, &q); err != nil {
		return "", nil, err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if found := ws.open[q.Watcher]; found != nil && found.sandbox == c.sandbox {
		return q.Watcher, found, nil
	}
	return "", nil, notFound("there is no watcher %.100q; it was stopped, or nobody asked it for %v, or the daemon was started again",
		q.Watcher, watcherForgotten)
}

func (ws *watchers) events(w http.ResponseWriter, r *http.Request, c *caller) error {
	_, found, err := ws.named(r, c)
	if err != nil {
		return err
	}
	events, news, err := found.take(ws.clock.Now())
	if err == nil && len(events) == 0 { // a change just before the poll is reported a moment later
		over, release := ws.clock.NewTimer(watcherFirstEvent)
		select {
		case <-news:
		case <-over:
		case <-found.ended:
		case <-r.Context().Done():
		}
		release()
		events, _, err = found.take(ws.clock.Now())
	}
	if err != nil {
		return gone(err)
	}
	return answer(w, http.StatusOK, map[string]any{"events": events})
}

func (ws *watchers) remove(w http.ResponseWriter, r *http.Request, c *caller) error {
	name, found, err := ws.named(r, c)
	if err != nil {
		return err
	}
	found.stop()
	<-found.ended
	ws.forget(name)
	return answer(w, http.StatusOK, map[string]any{})
}
