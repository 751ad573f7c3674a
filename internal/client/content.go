package client

import (
	"context"

	"agentbox/internal/domain/content"
)

// ContentState counts the contents beside the log, and those that a sweep would free.
type ContentState struct {
	Usage content.Usage `json:"usage"`
	Quota int64         `json:"quota_bytes"` // 0 for without limit
	Rule  content.Rule  `json:"rule"`
	Sweep content.Swept `json:"sweep"`
}

// Content returns what is kept beside the log; it changes nothing.
func (c *Client) Content(ctx context.Context) (ContentState, error) {
	var state ContentState
	err := c.get(ctx, "/v1/content", nil, &state)
	return state, err
}

// SweepContent frees what nothing names.
func (c *Client) SweepContent(ctx context.Context) (content.Swept, error) {
	var swept content.Swept
	err := c.post(ctx, "/v1/content/sweep", struct{}{}, &swept)
	return swept, err
}
