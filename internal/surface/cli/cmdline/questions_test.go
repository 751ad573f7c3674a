package cmdline

import (
	"strings"
	"testing"
)

// TestAnAnswerStandsBehindItsQuestion reads answers. A terminal has shown what was typed. The command shows an answer from elsewhere.
func TestAnAnswerStandsBehindItsQuestion(t *testing.T) {
	for _, c := range []struct {
		asks       bool
		in, screen string
	}{{false, "y\n", "Allow it? y\n"}, {false, "", "Allow it? \n"}, {true, "y\n", "Allow it? "}} {
		var screen strings.Builder
		i := &Invocation{Host: Host{In: strings.NewReader(c.in), Err: &screen, Asks: c.asks}}
		line, err := i.ask("Allow it? ")
		if strings.TrimSpace(line) != strings.TrimSpace(c.in) || (err == nil) != (c.in != "") || screen.String() != c.screen {
			t.Errorf("%+v: got %q, %v and the screen %q", c, line, err, screen.String())
		}
	}
}

// TestAShortQuestionHidesNothingThatMatters folds rendered actions.
func TestAShortQuestionHidesNothingThatMatters(t *testing.T) {
	const title, measured = "run a command: rm: x\n", "477 bytes, sha256:0123abcd\n"
	const ids = "timeout_ms: 30000\nspace_id: \"spc_1\"\nprincipal_id: \"agt_1\"\npolicy_bundle: \"sha256:1\"\nrun_id: \"run_1\"\n"
	for name, c := range map[string][2]string{
		"a command": {title + measured + "type: \"shell.exec\"\ncommand: \"rm -r x\"\nargv[0]: \"/bin/bash\"\nargv[1]: \"-c\"\n" +
			"argv[2]: \"rm -r x\"\ncwd: \"sub\"\nenv.A: \"1\"\n" + ids, "command: \"rm -r x\"\ncwd: \"sub\"\nenv.A: \"1\"\n"},
		"several lines": {title + measured + "command:\n  | rm x\n  | space_id: y\nargv[0]: \"/bin/bash\"\nargv[1]: \"-c\"\n" +
			"argv[2]:\n  | rm x\n  | space_id: y\n" + ids, "command:\n  | rm x\n  | space_id: y\n"},
		"another argv": {title + measured + "command: \"rm x\"\nargv[0]: \"/bin/bash\"\nargv[1]: \"-c\"\nargv[2]: \"rm y\"\n",
			"command: \"rm x\"\nargv[0]: \"/bin/bash\"\nargv[1]: \"-c\"\nargv[2]: \"rm y\"\n"},
		"a longer argv": {title + measured + "command: \"rm x\"\nargv[1]: \"-c\"\nargv[2]: \"rm x\"\nargv[3]: \"z\"\n",
			"command: \"rm x\"\nargv[1]: \"-c\"\nargv[2]: \"rm x\"\nargv[3]: \"z\"\n"},
		"an unknown field": {title + measured + "type: \"a\"\nnew_field: 1\n" + ids, "new_field: 1\n"},
		"no measure":       {"command: \"x\"\ncwd: \"\"\n", "command: \"x\"\ncwd: \"\"\n"},
	} {
		if got := essential(c[0]); got != c[1] {
			t.Errorf("%s: got %q, want %q", name, got, c[1])
		}
	}
	for line, want := range map[string]bool{"y": true, " Always\n": true, "d": true, "yes please": false, "": false, "ok": false} {
		if got := IsReply(line); got != want {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}
