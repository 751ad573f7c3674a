package client

import (
	"context"
	"net/http"
	"net/url"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// CellRequest asks for a piece of code to be run in an interpreter context.
type CellRequest struct {
	Language    string            `json:"language"` // python or javascript
	Code        string            `json:"code,omitempty"`
	File        string            `json:"file,omitempty"` // of the space, instead of code
	Cwd         string            `json:"cwd,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	TimeoutMS   int64             `json:"timeout_ms,omitempty"`
	Agent       *RunAgent         `json:"agent,omitempty"`
	Title       string            `json:"title,omitempty"`
	WaitSeconds int64             `json:"wait_seconds"` // 0 answers at once

	IdempotencyKey string `json:"-"`
}

func contextPath(s id.Space, name string) string {
	return join(spacePath(s), "/contexts/", escape(name))
}

// RunCell runs code in an interpreter context of a space, and makes the context if it is new. It returns the events message of its run when
// the run ends or pauses, or when the wait is over.
func (c *Client) RunCell(ctx context.Context, s id.Space, name string, q CellRequest) (run.Events, error) {
	var e run.Events
	err := c.call(ctx, http.MethodPost, join(contextPath(s, name), "/cells"), nil, q, &e, idempotent(q.IdempotencyKey))
	return e, err
}

// Contexts returns the interpreter contexts of a space.
func (c *Client) Contexts(ctx context.Context, s id.Space) ([]space.Context, error) {
	var l struct {
		Contexts []space.Context `json:"contexts"`
	}
	err := c.get(ctx, join(spacePath(s), "/contexts"), nil, &l)
	return l.Contexts, err
}

// DeleteContext removes an interpreter context of a space; an empty language means the one that there is of the name.
func (c *Client) DeleteContext(ctx context.Context, s id.Space, name, language string) error {
	q := url.Values{}
	if language != "" {
		q.Set("language", language)
	}
	return c.call(ctx, http.MethodDelete, contextPath(s, name), q, nil, nil, nil)
}
