package shell_test

import (
	"strings"
	"testing"

	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/shelltest"
	"agentbox/internal/userland/vfs"
)

// TestADefectEndsTheCommandOnly holds that a panic of Go's own ends only its command. Its memory is free again, and the script goes on.
func TestADefectEndsTheCommandOnly(t *testing.T) {
	for name, broken := range map[string]program.Func{
		"of Go": func(p *program.Process) int {
			p.Hold(1 << 20)
			p.Out().WriteString("lost\n")
			if _, err := p.Open("kept", vfs.Write|vfs.Create); err != nil {
				t.Error(err)
			}
			return []int{}[len(p.Args)-1]
		},
		"of a library": func(p *program.Process) int { return len(strings.Repeat("x", -len(p.Args))) },
		"thrown on": func(p *program.Process) int {
			program.Catch(func() { _ = p.Env[-len(p.Args)+len(p.Env)*0] })
			return 0
		},
	} {
		programs := program.Table{"broken": broken}.Add(shell.Programs(), coreutils.Programs())
		l := shelltest.Limits
		l.OpenFiles, l.MemoryBytes = 32, 16<<20
		r := shelltest.Execute(programs, l,
			`for i in $(seq 100); do broken 2>/dev/null; done; broken; echo $?; echo a | broken | cat; (broken); ls`)
		if r.Stopped != nil || r.Code != 0 || !strings.HasPrefix(r.Out, "70\n") || !strings.Contains(r.Err, "broken: internal error: ") ||
			!strings.Contains(r.Err, "_test.go:") {
			t.Errorf("%s: got %d, %v, %q, %q", name, r.Code, r.Stopped, r.Out, r.Err)
		}
		if len(r.Lacks) != 103 || r.Lacks[0].Kind != program.LackFeature {
			t.Errorf("%s: it reported %d lacks, want 103 of features", name, len(r.Lacks))
		}
	}
}

// TestADefectOfWhatIsSharedEndsTheExecution: where a panic comes through the file system, nobody knows what that is like.
func TestADefectOfWhatIsSharedEndsTheExecution(t *testing.T) {
	broken := program.Func(func(p *program.Process) int {
		h := p.FS.Stream(stream{}, vfs.Write)
		defer func() { _ = h.Close() }()
		_, _ = h.Write([]byte("x"))
		return 0
	})
	defer func() {
		if x := recover(); x == nil {
			t.Error("the execution went on")
		}
	}()
	shelltest.Execute(program.Table{"broken": broken}.Add(shell.Programs(), coreutils.Programs()), shelltest.Limits, `broken; echo on`)
}

type stream struct{}

func (stream) Read([]byte) (int, error) { return 0, nil }

func (stream) Write(p []byte) (int, error) { return int(p[len(p)]), nil }

// TestMendedPanics keeps what once ended the worker from coming back.
func TestMendedPanics(t *testing.T) {
	programs := shell.Programs().Add(coreutils.Programs())
	for script, want := range map[string]string{
		`exec 3<&-4; echo $?`:                          "bash: line 1: -4: ambiguous redirect\n",
		`caller -1; echo $?`:                           "",
		`f() { caller -1; caller 99999; }; f; echo $?`: "environment: line 1: caller: -1: invalid option\ncaller: usage: caller [expr]\n",
	} {
		r := shelltest.Execute(programs, shelltest.Limits, script)
		if r.Stopped != nil || r.Code != 0 || r.Out != "1\n" || r.Err != want {
			t.Errorf("%s: got %d, %v, %q, %q, want %q", script, r.Code, r.Stopped, r.Out, r.Err, want)
		}
	}
}

// TestMatchesOfAReplacementAreBounded: the list of them would take many times what the text does.
func TestMatchesOfAReplacementAreBounded(t *testing.T) {
	programs := shell.Programs().Add(coreutils.Programs())
	l := shelltest.Limits
	l.MemoryBytes = 8 << 20
	for _, pattern := range []string{"a", "[ab]"} {
		r := shelltest.Execute(programs, l, `s=$(head -c 400000 /dev/zero | tr '\0' a); (t=${s//`+pattern+`/}; echo ${#t}) 2>/dev/null; echo $?`)
		if r.Stopped != nil || r.Out != "137\n" {
			t.Errorf("%s: got %d, %v, %q, %q, want 137", pattern, r.Code, r.Stopped, r.Out, r.Err)
		}
	}
}
