package client

import (
	"context"
	"time"

	"agentbox/internal/domain/id"
)

// Found is a message that was found.
type Found struct {
	Type       string     `json:"type"`
	Message    id.Message `json:"message_id"`
	Thread     id.Thread  `json:"thread_id"`
	Room       id.Room    `json:"room_id"`
	SenderType string     `json:"sender_type"`
	Sender     string     `json:"sender_id"`
	CreatedAt  time.Time  `json:"created_at"`
	Excerpt    string     `json:"excerpt"`
}

// FoundList is what was found, the newest first.
type FoundList struct {
	Results []Found `json:"results"`
	Indexed uint64  `json:"indexed_to_seq"`
	Head    uint64  `json:"head_seq"`
	Whole   bool    `json:"complete"` // everything that was there is among it
}

// Search finds the messages that have every word of a query.
func (c *Client) Search(ctx context.Context, q string, limit int) (FoundList, error) {
	var l FoundList
	err := c.get(ctx, "/v1/search", Page{Limit: limit}.values("q", q), &l)
	return l, err
}
