// Package fetch gets pages of the web for the daemon, each with a permit of its own.
package fetch

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/web"
)

// Lookup returns the addresses of a host.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// Client gets pages. Make it with New; any goroutine may use it.
type Client struct {
	lookup Lookup
	agent  string
}

var _ web.Fetcher = (*Client)(nil)

// New returns a client that names itself so to the hosts. A lookup of nil is that of the system.
func New(agent string, lookup Lookup) *Client {
	return &Client{lookup: lookup, agent: agent}
}

// maxAddresses is how many addresses of a host are tried.
const maxAddresses = 4

// The parts of MaxTime.
const (
	dialTime   = 10 * time.Second // for each address
	headerTime = 20 * time.Second // for the head of the answer
	maxHeader  = 64 << 10         // bytes of it
)

// Fetch implements web.Fetcher.
func (c *Client) Fetch(ctx context.Context, permit policy.Permit, r web.Request) (web.Answer, error) {
	a, err := permit.Redeem(r.Action())
	if err != nil {
		return web.Answer{}, err
	}
	if clean, err := web.Clean(a.Target); err != nil || a.Target != r.URL || a.Method != r.Method || clean != a.Target {
		return web.Answer{}, policy.ErrPermitMismatch
	}
	if a.Method != http.MethodGet && a.Method != http.MethodHead {
		return web.Answer{}, web.ErrMethod
	}
	ctx, stop := context.WithTimeout(ctx, web.MaxTime)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, a.Method, a.Target, nil)
	if err != nil {
		return web.Answer{}, web.ErrURL
	}
	request.Header.Set("User-Agent", c.agent)
	request.Header.Set("Accept", "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.8,*/*;q=0.1")
	line := &http.Transport{ // for this request alone: it shares no connection and reads no environment
		DialContext: func(ctx context.Context, _, endpoint string) (net.Conn, error) {
			return c.Dial(ctx, endpoint, a.Type == policy.HTTPPrivate)
		},
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: headerTime,
		MaxResponseHeaderBytes: maxHeader,
	}
	defer line.CloseIdleConnections()
	answer, err := line.RoundTrip(request)
	if err != nil {
		return web.Answer{}, failure(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read as far as it is wanted
	return read(answer, a.Method)
}

// Dial connects to one of the addresses of a host. It looks the host up once, checks every address, and dials only these addresses. Only
// where private is true an address may be one that is not public; else the error is web.ErrPrivate.
func (c *Client) Dial(ctx context.Context, endpoint string, private bool) (net.Conn, error) {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, err
	}
	addresses := []netip.Addr{}
	if one, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, one)
	} else if addresses, err = c.addresses(ctx, host); err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "it has no address", Name: host, IsNotFound: true}
	}
	for _, one := range addresses {
		if !private && !web.Public(one) {
			return nil, web.ErrPrivate
		}
	}
	dialer, failed := net.Dialer{Timeout: dialTime}, error(nil)
	for _, one := range addresses[:min(len(addresses), maxAddresses)] {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(one.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (c *Client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if c.lookup == nil {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	return c.lookup(ctx, host)
}

// read takes what is wanted of an answer.
func read(answer *http.Response, method string) (web.Answer, error) {
	out := web.Answer{Status: answer.StatusCode}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		out.Location = answer.Header.Get("Location")
	}
	media, more, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err == nil {
		out.Media, out.Charset = media, strings.ToLower(more["charset"])
	}
	if method == http.MethodHead || out.Location != "" {
		return out, nil
	}
	if out.Media != "" && !web.Textual(out.Media) {
		return out, web.NoText(out.Media)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, web.MaxBody+1))
	if err != nil {
		return out, failure(err)
	}
	if out.Media == "" && len(raw) > 0 {
		media, more, _ := mime.ParseMediaType(http.DetectContentType(raw))
		out.Media, out.Charset = media, more["charset"]
	}
	if len(raw) > 0 && !web.Textual(out.Media) {
		return out, web.NoText(out.Media) // nobody said what it is
	}
	out.Body, out.Cut = raw[:min(len(raw), web.MaxBody)], len(raw) > web.MaxBody
	return out, nil
}

// failure is the error of a request that was not answered. It says nothing of addresses, which the model need not know.
func failure(err error) error {
	var lookup *net.DNSError
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, web.ErrPrivate):
		return web.ErrPrivate
	case errors.As(err, &lookup):
		return web.Failed("the host has no address")
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) && late.Timeout():
		return web.Failed("the host did not answer in time")
	case errors.Is(err, context.Canceled):
		return err
	case strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "x509:"):
		return web.Failed("the host has no valid certificate")
	}
	return web.Failed("the connection failed")
}
