package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
)

const (
	maxLine    = 64 << 20 // bytes of one line of a stream; a result event holds what a command printed
	retries    = 6        // in a row without a message in between
	firstPause = 100 * time.Millisecond
)

// message is one server-sent event.
type message struct{ id, name, data string }

// parse yields the events of a stream until it ends. An event that the end cut off is dropped.
func parse(r io.Reader) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		lines.Split(splitLines)
		var m message
		var data []string
		lastID := ""
		for lines.Scan() {
			line := lines.Text()
			if line == "" {
				if data != nil {
					m.id, m.data = lastID, strings.Join(data, "\n")
					if !yield(m, nil) {
						return
					}
				}
				m, data = message{}, nil
				continue
			}
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "id":
				if !strings.ContainsRune(value, 0) {
					lastID = value
				}
			case "event":
				m.name = value
			case "data":
				data = append(data, value)
			}
		}
		if err := lines.Err(); err != nil {
			yield(message{}, err)
		}
	}
}

// splitLines ends lines at LF, CR or CR LF. A last line without an end is dropped.
func splitLines(data []byte, end bool) (int, []byte, error) {
	for i, b := range data {
		switch {
		case b == '\n':
			return i + 1, data[:i], nil
		case b == '\r' && i+1 < len(data):
			if data[i+1] == '\n' {
				return i + 2, data[:i], nil
			}
			return i + 1, data[:i], nil
		case b == '\r' && end:
			return i + 1, data[:i], nil
		}
	}
	if end {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// follow yields the messages of a stream and takes it up again where it broke, until the caller stops, ctx ends or the daemon does not come
// back. The function place names the parameter and value from which to go on.
func (c *Client) follow(ctx context.Context, path string, query url.Values, place func() (string, string)) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for failed := 0; ctx.Err() == nil; {
			q := url.Values{}
			maps.Copy(q, query)
			if name, value := place(); value != "" {
				q.Set(name, value)
			}
			progress, stopped, err := c.stream(ctx, path, q, yield)
			if stopped || ctx.Err() != nil {
				return
			}
			if progress {
				failed = 0
			}
			if failed++; err != nil && (final(err) || failed > retries) || failed > retries {
				if err == nil {
					err = fault.New(fault.Unavailable, "stream_ended", "the daemon ends the stream again and again")
				}
				yield(message{}, err)
				return
			}
			select {
			case <-time.After(c.pause << (failed - 1)):
			case <-ctx.Done():
			}
		}
	}
}

// final reports whether trying again cannot help.
func final(err error) bool {
	return !slices.Contains([]fault.Kind{fault.Unavailable, fault.Exhausted}, fault.KindOf(err))
}

// stream yields the messages of one connection. It says whether there was any, and whether the caller wants no more.
func (c *Client) stream(ctx context.Context, path string, query url.Values, yield func(message, error) bool) (progress, stopped bool,
	err error) {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: path, query: query,
		header: map[string]string{"Accept": "text/event-stream"}})
	if err != nil {
		return false, false, err
	}
	defer answer.Body.Close()
	if kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "text/event-stream" {
		return false, false, fault.New(fault.Internal, "unexpected_answer", "%s answers with %.60q instead of a stream", path, kind)
	}
	for m, err := range parse(answer.Body) {
		if errors.Is(err, bufio.ErrTooLong) {
			return progress, false, fault.New(fault.Internal, "stream_broken", "a message of the stream has more than %d bytes", maxLine)
		}
		if err != nil {
			return progress, false, unreachable(ctx, err, c.address)
		}
		progress = true
		if !yield(m, nil) {
			return true, true, nil
		}
	}
	return progress, false, nil
}
