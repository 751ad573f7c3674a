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
