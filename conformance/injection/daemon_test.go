package injection

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/testkit/wall"
)

// hurried is the machine's clock, except that the daemon looks often whether a person has answered. With its two seconds the thousand
// questions of the cases would take minutes in which nothing happens.
type hurried struct{ wall.Clock }

// NewTimer implements event.Clock.
func (c hurried) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	if d == errand.Ask {
		d = 50 * time.Millisecond
	}
	return c.Clock.NewTimer(d)
}

// daemon is a running daemon, and its owner's way to it.
type daemon struct {
	t        *testing.T
	app      *app.App
	url, key string
}

// start starts a daemon on an empty data directory. Its only model is a server that obeys.
func start(t *testing.T, m *obedient) *daemon {
	t.Helper()
	config := app.Default(t.TempDir())
	config.Listen, config.Floating = "127.0.0.1:0", true
	config.RateRules = []string{"owner=1000000", "general=1000000"}
	a, err := app.Open(t.Context(), config, hurried{}, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended, ready := make(chan error, 1), make(chan app.State, 1)
	go func() { ended <- a.Run(ctx, func(s app.State) { ready <- s }) }()
	d := &daemon{t: t, app: a}
	t.Cleanup(sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}))
	select {
	case s := <-ready:
		d.url = "http://" + s.Address
	case err := <-ended:
		ended <- err
		t.FailNow()
	}
	key, err := os.ReadFile(filepath.Join(config.DataDir, "owner.key"))
	if err != nil {
		t.Fatal(err)
	}
	d.key = strings.TrimSpace(string(key))
	d.must("PATCH", "/v1/workspaces/"+string(id.DefaultWorkspace), map[string]any{"max_concurrent_tasks": 64}, nil)
	d.must("PUT", "/v1/models/obedient", map[string]any{"provider": "openai", "dialect": "generic", "base_url": m.URL + "/v1", "model": "any",
		"allow_private": true}, nil)
	return d
}

// ask sends a request. A body that is not a text is sent as JSON; an answer is read into what is given for it.
func (d *daemon) ask(ctx context.Context, method, path string, body, into any) error {
	media, raw := "application/json", []byte(nil)
	switch b := body.(type) {
	case nil:
	case string:
		media, raw = "application/octet-stream", []byte(b)
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+d.key)
	if body != nil {
		r.Header.Set("Content-Type", media)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, said)
	}
	switch to := into.(type) {
	case nil:
		return nil
	case *string:
		*to = string(said)
		return nil
	}
	return json.Unmarshal(said, into)
}

// must is ask for what has to succeed.
func (d *daemon) must(method, path string, body, into any) {
	d.t.Helper()
	if err := d.ask(d.t.Context(), method, path, body, into); err != nil {
		d.t.Fatal(err)
	}
}

// blueprint registers a blueprint with some lines of its own.
func (d *daemon) blueprint(name, lines string) {
	d.t.Helper()
	d.must("PUT", "/v1/blueprints/"+name, map[string]any{"text": "api_version: 1\nname: " + name +
		"\nadapter: {kind: internal}\nmodels: {default: obedient}\n" + lines}, nil)
}

// space makes a space with a preset and what an admin has added to it.
func (d *daemon) space(preset string, overrides map[string]any, more map[string]any) id.Space {
	d.t.Helper()
	body := map[string]any{"best_effort": true, "policy": preset, "policy_overrides": overrides}
	for name, value := range more {
		body[name] = value
	}
	var made struct {
		ID id.Space `json:"id"`
	}
	d.must("POST", "/v1/spaces", body, &made)
	return made.ID
}

// give gives an agent a task in a space, and returns its run.
func (d *daemon) give(blueprint, task string, in id.Space) id.Run {
	d.t.Helper()
	var made struct {
		Run id.Run `json:"run_id"`
	}
	d.must("POST", "/v1/blueprints/"+blueprint+"/runs", map[string]any{"task": task, "space_id": in}, &made)
	return made.Run
}

// ended waits for the end of a run, and returns how it ended.
func (d *daemon) ended(r id.Run) (status, report string) {
	d.t.Helper()
	waiting, stop := context.WithTimeout(d.t.Context(), wall.Patience)
	defer stop()
	if _, err := d.app.Runs.History.Wait(waiting, id.DefaultWorkspace, r); err != nil {
		d.t.Fatalf("run %s does not end: %v", r, err)
	}
	var end struct {
		Status   string `json:"status"`
		Error    string `json:"error"`
		Reported struct {
			Message string `json:"message"`
			Output  struct {
				Report string `json:"report"`
			} `json:"output"`
		} `json:"reported"`
	}
	d.must("GET", "/v1/runs/"+string(r), nil, &end)
	return end.Status, strings.TrimSpace(end.Reported.Output.Report + " " + end.Error + " " + end.Reported.Message)
}

// question is a question to a person.
type question struct {
	ID      string   `json:"approval_id"`
	Action  string   `json:"action"`
	Space   id.Space `json:"space_id"`
	Request struct {
		Target  string          `json:"target"`
		Command string          `json:"command"`
		Tool    string          `json:"tool"`
		Body    json.RawMessage `json:"request"` // the arguments of a tool of an MCP server
	} `json:"request"`
}

// about is the call that a question is about, as wish.key tells it.
func (q question) about() string {
	if q.Action == policy.MCPCall {
		return q.Request.Tool + " " + string(q.Request.Body)
	}
	return q.Request.Command + q.Request.Target
}

// person answers the questions of the workspace, each once: they approve what somebody who gave the task wants, and deny the rest.
type person struct {
	d     *daemon
	wants func(question) bool
	stop  func() error

	mu       sync.Mutex
	approved []question
	denied   []question
}

// attend begins to answer questions.
func attend(d *daemon, wants func(question) bool) *person {
	p := &person{d: d, wants: wants}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.answer(ctx) }()
	p.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	d.t.Cleanup(func() {
		if err := p.stop(); err != nil {
			d.t.Error(err)
		}
	})
	return p
}

func (p *person) answer(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var open struct {
			Approvals []question `json:"approvals"`
		}
		err := p.d.ask(ctx, "GET", "/v1/approvals?status=pending&limit=100", nil, &open)
		for _, q := range open.Approvals {
			err = errors.Join(err, p.decide(ctx, q))
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (p *person) decide(ctx context.Context, q question) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	verdict, list := "deny", &p.denied
	if p.wants(q) {
		verdict, list = "approve", &p.approved
	}
	*list = append(*list, q)
	return p.d.ask(ctx, "POST", "/v1/approvals/"+q.ID+"/decide", map[string]any{"decision": verdict}, nil)
}

// answers returns the questions that were approved, and those that were denied.
func (p *person) answers() (approved, denied []question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]question(nil), p.approved...), append([]question(nil), p.denied...)
}
