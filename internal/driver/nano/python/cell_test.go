package python_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/python"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/program"
)

// notebook is a context of the tests.
type notebook struct {
	t     *testing.T
	state *wasm.Delta
	last  *world
}

// shown are the forms of a value that a cell has shown, by their media types.
type shown map[string]string

// ran is a cell that was run.
type ran struct {
	python.Cell
	displayed []shown
	value     shown // of the last expression
}

func (n *notebook) cell(source string) ran {
	n.t.Helper()
	n.last = &world{}
	var c ran
	g := guest(n.t)
	n.last.within(n.t, func(p *program.Process) {
		var err error
		if c.Cell, n.state, err = g.Cell(p, "<cell>", source, n.state); err != nil {
			n.t.Fatal(err)
		}
	})
	forms := map[int]shown{}
	for _, d := range n.last.displays {
		if forms[d.Value] == nil {
			forms[d.Value] = shown{"type": d.Type}
			if d.Result {
				c.value = forms[d.Value]
			} else {
				c.displayed = append(c.displayed, forms[d.Value])
			}
		}
		forms[d.Value][d.Media] = string(d.Data)
		if d.Media == space.DisplayHTML && d.Rows > 0 {
			forms[d.Value]["table"] = fmt.Sprint(d.Rows, " ", d.Columns)
		}
	}
	return c
}

// ends runs a cell whose last expression has a text, "" for none.
func (n *notebook) ends(source, text string) ran {
	n.t.Helper()
	c := n.cell(source)
	if c.value[space.DisplayText] != text || (c.value == nil) != (text == "") {
		n.t.Errorf("%s: %+v, want %q, stderr %s", source, c, text, n.last.stderr.String())
	}
	return c
}

func TestACellSaysWhatItsLastExpressionIs(t *testing.T) {
	n := &notebook{t: t}
	if c := n.ends("x = 41", ""); c.Code != 0 || c.Error != nil {
		t.Errorf("%+v", c)
	}
	if c := n.ends("x + 1", "42"); c.value["type"] != "int" {
		t.Errorf("%+v", c)
	}
	n.ends("_ * 2", "84")
	n.ends("x;", "")
	if n.ends("def f(): return x\nprint(f())\nNone", ""); n.last.stdout.String() != "41\n" {
		t.Errorf("stdout %q", n.last.stdout.String())
	}
	if c := n.cell("{'a': [1, None, 2.5]}"); c.value[space.DisplayJSON] != `{"a":[1,null,2.5]}` {
		t.Errorf("%+v", c)
	}
	n.ends("import asyncio\nawait asyncio.sleep(1)\nawait asyncio.sleep(1, 'slept')", "'slept'")
	if n.ends("print(1); display(2); print(3)", ""); n.last.stdout.String() != "1\n2\n3\n" {
		t.Errorf("what is displayed and printed comes in another order: %q", n.last.stdout.String())
	}
	if n.ends("class S:\n  def __repr__(s): return '\\ud800'\nS()", "\uFFFD"); n.last.stdout.String() != "?\n" {
		t.Errorf("%q", n.last.stdout.String())
	}
}

func TestACellShowsRichValues(t *testing.T) {
	n := &notebook{t: t}
	n.cell("class R:\n  def _repr_html_(s): return '<b>'\n  def _repr_svg_(s): return '<svg/>'\n  def _repr_markdown_(s): return '*m*'\n" +
		"  def _repr_png_(s): return b'\\x89PNG'\n  def _repr_json_(s): return {'k': 1}\n  def __repr__(s): return 'R()'")
	want := shown{
		"type": "R", space.DisplayText: "R()", space.DisplayHTML: "<b>", space.DisplaySVG: "<svg/>", space.DisplayMarkdown: "*m*",
		space.DisplayJSON: `{"k":1}`,
	} // its picture is none
	if v := n.cell("R()").value; !maps.Equal(v, want) {
		t.Errorf("%q", v)
	}
	c := n.cell("display(1, R()); 2")
	if len(c.displayed) != 2 || c.displayed[0][space.DisplayText] != "1" || c.displayed[1][space.DisplayHTML] != "<b>" ||
		c.value[space.DisplayText] != "2" {
		t.Errorf("%+v", c)
	}
	v := n.cell("[{'a': 1, 'b': 'x'}, {'a': 2.5, 'c': [1]}]").value
	if v["table"] != "2 3" || !strings.Contains(v[space.DisplayHTML],
		"<tr><td>1</td><td>x</td><td></td></tr>\n<tr><td>2.5</td><td></td><td>[1]</td></tr>") {
		t.Errorf("%q", v)
	}
	if v = n.cell("[{'n': i} for i in range(5000)]").value; v["table"] != "5000 1" || strings.Count(v[space.DisplayHTML], "<tr><td>") != 1000 {
		t.Errorf("%d rows of %s", strings.Count(v[space.DisplayHTML], "<tr><td>"), v["table"])
	}
	if v = n.cell("class B:\n  def __repr__(s): 1 / 0\nB()").value; !strings.Contains(v[space.DisplayText], "ZeroDivisionError") {
		t.Errorf("%q", v)
	}
	if v = n.cell("float('nan'), '\\ud800'").value; v[space.DisplayJSON] != "" {
		t.Errorf("%q", v)
	}
}

func TestACellThatFailsTellsWhereAndTheNamespaceStays(t *testing.T) {
	n := &notebook{t: t}
	c := n.cell("y = 1\ndef f():\n    return y / 0\nf()")
	const want = "Traceback (most recent call last):\n  File \"<cell>\", line 4, in <module>\n    f()\n    ~^^\n" +
		"  File \"<cell>\", line 3, in f\n    return y / 0\n           ~~^~~\nZeroDivisionError: division by zero\n"
	if c.Code != 1 || c.Error == nil || c.Error.Type != "ZeroDivisionError" || c.Error.Message != "division by zero" ||
		n.last.stderr.String() != want {
		t.Errorf("%+v, stderr\n%s\nwant\n%s", c, n.last.stderr.String(), want)
	}
	n.ends("y", "1")
	const syntax = "  File \"<cell>\", line 1\n    1 +\n       ^\nSyntaxError: invalid syntax\n"
	if c := n.cell("1 +"); c.Error == nil || c.Error.Type != "SyntaxError" || n.last.stderr.String() != syntax {
		t.Errorf("%+v, stderr\n%s\nwant\n%s", c, n.last.stderr.String(), syntax)
	}
	if c := n.cell("import sys; sys.exit(3)"); c.Code != 3 || c.Error != nil {
		t.Errorf("%+v", c)
	}
	if c := n.cell("import numpy"); len(c.Lacks) != 1 || c.Lacks[0] != (python.Lack{Kind: "module", Name: "numpy"}) {
		t.Errorf("%+v", c)
	}
	if c := n.cell("import os; os.abort()"); c.Crash == "" {
		t.Errorf("%+v", c)
	}
	n.ends("y", "1")
	if c := n.cell("await asyncio.sleep(0)\nimport asyncio\nasync def g(): 1 / 0\nawait g()"); c.Error == nil {
		t.Errorf("%+v", c)
	}
}

func TestFilesThatACellLeavesOpenAreClosed(t *testing.T) {
	n := &notebook{t: t}
	n.cell("f = open('/proj/a', 'w'); f.write('kept')")
	n.last = nil
	n.ends("f.closed", "True")
	var written string
	w := &world{}
	g := guest(t)
	w.within(t, func(p *program.Process) {
		if _, _, err := g.Cell(p, "<cell>", "f = open('/proj/a', 'w'); f.write('kept')", nil); err != nil {
			t.Fatal(err)
		}
	})
	for _, c := range w.changes {
		written += string(bytes.Join(c.Content, nil))
	}
	if written != "kept" {
		t.Errorf("the file holds %q", written)
	}
}

// TestCellsLookAtTheFilesAnew: a module that was written after a cell has looked for it is found by the next, and the library is not read
// again for that.
func TestCellsLookAtTheFilesAnew(t *testing.T) {
	var state *wasm.Delta
	for i, source := range []string{"try:\n    import late\nexcept ImportError: pass", "1", "import late; assert late.y == 2"} {
		w := &world{}
		if i == 2 {
			w.files = map[string]string{"late.py": "y = 2"}
		}
		w.within(t, func(p *program.Process) {
			c, after, err := guest(t).Cell(p, "<cell>", source, state)
			if err != nil || c.Error != nil {
				t.Fatalf("%s: %v, %+v: %s", source, err, c.Error, w.stderr.String())
			}
			state = after
		})
		if used := w.account.Used(); used > 20_000_000 {
			t.Errorf("%s takes %d of gas, as if it read the library", source, used)
		}
	}
}
