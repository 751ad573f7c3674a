package policy

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Canonical returns the action as RFC 8785 canonical JSON. It writes the bytes by hand, for every action of every agent passes here, and a
// test holds it to the library; an action with limits, a request or a declaration takes the library's way.
func (a Action) Canonical() ([]byte, error) {
	if a.Fence > maxExact {
		return nil, inexact(strconv.FormatUint(a.Fence, 10))
	}
	for _, n := range []int64{a.Size, a.MaxBytes, a.TimeoutMS} {
		if n > maxExact || n < -maxExact {
			return nil, inexact(strconv.FormatInt(n, 10))
		}
	}
	if !a.isText() {
		return nil, ErrNotText
	}
	if len(a.Limits) > 0 || len(a.Request) > 0 || a.Declared != (Declaration{}) {
		return a.canonicalSlow()
	}
	return a.canonicalFast(), nil
}

// canonicalSlow is what Canonical means.
func (a Action) canonicalSlow() ([]byte, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "action_invalid", "the action cannot be written as JSON")
	}
	return Canonicalize(raw)
}

// canonicalFast writes the fields in the order of their names.
func (a Action) canonicalFast() []byte {
	w := writer{make([]byte, 0, 640+len(a.Command)*2+len(a.Path))}
	w.list("argv", a.Argv)
	w.text("attach", a.Attach, false)
	w.truth("background", a.Background)
	w.text("capability_token_id", string(a.Token), false)
	w.text("command", a.Command, false)
	w.digest("content_sha256", a.Content)
	w.text("cwd", a.Cwd, false)
	w.object("env", a.Env)
	w.number("fence", int64(a.Fence))
	w.number("max_bytes", a.MaxBytes)
	w.text("method", a.Method, false)
	w.text("mode", a.Mode, false)
	w.text("operation_id", a.Operation, false)
	w.truth("overwrite", a.Overwrite)
	w.text("path", a.Path, false)
	w.digest("policy_bundle", a.Bundle)
	w.text("principal_id", string(a.Principal), true)
	w.text("room_id", string(a.Room), false)
	w.text("run_id", string(a.Run), false)
	w.number("size_bytes", a.Size)
	w.text("space_id", string(a.Space), false)
	w.digest("stdin_sha256", a.Stdin)
	w.text("step_id", string(a.Step), false)
	w.text("subject_id", a.Subject, false)
	w.text("target", a.Target, false)
	w.number("timeout_ms", a.TimeoutMS)
	w.text("tool", a.Tool, false)
	w.digest("tool_sha256", a.ToolHash)
	w.text("type", a.Type, true)
	w.text("workspace_id", string(a.Workspace), true)
	w.text("zone", string(a.Zone), false)
	return append(w.b, '}')
}

// writer writes the members of an object whose names need no escapes.
type writer struct{ b []byte }

func (w *writer) key(name string) {
	if len(w.b) == 0 {
		w.b = append(w.b, '{')
	} else {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) text(name, value string, always bool) {
	if value != "" || always {
		w.key(name)
		w.quote(value)
	}
}

func (w *writer) truth(name string, value bool) {
	if value {
		w.key(name)
		w.b = append(w.b, "true"...)
	}
}

func (w *writer) number(name string, n int64) {
	if n != 0 {
		w.key(name)
		w.b = strconv.AppendInt(w.b, n, 10)
	}
}

func (w *writer) digest(name string, d event.Digest) {
	if !d.IsZero() {
		w.key(name)
		w.b = append(w.b, `"sha256:`...)
		w.b = append(hex.AppendEncode(w.b, d[:]), '"')
	}
}

func (w *writer) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	w.key(name)
	for i, v := range values {
		if i == 0 {
			w.b = append(w.b, '[')
		} else {
			w.b = append(w.b, ',')
		}
		w.quote(v)
	}
	w.b = append(w.b, ']')
}

func (w *writer) object(name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	w.key(name)
	for i, k := range slices.SortedFunc(maps.Keys(values), byUTF16) {
		if i == 0 {
			w.b = append(w.b, '{')
		} else {
			w.b = append(w.b, ',')
		}
		w.quote(k)
		w.b = append(w.b, ':')
		w.quote(values[k])
	}
	w.b = append(w.b, '}')
}

func (w *writer) quote(s string) { w.b = AppendString(w.b, s) }

// AppendString appends a string, which must be UTF-8, as canonical JSON: with the escapes of RFC 8785 and no others.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		if short := strings.IndexByte("\b\t\n\f\r\"\\", c); short >= 0 {
			b = append(b, '\\', `btnfr"\`[short])
		} else {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// byUTF16 orders names as RFC 8785 does, by their UTF-16 code units.
func byUTF16(a, b string) int {
	if a == b {
		return 0
	}
	return cmp.Or(slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))), strings.Compare(a, b))
}
