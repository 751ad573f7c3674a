package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// Listing lists a folder of a space.
type Listing struct {
	Path      string        `json:"path"`
	Entries   []space.Entry `json:"entries"`
	Truncated bool          `json:"truncated"` // there are more than one listing holds
}

// Files lists a folder of a space; "." is its top.
func (c *Client) Files(ctx context.Context, s id.Space, path string, recursive bool) (Listing, error) {
	q := url.Values{"path": {path}}
	if recursive {
		q.Set("recursive", "true")
	}
	var l Listing
	err := c.get(ctx, spacePath(s)+"/files", q, &l)
	return l, err
}

// ReadFile returns the content of a file, which the caller closes.
func (c *Client) ReadFile(ctx context.Context, s id.Space, path string) (io.ReadCloser, error) {
	return c.readFile(ctx, s, path, nil)
}

// ReadWithheld returns the content of a file that is withheld from code, which the caller closes.
func (c *Client) ReadWithheld(ctx context.Context, s id.Space, path string) (io.ReadCloser, error) {
	return c.readFile(ctx, s, path, url.Values{"withheld": {"true"}})
}

func (c *Client) readFile(ctx context.Context, s id.Space, path string, q url.Values) (io.ReadCloser, error) {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: filePath(s, path), query: q,
		header: map[string]string{"Accept": "application/octet-stream"}})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// WriteFile writes size bytes of content to a file, as a whole or not at all. The mode is space.ModePlain or space.ModeExecutable; with
// "" a file that is replaced leaves it to the new one.
func (c *Client) WriteFile(ctx context.Context, s id.Space, path string, content io.Reader, size int64, overwrite bool,
	mode string) (space.Entry, error) {
	q := url.Values{"overwrite": {strconv.FormatBool(overwrite)}}
	if mode != "" {
		q.Set("mode", mode)
	}
	answer, err := c.send(ctx, request{
		method: http.MethodPut, path: filePath(s, path), query: q,
		body: io.NopCloser(content), size: size, media: "application/octet-stream",
	})
	if err != nil {
		return space.Entry{}, err
	}
	defer answer.Body.Close()
	var entry space.Entry
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxProblem)).Decode(&entry); err != nil {
		return space.Entry{}, fault.Wrap(err, fault.Internal, "unexpected_answer", "the answer to the written file cannot be read")
	}
	return entry, nil
}

// DeleteFile removes a file.
func (c *Client) DeleteFile(ctx context.Context, s id.Space, path string) error {
	return c.call(ctx, http.MethodDelete, filePath(s, path), nil, nil, nil, nil)
}

// DeleteWithheld removes a file that is withheld from code.
func (c *Client) DeleteWithheld(ctx context.Context, s id.Space, path string) error {
	return c.call(ctx, http.MethodDelete, filePath(s, path), url.Values{"withheld": {"true"}}, nil, nil, nil)
}

// Archive returns a folder of a space as a zip file, which the caller closes.
func (c *Client) Archive(ctx context.Context, s id.Space, path string) (io.ReadCloser, error) {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: spacePath(s) + "/files/archive", query: url.Values{"path": {path}},
		header: map[string]string{"Accept": "application/zip"}})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// filePath names a file. One that is called archive at the top has an address of its own, for the archive of all files has the usual one.
func filePath(s id.Space, path string) string {
	if path == "archive" {
		return spacePath(s) + "/files/%2e/archive"
	}
	return join(spacePath(s), "/files/", escapePath(path))
}
