package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
)

// TestASpacesOwnDomainsAreWarnedAboutAndJudged makes spaces with domains of their own and pins such policies: the answer says that they
// open no network, and they judge the host of what is done outside.
func TestASpacesOwnDomainsAreWarnedAboutAndJudged(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	const bad, ok = `"deny":{"domains":["bad.example"]}`, `"allow":{"domains":["*.ok.example"],"actions":["deploy.nothing"]}`
	warned := func(path, body string, want ...string) space.Space {
		t.Helper()
		status, raw := d.ask(t, "", "POST", path, body)
		var s space.Space
		if err := json.Unmarshal(raw, &s); err != nil || status/100 != 2 {
			t.Fatalf("%s: %d %s", body, status, raw)
		}
		if len(s.Warnings) != len(want) {
			t.Errorf("%s: got the warnings %q, want %q", body, s.Warnings, want)
			return s
		}
		for i, text := range want {
			if !strings.Contains(s.Warnings[i], text) {
				t.Errorf("%s: got the warning %q, want %q", body, s.Warnings[i], text)
			}
		}
		return s
	}
	warned("/v1/spaces", `{"policy":"permissive"}`)
	warned("/v1/spaces", `{"policy_overrides":{`+bad+`}}`)
	made := warned("/v1/spaces", `{"policy_overrides":{`+ok+`},"env":{"BASH_ENV":"f"}}`, "BASH_ENV", "domains.allowed opens no network",
		"deploy.nothing")
	// Who writes outside always asks a person; what policy does not permit is refused instead.
	outside := func(want string, targets ...string) {
		t.Helper()
		for _, target := range targets {
			got := d.evaluate(t, "member", `{"action":"external.write","space_id":"`+string(made.ID)+`","target":`+quoted(target)+`}`)
			if got.Decision != want {
				t.Errorf("%q: got %+v, want %s", target, got, want)
			}
		}
	}
	outside("require_approval", "https://A.ok.example:8443/x?y", "ok.example.")
	outside("deny", "https://evil.example/x.ok.example", "evil.example#.ok.example", `https://a.ok.example\@evil.example`)

	path := "/v1/spaces/" + string(made.ID) + "/policy"
	warned(path, `{"policy":"standard"}`)
	warned(path, `{"policy":"standard","policy_overrides":{"ask":{"domains":["*"]}}}`, "domains.ask opens no network")
	again := func() (string, string) {
		status, replayed, body := d.keyed(t, "POST", path, "application/json", "pin",
			`{"policy":"standard","policy_overrides":{"ask":{"domains":["*"]}}}`)
		if status/100 != 2 || !strings.Contains(body, "domains.ask opens no network") {
			t.Errorf("with a key: %d %s", status, body)
		}
		return replayed, body
	}
	_, first := again()
	if replayed, second := again(); replayed == "" || second != first {
		t.Errorf("the same request again, replayed %q: got %s, want %s", replayed, second, first)
	}
	warned(path, `{"yaml":"allow: {actions: [external.write]}\ndeny: {domains: [bad.example]}"}`)
	outside("require_approval", "good.example", "https://good.example/bad.example")
	outside("deny", "bad.example", "https://BAD.example.:443/x", "ada@bad.example", `https://good.example\@bad.example`)
}
