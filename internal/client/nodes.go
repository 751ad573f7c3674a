package client

import (
	"context"
	"net/http"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
)

// Nodes lists the daemons that work on the log.
func (c *Client) Nodes(ctx context.Context) ([]node.Member, error) {
	var l struct {
		Nodes []node.Member `json:"nodes"`
	}
	err := c.get(ctx, "/v1/nodes", nil, &l)
	return l.Nodes, err
}

// RemoveNode gives up a daemon that never comes back.
func (c *Client) RemoveNode(ctx context.Context, n id.Node, reason string) (node.Member, error) {
	var done node.Member
	err := c.call(ctx, http.MethodDelete, join("/v1/nodes/", escape(string(n))), Page{}.values("reason", reason), nil, &done, nil)
	return done, err
}
