package client

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
)

// Desk is where an engine outside of the daemon claims runs and reports what it does: the API.
type Desk struct {
	*Client
	Room id.Room // only runs of this room; "" for any
}

var (
	_ errand.Claims  = Desk{}
	_ errand.Records = Desk{}
)

// EngineRun asks for a run that an engine executes.
type EngineRun struct {
	Room   id.Room         `json:"room_id"`
	Title  string          `json:"title,omitempty"`
	Goal   string          `json:"goal,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Tags   []string        `json:"tags,omitempty"`
	Thread id.Thread       `json:"thread_id,omitempty"`

	IdempotencyKey string `json:"-"`
}

// Claimed is the answer to a claim.
type Claimed struct {
	Claimed bool            `json:"claimed"`
	Run     *run.Run        `json:"run,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Token   string          `json:"claim_token,omitempty"`
	Permit  string          `json:"permit,omitempty"`
	Fence   uint64          `json:"fence,omitempty"`

	Reason  string     `json:"reason,omitempty"`  // why nothing was: NothingWaits or WorkspaceFull
	Waiting int        `json:"waiting,omitempty"` // runs that wait until fewer run
	Tasks   *run.Tasks `json:"tasks,omitempty"`   // of a workspace that is full
}

// Why there was nothing to claim.
const (
	NothingWaits  = "nothing_waits"
	WorkspaceFull = "workspace_full"
)

// CreateEngineRun asks for a run that an engine executes.
func (c *Client) CreateEngineRun(ctx context.Context, q EngineRun) (run.Run, error) {
	var made run.Run
	err := c.call(ctx, http.MethodPost, "/v1/runs", nil, q, &made, idempotent(q.IdempotencyKey))
	return made, err
}

// ClaimRun claims the next run: of a room and of a kind of work where they are named. It waits for one, in whole seconds and at most a
// minute.
func (c *Client) ClaimRun(ctx context.Context, room id.Room, work string, wait time.Duration) (Claimed, error) {
	var got Claimed
	err := c.post(ctx, "/v1/runs/claim", struct {
		Room id.Room `json:"room_id,omitempty"`
		Work string  `json:"work,omitempty"`
		Wait int64   `json:"wait_seconds,omitempty"`
	}{room, work, int64(wait / time.Second)}, &got)
	return got, err
}

// Tell sends a report about a run that the caller has claimed: lease/heartbeat, lease/release, start, complete, fail or steps.
func (c *Client) Tell(ctx context.Context, r id.Run, what, token string, body, out any, key string) error {
	return c.call(ctx, http.MethodPost, join("/v1/runs/", escape(string(r)), "/", what), nil, body, out, claimed(token, key))
}

// PermitKey returns the public key that verifies the permits of engines.
func (c *Client) PermitKey(ctx context.Context) (ed25519.PublicKey, error) {
	var got struct {
		Key ed25519.PublicKey `json:"public_key"`
	}
	err := c.get(ctx, "/v1/engines/permit-key", nil, &got)
	return got.Key, err
}

// Attempts returns the attempts of engines to execute a run.
func (c *Client) Attempts(ctx context.Context, r id.Run) ([]run.Attempt, error) {
	var got struct {
		Attempts []run.Attempt `json:"attempts"`
	}
	err := c.get(ctx, join("/v1/runs/", escape(string(r)), "/attempts"), nil, &got)
	return got.Attempts, err
}

func claimed(token, key string) map[string]string {
	header := idempotent(key)
	if header == nil {
		header = map[string]string{}
	}
	if token != "" {
		header["X-Claim-Token"] = token
	}
	return header
}

// Claim implements errand.Claims.
func (d Desk) Claim(ctx context.Context, wait time.Duration) (errand.Work, error) {
	got, err := d.ClaimRun(ctx, d.Room, errand.Operations, wait)
	if err != nil {
		return errand.Work{}, err
	}
	if !got.Claimed || got.Run == nil {
		return errand.Work{}, nothing(got)
	}
	var lasts time.Duration
	if c := got.Run.Claim; c != nil {
		lasts = c.Until.Sub(c.Renewed)
	}
	return errand.Work{Lasts: lasts, Run: got.Run.ID, Token: got.Token, Permit: got.Permit, Fence: got.Fence, Input: got.Input}, nil
}

// nothing says why there was no run to claim.
func nothing(got Claimed) error {
	if got.Reason != WorkspaceFull || got.Tasks == nil {
		return errand.ErrNothing
	}
	return fault.New(fault.NotFound, errand.ErrNothing.Code,
		"%d runs wait for a place in the workspace: %d of %d places are taken, %d of them by engines that are silent",
		got.Waiting, got.Tasks.Running, got.Tasks.Most, got.Tasks.Silent)
}

// Renew implements errand.Claims.
func (d Desk) Renew(ctx context.Context, w errand.Work) error {
	return d.Tell(ctx, w.Run, "lease/heartbeat", w.Token, struct{}{}, nil, "")
}

// Release implements errand.Claims.
func (d Desk) Release(ctx context.Context, w errand.Work) error {
	return d.Tell(ctx, w.Run, "lease/release", w.Token, struct{}{}, nil, "")
}

// End implements errand.Claims.
func (d Desk) End(ctx context.Context, w errand.Work, r errand.Result) error {
	what, body := "complete", map[string]any{"summary": r.Summary}
	if r.Failure != "" {
		what, body = "fail", map[string]any{"error": r.Failure, "message": r.Message}
	}
	if r.Output != nil {
		body["output"] = r.Output
	}
	return d.Tell(ctx, w.Run, what, w.Token, permitted(body, w.Permit), nil, once(w, what, 0))
}

// permitted adds a permit to a request, if there is one.
func permitted(body map[string]any, permit string) map[string]any {
	if permit != "" {
		body["permit"] = permit
	}
	return body
}

// once is the idempotency key of something that an engine records under one claim.
func once(w errand.Work, what string, index int) string {
	return "engine-" + string(w.Run) + "-" + strconv.FormatUint(w.Fence, 10) + "-" + what + "-" + strconv.Itoa(index)
}

// Past implements errand.Records.
func (d Desk) Past(ctx context.Context, w errand.Work) ([]errand.Progress, error) {
	calls := map[id.Step]step.Call{}
	var page struct {
		Steps []step.Step `json:"steps"`
		Calls []step.Call `json:"tool_calls"`
		Next  string      `json:"next_cursor"`
	}
	for cursor := ""; ; cursor = page.Next {
		page.Calls, page.Next = nil, ""
		if err := d.get(ctx, "/v1/toolcalls", all(url.Values{"run_id": {string(w.Run)}}, cursor), &page); err != nil {
			return nil, err
		}
		for _, c := range page.Calls {
			if newer, ok := calls[c.Step]; !ok || newer.ID < c.ID {
				calls[c.Step] = c
			}
		}
		if page.Next == "" {
			break
		}
	}
	var past []errand.Progress
	for cursor := ""; ; cursor = page.Next {
		page.Steps, page.Next = nil, ""
		if err := d.get(ctx, join("/v1/runs/", escape(string(w.Run)), "/steps"), all(url.Values{}, cursor), &page); err != nil {
			return nil, err
		}
		for _, s := range page.Steps {
			c := calls[s.ID]
			call := errand.Call{ID: c.ID, Status: string(c.Status), OK: c.Status == step.Succeeded, Child: c.Child, Output: c.Output, Error: c.Error}
			past = append(past, errand.Recorded(s.ID, s.Input, call))
		}
		if page.Next == "" {
			return past, nil
		}
	}
}

func all(q url.Values, cursor string) url.Values {
	q.Set("limit", "100")
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return q
}

// Step implements errand.Records.
func (d Desk) Step(ctx context.Context, w errand.Work, index int) (id.Step, error) {
	var made step.Step
	body := map[string]any{"kind": errand.StepKind, "title": "operation " + strconv.Itoa(index+1), "input": errand.At{Index: index}}
	err := d.Tell(ctx, w.Run, "steps", w.Token, body, &made, once(w, "step", index))
	return made.ID, err
}

// Invoke implements errand.Records.
func (d Desk) Invoke(ctx context.Context, w errand.Work, s id.Step, index int, operation json.RawMessage) (errand.Verdict, error) {
	var got struct {
		Call     id.ToolCall `json:"tool_call_id"`
		Permit   string      `json:"permit"`
		Decision string      `json:"decision"`
		Code     string      `json:"reason_code"`
		Reason   string      `json:"reason"`
	}
	body := map[string]any{"tool_name": run.ToolName(operation), "input": errand.AtOperation(index, run.TypeOf(operation), operation)}
	err := d.call(ctx, http.MethodPost, join("/v1/steps/", escape(string(s)), "/toolcalls"), nil, body, &got, claimed(w.Token, once(w, "call",
		index)))
	return errand.Verdict{Call: got.Call, Permit: got.Permit, Asks: got.Decision == "require_approval", Code: got.Code, Reason: got.Reason},
		err
}

// Operate implements errand.Records.
func (d Desk) Operate(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space, operation json.RawMessage) (errand.Outcome,
	error) {
	header := claimed(w.Token, "")
	header["X-Tool-Call-Id"] = string(call)
	var e run.Events
	body := map[string]any{"protocolVersion": run.Protocol, "operations": []json.RawMessage{operation}, "wait_seconds": 20}
	if err := d.call(ctx, http.MethodPost, spacePath(in)+"/runs", nil, body, &e, header); err != nil {
		return errand.Outcome{}, err
	}
	child := id.Run(e.RunID)
	if e.Status != "completed" && e.Status != "error" && e.Status != "cancelled" {
		for _, err := range d.FollowRun(ctx, in, child, 0) {
			if err != nil {
				return errand.Outcome{}, err
			}
		}
	}
	shown, err := d.Run(ctx, child)
	return errand.Outcome{Child: child, Status: string(shown.Status), OK: shown.Status == run.Succeeded && shown.Succeeded()}, err
}

// Conclude implements errand.Records.
func (d Desk) Conclude(ctx context.Context, w errand.Work, call id.ToolCall, permit string, o errand.Outcome) error {
	what, body := "succeed", map[string]any{"output": o}
	if !o.OK {
		what, body = "fail", map[string]any{"error": o, "message": "the operation did not succeed; its run says why"}
	}
	return d.call(ctx, http.MethodPost, join("/v1/toolcalls/", escape(string(call)), "/", what), nil, permitted(body, permit), nil,
		claimed(w.Token, once(w, string(call), 0)))
}
