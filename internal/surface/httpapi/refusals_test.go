package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// TestARefusalWithoutCanonicalBytesIsRecorded names what is not UTF-8 text. Such an action has no canonical bytes, and no digest. The
// answer says so, and the refusal is recorded like any other one, as an event about nothing.
func TestARefusalWithoutCanonicalBytesIsRecorded(t *testing.T) {
	d := startDaemon(t)
	for _, c := range []struct{ method, path, action string }{
		{"DELETE", "/v1/nodes/a%ff", policy.NodeRemove},
		{"POST", "/v1/workspaces/a%ff/archive", policy.WorkspaceArchive},
		{"POST", "/v1/workspaces/a%ff/unarchive", policy.WorkspaceUnarchive},
	} {
		before := len(d.recorded(t, policy.DeniedType))
		status, raw := d.ask(t, "", c.method, c.path, "{}")
		if status != http.StatusForbidden || code(raw) != policy.ErrNotText.Code || !strings.Contains(string(raw), policy.ErrNotText.Msg) {
			t.Errorf("%s %s: got %d %s, want %d %s", c.method, c.path, status, raw, http.StatusForbidden, policy.ErrNotText.Code)
		}
		after := d.recorded(t, policy.DeniedType)
		if len(after) != before+1 {
			t.Errorf("%s %s: recorded %d refusals, want 1", c.method, c.path, len(after)-before)
			continue
		}
		e := after[before]
		said, err := event.Decode[policy.Refused](e)
		if err != nil || said.Action != c.action || said.Decision.Outcome != policy.Deny || said.Decision.ReasonCode != policy.ErrNotText.Code ||
			!said.Decision.Action.IsZero() {
			t.Errorf("%s %s: recorded %+v, %v", c.method, c.path, said, err)
		}
		if e.EntityType != "" || e.EntityID != "" || e.Principal != d.app.Owner {
			t.Errorf("%s %s: recorded about %s %q by %s", c.method, c.path, e.EntityType, e.EntityID, e.Principal)
		}
	}
}

// TestANumberThatIsNotExactIsNamed: the refusal of an integer that canonical JSON cannot keep apart from its neighbours names the integer.
// Nothing is recorded of a request that is not well formed.
func TestANumberThatIsNotExactIsNamed(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	head := len(d.recorded(t))
	const number = "9007199254740993"
	for path, body := range map[string]string{
		"/v1/policy/evaluate": `{"action":"payment.execute","target":"DE00","request":{"cents":%s}}`,
		"/v1/approvals":       `{"action":"payment.execute","target":"DE00","request":{"list":[{"cents":%s}]}}`,
	} {
		status, raw := d.ask(t, "agent", "POST", path, fmt.Sprintf(body, number))
		if status != http.StatusBadRequest || code(raw) != policy.ErrInexact.Code ||
			!strings.Contains(string(raw), "the number "+number+" lies beyond ±(2^53-1); send it as a string") {
			t.Errorf("%s: %d %s", path, status, raw)
		}
		long := strings.Repeat("9", 300)
		if status, raw := d.ask(t, "agent", "POST", path, fmt.Sprintf(body, long)); status != http.StatusBadRequest ||
			code(raw) != policy.ErrInexact.Code || strings.Contains(string(raw), long[:200]) {
			t.Errorf("%s with %d digits: %d %.300s", path, len(long), status, raw)
		}
	}
	if now := len(d.recorded(t)); now != head {
		t.Errorf("requests that are not well formed left %d events", now-head)
	}
}
