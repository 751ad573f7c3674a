package wasm

import (
	"slices"
	"strings"
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

// TestModulesAreThoseOfTheInterpreters compares the names by which is decided where a command runs with what the interpreters have.
func TestModulesAreThoseOfTheInterpreters(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.MemoryBytes = 256 << 20
	s := h.Create(t, spec)
	for _, x := range []struct {
		argv []string
		told []string
	}{
		{[]string{"python3", "-c", `
import pkgutil, sys
names = set(sys.builtin_module_names) | {m.name for m in pkgutil.iter_modules()}
def has(name):
    try:
        return __import__(name) is not None
    except ImportError:
        return False
sys.stdout = sys.stderr  # what modules print when they are imported
names = sorted(n for n in names if (n[0] != "_" or n in ("__future__", "_io", "_thread")) and n not in ("antigravity", "pydoc_data") and has(n))
print("\n".join(names), file=sys.__stdout__)
`}, Modules()},
		{[]string{"js", "-e", `
const useless = ["cluster", "dgram", "http2", "inspector", "repl", "sqlite", "test", "tls", "wasi"]; // there by name, so that they can say what they lack
console.log(require("module").builtinModules.filter((n) => !n.includes("/") && !useless.includes(n)).sort().join("\n"))`}, Builtins()},
	} {
		r := h.Exec(t, s, spacetest.Command{Space: spec.ID, Argv: x.argv, MS: 60_000})
		has := strings.Fields(r.Stdout)
		if r.Code != 0 || len(has) < 10 {
			t.Fatalf("%s: %+v", x.argv[0], r)
		}
		for _, name := range has {
			if !slices.Contains(x.told, name) {
				t.Errorf("%s has %s, and it is not told", x.argv[0], name)
			}
		}
		for _, name := range x.told {
			if !slices.Contains(has, name) {
				t.Errorf("%s has no %s, and it is told", x.argv[0], name)
			}
		}
	}
}
