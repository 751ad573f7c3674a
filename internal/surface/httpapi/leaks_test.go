package httpapi_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/leak"
	"agentbox/internal/service/audit"
)

// TestNoSecretIsRecorded sends a secret in every part of a record: it is nowhere in what the daemon keeps, and the log proves itself.
func TestNoSecretIsRecorded(t *testing.T) {
	d := startDaemon(t)
	secret := "ghp" + "_" + strings.Repeat("aB3dE6gH9k", 3)
	body := `{"title":"mail with ` + secret + `","category":"` + secret[:20] + `","details":{"` + secret + `":[{"file":"in/` + secret +
		`.txt"},"` + secret[:15] + `","` + secret[15:] + `"]}}`
	made := d.must(t, "POST", "/v1/incidents", body, "incident_id")
	path := "/v1/incidents/" + made
	d.must(t, "POST", path+"/rca", `{"analysis":"it was bEARER `+secret+`x"}`, "incident_id")
	d.must(t, "POST", path+"/learning", `{"note":"never send `+secret[:9]+`\u200b`+secret[9:]+`","tags":["`+secret+`"]}`, "incident_id")
	for _, field := range []string{"idempotency_key", "entity_id"} {
		status, raw := d.ask(t, "", "POST", "/v1/incidents", `{"title":"a","`+field+`":"`+secret+`"}`)
		if want := map[string]int{"idempotency_key": 400, "entity_id": 201}[field]; status != want || status == 400 &&
			code(raw) != "secret_in_header" {
			t.Errorf("%s: %d %s", field, status, raw)
		}
	}
	for _, request := range []string{
		`{"action":"email.send","request":{"body":"` + secret + `"}}`, `{"action":"email.send","target":"x:` + secret + `@example.com"}`,
		`{"action":"email.send","request":{"` + secret + `":1}}`,
	} {
		for _, path := range []string{"/v1/approvals", "/v1/policy/evaluate"} {
			if status, raw := d.ask(t, "", "POST", path, request); status != 400 || code(raw) != "request_holds_secret" ||
				strings.Contains(string(raw), secret) {
				t.Errorf("%s %s: %d %s", path, request, status, raw)
			}
		}
	}
	d.must(t, "POST", "/v1/approvals", `{"action":"email.send","title":"with `+secret+`","context":{"k":"`+secret+`"}}`, "approval_id")
	leaked := map[string]int{}
	for _, e := range d.recorded(t) {
		if strings.Contains(string(e.Data), secret) || strings.Contains(e.EntityID+e.IdempotencyKey, secret) {
			t.Errorf("%s holds it: %s", e.Type, e.Data)
		}
		if e.Type == leak.EventDetected {
			said, err := event.Decode[leak.Detected](e)
			if err != nil || said.Event != e.Causation || len(said.Matches) == 0 || e.Actor.ID != "dlp" {
				t.Errorf("%+v says %+v, %v", e.Header, said, err)
			}
			leaked[said.Type]++
		} else if e.ContainsSecrets != (e.Redaction == event.RedactPartial) {
			t.Errorf("%s says contains_secrets %t at level %s", e.Type, e.ContainsSecrets, e.Redaction)
		}
	}
	if leaked[incident.EventOpened] != 2 || leaked[incident.EventRCA] != 1 || leaked[incident.EventLearned] != 1 {
		t.Errorf("told are %v", leaked)
	}
	for _, path := range []string{path, "/v1/incidents", "/v1/approvals"} {
		if _, raw := d.ask(t, "", "GET", path, ""); strings.Contains(string(raw), secret[:20]) && !strings.Contains(string(raw), `"category":"`+
			secret[:20]) || strings.Contains(string(raw), secret) {
			t.Errorf("%s tells it: %s", path, raw)
		}
	}
	report, err := audit.Verify(t.Context(), d.app.Log, "ws_dev")
	if err != nil || !report.OK {
		t.Errorf("the log does not prove itself: %+v, %v", report, err)
	}
}
