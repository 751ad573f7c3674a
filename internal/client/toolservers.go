package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
)

// ToolServerSpec is what an MCP server is set to: a command or a url.
type ToolServerSpec struct {
	Command string `json:"command,omitempty"`
	URL     string `json:"url,omitempty"`
	Key     string `json:"key,omitempty"`

	ClientID string `json:"client_id,omitempty"` // for OAuth; the key is the secret
	Issuer   string `json:"issuer,omitempty"`
	Login    bool   `json:"login,omitempty"` // a person logs in with a browser
}

// ToolServer is an MCP server with its tools.
type ToolServer struct {
	Name string `json:"name"`
	ToolServerSpec
	LoggedIn  *ServerLogin `json:"logged_in,omitempty"` // nil where nobody is
	Hash      event.Digest `json:"mcp_server_sha256"`
	ChangedBy id.Principal `json:"changed_by"`
	ChangedAt time.Time    `json:"changed_at"`
	ListedAt  time.Time    `json:"listed_at,omitzero"`
	Tools     []ServedTool `json:"tools"`
}

// ServerLogin is the login of a person at an MCP server.
type ServerLogin struct {
	By     id.Principal `json:"logged_in_by"`
	At     time.Time    `json:"logged_in_at"`
	Client string       `json:"client_id"`
	Scopes []string     `json:"scopes,omitempty"`
}

// ServerVisit is where a person logs in to an MCP server, and until when.
type ServerVisit struct {
	Address string    `json:"authorization_url"`
	Until   time.Time `json:"expires_at"`
}

// ServedTool is a tool of an MCP server.
type ServedTool struct {
	Tool string `json:"tool"`
	Name string `json:"name,omitempty"`
	// State is trusted, quarantined, unusable or gone.
	State string `json:"state"`
	ToolText
	Problem   string       `json:"problem,omitempty"`
	Was       *ToolText    `json:"was,omitempty"` // what people trusted, where it differs
	TrustedBy id.Principal `json:"trusted_by,omitempty"`
	TrustedAt time.Time    `json:"trusted_at,omitzero"`
}

// ToolText is what an MCP server says of a tool.
type ToolText struct {
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input_schema,omitempty"`
	Output      json.RawMessage `json:"output_schema,omitempty"`
	Hash        event.Digest    `json:"tool_sha256,omitzero"`
}

// ToolServers returns the MCP servers of the workspace.
func (c *Client) ToolServers(ctx context.Context) ([]ToolServer, error) {
	var l struct {
		Servers []ToolServer `json:"mcp_servers"`
	}
	err := c.get(ctx, "/v1/mcp-servers", nil, &l)
	return l.Servers, err
}

// ToolServer returns an MCP server.
func (c *Client) ToolServer(ctx context.Context, name string) (ToolServer, error) {
	var s ToolServer
	err := c.get(ctx, join("/v1/mcp-servers/", escape(name)), nil, &s)
	return s, err
}

// PutToolServer adds an MCP server or changes it.
func (c *Client) PutToolServer(ctx context.Context, name string, spec ToolServerSpec) (ToolServer, error) {
	var s ToolServer
	err := c.call(ctx, http.MethodPut, join("/v1/mcp-servers/", escape(name)), nil, spec, &s, nil)
	return s, err
}

// RemoveToolServer takes an MCP server out of the workspace.
func (c *Client) RemoveToolServer(ctx context.Context, name, reason string) error {
	query := url.Values{}
	if reason != "" {
		query.Set("reason", reason)
	}
	return c.call(ctx, http.MethodDelete, join("/v1/mcp-servers/", escape(name)), query, nil, nil, nil)
}

// LookAtToolServer asks an MCP server for its tools, from a space.
func (c *Client) LookAtToolServer(ctx context.Context, name string, in id.Space) (ToolServer, error) {
	var s ToolServer
	err := c.call(ctx, http.MethodPost, join("/v1/mcp-servers/", escape(name)+"/look"), nil, map[string]id.Space{"space_id": in}, &s, nil)
	return s, err
}

// BeginServerLogin begins the login of a person at an MCP server. The browser is sent back to an address of the person's machine.
func (c *Client) BeginServerLogin(ctx context.Context, name string, in id.Space, redirect string) (ServerVisit, error) {
	var v ServerVisit
	err := c.call(ctx, http.MethodPost, join("/v1/mcp-servers/", escape(name)+"/login"), nil,
		map[string]string{"space_id": string(in), "redirect_uri": redirect}, &v, nil)
	return v, err
}

// FinishServerLogin ends a login with what the browser was sent back with.
func (c *Client) FinishServerLogin(ctx context.Context, name string, back mcp.Returned) (ToolServer, error) {
	var s ToolServer
	err := c.call(ctx, http.MethodPost, join("/v1/mcp-servers/", escape(name)+"/login/finish"), nil, back, &s, nil)
	return s, err
}

// EndServerLogin destroys the tokens of a login at an MCP server.
func (c *Client) EndServerLogin(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, join("/v1/mcp-servers/", escape(name)+"/login"), nil, nil, nil, nil)
}

// TrustTools releases tools of an MCP server for agents, each with the hash that was shown.
func (c *Client) TrustTools(ctx context.Context, name string, tools []mcp.Named) (ToolServer, error) {
	var s ToolServer
	err := c.call(ctx, http.MethodPost, join("/v1/mcp-servers/", escape(name)+"/trust"), nil, map[string][]mcp.Named{"tools": tools}, &s, nil)
	return s, err
}
