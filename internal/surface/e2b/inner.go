package e2b

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// refusal is an error of E2B: a status of HTTP for the control plane and files, a word for the calls of a sandbox.
type refusal struct {
	Status  int
	Code    string // a code of Connect
	Word    string // the code of /v1 behind it
	Message string
	After   string // Retry-After
}

func (e *refusal) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &refusal{Status: http.StatusBadRequest, Code: "invalid_argument", Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &refusal{Status: http.StatusNotFound, Code: "not_found", Message: fmt.Sprintf(format, args...)}
}

// notOffered refuses what Agentbox does not have.
func notOffered(what string) error {
	return &refusal{Status: http.StatusBadRequest, Code: "unimplemented", Message: what +
		" are not offered by Agentbox; docs/E2B.md lists what is"}
}

// gone turns the refusal of a space that is not there into what E2B's proxy says of a sandbox that does not run.
func gone(err error) error {
	e, ok := errors.AsType[*refusal](err)
	if ok && (e.Word == "space_destroyed" || e.Word == "space_not_found" || e.Word == "space_not_ready") {
		return &refusal{Status: http.StatusBadGateway, Code: "unavailable", Word: e.Word, Message: "The sandbox was not found: it has ended"}
	}
	return err
}

// connectCode is the code of Connect of a status.
func connectCode(status int, word string) string {
	switch {
	case word == "file_exists":
		return "already_exists"
	case word == "not_a_directory" || word == "not_a_file":
		return "invalid_argument"
	}
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return "invalid_argument"
	case http.StatusUnauthorized:
		return "unauthenticated"
	case http.StatusForbidden:
		return "permission_denied"
	case http.StatusNotFound:
		return "not_found"
	case http.StatusConflict:
		return "failed_precondition"
	case http.StatusTooManyRequests:
		return "resource_exhausted"
	case http.StatusServiceUnavailable:
		return "unavailable"
	}
	return "internal"
}

// refuse answers with an error: of Connect where the path is that of a call, else with a number as its code.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		e = &refusal{Status: http.StatusInternalServerError, Code: "internal", Message: "something broke inside the daemon"}
		if r.Context().Err() != nil {
			return // nobody waits for an answer
		}
	}
	if e.After != "" {
		w.Header().Set("Retry-After", e.After)
	}
	if isStream(r) {
		out := newStream(w)
		out.end(e)
		return
	}
	if isCall(r.URL.Path) && e.Status != http.StatusBadGateway {
		_ = answer(w, e.Status, map[string]string{"code": e.Code, "message": e.Message}) // strings only
		return
	}
	_ = answer(w, e.Status, map[string]any{"code": e.Status, "message": e.Message})
}

// buffered takes an answer of /v1.
type buffered struct {
	header http.Header
	status int
	bytes.Buffer
}

func (b *buffered) Header() http.Header { return b.header }

func (b *buffered) WriteHeader(status int) {
	if b.status == 0 {
		b.status = status
	}
}

// inner is a request of /v1 in the caller's name.
func (c *caller) inner(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	r.Host, r.RemoteAddr, r.RequestURI = c.request.Host, c.request.RemoteAddr, path
	r.Header.Set("Authorization", "Bearer "+c.bearer)
	if body == nil {
		r.Body = http.NoBody
	}
	return r, nil
}

// runURL is the address of a run of the sandbox in /v1.
func (c *caller) runURL(run string) string {
	return "/v1/spaces/" + url.PathEscape(c.sandbox) + "/runs/" + url.PathEscape(run)
}

// api answers /v1.
type api struct{ http.Handler }

// ask calls an operation of /v1 in the caller's name; out gets the answer, unless it is nil.
func (a api) ask(ctx context.Context, c *caller, method, path string, in, out any) error {
	return a.once(ctx, c, "", method, path, in, out)
}

// once is ask with an idempotency key.
func (a api) once(ctx context.Context, c *caller, key, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	r, err := c.inner(ctx, method, path, body)
	if err != nil {
		return err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := &buffered{header: http.Header{}}
	a.ServeHTTP(w, r)
	if w.status >= http.StatusMultipleChoices { // also a redirect, which says that nothing was done
		return refusalOf(w.status, w.header, w.Bytes())
	}
	if out == nil || w.Len() == 0 {
		return nil
	}
	return json.Unmarshal(w.Bytes(), out)
}

// refusalOf reads a problem document of /v1.
func refusalOf(status int, h http.Header, raw []byte) error {
	var p struct {
		Code       string `json:"error"`
		Detail     string `json:"detail"`
		Suggestion string `json:"suggestion"`
	}
	if err := json.Unmarshal(raw, &p); err != nil || p.Detail == "" {
		p.Detail = http.StatusText(status)
	}
	if p.Suggestion != "" {
		p.Detail += " (" + p.Suggestion + ")"
	}
	if status < http.StatusBadRequest { // a redirect: /v1 does not take a path as it is
		status, p.Detail = http.StatusBadRequest, "the path cannot be used as it is written"
	}
	e := &refusal{Status: status, Code: connectCode(status, p.Code), Word: p.Code, Message: p.Detail, After: h.Get("Retry-After")}
	switch p.Code {
	case "invalid_capability_token", "capability_token_expired":
		e.Status = http.StatusUnauthorized
	case "quota_exceeded", "disk_full":
		if e.Status != http.StatusBadRequest {
			e.After = ""
		}
	}
	return e
}

// frame is an event of a run's stream.
type frame struct {
	kind string
	data []byte
}

// output is the data of a frame of output.
type output struct {
	Data     string `json:"data"`
	Encoding string `json:"encoding"`
}

// frames yields what a run shows, until its end. It ends with an error if the stream ends before the run.
func (a api) frames(ctx context.Context, c *caller, run string) iter.Seq2[frame, error] {
	return a.messages(ctx, c, c.runURL(run)+"/stream", "complete")
}

// messages yields the messages of an event stream of /v1, up to the one that is named last. It ends with an error if the stream ends
// before.
func (a api) messages(ctx context.Context, c *caller, path, last string) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		r, err := c.inner(ctx, http.MethodGet, path, nil)
		if err != nil {
			cancel()
			yield(frame{}, err)
			return
		}
		out, in := io.Pipe()
		w := &piped{header: http.Header{}, w: in}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() {
				if broken := recover(); broken != nil {
					in.CloseWithError(errBroken) // the server cut the answer off
				}
			}()
			a.ServeHTTP(w, r)
			in.CloseWithError(w.ended())
		}()
		defer func() {
			cancel()
			_ = out.Close() // of a pipe, which has no error
			<-ended
		}()
		for f, err := range events(out) {
			if !yield(f, err) || err != nil || f.kind == last {
				return
			}
		}
	}
}

var errBroken = &refusal{Status: http.StatusServiceUnavailable, Code: "aborted", Message: "the stream was cut off"}

// events yields the events of an event stream. The end of the stream is an error: a complete stream is left before it.
func events(r io.Reader) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		lines := bufio.NewReader(r)
		var f frame
		for {
			line, err := lines.ReadString('\n')
			if errors.Is(err, io.EOF) {
				err = errBroken
			}
			if err != nil {
				yield(frame{}, err)
				return
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case name == "" && value == "":
				if f.kind != "" && !yield(f, nil) {
					return
				}
				f = frame{}
			case name == "event":
				f.kind = value
			case name == "data":
				f.data = append(f.data, value...)
			}
		}
	}
}

// piped takes an event stream of /v1, or a problem instead.
type piped struct {
	header  http.Header
	status  int
	w       *io.PipeWriter
	refused bytes.Buffer
}

func (p *piped) Header() http.Header { return p.header }

func (p *piped) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

func (p *piped) Write(raw []byte) (int, error) {
	if p.status >= http.StatusBadRequest {
		return p.refused.Write(raw)
	}
	return p.w.Write(raw)
}

// Flush does nothing: a pipe holds nothing back.
func (p *piped) Flush() {}

// SetWriteDeadline does nothing: the reader is this daemon.
func (p *piped) SetWriteDeadline(time.Time) error { return nil }

func (p *piped) ended() error {
	if p.status >= http.StatusBadRequest {
		return refusalOf(p.status, p.header, p.refused.Bytes())
	}
	return nil
}
