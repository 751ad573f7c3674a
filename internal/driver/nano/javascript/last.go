package javascript

import (
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// maxStarts is how many places are tried at which the last expression of a cell may begin.
const maxStarts = 64

// keepLast returns a cell whose last expression is an argument, where it is one that esbuild leaves out because it has worked out its
// value, as of !0 or 'a'+'b'. text is what was made of the cell. Where an expression may begin, and whether it is a statement of its own
// there, esbuild's own parser says.
func (r *run) keepLast(code, text string) (kept string, lost bool) {
	starts := r.starts(code)
	for _, at := range starts[:min(len(starts), maxStarts)] {
		r.p.Charge((len(code) + len(text)) * transformPerByte)
		rest := code[at:]
		expression, comment := rest, ""
		if !parses("((" + rest + "\n))") {
			end := strings.LastIndexByte(rest, ';')
			if end < 0 || !empty(rest[end+1:]) || !parses("(("+rest[:end]+"\n))") {
				continue
			}
			expression, comment = rest[:end], rest[end+1:]
		}
		if apart, ok := stripped(code[:at]+";"+rest, supported(code)); ok && lines(apart) == lines(text) {
			return code[:at] + ";__agentbox.last((" + expression + "\n));" + comment, true
		}
	}
	return "", false
}

// starts returns the places behind the last of a cell of which something was made at which a statement may begin.
func (r *run) starts(code string) (starts []int) {
	from := -1
	if m := r.maps["[cell]"]; m != nil && m.parse() == nil {
		for _, line := range m.lines {
			for _, p := range line {
				from = max(from, offset(code, p.line, p.original))
			}
		}
	}
	fresh := from < 0 // a statement may begin here
	for i := from + 1; i < len(code); i++ {
		switch code[i] {
		case '\n', ';', '}':
			fresh = true
		case ' ', '\t', '\r':
		default:
			if fresh {
				starts = append(starts, i)
			}
			fresh = false
		}
	}
	return starts
}

// offset returns the place of a line and a column in UTF-16, both from 0.
func offset(code string, line, column int) int {
	at := 0
	for ; line > 0; line-- {
		next := strings.IndexByte(code[at:], '\n')
		if next < 0 {
			return len(code)
		}
		at += next + 1
	}
	for i, c := range code[at:] {
		if column <= 0 {
			return at + i
		}
		column--
		if c > 0xffff {
			column--
		}
	}
	return len(code)
}

// supported is what the text of a cell is not lowered from: where declarations are looked for by their lines, the lines of a text are
// none. Templates with a tag keep theirs, for what they would become is kept for the next cell.
func supported(text string) map[string]bool {
	if !strings.Contains(text, "`") {
		return lowered
	}
	if made, ok := stripped(text, plain); !ok || strings.Contains(made, "__template(") {
		return lowered
	}
	return plain
}

// stripped takes the types of a text away.
func stripped(text string, supported map[string]bool) (string, bool) {
	result := api.Transform(text, api.TransformOptions{
		TsconfigRaw: cellConfig, Loader: api.LoaderTS, Target: api.ESNext, LogLevel: api.LogLevelSilent, Supported: supported,
	})
	return string(result.Code), len(result.Errors) == 0
}

func parses(expression string) bool {
	_, ok := stripped(expression, lowered)
	return ok
}

// empty reports whether a text holds no expression, but comments.
func empty(text string) bool { return parses(text) && !parses("("+text+"\n)") }

// lines is a text without its empty statements.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != ";\n" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// awaitsAtTop reports whether a text is none of CommonJS because it awaits outside of functions: the parser says so, where a line only
// looks like it.
func awaitsAtTop(text string) bool {
	if !strings.Contains(text, "require(") {
		return true
	}
	result := api.Transform(text, api.TransformOptions{Loader: api.LoaderJS, Target: api.ESNext, Format: api.FormatCommonJS,
		LogLevel: api.LogLevelSilent})
	return len(result.Errors) > 0
}
