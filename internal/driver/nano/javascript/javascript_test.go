package javascript

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "run the real Node and write what it prints")

// TestAsNode runs programs and compares what they print with what the real Node, of NodeVersion, printed.
func TestAsNode(t *testing.T) {
	files, err := filepath.Glob("testdata/node/*.*js")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no programs", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden := file + ".want"
			if *update {
				cmd := exec.Command("node", file)
				cmd.Stdin = strings.NewReader("first\nsecond\nlast")
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, os.Stderr
				if err := cmd.Run(); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			got := execute(t, world{args: []string{"node", "/space/" + name}, files: map[string]string{"/space/" + name: string(text)},
				stdin: "first\nsecond\nlast"})
			if got.out != string(want) || got.code != 0 {
				t.Errorf("exit %d, %s\n-want +got\n%s", got.code, got.err, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.out, "\n")))
			}
		})
	}
}

// lasted matches how long a test took.
var lasted = regexp.MustCompile(`(\(|duration_ms:? )[\d.]+(?:ms)?`)

// TestPrograms runs programs that are not Node's to judge.
func TestPrograms(t *testing.T) {
	const dir = "/space/"
	for name, c := range map[string]struct {
		args  []string
		files map[string]string
		stdin string
		out   string
		err   string // that is in it
		code  int
		lacks string
	}{
		"typescript": {
			args: []string{"bun", "run", "main.ts", "arg"},
			files: map[string]string{
				"main.ts": `import { area, type Shape } from "./shape";
import data from "./data.json";
enum Color { Red = "r", Green = "g" }
interface Named { name: string }
const s: Shape & Named = { w: 2, h: 3, name: "box" };
function first<T>(xs: readonly T[]): T | undefined { return xs[0]; }
class P { constructor(private readonly x: number, public y = 2) {} get sum(): number { return this.x + this.y; } }
console.log(area(s), Color.Green, first([7]), new P(1).sum, data.n satisfies number, process.argv.slice(2), import.meta.main,
	import.meta.file);
export {};
`,
				"shape.ts":  "export type Shape = { w: number; h: number };\nexport const area = (s: Shape): number => s.w * s.h;\n",
				"data.json": `{"n": 5}`,
			},
			out: "6 g 7 3 5 [ 'arg' ] true main.ts\n",
		},
		"an error in typescript names its line": {
			args: []string{"bun", "a.ts"},
			files: map[string]string{"a.ts": "interface A {\n  x: number;\n}\n\ntype B = A | null;\nfunction fail(b: B): never {\n  throw new " +
				"TypeError(`bad ${b}`);\n}\nfail(null);\n"},
			err:  "^\n\nTypeError: bad null\n    at fail (/space/a.ts:7:9)\n    at /space/a.ts:9:1\n\nBun v",
			code: 1,
		},
		"a syntax error in typescript": {
			args: []string{"bun", "a.ts"}, files: map[string]string{"a.ts": "const x: number = ;\n"},
			err: "SyntaxError: Unexpected \";\"\n    at /space/a.ts:1:19", code: 1,
		},
		"a syntax error": {
			args: []string{"node", "a.js"}, files: map[string]string{"a.js": "let a = 1;\nlet b = = 2;\n"},
			err: "/space/a.js:2\nlet b = = 2;\n", code: 1,
		},
		"an error is told as Node does": {
			args: []string{"node", "a.js"}, files: map[string]string{"a.js": "function f() {\n  null.x;\n}\nf();\n"},
			err: "/space/a.js:2\n  null.x;\n", code: 1,
		},
		"an error of another module": {
			args: []string{"node", "a.mjs"}, files: map[string]string{"a.mjs": "import './b.mjs';\n", "b.mjs": "\nthrow new Error('of b');\n"},
			err: "/space/b.mjs:2\nthrow new Error('of b');\n", code: 1,
		},
		"a rejection that nobody handles": {
			args: []string{"node", "-e", "Promise.reject(new Error('lost')); setTimeout(() => console.log('never'), 10)"},
			err:  "Error: lost", code: 1,
		},
		"a rejection of no error": {args: []string{"node", "-e", "Promise.reject(7)"}, err: "with the reason \"7\"", code: 1},
		"a rejection that is handled later": {
			args: []string{"node", "-e", "const p = Promise.reject(1); queueMicrotask(() => p.catch((x) => console.log('caught', x)))"},
			out:  "caught 1\n",
		},
		"a thrown value": {args: []string{"node", "-e", "throw { a: 1 }"}, err: "Uncaught { a: 1 }", code: 1},
		"listeners hear of what nobody caught": {
			args: []string{"node", "-e",
				"process.on('uncaughtException', (e) => console.log('heard', e.message)); setTimeout(() => console.log('on'), 1); throw new " +
					"Error('x')"},
			out: "heard x\non\n",
		},
		"print": {args: []string{"node", "-p", "[1, 2].map((x) => x * 2)"}, out: "[ 2, 4 ]\n"},
		"print with a module": {args: []string{"node", "-p", "require('path').join('a', 'b') + fs.existsSync('/space') + os.EOL.length"},
			out: "a/btrue1\n"},
		"eval of a module": {args: []string{"js", "-e", "import { sep } from 'path'; console.log(sep, await Promise.resolve(1))"},
			out: "/ 1\n"},
		"eval with await":   {args: []string{"node", "-e", "const x = await Promise.resolve(2); console.log(x)"}, out: "2\n"},
		"arguments of eval": {args: []string{"node", "-e", "console.log(process.argv.slice(1))", "a", "-b"}, out: "[ 'a', '-b' ]\n"},
		"standard input":    {args: []string{"node"}, stdin: "console.log('from', 'stdin')", out: "from stdin\n"},
		"a dash":            {args: []string{"node", "-", "x"}, stdin: "console.log(process.argv[2])", out: "x\n"},
		"version of node":   {args: []string{"node", "--version"}, out: NodeVersion + "\n"},
		"version of bun":    {args: []string{"bun", "--version"}, out: BunVersion + "\n"},
		"a bad option":      {args: []string{"node", "--nope"}, err: "bad option: --nope", code: 9, lacks: "option node --nope"},
		"no file":           {args: []string{"node", "none.js"}, err: "Cannot find module '/space/none.js'", code: 1},
		"tests of files": {
			args: []string{"node", "--test", "--test-reporter=tap"},
			files: map[string]string{"a.test.js": "const { test } = require('node:test'); test('one', () => {}); test('two', { skip: 'why' }, () " +
				"=> {});", "lib.js": "throw new Error('no " +
				"test')", "test/b.mjs": "import { describe, it } " +
				"from 'node:test'; describe('s', () => { it('in', () => {}); });"},
			out: "TAP version 13\n# Subtest: one\nok 1 - one\n  ---\n  duration_ms: T\n  type: 'test'\n  ...\n# Subtest: two\nok 2 - two # SKIP " +
				"why\n  ---\n  duration_ms: T\n  type: 'test'\n  ...\n# Subtest: s\n    # Subtest: in\n    ok 1 - in\n      ---\n      duration_ms: " +
				"T\n      type: 'test'\n      ...\n    1..1\nok 3 - s\n  ---\n  duration_ms: T\n  type: 'suite'\n  ...\n1..3\n# tests 3\n# suites " +
				"1\n# pass 2\n# fail 0\n# cancelled 0\n# skipped 1\n# todo 0\n# duration_ms T\n",
		},
		"a test that fails": {
			args: []string{"node", "--test", "a.test.mjs"},
			files: map[string]string{"a.test.mjs": "import { test } from 'node:test';\nimport assert from 'node:assert';\ntest('adds', () => { " +
				"assert.strictEqual(1 + 1, 3); });\n"},
			out: "✖ adds (T)\nℹ tests 1\nℹ suites 0\nℹ pass 0\nℹ fail 1\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms T\n\n✖ failing " +
				"tests:\n\ntest at a.test.mjs:3:1\n✖ adds (T)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  \n  2 !== " +
				"3\n  \n      at /space/a.test.mjs:3:29 {\n    generatedMessage: true,\n    code: 'ERR_ASSERTION',\n    actual: 2,\n    expected: " +
				"3,\n    operator: 'strictEqual',\n    diff: 'simple'\n  }\n",
			code: 1,
		},
		"a test by its name": {args: []string{"node", "--test-name-pattern=b", "a.js"},
			files: map[string]string{"a.js": "const { test } = require('node:test'); test('a', () => console.log('a')); test('b', () => " +
				"console.log('b'));"}, out: "b\n✔ b (T)\nℹ tests " +
				"1\nℹ suites 0\nℹ pass 1\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms T\n"},
		"an exit code": {args: []string{"node", "-e",
			"process.on('exit', (c) => console.log(c)); console.log('a'); process.exit(3); console.log('b')"}, out: "a\n3\n", code: 3},
		"process.exitCode": {args: []string{"node", "-e", "process.exitCode = 4"}, code: 4},
		"await for ever": {args: []string{"node", "a.mjs"}, files: map[string]string{"a.mjs": "await new Promise(() => {})"},
			err: "unsettled top-level await", code: 13},
		"a package that is not there": {
			args: []string{"node", "a.mjs"}, files: map[string]string{"a.mjs": "import _ from 'lodash/fp';"},
			err: "Cannot find package 'lodash' imported from /space/a.mjs", code: 1, lacks: "feature node the package lodash",
		},
		"require of a package that is not there": {args: []string{"node", "-e", "require('@scope/pkg')"}, err: "Cannot find module '@scope/pkg'",
			code: 1, lacks: "feature node the package @scope/pkg"},
		"processes": {
			args: []string{"node", "-e",
				"const { fork } = require('child_process'); try { fork('x.js'); } catch (e) { console.log(e.code, e.message); }"},
			out: "ERR_FEATURE_UNAVAILABLE child_process.fork is not available: a nano space has no processes that send each other messages; use " +
				"spawn\n", lacks: "feature node processes",
		},
		"a store that cannot follow is refused": {
			args: []string{"node", "a.mjs"},
			files: map[string]string{"a.mjs": "import './early.mjs'; import './late.mjs';\n",
				"early.mjs": "export async function f() { await 1; }\n",
				"late.mjs":  "import { AsyncLocalStorage } from 'async_hooks'; new AsyncLocalStorage();\n"},
			err: "a file with await was loaded before node:async_hooks", code: 1, lacks: "feature node async context",
		},
		"the network": {args: []string{"bun", "-e", "await fetch('http://x')"}, err: "fetch is not available", code: 1,
			lacks: "feature bun the network"},
		"servers": {args: []string{"node", "a.mjs"}, files: map[string]string{"a.mjs": "import http from 'http'; http.createServer()"},
			err: "http.createServer is not available", code: 1, lacks: "feature node the network"},
		"bun install": {args: []string{"bun", "install"}, err: "bun install is not available", code: 1, lacks: "feature bun bun install"},
		"packages": {
			args: []string{"node", "a.mjs"},
			files: map[string]string{
				"a.mjs": "import d, { named } from 'p'; import { x } from 'p/sub'; import c, { q } from 'cjs'; import { " +
					"createRequire } from 'module'; const require = createRequire(import.meta.url); console.log(d, named, x, c.q, q, require('p'), " +
					"require('./lib').v)",
				"node_modules/p/package.json":   `{"exports": {".": {"import": "./i.mjs", "require": "./r.cjs"}, "./*": "./inner/*.mjs"}}`,
				"node_modules/p/i.mjs":          "export default 'import'; export const named = 1;",
				"node_modules/p/r.cjs":          "module.exports = 'require'",
				"node_modules/p/inner/sub.mjs":  "export const x = 'sub'",
				"node_modules/cjs/package.json": `{"main": "lib/main"}`,
				"node_modules/cjs/lib/main.js":  "exports.q = 'cjs'; exports.self = require('../package.json').main",
				"lib/index.js":                  "exports.v = 'folder'",
			},
			out: "import 1 sub cjs cjs require folder\n",
		},
		"cycles of both kinds": {
			args: []string{"node", "a.cjs"},
			files: map[string]string{
				"a.cjs": "exports.a = 1; const b = require('./b.cjs'); console.log(b.seen); import('./c.mjs').then((c) => console.log(c.c()));",
				"b.cjs": "exports.seen = require('./a.cjs').a;", "c.mjs": "import { d } from './d.mjs'; export function c() { return d; }",
				"d.mjs": "import { c } from './c.mjs'; export const d = typeof c;",
			},
			out: "1\nfunction\n",
		},
		"require of a module": {args: []string{"node", "a.cjs"},
			files: map[string]string{"a.cjs": "const { x, default: d } = require('./m.mjs'); console.log(x, d)",
				"m.mjs": "export const x = 1; export default 2"}, out: "1 2\n"},
		"a type of module": {args: []string{"node", "a.js"}, files: map[string]string{"package.json": `{"type": "module"}`,
			"a.js": "console.log(typeof require, import.meta.filename)"}, out: "undefined /space/a.js\n"},
		"a query": {args: []string{"node", "a.mjs"},
			files: map[string]string{"a.mjs": "import { x } from './b.mjs?v=1'; console.log(x)", "b.mjs": "export const x = 1"}, out: "1\n"},
		"a script's first line": {args: []string{"node", "a.js"}, files: map[string]string{"a.js": "#!/usr/bin/env node\nconsole.log(1)"},
			out: "1\n"},
		"bun's files": {
			args: []string{"bun", "a.ts"},
			files: map[string]string{"a.ts": "const n: number = await Bun.write('d/o.json', JSON.stringify({ a: 1 })); const f = " +
				"Bun.file('d/o.json'); console.log(n, await f.exists(), (await f.json()).a, f.size, f.type, await Bun.file('none').exists(), " +
				"Bun.version);"},
			out: "7 true 1 7 application/json;charset=utf-8 false " + BunVersion + "\n",
		},
		"order of output": {args: []string{"node", "-e", "process.stdout.write('a'); process.stderr.write('b'); console.log('c')"}, out: "ac\n",
			err: "b"},
		"questions": {
			args: []string{"node", "a.mjs"}, stdin: "Ada\n42\n",
			files: map[string]string{"a.mjs": "import * as r from 'readline/promises'; const rl = r.createInterface({ input: process.stdin, " +
				"output: process.stdout }); const n = await rl.question('name? '); const a = await rl.question('age? '); console.log(`${n} ${a}`); " +
				"rl.close()"},
			out: "name? age? Ada 42\n",
		},
		"recursion": {args: []string{"node", "-e",
			"let n = 0; const f = () => { n++; f(); }; try { f(); } catch (e) { console.log(e instanceof RangeError, n > 1500); }"},
			out: "true true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for f, text := range c.files {
				files[dir+f] = text
			}
			got := execute(t, world{args: c.args, files: files, stdin: c.stdin})
			got.out = lasted.ReplaceAllString(got.out, "${1}T")
			if got.out != c.out || got.code != c.code || !strings.Contains(got.err, c.err) || c.err == "" && got.err != "" || got.stopped != nil {
				t.Errorf("exit %d, %v, want %d\nout %q\nwant %q\nerr:\n%s\nwant:\n%s", got.code, got.stopped, c.code, got.out, c.out, got.err, c.err)
			}
			if lacks := strings.Join(got.lacks, "; "); lacks != c.lacks {
				t.Errorf("it lacks %q, want %q", lacks, c.lacks)
			}
		})
	}
}
