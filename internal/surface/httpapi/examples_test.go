package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/testkit"
)

// documentedExamples are the examples of bodies in the committed API document, by operation. An operation that takes JSON and has none fails.
func documentedExamples(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID   string `json:"operationId"`
			Body *struct {
				Content map[string]struct {
					Example json.RawMessage `json:"example"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, methods := range document.Paths {
		for _, op := range methods {
			if op.Body == nil {
				continue
			}
			body, isJSON := op.Body.Content["application/json"]
			if isJSON && len(body.Example) == 0 {
				t.Errorf("%s has no example of its body: write one in examples.go", op.ID)
			}
			if isJSON {
				found[op.ID] = string(body.Example)
			}
		}
	}
	return found
}

// placeholders are the operations whose bodies name something by an identifier, of which an example has one that is nobody's: what they answer.
var placeholders = map[string]string{
	"redact-events":     "run_not_found",
	"rewind-space":      "snapshot_not_found",
	"grant-capability":  "issued_to_principal_not_found",
	"revoke-capability": "capability_token_not_found",
	"refresh":           "refresh_token_invalid",
	"login":             "", // the passphrase of the example of bootstrap-owner, which was sent before
}

var identifierOfNobody = regexp.MustCompile(`[a-z]+_(?:dev\.)?01M7YNAYM0SMK245AEDNVB5CNW`)

// TestEveryExampleIsReal sends each example of the API document, exactly as it stands there, to something that it fits.
func TestEveryExampleIsReal(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) {
		c.Rates, c.Light = wire.DefaultRates(), &testkit.Light{}
		c.Rates.Spaces, c.Rates.Runs = 1000, 1000
	})
	table, known, found := samples(t, d), documented(t), documentedExamples(t)
	first := []string{"bootstrap-owner", "login"}
	last := "put-kill-switch" // which stops everything else
	send := func(op, body string) {
		s, ok := table[op]
		where := known[op]
		if !ok || s.path == "" {
			s.path = strings.NewReplacer("{room_id}", "room_00000000000000000000000000", "{action_type}", "deploy.production").Replace(where[1])
		}
		r, err := http.NewRequestWithContext(t.Context(), where[0], d.address+s.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+d.keys[""])
		if op == "set-passphrase" { // the owner has one by now
			r.Header.Set("Authorization", "Bearer "+d.key(t, "viewer-vera"))
		}
		if op == "bootstrap-owner" {
			r.Header.Set("X-Bootstrap-Token", d.app.Registrar.BootstrapToken)
		}
		if token := claimToken.FindString(s.body); token != "" { // the header does as well as the field
			r.Header.Set("X-Claim-Token", token)
		}
		resp, raw := d.send(t, r)
		holds(t, where[0], s.path, resp, raw)
		want, named := placeholders[op]
		if named && want != "" {
			if code(raw) != want || identifierOfNobody.FindString(body) == "" {
				t.Errorf("the example of %s: %d %s, want %s", op, resp.StatusCode, raw, want)
			}
			return
		}
		if resp.StatusCode >= 300 || s.status != 0 && resp.StatusCode != s.status {
			t.Errorf("the example of %s: %d %s, want %d", op, resp.StatusCode, raw, s.status)
		}
	}
	for _, op := range first {
		send(op, found[op])
	}
	for _, op := range slices.Sorted(maps.Keys(found)) {
		body := found[op]
		if op != first[0] && op != first[1] && op != last {
			send(op, body)
		}
	}
	send(last, found[last])
}
