package wire

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// maxTraceState is the most that tracestate may have; a longer one is dropped, as W3C Trace Context allows.
const maxTraceState = 512 // characters

// Trace is where a request stands in a trace that goes over several programs (W3C Trace Context, level 1).
type Trace struct {
	ID      string // 32 hex digits
	Span    string // 16 hex digits: this request, below the one that the caller named
	Flags   string // two hex digits
	State   string // of other tracing systems, passed on as it came
	Foreign bool   // the trace began with the caller
	Above   string // the caller's span, 16 hex digits; "" where the trace begins here
}

// Parent returns the header traceparent for the next program.
func (t Trace) Parent() string { return "00-" + t.ID + "-" + t.Span + "-" + t.Flags }

// Traceparent returns the traceparent of the request that a context serves; "" where it serves none.
func Traceparent(ctx context.Context) string {
	if t := callOf(ctx).Trace; t.ID != "" {
		return t.Parent()
	}
	return ""
}

// followed reports whether the trace is followed: by the caller, or by the collector of this daemon.
func (t Trace) followed() bool { return t.Foreign || t.Flags == "01" }

// trace continues the trace that the caller named, or begins one. A malformed header counts as absent.
func (s *Server) trace(r *http.Request) Trace {
	fresh := event.DigestOf([]byte(id.New[id.Request](s.IDs)))
	t := Trace{ID: hex.EncodeToString(fresh[:16]), Span: hex.EncodeToString(fresh[16:24]), Flags: "00"}
	sent := r.Header.Values("Traceparent")
	if len(sent) != 1 {
		return t
	}
	version, rest, _ := strings.Cut(sent[0], "-")
	parts := strings.Split(rest, "-")
	// A later version may have more parts behind these three.
	if !hexadecimal(version, 2) || version == "ff" || len(parts) < 3 || version == "00" && len(parts) != 3 ||
		!hexadecimal(parts[0], 32) || !hexadecimal(parts[1], 16) || !hexadecimal(parts[2], 2) ||
		strings.Trim(parts[0], "0") == "" || strings.Trim(parts[1], "0") == "" {
		return t
	}
	t.ID, t.Above, t.Flags, t.Foreign = parts[0], parts[1], parts[2], true
	if version != "00" {
		t.Flags = "00" // flags of a later version have an unknown meaning
	}
	if state := strings.Join(r.Header.Values("Tracestate"), ","); len(state) <= maxTraceState && !strings.ContainsFunc(state,
		func(c rune) bool { return c < 0x20 || c > 0x7e }) {
		t.State = state
	}
	return t
}

func hexadecimal(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}
