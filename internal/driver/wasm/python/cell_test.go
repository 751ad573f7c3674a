package python_test

import (
	"strings"
	"testing"

	"agentbox/internal/driver/wasm/engine"
	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/python"
)

// notebook is a context of the tests.
type notebook struct {
	t     *testing.T
	state *engine.Delta
	last  *world
}

func (n *notebook) cell(source string) python.Cell {
	n.t.Helper()
	n.last = &world{}
	var c python.Cell
	g := guest(n.t)
	n.last.within(n.t, func(p *program.Process) {
		var err error
		if c, n.state, err = g.Cell(p, "<cell>", source, n.state); err != nil {
			n.t.Fatal(err)
		}
	})
	return c
}

func TestACellSaysWhatItsLastExpressionIs(t *testing.T) {
	n := &notebook{t: t}
	if c := n.cell("x = 41"); c.Value != nil || c.Code != 0 || c.Error != nil {
		t.Errorf("%+v", c)
	}
	if c := n.cell("x + 1"); c.Value == nil || c.Value.Text != "42" || c.Value.Type != "int" {
		t.Errorf("%+v", c.Value)
	}
	if c := n.cell("_ * 2"); c.Value == nil || c.Value.Text != "84" {
		t.Errorf("%+v", c.Value)
	}
	if c := n.cell("x;"); c.Value != nil {
		t.Errorf("%+v", c.Value)
	}
	if c := n.cell("def f(): return x\nprint(f())\nNone"); c.Value != nil || n.last.stdout.String() != "41\n" {
		t.Errorf("%+v, stdout %q", c.Value, n.last.stdout.String())
	}
	if c := n.cell("{'a': [1, None, 2.5]}"); string(c.Value.JSON) != `{"a":[1,null,2.5]}` {
		t.Errorf("%+v", c.Value)
	}
	if c := n.cell("import asyncio\nawait asyncio.sleep(1)\nawait asyncio.sleep(1, 'slept')"); c.Value == nil || c.Value.Text != "'slept'" {
		t.Errorf("%+v, stderr %s", c, n.last.stderr.String())
	}
}

func TestACellShowsRichValues(t *testing.T) {
	n := &notebook{t: t}
	n.cell("class R:\n  def _repr_html_(s): return '<b>'\n  def _repr_svg_(s): return '<svg/>'\n  def _repr_markdown_(s): return '*m*'\n" +
		"  def _repr_png_(s): return b'\\x89PNG'\n  def _repr_json_(s): return {'k': 1}\n  def __repr__(s): return 'R()'")
	v := n.cell("R()").Value
	if v == nil || v.Text != "R()" || v.HTML != "<b>" || v.SVG != "<svg/>" || v.Markdown != "*m*" || string(v.PNG) != "\x89PNG" || string(v.JSON) != `{"k":1}` {
		t.Errorf("%+v", v)
	}
	c := n.cell("display(1, R()); 2")
	if len(c.Displayed) != 2 || c.Displayed[0].Text != "1" || c.Displayed[1].HTML != "<b>" || c.Value.Text != "2" {
		t.Errorf("%+v", c)
	}
	v = n.cell("[{'a': 1, 'b': 'x'}, {'a': 2.5, 'c': [1]}]").Value
	if v.Table == nil || strings.Join(v.Table.Columns, " ") != "a b c" || v.Table.Total != 2 || v.Table.Rows[1][0] != 2.5 || v.Table.Rows[1][2] != "[1]" ||
		v.Table.Rows[0][2] != nil {
		t.Errorf("%+v", v.Table)
	}
	if v = n.cell("[{'n': i} for i in range(5000)]").Value; len(v.Table.Rows) != 1000 || v.Table.Total != 5000 {
		t.Errorf("%d rows of %d", len(v.Table.Rows), v.Table.Total)
	}
	if v = n.cell("class B:\n  def __repr__(s): 1 / 0\nB()").Value; !strings.Contains(v.Text, "ZeroDivisionError") {
		t.Errorf("%+v", v)
	}
	if v = n.cell("'x' * 10**7").Value; len(v.Text) > 1<<21 {
		t.Errorf("its text has %d bytes", len(v.Text))
	}
	if v = n.cell("float('nan'), '\\ud800'").Value; v.JSON != nil {
		t.Errorf("%s", v.JSON)
	}
}

func TestACellThatFailsTellsWhereAndTheNamespaceStays(t *testing.T) {
	n := &notebook{t: t}
	c := n.cell("y = 1\ndef f():\n    return y / 0\nf()")
	const want = "Traceback (most recent call last):\n  File \"<cell>\", line 4, in <module>\n    f()\n    ~^^\n" +
		"  File \"<cell>\", line 3, in f\n    return y / 0\n           ~~^~~\nZeroDivisionError: division by zero\n"
	if c.Code != 1 || c.Error == nil || c.Error.Type != "ZeroDivisionError" || c.Error.Message != "division by zero" || n.last.stderr.String() != want {
		t.Errorf("%+v, stderr\n%s\nwant\n%s", c, n.last.stderr.String(), want)
	}
	if c := n.cell("y"); c.Value == nil || c.Value.Text != "1" {
		t.Errorf("%+v", c)
	}
	if c := n.cell("1 +"); c.Error == nil || c.Error.Type != "SyntaxError" {
		t.Errorf("%+v", c)
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
	if c := n.cell("y"); c.Value == nil || c.Value.Text != "1" {
		t.Errorf("after a crash: %+v", c)
	}
	if c := n.cell("await asyncio.sleep(0)\nimport asyncio\nasync def g(): 1 / 0\nawait g()"); c.Error == nil {
		t.Errorf("%+v", c)
	}
}

func TestFilesThatACellLeavesOpenAreClosed(t *testing.T) {
	n := &notebook{t: t}
	n.cell("f = open('/work/a', 'w'); f.write('kept')")
	n.last = nil
	if c := n.cell("f.closed"); c.Value == nil || c.Value.Text != "True" {
		t.Errorf("%+v", c)
	}
	var written string
	w := &world{}
	g := guest(t)
	w.within(t, func(p *program.Process) {
		if _, _, err := g.Cell(p, "<cell>", "f = open('/work/a', 'w'); f.write('kept')", nil); err != nil {
			t.Fatal(err)
		}
	})
	for _, c := range w.changes {
		written += string(c.Content)
	}
	if written != "kept" {
		t.Errorf("the file holds %q", written)
	}
}

func TestACellDisplaysOnlySoMuch(t *testing.T) {
	n := &notebook{t: t}
	if c := n.cell("for i in range(256): display(i)"); len(c.Displayed) != 256 || c.Code != 0 {
		t.Errorf("256 values: got %d, code %d, %+v", len(c.Displayed), c.Code, c.Error)
	}
	if c := n.cell("for i in range(257): display(i)"); len(c.Displayed) != 256 || c.Error == nil || !strings.Contains(c.Error.Message, "at most 256 values") {
		t.Errorf("257 values: got %d, %+v", len(c.Displayed), c.Error)
	}
}
