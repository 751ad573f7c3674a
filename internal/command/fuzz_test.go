package command_test

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/command"
)

// plainNames finds, by a walk of its own, the names of simple commands that stand there without quotes.
func plainNames(script string) []string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil
	}
	var found []string
	for n := range syntax.Preorder(file) {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			if name := call.Args[0].Lit(); name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "" {
				found = append(found, name)
			}
		}
	}
	return found
}

// FuzzReading checks that reading never panics, never says two things about the same text, and never misses a command that a walk finds.
func FuzzReading(f *testing.F) {
	for _, seed := range []string{
		"ls -la", "a | b && c || d; e & f", "echo $(sudo ls `rm x`)", "bash -c 'bash -c \"sudo\"'", "cat <<E\n$(a)\nE", "x() { sudo; }; x",
		"env -i A=b sudo", "find . -exec sudo {} \\;", "xargs -I{} sh -c 'sudo {}'", "{su,}do x", "$'su\\x64o'", "((sudo))", "[[ a =~ $(sudo) ]]",
		"case x in $(sudo)) a;; esac", "for ((;;)); do sudo; done", "a > $(sudo)", "trap 'sudo' EXIT", "eval sudo", "coproc sudo", "time sudo",
		"declare x=$(sudo)", "echo {1..3}{a,b}", "echo ${x:-$(sudo)}", "echo \"`sudo`\"", "a <(sudo)", "if ! sudo; then :; fi", "\x00", "\xff",
		"a\\\nb",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		r, err := command.ReadScript(script, command.Bash, "")
		again, errAgain := command.ReadScript(script, command.Bash, "")
		if (err == nil) != (errAgain == nil) || show(r) != show(again) {
			t.Errorf("two readings of %q differ", script)
		}
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, c := range r.Commands {
			names[c.Name] = true
		}
		for _, name := range plainNames(script) {
			if !names[name] {
				t.Errorf("%q: the command %s was missed; got %s", script, name, show(r))
			}
		}
		if r.Exact && (len(r.Commands) != 1 || len(r.Doubts) > 0 || len(r.Unsealed) > 0) {
			t.Errorf("%q is called exact: %s", script, show(r))
		}
		_, _ = command.ReadScript(script, command.POSIX, "")
	})
}
