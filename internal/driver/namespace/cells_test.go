//go:build linux

package namespace

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
)

// contextsOf are what tests of contexts call.
type contextsOf struct {
	*testing.T
	h    spacetest.Host
	spec space.Spec
	s    space.Instance
}

func contexts(t *testing.T) contextsOf {
	h, spec, s := workstation(t)
	return contextsOf{t, h, spec, s}
}

// cell is the action of a cell.
func (c contextsOf) cell(program, code string) spacetest.Command {
	option := map[string]string{"python3": "-c", "node": "-e"}[program]
	return spacetest.Shell(c.spec.ID, program+" --context=main "+option+" '"+strings.ReplaceAll(code, "'", `'\''`)+"'")
}

func (c contextsOf) python(code string) spacetest.Result {
	return c.h.Exec(c.T, c.s, c.cell("python3", code))
}

func (c contextsOf) node(code string) spacetest.Result {
	return c.h.Exec(c.T, c.s, c.cell("node", code))
}

// printed fails unless a cell has succeeded and printed a text.
func (c contextsOf) printed(r spacetest.Result, want string) {
	c.Helper()
	if r.Code != 0 || r.Stdout != want {
		c.Errorf("got %d, %q, %q; want %q", r.Code, r.Stdout, r.Stderr, want)
	}
}

func TestPythonContext(t *testing.T) {
	c := contexts(t)
	c.printed(c.python("import numpy as np\nx = np.arange(4)\nprint('begun')"), "begun\n")
	c.printed(c.python("int(x.sum())"), "6\n")
	c.printed(c.python("x;"), "")
	r := c.python("print('before')\n1 / 0")
	if r.Code != 1 || r.Stdout != "before\n" || !strings.Contains(r.Stderr, "ZeroDivisionError: division by zero") ||
		!strings.Contains(r.Stderr, "    1 / 0\n") || strings.Contains(r.Stderr, "cell.py") {
		t.Errorf("an error: got %+v", r)
	}
	if r := c.python("1 +"); r.Code != 1 || !strings.Contains(r.Stderr, "SyntaxError") || strings.Contains(r.Stderr, "cell.py") {
		t.Errorf("a syntax error: got %+v", r)
	}
	c.printed(c.python("await __import__('asyncio').sleep(0, 'slept')"), "'slept'\n")
	c.printed(c.python("import os, sys; print(os.getcwd(), sys.stdin.read(), __name__)"), "/workspace  __main__\n")
	c.printed(c.python("import subprocess; subprocess.run(['echo', 'child']); print(len(x))"), "child\n4\n")
	c.printed(c.python("import sys; sys.exit(0)"), "")
	c.printed(c.python("len(x)"), "4\n")
}

func TestJavaScriptContext(t *testing.T) {
	c := contexts(t)
	c.printed(c.node("const x = [1, 2, 3]; let { length: n } = x\nfunction twice(v) { return 2 * v }\nclass Point { a = 1 }"), "")
	c.printed(c.node("twice(n) + new Point().a"), "7\n")
	c.printed(c.node("const x = 5; console.log('said'); x"), "said\n5\n")
	c.printed(c.node("const y: number = 4; type T = string; y as number"), "4\n")
	c.printed(c.node("enum Colour { Red = 3 }\nColour.Red"), "3\n")
	c.printed(c.node("import fs, { existsSync } from 'node:fs'\nconst p = await fs.promises.readFile('/etc/hostname', 'utf8'); p.trim()"),
		"'space'\n")
	c.printed(c.node("existsSync('/etc/hostname') && require('path').basename('/a/b')"), "'b'\n")
	c.printed(c.node("({ a: [1, { b: 'ü' }] })"), "{ a: [ 1, { b: 'ü' } ] }\n")
	r := c.node("console.log('before'); throw new TypeError('no number')")
	if r.Code != 1 || r.Stdout != "before\n" || !strings.Contains(r.Stderr, "Uncaught TypeError: no number") ||
		strings.Contains(r.Stderr, "cell.js") {
		t.Errorf("an error: got %+v", r)
	}
	if r := c.node("let = = 1"); r.Code != 1 || !strings.Contains(r.Stderr, "SyntaxError") {
		t.Errorf("a syntax error: got %+v", r)
	}
	c.printed(c.node("twice(x)"), "10\n")
}

// forms returns the forms of the values that a cell has shown, by media type, one map for each value.
func forms(r spacetest.Result) (all []map[string]string) {
	for _, d := range r.Displays {
		for len(all) < d.Value {
			all = append(all, map[string]string{})
		}
		all[d.Value-1][d.Media] = string(d.Data)
	}
	return all
}

func TestCellShowsForms(t *testing.T) {
	c := contexts(t)
	r := c.python(`import pandas as pd
class T:
    def _repr_html_(self): return '<b>ü</b>'
    def _repr_svg_(self): return '<svg/>'
    def _repr_markdown_(self): return '# T'
    def _repr_latex_(self): return '$x$'
    def _repr_json_(self): return {'a': [1]}
    def _repr_png_(self): return b'no picture'
    def __repr__(self): return 'T!'
display(T())
pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})`)
	all := forms(r)
	if r.Code != 0 || len(all) != 2 {
		t.Fatalf("got %+v", r)
	}
	want := map[string]string{"text/plain": "T!", "text/html": "<b>ü</b>", "image/svg+xml": "<svg/>", "text/markdown": "# T",
		"text/latex": "$x$", "application/json": `{"a": [1]}`}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Errorf("the forms of a value: %s", diff)
	}
	if !strings.Contains(all[1]["text/html"], "<table") || r.Displays[len(r.Displays)-1].Rows != 2 ||
		!r.Displays[len(r.Displays)-1].Result {
		t.Errorf("a frame of pandas: got %+v", r.Displays)
	}
	for v, run := range map[string]func(string) spacetest.Result{"[{'a': 1, 'b': '<i>'}]": c.python, "[{ a: 1, b: '<i>' }]": c.node} {
		r := run(v)
		if got := forms(r); len(got) != 1 || !strings.Contains(got[0]["application/json"], `"a":`) {
			t.Errorf("%s: got %+v", v, r)
		}
	}
	r = c.node(`({ [Symbol.for("Jupyter.display")]: () => ({ "text/html": "<b>j</b>", "text/plain": "j" }) })`)
	if got := forms(r); len(got) != 1 || got[0]["text/html"] != "<b>j</b>" {
		t.Errorf("the forms of a value of JavaScript: got %+v", r)
	}
	r = c.python("for i in range(70): display(i)")
	if len(r.Displays) != space.MaxDisplays || !strings.Contains(r.Stderr, "6 of the forms of what the cell shows are left out") {
		t.Errorf("more forms than there is room for: got %d, %q", len(r.Displays), r.Stderr)
	}
}

func TestFiguresAreShown(t *testing.T) {
	c := contexts(t)
	for name, x := range map[string]struct{ code, want string }{
		"line": {"plt.plot([1, 2, 3], [2, 4, 8], label='growth'); plt.title('T'); plt.xlabel('Time (s)')",
			`"type": "line", "title": "T", "elements": [{"label": "growth", "points": [[1, 2], [2, 4], [3, 8]]}], "x_label": "Time (s)"`},
		"scatter": {"plt.scatter([1, 2], [3, 4], label='d')",
			`"type": "scatter", "title": "", "elements": [{"label": "d", "points": [[1.0, 3.0], [2.0, 4.0]]}]`},
		"bar": {"plt.bar(['a', 'b'], [3, 5]); plt.ylabel('n')", `"type": "bar", "title": "", "elements": [{"label": "a", "group": "", "value": 3}, ` +
			`{"label": "b", "group": "", "value": 5}], "x_label": "", "y_label": "n"`},
		"pie": {"plt.pie([1, 3], labels=['x', 'y'])", `"type": "pie", "title": "", "elements": [{"label": "x", "angle": 90.0, "radius": 1.0}, ` +
			`{"label": "y", "angle": 270.0, "radius": 1.0}]`},
		"box": {"plt.boxplot([1, 2, 3, 4, 20], labels=['b'])", `"elements": [{"label": "b", "min": 1, "first_quartile": 2.0, "median": 3.0, ` +
			`"third_quartile": 4.0, "max": 4, "outliers": [20]}]`},
		"superchart": {"f, (a, b) = plt.subplots(1, 2); f.suptitle('both'); a.plot([1, 2]); b.bar(['q'], [1])",
			`{"type": "superchart", "title": "both", "elements": [{"type": "line"`},
		"dates":  {"import datetime as dt; plt.plot([dt.date(2026, 1, 1), dt.date(2026, 1, 2)], [1, 2])", `"x_scale": "datetime"`},
		"words":  {"plt.plot(['p', 'q'], [1, 2])", `"x_scale": "categorical"`},
		"log":    {"plt.plot([1, 10], [1, 2]); plt.xscale('log'); plt.show()", `"x_scale": "log"`},
		"nobody": {"plt.figure().add_subplot().imshow([[1]])", `{"type": "unknown"`},
	} {
		r := c.python("import matplotlib.pyplot as plt\n" + x.code + ";")
		all := forms(r)
		if r.Code != 0 || len(all) != 1 || r.Stderr != "" {
			t.Errorf("%s: got %d, %q, %q, %d values", name, r.Code, r.Stdout, r.Stderr, len(all))
			continue
		}
		if !strings.HasPrefix(all[0]["image/png"], "\x89PNG") || !strings.Contains(all[0][space.DisplayChart], x.want) {
			t.Errorf("%s: got %s", name, all[0][space.DisplayChart])
		}
	}
	r := c.python("fig = plt.figure(); plt.plot([1]); fig")
	if all := forms(r); len(all) != 1 || !r.Displays[0].Result {
		t.Errorf("a figure as the last expression: got %d values", len(all))
	}
}

// An interrupt ends the cell and not its context.
func TestCellIsInterrupted(t *testing.T) {
	c := contexts(t)
	for program, code := range map[string][3]string{
		"python3": {"x = 7", "print('begun', flush=True)\nwhile True: pass", "x"},
		"node":    {"x = 7", "console.log('begun'); while (true) {}", "x"},
	} {
		run := func(code string, ms int64) spacetest.Result {
			a := c.cell(program, code)
			a.MS = ms
			return c.h.Exec(t, c.s, a)
		}
		c.printed(run(code[0]+";0;", 60_000), map[string]string{"python3": "", "node": "0\n"}[program])
		r := run(code[1], 1000)
		if !r.TimedOut || r.Code != timedOut || r.Stdout != "begun\n" || !strings.Contains(r.Stderr, "keeps its variables") {
			t.Errorf("%s: got %+v", program, r)
		}
		c.printed(run(code[2], 60_000), "7\n")
	}
	c.printed(c.node("const never = 1"), "")
	a := c.cell("node", "await new Promise(() => setInterval(() => {}, 1000))")
	a.MS = 500
	if r := c.h.Exec(t, c.s, a); !r.TimedOut || !strings.Contains(r.Stderr, "keeps its variables") {
		t.Errorf("a promise that is never kept: got %+v", r)
	}
	c.printed(c.node("never"), "1\n")
	a = c.cell("python3", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass")
	a.MS = 300
	if r := c.h.Exec(t, c.s, a); !r.TimedOut || !strings.Contains(r.Stderr, "the process of the context has ended") {
		t.Errorf("a cell that ignores interrupts: got %+v", r)
	}
	r := c.python("x")
	if r.Code != 1 || !strings.Contains(r.Stderr, "begins anew") || !strings.Contains(r.Stderr, "NameError") {
		t.Errorf("after the end of the process: got %+v", r)
	}
	c.printed(c.python("x = 8"), "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if r, err := c.h.TryExec(ctx, c.s, c.cell("python3", "import time; time.sleep(60)")); err != nil || !r.Canceled {
		t.Errorf("canceled: got %+v, %v", r, err)
	}
	c.printed(c.python("x"), "8\n")
}

func TestContextEnds(t *testing.T) {
	c := contexts(t)
	c.printed(c.python("x = 1"), "")
	files := func(command string) spacetest.Result { return c.h.Exec(t, c.s, spacetest.Shell(c.spec.ID, command)) }
	file := space.ContextFolder + "/main.py"
	r := files("head -c 19 " + file)
	c.printed(r, "agentbox context 1\n")
	files("cp " + file + " earlier")
	c.printed(c.python("x = 2"), "")
	files("cp earlier " + file) // a rewind
	if r := c.python("x"); !strings.Contains(r.Stderr, "begins anew") || !strings.Contains(r.Stderr, "NameError") {
		t.Errorf("after a rewind: got %+v", r)
	}
	c.printed(c.python("x = 3"), "")
	files("rm " + file)
	if r := c.python("x"); strings.Contains(r.Stderr, "begins anew") || !strings.Contains(r.Stderr, "NameError") {
		t.Errorf("after its deletion: got %+v", r)
	}
	r = c.python("import os; print('said', flush=True); os._exit(3)")
	if r.Code != 3 || r.Stdout != "said\n" || !strings.Contains(r.Stderr, "has ended") {
		t.Errorf("a cell that ends its process: got %+v", r)
	}
	c.s.(space.ContextEnder).EndContext("main", space.Python)
	c.printed(c.python("x = 4; import subprocess; p = subprocess.Popen(['sleep', '77'])"), "")
	c.s.(space.ContextEnder).EndContext("main", space.Python)
	c.printed(files("ps -e -o args | grep -c '[s]leep 77\\|cell.p[y]' || true"), "0\n")
	r = c.python("b = bytearray(900 << 20)")
	if r.Limit != "memory_bytes" {
		t.Errorf("more memory than the space has: got %+v", r)
	}
	r = c.python("while True: print('x' * 1000000)")
	if r.Limit != "output_bytes" {
		t.Errorf("more output than a command may have: got %+v", r.Exit)
	}
	for i := range maxInterpreters {
		a := c.cell("python3", "1")
		a.Argv[2] = strings.Replace(a.Argv[2], "main", fmt.Sprint("c", i), 1)
		if _, err := c.h.TryExec(t.Context(), c.s, a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.h.TryExec(t.Context(), c.s, c.cell("python3", "1")); fault.CodeOf(err) != "contexts_too_many" {
		t.Errorf("one context more: got %v", err)
	}
}

// Code of a cell shares its process with the program that speaks to the daemon. Its messages are bounded, and about itself.
func TestCellForgesMessages(t *testing.T) {
	c := contexts(t)
	for _, code := range []string{
		"import os\nfor fd in range(3, 256):\n    try: os.write(fd, b'\\xff' * 4096)\n    except OSError: pass",
		"import os\nfor fd in range(3, 256):\n    try: os.write(fd, b'\\0\\0\\0\\4nope')\n    except OSError: pass",
		"import os\nfor fd in range(3, 256):\n    try: [os.write(fd, b'\\0\\0\\0\\x10{\"kind\":\"shown\"}') for _ in range(2000)]\n" +
			"    except OSError: pass",
	} {
		if r, err := c.h.TryExec(t.Context(), c.s, c.cell("python3", code)); fault.CodeOf(err) != "context_messages_invalid" {
			t.Errorf("%q: got %+v, %v", code, r, err)
		}
	}
	r := c.python("import os\nos.close(1); os.close(2)")
	if r.Code != 0 {
		t.Errorf("a cell that closes its output: got %+v", r)
	}
	c.s.(space.ContextEnder).EndContext("main", space.Python)
	c.printed(c.python(`import os, threading, time
def late():
    while not os.path.exists('go'): time.sleep(.01)
    print('late', flush=True)
    open('gone', 'w').close()
threading.Thread(target=late).start()
print('first', flush=True)`), "first\n")
	c.h.Exec(t, c.s, spacetest.Shell(c.spec.ID, "touch go; while [ ! -e gone ]; do sleep .01; done"))
	c.python("pass") // on a busy machine what was printed between two cells can arrive with this one, and never later
	c.printed(c.python("print('second')"), "second\n")
}
