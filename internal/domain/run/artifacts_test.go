package run_test

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
)

func TestPatternsOfArtifacts(t *testing.T) {
	for _, c := range []struct {
		pattern string
		match   []string
		not     []string
	}{
		{"out/**", []string{"out/a", "out/b/c.txt", "out/.hidden"}, []string{"outer/a", "a/out/b"}},
		{"out", []string{"out", "out/a", "out/b/c"}, []string{"outer", "a/out"}},
		{"./out/", []string{"out", "out/a"}, []string{"a"}},
		{"*.csv", []string{"a.csv", "folder.csv/x"}, []string{"a/b.csv", "a.csvx"}},
		{"**/*.csv", []string{"a.csv", "a/b/c.csv"}, []string{"a/b.txt"}},
		{"a/**/z", []string{"a/z", "a/b/c/z", "a/z/y"}, []string{"a/b", "z"}},
		{"report-?.[a-c]", []string{"report-1.b"}, []string{"report-10.b", "report-1.d"}},
		{"**", []string{"a", "a/b"}, nil},
	} {
		p := run.Patterns{c.pattern}
		if err := p.Check(); err != nil {
			t.Errorf("%q: %v", c.pattern, err)
		}
		for _, path := range c.match {
			if !p.Match(path) {
				t.Errorf("%q does not match %q", c.pattern, path)
			}
		}
		for _, path := range c.not {
			if p.Match(path) {
				t.Errorf("%q matches %q", c.pattern, path)
			}
		}
	}
}

// Many wildcards in a deep folder take no time that grows faster than both.
func TestPatternsOfManyWildcards(t *testing.T) {
	p := run.Patterns{strings.TrimSuffix(strings.Repeat("**/a/", run.MaxArtifactPatternBytes/5), "/")}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	if p.Match(strings.Repeat("a/", 99) + "b") {
		t.Error("99 folders match a hundred names")
	}
	if !p.Match(strings.Repeat("b/a/", 100) + "b") {
		t.Error("a hundred names do not match themselves")
	}
}

func TestPatternsThatAreRefused(t *testing.T) {
	longest := strings.Repeat("x", run.MaxArtifactPatternBytes)
	most := slices.Repeat(run.Patterns{"x"}, run.MaxArtifactPatterns)
	for _, p := range []run.Patterns{nil, {longest}, most} {
		if err := p.Check(); err != nil {
			t.Errorf("%.40q: %v", p, err)
		}
	}
	for _, p := range []run.Patterns{
		{longest + "x"}, append(most, "x"), {""}, {"/"}, {"."}, {"/out"}, {"a/../b"}, {".."}, {`a\b`}, {"a\nb"}, {"\xff"}, {"[a"}, {"a**"},
		{"x", "**y/z"},
	} {
		if err := p.Check(); fault.CodeOf(err) != "artifacts_invalid" || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%.40q: got %v, want artifacts_invalid", p, err)
		}
	}
}

func TestFoldersOfPatterns(t *testing.T) {
	for _, c := range []struct{ patterns, want string }{
		{"out/**", "out"}, {"a/b/*.txt a/b/c a/*", "a"}, {"*.txt out/x", "."}, {"a ab/c", "a ab/c"}, {"a/./b//c", "a/b/c"},
	} {
		if got := strings.Join(run.Patterns(strings.Fields(c.patterns)).Folders(), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.patterns, got, c.want)
		}
	}
}

func TestFewFilesThatAreLeftOutAreNamed(t *testing.T) {
	var g run.Gathered
	for range run.MaxLeftOut + 1 {
		g.Leave("x", run.ReasonTooManyArtifacts)
	}
	if g.LeftOut != run.MaxLeftOut+1 || len(g.Named) != run.MaxLeftOut {
		t.Errorf("%d left out, %d named", g.LeftOut, len(g.Named))
	}
	remains, err := run.Remains(event.Event{Header: event.Header{Type: run.EventCompleted}, Data: []byte(
		`{"run_id":"r","summary":"s","artifacts_kept":{"files":3,"size_bytes":9,"left_out":1,"left_out_files":[{"path":"a","reason_code":"b"}]}}`)})
	if kept := remains.(run.Finished).Artifacts; err != nil || kept.Files != 3 || kept.Bytes != 9 || kept.LeftOut != 1 || kept.Named != nil {
		t.Errorf("what remains of it: %+v, %v", kept, err)
	}
}

// FuzzPatterns checks that a pattern that is accepted never matches a path outside its folders, and that nothing panics.
func FuzzPatterns(f *testing.F) {
	for _, seed := range [][2]string{{"out/**", "out/a"}, {"**/x", "a/b/x"}, {"[a-", "a"}, {"a/./b", "a/b/c"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		p := run.Patterns{pattern}
		if p.Check() != nil || !p.Match(path) {
			return
		}
		if in := p.Folders()[0]; in != "." && path != in && !strings.HasPrefix(path, in+"/") {
			t.Errorf("%q matches %q, which is not in %q", pattern, path, in)
		}
	})
}
