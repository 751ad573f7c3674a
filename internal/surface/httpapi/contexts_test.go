package httpapi_test

import (
	"mime"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/testkit"
)

// TestWhatACellShowsIsNoPageOfTheDaemon is about HTML that code of a space has written: no browser runs it in the place of the daemon.
func TestWhatACellShowsIsNoPageOfTheDaemon(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) { c.Light = &testkit.Light{} })
	in := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{"runtime":"nano"}`, "id")
	var ran struct {
		Events []struct {
			Displays []struct {
				Artifact string `json:"artifact_id"`
				Media    string `json:"mime_type"`
			} `json:"displays"`
		} `json:"events"`
	}
	d.succeed(t, "POST", in+"/contexts/c/cells", `{"language":"python","code":"table"}`, &ran)
	if len(ran.Events) != 1 || len(ran.Events[0].Displays) != 3 {
		t.Fatalf("%+v", ran)
	}
	get := func(path, accept string) (int, http.Header) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", d.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+d.keys[""])
		r.Header.Set("Accept", accept)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode, resp.Header
	}
	closed := func(h http.Header) bool {
		csp := h.Get("Content-Security-Policy")
		return h.Get("X-Content-Type-Options") == "nosniff" && strings.Contains(csp, "default-src 'none'") && strings.HasSuffix(csp, "sandbox")
	}
	for _, shown := range ran.Events[0].Displays {
		for _, accept := range []string{"", "text/html", shown.Media} {
			status, h := get("/v1/artifacts/"+shown.Artifact+"/content", accept)
			how, _, err := mime.ParseMediaType(h.Get("Content-Disposition"))
			if status != 200 || err != nil || how != "attachment" || h.Get("Content-Type") != "application/octet-stream" || !closed(h) {
				t.Errorf("the content of %s, asked for as %q: %d %v", shown.Media, accept, status, h)
			}
			status, h = get("/v1/artifacts/"+shown.Artifact, accept) // where a short one stands in its event
			if media, _, err := mime.ParseMediaType(h.Get("Content-Type")); status != 200 || err != nil || media != "application/json" ||
				!closed(h) {
				t.Errorf("%s, asked for as %q: %d %v", shown.Media, accept, status, h)
			}
		}
	}
}
