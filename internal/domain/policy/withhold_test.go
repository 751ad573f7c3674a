package policy_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentbox/internal/domain/policy"
	"agentbox/internal/testkit/wall"
)

func TestWithholdMatches(t *testing.T) {
	w := policy.Withhold{
		Paths:  []string{"*.env", ".env.*", "*.key", "id_rsa", ".aws/credentials", ".ssh/**"},
		Except: []string{"*.env.example", "cacert.key", "**/site-packages/**", "node_modules/**"},
	}
	for path, want := range map[string]bool{
		".env": true, "a/b/.env": true, "prod.env": true, ".ENV": true, "a/Prod.Key": true, ".env.local": true, "id_rsa": true,
		"home/ID_RSA": true, "x.key/inner/deep.txt": true,
		".aws/credentials": true, "a/.aws/credentials": true, ".ssh/known_hosts": true, ".env/site-packages.txt": true,
		"\u212aEYS.\u212aey": true, "\xff.env": true,
		".env.example": false, "a/.env.Example": false, "cacert.key": false, "env": false, "environment": false, "id_rsa.pub": false,
		"aws/credentials": false, "key": false, "a.key.txt": false,
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

// File systems and keyboards compose letters with marks differently, and case goes beyond ASCII: the rule and the path are compared as
// people read them.
func TestWithholdMatchesLettersOfAnyForm(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"\u00e9.env", "e\u0301.env", true}, {"e\u0301.env", "\u00e9.env", true}, // composed, decomposed
		{"caf\u00e9*.env", "a/CAFE\u0301 two.ENV", true}, {"*.cl\u00e9", "x.CLE\u0301", true}, {"*.cle\u0301", "x.CL\u00c9/inner", true},
		{"\u1e69", "s\u0307\u0323", true}, {"\u1e69", "s\u0323\u0307", true}, // two marks in either order
		{"\ud55c\uae00.env", "\u1112\u1161\u11ab\u1100\u1173\u11af.env", true}, // Hangul and its letters
		{"\u00c5.key", "\u212b.key", true}, {"\u03a9.key", "\u2126.key", true}, // the signs of angstrom and ohm
		{"\u03c3.env", "\u03a3.env", true}, {"\u03c3.env", "\u03c2.env", true}, // sigma has three forms
		{"stra\u00dfe.env", "STRA\u1e9eE.env", true}, {"\u0434\u0430\u043d\u043d\u044b\u0435.env", "\u0414\u0410\u041d\u041d\u042b\u0415.ENV",
			true},
		{"\u1e9b.env", "\u1e61.env", true}, {"\U00010428.env", "\U00010400.env", true},
		{"\u00e9.env", "e.env", false}, {"e.env", "e\u0301.env", false}, {"stra\u00dfe.env", "strasse.env", false}, {"\u00e9\xff.env",
			"e\u0301\xff.env", true},
	} {
		if _, held := (policy.Withhold{Paths: []string{c.pattern}}).Match(c.path); held != c.want {
			t.Errorf("%+q holds %+q: %t, want %t", c.pattern, c.path, held, c.want)
		}
		if _, held := (policy.Withhold{Paths: []string{"*"}, Except: []string{c.pattern + "/**"}}).Match(c.path); held == c.want {
			t.Errorf("%+q excepts %+q: %t, want %t", c.pattern, c.path, !held, c.want)
		}
	}
}

// A path of code's making is as deep as code likes, and takes no longer for it than its length.
func TestWithholdMatchesDeepPathsInTime(t *testing.T) {
	w := policy.Withhold{Paths: []string{"*.env", "*a*a*a*a*b", "x/*/y"}, Except: []string{"*a*a*a*a*c/**"}}
	start := wall.Processor()
	if _, held := w.Match(strings.Repeat("a/", 20_000) + "a"); held {
		t.Error("it matches what it does not")
	}
	if took := wall.Processor() - start; took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if _, held := w.Match(strings.Repeat("a/", 20_000) + ".env"); !held {
		t.Error("it does not match at the end of a deep path")
	}
}

// A pattern matches as it reads: consecutive names of the path fit the pattern, and without 'below' up to the end of the path.
func TestWithholdMatchesAsItReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := []string{"a", "b", ".", "*", "/"}
		text := func(of []string, what string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(of), 1, 8).Draw(t, what), "")
		}
		pattern := strings.Trim(text(alphabet, "pattern"), "/")
		path := strings.Trim(path.Clean("/"+text([]string{"a", "b", ".", "/"}, "path")), "/")
		if strings.Trim(pattern, "*") == "" || strings.HasPrefix(pattern, "**/") || strings.HasSuffix(pattern, "/**") || path == "" {
			t.Skip()
		}
		plain := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
		names, below, whole := strings.Split(path, "/"), false, false
		for from := range names {
			for to := from + 1; to <= len(names); to++ {
				fits := plain.MatchString(strings.Join(names[from:to], "/"))
				below, whole = below || fits, whole || fits && to == len(names)
			}
		}
		if _, held := (policy.Withhold{Paths: []string{pattern}}).Match(path); held != below {
			t.Errorf("%q holds %q: %t, want %t", pattern, path, held, below)
		}
		if _, held := (policy.Withhold{Paths: []string{"*"}, Except: []string{pattern}}).Match(path); held == whole {
			t.Errorf("%q excepts %q: %t, want %t", pattern, path, !held, whole)
		}
	})
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
