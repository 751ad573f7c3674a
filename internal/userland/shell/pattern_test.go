package shell

import (
	"regexp"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// bare calls f with a shell without files.
func bare(f func(sh *shell)) {
	account := bound.New(bound.Limits{Gas: 1 << 32, Time: time.Hour, MemoryBytes: 16 << 20, OutputBytes: 1 << 20, FileBytes: 1 << 20,
		OpenFiles: 10, Depth: 100}, [32]byte{}, time.Unix(0, 0))
	fiber.Run(func(g *fiber.Group) {
		fs := vfs.New(account, g)
		s := New(Options{FS: fs, Account: account})
		p := &program.Process{Args: []string{"bash"}, Cwd: fs.Root(), FS: fs, Account: account, PID: 1, Host: host{s.world, nil}}
		sh := s.world.shell(p, nil)
		sh.proc = s.world.start(1, "", sh, nil)
		f(sh)
	})
}

// FuzzPatterns compares the two ways in which a pattern is matched: by the matcher, and by the regular expression that it is translated to.
func FuzzPatterns(f *testing.F) {
	for _, s := range [][2]string{{"a*b?c", "axxbyc"}, {"[a-c]*", "bcd"}, {"[!x]", "y"}, {"+(a|b)c", "abac"}, {"*(x)y", "xxy"}, {"?(a)b", "b"},
		{"@(a|bc)d", "bcd"}, {`\*`, "*"}, {"[[:alpha:]]*", "q1"},
		{"*é?", "xéy"}, {"[]a]", "]"}, {"[a", "[a"}, {"a[b-]", "a-"}, {"**", ""}, {"[^a]b", "cb"}, {`[\]]`, "]"}, {"[[:]:]]", "0"},
		{"[[::]]", ":"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pat, s string) {
		if len(pat) > 40 || len(s) > 40 {
			return
		}
		expr, ok := patternRegexp(pat, false)
		if !ok {
			return
		}
		re, err := regexp.Compile("^(?:" + expr + `)\z`)
		if err != nil {
			return
		}
		bare(func(sh *shell) {
			if got, want := sh.match(pat, s, false), re.MatchString(s); got != want {
				t.Errorf("pattern %q, text %q: matched %v, by %s %v", pat, s, got, expr, want)
			}
		})
	})
}

// FuzzArithmetic evaluates any text: it has a value or an error.
func FuzzArithmetic(f *testing.F) {
	for _, s := range []string{"1+2*3", "a=b=3", "x++ + ++x", "1?2:3", "a[1]", "((((1", "1 << 99", "-9223372036854775808 / -1", "2**-1", "08",
		"64#_", "a[a[a[0]]]++", "1,2", "!~-+1", "x?y", "a[]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		bare(func(sh *shell) {
			_ = sh.guard(func() { _, _ = tryArith(sh, expr) })
		})
	})
}

func TestQuotedTextComesBackFromTheParser(t *testing.T) {
	bare(func(sh *shell) {
		for _, s := range []string{"", "a", "a b", "it's", "a\nb", "\x01\x7f", "é", "\xff", `\`, `"`, "$x `y`", "~", "#", "!", "*?[", "a\tb'c"} {
			for name, quote := range map[string]func(string) string{"Q": quoteShell, "q": quoteBackslash, "declare": quoteDouble} {
				runText(sh, "x="+quote(s), "")
				if got := sh.str("x"); got != s {
					t.Errorf("%s of %q is %s, which reads as %q", name, s, quote(s), got)
				}
			}
		}
	})
}

// A class that has no end where it seems to have one is no reason to fall.
func TestClassesThatEndWhereTheyBegin(t *testing.T) {
	bare(func(sh *shell) {
		for _, pat := range []string{"[[:]:]]", "[[:]", "[[::]]", "[[:]]", "[[:", "[[:]:"} {
			sh.match(pat, "0", false)
			replaceAll(sh, "a0", pat, "x", true)
		}
	})
}
