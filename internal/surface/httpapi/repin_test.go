package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/space"
)

// TestAStricterPolicyHoldsFromTheNextOperationOn pins another policy to a living space: who may not changes nothing, a run that waits for
// a person is in the way, and from then on operations are judged under the new one, and what it withholds is out of the view of code.
func TestAStricterPolicyHoldsFromTheNextOperationOn(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	made := d.must(t, "POST", "/v1/spaces", `{"policy":"permissive"}`, "id")
	path := "/v1/spaces/" + made
	shell := func(command string) string {
		t.Helper()
		_, raw := d.ask(t, "", "POST", path+"/runs",
			fmt.Sprintf(`{"protocolVersion":"1.0","wait_seconds":20,"operations":[{"type":"shell","command":%q}]}`, command))
		return string(raw)
	}
	holds := func(command, want string) {
		t.Helper()
		if got := shell(command); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
	policy := func() string {
		t.Helper()
		return d.must(t, "GET", path+"/policy", ``, "name")
	}
	holds("mkdir -p deep; echo 'TOKEN=hunter2' > .env; echo 'TOKEN=hunter2' > deep/.env; echo plain > notes.txt", `"success":true`)
	holds("cat .env deep/.env", "hunter2")
	holds("dc -e 1; true", `"success":true`) // permissive permits any program

	for who, want := range map[string]string{"viewer": "role_not_permitted", "member": "role_not_permitted", "agent": "role_not_permitted"} {
		if status, raw := d.ask(t, who, "POST", path+"/policy", `{"policy":"standard"}`); status != 403 || code(raw) != want {
			t.Errorf("%s: got %d %s", who, status, raw)
		}
	}
	if got := policy(); got != "permissive" {
		t.Errorf("after the refusals: got %s", got)
	}
	holds("cat .env deep/.env", "hunter2")

	waiting := shell("chmod 600 notes.txt")
	if status, raw := d.ask(t, "", "POST", path+"/policy", `{"policy":"standard"}`); status != 409 || code(raw) != "space_busy" {
		t.Errorf("while a run waits for a person: got %d %s", status, raw)
	}
	_, rest, _ := strings.Cut(waiting, `"runId":"`)
	run, _, _ := strings.Cut(rest, `"`)
	d.must(t, "POST", "/v1/runs/"+run+"/cancel", `{}`, "")

	d.must(t, "POST", path+"/policy", `{"policy":"standard"}`, "id")
	if got := policy(); got != "standard" {
		t.Errorf("got %s, want standard", got)
	}
	for _, gone := range []string{"cat .env", "cat deep/.env", "grep -r hunter2 .", `python3 -c 'print(open(".env").read())'`} {
		if got := shell(gone); strings.Contains(got, "hunter2\\n") || strings.Contains(got, "TOKEN=") {
			t.Errorf("%s: got %s", gone, got)
		}
	}
	holds("cat notes.txt", "plain")
	holds("dc -e 1; true", "no_policy_allows")
	if status, raw := d.ask(t, "", "GET", path+"/files/deep/.env", ``); status != 200 || !strings.Contains(string(raw), "hunter2") {
		t.Errorf("a person reads what was moved: got %d %s", status, raw)
	}

	// Back again: files that were moved stay withheld, and code may make its own.
	d.must(t, "POST", path+"/policy", `{"policy":"permissive"}`, "id")
	if got := shell("cat .env"); strings.Contains(got, "hunter2") {
		t.Errorf("under the wider policy: got %s", got)
	}
	holds("echo own > .env; cat .env", "own")

	events := d.recorded(t, space.EventPolicy)
	if len(events) != 2 {
		t.Fatalf("got %d events, want 2", len(events))
	}
	to, err := event.Decode[space.PolicyChanged](events[0])
	if err != nil {
		t.Fatal(err)
	}
	back, err := event.Decode[space.PolicyChanged](events[1])
	if err != nil {
		t.Fatal(err)
	}
	if to.Policy != "standard" || to.Withheld != 2 || back.Policy != "permissive" || back.Was != to.Bundle || back.Bundle != to.Was ||
		events[0].Principal != d.app.Owner {
		t.Errorf("got %+v and %+v", to, back)
	}
}
