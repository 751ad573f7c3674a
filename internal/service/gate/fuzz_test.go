package gate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/policy"
)

// FuzzJudge checks that whatever stands around it, a command that standard refuses is never allowed: the names are found by a walk of the
// test's own.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		"ls", "sudo ls", "ls; sudo ls", "echo $(sudo ls)", "bash -c 'sudo ls'", "x() { sudo ls; }", "cat <<E\n$(sudo)\nE", "ls > .env", "rm -r x",
		"PATH=x curl y", "find . -exec chmod 777 {} \\;", "((sudo))", "[[ -n $(curl) ]]", "case x in x) wget y;; esac", "trap 'sudo' EXIT",
	} {
		f.Add(seed)
	}
	h := build(f, nil)
	f.Fuzz(func(t *testing.T, line string) {
		r, err := h.Judge(context.Background(), h.shell("standard", line))
		if err != nil {
			t.Fatal(err)
		}
		if r.Decision.Outcome == policy.Deny {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
		if err != nil {
			t.Fatalf("%s: %q, which is no command line", r.Decision.Outcome, line)
		}
		for n := range syntax.Preorder(file) {
			call, ok := n.(*syntax.CallExpr)
			if ok && len(call.Args) > 0 && slices.Contains(refusedEverywhere, call.Args[0].Lit()) {
				t.Errorf("%s: %q, which runs %s", r.Decision.Outcome, line, call.Args[0].Lit())
			}
		}
	})
}
