package client

import (
	"context"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// Top is the running work of the workspace at a moment. The difference of two of them gives rates.
type Top struct {
	At        time.Time  `json:"at"` // by the daemon's clock
	Head      uint64     `json:"head"`
	Decisions uint64     `json:"decisions"`
	Appends   uint64     `json:"appends"`
	Waiting   int        `json:"approvals_waiting"`
	Thrown    bool       `json:"kill_switch"`
	Tasks     run.Tasks  `json:"tasks"`
	Spaces    []TopSpace `json:"spaces"`
}

// TopSpace is a space and what happens in it.
type TopSpace struct {
	ID     id.Space     `json:"space_id"`
	Name   string       `json:"name"`
	Status space.Status `json:"status"`
	Tier   string       `json:"tier"`
	Policy string       `json:"policy"`
	Load   *space.Load  `json:"load,omitempty"` // nil where no process runs
	Memory int64        `json:"memory_limit_bytes"`
	CPU    int64        `json:"cpu_limit_millis"`
	Run    *TopRun      `json:"run,omitempty"`
}

// TopRun is a run and the operation that it is at.
type TopRun struct {
	ID        id.Run     `json:"run_id"`
	Title     string     `json:"title,omitempty"`
	Status    run.Status `json:"status"`
	Operation string     `json:"operation,omitempty"`
	Summary   string     `json:"summary,omitempty"`
	Number    int        `json:"number"`
	Of        int        `json:"of"`
	Since     time.Time  `json:"since"`
}

// Top asks what happens now.
func (c *Client) Top(ctx context.Context) (Top, error) {
	var t Top
	err := c.get(ctx, "/v1/top", nil, &t)
	return t, err
}
