package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// caller is a client of the HTTP API that knows nothing but its documents.
type caller struct {
	url, key string
	data     string // the data directory
	http     *http.Client
}

func newCaller(address, key, data string, over http.RoundTripper) *caller {
	return &caller{url: strings.TrimSuffix(address, "/"), key: key, data: data, http: &http.Client{Timeout: 2 * time.Minute, Transport: over}}
}

// locate finds a daemon by its data directory, as the command line does, where the address or the key is not given.
func locate(data, address, key string, over http.RoundTripper) (*caller, error) {
	if address == "" {
		var state struct {
			Addr string `json:"addr"`
		}
		raw, err := os.ReadFile(filepath.Join(data, "daemon.json"))
		if err == nil {
			err = json.Unmarshal(raw, &state)
		}
		if err != nil || state.Addr == "" {
			return nil, fmt.Errorf("no daemon runs on %s; start one with: agentbox up --data %s (%w)", data, data, err)
		}
		address = "http://" + state.Addr
	}
	file := key
	if key == "" {
		file = filepath.Join(data, "owner.key")
	}
	if raw, err := os.ReadFile(file); err == nil {
		key = strings.TrimSpace(string(raw))
	} else if key == "" {
		return nil, fmt.Errorf("find the owner's key: %w; name it with --key", err)
	}
	return newCaller(address, key, data, over), nil
}

// answer is an answer of the API.
type answer struct {
	status int
	raw    []byte
	body   map[string]any // nil where it is not a JSON object
}

// text returns a value by the names that lead to it, as text; "" where there is none.
func (a answer) text(path ...string) string { return at(a.body, path...) }

// ok reports whether the request was done.
func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// refusal returns a refusal as an error.
func (a answer) refusal() error {
	return fmt.Errorf("%d %s: %s", a.status, a.text("error"), a.text("detail"))
}

func at(value any, path ...string) string {
	for _, name := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = m[name]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// items returns the objects of a list.
func items(value any) (list []map[string]any) {
	all, _ := value.([]any)
	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

// call makes one request; it sends a body that is not an io.Reader as JSON. When it meets a rate limit, it waits as long as the answer
// says.
func (c *caller) call(ctx context.Context, method, path string, body any, header ...string) (answer, error) {
	for {
		a, wait, err := c.once(ctx, method, path, body, header...)
		if err != nil || a.status != http.StatusTooManyRequests || a.text("error") != "rate_limited" {
			return a, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

func (c *caller) once(ctx context.Context, method, path string, body any, header ...string) (a answer, wait time.Duration, err error) {
	media, raw := "application/json", []byte(nil)
	switch b := body.(type) {
	case nil:
	case []byte:
		media, raw = "application/octet-stream", b
	default:
		if raw, err = json.Marshal(body); err != nil {
			return a, 0, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(raw))
	if err != nil {
		return a, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		r.Header.Set("Content-Type", media)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := c.http.Do(r)
	if err != nil {
		return a, 0, err
	}
	defer got.Body.Close()
	if a.raw, err = io.ReadAll(got.Body); err != nil {
		return a, 0, err
	}
	a.status = got.StatusCode
	numbers := json.NewDecoder(bytes.NewReader(a.raw))
	numbers.UseNumber()
	if strings.Contains(got.Header.Get("Content-Type"), "json") {
		_ = numbers.Decode(&a.body) // an answer that is not an object has none
	}
	seconds, _ := strconv.Atoi(got.Header.Get("Retry-After"))
	return a, max(200*time.Millisecond, time.Duration(seconds)*time.Second), nil
}

// get reads an existing resource.
func (c *caller) get(ctx context.Context, path string) (answer, error) {
	return c.must(ctx, http.MethodGet, path, nil)
}

// must makes a request that has to succeed.
func (c *caller) must(ctx context.Context, method, path string, body any, header ...string) (answer, error) {
	a, err := c.call(ctx, method, path, body, header...)
	if err == nil && !a.ok() {
		err = fmt.Errorf("%s %s: %w", method, path, a.refusal())
	}
	return a, err
}

// firstCheckpoint returns the newest checkpoint. A daemon that has just begun signs its first one within a second; the call waits five.
func (c *caller) firstCheckpoint(ctx context.Context) (answer, error) {
	for try := 1; ; try++ {
		a, err := c.call(ctx, http.MethodGet, "/v1/audit/checkpoint", nil)
		if err != nil || a.ok() {
			return a, err
		}
		if a.text("error") != "checkpoint_not_found" || try == 50 {
			return a, fmt.Errorf("GET /v1/audit/checkpoint: %w", a.refusal())
		}
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ready asks whether the daemon can work.
func (c *caller) ready(ctx context.Context) error {
	_, err := c.get(ctx, "/readyz")
	return err
}

// newSpace makes a space in which policy asks about files below ask/, about the command tee, and about nothing else that is done here.
func (c *caller) newSpace(ctx context.Context, name string) (string, error) {
	a, err := c.must(ctx, "POST", "/v1/spaces", map[string]any{
		"name": name, "ttl_seconds": 7200, "best_effort": true, "policy": "standard",
		"policy_overrides": map[string]any{"ask": map[string]any{"paths": []string{"ask/**"}, "commands": []string{"tee"}}},
	})
	if err != nil {
		return "", err
	}
	for _, name := range []string{"id", "space_id"} {
		if id := a.text(name); id != "" {
			return id, nil
		}
	}
	return "", errors.New("the answer to a new space names none")
}

// operation is one operation of a run.
type operation map[string]any

// shell is an operation that runs a command.
func shell(id, command string) operation {
	return operation{"type": "shell", "id": id, "command": command}
}

// started is the answer to the start of a run.
type started struct {
	id, status string
	events     []map[string]any
	raw        answer
}

// run sends operations and waits up to so many seconds for their end.
func (c *caller) run(ctx context.Context, space string, wait int, ops ...operation) (started, error) {
	a, err := c.must(ctx, "POST", "/v1/spaces/"+space+"/runs", map[string]any{"protocolVersion": "1.0", "operations": ops, "wait": wait})
	return started{a.text("runId"), a.text("status"), items(a.body["events"]), a}, err
}

// question is an approval, with the action as it came.
type question struct {
	ID      string          `json:"approval_id"`
	Run     string          `json:"run_id"`
	Request json.RawMessage `json:"request"`
	Digest  string          `json:"action_sha256"`
	Status  string          `json:"status"`
	Used    bool            `json:"used"`
	Text    struct {
		What       string `json:"what"`
		AgentWords string `json:"agent_words"`
	} `json:"question"`
}

func (c *caller) question(ctx context.Context, id string) (q question, err error) {
	a, err := c.get(ctx, "/v1/approvals/"+id)
	if err != nil {
		return q, err
	}
	return q, json.Unmarshal(a.raw, &q)
}

// approve answers a question, once.
func (c *caller) approve(ctx context.Context, id string) (answer, error) {
	return c.call(ctx, "POST", "/v1/approvals/"+id+"/decide", map[string]string{"decision": "approve"})
}

// put writes a file of a space.
func (c *caller) put(ctx context.Context, space, file, content string, header ...string) (answer, error) {
	return c.call(ctx, "PUT", "/v1/spaces/"+space+"/files/"+(&url.URL{Path: file}).EscapedPath(), []byte(content), header...)
}

// event is an entry of the log.
type event struct {
	Seq   uint64         `json:"seq"`
	ID    string         `json:"event_id"`
	Type  string         `json:"event_type"`
	Run   string         `json:"run_id"`
	Data  map[string]any `json:"data"`
	Chain struct {
		Hash string `json:"event_hash"`
	} `json:"chain"`
}

// log returns the events from a place on that the query selects.
func (c *caller) log(ctx context.Context, from uint64, query string) (all []event, err error) {
	for from = max(1, from); ; {
		a, err := c.get(ctx, fmt.Sprintf("/v1/events?limit=200&from_seq=%d&%s", from, query))
		if err != nil {
			return nil, err
		}
		var page struct {
			Events []event `json:"events"`
			Next   uint64  `json:"next_from_seq"`
		}
		if err := json.Unmarshal(a.raw, &page); err != nil {
			return nil, err
		}
		if len(page.Events) == 0 {
			return all, nil
		}
		all, from = append(all, page.Events...), page.Next
	}
}

// head returns the place of the last event.
func (c *caller) head(ctx context.Context) (uint64, error) {
	a, err := c.get(ctx, "/v1/events?limit=1")
	if err != nil {
		return 0, err
	}
	var page struct {
		Events []event `json:"events"`
	}
	if err := json.Unmarshal(a.raw, &page); err != nil || len(page.Events) == 0 {
		return 0, errors.Join(err, errors.New("the log is empty"))
	}
	return page.Events[0].Seq, nil
}
