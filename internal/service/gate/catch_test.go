package gate

import (
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentbox/internal/command"
	"agentbox/internal/testkit/wall"
)

// TestCatch holds which patterns may stand for files that a policy refuses.
func TestCatch(t *testing.T) {
	globs := []string{"*.env", "*.key", "*.pem", ".git/**", "secret/**"}
	for _, c := range []struct {
		file command.File
		want string // the glob, "" for none
	}{
		{command.File{Path: "x.en?", Pattern: true}, "*.env"},
		{command.File{Path: "x.e*", Pattern: true}, "*.env"},
		{command.File{Path: "x.*", Pattern: true}, "*.env"},
		{command.File{Path: "x.en[a-z]", Pattern: true}, "*.env"},
		{command.File{Path: "a*", Pattern: true}, "*.env"},
		{command.File{Path: "X.EN?", Pattern: true}, ""},
		{command.File{Path: "X.EN?", Pattern: true, Fold: true}, "*.env"},
		{command.File{Path: "*.txt", Pattern: true}, ""},
		{command.File{Path: "src/*.go", Pattern: true}, ""},
		{command.File{Path: "*", Pattern: true}, ""},
		{command.File{Path: "src/*", Pattern: true}, ""},
		{command.File{Path: "*/*", Pattern: true}, ""},
		{command.File{Path: "src/*/main.go", Pattern: true}, ""},
		{command.File{Path: ".gi?/config", Pattern: true}, ".git/**"},
		{command.File{Path: ".g*/config", Pattern: true}, "*.env"},
		{command.File{Path: "?git/conf.txt", Pattern: true}, ""}, // a wildcard of the shell stands for no dot at the beginning
		{command.File{Path: "?git/conf.txt", Pattern: true, Dots: true}, ".git/**"},
		{command.File{Path: "secre?/a.txt", Pattern: true}, "secret/**"},
		{command.File{Path: "sec*/a.txt", Pattern: true}, "*.env"},
		{command.File{Path: "a/b/se*t/a.txt", Pattern: true}, "secret/**"},
		{command.File{Path: "sec*a.txt", Pattern: true}, ""}, // its star stands for no slash
		{command.File{Path: "sec*a.txt", Pattern: true, Joined: true}, "*.env"},
		{command.File{Path: "a.environment"}, ""},
		{command.File{Path: "a.environment", Part: true}, "*.env"},
		{command.File{Path: "X.ENV", Fold: true}, "*.env"},
		{command.File{Path: "x.env"}, ""},                                              // an exact name is the policy's own
		{command.File{Path: ".en?", Pattern: true}, "*.env"},                           // the star of the policy may stand for nothing
		{command.File{Path: "a.env?", Pattern: true}, ""},                              // which has more behind the end
		{command.File{Path: "?git/conf.txt", Pattern: true, Joined: true}, ".git/**"},  // what is put together may have a dot
		{command.File{Path: "x.en?", Fold: true}, ""},                                  // no pattern: its question mark is one
		{command.File{Path: "a.text", Part: true}, ""},                                 // no part of it is such a name
		{command.File{Path: "a/.git", Fold: true}, ".git/**"},                          // the folder itself
		{command.File{Path: "x.[!a-z", Pattern: true}, ""},                             // a bracket that nothing closes is one
		{command.File{Path: "x.[]env", Pattern: true}, ""},                             // and so is one that is closed at once
		{command.File{Path: "secret[/]a.txt", Pattern: true}, ""},                      // brackets stand for no slash
		{command.File{Path: "src/?git/a.txt", Pattern: true}, ""},                      // nor for a dot behind one
		{command.File{Path: "src/x?git/a.txt", Pattern: true}, ""},                     // which is another name
		{command.File{Path: "src/[.]git/a.txt", Pattern: true, Dots: true}, ".git/**"}, // unless it stands for dots
		{command.File{Path: "secret?a.txt", Pattern: true, Joined: true}, "secret/**"}, // a slash, where the parts may bring one
		{command.File{Path: "secret/?", Pattern: true}, "secret/**"},                   // everything below the folder
		{command.File{Path: "a/secret/b/?", Pattern: true}, "secret/**"},               // wherever the folder is
		{command.File{Path: "notsecret/?", Pattern: true}, ""},                         // a folder whose name ends the same
		{command.File{Path: "secretary/?", Pattern: true}, ""},                         // or begins the same
	} {
		got, caught := newCatch(globs).finds(c.file)
		want := strings.TrimSuffix(c.want, "/**")
		if got != want || caught != (want != "") {
			t.Errorf("%+v: caught %t by %q, want %q", c.file, caught, got, want)
		}
	}
}

// TestCatchReadsTheGlobsOfAPolicy holds what a glob of the policy means beside a pattern: stars fit slashes, and what refuses everything
// catches nothing, for it refuses a pattern as well.
func TestCatchReadsTheGlobsOfAPolicy(t *testing.T) {
	for _, c := range []struct {
		glob string
		file command.File
		want string
	}{
		{"a/**/b", command.File{Path: "a/x/y/?", Pattern: true}, "a/*/b"},
		{"a/***/b", command.File{Path: "a/x/y/?", Pattern: true}, "a/*/b"},
		{"a/**/b", command.File{Path: "c/x/?", Pattern: true}, ""},
		{"**/b", command.File{Path: "a/?", Pattern: true}, "b"},
		{"b/", command.File{Path: "?", Pattern: true}, "b"},
		{"/etc/shadow", command.File{Path: "/etc/shado?", Pattern: true}, "/etc/shadow"},
		{"/etc/shadow", command.File{Path: "etc/shado?", Pattern: true}, ""},
		{"*", command.File{Path: "a?", Pattern: true}, ""},
		{"**", command.File{Path: "a?", Pattern: true}, ""},
		{"**/", command.File{Path: "a?", Pattern: true}, ""},
		{"x/*/y", command.File{Path: "pre-x/*/y-more", Part: true}, "x/*/y"}, // a star of a name that is no pattern is one
		{"id_*", command.File{Path: "*", Pattern: true}, ""},                 // a star alone names nothing in particular
		{"*", command.File{Path: "*", Pattern: true}, ""},
		{"keys/*", command.File{Path: "keys/*", Pattern: true}, "keys/*"},
		{"keys/a", command.File{Path: "keys/*", Pattern: true}, ""},
		{"keys/a", command.File{Path: "keys/**", Pattern: true}, ""},
		{"keys/a", command.File{Path: "keys/?*", Pattern: true}, "keys/a"},
	} {
		got, caught := newCatch([]string{c.glob}).finds(c.file)
		if got != c.want || caught != (c.want != "") {
			t.Errorf("%s beside %+v: caught %t by %q, want %q", c.glob, c.file, caught, got, c.want)
		}
	}
}

// TestCatchIsBounded holds that many long patterns against many long globs end at the bound, as caught.
func TestCatchIsBounded(t *testing.T) {
	c := newCatch([]string{strings.Repeat("a*", 200)})
	began := wall.Processor()
	name := strings.Repeat("b*", 1000)
	caught := 0
	for range 1000 {
		if glob, ok := c.finds(command.File{Path: name, Pattern: true}); ok && glob == c.globs[0] {
			caught++
		}
	}
	if took := wall.Processor() - began; caught < 990 || took > 2*time.Second {
		t.Errorf("%d of 1000 are caught after %v of processor time; what exceeds the bound counts as caught, at once", caught, took)
	}
}

// texts returns every text of at most that many letters.
func texts(letters string, most int) []string {
	all := []string{""}
	for from, n := 0, 0; n < most; n++ {
		to := len(all)
		for _, text := range all[from:to] {
			for _, letter := range letters {
				all = append(all, text+string(letter))
			}
		}
		from = to
	}
	return all
}

// TestPatternsMeetWhereANameFitsBoth tries all short patterns beside all short globs: they meet if and only if some short name fits both.
// Whether a name fits is asked here letter by letter, in the plainest way.
func TestPatternsMeetWhereANameFitsBoth(t *testing.T) {
	var fits func(pattern string, at int, name string, deep, dots bool) bool
	fits = func(pattern string, at int, name string, deep, dots bool) bool {
		if at == len(pattern) {
			return name == ""
		}
		wild := func(c byte, first bool) bool {
			return (deep || c != '/') && (dots || !first || c != '.')
		}
		begins := at == 0 || pattern[at-1] == '/'
		switch {
		case pattern[at] == '*':
			for n := 0; ; n++ {
				if fits(pattern, at+1, name[n:], deep, dots) {
					return true
				}
				if n == len(name) || !wild(name[n], begins && n == 0) {
					return false
				}
			}
		case name == "":
			return false
		case pattern[at] == '?':
			return wild(name[0], begins) && fits(pattern, at+1, name[1:], deep, dots)
		}
		return pattern[at] == name[0] && fits(pattern, at+1, name[1:], deep, dots)
	}
	names := texts("a./", 6)
	fitting := func(pattern string, deep, dots bool) *big.Int {
		set := new(big.Int)
		for i, name := range names {
			if fits(pattern, 0, name, deep, dots) {
				set.SetBit(set, i, 1)
			}
		}
		return set
	}
	forms := map[string]*big.Int{}
	for _, form := range texts("a./*", 4) {
		forms[form] = fitting(form, true, true)
	}
	both := new(big.Int)
	for _, pattern := range texts("a./*?", 3) {
		for _, c := range []struct{ deep, dots bool }{{}, {dots: true}, {deep: true}, {deep: true, dots: true}} {
			set := fitting(pattern, c.deep, c.dots)
			for form, others := range forms {
				want := both.And(set, others).Sign() > 0
				m := meeting{name: pattern, form: form, pattern: true, deep: c.deep, dots: c.dots}
				if m.meets() != want {
					t.Fatalf("%q beside %q, %+v: got %t", pattern, form, c, !want)
				}
			}
		}
	}
}

// FuzzCatch compares with names: where a name fits both patterns, they meet.
func FuzzCatch(f *testing.F) {
	f.Add("x.e*", "*.env", "x.env")
	f.Add("a?c", "a*", "abc")
	f.Add("*b*d", "*bcd", "abcd")
	f.Fuzz(func(t *testing.T, pattern, form, name string) {
		if len(pattern)+len(form)+len(name) > 60 || strings.ContainsAny(pattern+form+name, "[]\x00\x01/.\n") || strings.Contains(form, "?") {
			return
		}
		glob := func(s string) *regexp.Regexp {
			return regexp.MustCompile(`^(?s)` + strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(s)) + `$`)
		}
		for _, r := range pattern + form + name {
			if r > 127 {
				return
			}
		}
		if glob(pattern).MatchString(name) && glob(form).MatchString(name) && !(meeting{name: pattern, form: form, pattern: true}).meets() {
			t.Errorf("%q fits %q and %q, and they do not meet", name, pattern, form)
		}
	})
}
