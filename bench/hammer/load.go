package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// plan says how much of everything there is.
type plan struct {
	Rooms     int           `json:"rooms"`
	Writers   int           `json:"writers"` // post messages, each into a thread of its own
	Makers    int           `json:"makers"`  // make runs
	Engines   int           `json:"engines"`
	Followers int           `json:"followers"`
	Content   int           `json:"content_bytes"` // of a message
	Steps     int           `json:"steps"`         // of a run
	Duration  time.Duration `json:"duration"`      // of all phases together
	Kill      bool          `json:"kill"`          // once, in the middle of the last phase
}

// load drives one daemon.
type load struct {
	plan
	daemon *daemon
	server int // the process of PostgreSQL; 0 for none
	owner  *client
	engine map[string]string // the headers by which an engine is known
	rooms  []string
	say    func(format string, args ...any)

	followers []*follower
	following sync.WaitGroup
	deaf      context.CancelFunc // ends the followers

	mu      sync.Mutex // guards the history, except the part that is read at the end
	history history
	asked   map[string]time.Time // when a client requested a run of this phase
	came    map[string]time.Time // when an engine first had it
	ends    map[string]string    // what runs ended as, as their engines were told
	failed  []error

	waiting atomic.Int64 // runs that were made and have not ended
	called  atomic.Int64 // names what is sent
}

// phase is a part of the load, and what it took.
type phase struct {
	Name     string             `json:"name"`
	Seconds  float64            `json:"seconds"`
	Figures  map[string]figures `json:"figures"` // by what was done
	Costs    costs              `json:"cpu"`     // of each message and run, by whom; of no phase with a kill
	Killed   bool               `json:"killed,omitempty"`
	Recovery float64            `json:"recovery_ms,omitempty"` // from the kill until the daemon answered again
}

// begin makes the rooms, the threads and the engine, and lets the followers follow.
func (l *load) begin(ctx context.Context) error {
	var err error
	if l.owner, err = l.daemon.client(); err != nil {
		return err
	}
	// As many runs run at the same time as there are engines, in place of the five of a workspace that nobody has changed.
	if err := l.owner.insist(ctx, http.MethodPatch, "/v1/workspaces/ws_dev", "", map[string]int{"max_concurrent_tasks": max(l.Engines, 5)},
		nil); err != nil {
		return fmt.Errorf("let so many runs run at the same time: %w", err)
	}
	if l.engine, err = register(ctx, l.owner); err != nil {
		return err
	}
	l.ends = map[string]string{}
	for n := range l.Rooms {
		var made struct {
			Room string `json:"room_id"`
		}
		if err := l.owner.post(ctx, "/v1/rooms", fmt.Sprint("room-", n), map[string]string{"title": fmt.Sprint("Room ", n)}, &made); err != nil {
			return fmt.Errorf("make a room: %w", err)
		}
		l.rooms = append(l.rooms, made.Room)
	}
	following, stop := context.WithCancel(ctx)
	l.deaf = stop
	for n := range max(l.Followers, l.Rooms) {
		f := &follower{followed: followed{Name: fmt.Sprint("follower ", n), Room: l.rooms[n%l.Rooms]}, address: l.daemon.address,
			header: l.owner.header}
		l.followers = append(l.followers, f)
		l.following.Go(func() { f.follow(following) })
	}
	return nil
}

// register makes an engine, a service with a key of its own, and returns the headers by which it is known.
func register(ctx context.Context, owner *client) (map[string]string, error) {
	var made struct {
		Principal string `json:"principal_id"`
	}
	if err := owner.post(ctx, "/v1/principals", "engine", map[string]string{"kind": "service", "display_name": "hammer"}, &made); err != nil {
		return nil, fmt.Errorf("add the engine: %w", err)
	}
	var issued struct {
		Key string `json:"key"`
	}
	if err := owner.post(ctx, "/v1/keys", "key", map[string]string{"principal_id": made.Principal, "name": "hammer"}, &issued); err != nil {
		return nil, fmt.Errorf("make a key for the engine: %w", err)
	}
	return map[string]string{"Authorization": "Bearer " + issued.Key}, nil
}

// fail notes what should not have happened.
func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, err)
}

// broken reports whether something failed.
func (l *load) broken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.failed) > 0
}

// once names a request, so that a repeat of it is known.
func (l *load) once() string { return fmt.Sprint("hammer-", l.called.Add(1)) }

// work is the work of a phase.
type work struct {
	name            string
	writers, makers int
	perSecond       int // runs that are made, by all makers; 0 for as many as the engines end
	steps           int // of each run; one of none has no tool call and no artifact either
	long            time.Duration
	kill            bool // the daemon is killed in the middle, and started again
}

// run does one phase: writers, makers and engines for so long, then the engines until every run has ended.
func (l *load) run(ctx context.Context, w work) (phase, error) {
	for _, f := range l.followers {
		f.lately()
	}
	l.asked, l.came = map[string]time.Time{}, map[string]time.Time{}
	p := phase{Name: w.name, Killed: w.kill, Figures: map[string]figures{}}
	before := spend(l.daemon.cmd.Process.Pid, l.server)
	start := time.Now()
	until, stop := context.WithDeadline(ctx, start.Add(w.long))
	defer stop()
	long, makers := w.long, w.makers
	var m meter
	var making, working sync.WaitGroup
	for n := range w.writers {
		making.Go(func() { l.write(ctx, until, &m, n) })
	}
	for n := range makers {
		making.Go(func() { l.make(ctx, until, &m, n, w.perSecond/makers) })
	}
	ended, end := context.WithCancel(ctx)
	defer end()
	if makers > 0 {
		for n := range l.Engines {
			working.Go(func() { l.engage(ctx, ended, &m, n, w.steps) })
		}
	}
	var broken error
	if w.kill {
		select {
		case <-time.After(long / 2):
		case <-ctx.Done():
		}
		down := time.Now()
		broken = l.daemon.kill()
		if broken == nil {
			broken = l.daemon.start(ctx)
		}
		p.Recovery = float64(time.Since(down).Microseconds()) / 1000
		l.say("  killed with SIGKILL in the middle; it answers again after %.0f ms", p.Recovery)
	}
	making.Wait()
	p.Seconds = time.Since(start).Seconds()
	for wait := time.Now(); makers > 0 && l.waiting.Load() > 0 && ctx.Err() == nil && broken == nil && !l.broken(); time.Sleep(again) {
		if time.Since(wait) > 2*time.Minute { // four claims that expired
			broken = fmt.Errorf("%d runs have not ended two minutes after the last was made", l.waiting.Load())
		}
	}
	end()
	working.Wait()
	after := spend(l.daemon.cmd.Process.Pid, l.server)
	var took []time.Duration
	for _, f := range l.followers {
		took = append(took, f.lately()...)
	}
	for run, at := range l.asked {
		if came, ok := l.came[run]; ok {
			m.add("run made to claimed", []time.Duration{came.Sub(at)})
		}
	}
	for what, all := range m.took {
		p.Figures[what] = summarize(all, p.Seconds)
	}
	if !w.kill {
		p.Costs = after.since(before, p.Figures["message"].Count+p.Figures["run made"].Count)
	}
	p.Figures["event to client"] = summarize(took, p.Seconds)
	l.mu.Lock()
	defer l.mu.Unlock()
	return p, errors.Join(append(l.failed, broken, ctx.Err())...)
}

// write posts messages into a thread, one after another.
func (l *load) write(ctx, until context.Context, m *meter, n int) {
	c, room := l.owner.as(nil), l.rooms[n%l.Rooms]
	var thread struct {
		Thread string `json:"thread_id"`
	}
	if err := c.post(ctx, "/v1/rooms/"+room+"/threads", l.once(), map[string]string{"title": fmt.Sprint("Writer ", n)}, &thread); err != nil {
		l.fail(fmt.Errorf("make a thread: %w", err))
		return
	}
	var posts []post
	var took []time.Duration
	filler := strings.Repeat("The quick brown fox jumps over the lazy dog. ", l.Content/45+1)
	for until.Err() == nil {
		once := l.once()
		content := (once + " " + filler)[:l.Content]
		var made struct {
			Message string `json:"message_id"`
		}
		start := time.Now()
		if err := c.post(ctx, "/v1/threads/"+thread.Thread+"/messages", once, map[string]string{"content_md": content}, &made); err != nil {
			l.fail(fmt.Errorf("post a message: %w", err))
			break
		}
		took = append(took, time.Since(start))
		posts = append(posts, post{room, thread.Thread, made.Message, content})
	}
	m.add("message", took)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.Posts = append(l.history.Posts, posts...)
}

// backlog is how many runs wait for an engine at most.
const backlog = 64

// make makes runs, so many a second, or as fast as the engines end them where that is 0.
func (l *load) make(ctx, until context.Context, m *meter, n, perSecond int) {
	c, room := l.owner.as(nil), l.rooms[n%l.Rooms]
	var took []time.Duration
	pace := make(chan time.Time) // closed: nobody waits for it
	close(pace)
	turn := (<-chan time.Time)(pace)
	if perSecond > 0 {
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		turn = ticker.C
	}
	for until.Err() == nil {
		<-turn
		if l.waiting.Load() >= backlog {
			time.Sleep(time.Millisecond)
			continue
		}
		var made struct {
			Run string `json:"run_id"`
		}
		l.waiting.Add(1)
		start := time.Now()
		if err := c.post(ctx, "/v1/runs", l.once(), map[string]any{"room_id": room, "title": "Weigh the evidence",
			"goal": "A report of one page"}, &made); err != nil {
			l.fail(fmt.Errorf("make a run: %w", err))
			l.waiting.Add(-1)
			break
		}
		took = append(took, time.Since(start))
		l.mu.Lock()
		l.history.Runs = append(l.history.Runs, order{room, made.Run, ""})
		l.asked[made.Run] = start
		l.mu.Unlock()
	}
	m.add("run made", took)
}

// engage is an engine: it claims runs and executes them until its context ends.
func (l *load) engage(ctx, ended context.Context, m *meter, n, steps int) {
	c := l.owner.as(l.engine)
	for ended.Err() == nil {
		run, err := l.claim(ctx, m, c, n)
		if err == nil && run == nil {
			continue
		}
		if err == nil {
			err = l.execute(ctx, m, c, run, steps)
		}
		if err != nil {
			l.fail(err)
			return
		}
	}
}

// claimed is a run that an engine owns.
type claimed struct {
	Run   string
	Token string
}

// claim asks for a run, and waits for one; nil where there is none.
func (l *load) claim(ctx context.Context, m *meter, c *client, n int) (*claimed, error) {
	var got struct {
		Claimed bool `json:"claimed"`
		Run     struct {
			Run string `json:"run_id"`
		} `json:"run"`
		Token string `json:"claim_token"`
		Fence uint64 `json:"fence"`
	}
	if err := c.post(ctx, "/v1/runs/claim", l.once(), map[string]any{"wait": 1}, &got); err != nil {
		return nil, fmt.Errorf("claim a run: %w", err)
	}
	if !got.Claimed {
		return nil, nil
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.came[got.Run.Run].IsZero() {
		l.came[got.Run.Run] = now
	}
	l.history.Claims = append(l.history.Claims, claim{got.Run.Run, fmt.Sprint("engine ", n), got.Fence})
	return &claimed{got.Run.Run, got.Token}, nil
}

// execute does the steps of a run, a tool call and an artifact, and completes it.
func (l *load) execute(ctx context.Context, m *meter, c *client, run *claimed, todo int) error {
	var steps []step
	var took []time.Duration
	for n := range todo {
		var made struct {
			Step string `json:"step_id"`
		}
		start := time.Now()
		in := map[string]any{"kind": "tool", "title": fmt.Sprint("Step ", n), "input": map[string]string{"query": "evidence"},
			"claim_token": run.Token}
		if err := c.post(ctx, "/v1/runs/"+run.Run+"/steps", l.once(), in, &made); err != nil {
			return fmt.Errorf("add a step to run %s: %w", run.Run, err)
		}
		took = append(took, time.Since(start))
		steps = append(steps, step{run.Run, made.Step})
	}
	m.add("step", took)
	var call struct {
		Call string `json:"tool_call_id"`
	}
	type request struct {
		path string
		in   map[string]any
	}
	requests := []request{{"/v1/runs/" + run.Run + "/complete", map[string]any{"summary": "It is done.",
		"output": map[string]bool{"ok": true}}}}
	if todo > 0 {
		last := steps[todo-1].Step
		requests = append([]request{
			{"/v1/steps/" + last + "/toolcalls", map[string]any{"tool_name": "search", "input": map[string]string{"query": "evidence"}}},
			{"/v1/toolcalls/%s/succeed", map[string]any{"output": map[string]int{"hits": 3}}},
			{"/v1/steps/" + last + "/artifacts", map[string]any{"kind": "report", "title": "Report", "content": map[string]string{"type": "text",
				"text": "All is well."}}},
		}, requests...)
	}
	for _, request := range requests {
		request.in["claim_token"] = run.Token
		if err := c.post(ctx, strings.ReplaceAll(request.path, "%s", call.Call), l.once(), request.in, &call); err != nil {
			return fmt.Errorf("%s: %w", request.path, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.Steps = append(l.history.Steps, steps...)
	l.ends[run.Run] = "succeeded"
	l.waiting.Add(-1)
	return nil
}
