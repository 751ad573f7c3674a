package httpapi_test

import (
	"net/http"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

// TestNobodyRevokesTheKeysOfThoseAboveHim lets an admin revoke keys of the owner, of another admin and of an agent.
func TestNobodyRevokesTheKeysOfThoseAboveHim(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	owner, ws := event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace
	key := func(p id.Principal) (string, string) {
		t.Helper()
		secret, doc, err := d.app.Identity.IssueKey(t.Context(), owner, ws, p, "spare")
		if err != nil {
			t.Fatal(err)
		}
		return secret, string(doc.ID)
	}
	person := func(name string) id.Principal {
		t.Helper()
		p, err := d.app.Identity.AddPerson(t.Context(), owner, ws, name, principal.Admin)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	agent, err := d.app.Identity.Agent(t.Context(), owner, ws, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	d.keys["admin"], _ = key(person("ada"))
	_, owners := key(d.app.Owner)
	_, equals := key(person("bob"))
	_, agents := key(agent)
	if status, raw := d.ask(t, "admin", "DELETE", "/v1/keys/"+owners, ""); status != http.StatusForbidden ||
		code(raw) != policy.ReasonRoleTooLow {
		t.Errorf("an admin revoked the owner's key: %d %s", status, raw)
	}
	for _, k := range []string{equals, agents} {
		if status, raw := d.ask(t, "admin", "DELETE", "/v1/keys/"+k, ""); status != http.StatusNoContent {
			t.Errorf("%d %s", status, raw)
		}
	}
	if status, raw := d.ask(t, "", "DELETE", "/v1/keys/"+owners, ""); status != http.StatusNoContent {
		t.Errorf("%d %s", status, raw)
	}
}
