package client

import (
	"context"
	"net/http"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// Snapshot is a snapshot that was recorded.
type Snapshot struct {
	space.Recorded
	Kept bool `json:"kept"` // it can be returned to
}

// SnapshotList is a page of snapshots, the newest first.
type SnapshotList struct {
	Snapshots []Snapshot `json:"snapshots"`
	Bytes     int64      `json:"size_bytes"`  // of those that are kept
	Next      string     `json:"next_cursor"` // empty at the end
}

// Rewound is the answer to a rewind.
type Rewound struct {
	Space    id.Space       `json:"space_id"`
	From     event.Digest   `json:"from_snapshot_sha256"` // what the files were
	Snapshot space.Snapshot `json:"snapshot"`             // what they are
}

// ForkRequest asks for a fork; missing fields take the other space's values, except for the environment, which is empty.
type ForkRequest struct {
	At          string            `json:"at,omitempty"` // a snapshot; the files as they are now by default
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	TTLSeconds  int64             `json:"ttl_seconds,omitempty"`

	IdempotencyKey string `json:"-"`
}

// Comparison lists the differences between two snapshots.
type Comparison struct {
	From        event.Digest       `json:"from_snapshot_sha256"`
	To          event.Digest       `json:"to_snapshot_sha256"`
	Differences []space.Difference `json:"differences"`
	Truncated   bool               `json:"truncated"`
}

// Snapshots lists the snapshots of a space.
func (c *Client) Snapshots(ctx context.Context, s id.Space, p Page) (SnapshotList, error) {
	var l SnapshotList
	err := c.get(ctx, spacePath(s)+"/snapshots", p.values(), &l)
	return l, err
}

// RewindSpace makes the files of a space what they were in a snapshot, after a step or before a run.
func (c *Client) RewindSpace(ctx context.Context, s id.Space, to string) (Rewound, error) {
	var done Rewound
	err := c.post(ctx, spacePath(s)+"/rewind", map[string]string{"to": to}, &done)
	return done, err
}

// ForkSpace makes a space whose files begin as a snapshot of another's.
func (c *Client) ForkSpace(ctx context.Context, s id.Space, q ForkRequest) (space.Space, error) {
	var made space.Space
	err := c.call(ctx, http.MethodPost, spacePath(s)+"/fork", nil, q, &made, idempotent(q.IdempotencyKey))
	return made, err
}

// DiffSpace compares two snapshots of a space; empty names mean before the last run, and now.
func (c *Client) DiffSpace(ctx context.Context, s id.Space, from, to string) (Comparison, error) {
	var found Comparison
	err := c.get(ctx, spacePath(s)+"/diff", Page{}.values("from", from, "to", to), &found)
	return found, err
}
