package client

import (
	"context"
	"net/http"
	"net/url"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// ActionTypeRequest declares an action type.
type ActionTypeRequest struct {
	Description string            `json:"description"`
	SideEffect  policy.SideEffect `json:"side_effect"`
	Zone        event.Zone        `json:"zone,omitempty"` // empty for supervised
	Reversible  bool              `json:"reversible,omitempty"`
	Asks        bool              `json:"always_asks,omitempty"`
	Targets     []string          `json:"target_kinds,omitempty"`
}

// ActionTypeList is a page of the action types that a workspace declared.
type ActionTypeList struct {
	Types []policy.ActionType `json:"action_types"`
	Next  string              `json:"next_cursor"` // empty at the end
}

// ActionTypes lists the action types that the workspace declared. The caller can include the retired ones.
func (c *Client) ActionTypes(ctx context.Context, retired bool, p Page) (ActionTypeList, error) {
	all := ""
	if retired {
		all = "true"
	}
	var l ActionTypeList
	err := c.get(ctx, "/v1/action-types", p.values("retired", all), &l)
	return l, err
}

// ActionType returns an action type that the workspace declared.
func (c *Client) ActionType(ctx context.Context, name string) (policy.ActionType, error) {
	var found policy.ActionType
	err := c.get(ctx, join("/v1/action-types/", escape(name)), nil, &found)
	return found, err
}

// DeclareActionType declares an action type, or changes it.
func (c *Client) DeclareActionType(ctx context.Context, name string, r ActionTypeRequest) (policy.ActionType, error) {
	var made policy.ActionType
	err := c.call(ctx, http.MethodPut, join("/v1/action-types/", escape(name)), nil, r, &made, nil)
	return made, err
}

// RetireActionType ends an action type.
func (c *Client) RetireActionType(ctx context.Context, name, reason string) error {
	query := url.Values{}
	if reason != "" {
		query.Set("reason", reason)
	}
	return c.call(ctx, http.MethodDelete, join("/v1/action-types/", escape(name)), query, nil, nil, nil)
}
