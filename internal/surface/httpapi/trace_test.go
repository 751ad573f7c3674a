package httpapi_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// TestEveryOperationTakesAndGivesTraces asks each operation of the API document, and paths beside them, with a trace and identifiers of the
// caller's and without: what is answered, also a refusal, names the request.
func TestEveryOperationTakesAndGivesTraces(t *testing.T) {
	d := startDaemon(t)
	asked := map[string][2]string{"no operation": {"GET", "/v1/nothing"}, "no method": {"DELETE", "/v1/spaces"}, "a bad path": {"GET",
		"/v1//x"}, "the page": {"GET", "/v1/docs"}}
	for op, where := range documented(t) {
		asked[op] = where
	}
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	form := regexp.MustCompile("^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")
	ask := func(method, path string, header map[string]string) http.Header {
		r, err := http.NewRequestWithContext(t.Context(), method, d.address+path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+d.keys[""])
		for name, value := range header {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil { // an event stream has no end
			t.Fatal(err)
		}
		return resp.Header
	}
	for op, where := range asked {
		path := regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(where[1], "x")
		h := ask(where[0], path, map[string]string{
			"Traceparent": "00-" + trace + "-" + span + "-01", "Tracestate": "vendor=1,other=2", "X-Request-Id": "mine-1",
			"X-Correlation-Id": "mine-2",
		})
		parent := h.Get("Traceparent")
		if !strings.HasPrefix(parent, "00-"+trace+"-") || !strings.HasSuffix(parent, "-01") || strings.Contains(parent, span) ||
			!form.MatchString(parent) {
			t.Errorf("%s: traceparent %q", op, parent)
		}
		if h.Get("Tracestate") != "vendor=1,other=2" || h.Get("X-Request-Id") != "mine-1" || h.Get("X-Correlation-Id") != "mine-2" {
			t.Errorf("%s: got %v", op, h)
		}
		h = ask(where[0], path, nil)
		if !form.MatchString(h.Get("Traceparent")) || h.Get("Tracestate") != "" || h.Get("X-Request-Id") == "" ||
			h.Get("X-Correlation-Id") == "" {
			t.Errorf("%s without identifiers: got %v", op, h)
		}
	}
	// Without a correlation id the trace is what the events of a request are found by.
	for want, header := range map[string]map[string]string{
		trace:    {"Traceparent": "00-" + trace + "-" + span + "-01", "Content-Type": "application/json"},
		"mine-3": {"Traceparent": "00-" + trace + "-" + span + "-01", "X-Correlation-Id": "mine-3", "Content-Type": "application/json"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", d.address+"/v1/spaces", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+d.keys[""])
		for name, value := range header {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != 201 {
			t.Fatalf("%d %v", resp.StatusCode, err)
		}
		events, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Correlation: id.Correlation(want)})
		if err != nil || len(events) < 3 {
			t.Errorf("%d events are found by %s (%v), want those of the space", len(events), want, err)
		}
	}
}
