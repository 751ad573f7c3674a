package command_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/command"
)

// TestWhatBashRunsAndTheParserRefuses reads texts that the parser alone refuses: every command in them is found.
func TestWhatBashRunsAndTheParserRefuses(t *testing.T) {
	const data = "doubt:an expression that is not known | bash | unsealed:the data that arithmetic evaluates"
	for _, c := range []struct{ script, want string }{
		{"! ! true", "true"},
		{"! ! ! rm x", "rm x | arg>x"},
		{"a && ! ! b x.env", "a | b x.env"},
		{"! ! a; ! ! b", "a | b"},
		{"((true) || (false))", "true | false"},
		{"((rm a); b) > out", ">out | rm a | arg>a | b"},
		{"if ((a) && (b)); then c; fi", "a | b | c"},
		{"(((a) && b) || c)", "a | b | c"},
		{"echo $((a AA; b BB) 2>/dev/null)", "echo | a AA | b BB"},
		{`echo "$((a; b) | c)"`, "echo | a | b | c"},
		{"x=$((a 'b)' \"c)\") | d)", "a b) c) | d"},
		{"((a\nb) | c)", "a | b | c"},
		{"(( ))", ""},
		{"echo ${##2} ${###} ${#%$(rm a)}", "echo | rm a | arg>a"},
		{"echo $((  )) x", "echo x"},
		{"echo $(( x$foo = 42 ))", data + " | echo"},
		{"(( x$foo = 42 )) && a", data + " | a"},
		{"(( x$(rm a) = 42 ))", data + " | rm a | arg>a"},
		{"((sudo x))", data}, // bash says that it is not an expression
		{"! ! true; echo $((a; b) ) $(( x$y = 1 ))", data + " | true | echo | a | b"},
	} {
		r, err := command.ReadScript(c.script, command.Bash, "")
		if err != nil {
			t.Errorf("%q: %v", c.script, err)
			continue
		}
		if got := sorted(withoutTraits(show(r))); got != sorted(c.want) {
			t.Errorf("%q: got %s, want %s", c.script, got, sorted(c.want))
		}
		if r.Exact {
			t.Errorf("%q is called exact", c.script)
		}
	}
}

// TestWhatIsNotMended keeps refusing what Bash refuses, and what could be read as another text than the one that runs.
func TestWhatIsNotMended(t *testing.T) {
	for _, script := range []string{
		"! !", "! !true x; (", "((a) || (b)", "((1) + (2)) )", "echo $((a; b) ", "((a=1; b=2))",
		"(( x$foo = `sudo` ))", `(( x"$foo" = 1 ))`, "(( x\\$foo = 1 ))", // how these are quoted decides what they are
		"((case x in a) b;; esac) )", "((a # )\n) b)", "((a ${x%)}) b)", "((a $'\\')') b)", // which parenthesis closes is not plain
		"echo ${a[@]: : }", "a[1]=5 b", "echo '${##2' ${x#${##2}",
		"cat 'x((a b) c' $((a b) c", "cat <<E\n((a b) c\nE\necho $(( 1 + ))))", // the change would be in data
		strings.Repeat("! ! a; ", 17),
	} {
		r, err := command.ReadScript(script, command.Bash, "")
		if refused := (*command.Error)(nil); !errors.As(err, &refused) || refused.Line == 0 {
			t.Errorf("%q: got %v, %s, want a refusal with a place", script, err, show(r))
		}
	}
	if _, err := command.ReadScript(strings.Repeat("! ! a; ", 16), command.Bash, ""); err != nil {
		t.Errorf("as many changes as allowed: %v", err)
	}
}

// TestShReadsAMendedTextAsBashToo finds what arithmetic of Bash would do where sh is Bash, and what the subshells of POSIX run.
func TestShReadsAMendedTextAsBashToo(t *testing.T) {
	r, err := command.ReadScript("(( x$foo = 42 ))", command.POSIX, "")
	if err != nil || !strings.Contains(show(r), "doubt:an expression that is not known") || !strings.Contains(show(r), "?") {
		t.Errorf("got %s, %v", show(r), err)
	}
	if _, err := command.ReadScript("! ! true", command.POSIX, ""); err == nil {
		t.Error("dash has no double negation, and it was read as POSIX")
	}
}

func withoutTraits(s string) string {
	for {
		begin := strings.Index(s, " <")
		end := strings.Index(s, ">")
		if begin < 0 || end < begin || !strings.Contains("abcdefghijklmnopqrstuvwxyz", s[begin+2:begin+3]) {
			return s
		}
		s = s[:begin] + s[end+1:]
	}
}

func sorted(s string) string {
	parts := strings.Split(s, " | ")
	slices.Sort(parts)
	return strings.Join(parts, " | ")
}
