package cli

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/termtest"
)

// TestEveryWrittenCommandLineParses reads each command line of help texts, examples and documents, and parses it as the program would: the
// command exists, its flags exist, and it takes so many arguments.
func TestEveryWrittenCommandLineParses(t *testing.T) {
	checked := 0
	check := func(where, line string) {
		for _, words := range commandLines(line) {
			checked++
			i := &cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Soon{}, Getenv: func(string) string { return "" }}}
			if err := parses(root(i), words); err != nil {
				t.Errorf("%s: %q: %v", where, strings.Join(words, " "), err)
			}
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			check(c.CommandPath(), line)
		}
		for _, quoted := range inProse.FindAllStringSubmatch(c.Long+"\n"+c.Short, -1) {
			check(c.CommandPath()+" --help", quoted[1]+quoted[2])
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root((&cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Soon{}, Getenv: func(string) string { return "" }}})))
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "COMMANDS.md" }) // made from what was just read
	for _, file := range append(files, "../../../README.md", "../../../CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range writtenLines(string(text)) {
			check(filepath.Base(file), line)
		}
	}
	if checked < 200 {
		t.Errorf("only %d command lines were found; the test looks in the wrong places", checked)
	}
}

// TestEverySuggestedCommandLineParses reads the command lines that errors and hints of the program name. Three words stand for the parts
// that are added at run time.
func TestEverySuggestedCommandLineParses(t *testing.T) {
	checked := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path,
			"testdata") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			for _, quoted := range inProse.FindAllStringSubmatch(text, -1) {
				line := strings.NewReplacer("%s", "X", "%d", "1", "%v", "X").Replace(quoted[1] + quoted[2])
				for _, words := range commandLines(line) {
					checked++
					if err := suggests(words); err != nil {
						t.Errorf("%s: %q: %v", path, line, err)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || checked < 80 {
		t.Errorf("only %d command lines were found: %v", checked, err)
	}
}

// suggests holds a line against the commands, with up to three words more.
func suggests(words []string) (first error) {
	for range 4 {
		err := parses(root((&cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Soon{}, Getenv: func(string) string { return "" }}})), words)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
		words = append(words, "1")
	}
	return first
}

// inProse finds command lines in the sentences of help: between backticks, or behind a colon at the end of a sentence.
var inProse = regexp.MustCompile("`(agentbox [^`]+)`|: (agentbox [^\n]+?)(?:\\.(?:\n|$| )|\n|$|;)")

// writtenLines returns the command lines of a document: the lines of its blocks of code, and what stands between backticks.
func writtenLines(text string) (lines []string) {
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			code = !code
		case code || strings.HasPrefix(line, "    "):
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		default:
			for _, quoted := range regexp.MustCompile("`(agentbox [^`]+)`").FindAllStringSubmatch(line, -1) {
				lines = append(lines, quoted[1])
			}
		}
	}
	return lines
}

// commandLines returns the simple commands of a line of shell that run agentbox, as words.
func commandLines(line string) (found [][]string) {
	if !strings.Contains(line, "agentbox ") || strings.Contains(line, "|LIST") {
		return nil
	}
	line = regexp.MustCompile(`\s\.\.\.(\s|$)`).ReplaceAllString(line, "$1") // "and so on"
	file, err := syntax.NewParser(syntax.KeepComments(false)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil // a sentence, or a picture
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) < 2 || call.Args[0].Lit() != "agentbox" && !strings.HasSuffix(call.Args[0].Lit(), "/agentbox") {
			return true
		}
		var words []string
		for _, w := range call.Args[1:] {
			var out strings.Builder
			for _, part := range w.Parts {
				switch p := part.(type) {
				case *syntax.Lit:
					out.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
				case *syntax.SglQuoted:
					out.WriteString(p.Value)
				default:
					out.WriteString("X") // known when it runs
				}
			}
			if out.String() == "N" {
				out.Reset()
				out.WriteString("1") // a number
			}
			words = append(words, out.String())
		}
		found = append(found, words)
		return true
	})
	return found
}

// headers begin files and signed texts; they are no commands.
var headers = []string{"permit 1", "folder 1"}

// parses finds the command of some words and holds its flags and its number of arguments against it, without running it.
func parses(root *cobra.Command, words []string) error {
	if slices.Contains(headers, strings.Join(words, " ")) {
		return nil
	}
	root.InitDefaultHelpCmd()
	cmdline.Shells(root)
	c, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if len(rest) == 0 {
		return nil // the command is named, not written out
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return err
	}
	return c.ValidateRequiredFlags()
}
