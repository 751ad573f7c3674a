package rules_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/service/gate/rules"
)

// TestDomainsAreAboutTheHostOfTheTarget holds that lists of domains judge the host that a target has, however it is written, and nothing
// else in it. A target without a readable host is of every refused domain and of every one that is asked about, and of no permitted one.
func TestDomainsAreAboutTheHostOfTheTarget(t *testing.T) {
	const permits, asks, refuses = "allow: {actions: [external.write]}\nask: ", "ask: ", "allow: {actions: [external.write]}\ndeny: "
	in, out := policy.Allow, policy.Deny
	for _, c := range []struct {
		text    string
		answer  policy.Outcome // about what is of the domains
		other   policy.Outcome // about what is not
		unread  policy.Outcome // about what has no readable host
		of, not []string
	}{
		{refuses + "{domains: [bad.example.com]}", out, in, out,
			[]string{"bad.example.com", "https://bad.example.com/", "BAD.example.com", "bad.example.com:443", "bad.example.com/x",
				"bad.example.com.", "HTTPS://Bad.Example.Com.:8443/x?y#z", "ada@bad.example.com", "bad.example.com?x", "http://bad.example.com#x"},
			[]string{"good.example", "https://good.example/bad.example.com", "https://x.bad.example.com/", "good.example?bad.example.com", ""}},
		{refuses + `{domains: ["*.bad.example"]}`, out, in, out,
			[]string{"bad.example", "https://a.bad.example/x", "A.B.bad.example.:1", "ada@a.bad.example"},
			[]string{"notbad.example", "https://good.example/a.bad.example", "a.bad.example.org"}},
		{refuses + `{domains: ["*"]}`, out, in, out, []string{"a.example", "https://b.example/"}, []string{""}},
		{`allow: {domains: ["*.ok.com", one.example]}`, in, out, out,
			[]string{"ok.com", "https://a.ok.com/x", "A.OK.com", "a.b.ok.com:443", "https://ok.com./", "one.example",
				"https://One.example/x?y=@evil.com"},
			[]string{"https://evil.com/x.ok.com", "evil.com#.ok.com", "evil.com?.ok.com", "notok.com", "https://ok.com.evil.com/",
				"a.one.example", ""}},
		{`allow: {domains: ["*"]}`, in, out, out, []string{"a.example", "https://b.example:1/"}, []string{""}},
		{`allow: {domains: [one.example.]}`, in, out, out, []string{"one.example", "one.example."}, []string{"two.example"}},
		{permits + "{domains: [one.example]}", policy.RequireApproval, in, policy.RequireApproval,
			[]string{"https://ONE.example/", "one.example:1"},
			[]string{"https://two.example/one.example"}},
		{asks + `{domains: ["*"]}`, policy.RequireApproval, out, policy.RequireApproval,
			[]string{"one.example", "https://two.example/"}, []string{""}},
	} {
		b, err := rules.FromYAML([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		judge := func(want policy.Outcome, targets ...string) {
			for _, target := range targets {
				v, err := cedar.New().Evaluate(b, policy.Facts{Principal: "agt_00000000000000000000000001", Workspace: "ws_dev",
					Action: policy.ExternalWrite, Target: target})
				if err != nil || v.Outcome != want {
					t.Errorf("%s, %q: got %s, %v, want %s", c.text, target, v.Outcome, err, want)
				}
			}
		}
		judge(c.answer, c.of...)
		judge(c.other, c.not...)
		judge(c.unread, `https://one.example\@ok.com/`, "https://a.ok.com@bad.example.com/", "https://a.ok.com/\tx", "https://[::1]/", "?",
			"#general", "https://b\u00fccher.ok.com/", "https://bad.example.com%2f.ok.com/", " one.example", "https:/one.example/")
	}
}

// TestWhatIsFetchedIsOfANamedHost holds the two actions that fetch to the lists of domains: no list permits every host, and only an entry
// with a port reaches a private address.
func TestWhatIsFetchedIsOfANamedHost(t *testing.T) {
	in, out, asks := policy.Allow, policy.Deny, policy.RequireApproval
	for _, c := range []struct {
		text, target    string
		public, private policy.Outcome
	}{
		{"allow: {domains: [a.example]}", "https://a.example:443/x", in, out},
		{"allow: {domains: [a.example]}", "https://b.a.example:443/x", out, out},
		{"allow: {domains: [\"*.a.example\"]}", "https://b.a.example:443/x", in, out},
		{"allow: {domains: [\"*\"]}", "https://a.example:443/x", out, out},
		{"allow: {domains: [\"localhost:8080\"]}", "http://localhost:8080/x", in, in},
		{"allow: {domains: [\"localhost:8080\"]}", "https://localhost:8080/", in, in},
		{"allow: {domains: [\"localhost:8080\"]}", "http://localhost:80/", out, out},
		{"allow: {domains: [\"localhost:8080\"]}", "http://localhost:80/?http://localhost:8080/", out, out},
		{"allow: {domains: [\"localhost:8080\"]}", "http://localhost:80801/", out, out},
		{"allow: {domains: [\"localhost:8080\"]}", "http://x@localhost:8080/", out, out},
		{"allow: {domains: [a.example]}\nask: {domains: [a.example]}", "https://a.example:443/x", asks, out},
		{"ask: {domains: [a.example]}", "https://a.example:443/x", asks, out},
		{"allow: {domains: [\"a.example:1\"]}\nask: {domains: [a.example]}", "https://a.example:1/x", asks, asks},
		{"allow: {domains: [\"a.example:1\"]}\nask: {domains: [a.example]}", "https://a.example:2/x", asks, out},
		{"allow: {domains: [\"a.example:1\"]}\ndeny: {domains: [a.example]}", "https://a.example:1/x", out, out},
		{"allow: {domains: [a.example]}\ndeny: {domains: [\"*\"]}", "https://a.example:1/x", out, out},
		{"ask: {domains: [\"*\"]}", "https://a.example:1/x", asks, out},
		{"allow: {domains: [b.example, \"a.example:1\"]}", "https://b.example:443/x", in, out},
	} {
		b, err := rules.FromYAML([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for action, want := range map[string]policy.Outcome{policy.HTTPFetch: c.public, policy.HTTPPrivate: c.private,
			policy.MCPConnect: c.public, policy.MCPConnectPrivate: c.private} {
			v, err := cedar.New().Evaluate(b, policy.Facts{Principal: "agt_00000000000000000000000001", Workspace: "ws_dev", Action: action,
				Target: c.target})
			if err != nil || v.Outcome != want {
				t.Errorf("%s, %s %s: got %s, %v, want %s", c.text, action, c.target, v.Outcome, err, want)
			}
		}
	}
}

// TestAnEntryWithAPortIsAboutFetchingAlone holds that such an entry makes no rule about hosts, and that only lists of domains refuse it.
func TestAnEntryWithAPortIsAboutFetchingAlone(t *testing.T) {
	b, err := rules.FromYAML([]byte(`allow: {domains: ["localhost:8080"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"domains.allowed", `context.host == "localhost:8080"`} {
		if strings.Contains(b.Cedar, wrong) {
			t.Errorf("the policy has %s:\n%s", wrong, b.Cedar)
		}
	}
	for text, refused := range map[string]bool{
		`ask: {domains: ["localhost:8080"]}`: true, `deny: {domains: ["localhost:8080"]}`: true,
		`ask: {paths: ["localhost:8080"]}`: false, `deny: {paths: ["localhost:8080"]}`: false,
	} {
		if _, err := rules.FromYAML([]byte(text)); (err != nil) != refused {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestADomainIsAHost refuses entries that no host of a target could equal.
func TestADomainIsAHost(t *testing.T) {
	for _, entry := range []string{"a.example:443", "::1", "a..example", ".a.example", ".", "*.", "*..a.example", "*.a.example:1", "?",
		"**"} {
		if _, err := rules.FromYAML([]byte(`deny: {domains: ["` + entry + `"]}`)); err == nil ||
			!strings.Contains(err.Error(), "not a domain") {
			t.Errorf("%s: got %v", entry, err)
		}
	}
}
