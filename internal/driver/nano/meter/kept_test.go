package meter

import (
	"runtime"
	"testing"
	"weak"
)

// TestNothingOfThePassIsKept lets go of what the pass needed only until it was done: it is as large as the module.
func TestNothingOfThePassIsKept(t *testing.T) {
	p := &pass{r: &reader{b: assemble(t, `(module (memory 1) (data (i32.const 0) "x") (func (export "f") (result i32) i32.const 1))`)},
		o: Options{Detach: true}, operations: newInstructions()}
	p.parse()
	gone := weak.Make(p)
	m, err := p.assemble()
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if gone.Value() != nil {
		t.Error("the pass is still there")
	}
	runtime.KeepAlive(m)
}
