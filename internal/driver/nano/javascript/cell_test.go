package javascript

import (
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/program"
)

// TestCells evaluates cells one after the other, each in a fresh instance of what the one before left.
func TestCells(t *testing.T) {
	cells := []struct {
		code, text, value string
		exit              int
	}{
		{code: "const x: number = 1; let y = { a: [1, 2] };\nclass P { n = 3 }\nfunction twice(n: number) { return n * 2; }"},
		{code: "x + twice(20)", text: "41"},
		{code: "y", text: "{ a: [ 1, 2 ] }", value: `{"a":[1,2]}`},
		{code: "const x = 'again'; x", text: "'again'"},
		{code: "await new Promise((r) => setTimeout(r, 5, 'waited'))", text: "'waited'"},
		{code: "import { join as j } from 'path';\nimport fs from 'fs';\nimport * as os from 'os';\n[j('a', 'b'), typeof fs.readFileSync, " +
			"os.EOL]", text: "[ 'a/b', 'function', " +
			"'\\n' ]", value: `["a/b","function","\n"]`},
		{code: "throw new Error('no')", exit: 1},
		{code: "const z = ;", exit: 1},
		{code: "j(x, 'c') + new P().n", text: "'again/c3'"},
		{code: "const c = { }; c.self = c; c", text: "<ref *1> { self: [Circular *1] }"},
		{code: "undefined"},
	}
	got := execute(t, world{args: []string{"js"}, cells: func(r *Runtime, p *program.Process) int {
		var state *wasm.Delta
		for _, c := range cells {
			got, err := r.Cell(p, state, c.code)
			if err != nil {
				t.Errorf("%s: %v", c.code, err)
				return 1
			}
			if text, value := last(p); got.Code != c.exit || text != c.text || value != c.value {
				t.Errorf("%s: exit %d, %q, %s, want %d, %q, %s", c.code, got.Code, text, value, c.exit, c.text, c.value)
			}
			if got.Code == 0 {
				state = got.State
			}
		}
		t.Logf("the state has %d bytes", state.Bytes())
		return 0
	}})
	t.Log(got.err)
}

// last returns the text and the JSON of the value that the cell before has ended with.
func last(p *program.Process) (text, value string) {
	h := p.Host.(host)
	for _, d := range *h.displays {
		switch d.Media {
		case space.DisplayText:
			text = string(d.Data)
		case space.DisplayJSON:
			value = string(d.Data)
		}
	}
	*h.displays = nil
	return text, value
}

// TestCellsLeaveNothingBehind runs a cell again and again: its unreachable values are no part of its context.
func TestCellsLeaveNothingBehind(t *testing.T) {
	execute(t, world{args: []string{"js"}, cells: func(r *Runtime, p *program.Process) int {
		var state *wasm.Delta
		early := 0
		for i := range 120 {
			c, err := r.Cell(p, state, "let x = Array.from({ length: 100 }, (_, i) => ({ i })); x.self = x; setTimeout(() => 1, 2); x.length")
			if err != nil || c.Code != 0 {
				t.Errorf("cell %d: %+v, %v", i, c, err)
				return 1
			}
			if state = c.State; i == 20 {
				early = int(state.Bytes())
			}
		}
		if late := int(state.Bytes()); late > early+32<<10 {
			t.Errorf("it grows from %d bytes after 21 cells to %d after 120", early, late)
		}
		return 0
	}})
}
