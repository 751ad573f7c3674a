package javascript

import (
	"testing"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/program"
)

// TestTheLastValueOfACellIsKeptWhereItIsWorkedOutBefore is about expressions that esbuild leaves out because they have a value already.
func TestTheLastValueOfACellIsKeptWhereItIsWorkedOutBefore(t *testing.T) {
	execute(t, world{args: []string{"js"}, cells: func(r *Runtime, p *program.Process) int {
		var state *wasm.Delta
		for _, c := range []struct{ code, text string }{
			{"1+1", "2"},
			{"'a' + 'b'", "'ab'"},
			{"let a = 1; 'a' + 'b'", "'ab'"},
			{"let a: number = 1\n'a' + 'b' // said\n", "'ab'"},
			{"-(-1)", "1"},
			{"!0; // no", "true"},
			{"!0\n!1", "false"},
			{"!0; !1;", "false"},
			{"typeof 1", "'number'"},
			{"true && 3", "3"},
			{"null ??\n  (5 as number)\n", "5"},
			{"enum E { A, B }\nE.B", "1"},
			{"const f = () => {\n  return 'x;y'\n}\n/* then */ 'p' + 'q' /* that is all */", "'pq'"},
			{"f(); 'a' +\n  'b'", "'ab'"},
			{"void 0", ""},
			{"let b = 2\n!0 && !1;\n// only that", "false"},
			{"if (b) { 'a' + 'b' }", ""},
			{"let g = 1\nfunction h() { return 'a' + 'b' }", ""},
			{"'é😀'; 'a' + 'ü'", "'aü'"},
			{"`\n'a' + 'b'\n`.length", "11"},
			{"/'a' + 'b'/.source", `"'a' + 'b'"`},
			{"'use' + ' strict'", "'use strict'"},
			{"b", "2"},
			{"`a`", "'a'"},
			{"`a${b}`", "'a2'"},
			{"`\nconst x = ${b}\nlet y\n`", "'\\nconst x = 2\\nlet y\\n'"},
			{"String.raw`a\\n${b}`", "'a\\\\n2'"},
			{"let t = `\nconst`; const u = 1; t.length + u", "7"},
			{"u", "1"},
		} {
			got, err := r.Cell(p, state, c.code)
			if err != nil {
				t.Errorf("%s: %v", c.code, err)
				return 1
			}
			if text, _ := last(p); got.Code != 0 || text != c.text {
				t.Errorf("%s: exit %d, %q, want %q", c.code, got.Code, text, c.text)
			}
			state = got.State
		}
		return 0
	}})
}
