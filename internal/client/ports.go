package client

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"agentbox/internal/domain/id"
)

// Port is a port of a space: on which a program listens, or which is open.
type Port struct {
	Port      int        `json:"port"`
	Addresses []string   `json:"addresses"` // on which the program listens, in the space
	Listening bool       `json:"listening"`
	Open      []OpenPort `json:"open"`
}

// OpenPort is one opening of a port: its audience, its owner and its end.
type OpenPort struct {
	ID        id.Exposure  `json:"exposure_id"`
	How       string       `json:"how"` // requests, link or link_external
	Principal id.Principal `json:"principal_id"`
	ExpiresAt time.Time    `json:"expires_at,omitzero"`
	Requests  int64        `json:"requests"`
}

// Preview is an address of a port.
type Preview struct {
	ID        id.Exposure `json:"exposure_id"`
	Space     id.Space    `json:"space_id"`
	Port      int         `json:"port"`
	URL       string      `json:"url"`      // at a host of its own, for a browser
	PathURL   string      `json:"path_url"` // below a path of the daemon
	Host      string      `json:"host"`
	Token     string      `json:"token"` // the secret part of both
	ExpiresAt time.Time   `json:"expires_at"`
}

func portPath(s id.Space, port int) string {
	return join(spacePath(s), "/ports/", escape(strconv.Itoa(port)))
}

// Ports returns the ports of a space.
func (c *Client) Ports(ctx context.Context, s id.Space) ([]Port, error) {
	var list struct {
		Ports []Port `json:"ports"`
	}
	err := c.call(ctx, http.MethodGet, spacePath(s)+"/ports", nil, nil, &list, nil)
	return list.Ports, err
}

// PreviewPort makes an address of a port that holds for ttl; 0 means an hour. If external, its pages may load from other hosts.
func (c *Client) PreviewPort(ctx context.Context, s id.Space, port int, ttl time.Duration, external bool) (Preview, error) {
	var p Preview
	body := map[string]any{}
	if ttl > 0 {
		body["ttl_seconds"] = int64(ttl / time.Second)
	}
	if external {
		body["external"] = true
	}
	err := c.post(ctx, portPath(s, port)+"/preview", body, &p)
	return p, err
}

// ClosePort closes a port and returns for how many principals and addresses it was open.
func (c *Client) ClosePort(ctx context.Context, s id.Space, port int) (int, error) {
	var closed struct {
		Closed int `json:"closed"`
	}
	err := c.call(ctx, http.MethodDelete, portPath(s, port), nil, nil, &closed, nil)
	return closed.Closed, err
}
