package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

// hostile are targets in which a program could read good.example, or its place, and another one goes elsewhere, or drops a character.
var hostile = []string{
	`https://good.example:8443\@evil.example`, `https://good.example:8443\@evil.example/x`, `https://good.example:8443/\@evil.example/`,
	`https://good.example:8443\.evil.example/`, `https:\\good.example:8443\`, `https:\good.example`, `good.example\@evil.example`,
	`\\good.example\x`, "https://good.example:8443@evil.example/", "https://user:pass@good.example:8443/", "https://@good.example:8443/",
	"https://a@good.example:8443@evil.example/", "good.example:8443@evil.example/", "https://good.example:8443%40evil.example/",
	"https://good.example:8443\t.evil.example/", "https://good.example:8443/\tx", "ht\ttps://good.example:8443/",
	"https://good.example:8443\r\nHost: evil.example", "https://good.example:8443/\n@evil.example", " https://good.example:8443/",
	"https://good.example:8443 .evil.example/", "https://good.example:8443/a b", "https://good.example:8443/\u00a0",
	"https://good.example:8443/\x7f",
	"https://g\u043e\u043ed.example:8443/", "https://good\u3002example:8443/", "https://good.example\uff0f:8443/",
	"https://good.example\u200b:8443/",
	"https://\uff47ood.example:8443/", "https://xn--gd-fmca.example:8443/", "https://good%2eexample:8443/", "https://%67ood.example:8443/",
	"https://good.example%00.evil.example:8443/", "https://good.example..:8443/", "https://good..example:8443/", "https://.good.example:8443/",
	"https://good.example.evil.example:8443/", "https://[fe80::1%25good.example]:8443/", "https://[::ffff:127.0.0.1]:8443/",
	"https://2130706433:8443/", "https://0x7f.1:8443/", "https:/good.example:8443/", "https:good.example:8443", "://good.example:8443/",
	"//good.example:8443/", "https:////good.example:8443/", "https://good.example:8443:443/", "https://good.example:+8443/",
	"https://good.example:8443,evil.example/", "https://evil.example?@good.example:8443", "https://evil.example#@good.example:8443",
}

// TestNothingCoversATargetThatTwoProgramsReadDifferently asks for hostile targets under a token for one host, and beside a standing
// approval of one place.
func TestNothingCoversATargetThatTwoProgramsReadDifferently(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	agent, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	near := token.All()
	near.Domains = []string{"good.example"}
	narrow := d.granted(t, "narrow", agent, near, "", d.app.Owner)
	bound := func(target string) string {
		return fmt.Sprintf(`{"action":"api.call.idempotent","method":"GET","target":%s,"capability_token_id":%q}`, quoted(target), narrow)
	}
	stands := func(target string) string {
		return `{"action":"api.call.mutating","zone":"high_stakes","method":"POST","target":` + quoted(target) + `,"request":{"path":"/a"}}`
	}
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	d.decide(t, d.request(t, "agent", stands("https://good.example:8443/a")),
		`{"decision":"approve","scope":"workspace","uses":99,"expires_at":"`+ends+`"}`)
	for _, target := range []string{"https://good.example:8443/a?x=@y", "HTTPS://Good.Example.:8443#z"} {
		if got := d.evaluate(t, "narrow", bound(target)); got.Decision != "allow" {
			t.Errorf("%q, the host of the token: got %+v", target, got)
		}
		if got := d.evaluate(t, "agent", stands(target)); got.Decision != "allow" || got.Code != policy.ReasonApprovalAllows {
			t.Errorf("%q, the place that was approved: got %+v", target, got)
		}
	}
	for _, target := range hostile {
		if got := d.evaluate(t, "narrow", bound(target)); got.Decision == "allow" || got.Code != policy.ReasonScopeDomain && got.Error == "" {
			t.Errorf("%q under the token: got %+v", target, got)
		}
		if got := d.evaluate(t, "agent", stands(target)); got.Decision != "require_approval" && got.Error == "" {
			t.Errorf("%q beside the standing approval: got %+v", target, got)
		}
	}
}

// quoted writes a text as JSON.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // a text is always written
	return string(raw)
}
