package wire

import (
	"strings"
	"testing"
)

func TestATraceThatIsNotWellFormedIsAsIfItHadNotBeenSent(t *testing.T) {
	w := newWire(t, nil)
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, c := range []struct {
		sent, state string
		id, flags   string // of the answer; "" for a trace of its own
		kept        bool   // the state
	}{
		{"00-" + trace + "-" + span + "-01", "a=1", trace, "01", true},
		{"00-" + trace + "-" + span + "-00", "", trace, "00", true},
		{"00-" + trace + "-" + span + "-01", strings.Repeat("a", maxTraceState), trace, "01", true},
		{"00-" + trace + "-" + span + "-01", strings.Repeat("a", maxTraceState+1), trace, "01", false},
		{"cc-" + trace + "-" + span + "-01-what-comes", "", trace, "00", true}, // a later version
		{"ff-" + trace + "-" + span + "-01", "a=1", "", "", false},
		{"00-" + trace + "-" + span + "-01-more", "a=1", "", "", false},
		{"00-" + strings.ToUpper(trace) + "-" + span + "-01", "a=1", "", "", false},
		{"00-" + strings.Repeat("0", 32) + "-" + span + "-01", "a=1", "", "", false},
		{"00-" + trace + "-" + strings.Repeat("0", 16) + "-01", "a=1", "", "", false},
		{"00-" + trace[1:] + "-" + span + "-01", "a=1", "", "", false},
		{"00-" + trace + "-" + span, "a=1", "", "", false},
		{"", "a=1", "", "", false},
		{"nonsense", "a=1", "", "", false},
	} {
		resp, _ := w.ask("GET", "/v1/test/things/a", "", "Traceparent: "+c.sent, "Tracestate: "+c.state)
		parts := strings.Split(resp.Header.Get("Traceparent"), "-")
		if len(parts) != 4 || c.id != "" && (parts[1] != c.id || parts[3] != c.flags) || c.id == "" && parts[1] == trace {
			t.Errorf("%q: got %q", c.sent, resp.Header.Get("Traceparent"))
		}
		if got := resp.Header.Get("Tracestate"); c.kept && got != c.state || !c.kept && got != "" {
			t.Errorf("%q with the state %.20q: got %.20q", c.sent, c.state, got)
		}
		if corr := resp.Header.Get("X-Correlation-Id"); (corr == c.id) != (c.id != "") {
			t.Errorf("%q: the correlation is %q", c.sent, corr)
		}
	}
}
