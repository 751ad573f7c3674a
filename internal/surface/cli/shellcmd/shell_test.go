package shellcmd

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/run"
)

// nothing is entropy that is always the same.
type nothing struct{}

func (nothing) Read(p []byte) (int, error) { return len(p), nil }

const nonce = "00000000000000000000000000000000"

// ends is what a line says at its end.
func ends(code, folder, exported string) string {
	return separator + nonce + " " + code + "\nhere=" + folder + "\n" + exported + separator + "\n"
}

// TestALineLeavesWhatItSays reads what lines leave, as bash of every tier writes it.
func TestALineLeavesWhatItSays(t *testing.T) {
	const exported = "declare -x A=\"x y\"\ndeclare -x B=$'a\\nb'\ndeclare -x C=\"q\\\"\\$\\`\\\\'\"\ndeclare -x OLDPWD\nexport " +
		"D='it'\\''s'\ndeclare -x E=\"\"\n"
	left, found := mark{nonce}.read([]byte(ends("3", `/workspace/a\ b`, exported)), 3)
	want := map[string]string{"A": "x y", "B": "a\nb", "C": "q\"$`\\'", "D": "it's", "E": ""}
	if !found || left.folder != "/workspace/a b" || !maps.Equal(left.exported, want) {
		t.Errorf("got %+v (%v), want the folder and %q", left, found, want)
	}
}

// TestNobodyElseSaysWhatALineLeaves gives what a program could print to be believed.
func TestNobodyElseSaysWhatALineLeaves(t *testing.T) {
	const evil = "declare -x PATH=\"/evil\"\n"
	for name, c := range map[string]struct {
		printed string
		code    int
	}{
		"said twice":             {ends("0", "/a", evil) + ends("0", "/workspace", ""), 0},
		"more behind it":         {ends("0", "/a", evil) + "more", 0},
		"another exit code":      {ends("0", "/a", evil), 1},
		"a shell that was ended": {ends("137", "/a", evil), 137},
		"another mark":           {strings.ReplaceAll(ends("0", "/a", evil), "0000", "0001"), 0},
		"not to its end":         {strings.TrimSuffix(ends("0", "/a", evil), separator+"\n"), 0},
		"a command in it":        {ends("0", "/a", "declare -x A=\"$(reboot)\"\n"), 0},
		"a command beside it":    {ends("0", "/a", "reboot\n"), 0},
		"no folder":              {ends("0", "a", ""), 0},
		"another assignment":     {ends("0", "/a", "PATH=/evil\n"), 0},
		"no script":              {ends("0", "/a", "declare -x A=\"\n"), 0},
		"no code":                {ends("", "/a", ""), 0},
	} {
		_, rest := mark{nonce}.split([]byte(c.printed))
		if left, found := (mark{nonce}).read(rest, c.code); found {
			t.Errorf("%s: got %+v, want nothing", name, left)
		}
	}
}

// TestOutputIsHeldOnlyWhereItMayBeTheMark cuts output at each place.
func TestOutputIsHeldOnlyWhereItMayBeTheMark(t *testing.T) {
	m := mark{nonce}
	whole := "a\x1eb\x1e00" + ends("0", "/w", "")
	for cut := range len(whole) {
		own, rest := m.split([]byte(whole[:cut]))
		more, held := m.split(append(bytes.Clone(rest), whole[cut:]...))
		if got := string(own) + string(more); got != "a\x1eb\x1e00" {
			t.Errorf("cut at %d: got the output %q, want what stands before the mark", cut, got)
		}
		if _, found := m.read(held, 0); !found {
			t.Errorf("cut at %d: what is said is not found in %q", cut, held)
		}
	}
	if own, rest := m.split([]byte("ends with \x1e0x")); len(rest) > 0 {
		t.Errorf("got %q and held %q, want nothing held", own, rest)
	}
	if own, rest := (mark{}).split([]byte(whole)); string(own) != whole || rest != nil {
		t.Errorf("without a mark: held %q", rest)
	}
}

// TestWhatALineLeavesTravels follows a folder and variables from line to line.
func TestWhatALineLeavesTravels(t *testing.T) {
	var c carried
	c.learn(leaving{folder: "/workspace", exported: map[string]string{"HOME": "/tmp", "LANG": "C", "PWD": "/workspace"}})
	for _, step := range []struct {
		left    leaving
		cwd     string
		env     map[string]string
		command string // before the line
	}{
		{leaving{folder: "/workspace", exported: map[string]string{"HOME": "/tmp", "LANG": "C", "PWD": "/workspace"}}, ".", map[string]string{},
			""},
		{leaving{folder: "/workspace/a b", exported: map[string]string{"HOME": "/tmp", "LANG": "de", "A": "1", "PWD": "/workspace/a b"}}, "a b",
			map[string]string{"A": "1", "LANG": "de"}, ""},
		{leaving{folder: "/tmp/it's", exported: map[string]string{"HOME": "/tmp"}}, "", map[string]string{},
			"cd -- \"/tmp/it's\" || exit\nunset -v LANG\n"},
		{leaving{folder: "/workspacex", exported: map[string]string{"HOME": "/tmp", "LANG": "C"}}, "", map[string]string{},
			"cd -- /workspacex || exit\n"},
		{leaving{folder: "/tmp", exported: map[string]string{"HOME": "/tmp", "LANG": "C"}, code: 3}, "", map[string]string{},
			"cd -- /tmp || exit\n(exit 3)\n"},
	} {
		if lost := c.learn(step.left); lost != nil {
			t.Errorf("%s: lost %q", step.left.folder, lost)
		}
		op, m, err := c.operation("line", nothing{})
		want := step.command + "line\n" + m.telling()
		if err != nil || op.Cwd != step.cwd || !maps.Equal(op.Env, step.env) || op.Command != want {
			t.Errorf("%s: got %q in %q with %q (%v), want %q in %q with %q", step.left.folder, op.Command, op.Cwd, op.Env, err, want, step.cwd,
				step.env)
		}
	}
}

// TestWhatIsTooMuchIsNamed exports more than an operation may hold.
func TestWhatIsTooMuchIsNamed(t *testing.T) {
	var c carried
	c.learn(leaving{folder: "/workspace", exported: map[string]string{}})
	if lost := c.learn(leaving{folder: "/workspace", exported: map[string]string{"A": strings.Repeat("a", run.MaxEnvBytes-1), "B": "",
		"C": "c"}}); !slices.Equal(lost, []string{"B", "C"}) {
		t.Errorf("got %q lost, want B and C", lost)
	}
	many := map[string]string{}
	for n := range run.MaxEnv + 1 {
		many["V"+string(rune('A'+n/26))+string(rune('A'+n%26))] = "x"
	}
	if lost := c.learn(leaving{folder: "/workspace", exported: many}); len(lost) != 1 {
		t.Errorf("got %q lost, want one", lost)
	}
	if op, _, err := c.operation("line", nothing{}); err != nil || op.Check() != nil {
		t.Errorf("got %v and %v, want an operation within its bounds", err, op.Check())
	}
	if _, _, err := c.operation("line", iotestErr{}); err == nil {
		t.Error("without entropy a line is sent")
	}
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestWordsAreCompletedWhereTheyBegin looks at what stands before the cursor.
func TestWordsAreCompletedWhereTheyBegin(t *testing.T) {
	for text, want := range map[string]struct {
		word  string
		leads bool
	}{
		"":                {"", true},
		"gre":             {"gre", true},
		"cat a":           {"a", false},
		"cat a\\ b":       {"a b", false},
		"cat 'a b":        {"a b", false},
		"cat \"a b":       {"a b", false},
		"ls|gr":           {"gr", true},
		"ls; gr":          {"gr", true},
		"ls && gr":        {"gr", true},
		"if gr":           {"gr", true},
		"cat <a":          {"a", false},
		"cat >>dir/b":     {"dir/b", false},
		"x=dir/b":         {"dir/b", false},
		"echo $(gr":       {"gr", true},
		"tool --file=a/b": {"a/b", false},
		"cat it\\'s":      {"it's", false},
	} {
		begin := wordBegin(text)
		if got := unquoted(text[begin:]); got != want.word || leads(text[:begin]) != want.leads {
			t.Errorf("%q: got %q, a command: %v, want %q, %v", text, got, leads(text[:begin]), want.word, want.leads)
		}
	}
	if got, want := quoted("a b$(c)'é"), `a\ b\$\(c\)\'é`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
