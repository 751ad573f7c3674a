package nano

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
)

// notebook runs cells in a space of its own.
type notebook struct {
	t    *testing.T
	h    spacetest.Host
	spec space.Spec
	s    space.Instance
}

func newNotebook(t *testing.T, h spacetest.Host) *notebook {
	t.Helper()
	n := &notebook{t: t, h: h, spec: h.Spec(t)}
	n.spec.Limits.MemoryBytes = 256 << 20
	n.s = h.Create(t, n.spec)
	return n
}

// fork returns a notebook whose space begins with the files of this one.
func (n *notebook) fork() *notebook {
	n.t.Helper()
	f := &notebook{t: n.t, h: n.h, spec: n.h.Spec(n.t)}
	f.spec.Limits = n.spec.Limits
	if err := os.CopyFS(f.spec.Dir, os.DirFS(n.spec.Dir)); err != nil {
		n.t.Fatal(err)
	}
	f.s = n.h.Create(n.t, f.spec)
	return f
}

func (n *notebook) sh(script string) spacetest.Result {
	n.t.Helper()
	return n.h.Exec(n.t, n.s, spacetest.Shell(n.spec.ID, script))
}

// run runs a cell.
func (n *notebook) run(language, code string) spacetest.Result {
	n.t.Helper()
	c := spacetest.Shell(n.spec.ID, "")
	c.Argv = []string{language, "--context", "c", "-c", code}
	return n.h.Exec(n.t, n.s, c)
}

// want runs a cell that prints something.
func (n *notebook) want(language, code, stdout string) {
	n.t.Helper()
	r := n.run(language, code)
	r.Stderr = compiledOnce.ReplaceAllString(r.Stderr, "") // in a clone whose cache is empty
	if r.Stdout != stdout || r.Code != 0 || r.Stderr != "" {
		n.t.Errorf("%s: %q, code %d, stderr %s; want %q", code, r.Stdout, r.Code, r.Stderr, stdout)
	}
}

// compiledOnce is what the first command of a machine says while it waits for its interpreter.
var compiledOnce = regexp.MustCompile(`^(\r?compiling \w+ for this machine, once: \d+ s so far)+\n`)

// file returns where the context of a language lies.
func (n *notebook) file(language string) string {
	return filepath.Join(n.spec.Dir, ".agentbox", "contexts", "c."+map[string]string{"python": "py", "js": "js"}[language])
}

func (n *notebook) read(language string) []byte {
	n.t.Helper()
	b, err := os.ReadFile(n.file(language))
	if err != nil {
		n.t.Fatal(err)
	}
	return b
}

func (n *notebook) write(language string, b []byte) {
	n.t.Helper()
	if err := os.WriteFile(n.file(language), b, 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func TestAContextKeepsWhatItsCellsHaveMade(t *testing.T) {
	t.Parallel()
	h := host(t)
	n := newNotebook(t, h)
	n.want("python", "x = 41; print('said')", "said\n")
	n.want("python", "x + 1", "42\n")
	n.want("python", "import math as m\ndef f(n): return n * x\nclass P: pass\ng = (i * i for i in range(10))\nnext(g); next(g);", "")
	n.want("python", "next(g), f(2), m.floor(2.5), P().__class__.__name__, _", "(4, 82, 2, 'P', 42)\n")
	n.want("python", "None", "")
	n.want("python", "display('a'); 'b'", "'a'\n'b'\n")
	n.want("js", "const x: number = 41; function f(n) { return n * x }\nfunction* numbers() { let i = 0; while (true) yield i++ }\nlet g = "+
		"numbers(); void g.next()", "")
	n.want("js", "g.next().value + f(1)", "42\n")
	n.want("js", "import { join } from 'path'", "")
	n.want("js", "join('a', 'b')", "'a/b'\n")
	for _, x := range []struct{ script, stdout string }{
		{`echo 'x += 1; x' >cell; python3 --context c cell`, "42\n"},
		{`echo 'x += 1; x' | python3 --context=c -`, "43\n"},
		{`python3 --context c <<<'x'; python3 --context d -c 'x = 1'; python3 --context d -c 'x'; ls .agentbox/contexts`,
			"43\n1\nc.js\nc.py\nd.py\n"},
		{`echo 'x' >cell.js; js --context c cell.js; echo 'x + 1' | js --context=c -; js --context c -e x`, "41\n42\n41\n"},
		{`cd /tmp; python3 --context c -c x`, "43\n"},
	} {
		if r := n.sh(x.script); r.Stdout != x.stdout || r.Code != 0 || r.Stderr != "" {
			t.Errorf("%s: %q, code %d, stderr %s; want %q", x.script, r.Stdout, r.Code, r.Stderr, x.stdout)
		}
	}
}

func TestAContextIsForkedAndRewoundWithTheFiles(t *testing.T) {
	h := host(t)
	for _, language := range []string{"python", "js"} {
		n := newNotebook(t, h)
		n.want(language, map[string]string{"python": "x = [1]", "js": "let x = [1]"}[language], "")
		before := n.read(language)
		f := n.fork()
		add := map[string]string{"python": "x.append(%d); len(x)", "js": "x.push(%d); x.length"}[language]
		sum := map[string]string{"python": "sum(x)", "js": "x.reduce((a, b) => a + b)"}[language]
		n.want(language, fmt.Sprintf(add, 2), "2\n")
		f.want(language, fmt.Sprintf(add, 30), "2\n")
		f.want(language, fmt.Sprintf(add, 40), "3\n")
		n.want(language, sum, "3\n")
		f.want(language, sum, "71\n")
		n.write(language, before)
		n.want(language, sum, "1\n")
	}
}

func TestACellThatFailsLeavesItsContextUsable(t *testing.T) {
	t.Parallel()
	h := host(t)
	n := newNotebook(t, h)
	n.spec.Limits.MemoryBytes = 256 << 20
	n.want("python", "x = 1", "")
	if r := n.run("python", "x = 2\ndef f():\n    1 / 0\nf()"); r.Code != 1 || !strings.Contains(r.Stderr, `File "<cell 2>", line 3, in f`+
		"\n    1 / 0\n") {
		t.Errorf("%+v", r)
	}
	n.want("python", "x", "2\n")
	if r := n.run("python", "f()"); !strings.Contains(r.Stderr, `File "<cell 2>", line 3, in f`+"\n    1 / 0\n") {
		t.Errorf("a function of an earlier cell: %s", r.Stderr)
	}
	if r := n.run("python", "x = 3; import numpy"); r.Code != 1 || len(r.Lacks) != 0 {
		t.Errorf("a heavier tier would not help: %+v", r)
	}
	for _, code := range []string{"x = 9; import os; os._exit(7)", "x = 9; import os; os.abort()", "x = 9\nwhile True: pass",
		"x = 9; import time; time.sleep(10**6)"} {
		c := spacetest.Shell(n.spec.ID, "")
		c.Argv, c.MS = []string{"python3", "--context", "c", "-c", code}, 1500
		if r := n.h.Exec(t, n.s, c); r.Code == 0 {
			t.Errorf("%s: %+v", code, r)
		}
		n.want("python", "x", "3\n")
	}
	if r := n.run("python", "x = 4; import sys; sys.exit(5)"); r.Code != 5 {
		t.Errorf("%+v", r)
	}
	n.want("python", "x", "4\n")
	n.want("js", "let x = 1", "")
	if r := n.run("js", "x = 2; throw new Error('no')"); r.Code != 1 || !strings.Contains(r.Stderr, "Error: no") {
		t.Errorf("%+v", r)
	}
	n.want("js", "x", "2\n")
	for _, code := range []string{"x = 9; process.exit(7)", "x = 9; while (true) {}",
		"x = 9; const a = []; while (true) a.push(new Array(100000).fill(1))"} {
		c := spacetest.Shell(n.spec.ID, "")
		c.Argv, c.MS = []string{"js", "--context", "c", "-c", code}, 1500
		if r := n.h.Exec(t, n.s, c); r.Code == 0 {
			t.Errorf("%s: %+v", code, r)
		}
		n.want("js", "x", "2\n")
	}
	if r := n.run("js", "x = 3; require('nothing')"); r.Code != 1 || len(r.Lacks) != 0 {
		t.Errorf("%+v", r)
	}
	n.want("js", "x", "3\n")
	for script, stderr := range map[string]string{
		`python3 --context`:                                       "Argument expected",
		`python3 --context ../c -c 1`:                             "a context is named by",
		`python3 --context "" -c 1`:                               "a context is named by",
		`python3 --context c -m json`:                             "with --context",
		`python3 --context c -c 1 2`:                              "with --context",
		`python3 --context c missing.py`:                          "missing.py",
		`js --context`:                                            "requires an argument",
		`js --context a/b -c 1`:                                   "a context is named by",
		`js --context c missing.js`:                               "missing.js",
		`js --context c -c 1 2`:                                   "with --context",
		`mkdir .agentbox/contexts/d.py; python3 --context d -c 1`: "d.py",
		`chmod 0 .agentbox/contexts/c.py; python3 --context c -c 1; r=$?; chmod 600 .agentbox/contexts/c.py; exit $r`:     "permission",
		`python3 --context e -c 'x = bytes(range(256)) * (80 << 10)'; r=$?; ls .agentbox/contexts | grep ^e >&2; exit $r`: "cannot be kept",
		`python3 --context c -c 'import time; time.sleep(1); x = 8' & python3 --context c -c 'import time; time.sleep(2); x = 7'; r=$?; wait; ` +
			`exit $r`: "changed while the cell " +
			"ran",
	} {
		if r := n.sh(script); r.Code == 0 || !strings.Contains(strings.ToLower(r.Stderr), strings.ToLower(stderr)) || strings.Contains(r.Stderr,
			"e.py\n") {
			t.Errorf("%s: code %d, %s", script, r.Code, r.Stderr)
		}
	}
	n.want("python", "x", "8\n")
}

// TestTheSameCellsLeaveTheSameContext: seed and clock are those of the tier's variables.
func TestTheSameCellsLeaveTheSameContext(t *testing.T) {
	h := host(t)
	for _, language := range []string{"python", "js"} {
		var first [sha256.Size]byte
		for i := range 2 {
			n := newNotebook(t, h)
			for j := range 3 {
				code := map[string]string{
					"python": "import random, time, json; x = [random.random(), time.time(), {i: hash(str(i)) for i in range(100)}]; f = lambda: x",
					"js":     "var x = [Math.random(), Date.now(), new Map([[1, 2]])]; var f = () => x",
				}[language]
				c := spacetest.Shell(n.spec.ID, "")
				c.Argv, c.Env = []string{language, "--context", "c", "-c", code}, map[string]string{seedName: fmt.Sprint("seed ", j),
					timeName: "2026-01-02T03:04:05Z"}
				if r := n.h.Exec(t, n.s, c); r.Code != 0 {
					t.Fatalf("%+v", r)
				}
			}
			if sum := sha256.Sum256(n.read(language)); i == 0 {
				first = sum
			} else if sum != first {
				t.Errorf("%s: the same cells have left another context", language)
			}
		}
	}
}

// TestAThousandCellsDoNotGrow: what cells take they give back.
func TestAThousandCellsDoNotGrow(t *testing.T) {
	t.Parallel()
	h := host(t)
	for language, code := range map[string]string{
		"python": "x = [i for i in range(1000)]\ndef f(): return sum(x)\nf()",
		"js":     "let x = Array.from({ length: 1000 }, (_, i) => ({ i })); function f() { return x.reduce((a, b) => a + b.i, 0) }\nf()",
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			n := newNotebook(t, h)
			cells := 1000
			if testing.Short() {
				cells = 100
			}
			early := 0
			for i := range cells {
				n.want(language, code, "499500\n")
				if i == cells/5 {
					early = len(n.read(language))
				}
			}
			late := len(n.read(language))
			t.Logf("%s: %d bytes after %d cells, %d after %d", language, early, cells/5+1, late, cells)
			if late > early+128<<10 {
				t.Errorf("%s: it grows from %d bytes to %d", language, early, late)
			}
		})
	}
}

// TestAHostileContextHarmsNobody runs cells in contexts that somebody has written.
func TestAHostileContextHarmsNobody(t *testing.T) {
	t.Parallel()
	h := host(t)
	n := newNotebook(t, h)
	const begin = 19 + 16 // of the delta
	sealed := func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[begin-4:], crc32.Checksum(b[begin:], crc32.MakeTable(crc32.Castagnoli)))
		return b
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, language := range []string{"python", "js"} {
		n.want(language, "x = 1; 1", "1\n")
		good := n.read(language)
		changed := func(f func(b []byte) []byte) []byte { return sealed(f(bytes.Clone(good))) }
		globals := begin + 16 + 32 + 16 // of the delta's head
		number := int(binary.LittleEndian.Uint32(good[globals-8:]))
		pieces := globals + 8*number
		for name, b := range map[string][]byte{
			"empty":              {},
			"of nothing else":    good[:begin],
			"cut in the head":    good[:20],
			"cut in the globals": changed(func(b []byte) []byte { return b[:globals+4] }),
			"cut in a piece":     changed(func(b []byte) []byte { return b[:len(b)-1] }),
			"longer":             changed(func(b []byte) []byte { return append(b, 0) }),
			"damaged":            append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]+1),
			"of the other language": changed(func(b []byte) []byte {
				copy(b[19:], map[string]string{"python": "js\x00", "js": "py\x00"}[language])
				return b
			}),
			"of another version":             changed(func(b []byte) []byte { b[begin+16]++; return b }),
			"with a huge memory":             changed(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[begin+48:], 1<<62); return b }),
			"with a large memory":            changed(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[begin+48:], 8192<<16); return b }),
			"with a small memory":            changed(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[begin+48:], 1<<16); return b }),
			"with many globals":              changed(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[begin+56:], 1<<32-1); return b }),
			"with no globals":                changed(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[begin+56:], 0); return b }),
			"with many pieces":               changed(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[begin+60:], 1<<32-1); return b }),
			"with a global beyond its type":  changed(func(b []byte) []byte { b[globals+7] = 1; return b }),
			"with a piece beyond the memory": changed(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[pieces:], 1<<40); return b }),
			"with a piece of a huge size":    changed(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[pieces+8:], 1<<63); return b }),
		} {
			n.write(language, b)
			if r := n.run(language, "x"); r.Code == 0 || r.Stdout != "" || r.Stderr == "" {
				t.Errorf("%s that is %s: %+v", language, name, r)
			} else {
				t.Logf("%s that is %s: %s", language, name, r.Stderr)
			}
			if !bytes.Equal(n.read(language), b) {
				t.Errorf("%s that is %s was written", language, name)
			}
		}
		n.write(language, changed(func(b []byte) []byte {
			for i := range number {
				binary.LittleEndian.PutUint32(b[globals+8*i:], 0xffff_fff0)
			}
			return b
		}))
		n.quiet(language, "x = 2")
		rounds := 150
		if testing.Short() {
			rounds = 20
		}
		for range rounds { // memory that means nothing any more
			n.write(language, changed(func(b []byte) []byte {
				for range 1 + random.IntN(2000) {
					at := pieces + random.IntN(len(b)-pieces)
					b[at] ^= 1 << random.IntN(8)
				}
				return b
			}))
			n.quiet(language, "x = 2; [x, 'a' + str(x)]")
		}
		n.write(language, good)
		n.want(language, "x", "1\n")
	}
}

// quiet runs a cell that may end as it likes, but not by a defect of the worker.
func (n *notebook) quiet(language, code string) {
	n.t.Helper()
	c := spacetest.Shell(n.spec.ID, "")
	c.Argv, c.MS = []string{language, "--context", "c", "-c", code}, 3000
	r, err := n.h.TryExec(n.t.Context(), n.s, c)
	if err != nil {
		n.t.Errorf("%v, %+v", err, r)
	}
}
