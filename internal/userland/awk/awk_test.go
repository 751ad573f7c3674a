package awk_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/shelltest"
	"agentbox/internal/userland/toolbox"
)

var update = flag.Bool("update", false, "run the real programs and write what they print")

func programs() program.Table {
	return program.Table{}.Add(shell.Programs(), coreutils.Programs(), toolbox.Programs())
}

func TestTranscripts(t *testing.T) { shelltest.Transcripts(t, programs(), "testdata/*.txtar", *update) }

// TestArraysWithGaps removes most elements of an array that lies in several pieces, and goes on with it.
func TestArraysWithGaps(t *testing.T) {
	r := shelltest.Execute(programs(), shelltest.Limits, `awk 'BEGIN {
		for (i = 0; i < 5000; i++) a[i] = i
		for (i = 0; i < 5000; i++) if (i % 7) delete a[i]
		for (i = 5000; i < 6000; i++) a[i] = i
		for (k in a) { n++; sum += k; if (a[k] != k) print "wrong:", k, a[k] }
		print n, sum, length(a)
		for (k in a) delete a[k]
		a["last"] = 1
		for (k in a) print k, length(a)
		delete a
		print length(a), ("last" in a)
	}'`)
	if want := "1715 7286285 1715\nlast 1\n0 0\n"; r.Out != want || r.Stopped != nil {
		t.Errorf("got %q, %v; want %q", r.Out, r.Stopped, want)
	}
}

// Every script ends, and only a bound ends it from outside.
func FuzzAwk(f *testing.F) {
	for _, s := range []string{`{print $2}`, `BEGIN{for(i in a)x=a[i]}`, `function f(a){return a*f(a-1)}{f(1)}`,
		`{gsub(/[a-z]+/,"<&>");NF=2}1`, `BEGIN{printf "%5.2f%c%s\n",1,65,"x"}`, `BEGIN{while(("echo a"|getline l)>0)print l}`,
		`/a/,/b/{next}{$5=1;print substr($0,2)}`} {
		f.Add(s, "a b c\nxyx yy\n\nlast")
	}
	limits := shelltest.Limits
	limits.Gas, limits.MemoryBytes, limits.OutputBytes = 5_000_000, 4<<20, 1<<16
	quote := strings.NewReplacer("'", `'\''`, "\x00", "")
	f.Fuzz(func(t *testing.T, script, input string) {
		r := shelltest.Execute(programs(), limits, "printf '%s' '"+quote.Replace(input)+"' | awk '"+quote.Replace(script)+"'")
		if _, ok := errors.AsType[*bound.Stopped](r.Stopped); r.Stopped != nil && !ok {
			t.Fatal(r.Stopped)
		}
	})
}

// TestArraysInArraysAreBounded holds the bounds of their depth and memory. Deleted arrays are free again.
func TestArraysInArraysAreBounded(t *testing.T) {
	l := shelltest.Limits
	l.MemoryBytes, l.Depth = 8<<20, 100
	for script, want := range map[string]string{
		`awk 'function f(a, n) { if (n > 0) f(a[1], n - 1); else a[1] = 1 } BEGIN { while (1) f(b[i++ % 7], 90) }'`:         "",
		`awk 'BEGIN { for (;;) a[i++][1] = 1 }'; echo $?`:                                                                   "137\n",
		`awk 'BEGIN { for (i = 0; i < 100; i++) { for (k = 0; k < 1000; k++) a[1][k] = k; delete a[1] } print length(a) }'`: "0\n",
		`awk 'BEGIN { a` + strings.Repeat("[1]", 1100) +
			` = 1 }' 2>&1 | tail -c 60`: "fatal: arrays lie in each other deeper than 1000 times\n",
		`awk 'function f(a, n) { a[1] = 1; if (n) delete b[1]; return a[1] + 0 } BEGIN { b[1][1] = 5; print f(b[1], 1), length(b) }'`: "0 0\n",
	} {
		l.Gas = 200_000_000
		r := shelltest.Execute(programs(), l, script)
		stopped, ok := errors.AsType[*bound.Stopped](r.Stopped)
		if want == "" && (!ok || stopped.Limit != bound.Gas) || want != "" && (r.Stopped != nil || !strings.HasSuffix(r.Out, want)) {
			t.Errorf("%s: got %q, %q, %v; want %q", script[:min(len(script), 80)], r.Out, r.Err, r.Stopped, want)
		}
	}
}
