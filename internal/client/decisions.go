package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// ApprovalFilter selects approvals.
type ApprovalFilter struct {
	Status string
	Run    id.Run
	Room   id.Room
	Page
}

// ApprovalList is a page of approvals.
type ApprovalList struct {
	Approvals []policy.Approval `json:"approvals"`
	Next      string            `json:"next_cursor"` // empty at the end
}

// Answer is a person's answer to an approval.
type Answer struct {
	Decision  string        `json:"decision"` // approve, deny or hold
	Reason    string        `json:"reason,omitempty"`
	Scope     policy.Scope  `json:"scope,omitempty"`         // empty means once
	ExpiresAt time.Time     `json:"expires_at,omitzero"`     // of a standing approval
	Uses      int           `json:"uses,omitempty"`          // of a standing approval
	Saw       *event.Digest `json:"action_sha256,omitempty"` // of the action that the person saw; the daemon refuses an answer to another one
}

// Approvals lists approvals.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter) (ApprovalList, error) {
	var l ApprovalList
	err := c.get(ctx, "/v1/approvals", f.values("status", f.Status, "run_id", string(f.Run), "room_id", string(f.Room)), &l)
	return l, err
}

// Approval returns an approval.
func (c *Client) Approval(ctx context.Context, a id.Approval) (policy.Approval, error) {
	var found policy.Approval
	err := c.get(ctx, join("/v1/approvals/", escape(string(a))), nil, &found)
	return found, err
}

// Decide answers an approval.
func (c *Client) Decide(ctx context.Context, a id.Approval, answer Answer) (policy.Approval, error) {
	var decided policy.Approval
	err := c.post(ctx, join("/v1/approvals/", escape(string(a)), "/decide"), answer, &decided)
	return decided, err
}

// StandingList is a page of standing approvals, the newest first.
type StandingList struct {
	Standing []policy.Standing `json:"standing_approvals"`
	Next     string            `json:"next_cursor"` // empty at the end
}

// Standings lists standing approvals.
func (c *Client) Standings(ctx context.Context, p Page) (StandingList, error) {
	var l StandingList
	err := c.get(ctx, "/v1/standing-approvals", p.values(), &l)
	return l, err
}

// RevokeStanding ends a standing approval.
func (c *Client) RevokeStanding(ctx context.Context, s id.Standing, reason string) error {
	return c.call(ctx, http.MethodDelete, join("/v1/standing-approvals/", escape(string(s))), Page{}.values("reason", reason), nil, nil, nil)
}

// Withdraw takes back a question that the caller has asked.
func (c *Client) Withdraw(ctx context.Context, a id.Approval, reason string) (policy.Approval, error) {
	var withdrawn policy.Approval
	err := c.post(ctx, join("/v1/approvals/", escape(string(a)), "/withdraw"), struct {
		Reason string `json:"reason,omitempty"`
	}{reason}, &withdrawn)
	return withdrawn, err
}

// Trial names a policy and the operation of the protocol to try against it.
type Trial struct {
	Policy    string          `json:"policy,omitempty"` // a preset
	Overrides json.RawMessage `json:"policy_overrides,omitempty"`
	Space     id.Space        `json:"space_id,omitempty"`
	YAML      string          `json:"yaml,omitempty"`
	Cedar     string          `json:"cedar,omitempty"`
	Operation json.RawMessage `json:"operation,omitempty"`
	Action    *OutsideAction  `json:"action,omitempty"` // done outside, instead of an operation
}

// Presets lists the policies that come with the daemon.
func (c *Client) Presets(ctx context.Context) ([]policy.Bundle, error) {
	var l struct {
		Presets []policy.Bundle `json:"presets"`
	}
	err := c.get(ctx, "/v1/policies/presets", nil, &l)
	return l.Presets, err
}

// ValidatePolicy checks a policy and returns the bundle that it makes, and what of it has no effect where a reader may expect one.
func (c *Client) ValidatePolicy(ctx context.Context, t Trial) (b policy.Bundle, warnings []string, err error) {
	var answer struct {
		Bundle   policy.Bundle `json:"bundle"`
		Warnings []string      `json:"warnings"`
	}
	err = c.post(ctx, "/v1/policies/validate", t, &answer)
	return answer.Bundle, answer.Warnings, err
}

// Explain says how an operation would be decided; nothing is done.
func (c *Client) Explain(ctx context.Context, t Trial) (policy.Explanation, error) {
	var e policy.Explanation
	err := c.post(ctx, "/v1/policies/explain", t, &e)
	return e, err
}

// KillSwitch returns where the workspace's kill switch stands.
func (c *Client) KillSwitch(ctx context.Context) (policy.KillSwitch, error) {
	var k policy.KillSwitch
	err := c.get(ctx, "/v1/kill-switch", nil, &k)
	return k, err
}

// SetKillSwitch throws the kill switch, or lifts it.
func (c *Client) SetKillSwitch(ctx context.Context, on bool, reason string) (policy.KillSwitch, error) {
	var k policy.KillSwitch
	body := map[string]any{"on": on}
	if reason != "" {
		body["reason"] = reason
	}
	err := c.call(ctx, http.MethodPut, "/v1/kill-switch", nil, body, &k, nil)
	return k, err
}
