// Package client is the typed client of the HTTP API, for the command line and every other program in Go.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 6 * time.Minute // to the first byte; a run may be waited for that long
	maxAnswer     = 256 << 20       // bytes of one JSON answer
	maxProblem    = 64 << 10
)

// Client calls the API of one daemon with one key. It is safe for concurrent use. Every error it returns is a fault.Error, with the code
// and the words of the daemon where the daemon said it.
type Client struct {
	address string
	key     string
	http    *http.Client
	pause   time.Duration // before the first try to take up a stream again; it doubles with each
}

// New makes a client. The address is the daemon's, for example http://127.0.0.1:7433; the key goes out in clear text, so that an address
// beyond this machine must be https. Redirects are not followed, for a key belongs to one daemon.
func New(address, key string) *Client {
	return &Client{
		address: strings.TrimSuffix(address, "/"), key: key, pause: firstPause,
		http: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
				ResponseHeaderTimeout: answerTimeout, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Through makes a client of a daemon in this program: requests go by the transport, and none goes out.
func Through(transport http.RoundTripper, key string) *Client {
	return &Client{
		address: "http://127.0.0.1", key: key, pause: firstPause,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Address is the address of the daemon.
func (c *Client) Address() string { return c.address }

// Close releases the connections that wait for further use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one call.
type request struct {
	method, path string
	query        url.Values
	body         io.Reader // JSON, unless media says otherwise
	size         int64     // of body; -1 where it is not known
	media        string
	header       map[string]string
}

// send makes the call and returns the answer if it is a success, whose body the caller closes.
func (c *Client) send(ctx context.Context, q request) (*http.Response, error) {
	target := c.address + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, target, q.body)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "address_invalid", "%.200q is not the address of a daemon", c.address)
	}
	if err := private(r.URL); err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Accept", "application/json, application/problem+json, */*;q=0.1")
	r.Header.Set("User-Agent", "agentbox")
	if q.body != nil {
		r.ContentLength = q.size
		r.Header.Set("Content-Type", q.media)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, unreachable(ctx, err, c.address)
	}
	if answer.StatusCode >= 200 && answer.StatusCode <= 299 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, problem(answer)
}

// private refuses to send a key in clear text over a network.
func private(target *url.URL) error {
	host := target.Hostname()
	ip := net.ParseIP(host)
	if target.Scheme == "https" || target.Scheme == "http" && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	if target.Host == "" {
		return fault.New(fault.Invalid, "address_invalid", "%.200q is not the address of a daemon; it looks like http://127.0.0.1:7433",
			target.String())
	}
	return fault.New(fault.Denied, "address_insecure", "the key would go to %.200q in clear text; use https", target.Scheme+"://"+target.Host)
}

func unreachable(ctx context.Context, err error, address string) error {
	if ctx.Err() != nil {
		return fault.Wrap(ctx.Err(), fault.Unavailable, "interrupted", "the request was given up")
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the rest of it only repeats the request
	}
	return fault.Wrap(err, fault.Unavailable, "daemon_unreachable", "the daemon at %.200s does not answer",
		address).With("is it running? start one with: agentbox up")
}

// kinds are the kinds of fault behind the statuses; statuses that are not here are decided by their hundred.
var kinds = map[int]fault.Kind{
	http.StatusUnauthorized:          fault.Denied,
	http.StatusForbidden:             fault.Denied,
	http.StatusNotFound:              fault.NotFound,
	http.StatusRequestTimeout:        fault.Unavailable,
	http.StatusConflict:              fault.Conflict,
	http.StatusRequestEntityTooLarge: fault.Exhausted,
	http.StatusTooManyRequests:       fault.Exhausted,
	http.StatusServiceUnavailable:    fault.Unavailable,
	http.StatusBadGateway:            fault.Unavailable,
	http.StatusGatewayTimeout:        fault.Unavailable,
}

// problem reads the problem document of a refusal.
func problem(answer *http.Response) error {
	kind, known := kinds[answer.StatusCode]
	if !known && answer.StatusCode >= 400 && answer.StatusCode < 500 {
		kind = fault.Invalid
	}
	var p struct {
		Code       string      `json:"error"`
		Detail     string      `json:"detail"`
		Suggestion string      `json:"suggestion"`
		RequestID  string      `json:"request_id"`
		Approval   id.Approval `json:"approval_id"`
		RetryAfter int64       `json:"retry_after"`
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	if err != nil || json.Unmarshal(raw, &p) != nil || p.Code == "" {
		return fault.New(kind, "unexpected_answer", "the answer %d is not one of this API; is there another server at this address",
			answer.StatusCode)
	}
	f := fault.New(kind, p.Code, "%s", p.Detail)
	if kind == fault.Internal && p.RequestID != "" {
		f.Msg += " (" + p.RequestID + ")"
	}
	if p.Code == "unauthenticated" && p.Suggestion == "" {
		p.Suggestion = "the key is not, or no longer, one of this daemon's"
	}
	if p.Approval != "" {
		return &policy.Asked{Approval: p.Approval, Fault: f.With(p.Suggestion)}
	}
	if answer.StatusCode == http.StatusTooManyRequests && p.RetryAfter > 0 && p.RetryAfter <= int64(maxLater/time.Second) {
		return &Later{After: time.Duration(p.RetryAfter) * time.Second, Fault: f.With(p.Suggestion)}
	}
	return f.With(p.Suggestion)
}

// maxLater is the longest that a daemon is believed to have somebody wait.
const maxLater = time.Hour

// Later is the refusal of a request that may be made again after a while, unchanged: nothing of it was done.
type Later struct {
	After time.Duration
	Fault *fault.Error
}

func (l *Later) Error() string { return l.Fault.Error() }

// Unwrap returns the refusal itself.
func (l *Later) Unwrap() error { return l.Fault }

// call sends a value as JSON, unless it is nil, and reads the answer into another, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, in, out any, header map[string]string) error {
	q := request{method: method, path: path, query: query, header: header}
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "request_invalid", "the request cannot be written as JSON")
		}
		q.body, q.size, q.media = bytes.NewReader(raw), int64(len(raw)), "application/json"
	}
	return c.exchange(ctx, q, out)
}

// exchange makes a call and reads its answer as JSON, unless out is nil.
func (c *Client) exchange(ctx context.Context, q request, out any) error {
	answer, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if out == nil {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return unreachable(ctx, err, c.address)
	case len(raw) > maxAnswer:
		return fault.New(fault.Exhausted, "answer_too_large", "the answer has more than %d bytes; ask for less at once", maxAnswer)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fault.Wrap(err, fault.Internal, "unexpected_answer", "the answer of %s %s cannot be read; is the daemon of another version",
			q.method, q.path)
	}
	return nil
}

// getTries is how often something is read whose answer is cut off: reading changes nothing, so it may be repeated at once.
const getTries = 3

func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	for try := 1; ; try++ {
		err := c.call(ctx, http.MethodGet, path, query, nil, out, nil)
		if err == nil || try == getTries || ctx.Err() != nil || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
	}
}

func (c *Client) post(ctx context.Context, path string, in, out any) error {
	return c.call(ctx, http.MethodPost, path, nil, in, out, nil)
}

// Page selects a part of a list: at most Limit entries behind Cursor. Zero values mean the API's own.
type Page struct {
	Limit  int
	Cursor string
}

// values makes the parameters of a query; those without a value are left out.
func (p Page) values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	if p.Cursor != "" {
		v.Set("cursor", p.Cursor)
	}
	if p.Limit != 0 {
		v.Set("limit", strconv.Itoa(p.Limit))
	}
	return v
}

// With returns a client of the same daemon that sends another key.
func (c *Client) With(key string) *Client {
	other := *c
	other.key = key
	return &other
}

// Session says who the key belongs to.
type Session struct {
	Principal string `json:"principal_id"`
	Workspace string `json:"workspace_id"`
	Role      string `json:"role"`
	Key       id.Key `json:"key_id"` // "" where another credential was sent
}

// Session asks who the key belongs to.
func (c *Client) Session(ctx context.Context) (Session, error) {
	var s Session
	err := c.get(ctx, "/v1/auth/session", nil, &s)
	return s, err
}

// Ready asks whether the daemon can do its work; the error says what keeps it from that.
func (c *Client) Ready(ctx context.Context) error {
	err := c.get(ctx, "/readyz", nil, nil)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == "unexpected_answer" {
		return fault.New(fault.Unavailable, "not_ready", "the daemon is not ready").With("agentbox doctor says why")
	}
	return err
}

// escape makes one element of a path.
func escape(part string) string { return url.PathEscape(part) }

// escapePath keeps the slashes between the elements of a file's path. It escapes the parts that a router would clean or refuse, so that the
// daemon judges them.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
		if part == "." || part == ".." {
			parts[i] = strings.ReplaceAll(part, ".", "%2E")
		}
	}
	escaped := strings.Join(parts, "/")
	if rest, absolute := strings.CutPrefix(escaped, "/"); absolute {
		return "%2F" + rest
	}
	return strings.ReplaceAll(escaped, "//", "%2F%2F")
}

func join(parts ...any) string { return fmt.Sprint(parts...) }
