package policy_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/policy"
)

func TestWithholdMatches(t *testing.T) {
	w := policy.Withhold{
		Paths:  []string{"*.env", ".env.*", "*.key", "id_rsa", ".aws/credentials", ".ssh/**"},
		Except: []string{"*.env.example", "cacert.key", "**/site-packages/**", "node_modules/**"},
	}
	for path, want := range map[string]bool{
		".env": true, "a/b/.env": true, "prod.env": true, ".ENV": true, "a/Prod.Key": true, ".env.local": true, "id_rsa": true, "home/ID_RSA": true, "x.key/inner/deep.txt": true,
		".aws/credentials": true, "a/.aws/credentials": true, ".ssh/known_hosts": true, ".env/site-packages.txt": true, "\u212aEYS.\u212aey": true, "\xff.env": true,
		".env.example": false, "a/.env.Example": false, "cacert.key": false, "env": false, "environment": false, "id_rsa.pub": false, "aws/credentials": false, "key": false, "a.key.txt": false,
		"lib/site-packages/x/test.key": false, "node_modules/.env": false, ".": false,
		".env.example/secret.env": true, "cacert.key/real.key": true, // an exception for a file is none for a folder of that name
	} {
		if rule, held := w.Match(path); held != want || held && rule == "" {
			t.Errorf("%q: got %t by %q, want %t", path, held, rule, want)
		}
	}
	if _, held := (policy.Withhold{Except: []string{"x"}}).Match("x"); held {
		t.Error("what names no path withholds one")
	}
	if _, held := (policy.Withhold{Paths: []string{"*"}, Except: []string{"a/**"}}).Match("b/c"); !held {
		t.Error("a star does not match everything")
	}
	// Stars do not make the time grow without bound.
	if _, held := (policy.Withhold{Paths: []string{strings.Repeat("*a", 250) + "b"}}).Match(strings.Repeat("a", 4000)); held {
		t.Error("it matches what it does not")
	}
}

func TestPathRulesSayHowStrongTheyAre(t *testing.T) {
	l := policy.Limits{Withhold: &policy.Withhold{Paths: []string{"*.env"}, Except: []string{"x.env"}}, Blocked: []string{".git/**"}}
	var got []string
	for _, r := range l.PathRules() {
		got = append(got, r.Pattern+" "+r.Strength)
	}
	if text := strings.Join(got, ", "); text != "*.env wall, x.env wall, .git/** guard" {
		t.Errorf("got %s", text)
	}
}
