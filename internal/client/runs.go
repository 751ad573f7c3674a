package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// RunRequest asks for a run.
type RunRequest struct {
	Message // as the agent wrote it; the daemon judges it

	Context     *RunContext `json:"context,omitempty"`
	Agent       *RunAgent   `json:"agent,omitempty"`
	Title       string      `json:"title,omitempty"`
	Background  bool        `json:"background,omitempty"`
	Retention   string      `json:"retention,omitempty"` // as in 30d or 36h; empty for as long as the operator's rules say
	Artifacts   []string    `json:"artifacts,omitempty"` // the files of the space that are kept as artifacts when the run ends
	WaitSeconds int64       `json:"wait_seconds"`        // 0 answers at once

	IdempotencyKey string `json:"-"`
}

// Message is an operations message whose operations are not read here.
type Message struct {
	ProtocolVersion json.RawMessage `json:"protocolVersion,omitempty"`
	Operations      json.RawMessage `json:"operations,omitempty"`
}

// ParseMessage reads an operations message and refuses fields that it does not have.
func ParseMessage(raw []byte) (Message, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Message{}, unreadable(raw, err)
	}
	m := Message{ProtocolVersion: fields["protocolVersion"], Operations: fields["operations"]}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "protocolVersion" && name != "operations" {
			return Message{}, fault.New(fault.Invalid, "operation_invalid",
				"an operations message has the fields protocolVersion and operations, and no %.64q", name)
		}
	}
	return m, nil
}

// unreadable says what is wrong with an operations message that is not a JSON object, and where.
func unreadable(raw []byte, err error) error {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return fault.New(fault.Invalid, "operation_invalid", "an operations message is a JSON object, and this is other JSON")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return fault.New(fault.Invalid, "operation_invalid", "an operations message is a JSON object, and this is empty")
	}
	before := raw[:min(int64(len(raw)), max(0, syntax.Offset-1))]
	line := bytes.Count(before, []byte("\n")) + 1
	return fault.New(fault.Invalid, "operation_invalid", "an operations message is a JSON object; line %d, character %d: %s", line,
		len(before)-bytes.LastIndexByte(before, '\n'), syntax)
}

// RunContext is the context at the start of an agent.
type RunContext struct {
	Files []string `json:"files,omitempty"`
}

// RunAgent says who acts.
type RunAgent struct {
	Name string `json:"name"`
}

// RunFilter selects runs.
type RunFilter struct {
	Space      id.Space
	Status     string
	Background bool   // only background runs
	Work       string // only runs that engines execute, of this kind: agent or operations
	Blueprint  string // only runs of the agent that this blueprint defines
	Page
}

// RunList is a page of runs, the newest first.
type RunList struct {
	Runs []RunListed `json:"runs"`
	Next string      `json:"next_cursor"` // empty at the end
}

// RunListed is a run of a list.
type RunListed struct {
	run.Run
	Waits
}

// Waits says what a run of an engine waits for: a person.
type Waits struct {
	For       string        `json:"waits_for,omitempty"`    // approval or answer; empty while it waits for nobody
	Approvals []id.Approval `json:"approval_ids,omitempty"` // the open questions
}

// RunShown is a run with its events message.
type RunShown struct {
	run.Run
	Waits
	Result run.Events      `json:"result"`
	Given  json.RawMessage `json:"given,omitempty"` // the input of a run that an engine executes
}

// CreateRun starts a run and returns its events message as it is when the run ends, pauses, or the wait is over.
func (c *Client) CreateRun(ctx context.Context, s id.Space, q RunRequest) (run.Events, error) {
	var e run.Events
	err := c.call(ctx, http.MethodPost, spacePath(s)+"/runs", nil, q, &e, idempotent(q.IdempotencyKey))
	return e, err
}

// Runs lists runs.
func (c *Client) Runs(ctx context.Context, f RunFilter) (RunList, error) {
	var l RunList
	beside := ""
	if f.Background {
		beside = "true"
	}
	err := c.get(ctx, "/v1/runs", f.values("space_id", string(f.Space), "status", f.Status, "background", beside,
		"work", f.Work, "blueprint", f.Blueprint), &l)
	return l, err
}

// Run returns a run with its result events.
func (c *Client) Run(ctx context.Context, r id.Run) (RunShown, error) {
	var found RunShown
	err := c.get(ctx, join("/v1/runs/", escape(string(r))), nil, &found)
	return found, err
}

// Transcript returns a run's transcript as it is sent, without the named classes of text, and with the files that the run began with
// where they are wanted; the caller closes it. Whether all of it came only its reader can tell: see run.ReadTranscript.
func (c *Client) Transcript(ctx context.Context, r id.Run, redact []string, files bool) (io.ReadCloser, error) {
	out := "none"
	if len(redact) > 0 {
		out = strings.Join(redact, ",")
	}
	q := url.Values{"redact": {out}}
	if files {
		q.Set("files", "true")
	}
	answer, err := c.send(ctx, request{
		method: http.MethodGet, path: join("/v1/runs/", escape(string(r)), "/transcript"), query: q,
		header: map[string]string{"Accept": "application/x-ndjson"},
	})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// ImportRun sends a transcript of a run that was executed elsewhere and returns the record that it became.
func (c *Client) ImportRun(ctx context.Context, transcript io.Reader, size int64) (run.Run, error) {
	var made run.Run
	err := c.exchange(ctx, request{method: http.MethodPost, path: "/v1/runs/import", body: transcript, size: size,
		media: "application/x-ndjson"}, &made)
	return made, err
}

// CancelRun ends a run and every process of it.
func (c *Client) CancelRun(ctx context.Context, r id.Run, reason string) (run.Run, error) {
	found, err := c.Run(ctx, r)
	if err != nil {
		return run.Run{}, err
	}
	var cancelled run.Run
	body := map[string]string{}
	if reason != "" {
		body["reason"] = reason
	}
	path := join("/v1/runs/", escape(string(r)), "/cancel")
	if found.Space != "" {
		path = join(spacePath(found.Space), "/runs/", escape(string(r)), "/cancel")
	}
	err = c.post(ctx, path, body, &cancelled)
	return cancelled, err
}

// RetainRun sets how long the data of a run that has ended are kept from its end: as in 30d or 36h, or none for as long as the operator's
// rules say.
func (c *Client) RetainRun(ctx context.Context, r id.Run, keep string) (run.Run, error) {
	var retained run.Run
	err := c.post(ctx, join("/v1/runs/", escape(string(r)), "/retention"), map[string]string{"retention": keep}, &retained)
	return retained, err
}

// The kinds of frame.
const (
	FrameOperation = "operation" // an operation begins; Data is a run.Operation
	FrameResult    = "event"     // its result event; Data is a run.Result
	FrameStdout    = "stdout"    // Data is an Output
	FrameStderr    = "stderr"
	FrameDelta     = "delta"    // a piece of a model's answer; Data is a model.Delta
	FrameComplete  = "complete" // the run has ended; always the last
)

// Frame is a piece of a run while it comes.
type Frame struct {
	N    uint64          `json:"n"` // from 1, without gaps
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// Output is a piece of what a command prints.
type Output struct {
	Operation string `json:"operationId"`
	Data      string `json:"data"`
	Encoding  string `json:"encoding"` // utf-8 or base64
}

// FollowRun yields the frames of a run, of any space where none is named, from a number on (0 for the first), as they come. It ends after
// FrameComplete and not before, unless it yields an error or ctx ends: it reconnects after the last frame.
func (c *Client) FollowRun(ctx context.Context, s id.Space, r id.Run, from uint64) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		path := join(spacePath(s), "/runs/", escape(string(r)), "/stream")
		if s == "" {
			path = join("/v1/runs/", escape(string(r)), "/stream")
		}
		next := max(from, 1)
		for m, err := range c.follow(ctx, path, nil, func() (string, string) { return "from", strconv.FormatUint(next, 10) }) {
			if err != nil {
				yield(Frame{}, err)
				return
			}
			f := Frame{Kind: m.name, Data: json.RawMessage(m.data)}
			if f.N, err = strconv.ParseUint(m.id, 10, 64); err != nil || f.N != next || !json.Valid(f.Data) {
				yield(Frame{}, fault.New(fault.Internal, "stream_broken", "frame %.20q follows %d, or cannot be read", m.id, next-1))
				return
			}
			next = f.N + 1
			if !yield(f, nil) || f.Kind == FrameComplete {
				return
			}
		}
		if ctx.Err() != nil {
			yield(Frame{}, fault.Wrap(ctx.Err(), fault.Unavailable, "interrupted", "the stream was given up"))
		}
	}
}
