//go:build linux

package namespace

import (
	"strings"
	"testing"

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

func (c contextsOf) python(code string) spacetest.Result { return c.h.Exec(c.T, c.s, c.cell("python3", code)) }

func (c contextsOf) node(code string) spacetest.Result { return c.h.Exec(c.T, c.s, c.cell("node", code)) }

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
	c.printed(c.node("import fs, { existsSync } from 'node:fs'\nconst p = await fs.promises.readFile('/etc/hostname', 'utf8'); p.trim()"), "'space'\n")
	c.printed(c.node("existsSync('/etc/hostname') && require('path').basename('/a/b')"), "'b'\n")
	c.printed(c.node("({ a: [1, { b: 'ü' }] })"), "{ a: [ 1, { b: 'ü' } ] }\n")
	r := c.node("console.log('before'); throw new TypeError('no number')")
	if r.Code != 1 || r.Stdout != "before\n" || !strings.Contains(r.Stderr, "Uncaught TypeError: no number") || strings.Contains(r.Stderr, "cell.js") {
		t.Errorf("an error: got %+v", r)
	}
	if r := c.node("let = = 1"); r.Code != 1 || !strings.Contains(r.Stderr, "SyntaxError") {
		t.Errorf("a syntax error: got %+v", r)
	}
	c.printed(c.node("twice(x)"), "10\n")
}
