package client

import (
	"context"
	"encoding/hex"

	"agentbox/internal/domain/id"
)

// KeyForE2B returns an API key in the form that every package of E2B accepts: "e2b_" and the key in hexadecimal digits. It is the same key;
// "" stays "".
func KeyForE2B(key string) string {
	if key == "" {
		return ""
	}
	return "e2b_" + hex.EncodeToString([]byte(key))
}

// Key returns the API key that the client sends.
func (c *Client) Key() string { return c.key }

// NameOfKey returns the name of the caller's own key.
func NameOfKey(ctx context.Context, api *Client, me Session) (string, error) {
	page := Page{Limit: 100}
	for {
		found, err := api.Keys(ctx, id.Principal(me.Principal), page)
		if err != nil {
			return "", err
		}
		for _, k := range found.Keys {
			if k.ID == me.Key {
				return k.Name, nil
			}
		}
		if page.Cursor = found.Next; page.Cursor == "" {
			return "rotated", nil // a key of another principal, who may not list it
		}
	}
}
