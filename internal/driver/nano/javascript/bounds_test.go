package javascript

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
)

// TestTheSameTwice runs a program twice with the same seed, and with another.
func TestTheSameTwice(t *testing.T) {
	w := world{args: []string{"node", "/space/a.mjs"}, files: map[string]string{"/space/a.mjs": `
		import fs from "fs"; import { randomUUID } from "crypto";
		const m = new Map(); for (let i = 0; i < 200; i++) m.set(Math.random(), randomUUID());
		console.log([...m].slice(0, 3), Date.now(), performance.now(), process.hrtime(), new Date());
		await new Promise((r) => setTimeout(r, 1234.5));
		console.log(Date.now(), [3, 1, 2].sort(() => Math.random() - 0.5));
		fs.writeFileSync("out", JSON.stringify([...m.values()])); console.log(fs.statSync("out").mtimeMs);
	`}}
	first, again := execute(t, w), execute(t, w)
	if first.code != 0 || first.out != again.out || first.gas != again.gas || first.files["out"] != again.files["out"] {
		t.Errorf("the same program did something else: %d and %d gas, exit %d %s\n%s\n%s", first.gas, again.gas, first.code, first.err, first.out,
			again.out)
	}
	w.seed = 1
	if other := execute(t, w); other.out == first.out || other.files["out"] == first.files["out"] {
		t.Error("another seed changed nothing")
	}
	if first.slept < 1200*time.Millisecond {
		t.Errorf("it slept %s", first.slept)
	}
}

// TestRunsAreApart spoils everything that a program can reach, and looks for it in the next run.
func TestRunsAreApart(t *testing.T) {
	spoil := `globalThis.leak = "secret"; Array.prototype.leak = 1; Object.prototype.leak = 2; JSON.parse = () => 3; process.env.LEAK = "x"; console.log = () => {};
		require("fs").readFileSync = () => 4; Math.random = () => 5; Promise.prototype.then = null; Error.prepareStackTrace = null; const big = "secret".repeat(1e5);`
	look := `console.log(typeof leak, [].leak, ({}).leak, JSON.parse("1"), process.env.LEAK, typeof fs.readFileSync("/space/f", "utf8"), ` +
		`Math.random() !== 5, typeof Promise.resolve().then);`
	const want = "undefined undefined undefined 1 undefined string true function\n"
	runs := 30
	if testing.Short() {
		runs = 3
	}
	files := map[string]string{"/space/f": "f"}
	gas := int64(0)
	for range runs {
		execute(t, world{args: []string{"node", "-e", spoil}})
		got := execute(t, world{args: []string{"node", "-e", "const fs = require('fs');" + look}, files: files})
		if got.out != want || gas != 0 && got.gas != gas {
			t.Fatalf("a run found %q, %s, with %d gas, before %d", got.out, got.err, got.gas, gas)
		}
		gas = got.gas
	}
}

// TestWhatARunIsTold: its arguments and its environment come as they are given, whatever is in them, and whatever is done with the
// environment first.
func TestWhatARunIsTold(t *testing.T) {
	env := []string{"Z=1", "A=", "EQ=a=b=c", "__proto__=p", "LINES=a\nb", "UTF=ä😀", "BAD=a\xffb", "Z=2", "no pair", "10=ten"}
	whole := `{"10":"ten","A":"","BAD":"a\ufffdb","EQ":"a=b=c","HOME":"/space","LINES":"a\nb","PATH":"/bin","UTF":"ä😀","Z":"2","__proto__":"p"}`
	for code, want := range map[string]string{
		"console.log(JSON.stringify(process.env).replace('\ufffd', '\\\\ufffd'))": whole,
		"console.log(JSON.stringify(process.argv))": `["/bin/node","","two ` +
			`words","a\nb","--","ä"]`,
		"console.log('A' in process.env, 'B' in process.env)":                                                      "true false",
		"process.env.N = 7; console.log(typeof process.env.N, process.env.Z)":                                      "string 2",
		"delete process.env.Z; console.log(process.env.Z, Object.keys(process.env).length)":                        "undefined 9",
		"console.log(Object.getOwnPropertyDescriptor(process.env, 'Z').value)":                                     "2",
		"console.log(Object.getPrototypeOf(process.env), Reflect.ownKeys(process.env).length)":                     "null 10",
		"Object.defineProperty(process.env, 'D', {value: '1', enumerable: true}); console.log({...process.env}.D)": "1",
		"console.log(process.version, Object.keys(process.versions).join(), process.title, process.cwd())": NodeVersion +
			" node,quickjs node /space",
	} {
		got := execute(t, world{args: []string{"node", "-e", code, "", "two words", "a\nb", "--", "ä"}, env: env})
		if got.out != want+"\n" {
			t.Errorf("%s: got %q %s, want %q", code, got.out, got.err, want)
		}
	}
}

// TestAFileIsTransformedOnce holds a file of TypeScript to the gas of one transformation, and one whose error is told to that of two.
func TestAFileIsTransformedOnce(t *testing.T) {
	const size = 100_000
	comment := "/*" + strings.Repeat("x", size) + "*/\n"
	for code, times := range map[string]int64{"const x: number = 1;\n": 1, "throw new Error('x' as string);\n": 2} {
		got := execute(t, world{args: []string{"bun", "/space/a.ts"}, files: map[string]string{"/space/a.ts": comment + code}})
		if most := times*size*transformPerByte + size*50; got.gas > most || got.gas < times*size*transformPerByte {
			t.Errorf("%q took %d gas, want that of %d transformations, %d to %d", code, got.gas, times, times*size*transformPerByte, most)
		}
	}
	again := execute(t, world{args: []string{"bun", "/space/a.ts"}, files: map[string]string{"/space/a.ts": `
		import type { A } from "./none";
		const n: number = (globalThis.n ?? 0) + 1; globalThis.n = n;
		if (n === 1) { require("fs").writeFileSync("/space/a.ts",
			"console.log('new', globalThis.n as number)"); delete require.cache["/space/a.ts"]; require("/space/a.ts"); }
		console.log("old", n, require.cache["/space/a.ts"] !== undefined, require.main === module);
	`}})
	if want := "new 1\nold 1 true true\n"; again.out != want {
		t.Errorf("a file that has changed itself: got %q %s, want %q", again.out, again.err, want)
	}
}

// TestBounds meets each bound. Earlier output has arrived.
func TestBounds(t *testing.T) {
	said := "a\nb\n" + `┌─────────┬────────┐
│ (index) │ Values │
├─────────┼────────┤
│ 0       │ 'c'    │
└─────────┴────────┘
`
	limited := func(change func(*bound.Limits)) bound.Limits {
		l := plenty
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		code    string
		limit   bound.Limits
		stopped bound.Stopped
		hit     string
		exit    int
		err     string
		out     string
	}{
		"gas": {code: "for (;;);", limit: limited(func(l *bound.Limits) { l.Gas = 50_000_000 }),
			stopped: bound.Stopped{Limit: bound.Gas}},
		"gas, said before": {code: "console.log('a'); process.stdout.write('b\\n'); console.table(['c']); for (;;);",
			limit: limited(func(l *bound.Limits) { l.Gas = 200_000_000 }), stopped: bound.Stopped{Limit: bound.Gas}, out: said},
		"gas in a job": {code: "const f = () => Promise.resolve().then(f); f()", limit: limited(func(l *bound.Limits) { l.Gas = 50_000_000 }),
			stopped: bound.Stopped{Limit: bound.Gas}},
		"gas, caught": {code: "for (;;) { try { for (;;); } catch {} finally { continue; } }", limit: limited(func(l *bound.Limits) {
			l.Gas = 50_000_000
		}), stopped: bound.Stopped{Limit: bound.Gas}},
		"a regexp": {code: "/^(a+)+$/.test('a'.repeat(40) + 'b')", limit: limited(func(l *bound.Limits) { l.Gas = 100_000_000 }),
			stopped: bound.Stopped{Limit: bound.Gas}},
		"a host's work": {code: "const b = Buffer.alloc(1e6); for (;;) require('crypto').createHash('sha256').update(b).digest()",
			limit: limited(func(l *bound.Limits) { l.Gas = 200_000_000 }), stopped: bound.Stopped{Limit: bound.Gas}},
		"time":        {code: "setTimeout(() => {}, 2e9)", stopped: bound.Stopped{TimedOut: true}},
		"an interval": {code: "setInterval(() => {}, 1000)", stopped: bound.Stopped{TimedOut: true}},
		"output": {code: "for (;;) console.log('x'.repeat(1000))", limit: limited(func(l *bound.Limits) { l.OutputBytes = 100_000 }),
			stopped: bound.Stopped{Limit: bound.Output}},
		"memory": {code: "const all = []; for (;;) all.push(new Array(10000).fill(7))", limit: limited(func(l *bound.Limits) {
			l.MemoryBytes = 32 << 20
		}), exit: 134, err: "JavaScript heap out of memory", hit: bound.Memory},
		"memory, caught": {
			code: "try { new Uint8Array(1e9); } catch (e) { console.log(e.name); }", limit: limited(func(l *bound.Limits) {
				l.MemoryBytes = 32 << 20
			}), out: "InternalError\n",
		},
		"files": {code: "for (let i = 0; ; i++) try { fs.openSync('/space/f' + i, 'w') } catch (e) { console.log(e.code); break }",
			out: "EMFILE\n", hit: "open_files"},
	} {
		t.Run(name, func(t *testing.T) {
			code := c.code
			if strings.Contains(code, "fs.") {
				code = "const fs = require('fs');" + code
			}
			if c.limit == (bound.Limits{}) {
				c.limit = plenty
			}
			got := execute(t, world{args: []string{"node", "-e", code}, limit: c.limit})
			var stopped bound.Stopped
			if got.stopped != nil {
				stopped = *got.stopped
			}
			if stopped != c.stopped || got.code != c.exit || !strings.Contains(got.err, c.err) || c.out != "" && got.out != c.out {
				t.Errorf("stopped %+v, exit %d, out %.100q, err %.200q", stopped, got.code, got.out, got.err)
			}
			if c.hit != got.hit {
				t.Errorf("it hit %q, want %q", got.hit, c.hit)
			}
			if got.gas > c.limit.Gas+c.limit.Gas/10 {
				t.Errorf("it used %d gas of %d", got.gas, c.limit.Gas)
			}
		})
	}
}

// TestDeadline ends programs that go on, by work and by waiting.
func TestDeadline(t *testing.T) {
	for _, code := range []string{"for (;;);", "const f = () => Promise.resolve().then(f); f()", "setInterval(() => {}, 10)",
		"try { for (;;); } catch {} finally { for (;;); }"} {
		got := execute(t, world{args: []string{"node", "-e", code}, until: 100 * time.Millisecond})
		if got.signal != 15 || got.stopped != nil || got.gas > 200_000_000 {
			t.Errorf("%s ended by signal %d with %d, %v and %d gas", code, got.signal, got.code, got.stopped, got.gas)
		}
	}
}

// TestDepth nests everything that recurses in the interpreter: whatever is the end of it, it is an error or a crash and never success.
func TestDepth(t *testing.T) {
	for name, code := range map[string]string{
		"functions": "const f = () => f() + 1; try { f(); } catch (e) { console.log(e.name); }",
		"getters":   "const o = { get a() { return this.a; } }; try { o.a; } catch (e) { console.log(e.name); }",
		"json": "try { JSON.parse('['.repeat(1e5)); } catch (e) { console.log(e.name === 'SyntaxError' || e.name === 'RangeError' ? " +
			"'RangeError' : e.name); }",
		"stringify": "let o = []; for (let i = 0; i < 4e3; i++) o = [o]; try { JSON.stringify(o); console.log('RangeError'); } catch (e) { " +
			"console.log(e.name); }",
		"parser":     "try { eval('('.repeat(1e5)); } catch (e) { console.log(e.name === 'SyntaxError' ? 'RangeError' : e.name); }",
		"regexp":     "try { new RegExp('('.repeat(1e5)); } catch (e) { console.log(e.name === 'SyntaxError' ? 'RangeError' : e.name); }",
		"proxies":    "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); try { p.x; } catch (e) { console.log(e.name); }",
		"promises":   "let p = Promise.resolve(); for (let i = 0; i < 1e5; i++) p = p.then(() => {}); p.then(() => console.log('RangeError'));",
		"generators": "function* g() { yield* g(); } try { g().next(); } catch (e) { console.log(e.name); }",
		"sort":       "const f = () => [2, 1].sort(f); try { f(); } catch (e) { console.log(e.name); }",
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, world{args: []string{"node", "-e", code}})
			if got.stopped != nil || (got.out != "RangeError\n" || got.code != 0) && got.code != 134 {
				t.Errorf("exit %d, %v, out %.200q, err %.400q", got.code, got.stopped, got.out, got.err)
			}
			if got.code == 134 {
				t.Logf("it ends as a crash: %s", got.err)
			}
		})
	}
}

// TestTheImageIsTheSame makes the interpreter twice.
func TestTheImageIsTheSame(t *testing.T) {
	r := runtimeOf(t)
	other, err := compiled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if r.Hash() != other.Hash() {
		t.Error("the interpreter was made twice and is not the same")
	}
}

func BenchmarkPrograms(b *testing.B) {
	typescript := "interface Row { name: string; n: number }\nconst rows: Row[] = [{ name: 'a', n: 1 }, { name: 'b', n: 2 }];\nconst sum = " +
		"(r: readonly Row[]): number => r.reduce((s, x) => s + x.n, 0);\nenum E { A, B }\nconsole.log(sum(rows), E.B);\n"
	for name, w := range map[string]world{
		"fresh":      {args: []string{"node", "-e", "console.log(1+1)"}},
		"typescript": {args: []string{"bun", "/space/a.ts"}, files: map[string]string{"/space/a.ts": typescript}},
		"objects": {args: []string{"node", "-e",
			"const a = []; for (let i = 0; i < 1000; i++) a.push({ id: i, name: 'n' + i }); a.sort((x, y) => y.id - x.id); " +
				"console.log(JSON.stringify(a).length)"}},
		"lines": {args: []string{"node", "-e", "for (let i = 0; i < 1000; i++) console.log('line', i)"}},
		"loop":  {args: []string{"node", "-e", "let x = 0; for (let i = 0; i < 3e6; i++) x += i % 7; console.log(x)"}},
	} {
		b.Run(name, func(b *testing.B) {
			var gas int64
			for b.Loop() {
				r := execute(b, w)
				if r.code != 0 {
					b.Fatal(r.err)
				}
				gas = r.gas
			}
			b.ReportMetric(float64(gas), "gas/op")
		})
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if r, err := shared(); err == nil {
		if err := r.Close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
