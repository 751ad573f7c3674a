package shell_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/vfs"
)

// stopped returns the bound that has ended an execution, "" where none has.
func (x *execution) stopped() string {
	s, ok := errors.AsType[*bound.Stopped](x.result.Err)
	if !ok {
		return ""
	}
	return s.Limit
}

// TestGasEndsAnything runs what never ends by itself: every way to go on for ever has to reach the bound.
func TestGasEndsAnything(t *testing.T) {
	for _, script := range []string{
		`while :; do :; done`, `until false; do :; done`, `for ((;;)); do :; done`, `yes > /dev/null`, `yes | cat > /dev/null`,
		`f() { while :; do :; done; }; f | cat`,
		`x=a; while :; do x=${x//a/a}; done`, `while :; do echo x; done > /dev/null`, `while :; do (:); done`, `while :; do x=$(:); done`,
		`while :; do true | true; done`,
		`while :; do [[ a == a* ]]; done`, `while :; do ((1)); done`, `while :; do eval :; done`, `trap 'while :; do :; done' EXIT; exit`,
		`cat /dev/zero > /dev/null`,
		`while :; do continue; done`, `while :; do : & done`, `while :; do cat < /dev/null; done`, `echo {1..1000000000} > /dev/null`,
		`for i in {1..1000000000}; do :; done`,
		`seq 100000000000 > /dev/null`, `tr a b < /dev/zero > /dev/null`, `wc < /dev/zero`, `sha256sum /dev/zero`, `base64 /dev/zero > /dev/null`,
		`while read -N 1 x; do :; done < /dev/zero`,
		`a=$(printf '%0100000d' 0); [[ $a == *0*0*0*0*0*0*0*0*1 ]]`,
		"shopt -s extglob\na=$(printf '%01000d' 0); [[ $a == +(+(0)|+(0))1 ]]", `while :; do timeout 1 true; done`,
		`bash -c 'while :; do :; done'`, `while :; do echo | xargs true; done`,
	} {
		t.Run(script, func(t *testing.T) {
			x := newExecution(t)
			x.limits.Gas = 50_000_000
			x.run(t, script)
			if x.stopped() != bound.Gas && x.stopped() != bound.Memory {
				if x.result.Code != 137 && x.result.Code != 1 {
					t.Errorf("ended by %v, code %d, gas %d", x.result.Err, x.result.Code, x.account.Used())
				}
			}
			if now, _ := x.account.Memory(); x.result.Err == nil && now > 1<<20 {
				t.Errorf("%d bytes are still held", now)
			}
		})
	}
}

// TestGasAtItsEdge finds out what a script needs, and that it runs with exactly that and not with less.
func TestGasAtItsEdge(t *testing.T) {
	const script = `for i in 1 2 3; do echo $i | cat; done; x=$(echo y); echo $x > f; cat f`
	x := newExecution(t)
	want := x.run(t, script)
	need := x.account.Used()
	for _, less := range []int64{0, 1} {
		y := newExecution(t)
		y.limits.Gas = need - less
		got := y.run(t, script)
		if less == 0 && (got != want || y.result.Err != nil) {
			t.Errorf("with %d gas: %q, %v; want %q", need, got, y.result.Err, want)
		}
		if less > 0 && y.stopped() != bound.Gas {
			t.Errorf("with %d gas: ended by %v, want gas", need-less, y.result.Err)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`f() { f; }; f; echo after`, "environment: line 1: f: maximum function nesting level exceeded (50)\n[1]\n"},
		{`f() { [ $1 = 0 ] || f $(($1-1)); }; f 40 && echo fits`, "fits\n"},
		{`f() { (f); }; f; echo $?`, ""}, {`f() { eval f; }; f; echo $?`, ""}, {`f() { echo $(f); }; f > /dev/null; echo $?`, ""},
		{`f() { f | f; }; f; echo $?`, ""},
		{`echo 'bash ./s' > s; bash ./s; echo $?`, ""}, {`echo '. ./s' > s; . ./s; echo $?`, ""}, {`x='x+1'; echo $((x))`, ""},
		{`a=b b=a; echo $((a))`, ""},
		{`echo $((` + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000) + `))`, ""}, {`[ ` + strings.Repeat("! ", 3000) +
			` x ]; echo $?`, ""},
		{strings.Repeat("(", 100_000), ""}, {strings.Repeat("if ", 100_000), ""}, {strings.Repeat("$(", 100_000), ""},
		{strings.Repeat("a |", 20_000) + "a", ""},
		{"echo " + strings.Repeat("{a,", 2000) + strings.Repeat("}", 2000), ""}, {"echo $((" + strings.Repeat("-", 100_000) + "1))", ""},
		{"[[ " + strings.Repeat("! ", 100_000) + " x ]]", ""},
		{"f() { g; }; g() { f; }; trap f EXIT; f", ""}, {"trap 'false' ERR; false; echo ok", ""},
		{"trap 'kill -TERM $$' TERM; kill -TERM $$; echo ok", ""},
	} {
		x := newExecution(t)
		x.limits.Depth = 50
		got := x.run(t, c.script)
		if c.want != "" && got != c.want {
			t.Errorf("%.60s: got %q, want %q", c.script, got, c.want)
		}
		if x.result.Err != nil && x.stopped() != bound.Gas {
			t.Errorf("%.60s: ended by %v", c.script, x.result.Err)
		}
	}
}

// TestProcessesAreBounded starts more than may live at once; when some have ended, others may begin.
func TestProcessesAreBounded(t *testing.T) {
	x := newExecution(t)
	x.limits.OpenFiles, x.limits.Depth = 1<<20, 1<<20 // those that have started count as calls
	got := x.run(t, `for i in {1..5000}; do sleep 100 & done 2>/w/errors; read -r said </w/errors; echo "$said"; wait; echo alive & wait; `+
		`echo a | cat`)
	if got != "bash: line 1: fork: Resource temporarily unavailable\nalive\na\n" {
		t.Errorf("got %.300q", got)
	}
	if x.result.Refused != bound.Processes {
		t.Errorf("refused by %q, want %q", x.result.Refused, bound.Processes)
	}
}

// TestARefusedProcessIsTold starts as many processes as may live at once, one more, and calls nested to their bound and beyond. The result
// names the refusals, also if the script ends well.
func TestARefusedProcessIsTold(t *testing.T) {
	tests := map[string]struct {
		script string
		depth  int64
		want   string
	}{
		"as many as fit":      {`for i in {1..4095}; do sleep 100 & done 2>/dev/null; kill %1; exit 0`, 1 << 20, ""},
		"one more":            {`for i in {1..4096}; do sleep 100 & done 2>/dev/null; exit 0`, 1 << 20, bound.Processes},
		"nested to the bound": {`f() { if [ $1 -gt 1 ]; then f $(($1-1)); fi; }; f 50; exit 0`, 51, ""},
		"nested beyond it":    {`f() { if [ $1 -gt 1 ]; then f $(($1-1)); fi; }; f 52 2>/dev/null; exit 0`, 51, bound.Depth},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			x := newExecution(t)
			x.limits.OpenFiles, x.limits.Depth = 1<<20, tt.depth
			x.run(t, tt.script)
			if x.result.Err != nil || x.result.Refused != tt.want {
				t.Errorf("got %+v, want refused by %q", x.result, tt.want)
			}
		})
	}
}

func TestMemoryIsBounded(t *testing.T) {
	for _, script := range []string{
		`x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done`, `while :; do a+=(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa); done`,
		`declare -A m; while :; do m[$((i++))]=aaaaaaaaaaaaaaa; done`,
		`x=$(yes)`, `x=$(cat /dev/zero)`, `sort /dev/zero`, `yes | sort`, `yes | tail -n 100000000`, `head -c -1 /dev/zero`,
		`read -r x < /dev/zero; read -rd x y < /dev/zero`, `mapfile a < <(yes)`,
		`printf -v x '%0100000000d' 1`, `printf '%0100000000d' 1 > /dev/null; yes | tr -d '\n' | cat -n`, `yes | tr -d '\n' | sort`,
		`x=$(seq 100000); while :; do x=${x//1/11111}; done`,
		`f() { local x$((i++))=aaaaaaaaaaaaaaaaaaaaaaaaa; f; }; while :; do export "v$((i++))=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; done`,
		`yes | xargs -n 100000000 -s 1000000000`,
		`x=$(printf '%01000000d' 0); y=; while :; do y+="$x"; done`, `tail -c 10000000000 /dev/zero`,
		`while :; do alias a$((i++))=bbbbbbbbbbbbbbbbbbbbbbbbbbbb; done`,
		`set -- {1..100000}; while :; do set -- "$@" "$@"; done`,
	} {
		t.Run(script, func(t *testing.T) {
			x := newExecution(t)
			x.limits.MemoryBytes = 8 << 20
			x.limits.Gas = 3_000_000_000
			x.run(t, script)
			_, peak := x.account.Memory()
			if peak > x.limits.MemoryBytes {
				t.Errorf("%d bytes were held", peak)
			}
			if now, _ := x.account.Memory(); x.result.Err == nil && now != 0 {
				t.Errorf("%d bytes are still held", now)
			}
		})
	}
}

// TestMemoryIsGivenBack runs what makes and forgets values: nothing may be counted for ever.
func TestMemoryIsGivenBack(t *testing.T) {
	x := newExecution(t)
	x.limits.MemoryBytes = 2 << 20
	got := x.run(t, `big=$(seq 20000); f() { local y=$big; }; for i in {1..200}; do x=$(echo "$big"); f; y=("$x"); (x=$x$x); unset y; echo `+
		`"$x" | cat >/dev/null; declare -A m=([a]=$x); done; echo done`)
	if got != "done\n" {
		t.Errorf("got %.200q", got)
	}
	if now, peak := x.account.Memory(); now != 0 {
		t.Errorf("%d bytes are still held, at most %d", now, peak)
	}
}

func TestOutputIsBounded(t *testing.T) {
	x := newExecution(t)
	x.limits.OutputBytes = 10
	if got := x.run(t, `echo 123456789; echo x`); got != "123456789\n[137]\n" || x.stopped() != bound.Output {
		t.Errorf("got %q, %v", got, x.result.Err)
	}
	x = newExecution(t)
	x.limits.OutputBytes = 10
	if got := x.run(t, `echo 123456789`); got != "123456789\n" {
		t.Errorf("got %q", got)
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	x := newExecution(t)
	x.limits.OpenFiles = 20
	got := x.run(t, `for ((i=3;i<100;i++)); do eval "exec $i>f$i" || break; done; echo never`)
	if !strings.Contains(got, "Too many open files") {
		t.Errorf("got %q", got)
	}
	x = newExecution(t)
	x.limits.OpenFiles = 40
	if got := x.run(t, `for i in {1..300}; do echo $i > f; x=$(cat f | cat); cat <(echo a) f < f | cat >/dev/null; exec 5<f; exec 5<&-; `+
		`read y <<< a; (exec 6>g); done; echo $x`); got != "300\n" {
		t.Errorf("handles leak: %.300q", got)
	}
}

func TestTimeEndsASleeper(t *testing.T) {
	x := newExecution(t)
	x.limits.Time = 3 * time.Second
	got := x.run(t, `sleep 2; echo two; sleep 2; echo never`)
	s, ok := errors.AsType[*bound.Stopped](x.result.Err)
	if got != "two\n[137]\n" || !ok || !s.TimedOut {
		t.Errorf("got %q, %v", got, x.result.Err)
	}
}

func TestACancelledExecutionEndsAtOnce(t *testing.T) {
	x := newExecution(t)
	x.during = func(*vfs.FS) { x.account.Stop(&bound.Stopped{Canceled: true}) }
	got := x.run(t, `echo never`)
	if s, ok := errors.AsType[*bound.Stopped](x.result.Err); got != "[137]\n" || !ok || !s.Canceled {
		t.Errorf("got %q, %v", got, x.result.Err)
	}
}

// TestWaitingForNobodyRunsOutOfTime waits in ways that nobody can end.
func TestWaitingForNobodyRunsOutOfTime(t *testing.T) {
	for _, script := range []string{`sleep 1000000`, `cat <(sleep 1000000)`, `sleep 1000000 & wait`, `while :; do sleep 1000; done`} {
		x := newExecution(t)
		x.run(t, script)
		if s, ok := errors.AsType[*bound.Stopped](x.result.Err); !ok || !s.TimedOut {
			t.Errorf("%s: ended by %v", script, x.result.Err)
		}
	}
}

// TestBackgroundEndsWithTheScript leaves what would run for ever, or waits at a pipe.
func TestBackgroundEndsWithTheScript(t *testing.T) {
	for _, script := range []string{`while :; do sleep 1; done & echo ok`, `cat <(sleep 100) & echo ok`,
		`(while :; do :; done) & sleep 0; echo ok`, `sleep 100 | cat & echo ok`,
		`exec 3> >(cat > f); echo ok`, `yes > >(head -1 > f) & echo ok`, `coproc_() { cat | cat; }; coproc_ & echo ok`} {
		x := newExecution(t)
		x.limits.Gas = 100_000_000
		got := x.run(t, script)
		if got != "ok\n" && !strings.HasPrefix(got, "ok") && x.stopped() != bound.Gas {
			t.Errorf("%s: got %q, %v", script, got, x.result.Err)
		}
	}
}

func TestTheSameScriptDoesTheSame(t *testing.T) {
	const script = `echo $RANDOM $RANDOM; mktemp -u; declare -A m; for i in {1..50}; do m[k$i]=$i; done; echo "${!m[@]}"; seq 1000 | sort -r | head -5; date; (sleep 1; echo a) & (echo b) & wait
ls -la /tmp > f; wc -c f; f() { echo $SRANDOM | cat; }; f; echo $EPOCHREALTIME; set; env; yes | head -1000 | uniq -c; head -c 8 /dev/urandom | base64; for f in /bin/*; do echo $f; done; type ls`
	run := func(seed byte) (string, int64) {
		x := newExecution(t)
		x.seed = seed
		out := x.run(t, script)
		return out, x.account.Used()
	}
	out, gas := run(1)
	for range 10 {
		if o, g := run(1); o != out || g != gas {
			t.Fatalf("another run used %d gas, not %d, and printed:\n%s\nnot:\n%s", g, gas, o, out)
		}
	}
	if other, _ := run(2); other == out {
		t.Error("another seed makes no difference")
	}
}

func TestLacksAreReported(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`git status`, "command git"}, {`curl http://x`, "command curl"}, {`command wget x`, "command wget"}, {`xargs nope </dev/null`,
			"command nope"}, {`env zork`, "command zork"},
		{`ls --hyperlink`, "option ls --hyperlink"}, {`sort --debug /dev/null`, "option sort --debug"},
		{`exec 3<>/dev/tcp/x/80`, "feature bash network x"}, {`exec rustc`, "command rustc"}, {"printf '#!/usr/bin/perl\\n' > p; chmod +x p; ./p",
			"command perl"},
		{`printf '\0asm' > m; chmod +x m; ./m`, "feature ./m wasm module"}, {`printf '\x7fELF' > m; chmod +x m; ./m`,
			"feature ./m native program"}, {`rm -i x`, "option rm -i"},
		{`tail -f x`, "option tail -f"},
	} {
		x := newExecution(t)
		x.run(t, c.script)
		if len(x.lacks) != 1 || x.lacks[0].String() != c.want {
			t.Errorf("%s: reported %v, want %s", c.script, x.lacks, c.want)
		}
	}
	x := newExecution(t)
	if x.run(t, `ls; echo x | cat; f() { :; }; f; command -v nope; type -t nope; [ -x /bin/nope ]`); len(x.lacks) != 0 {
		t.Errorf("reported %v", x.lacks)
	}
}

// TestProgramsOfTheTier runs a guest: a program under a name, one that a script names in its first line, and one by its magic bytes.
func TestProgramsOfTheTier(t *testing.T) {
	x := newExecution(t)
	account := bound.New(x.limits, [32]byte{}, time.Unix(0, 0))
	out := &printer{account: account}
	guest := program.Func(func(p *program.Process) int {
		p.Out().Printf("guest %q stdin %q", p.Args, p.Reader(p.Stdin).All())
		c := p.Child("echo", "from", "guest")
		s, err := p.Execute(c)
		p.Out().Printf("child %v %v\n", s.Exit(), err)
		_, err = p.Execute(p.Child("nope"))
		p.Out().Printf("missing %v\n", err)
		s, _ = p.Shell("exit 5")
		return s.Exit()
	})
	fiber.Run(func(g *fiber.Group) {
		fs := vfs.New(account, g)
		programs := shell.Programs().Add(coreutils.Programs(), program.Table{"python3": guest})
		if err := shell.Install(fs, programs); err != nil {
			t.Fatal(err)
		}
		if err := fs.Mount("/w", vfs.Options{Bytes: 1 << 20, Files: 100}); err != nil {
			t.Fatal(err)
		}
		h := fs.Stream(out, vfs.Write)
		sh := shell.New(shell.Options{FS: fs, Account: account, Programs: programs, Module: guest, Env: []string{"PATH=/usr/bin"}, Cwd: "/w",
			Stdout: h, Stderr: h})
		x.result = sh.Run("echo in | python3 -c x; echo $?\nprintf '#!/usr/bin/env python3\\n' > s; chmod +x s; ./s a < /dev/null\nprintf " +
			"'\\0asm' > m.wasm; chmod +x m.wasm; ./m.wasm q </dev/null; cp /bin/python3 p; ./p </dev/null")
	})
	want := strings.Join([]string{`guest ["python3" "-c" "x"] stdin "in\n"from guest`, "child 0 <nil>", "missing No such file or directory",
		"5",
		`guest ["python3" "./s" "a"] stdin ""from guest`, "child 0 <nil>", "missing No such file or directory",
		`guest ["./m.wasm" "q"] stdin ""from guest`, "child 0 <nil>", "missing No such file or directory",
		`guest ["./p"] stdin ""from guest`, "child 0 <nil>", "missing No such file or directory", ""}, "\n")
	if got := string(out.out); got != want || x.result.Code != 5 {
		t.Errorf("code %d, got:\n%s\nwant:\n%s", x.result.Code, got, want)
	}
}

func TestArgumentsAndStdin(t *testing.T) {
	x := newExecution(t)
	x.args, x.stdin = []string{"one", "two words"}, "line 1\nline 2\n"
	if got, want := x.run(t, `echo $0 $# "$2"; read a; echo "[$a]"; cat`), "bash 2 two words\n[line 1]\nline 2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for script, want := range map[string]string{`kill -KILL $$`: "KILL", `kill $$`: "TERM", `exit 3`: ""} {
		x := newExecution(t)
		if x.run(t, script); x.result.Signal != want {
			t.Errorf("%s: signal %q, want %q", script, x.result.Signal, want)
		}
	}
}

func BenchmarkShell(b *testing.B) {
	for _, c := range []struct{ name, script string }{
		{"echo", `echo hello`},
		{"pipe-100", `seq 100 | sort -rn | head -5`},
		{"pipe-100000", `seq 100000 | sort -rn | head -5`},
		{"loop-10000", `i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; echo $i`},
		{"subst-1000", `for i in {1..1000}; do x=$(echo $i); done; echo $x`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			gas := int64(0)
			for b.Loop() {
				x := newExecution(b)
				if out := x.run(b, c.script); x.result.Code != 0 {
					b.Fatal(out)
				}
				gas = x.account.Used()
			}
			b.ReportMetric(float64(gas), "gas/op")
		})
	}
}
