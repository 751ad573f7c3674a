package client

import (
	"context"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
)

// ResourceLabel is the label of a resource.
type ResourceLabel struct {
	Type     string      `json:"resource_type"`
	ID       string      `json:"resource_id"`
	Label    label.Level `json:"label,omitempty"`
	Room     id.Room     `json:"room_id,omitempty"`
	Purposes []string    `json:"purpose_tags,omitempty"`
}

// AccessRequest asks to come near a resource.
type AccessRequest struct {
	ResourceLabel
	Action        string `json:"action"` // read or write
	Justification string `json:"justification,omitempty"`
}

// AccessDecision is the answer to it.
type AccessDecision struct {
	Decision    policy.Outcome `json:"decision"`
	Code        string         `json:"reason_code"`
	Reason      string         `json:"reason"`
	Suggestion  string         `json:"suggestion,omitempty"`
	Enforcement string         `json:"enforcement_mode"`
	Blocked     bool           `json:"blocked"`
	Label       label.Label    `json:"resolved_label"`
	Approval    id.Approval    `json:"approval_id,omitempty"`
	Event       id.Event       `json:"event_id,omitempty"`
}

// LabelFilter selects labels.
type LabelFilter struct {
	Type, ID string // together
	Label    string
	Room     id.Room
	Page
}

// LabelList is a page of labels.
type LabelList struct {
	Labels []label.Label `json:"labels"`
	Next   string        `json:"next_cursor"` // empty at the end
}

// Label labels a resource.
func (c *Client) Label(ctx context.Context, l ResourceLabel) (label.Label, error) {
	var made label.Label
	err := c.post(ctx, "/v1/resources/labels", l, &made)
	return made, err
}

// Labels lists labels.
func (c *Client) Labels(ctx context.Context, f LabelFilter) (LabelList, error) {
	var l LabelList
	err := c.get(ctx, "/v1/resources/labels", f.values("resource_type", f.Type, "resource_id", f.ID, "label", f.Label, "room_id",
		string(f.Room)), &l)
	return l, err
}

// RequestAccess asks to come near a resource.
func (c *Client) RequestAccess(ctx context.Context, r AccessRequest) (AccessDecision, error) {
	var d AccessDecision
	err := c.post(ctx, "/v1/data/access/requests", r, &d)
	return d, err
}
