package client

import (
	"context"
	"time"

	"agentbox/internal/domain/id"
)

// Redaction is one redacted event, as the log says it.
type Redaction struct {
	Event     id.Event     `json:"event_id"` // that was redacted
	Type      string       `json:"event_type"`
	Seq       uint64       `json:"seq"`
	Run       id.Run       `json:"run_id,omitempty"`
	By        id.Event     `json:"redaction_event_id"`
	Principal id.Principal `json:"principal_id"`
	Reason    string       `json:"reason"`
	At        time.Time    `json:"redacted_at"`
}

// Redactions is the answer to a redaction, or a page of the list of redactions.
type Redactions struct {
	Redactions []Redaction        `json:"redactions"`
	Contents   *ForgottenContents `json:"contents,omitempty"`
	Next       string             `json:"next_cursor,omitempty"` // empty at the end
}

// ForgottenContents says how many contents of redacted events are forgotten, and which remain.
type ForgottenContents struct {
	Forgotten int      `json:"contents_forgotten"`
	Shared    []string `json:"shared,omitempty"`      // something else names it
	Live      []string `json:"live_files,omitempty"`  // files of living spaces
	Missed    []string `json:"not_reached,omitempty"` // parts that could not be reached
}

// Redact destroys the data of an event, or of every event of a run; one of the two is named.
func (c *Client) Redact(ctx context.Context, e id.Event, r id.Run, reason string) (Redactions, error) {
	body := map[string]string{"reason": reason}
	if e != "" {
		body["event_id"] = string(e)
	}
	if r != "" {
		body["run_id"] = string(r)
	}
	var done Redactions
	err := c.post(ctx, "/v1/audit/redactions", body, &done)
	return done, err
}

// Redactions lists what was redacted, in the order of the log.
func (c *Client) Redactions(ctx context.Context, p Page) (Redactions, error) {
	var l Redactions
	err := c.get(ctx, "/v1/audit/redactions", p.values(), &l)
	return l, err
}
