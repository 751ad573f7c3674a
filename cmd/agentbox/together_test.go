package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentbox/internal/testkit/pgtest"
)

// member is a daemon in a process of its own that works on a database together with others.
type member struct {
	t       *testing.T
	dir     string
	flags   []string
	cmd     *exec.Cmd
	said    *bytes.Buffer
	address string
	key     string
}

// newMember makes a member, which does not run yet.
func newMember(t *testing.T, database, shared string) *member {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	return &member{t: t, dir: dir, flags: []string{"up", "--data", dir, "--listen", "127.0.0.1:0", "--store", database, "--shared", shared,
		"--log-format", "json"}}
}

// start starts the daemon and waits until it works.
func (m *member) start() {
	m.t.Helper()
	m.begin()
	m.ready()
}

func (m *member) begin() {
	m.t.Helper()
	m.said = &bytes.Buffer{}
	m.cmd = exec.Command("agentbox", m.flags...)
	m.cmd.Stderr = m.said
	if err := startBound(m.cmd); err != nil {
		m.t.Fatal(err)
	}
	cmd := m.cmd
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func (m *member) ready() {
	m.t.Helper()
	m.until("the daemon works", func() bool {
		var state struct {
			Addr, Phase string
			PID         int
		}
		raw, err := os.ReadFile(filepath.Join(m.dir, "daemon.json"))
		if err != nil || json.Unmarshal(raw, &state) != nil || state.Phase != "" || state.PID != m.cmd.Process.Pid {
			return false
		}
		key, err := os.ReadFile(filepath.Join(m.dir, "owner.key"))
		m.address, m.key = "http://"+state.Addr, strings.TrimSpace(string(key))
		return err == nil
	})
}

// until waits for something that another process does.
func (m *member) until(what string, is func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); {
		if time.Now().After(deadline) {
			m.t.Fatalf("%s: not within a minute; the daemon said\n%s", what, m.said)
		}
		select {
		case <-time.After(150 * time.Millisecond):
		case <-m.t.Context().Done():
			m.t.Fatal(what)
		}
	}
}

// kill ends the daemon without warning.
func (m *member) kill() {
	m.t.Helper()
	if err := m.cmd.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	_ = m.cmd.Wait() // killed
}

// signal sends the daemon a signal.
func (m *member) signal(s os.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

func (m *member) request(ctx context.Context, key, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, m.address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return http.DefaultClient.Do(r)
}

// as asks with a key and returns the status and the answer.
func (m *member) as(key, method, path, body string) (int, map[string]any) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	resp, err := m.request(ctx, key, method, path, body)
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", method, path, err, m.said)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	answer := map[string]any{}
	if json.Unmarshal(raw, &answer) != nil {
		answer["text"] = string(raw)
	}
	return resp.StatusCode, answer
}

// must asks as the owner and fails unless the answer is a success.
func (m *member) must(method, path, body string) map[string]any {
	m.t.Helper()
	status, answer := m.as(m.key, method, path, body)
	if status >= 300 {
		m.t.Fatalf("%s %s: %d %v\n%s", method, path, status, answer, m.said)
	}
	return answer
}

// refused asks as the owner and fails unless the answer is a problem of that code.
func (m *member) refused(method, path, body, code string) map[string]any {
	m.t.Helper()
	_, answer := m.as(m.key, method, path, body)
	if answer["error"] != code {
		m.t.Fatalf("%s %s: %v, want %s", method, path, answer, code)
	}
	return answer
}

// nodes are the members as this one sees them, by their node.
func (m *member) nodes() map[string]map[string]any {
	m.t.Helper()
	found := map[string]map[string]any{}
	for _, n := range m.must("GET", "/v1/nodes", "")["nodes"].([]any) {
		one := n.(map[string]any)
		found[one["id"].(string)] = one
	}
	return found
}

// begun waits until a run has begun its command.
func (m *member) begun(run string) {
	m.t.Helper()
	m.until("the command runs", func() bool {
		events, _ := json.Marshal(m.must("GET", "/v1/events?run_id="+run, ""))
		return strings.Contains(string(events), "tool.invoked")
	})
}

// says fails unless a command that finds this daemon by its data directory says something.
func (m *member) says(what string, args ...string) {
	m.t.Helper()
	out, err := exec.Command("agentbox", append(args, "--data", m.dir)...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), what) {
		m.t.Errorf("agentbox %s: %v, want %q in\n%s", strings.Join(args, " "), err, what, out)
	}
}

// node is which one this is.
func (m *member) node() string {
	m.t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.dir, "node"))
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// leads waits until this member leads.
func (m *member) leads() {
	m.t.Helper()
	m.until("it leads", func() bool { return m.nodes()[m.node()]["leads"] == true })
}

const (
	operation = `{"protocolVersion":"1.0","operations":[{"type":"shell","command":%q}]}`
	atOnce    = `{"wait":0,"protocolVersion":"1.0","operations":[{"type":"shell","command":%q}]}` // answered before it has ended
)

// follow reads events of the log until one of a type comes, and returns when it did.
func (m *member) follow(from uint64, typ string) <-chan time.Time {
	m.t.Helper()
	resp, err := m.request(m.t.Context(), m.key, "GET", fmt.Sprintf("/v1/events/stream?from_seq=%d", from), "")
	if err != nil || resp.StatusCode != 200 {
		m.t.Fatalf("follow the log: %v, %v", resp, err)
	}
	came := make(chan time.Time, 1)
	go func() {
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data:") && strings.Contains(lines.Text(), `"`+typ+`"`) {
				came <- time.Now()
				return
			}
		}
	}()
	return came
}

// soon waits for what one daemon tells the other. Untold the other one would look for itself every 10 s; half of that is a telling, also
// where the machine has ten times as much to do as it has processors.
func soon(t *testing.T, what string, since time.Time, came <-chan time.Time) {
	t.Helper()
	select {
	case at := <-came:
		if took := at.Sub(since); took > 5*time.Second {
			t.Errorf("%s took %s, want 5 s at most", what, took)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%s never came", what)
	}
}

// Two daemons work on one database: each answers for the other, what one is told the other one does, and what dies with one goes on in
// the other.
func TestDaemonsWorkTogether(t *testing.T) {
	server := pgtest.Start(t)
	database, shared := server.Database(), filepath.Join(t.TempDir(), "shared")
	a, b := newMember(t, database, shared), newMember(t, database, shared)
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const budgets = "models: []\nbudgets:\n  - {scope: workspace, tokens_per_day: 5000000}\n"
	if err := os.WriteFile(filepath.Join(a.dir, "models.yaml"), []byte(budgets), 0o600); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.leads()
	b.start()
	if got, _ := b.must("GET", "/v1/models", "")["budgets"].([]any); len(got) != 1 { // a daemon without a file says nothing
		t.Errorf("the budgets of the other one's file are %v", got)
	}
	if found := b.nodes(); len(found) != 2 || found[a.node()]["alive"] != true || found[b.node()]["alive"] != true ||
		found[b.node()]["leads"] == true {
		t.Fatalf("the nodes are %v", found)
	}

	{ // Each answers for the other.
		s := a.must("POST", "/v1/spaces", `{"name":"of a","runtime":"heavy"}`)
		if s["node_id"] != a.node() {
			t.Fatalf("the space is of %v, want %s", s["node_id"], a.node())
		}
		space := "/v1/spaces/" + s["id"].(string)
		run := b.must("POST", space+"/runs", fmt.Sprintf(operation, "echo here >out.txt; cat out.txt"))
		if run["status"] != "completed" {
			t.Fatalf("a run that was asked for elsewhere: %v", run)
		}
		if _, got := b.as(b.key, "GET", space+"/files/out.txt", ""); got["text"] != "here\n" {
			t.Errorf("the file, asked for elsewhere: %v", got)
		}
		if status, got := b.as(b.key, "PUT", space+"/files/in.txt", `{"of":"b"}`); status >= 300 {
			t.Errorf("a file sent elsewhere: %d %v", status, got)
		}
		if _, got := a.as(a.key, "GET", space+"/files/in.txt", ""); got["of"] != "b" {
			t.Errorf("the file that was sent elsewhere: %v", got)
		}
		id := run["runId"].(string)
		resp, err := b.request(t.Context(), b.key, "GET", space+"/runs/"+id+"/stream", "")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		watched, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(watched), "here") || !strings.Contains(string(watched), "event: complete") {
			t.Errorf("the run, watched elsewhere: %v\n%s", err, watched)
		}
		if got := resp.Header.Values("Content-Type"); len(got) != 1 || !strings.HasPrefix(got[0], "text/event-stream") {
			t.Errorf("its content type is %v", got)
		}
		if got := resp.Header.Values("X-Request-Id"); len(got) != 1 {
			t.Errorf("request ids of a forwarded request: %v", got)
		}
		// Two daemons that each hold the other for the home do not send a request to and fro.
		looped, err := http.NewRequestWithContext(t.Context(), "GET", b.address+space+"/files/out.txt", nil)
		if err != nil {
			t.Fatal(err)
		}
		looped.Header.Set("Authorization", "Bearer "+b.key)
		looped.Header.Set("Agentbox-Forwarded-By", a.node())
		if resp, err := http.DefaultClient.Do(looped); err != nil || resp.StatusCode != 503 {
			t.Errorf("what was forwarded already: %v, %v, want 503", resp, err)
		} else {
			resp.Body.Close()
		}
		snapshots := b.must("GET", space+"/snapshots", "")["snapshots"].([]any)
		if len(snapshots) < 2 {
			t.Errorf("the snapshots, asked for elsewhere: %v", snapshots)
		}
		b.must("DELETE", space, "")
		if got := a.must("GET", space, ""); got["status"] != "destroyed" {
			t.Errorf("destroyed elsewhere it is %v", got["status"])
		}
	}

	{ // What one is told the other one does.
		thread := a.must("POST", "/v1/rooms/room_00000000000000000000000000/threads", `{"title":"both"}`)["thread_id"].(string)
		came := a.follow(1, "message.created")
		since := time.Now()
		b.must("POST", "/v1/threads/"+thread+"/messages", `{"content_md":"from the other one"}`)
		soon(t, "a message", since, came)

		made := a.must("POST", "/v1/keys", `{"name":"short-lived"}`)
		text, key := made["key"].(string), made["key_id"].(string)
		if status, got := b.as(text, "GET", "/v1/auth/session", ""); status != 200 {
			t.Fatalf("a key that was made elsewhere: %d %v", status, got)
		}
		a.must("DELETE", "/v1/keys/"+key, "")
		if status, _ := b.as(text, "GET", "/v1/auth/session", ""); status != 401 {
			t.Errorf("a key that was revoked elsewhere: %d, want 401", status)
		}

		space := "/v1/spaces/" + b.must("POST", "/v1/spaces", `{"name":"of b","runtime":"heavy"}`)["id"].(string)
		run := b.must("POST", space+"/runs", fmt.Sprintf(atOnce, "sleep 100"))["runId"].(string)
		b.begun(run)
		came = b.follow(1, "tool.failed")
		since = time.Now()
		a.must("PUT", "/v1/kill-switch", `{"on":true,"reason":"enough"}`)
		soon(t, "the end of a command after the kill switch", since, came)
		b.refused("POST", space+"/runs", fmt.Sprintf(operation, "echo"), "kill_switch_active")
		b.must("PUT", "/v1/kill-switch", `{"on":false}`)
		if got := a.must("POST", space+"/runs", fmt.Sprintf(operation, "echo")); got["status"] != "completed" {
			t.Errorf("once it was lifted elsewhere: %v", got)
		}
	}

	{ // An order is executed where its space is.
		for n, m := range []*member{a, b} {
			space := m.must("POST", "/v1/spaces", fmt.Sprintf(`{"name":"for engine %d","runtime":"heavy"}`, n))["id"].(string)
			order := fmt.Sprintf(`{"room_id":"room_00000000000000000000000000","input":{"protocolVersion":"1.0","space_id":%q,"operations":[{"type":"shell","command":"echo `+
				``+
				`done"}]}}`, space)
			run := a.must("POST", "/v1/runs", order)["run_id"].(string)
			a.until("the order is executed", func() bool {
				status := b.must("GET", "/v1/runs/"+run, "")["status"]
				return status == "succeeded" || status == "completed" || status == "failed"
			})
			if got := a.must("GET", "/v1/runs/"+run, ""); got["status"] == "failed" {
				t.Errorf("the order is %v", got)
			}
		}
	}

	{ // A redaction is done when all have dropped the keys.
		thread := b.must("POST", "/v1/rooms/room_00000000000000000000000000/threads", `{"title":"private"}`)["thread_id"].(string)
		message := b.must("POST", "/v1/threads/"+thread+"/messages", `{"content_md":"a zebra is private"}`)["message_id"].(string)
		for _, m := range []*member{a, b} {
			if got := m.must("GET", "/v1/search?q=zebra", "")["results"].([]any); len(got) != 1 {
				t.Fatalf("found are %v", got)
			}
		}
		events := b.must("GET", "/v1/events?thread_id="+thread, "")["events"].([]any)
		var secret string
		for _, e := range events {
			if e := e.(map[string]any); e["event_type"] == "message.created" {
				secret = e["event_id"].(string)
			}
		}
		b.must("POST", "/v1/audit/redactions", fmt.Sprintf(`{"event_id":%q,"reason":"told to"}`, secret)) // which the leader does
		for _, m := range []*member{a, b} {
			raw, _ := json.Marshal(m.must("GET", "/v1/events/"+secret, ""))
			if strings.Contains(string(raw), "zebra") {
				t.Errorf("still shown: %s", raw)
			}
			raw, _ = json.Marshal(m.must("GET", "/v1/threads/"+thread+"/messages", ""))
			if strings.Contains(string(raw), "zebra") || !strings.Contains(string(raw), message) {
				t.Errorf("still shown: %s", raw)
			}
			if got := m.must("GET", "/v1/search?q=zebra", "")["results"].([]any); len(got) != 0 {
				t.Errorf("still found: %v", got)
			}
		}
	}

	{ // A member that stands still.
		thread := a.must("POST", "/v1/rooms/room_00000000000000000000000000/threads", `{"title":"private too"}`)["thread_id"].(string)
		a.must("POST", "/v1/threads/"+thread+"/messages", `{"content_md":"an okapi is private"}`)
		events := b.must("GET", "/v1/events?thread_id="+thread, "")["events"].([]any)
		at := slices.IndexFunc(events, func(e any) bool { return e.(map[string]any)["event_type"] == "message.created" })
		secret := events[at].(map[string]any)["event_id"].(string)
		b.signal(syscall.SIGSTOP)
		got := a.refused("POST", "/v1/audit/redactions", fmt.Sprintf(`{"event_id":%q,"reason":"told to"}`, secret), "redaction_open")
		if !strings.Contains(fmt.Sprint(got["detail"]), b.node()) {
			t.Errorf("it is not said who: %v", got)
		}
		b.signal(syscall.SIGCONT)
		raw, _ := json.Marshal(b.must("GET", "/v1/events/"+secret, ""))
		if strings.Contains(string(raw), "okapi") {
			t.Errorf("a member that goes on opens what was destroyed: %s", raw)
		}
		a.must("POST", "/v1/audit/redactions", fmt.Sprintf(`{"event_id":%q,"reason":"told to"}`, secret))
	}

	{ // The leader is killed.
		space := "/v1/spaces/" + a.must("POST", "/v1/spaces", `{"name":"left","runtime":"heavy"}`)["id"].(string)
		run := a.must("POST", space+"/runs", fmt.Sprintf(atOnce, "sleep 100"))["runId"].(string)
		thread := a.must("POST", "/v1/rooms/room_00000000000000000000000000/threads", `{"title":"last words"}`)["thread_id"].(string)
		a.begun(run)
		last := a.must("POST", "/v1/threads/"+thread+"/messages", `{"content_md":"acknowledged"}`)["message_id"].(string)
		a.kill()
		b.leads()
		raw, _ := json.Marshal(b.must("GET", "/v1/threads/"+thread+"/messages", ""))
		if !strings.Contains(string(raw), last) {
			t.Errorf("what was acknowledged is lost: %s", raw)
		}
		got := b.refused("POST", space+"/runs", fmt.Sprintf(operation, "echo"), "node_unavailable")
		if !strings.Contains(fmt.Sprint(got["detail"]), a.node()) {
			t.Errorf("it is not said which: %v", got)
		}
		if doc := b.must("GET", "/v1/runs/"+run, ""); doc["status"] != "running" {
			t.Errorf("a run of a node that may come back is %v", doc["status"])
		}
		b.refused("DELETE", "/v1/nodes/"+b.node(), "", "node_alive")
		// It comes back, and puts in order what is its own.
		a.start()
		a.until("the run asks", func() bool { return b.must("GET", "/v1/runs/"+run, "")["status"] == "awaiting_approval" })
		a.kill()
		b.says("does not work", "node", "list")
		b.says("given up", "node", "remove", a.node(), "--reason", "burnt")
		b.says("given up", "node", "list")
		if got := b.must("GET", space, ""); got["status"] != "destroyed" || got["reason"] != "node_removed" {
			t.Errorf("its space is %v, %v", got["status"], got["reason"])
		}
		if got := b.must("GET", "/v1/runs/"+run, ""); got["status"] != "cancelled" {
			t.Errorf("its run is %v", got["status"])
		}
		a.begin()
		if err := a.cmd.Wait(); err == nil || !strings.Contains(a.said.String(), "given up") {
			t.Errorf("a daemon that was given up: %v\n%s", err, a.said)
		}
	}

	{ // The log verifies.
		b.signal(syscall.SIGTERM)
		if err := b.cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, b.said)
		}
		out, err := exec.Command("agentbox", "audit", "verify", "--data", b.dir, "--store", database, "--shared", shared).CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
