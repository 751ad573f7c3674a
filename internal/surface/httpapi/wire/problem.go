package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Problem is the answer to a request that was not done: a problem document of RFC 9457 whose Code is stable.
type Problem struct {
	Title      string      `json:"title" doc:"The HTTP status in words"`
	Status     int         `json:"status" doc:"The HTTP status"`
	Code       string      `json:"error" doc:"What went wrong, as a stable word; errors.json lists them"`
	Detail     string      `json:"detail" doc:"What went wrong, as a sentence that says what to do"`
	Suggestion string      `json:"suggestion,omitempty" doc:"How to proceed, where the detail alone does not say"`
	RequestID  id.Request  `json:"request_id" doc:"Names this request in the daemon's log"`
	Approval   id.Approval `json:"approval_id,omitempty" doc:"The question that a person has to answer before the same request is done, or has denied"`
	RetryAfter int64       `json:"retry_after,omitempty" doc:"Seconds after which it may work"`
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of a problem document.
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// statusOfCode is the status of the codes whose kind alone does not tell it.
var statusOfCode = map[string]int{
	"unauthenticated":                http.StatusUnauthorized,
	"login_failed":                   http.StatusUnauthorized,
	"refresh_token_invalid":          http.StatusUnauthorized,
	"missing_engine_token":           http.StatusUnauthorized,
	"engine_token_invalid":           http.StatusUnauthorized,
	"engine_token_expired":           http.StatusUnauthorized,
	"capability_token_expired":       http.StatusUnauthorized,
	"method_not_allowed":             http.StatusMethodNotAllowed,
	"request_timeout":                http.StatusRequestTimeout,
	"unsupported_media_type":         http.StatusUnsupportedMediaType,
	"content_encoding_not_supported": http.StatusUnsupportedMediaType,
	"range_not_satisfiable":          http.StatusRequestedRangeNotSatisfiable,
	"misdirected_request":            http.StatusMisdirectedRequest,
	"port_not_listening":             http.StatusBadGateway,
	"port_unreachable":               http.StatusBadGateway,
	"port_bad_answer":                http.StatusBadGateway,
	"port_timeout":                   http.StatusGatewayTimeout,
}

var statusOfKind = map[fault.Kind]int{
	fault.Internal:    http.StatusInternalServerError,
	fault.Invalid:     http.StatusBadRequest,
	fault.Denied:      http.StatusForbidden,
	fault.Waiting:     http.StatusConflict,
	fault.NotFound:    http.StatusNotFound,
	fault.Conflict:    http.StatusConflict,
	fault.Exhausted:   http.StatusTooManyRequests,
	fault.Unavailable: http.StatusServiceUnavailable,
}

// StatusOf is the one table from faults to HTTP: the status of a kind of fault with a code.
func StatusOf(kind fault.Kind, code string) int {
	if status, ok := statusOfCode[code]; ok {
		return status
	}
	if kind == fault.Exhausted && strings.HasSuffix(code, "_too_large") {
		return http.StatusRequestEntityTooLarge
	}
	return statusOfKind[kind]
}

// limited is a fault after which waiting helps, and how long.
type limited struct {
	fault *fault.Error
	after time.Duration
}

// Error returns the fault's message.
func (l limited) Error() string { return l.fault.Error() }

// Unwrap returns the fault itself, so that its kind and code are found.
func (l limited) Unwrap() error { return l.fault }

// ProblemOf turns an error into the answer for the caller. It hides the cause of an error that is not a fault, and of a fault of kind
// Internal.
func ProblemOf(err error, request id.Request) *Problem {
	p := &Problem{
		Status: http.StatusInternalServerError, Code: "internal_error", RequestID: request,
		Detail: "something broke inside the daemon; its log tells more under the request id",
	}
	if plain := passing(err); plain != nil {
		err = plain
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		p.Status, p.Code, p.Suggestion = StatusOf(f.Kind, f.Code), f.Code, f.Suggestion
		if f.Kind != fault.Internal {
			p.Detail = f.Msg
		}
	}
	if asked, ok := errors.AsType[*policy.Asked](err); ok {
		p.Approval = asked.Approval
	}
	p.Title = http.StatusText(p.Status)
	if l, ok := errors.AsType[limited](err); ok {
		p.RetryAfter = int64((l.after + time.Second - 1) / time.Second)
	} else if p.Status == http.StatusServiceUnavailable {
		p.RetryAfter = 1
	}
	return p
}

// passing returns the error of a passing trouble that has nothing to do with the request; nil for every other error.
func passing(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return limited{fault.New(fault.Unavailable, "descriptors_exhausted",
			"the daemon has reached the host's limit of open files and connections; retry in a moment").
			With("close connections that are not needed, or raise the limit with ulimit -n or LimitNOFILE="), descriptorsAgain}
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Unavailable, "request_abandoned",
			"the client closed its end of the connection before the answer was ready; keep it open until the answer has come")
	}
	return nil
}

// descriptorsAgain is after how long it is worth asking again where descriptors were exhausted.
const descriptorsAgain = 5 * time.Second

// write sends the problem, unless the answer has begun: then nothing true can be said any more and the connection is cut.
func (p *Problem) write(w http.ResponseWriter) {
	if a, ok := w.(interface{ begun() bool }); ok && a.begun() {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Disposition", "ETag", "Last-Modified", "Accept-Ranges"} {
		h.Del(name)
	}
	h.Set("Content-Type", problemType)
	h.Set("Cache-Control", "no-store")
	p.headers(h)
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // the caller has gone; there is nobody left to tell
}

func (p *Problem) headers(h http.Header) {
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="agentbox"`)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
}

// GetHeaders returns the headers that belong to the problem.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	p.headers(h)
	return h
}
