package gate

import (
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
		{command.File{Path: "x.env"}, ""}, // an exact name is the policy's own
	} {
		got, _ := newCatch(globs).finds(c.file)
		want := strings.TrimSuffix(c.want, "/**")
		if got != want {
			t.Errorf("%+v: caught by %q, want %q", c.file, got, want)
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
		if _, ok := c.finds(command.File{Path: name, Pattern: true}); ok {
			caught++
		}
	}
	if took := wall.Processor() - began; caught < 990 || took > 2*time.Second {
		t.Errorf("%d of 1000 are caught after %v of processor time; what exceeds the bound counts as caught, at once", caught, took)
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
