package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// list reads a list of explained survivors.
func list(t *testing.T, text string) (map[string]string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "explained.txt")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readExplained(name)
}

// TestSurvivors tries the mutants of a package whose tests have gaps: first all of them, then those of one function, with a list that
// explains two of its survivors, one that is killed, and one that is not there.
func TestSurvivors(t *testing.T) {
	nothing, err := list(t, "# nothing\n")
	if err != nil {
		t.Fatal(err)
	}
	some, err := list(t, "purse.go Rich\n\tlen(held) > 0 -> true\n\tlen(held) > 0 -> >=\n\t\tnobody is rich with nothing\n\n\tlen(held) > 0 "+
		"-> false\n\t\tno reason\n"+
		"\tlen(hold) > 0 -> true\n\t\tit was renamed\npurse.go Spend\n\tnothing like it\n\t\tnot looked at\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		explained map[string]string
		only      string
		want      []string
	}{
		{"all", nothing, "", []string{
			`purse.go:24: Worth: "crown" -> no case: survived`, "purse.go:25: Worth: 60 * one() -> the zero value: not reached",
			"purse.go:25: Worth: 60 * one() -> +: not reached",
			"purse.go:38: Rich: len(held) > 0 -> true: never differs", "purse.go:38: Rich: len(held) > 0 -> >=: never differs",
			"purse.go:38: Rich: sum >= 100 -> true: never differs", "purse.go:38: Rich: sum >= 100 -> >: never differs",
			"purse.go:46: Endless: n -> the zero value: never differs",
			".: 21 mutants: 12 killed, 1 timed out, 1 survived, 5 never differ, 2 not reached; 0 explained, 8 open; 0 lines refused;",
		}},
		{"with a list", some, "Rich", []string{
			"purse.go:38: Rich: len(held) > 0 -> false: killed, but the list explains it: take it out",
			"purse.go:38: Rich: sum >= 100 -> true: never differs", "purse.go:38: Rich: sum >= 100 -> >: never differs",
			"purse.go Rich: len(hold) > 0 -> true: the list explains it, but there is no such mutant: take it out",
			".: 6 mutants: 2 killed, 0 timed out, 0 survived, 4 never differ, 0 not reached; 2 explained, 4 open; 0 lines refused;",
		}},
	} {
		var out strings.Builder
		open, err := mutate("testdata/purse", []string{".:purse.go"}, c.explained, regexp.MustCompile(c.only), &out)
		if err != nil || open != len(c.want)-1 {
			t.Errorf("%s: got %d open, %v, want %d", c.name, open, err, len(c.want)-1)
		}
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := len(got) - 1; last >= 0 {
			got[last] = got[last][:strings.LastIndex(got[last], ";")+1] // but for the time
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestWhatIsLetPass holds that only what is beyond the number that is let pass counts.
func TestWhatIsLetPass(t *testing.T) {
	for _, c := range []struct {
		pass string
		want int
		says string
	}{{".=2", 0, ""}, {".=1", 1, ".: 2 are open, and 1 are let pass\n"}, {".=9", 0, ".: 2 are open, and 9 are let pass\n"}} {
		var out strings.Builder
		got, err := mutate("testdata/purse", []string{c.pass}, nil, regexp.MustCompile("sum >= 100"), &out)
		if err != nil || got != c.want || !strings.HasSuffix(out.String(), c.says) || c.says == "" && strings.Contains(out.String(), "let pass") {
			t.Errorf("%s: got %d, %v, want %d:\n%s", c.pass, got, err, c.want, out.String())
		}
	}
	if _, err := mutate("testdata/purse", []string{".=x"}, nil, regexp.MustCompile(""), io.Discard); err == nil {
		t.Error("a number that is none was taken")
	}
	var out strings.Builder
	if got, err := mutate("testdata/purse", []string{"./untested"}, nil, regexp.MustCompile(""), &out); err != nil || got != 1 ||
		!strings.HasPrefix(out.String(), "untested: it has no tests\n") {
		t.Errorf("without tests: got %d, %v, want 1:\n%s", got, err, out.String())
	}
	out.Reset()
	if got, err := mutate("testdata/purse", []string{"./untested@."}, nil, regexp.MustCompile(""), &out); err != nil || got != 0 ||
		!strings.HasPrefix(out.String(), "untested: 1 mutants: 1 killed") {
		t.Errorf("with the tests of another package: got %d, %v, want 0:\n%s", got, err, out.String())
	}
	if _, err := mutate("testdata/purse", []string{".@untested"}, nil, regexp.MustCompile(""), io.Discard); err == nil {
		t.Error("a package without tests is to notice mutants")
	}
}

func TestWhatIsNoList(t *testing.T) {
	for name, text := range map[string]string{
		"a change without a place": "\tx -> y\n\t\twhy\n", "a reason without a change": "a.go F\n\t\twhy\n",
		"a change without a reason":        "a.go F\n\tx -> y\na.go G\n\tx -> y\n\t\twhy\n",
		"the last change without a reason": "a.go F\n\tx -> y\n", "a change that stands twice": "a.go F\n\tx -> y\n\tx -> y\n\t\twhy\n",
		"an empty reason": "a.go F\n\tx -> y\n\t\t \n",
	} {
		if got, err := list(t, text); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if _, err := readExplained(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a list that is not there was read")
	}
}
