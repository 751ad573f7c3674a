package agentcmd

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/model"
)

// TestArgumentsAreShort writes the arguments of calls at the edge of their width.
func TestArgumentsAreShort(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"timeout": 5, "command": "ls -l"}`:     `command="ls -l" timeout=5`,
		`{"path": "a", "edits": [{"a": "b\n"}]}`: `edits=[{"a": "b\n"}] path="a"`,
		`{}`:                                     "",
		`{"cut": "of`:                            `{"cut": "of`,
		"":                                       "",
		`{"x": "` + strings.Repeat("y", 26) + `"}`: `x="` + strings.Repeat("y", 26) + `"`,
		`{"x": "` + strings.Repeat("y", 27) + `"}`: `x="` + strings.Repeat("y", 26) + "…",
	} {
		if got := shortArguments(arguments, 30); got != want {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
}

// TestArgumentsAreThoseOfTheirCalls takes the pieces of calls as they come, and bounds them.
func TestArgumentsAreThoseOfTheirCalls(t *testing.T) {
	a := &attended{}
	for _, d := range []model.Delta{
		{ID: "1", Name: "shell"}, {ID: "1", Text: `{"a":`}, {Text: `1}`},
		{ID: "2", Name: "shell", Text: `{"b":2}`},
		{ID: "3", Name: "search"}, {ID: "3", Text: strings.Repeat("x", maxArguments)}, {ID: "3", Text: "y"},
	} {
		a.propose(d)
	}
	for _, c := range [][2]string{{"2", `{"b":2}`}, {"shell", `{"a":1}`}, {"shell", ""}, {"search", strings.Repeat("x", maxArguments)}} {
		if got := a.argumentsOf(c[0]); got != c[1] {
			t.Errorf("%s: got %d bytes %.20q, want %d bytes %.20q", c[0], len(got), got, len(c[1]), c[1])
		}
	}
}

// TestMissing tells which words of a person the agent did not hear.
func TestMissing(t *testing.T) {
	for _, c := range []struct{ said, heard, want []string }{
		{nil, []string{"a"}, nil},
		{[]string{"a", "b"}, nil, []string{"a", "b"}},
		{[]string{"a", "b"}, []string{"x", "b", "a"}, nil},
		{[]string{"a", "a"}, []string{"a"}, []string{"a"}},
	} {
		if got := missing(c.said, c.heard); !slices.Equal(got, c.want) {
			t.Errorf("said %q, heard %q: got %q, want %q", c.said, c.heard, got, c.want)
		}
	}
}
