package wasm

import (
	"testing"

	"agentbox/internal/domain/space/spacetest"
)

// TestPython runs the interpreter through the whole way of a command.
func TestPython(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.MemoryBytes = 256 << 20
	s := h.Create(t, spec)
	for range 3 {
		r := h.Exec(t, s, spacetest.Shell(spec.ID, `echo begin; python3 -c 'print(6*7); open("f","w").write("x")'; echo $?; read x <f; echo $x`))
		if r.Stdout != "begin\n42\n0\n" && r.Stdout != "begin\n42\n0\nx\n" {
			t.Errorf("got %+v", r)
		}
		t.Log(r.Duration, r.Gas)
	}
}

// TestJavaScript runs the interpreter through the whole way of a command.
func TestJavaScript(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	for _, x := range []struct{ script, want string }{
		{`js -e 'console.log(1+1)'`, "2\n"},
		{`echo 'const x: number = 6; enum E { A = 7 }; console.log(x * E.A)' >f.ts; bun f.ts`, "42\n"},
		{`echo 'import { readFileSync } from "node:fs"; console.log(readFileSync("f.ts", "utf8").length > 10)' >g.mjs; node g.mjs`, "true\n"},
	} {
		for range 3 {
			r := h.Exec(t, s, spacetest.Shell(spec.ID, x.script))
			if r.Stdout != x.want || r.Code != 0 {
				t.Errorf("%s: got %+v", x.script, r)
			}
			t.Log(r.Duration, r.Gas)
		}
	}
}
