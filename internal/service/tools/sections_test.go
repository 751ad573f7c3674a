package tools_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/service/tools"
)

// TestSectionsOfADocument holds which lines are headings, and where their sections end.
func TestSectionsOfADocument(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"none":              {"text\n", ""},
		"levels":            {"# A\na\n## B\nb\n### C\n## D\n# E\n", "A[1:6] A > B[3:3] A > B > C[5:1] A > D[6:1] E[7:1]"},
		"a level left out":  {"# A\n### C\n## B\n", "A[1:3] A > C[2:1] A > B[3:1]"},
		"deeper first":      {"## B\n# A\n", "B[1:1] A[2:1]"},
		"closing marks":     {"# A #\n## C# ##\n", "A[1:2] A > C#[2:1]"},
		"no headings":       {"#A\n####### B\n#\n    # C\n\\# D\n", ""},
		"indented":          {"   # A\n", "A[1:1]"},
		"fenced":            {"```sh\n# no\n```\n# A\n~~~\n# no\n```\n# no\n~~~\n# B\n", "A[4:6] B[10:1]"},
		"an open fence":     {"# A\n````\n```\n# no\n", "A[1:4]"},
		"underlined":        {"A\n===\nx\n\nB\n---\nend", "A[1:7] A > B[5:3]"},
		"lines that are no": {"a\nb\n---\n\n---\n- x\n---\n> q\n---\n", ""},
		"below a line":      {"x\n\n---\nA\n===\n", "A[4:2]"},
		"front matter":      {"---\ntitle: x\n---\n# A\n", "A[4:1]"},
		"Windows":           {"# A\r\n\r\nB\r\n---\r\n", "A[1:4] A > B[3:2]"},
	} {
		var got []string
		for _, s := range tools.Sections(c.text) {
			got = append(got, fmt.Sprintf("%s[%d:%d]", s.Path, s.Line, s.Lines))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", name, strings.Join(got, " "), c.want)
		}
	}
}

// TestRewritingASection holds that only the section changes, and only if it is the one that was read.
func TestRewritingASection(t *testing.T) {
	const doc = "# A\n\none\n\n## Same\n\nx\n\n# B\n\n## Same\n\nx\n\n## C\n\nend\n"
	same, c, second := "## Same\n\nx\n\n", "## C\n\nend\n", strings.LastIndex(doc, "x")
	hash := func(text string) string { return event.DigestOf([]byte(text)).String() }
	for name, row := range map[string]struct {
		w    tools.MDWrite
		want string // the document afterwards
		err  error
	}{
		"a section": {tools.MDWrite{Heading: "C", Hash: hash(c), Content: "## C\n\nnew"}, strings.Replace(doc, "end", "new", 1), nil},
		"its title": {tools.MDWrite{Heading: "C", Hash: hash(c), Content: "## D\n"}, strings.Replace(doc, "## C\n\nend", "## D", 1), nil},
		"the second": {tools.MDWrite{Heading: "B > Same", Hash: hash(same), Content: "## Same\n\ny\n"}, doc[:second] + "y" + doc[second+1:],
			nil},
		"the first":    {tools.MDWrite{Heading: "A > Same", Hash: hash(same), Content: "## Same\n\ny\n"}, strings.Replace(doc, "x", "y", 1), nil},
		"removed":      {tools.MDWrite{Heading: "C", Hash: hash("## C\n\nend\n")}, strings.TrimSuffix(doc, "## C\n\nend\n"), nil},
		"a new one":    {tools.MDWrite{Content: "# E\n\nlast"}, doc + "\n# E\n\nlast\n", nil},
		"ambiguous":    {tools.MDWrite{Heading: "Same", Hash: hash(same), Content: "## Same\n"}, "", tools.ErrManySections},
		"none":         {tools.MDWrite{Heading: "D", Hash: hash(same), Content: "## D\n"}, "", tools.ErrNoSection},
		"changed":      {tools.MDWrite{Heading: "C", Hash: hash(same), Content: "## C\n"}, "", tools.ErrSectionChanged},
		"other level":  {tools.MDWrite{Heading: "C", Hash: hash("## C\n\nend\n"), Content: "# C\n"}, "", tools.ErrSectionLevel},
		"no heading":   {tools.MDWrite{Heading: "C", Hash: hash("## C\n\nend\n"), Content: "text\n# C\n"}, "", tools.ErrSectionLevel},
		"a known one":  {tools.MDWrite{Content: "## C\n"}, "", tools.ErrSectionThere},
		"new and bare": {tools.MDWrite{Content: "text\n"}, "", tools.ErrSectionLevel},
	} {
		old, changed, err := tools.Rewrite(doc, row.w)
		if !errors.Is(err, row.err) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Replace(doc, old, changed, 1); err == nil && got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

// TestArgumentsOfSections holds which arguments are refused before anything is read.
func TestArgumentsOfSections(t *testing.T) {
	sum := event.DigestOf(nil).String()
	for arguments, ok := range map[string]bool{
		`{"path":"a.md","content":"# A"}`:                                    true,
		`{"path":"a.md","heading":"A","sha256":"` + sum + `","content":""}`:  true,
		`{"path":"a.md","heading":"A","content":"# A"}`:                      false,
		`{"path":"a.md","sha256":"` + sum + `","content":"# A"}`:             false,
		`{"path":"a.md","content":" "}`:                                      false,
		`{"path":"../a.md","content":"# A"}`:                                 false,
		`{"path":"a.md","content":"# A","mode":"x"}`:                         false,
		`{"path":"a.md","content":"# ` + strings.Repeat("x", 1<<20-2) + `"}`: true,
		`{"path":"a.md","content":"# ` + strings.Repeat("x", 1<<20-1) + `"}`: false,
	} {
		if _, err := tools.Prepare(tools.MDWriteTool, json.RawMessage(arguments)); (err == nil) != ok {
			t.Errorf("%.80s: %v", arguments, err)
		}
	}
	for arguments, ok := range map[string]bool{`{"path":"a.md"}`: true, `{"path":"a.md","heading":"A"}`: true, `{}`: false,
		`{"path":"/a.md"}`: false} {
		if _, err := tools.Prepare(tools.MDReadTool, json.RawMessage(arguments)); (err == nil) != ok {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	for arguments, ok := range map[string]bool{`{"task":"t"}`: true, `{"task":"t","space":"new"}`: true, `{"task":" "}`: false,
		`{"task":"t","space":"other"}`: false, `{"task":"` + strings.Repeat("x", 64<<10) + `"}`: true,
		`{"task":"` + strings.Repeat("x", 64<<10+1) + `"}`: false, `{"task":"t","depth":9}`: false} {
		if _, err := tools.Prepare(tools.SpawnTool, json.RawMessage(arguments)); (err == nil) != ok {
			t.Errorf("%.80s: %v", arguments, err)
		}
	}
}
