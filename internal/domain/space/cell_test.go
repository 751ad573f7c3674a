package space_test

import (
	"testing"

	"agentbox/internal/domain/space"
)

// A command is a cell if it is nothing else.
func TestReadCell(t *testing.T) {
	env := map[string]string{space.CellVariable: "long"}
	for command, want := range map[string]space.Cell{
		`python3 --context=c -c 'x = 1'`:                      {Context: "c", Language: space.Python, Code: "x = 1"},
		`python3 --context=c -c 'it'\''s'`:                    {Context: "c", Language: space.Python, Code: "it's"},
		`python3 --context=c -c ''`:                           {Context: "c", Language: space.Python},
		`node --context=a.b-c -e '1 && 2; $(x)'`:              {Context: "a.b-c", Language: space.JavaScript, Code: "1 && 2; $(x)"},
		`node --context=c -e "$` + space.CellVariable + `"`:   {Context: "c", Language: space.JavaScript, Code: "long"},
		`python3 --context=c '/workspace/a b.py'`:             {Context: "c", Language: space.Python, File: "/workspace/a b.py"},
		`python3 --context=c -c 'x'; rm -rf .`:                {},
		`python3 --context=c -c 'x' | cat`:                    {},
		`python3 --context=c -c 'x'"$(id)"'y'`:                {},
		`python3 --context=c -c x`:                            {},
		`python3 --context=../c -c 'x'`:                       {},
		`python3 --context=c 'a.py'`:                          {},
		`python3 --context=c`:                                 {},
		`python3 --context=c -e 'x'`:                          {},
		`true; python3 --context=c -c 'x'`:                    {},
		`python3 --context=c -c 'x' 'y'`:                      {},
		"python3 --context=c -c 'a\x00b'":                     {},
		`python3 -c 'x'`:                                      {},
		`node --context=c -e "$` + space.CellVariable + `" 1`: {},
	} {
		got, ok := space.ReadCell(command, env)
		if ok != (want.Context != "") || ok && got != want {
			t.Errorf("%s: got %+v, %t; want %+v", command, got, ok, want)
		}
	}
	if _, ok := space.ReadCell(`python3 --context=c -c "$`+space.CellVariable+`"`, nil); ok {
		t.Error("a cell without its code is one")
	}
}
