package nano

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
)

// media are the media types of what a cell has shown, each with the number of its value and a star for the value of the last expression.
func media(r spacetest.Result) (all []string) {
	for _, d := range r.Displays {
		star := ""
		if d.Result {
			star = "*"
		}
		all = append(all, fmt.Sprint(d.Value, star, " ", d.Media))
	}
	return all
}

func form(r spacetest.Result, of string) space.Display {
	i := slices.IndexFunc(r.Displays, func(d space.Display) bool { return d.Media == of })
	if i < 0 {
		return space.Display{}
	}
	return r.Displays[i]
}

func TestACellShowsWhatItsValuesSayOfThemselves(t *testing.T) {
	h := host(t)
	n := newNotebook(t, h)
	var picture, photo bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&photo, image.NewRGBA(image.Rect(0, 0, 5, 4)), nil); err != nil {
		t.Fatal(err)
	}
	inPython := func(b []byte) string {
		return "__import__('base64').b64decode('" + base64.StdEncoding.EncodeToString(b) + "')"
	}
	inJS := func(b []byte) string { return "Buffer.from('" + base64.StdEncoding.EncodeToString(b) + "', 'base64')" }
	for _, c := range []struct {
		language, code, stdout string
		want                   []string
	}{
		{"python", "x = 1", "", nil},
		{"python", "6 * 7", "42\n", []string{"1* text/plain"}},
		{"python", "display(1); print('printed'); 2", "1\nprinted\n2\n", []string{"1 text/plain", "2* text/plain"}},
		{"python", "{'a': 1}", "{'a': 1}\n", []string{"1* text/plain", "1* application/json"}},
		{"python", "[{'a': 1, 'b': '<b>'}, {'a': 2}]", "[{'a': 1, 'b': '<b>'}, {'a': 2}]\n", []string{"1* text/plain", "1* text/html",
			"1* application/json"}},
		{
			"python", "class R:\n  def _repr_html_(s): return '<i>'\n  def _repr_svg_(s): return '<svg/>'\n  def _repr_markdown_(s): return " +
				"'*m*'\n  def _repr_latex_(s): return '$x$'\n" +
				"  def _repr_png_(s): return " + inPython(picture.Bytes()) + "\n  def _repr_jpeg_(s): return " + inPython(photo.Bytes()) +
				"\n  def _repr_json_(s): return [1]\n" +
				"  def __repr__(s): return 'R()'\nR()", "R()\n",
			[]string{"1* text/plain", "1* text/html", "1* image/svg+xml", "1* image/png", "1* image/jpeg", "1* text/markdown", "1* text/latex",
				"1* application/json"},
		},
		{"python", "display(1)\n1 / 0", "1\n", []string{"1 text/plain"}},
		{"js", "let x = 1", "", nil},
		{"js", "6 * 7", "42\n", []string{"1* text/plain"}},
		{"js", "display(1, 'b'); console.log('printed'); 2", "1\n'b'\nprinted\n2\n", []string{"1 text/plain", "2 text/plain", "3* text/plain"}},
		{"js", "({ a: 1 })", "{ a: 1 }\n", []string{"1* text/plain", "1* application/json"}},
		{"js", "[{ a: 1, b: '<b>' }, { a: 2 }]", "[ { a: 1, b: '<b>' }, { a: 2 } ]\n", []string{"1* text/plain", "1* text/html",
			"1* application/json"}},
		{"js", "({ [Symbol.for('Jupyter.display')]() { return { 'text/html': '<i>', 'image/png': '" +
			base64.StdEncoding.EncodeToString(picture.Bytes()) + "' } } }); ", "{ Symbol(Jupyter.display): [Function: [Jupyter.display]] }\n",
			[]string{"1* text/plain", "1* text/html", "1* image/png"}},
		{"js", "display(1); throw new Error('no')", "1\n", []string{"1 text/plain"}},
	} {
		r := n.run(c.language, c.code)
		if r.Stdout != c.stdout || !slices.Equal(media(r), c.want) {
			t.Errorf("%s: %q, %q, stderr %s; want %q, %q", c.code, r.Stdout, media(r), r.Stderr, c.stdout, c.want)
		}
	}
	const table = "<table>\n<thead><tr><th>a</th><th>b</th></tr></thead>\n" +
		"<tbody>\n<tr><td>1</td><td>&lt;b&gt;</td></tr>\n<tr><td>2</td><td></td></tr>\n</tbody>\n</table>\n"
	for language, code := range map[string]string{"python": "[{'a': 1, 'b': '<b>'}, {'a': 2}]", "js": "[{ a: 1, b: '<b>' }, { a: 2 }]"} {
		d := form(n.run(language, code), space.DisplayHTML)
		if string(d.Data) != table || d.Rows != 2 || d.Columns != 2 {
			t.Errorf("%s: a table of %d by %d: %s", language, d.Rows, d.Columns, d.Data)
		}
	}
	for code, want := range map[string][2]string{
		inPython(picture.Bytes()): {"python", "3 2 image/png"}, inPython(photo.Bytes()): {"python", "5 4 image/jpeg"},
		inJS(picture.Bytes()): {"js", "3 2 image/png"}, inJS(photo.Bytes()): {"js", "5 4 image/jpeg"},
	} {
		r := n.run(want[0], code)
		d := form(r, strings.Fields(want[1])[2])
		if got := fmt.Sprint(d.Width, d.Height, " ", d.Media); got != want[1] || !bytes.Equal(d.Data, picture.Bytes()) && !bytes.Equal(d.Data,
			photo.Bytes()) {
			t.Errorf("%s: %s, %q, want %s", code, got, media(r), want[1])
		}
	}
	if r := n.run("python", "class B:\n  def _repr_png_(s): return b'<script>'\nB()"); !slices.Equal(media(r), []string{"1* text/plain"}) {
		t.Errorf("what is not a picture is shown as %q", media(r))
	}
	if r := n.run("python", "import dataclasses\n@dataclasses.dataclass\nclass P:\n  x: int\n  y: str\n[P(1, 'a'), P(2, 'b')]"); form(r,
		space.DisplayHTML).Columns != 2 {
		t.Errorf("dataclasses are %q, %s", media(r), r.Stderr)
	}
	c := spacetest.Shell(n.spec.ID, `python3 --context c -c 1; python3 --context d -c 2; python3 -c 'print(3)' | cat`)
	if r := h.Exec(t, n.s, c); !slices.Equal(media(r), []string{"1* text/plain", "1* text/plain"}) {
		t.Errorf("two cells of one command: %q", media(r))
	}
}

// TestWhatACellShowsIsBounded is about each bound at its edge.
func TestWhatACellShowsIsBounded(t *testing.T) {
	h := host(t)
	n := newNotebook(t, h)
	const large = "class L:\n  def __init__(s, n): s.n = n\n  def _repr_html_(s): return 'x' * s.n\n  def __repr__(s): return ''\n"
	for _, c := range []struct {
		language, code string
		forms          int
		left           bool
	}{
		{"python", fmt.Sprintf("for i in range(%d): display(i)", space.MaxDisplays), space.MaxDisplays, false},
		{"python", fmt.Sprintf("for i in range(%d): display(i)", space.MaxDisplays+1), space.MaxDisplays, true},
		{"python", "for i in range(300): display(i)", space.MaxDisplays, true},
		{"js", fmt.Sprintf("for (let i = 0; i < %d; i++) display(i)", space.MaxDisplays), space.MaxDisplays, false},
		{"js", fmt.Sprintf("for (let i = 0; i < %d; i++) display(i)", space.MaxDisplays+1), space.MaxDisplays, true},
		{"python", large + "for i in range(8): display(L(1 << 20))", 16, false},
		{"python", "for i in range(8): display(L(1 << 20))\ndisplay(L(1))", 17, true}, // a text of nothing fits, and one of a byte does not
		{"python", "display(L((1 << 20) + 1))", 1, false},
		{"python", "for i in range(20): display(L(1 << 20))", 28, true},
	} {
		r := n.run(c.language, c.code)
		if len(r.Displays) != c.forms || strings.Contains(r.Stderr, "left out") != c.left || r.Code != 0 {
			t.Errorf("%s: %d forms, code %d, stderr %s; want %d, left out %t", c.code, len(r.Displays), r.Code, r.Stderr, c.forms, c.left)
		}
		bytes := 0
		for _, d := range r.Displays {
			bytes += len(d.Data)
		}
		if bytes > space.MaxDisplaysBytes {
			t.Errorf("%s shows %d bytes", c.code, bytes)
		}
	}
	// A picture of more bytes than one form may have: what follows its end is part of it.
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	code := "class P:\n  def _repr_png_(s): return __import__('base64').b64decode('" + base64.StdEncoding.EncodeToString(picture.Bytes()) +
		"').ljust(%d, b'x')\nP()"
	for more, fits := range map[int]bool{0: true, 1: false} {
		r := n.run("python", fmt.Sprintf(code, space.MaxDisplayBytes+more))
		if got := form(r, space.DisplayPNG); (len(got.Data) == space.MaxDisplayBytes) != fits || strings.Contains(r.Stderr, "left out") == fits {
			t.Errorf("a picture of %d bytes: %d, %s", space.MaxDisplayBytes+more, len(got.Data), r.Stderr)
		}
	}
	n = newNotebook(t, h)
	if r := n.run("python", "class T(list):\n  def __repr__(s): return 'T'\nT({'a': 'x' * 1000} for i in range(5000))"); r.Code != 0 ||
		form(r, space.DisplayHTML).Rows != 5000 || len(form(r, space.DisplayHTML).Data) > 1<<20 {
		t.Errorf("a long table: %d rows in %d bytes, %s", form(r, space.DisplayHTML).Rows, len(form(r, space.DisplayHTML).Data), r.Stderr)
	} else if !strings.Contains(string(form(r, space.DisplayHTML).Data), " of 5000 rows</caption>") {
		t.Error("a long table does not say how many rows it shows")
	}
	if r := n.run("python", "'x' * 3000000"); len(form(r, space.DisplayText).Data) > 1<<20+3 || r.Limit == "" && len(r.Displays) != 1 {
		t.Errorf("a long text: %d bytes", len(form(r, space.DisplayText).Data))
	}
	n = newNotebook(t, h)
	if r := n.run("python", "class T(list):\n  def __repr__(s): return 'T'\nT([{'k' * 1000000: 1}])"); r.Code != 0 ||
		len(form(r, space.DisplayHTML).Data) != 0 {
		t.Errorf("a table with a huge name: %q, %d %s %s", media(r), r.Code, r.Limit, r.Stderr)
	}
}

// TestACellRunsWhereItsOwnCommandIs is about the folder and the environment, which are no part of a context.
func TestACellRunsWhereItsOwnCommandIs(t *testing.T) {
	h := host(t)
	for language, code := range map[string]string{
		"python": "import os; print(os.getcwd(), os.environ.get('A'), os.environ.get('B'), os.environ.get('" + space.CellVariable + "'))",
		"js": "console.log(process.cwd(), process.env.A ?? 'None', process.env.B ?? 'None', process.env." + space.CellVariable +
			" ?? 'None')",
	} {
		n := newNotebook(t, h)
		program := map[string]string{"python": "python3 --context c -c", "js": "js --context c -e"}[language]
		quoted := `"` + code + `"`
		for script, want := range map[string]string{
			"mkdir -p one; cd one; A=1 B=2 " + program + " " + quoted:                                   "/workspace/one 1 2 None\n",
			"mkdir -p two; cd two; A=3 " + program + " " + quoted:                                       "/workspace/two 3 None None\n",
			space.CellVariable + "=" + quoted + " eval '" + program + ` "$` + space.CellVariable + `"'`: "/workspace None None None\n",
		} {
			if r := n.sh(script); r.Stdout != want || r.Code != 0 {
				t.Errorf("%s: %q, code %d, stderr %s; want %q", script, r.Stdout, r.Code, r.Stderr, want)
			}
		}
	}
	n := newNotebook(t, h)
	n.want("python", "1", "1\n")
	n.want("js", "typeof require", "'function'\n")
	if r := n.sh("mkdir -p web; echo 'module.exports = 8' >web/late.js; " +
		"cd web; js --context c -e 'require(\"./late.js\")'"); r.Stdout != "8\n" {
		t.Errorf("a module of JavaScript in the folder that a later cell runs in: %q, %s", r.Stdout, r.Stderr)
	}
	if r := n.sh("mkdir -p mods; echo 'x = 7' >mods/late.py; cd mods; python3 --context c -c 'import late; late.x'"); r.Stdout != "7\n" {
		t.Errorf("a module of the folder that a later cell runs in: %q, %s", r.Stdout, r.Stderr)
	}
}
