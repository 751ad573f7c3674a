package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// client speaks the HTTP API as the contract of the kernel has it, and knows nothing else of the daemon: a stranger's client.
type client struct {
	base   string // http://host:port
	header map[string]string
	http   *http.Client
}

// newClient returns a client with a connection of its own, which one goroutine uses. The key opens the daemon.
func newClient(address, key string) *client {
	return &client{base: "http://" + address, header: map[string]string{"Authorization": "Bearer " + key},
		http: &http.Client{Transport: &line{address: address}}}
}

// as returns a client like this one, with a connection of its own, that also sends these headers; one that is empty is not sent.
func (c *client) as(header map[string]string) *client {
	other := newClient(c.base[len("http://"):], "")
	for name, value := range c.header {
		other.header[name] = value
	}
	for name, value := range header {
		other.header[name] = value
	}
	return other
}

// refusal is an answer of the API that is none of success.
type refusal struct {
	Status int    `json:"status"`
	Code   string `json:"error"`
	Detail string `json:"detail"`
}

// Error tells the status, the code and the detail.
func (r *refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Detail) }

// refused reports whether the daemon answered, and refused.
func refused(err error) (*refusal, bool) { return errors.AsType[*refusal](err) }

// do makes one request. The key once makes a repeat of it harmless; in is sent as JSON, and the answer is read into out; both may be nil.
func (c *client) do(ctx context.Context, method, path, once string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	for name, value := range c.header {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if once != "" {
		r.Header.Set("Idempotency-Key", once)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		no := &refusal{Status: answer.StatusCode}
		if json.Unmarshal(raw, no) != nil {
			no.Detail = string(raw[:min(len(raw), 200)])
		}
		return no
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s %s answered %d with %.200q: %w", method, path, answer.StatusCode, raw, err)
	}
	return nil
}

// again is how long a client waits before it asks a daemon again that is not there.
const again = 20 * time.Millisecond

// insist makes a request until the daemon has answered it, for it may be killed meanwhile. The key once sees to it that it is done once.
func (c *client) insist(ctx context.Context, method, path, once string, in, out any) error {
	for {
		err := c.do(ctx, method, path, once, in, out)
		no, answered := refused(err)
		if err == nil || answered && no.Status != http.StatusServiceUnavailable && no.Code != "idempotency_in_progress" {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

func (c *client) get(ctx context.Context, path string, out any) error {
	return c.insist(ctx, http.MethodGet, path, "", nil, out)
}

func (c *client) post(ctx context.Context, path, once string, in, out any) error {
	return c.insist(ctx, http.MethodPost, path, once, in, out)
}

// line is one connection over which one goroutine makes requests one after another. It costs less than a pool, which would measure itself.
type line struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
	out     *bufio.Writer
}

// patience is how long an answer may take.
const patience = 30 * time.Second

// RoundTrip makes a request; the body of the answer has to be read before the next.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.conn == nil {
		var d net.Dialer
		conn, err := d.DialContext(r.Context(), "tcp", l.address)
		if err != nil {
			return nil, err
		}
		l.conn, l.in, l.out = conn, bufio.NewReaderSize(conn, 16<<10), bufio.NewWriterSize(conn, 16<<10)
	}
	answer, err := l.ask(r)
	if err != nil || answer.Close {
		conn := l.conn
		l.conn = nil
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		answer.Body = closing{answer.Body, conn}
	}
	return answer, err
}

func (l *line) ask(r *http.Request) (*http.Response, error) {
	if err := l.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if err := r.Write(l.out); err != nil {
		return nil, err
	}
	if err := l.out.Flush(); err != nil {
		return nil, err
	}
	return http.ReadResponse(l.in, r)
}

// closing is the last body of a connection.
type closing struct {
	io.ReadCloser
	conn net.Conn
}

// Close closes both.
func (c closing) Close() error { return errors.Join(c.ReadCloser.Close(), c.conn.Close()) }
