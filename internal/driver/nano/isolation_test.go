package nano

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/space/spacetest"
)

// Code that pollutes an interpreter as far as it can.
var pollutions = map[string][]string{
	"python3": {
		"import builtins, sys, os, json, random, gc\nbuiltins.print = None; builtins.len = lambda x: 7; sys.modules['json'] = None; " +
			"sys.path.clear(); os.environ['X'] = 'y'; random.seed(5); gc.disable()",
		"import sys, decimal, locale\nsys.setrecursionlimit(50); decimal.getcontext().prec = 3; sys.set_int_max_str_digits(0); sys.stdout = " +
			"sys.stderr = None; sys.flags",
		"import os, sys\nopen('f', 'w').write('x' * 100000); os.chdir('/tmp'); os.umask(0); [open('f') for _ in range(50)]; x = " +
			"bytearray(b'secret' * 1000000)",
		"import ctypes.util" + "\nx = 1",
		"def f(): f()\nf()",
		"x = []\nwhile True: x.append(bytearray(1 << 20))",
		"import os; os.abort()",
		"import sys\nfor t in (int, str): t.__doc__\nsys.intern('secret' * 100); globals().update({str(i): i for i in range(10000)}); " +
			"type('A', (), {})",
		"import signal, atexit, warnings\nsignal.signal(2, lambda *a: None); atexit.register(print, 1); warnings.simplefilter('error'); 1/0",
	},
	"node": {
		"Object.prototype.x = 'secret'; Array.prototype.map = null; globalThis.console = null; Math.random = () => 4; JSON.parse = null; " +
			"delete globalThis.Promise",
		"process.env.X = 'y'; process.chdir('/tmp'); require('fs').writeFileSync('/workspace/f', 'x'.repeat(100000)); String.prototype.split = " +
			"() => 'secret'",
		"const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(7))",
		"function f() { f() } f()",
		"Symbol.for('secret'); for (let i = 0; i < 10000; i++) globalThis['g' + i] = { i }; setInterval(() => {}, 1000); process.exit(9)",
		"Object.defineProperty(Function.prototype, 'call', { get() { throw 1 } }); Error.prepareStackTrace = () => { throw 2 }; null.x",
		"process.on('exit', () => { throw 1 }); Promise.reject(1)",
	},
}

// Code that shows the state in which an interpreter begins.
var looks = map[string]string{
	"python3": "import sys, gc, os, hashlib, random\nprint(sorted(sys.modules), sorted(vars(__builtins__)), sys.path, dict(os.environ), " +
		"os.getcwd(), sys.getrecursionlimit(), gc.isenabled(), " +
		"len(gc.get_objects()), random.random(), id(object()), hash('x'), sorted(globals()), sys.getrefcount(None), os.listdir('/tmp'))",
	"node": "console.log(Object.getOwnPropertyNames(globalThis), Object.getOwnPropertyNames(Object.prototype), process.env, process.cwd(), " +
		"Math.random(), Date.now(), " +
		"[Array, Function, String, Promise, Error, Symbol].map(x => [Object.getOwnPropertyNames(x), " +
		"Object.getOwnPropertyNames(x.prototype).map(n => n + typeof Object.getOwnPropertyDescriptor(x.prototype, n).value)]), " +
		"process.memoryUsage && process.memoryUsage())",
}

var fixedWorld = map[string]string{seedName: "seed", timeName: "2026-01-02T03:04:05Z"}

// TestNothingOfAnExecutionIsLeftForTheNext pollutes interpreters and looks, from a space that has nothing to do with it, whether anything
// is different: in what the interpreter tells of itself, or in the gas that this takes, to the unit. Both spaces have the same single
// worker.
//
// AGENTBOX_POLLUTIONS says how often they are polluted; `make soak` does it a thousand times.
func TestNothingOfAnExecutionIsLeftForTheNext(t *testing.T) {
	t.Parallel()
	const shortPollutions, usualPollutions, every = 100, 300, 25
	runs := usualPollutions
	if testing.Short() {
		runs = shortPollutions
	}
	if asked := os.Getenv("AGENTBOX_POLLUTIONS"); asked != "" {
		var err error
		if runs, err = strconv.Atoi(asked); err != nil || runs < every {
			t.Fatalf("AGENTBOX_POLLUTIONS is %q, and is to be a number from %d", asked, every)
		}
	}
	h := spacetest.Host{Tier: openTier(t, 1), Permit: issue, Place: place, IDs: host(t).IDs}
	polluter, clean := h.Spec(t), h.Spec(t)
	dirty, still := h.Create(t, polluter), h.Create(t, clean)
	look := func(name string) string {
		option := map[string]string{"python3": "-c", "node": "-e"}[name]
		r := h.Exec(t, still, spacetest.Command{Space: clean.ID, Argv: []string{name, option, looks[name]}, MS: 60_000, Env: fixedWorld})
		if r.Code != 0 {
			t.Fatalf("%s: got %+v", name, r)
		}
		return fmt.Sprint(r.Gas, " ", r.Stdout, r.Stderr)
	}
	names := slices.Sorted(maps.Keys(pollutions))
	first := map[string]string{}
	h.Exec(t, still, spacetest.Shell(clean.ID, "true")) // the first command of a space makes its home
	for _, name := range names {
		first[name] = look(name)
	}
	for i := range runs {
		name := names[i%len(names)]
		scripts := pollutions[name]
		option := map[string]string{"python3": "-c", "node": "-e"}[name]
		if _, err := h.TryExec(t.Context(), dirty, spacetest.Command{Space: polluter.ID, Argv: []string{name, option,
			scripts[i/len(names)%len(scripts)]}, MS: 60_000}); err != nil {
			t.Fatalf("%s, %d: %v", name, i, err)
		}
		if i%every == every-1 {
			for _, name := range names {
				if got := look(name); got != first[name] {
					t.Fatalf("%s after %d runs:\n%s\nand at first\n%s", name, i+1, got, first[name])
				}
			}
		}
	}
}

// writer makes programs of random statements.
type writer struct {
	r      *rand.Rand
	b      strings.Builder
	python bool
}

func (w *writer) line(format string, values ...any) { w.say(fmt.Sprintf(format, values...)) }

func (w *writer) say(text string) { w.b.WriteString(text + "\n") }

// expression is one of numbers: a, b, c are variables.
func (w *writer) expression(depth int) string {
	if depth == 0 {
		return []string{"a", "b", "c", fmt.Sprint(w.r.IntN(1000)), fmt.Sprintf("%.3f", w.r.Float64()*100)}[w.r.IntN(5)]
	}
	x, y := w.expression(depth-1), w.expression(depth-1)
	switch w.r.IntN(6) {
	case 0:
		return fmt.Sprintf("(%s + %s)", x, y)
	case 1:
		return fmt.Sprintf("(%s - %s)", x, y)
	case 2:
		return fmt.Sprintf("(%s * 0.001 * %s)", x, y)
	case 3:
		return fmt.Sprintf("(%s / (1 + %s * %s))", x, y, y)
	case 4:
		if w.python {
			return fmt.Sprintf("math.sin(%s)", x)
		}
		return fmt.Sprintf("Math.sin(%s)", x)
	}
	if w.python {
		return fmt.Sprintf("max(%s, %s)", x, y)
	}
	return fmt.Sprintf("Math.max(%s, %s)", x, y)
}

// generated returns a program that computes, draws chance, looks at the clock, goes through sets and folders, fails, and writes files.
func generated(seed uint64, python bool) string {
	w := &writer{r: rand.New(rand.NewPCG(seed, 1)), python: python}
	pick := func(py, js string) string {
		if python {
			return py
		}
		return js
	}
	w.say(pick("import math, os, random, time, json, hashlib, uuid\na, b, c = 1, 2, 3\nd = {}",
		"const fs = require('fs'), crypto = require('crypto'); let a = 1, b = 2, c = 3, d = {}"))
	for i := range 5 + w.r.IntN(15) {
		v := []string{"a", "b", "c"}[w.r.IntN(3)]
		switch w.r.IntN(9) {
		case 0, 1:
			w.line("%s = %s", v, w.expression(1+w.r.IntN(3)))
		case 2:
			w.line(pick("%s = random.random() * %d", "%s = Math.random() * %d"), v, w.r.IntN(100))
		case 3:
			w.line(pick("time.sleep(%d / 7)\nprint(time.time(), time.perf_counter())", "console.log(Date.now() + %d, performance.now())"),
				w.r.IntN(50))
		case 4:
			w.line(pick("print({str(x * %d): x for x in range(%d)}, set(str(x) for x in range(%[2]d)), hash(str(a)))",
				"console.log(new Set([...Array(%[2]d).keys()].map(x => x * %[1]d)), d)"), w.r.IntN(1000), 1+w.r.IntN(40))
		case 5:
			w.line(pick("open('f%d', 'a').write(json.dumps([a, b, c, d]) + str(uuid.uuid4()))",
				"fs.appendFileSync('f%d', JSON.stringify([a, b, c, d]) + crypto.randomUUID())"), w.r.IntN(5))
		case 6:
			w.line(pick("for i in range(%d):\n d[str(i * %d)] = hashlib.sha256(str(a + i).encode()).hexdigest()",
				"for (let i = 0; i < %d; i++) d[i * %d] = crypto.createHash('sha256').update(String(a + i)).digest('hex')"), w.r.IntN(200),
				1+w.r.IntN(9))
		case 7:
			w.line(pick("print(os.listdir('.'), os.urandom(4).hex(), sorted(d)[:3])\nos.makedirs('d%d', exist_ok=True)",
				"console.log(fs.readdirSync('.'), crypto.randomBytes(4).toString('hex')); fs.mkdirSync('d%d', { recursive: true })"), i)
		case 8:
			w.line(pick("try:\n [][%d]\nexcept IndexError as e: print(repr(e), id(e) %% 4096)",
				"try { null[%d] } catch (e) { console.log(String(e), e.stack) }"), w.r.IntN(9))
		}
	}
	w.say(pick("print(a, b, c, d)", "console.log(a, b, c, d)"))
	if w.r.IntN(4) == 0 {
		w.say(pick("raise ValueError(a)", "throw new Error(a)"))
	}
	return w.b.String()
}

// TestTheSameInAnotherWorker runs programs in the workers of two tiers: what they print, the files that they leave and the gas that they
// take are equal.
func TestTheSameInAnotherWorker(t *testing.T) {
	t.Parallel()
	const programs = 200
	var results [2][programs]string
	var both sync.WaitGroup
	for i := range results {
		h := spacetest.Host{Tier: openTier(t, 1), Permit: issue, Place: place, IDs: host(t).IDs}
		both.Go(func() {
			for n := range programs {
				// The other tier runs them the other way round: what came before makes no difference.
				if i == 1 {
					n = programs - 1 - n
				}
				results[i][n] = runProgram(t, h, uint64(n))
			}
		})
	}
	both.Wait()
	failed := 0
	for n := range programs {
		if results[0][n] != results[1][n] || results[0][n] == "" {
			t.Errorf("program %d:\n%s\n%s\n%s", n, generated(uint64(n), n%2 == 0), results[0][n], results[1][n])
			if failed++; failed == 3 {
				break
			}
		}
	}
}

func runProgram(t *testing.T, h spacetest.Host, n uint64) string {
	spec := h.Spec(t)
	s, err := h.Tier.Create(t.Context(), createPermit(t, spec), spec)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer s.Close()
	argv := []string{"node", "-e", generated(n, false)}
	if n%2 == 0 {
		argv = []string{"python3", "-c", generated(n, true)}
	}
	r, err := h.TryExec(t.Context(), s, spacetest.Command{Space: spec.ID, Argv: argv, MS: 60_000, Env: fixedWorld})
	if err != nil {
		t.Errorf("program %d: %v", n, err)
		return ""
	}
	left := tree(t, spec.Dir)
	names := slices.Sorted(maps.Keys(left))
	var b strings.Builder
	fmt.Fprintln(&b, r.Code, r.Gas, r.Stdout, r.Stderr)
	for _, name := range names {
		rel, _ := filepath.Rel(spec.Dir, name)
		info, err := os.Lstat(name)
		if err != nil {
			t.Error(err)
			continue
		}
		fmt.Fprintln(&b, rel, left[name])
		if info.Mode().IsRegular() {
			fmt.Fprintln(&b, info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// TestTheFirstCommandCostsWhatTheOthersDo: nothing of a space tells a command how many ran before it, so that a replay in a space of its
// own costs the same.
func TestTheFirstCommandCostsWhatTheOthersDo(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	var first int64
	for i := range 3 {
		r := h.Exec(t, s, spacetest.Command{Space: spec.ID, Argv: []string{"/bin/bash", "-c", "ls -a /tmp ~; echo hi"},
			Env: map[string]string{"AGENTBOX_SEED": "1", "AGENTBOX_CLOCK": "2026-01-02T03:04:05Z"}, MS: 60_000})
		if i == 0 {
			first = r.Gas
		}
		if r.Code != 0 || r.Gas != first || first == 0 {
			t.Errorf("command %d costs %d, the first %d: %+v", i+1, r.Gas, first, r)
		}
	}
}
