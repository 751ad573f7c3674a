package httpapi_test

import (
	"io"
	"net/http"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/token"
)

// TestAStreamEndsWithTheAuthorityOfWhoHandedItsTokenOn quarantines the agent from which the token came under which another follows the log.
func TestAStreamEndsWithTheAuthorityOfWhoHandedItsTokenOn(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	owner := event.Origin{Principal: d.app.Owner}
	first, err := d.app.Identity.Agent(t.Context(), owner, id.DefaultWorkspace, "first")
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.app.Identity.Agent(t.Context(), owner, id.DefaultWorkspace, "second")
	if err != nil {
		t.Fatal(err)
	}
	root := d.granted(t, "first", first, token.All(), "", d.app.Owner)
	made, err := d.app.Identity.Grant(t.Context(), event.Origin{Principal: first}, id.DefaultWorkspace, token.Grant{IssuedTo: second,
		Scopes: token.All(), Parent: root})
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := d.app.Identity.IssueKey(t.Context(), owner, id.DefaultWorkspace, second, "second")
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.address+"/v1/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("X-Capability-Token", string(made.ID))
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatal(stream.Status)
	}
	d.must(t, "POST", "/v1/agents/"+string(first)+"/quarantine", `{}`, "agent_id")
	if _, err := io.Copy(io.Discard, stream.Body); err != nil { // it ends; the test would not
		t.Error(err)
	}
}
