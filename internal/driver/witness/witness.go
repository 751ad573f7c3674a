// Package witness speaks C2SP tlog-witness, as who brings checkpoints and as who keeps them.
package witness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/merkle"
)

const (
	sizeType    = "text/x.tlog.size" // media type of the size that a stale witness tells
	timeout     = 20 * time.Second   // of one request
	maxPath     = 63                 // hashes of a consistency proof
	maxRequest  = merkle.MaxCheckpointBytes + 64*64
	addPath     = "/add-checkpoint"
	latestPath  = "/checkpoint" // with ?origin=; beyond the protocol, so that a log can be held against what was seen
	plainText   = "text/plain; charset=utf-8"
	tooFarAhead = "the old size lies beyond the checkpoint's"
)

// Client brings checkpoints to a witness at an address.
type Client struct {
	address string
	http    *http.Client
}

var _ merkle.Witness = (*Client)(nil)

// New returns a client of the witness at an http or https address.
func New(address string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.Invalid, "witness_invalid", "%.100q is not the address of a witness: https://HOST/PREFIX", address)
	}
	return &Client{strings.TrimSuffix(address, "/"), &http.Client{
		Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Add implements merkle.Witness.
func (c *Client) Add(ctx context.Context, old uint64, path []merkle.Hash, signed []byte) ([]byte, error) {
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", old)
	for _, h := range path {
		body.WriteString(h.String() + "\n")
	}
	body.WriteByte('\n')
	body.Write(signed)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address+addPath, &body)
	if err != nil {
		return nil, err
	}
	status, kind, answer, err := c.do(req)
	if err != nil {
		return nil, err
	}
	switch status {
	case http.StatusOK:
		return answer, nil
	case http.StatusConflict:
		size, err := strconv.ParseUint(strings.TrimSuffix(string(answer), "\n"), 10, 63)
		if err != nil || kind != sizeType {
			return nil, fault.New(fault.Unavailable, "witness_unreadable", "the witness says that it holds another size and not which")
		}
		return nil, &merkle.Stale{Size: size}
	case http.StatusNotFound, http.StatusForbidden:
		return nil, fault.New(fault.Denied, "witness_does_not_know",
			"the witness does not know this log or does not trust its key; give it the public key that agentbox audit key prints")
	case http.StatusUnprocessableEntity:
		return nil, fault.New(fault.Conflict, "witness_refuses_proof", "the witness has seen another log")
	}
	return nil, fault.New(fault.Unavailable, "witness_unavailable", "the witness answers with %d", status)
}

// Latest implements merkle.Witness.
func (c *Client) Latest(ctx context.Context, origin string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address+latestPath+"?origin="+url.QueryEscape(origin), nil)
	if err != nil {
		return nil, err
	}
	status, _, answer, err := c.do(req)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusOK:
		return answer, nil
	case status == http.StatusNotFound:
		return nil, merkle.ErrNone
	}
	return nil, fault.New(fault.Unavailable, "witness_unavailable", "the witness answers with %d", status)
}

func (c *Client) do(req *http.Request) (status int, kind string, answer []byte, err error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", nil, fault.Wrap(err, fault.Unavailable, "witness_unavailable", "the witness cannot be reached")
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxRequest+1))
	if err != nil || len(answer) > maxRequest {
		return 0, "", nil, fault.Wrap(err, fault.Unavailable, "witness_unavailable",
			"the answer of the witness is too long or ends before its time")
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), answer, nil
}
