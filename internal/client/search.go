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

// FoundList is a page of results, the newest first.
type FoundList struct {
	Results []Found `json:"results"`
	Indexed uint64  `json:"indexed_to_seq"`
	Head    uint64  `json:"head_seq"`
	Whole   bool    `json:"complete"` // everything that was there is among it
}

// SearchRequest asks for messages.
type SearchRequest struct {
	Words  string    // with spaces between; every one has to be found
	Room   id.Room   // only what was said in it; "" for everywhere
	Thread id.Thread // only what was said in it; "" for everywhere
	Limit  int       // 0 for the daemon's default
}

// Search finds messages.
func (c *Client) Search(ctx context.Context, q SearchRequest) (FoundList, error) {
	var l FoundList
	err := c.get(ctx, "/v1/search", Page{Limit: q.Limit}.values("q", q.Words, "room_id", string(q.Room), "thread_id", string(q.Thread)), &l)
	return l, err
}
