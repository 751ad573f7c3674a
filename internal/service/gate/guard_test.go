package gate_test

import (
	"strings"
	"testing"
	"time"

	"agentbox/internal/command"
	"agentbox/internal/domain/policy"
	"agentbox/internal/testkit/wall"
)

// deniedPaths are command lines that read or write a file whose name standard refuses (x.env, n.env, .git/config), by globs and by words
// of parts.
var deniedPaths = []string{
	"cat x.en?", "cat x.e*", "cat < x.en?", "cat x.[e]nv", "cp x.* y; cat y", "a=env; cat x.$a", `a=env; cat "x.$a"`, `a=env; cat x."${a}"`,
	"cat x.$(echo env)", "cat x.`echo env`",
	"set -- env; cat x.$1", "cat x.${z:-env}", "read e <<< env; cat x.$e", "a=X.ENV; cat ${a,,}", `awk 'BEGIN{getline l < "x.env"; print l}'`,
	"du --files0-from=x.env",
	"wc --files0-from=x.env", "sort --files0-from=x.env", "shopt -s nocaseglob; cat X.EN?", "bash -O nocaseglob -c 'cat X.EN?'",
	"shopt -s dotglob; cat ?git/config", "cat .gi?/config", "head -1 .g*/config",
	"a=x.e; b=nv; cat $a$b", "a=x.e; b=nv; c=$a$b; cat $c", "a=x.e; a+=nv; cat $a", "a=x; cat $a.env", "for e in env txt; do cat x.$e; done",
	"a=x.environ; cat ${a%iron}", "a=ax.env; cat ${a#a}",
	"a=x.foo; cat ${a/foo/env}", "cat x.${a:0:3}", "echo x | xargs -I{} cat {}.env", "echo env | xargs -I{} cat x.{}",
	"find . -name 'x*' -exec cat {}.env ';'", "cat x.@(env|y)",
	"a=env; cp f n.$a", "a=env; mv f n.$a", "a=env; touch n.$a", "a=env; tee n.$a < f", "a=env; ln f n.$a", "a=env; dd if=f of=n.$a",
	`awk '{print > "n.env"}' f`, `awk '{print >> "n.env"}' f`,
	`awk '{printf "%s", $0 > "n." "env"}' f`, `awk '{print > $1 ".env"}' f`, `awk -v f=x.env 'BEGIN{getline l < f; print l}'`,
	`awk 'BEGIN{f="x.env"; while ((getline l < f) > 0) print l}'`,
	"a=x.env; cat < $a", "a=env; cat < x.$a", "declare e=env; cat x.$e", "export e=env; cat x.$e", "f() { cat x.$1; }; f env",
	"printf -v e env; cat x.$e", "GLOBIGNORE=a; cat ?git/config",
	"e=(env); cat x.${e[0]}", "e=env; r=e; cat x.${!r}", "mapfile -t e <<< env; cat x.$e", "tar cf o.tar x.en?", "grep -r S x.en?",
	`awk 'BEGIN{ARGV[1]="x.env";ARGC=2}{print}'`, `awk 'BEGIN{ARGV[1]="x." "env";ARGC=2}{print}'`, `awk 'BEGIN{f="x.env";ARGV[ARGC++]=f}1'`,
	`awk 'BEGIN{split("a x.env",ARGV);ARGC=2}1'`, `printf "x.e%s" nv | xargs cat`, `printf -v a "x.%s" env; cat $a`,
	`printf '%s%s\n' a b x. env | xargs cat`, `b=nv; printf "x.e%s" "$b" | xargs cat`, `cat "$(printf 'x.e%s' "$b")"`,
	"cut -c1- x.e?v", "cat {x,y}.e{nv,f}", "cat ~/x.en?", "(cd .; cat x.en?)",
}

// harmlessPaths are everyday command lines that look like those and name nothing that standard refuses.
var harmlessPaths = []string{
	"cat *.txt", "wc -l src/*.go", "cat *", "ls x*", "for f in *.txt; do cat \"$f\"; done", "for f in *.txt; do cp \"$f\" \"$f.bak\"; done",
	"for i in 1 2 3; do cat part$i; done",
	"for i in $(seq 3); do cat part$i.txt; done", "d=out; mkdir -p $d; cp a.txt $d/a.txt", "f=a.txt; cat $f", "n=$(wc -l < a.txt); cat part$n",
	"cat \"$(ls | head -1)\"", "awk '$1 > 5 {print $1}' f.txt",
	`awk '{print $1 " > " $2}' f.txt`, `awk '{s+=$1} END {print s}' f.txt`, `awk '{print > "out.txt"}' f.txt`, "du -sh *", "du -sh .git",
	"cat file[0-9].txt", "find . -name '*.py' -exec cat {} +",
	"shopt -s nullglob; for f in *.md; do wc -l \"$f\"; done", "for ((i=0; i<3; i++)); do touch part$i; done", "head -n $((2+3)) a.txt",
	`printf '%s\n' a.txt b.txt | xargs cat`, `printf '%s\n' "$f" | xargs cat`, "printf -v n '%03d' 7; echo $n",
	`awk 'FILENAME==ARGV[1]{n++} END{print n}' a.txt b.txt`, `awk 'BEGIN{ARGV[1]="a.txt";ARGC=2}1'`,
	`printf "a -> %s\n" x`, `awk '{printf "a > %s\n", "x"}' f.txt`,
}

func TestDeniedPathsByGlobsAndJoinedWords(t *testing.T) {
	h := build(t, nil)
	for _, line := range deniedPaths {
		if d := h.judge(h.shell("guarded", line)).Decision; d.Outcome == policy.Allow {
			t.Errorf("guarded allows %q", line)
		}
	}
	for _, line := range harmlessPaths {
		if d := h.judge(h.shell("guarded", line)).Decision; d.Outcome != policy.Allow {
			t.Errorf("guarded does not allow %q: %s", line, d.Reason)
		}
	}
}

// TestVariablesThatRunCommands holds that what an operation hands a shell as a variable runs nothing unasked.
func TestVariablesThatRunCommands(t *testing.T) {
	h := build(t, nil)
	trap := map[string]string{"y": "x[$(rm -r victim)]"}
	for _, line := range []string{
		"echo $((y))", "[[ $y -eq 1 ]]", "(( y ))", "${a:y}", "echo ${a:y}", "a[y]=1", `test -v "$y"`, "let y", "declare -i z=y", "exit $((y))",
		"for ((i=y; i<1; i++)); do :; done",
		"echo $[y]", "((z=y))", "[[ y -gt 0 ]]", `printf -v "$y" x`, `unset "$y"`, "return $((y))", "bash -c 'echo $((y))'", "sh script.sh",
	} {
		a := h.shell("guarded", line)
		for _, value := range []string{trap["y"], "a[`rm -r victim`]", "b+q[${z}]"} {
			a.Env = map[string]string{"y": value}
			if d := h.judge(a).Decision; d.Outcome == policy.Allow {
				t.Errorf("guarded allows %q with y=%q", line, value)
			}
		}
	}
	for _, env := range []map[string]string{{"ZIPOPT": "-m"}, {"ZIP": "-m"}, {"TAR_OPTIONS": "--remove-files"}, {"UNZIP": "-o"},
		{"GZIP": "-f"}, {"XZ_OPT": "-f"}} {
		a := h.shell("standard", "zip -r /tmp/x.zip victim")
		a.Env = env
		if d := h.judge(a).Decision; d.Outcome == policy.Allow {
			t.Errorf("standard allows zip with %v", env)
		}
	}
	for _, line := range []string{"ZIPOPT=-m zip -r /tmp/x.zip v", "export ZIPOPT=-m; zip -r /tmp/x.zip v",
		"env ZIPOPT=-m zip -r /tmp/x.zip v"} {
		if d := h.judge(h.shell("guarded", line)).Decision; d.Outcome == policy.Allow {
			t.Errorf("guarded allows %q", line)
		}
	}
	for _, env := range []map[string]string{{"N": "7"}, {"LANG": "C.UTF-8"}, {"J": `{"a":["$x"]}`}, {"PS1": `[\u@\h \W]\$ `},
		{"HOME": "/workspace"}} {
		a := h.shell("standard", "echo $((N + 1))")
		a.Env = env
		if d := h.judge(a).Decision; d.Outcome != policy.Allow {
			t.Errorf("guarded does not allow a harmless environment %v: %s", env, d.Reason)
		}
	}
}

// TestBracesAreBoundedBeforeTheyExpand holds that what braces stand for is counted, not made.
func TestBracesAreBoundedBeforeTheyExpand(t *testing.T) {
	for _, line := range []string{
		"cat " + strings.Repeat("{a,b}", 800), "cat " + strings.Repeat("{1..1}", 600), "cat {1..9223372036854775807}",
		"cat {-9223372036854775808..9223372036854775807}",
		"cat " + strings.Repeat("{a,", 1000) + strings.Repeat("}", 1000), "cat {1..1025}", "cat {1..100}{1..100}", "echo " +
			strings.Repeat("{a,b}", 11),
		strings.Repeat("cat {1..1000} {1..1000};", 160),
	} {
		began := wall.Processor()
		_, err := command.ReadScript(line, command.Bash, "")
		if took := wall.Processor() - began; err == nil || took > 500*time.Millisecond {
			t.Errorf("%.40s...: %v after %v, want a refusal at once", line, err, took)
		}
	}
	for _, line := range []string{"cat {1..1000}", "echo {a,b}{c,d}", "echo " + strings.Repeat("{a,b}", 9), "echo {1..1000000..1000}",
		"echo {a..z}"} {
		if _, err := command.ReadScript(line, command.Bash, ""); err != nil {
			t.Errorf("%.40s...: %v", line, err)
		}
	}
}
