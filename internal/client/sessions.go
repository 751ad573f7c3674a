package client

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/id"
)

// Tokens are those of a session, which are shown once.
type Tokens struct {
	Session      id.Session   `json:"session_id"`
	Principal    id.Principal `json:"principal_id"`
	Workspace    id.Workspace `json:"workspace_id"`
	Access       string       `json:"access_token"`
	AccessUntil  time.Time    `json:"access_expires_at"`
	Refresh      string       `json:"refresh_token"`
	RefreshUntil time.Time    `json:"refresh_expires_at"`
}

// Bootstrap gives the owner of a workspace a passphrase, with the daemon's bootstrap token.
func (c *Client) Bootstrap(ctx context.Context, token string, ws id.Workspace, name, passphrase string) (id.Principal, error) {
	var made struct {
		Principal id.Principal `json:"principal_id"`
	}
	body := map[string]string{"workspace_id": string(ws), "display_name": name, "passphrase": passphrase}
	err := c.call(ctx, http.MethodPost, "/v1/auth/bootstrap-owner", nil, body, &made, map[string]string{"X-Bootstrap-Token": token})
	return made.Principal, err
}

// Login opens a session of a person, or of the owner where p is empty.
func (c *Client) Login(ctx context.Context, ws id.Workspace, p id.Principal, passphrase string) (Tokens, error) {
	var t Tokens
	err := c.post(ctx, "/v1/auth/login", map[string]string{"workspace_id": string(ws), "principal_id": string(p), "passphrase": passphrase},
		&t)
	return t, err
}

// Refresh exchanges a refresh token for new tokens.
func (c *Client) Refresh(ctx context.Context, refresh string) (Tokens, error) {
	var t Tokens
	err := c.post(ctx, "/v1/auth/refresh", map[string]string{"refresh_token": refresh}, &t)
	return t, err
}

// Logout ends the session of the client's key.
func (c *Client) Logout(ctx context.Context) error {
	return c.post(ctx, "/v1/auth/logout", nil, nil)
}

// SetPassphrase sets the caller's own passphrase; current is the one that holds so far, "" for none.
func (c *Client) SetPassphrase(ctx context.Context, current, passphrase string) (id.Principal, error) {
	var done struct {
		Principal id.Principal `json:"principal_id"`
	}
	body := map[string]string{"passphrase": passphrase}
	if current != "" {
		body["current_passphrase"] = current
	}
	err := c.post(ctx, "/v1/auth/passphrase", body, &done)
	return done.Principal, err
}
