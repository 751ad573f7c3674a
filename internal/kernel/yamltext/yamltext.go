// Package yamltext says in plain words where a YAML text cannot be parsed.
//
// The parser names a line that is too low by one, or the line on which the list or object around the fault begins. It does not show the
// line.
package yamltext

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"agentbox/internal/domain/leak"
)

// Fault is the place and the cause of an error of the parser.
type Fault struct {
	Line    int    // from 1
	Column  int    // of the first character of the line's text, from 1
	Message string // what is wrong, with the text of the line
}

// String returns the fault as one line for people.
func (f Fault) String() string { return fmt.Sprintf("line %d: %s", f.Line, f.Message) }

// maxShown bounds the text of a line in a message, in bytes.
const maxShown = 80

// place is the beginning of an error of the parser.
var place = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// FaultOf explains the error of a parser about a text. Decode parses a text in the same way: it is called once more, to see how far the
// parser comes.
func FaultOf(text []byte, err error, decode func(io.Reader) error) Fault {
	said := err.Error()
	found := place.FindStringSubmatch(said)
	named, problem := 0, said
	if found != nil {
		problem = said[len(found[0]):]
		named, _ = strconv.Atoi(found[1]) // "" is 0
	}
	reader := &slow{text: text}
	_ = decode(reader) // it is the same error
	lines := bytes.Split(text, []byte("\n"))
	within := func(n int) int { return min(max(n, 1), len(lines)) }
	reached := within(reader.line())
	f := Fault{}
	begins := 0 // the line on which the list or object begins that is at fault, if it is another one
	switch {
	case strings.HasPrefix(problem, "did not find expected"): // the parser counts from 0, and may mean the beginning
		if f.Line = within(named + 1); reached > f.Line {
			f.Line, begins = reached, f.Line
		}
	case strings.HasPrefix(problem, "found unexpected end of stream"): // of a quote on the first line the parser names the end
		if f.Line = within(named); !bytes.ContainsAny(lines[f.Line-1], `'"`) {
			f.Line = 1
		}
	case strings.HasPrefix(problem, "found a tab character"): // the parser names the line on which the text before it begins
		for f.Line = within(named); f.Line < reached && !bytes.Contains(indent(lines[f.Line-1]), []byte("\t")); {
			f.Line++
		}
	case strings.HasPrefix(problem, "unknown anchor"): // the parser has read on
		_, name, _ := strings.Cut(problem, "'")
		name, _, _ = strings.Cut(name, "'")
		for f.Line = reached; f.Line > 1 && !bytes.Contains(lines[f.Line-1], []byte("*"+name)); {
			f.Line--
		}
	case named > 0:
		f.Line = within(named)
	case strings.HasPrefix(problem, "invalid") || strings.HasPrefix(problem, "control"):
		f.Line = reached
	default:
		f.Line = 1
	}
	for f.Line > 1 && len(bytes.TrimSpace(lines[f.Line-1])) == 0 {
		f.Line--
	}
	line := lines[f.Line-1]
	f.Column = len(indent(line)) + 1
	if problem == "found character that cannot start any token" && bytes.Contains(indent(line), []byte("\t")) {
		problem = "found a tab character"
	}
	f.Message = words(problem) + ": " + lineAt(text, f.Line)
	if begins > 0 && begins < f.Line {
		f.Message += fmt.Sprintf("; or the fault is above it: what the parser reads there begins on line %d: %s", begins,
			lineAt(text, begins))
	}
	return f
}

// words are an error of the parser in plain words.
func words(problem string) string {
	for _, one := range [...]struct{ of, plain string }{
		{"did not find expected ',' or '}'", "a comma or a } is missing before this"},
		{"did not find expected ',' or ']'", "a comma or a ] is missing before this"},
		{"did not find expected '-' indicator", "this is no item of the list above it; begin each item with - in the same column"},
		{"did not find expected key", "a key is wanted here; begin the keys of an object in the same column, and close quotes"},
		{"did not find expected node content", "a value is missing"},
		{"mapping values are not allowed", "a second \": \" is here, or the line is indented otherwise than the one above it; put a " +
			"text with \": \" in quotes"},
		{"could not find expected ':'", "a : is missing behind a key"},
		{"found a tab character", "indent with spaces and not with tabs"},
		{"found character that cannot start any token", "a value cannot begin so (@ ` % or a tab); put it in quotes"},
		{"found unexpected end of stream", "a quote is opened here and not closed"},
		{"found unknown escape character", "\\ in double quotes is not followed by what YAML knows; use single quotes"},
		{"control characters are not allowed", "a control character is in the line"},
		{"unknown anchor", "anchors and aliases are not allowed; write the value out"},
		{"invalid", "the line is not UTF-8"},
	} {
		if strings.HasPrefix(problem, one.of) {
			return one.plain
		}
	}
	return fmt.Sprintf("it is no YAML (%.100s)", problem)
}

// indent is the white space with which a line begins.
func indent(line []byte) []byte { return line[:len(line)-len(bytes.TrimLeft(line, " \t"))] }

// hushed is a key whose value is not shown, with the value: people paste a secret where its name is wanted.
var hushed = regexp.MustCompile(`(?i)((?:key|token|secret|passw|credential|authorization)[a-z0-9_-]*["']?\s*:)\s*\S.*`)

// lineAt is the text of a line, from 1, without secrets, in quotes. Secrets are looked for in the whole text: one may go over several
// lines.
func lineAt(text []byte, n int) string {
	clean := strings.ToValidUTF8(string(text), "\uFFFD")
	if found, matches := leak.Text(clean); len(matches) > 0 {
		if clean = found; strings.Count(clean, "\n") != bytes.Count(text, []byte("\n")) {
			return "(not shown: a secret is in the file)"
		}
	}
	line := strings.TrimSpace(strings.Split(clean, "\n")[n-1])
	return quoted(hushed.ReplaceAllString(line, "$1 [not shown]"))
}

// quoted is a text that is cut to what is shown, in quotes.
func quoted(text string) string {
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return strconv.Quote(text)
}

// slow reads a text byte by byte, so that its place is that of the parser but for the few bytes at which the parser looks ahead.
type slow struct {
	text []byte
	at   int
}

func (s *slow) Read(p []byte) (int, error) {
	if s.at == len(s.text) {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	p[0] = s.text[s.at]
	s.at++
	return 1, nil
}

// line returns the line of the last byte that is no white space.
func (s *slow) line() int {
	return bytes.Count(bytes.TrimRight(s.text[:s.at], " \t\r\n"), []byte("\n")) + 1
}
