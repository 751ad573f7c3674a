package client

import (
	"context"
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// OutsideAction describes an action outside of Agentbox.
type OutsideAction struct {
	Action    string          `json:"action,omitempty"`
	Text      string          `json:"question,omitempty"` // a plain question, instead of an action
	Space     id.Space        `json:"space_id,omitempty"` // the policy of this space judges it too
	Room      id.Room         `json:"room_id,omitempty"`
	Run       id.Run          `json:"run_id,omitempty"`
	Request   json.RawMessage `json:"request,omitempty"`
	Target    string          `json:"target,omitempty"`
	Method    string          `json:"method,omitempty"`
	Tool      string          `json:"tool_name,omitempty"`
	Principal id.Principal    `json:"principal_id,omitempty"` // empty for who asks
	Zone      event.Zone      `json:"zone,omitempty"`         // empty for supervised
}

// Evaluation is the answer to whether it may be done.
type Evaluation struct {
	Decision    policy.Outcome `json:"decision"`
	Code        string         `json:"reason_code"`
	Reason      string         `json:"reason"`
	Suggestion  string         `json:"suggestion,omitempty"`
	Enforcement string         `json:"enforcement_mode"`
	Blocked     bool           `json:"blocked"`
	Preview     bool           `json:"preview,omitempty"`
	Principal   id.Principal   `json:"principal_id"`
	Approval    id.Approval    `json:"approval_id,omitempty"`
	Standing    id.Standing    `json:"standing_id,omitempty"`
	Event       id.Event       `json:"event_id,omitempty"`
	Action      event.Digest   `json:"action_sha256,omitzero"`
	Bundle      event.Digest   `json:"policy_bundle,omitzero"`
	Policies    []string       `json:"policies,omitempty"`
}

// ApprovalRequest asks a person about an action outside.
type ApprovalRequest struct {
	OutsideAction
	Title     string          `json:"title,omitempty"`
	Context   json.RawMessage `json:"context,omitempty"`
	Scope     policy.Scope    `json:"scope,omitempty"`
	ExpiresAt time.Time       `json:"expires_at,omitzero"`
}

// Evaluate asks whether something may be done now. An answer that rests on an approval has used it up, unless preview is set.
func (c *Client) Evaluate(ctx context.Context, a OutsideAction, preview bool) (Evaluation, error) {
	var e Evaluation
	err := c.post(ctx, "/v1/policy/evaluate", struct {
		OutsideAction
		Preview bool `json:"preview,omitempty"`
	}{a, preview}, &e)
	return e, err
}

// RequestApproval asks a person.
func (c *Client) RequestApproval(ctx context.Context, r ApprovalRequest) (policy.Approval, error) {
	var made policy.Approval
	err := c.post(ctx, "/v1/approvals", r, &made)
	return made, err
}

// Actions lists the actions that there are.
func (c *Client) Actions(ctx context.Context) ([]policy.Kind, error) {
	var l struct {
		Actions []policy.Kind `json:"actions"`
	}
	err := c.get(ctx, "/v1/action-registry", nil, &l)
	return l.Actions, err
}
