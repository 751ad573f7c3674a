package tiering

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/command"
	"agentbox/internal/domain/space"
)

// word is a word of a command: known only where nothing of it is decided when it runs.
type word = command.Word

// text looks at a text of a shell. Where names the place in which it stands.
func (s *look) text(text, where string, depth int) {
	if len(text) > maxText || depth > maxDepth {
		return
	}
	parsed, err := command.Parse(text)
	if err != nil {
		return // the shell says so itself
	}
	file := parsed.File
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
			s.functions[f.Name.Value] = true
		}
		return true
	})
	cwd, tried, perhaps := s.cwd, s.tried, uncertain(file)
	syntax.Walk(file, func(n syntax.Node) bool {
		if stmt, ok := n.(*syntax.Stmt); ok {
			s.tried = tried || perhaps[stmt]
			s.statement(stmt, where, depth)
		}
		return s.count < maxCommands
	})
	s.cwd, s.tried = cwd, tried
}

// quiet are builtins beside which a program is still all that a command does.
var quiet = []string{":", "cd", "echo", "export", "set", "true", "umask"}

// alone returns the one program that a command line calls, "" where it calls several, or does something else.
func alone(text string) string {
	parsed, err := command.Parse(text)
	if err != nil || len(text) > maxText {
		return ""
	}
	name, several := "", false
	syntax.Walk(parsed.File, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			w := command.Literal(n.Args[0])
			if w.Known && slices.Contains(quiet, w.Text) {
				break
			}
			several = several || !w.Known || name != ""
			name = path.Base(w.Text)
		case *syntax.Redirect: // it writes a file, whether there is a program or not
			several = several || n.Op != syntax.RdrIn && n.Op != syntax.DplOut && n.Op != syntax.WordHdoc && n.Op != syntax.Hdoc
		case *syntax.FuncDecl, *syntax.ProcSubst, *syntax.CoprocClause, *syntax.ArithmCmd, *syntax.LetClause:
			several = true
		}
		return true
	})
	if several || name == "." {
		return ""
	}
	return name
}

// uncertain returns the statements that may not run, or whose failure the text deals with.
func uncertain(file *syntax.File) map[*syntax.Stmt]bool {
	found := map[*syntax.Stmt]bool{}
	mark := func(n syntax.Node) {
		syntax.Walk(n, func(n syntax.Node) bool {
			if stmt, ok := n.(*syntax.Stmt); ok {
				found[stmt] = true
			}
			return true
		})
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if found[n] {
				return false
			}
			if n.Negated || n.Background || n.Coprocess {
				mark(n)
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.OrStmt {
				mark(n)
			}
		case *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause, *syntax.FuncDecl:
			mark(n)
		}
		return true
	})
	return found
}

// statement looks at a simple command, with its here-documents.
func (s *look) statement(stmt *syntax.Stmt, where string, depth int) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	s.count++
	for _, a := range call.Assigns {
		if a.Name != nil && a.Value != nil {
			if value := command.Literal(a.Value); value.Known {
				s.variable(a.Name.Value, value.Text)
			}
		}
	}
	var stdin *string
	into := ""
	for _, d := range stmt.Redirs {
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if d.Hdoc != nil {
				text := raw(d.Hdoc)
				stdin = &text
			}
		case syntax.WordHdoc:
			if w := command.Literal(d.Word); w.Known {
				stdin = &w.Text
			}
		case syntax.RdrIn:
			if w := command.Literal(d.Word); w.Known {
				if at, ok := s.at(w.Text); ok {
					if text, ok := s.file(at); ok {
						stdin = &text
					}
				}
			}
		case syntax.RdrOut, syntax.RdrClob:
			if w := command.Literal(d.Word); w.Known && (d.N == nil || d.N.Value == "1") {
				into = w.Text
			}
		}
	}
	words := make([]word, len(call.Args))
	for i, w := range call.Args {
		words[i] = command.Literal(w)
	}
	if len(words) == 0 {
		return
	}
	if at, ok := s.at(into); ok && words[0].Text == "cat" && len(words) == 1 && stdin != nil {
		s.written[at] = *stdin // a script that is written and then run
	}
	if where == "" {
		where = fmt.Sprintf("line %d", call.Pos().Line())
	}
	s.command(words, stdin, where, depth)
}

// raw returns a here-document as written, with its expansions unexpanded.
func raw(w *syntax.Word) string {
	var text strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(p.Value)
		default:
			text.WriteString("_") // some value
		}
	}
	return text.String()
}

// command looks at a command by its words.
func (s *look) command(words []word, stdin *string, where string, depth int) {
	s.invoked(words, stdin, where, depth, false)
}

// invoked looks at a command by its words. Held says that the program which runs it has it itself.
func (s *look) invoked(words []word, stdin *string, where string, depth int, held bool) {
	if s.count++; len(words) == 0 || !words[0].Known || words[0].Text == "" || depth > maxDepth || s.count > maxCommands {
		return
	}
	name, rest := words[0].Text, words[1:]
	if strings.Contains(name, "/") {
		if folder := path.Dir(path.Clean(name)); !slices.Contains(systemFolders, folder) {
			if at, ok := s.at(name); ok {
				s.program(at, rest, stdin, depth)
			}
			return
		}
		name = path.Base(name)
	} else if s.functions[name] && !held {
		return
	}
	switch {
	case s.heavy(s.rules.Heavy.Commands, name):
		s.need(space.Need{Kind: space.LackCommand, Name: name, Where: where, Why: "the rules say so"})
	case !held && !command.Builtin(name) && !s.has.Program(name) && !(s.nano && s.commands[name]):
		s.need(space.Need{Kind: space.LackCommand, Name: name, Where: where, Alone: depth == 0 && name == s.alone})
	}
	s.runs(name, rest, stdin, where, depth)
	inner, line := command.Inner(name, rest)
	if line != "" {
		s.text(line, where, depth+1)
	}
	if len(inner) > 0 {
		s.invoked(inner, stdin, where, depth+1, command.Holds(name))
	}
}

// runs checks what a program does with its arguments, except for a command that stands in them as it is.
func (s *look) runs(name string, rest []word, stdin *string, where string, depth int) {
	switch name {
	case "cd":
		if len(rest) == 1 && rest[0].Known {
			if at, ok := s.at(rest[0].Text); ok {
				s.cwd = at
			}
		}
	case "eval":
		if text, ok := joined(rest); ok {
			s.text(text, where, depth+1)
		}
	case "source", ".":
		if len(rest) > 0 && rest[0].Known {
			s.shellFile(rest[0].Text, depth)
		}
	case "sh", "bash", "dash", "ash", "rbash":
		s.shell(rest, stdin, where, depth)
	case "python", "python3":
		s.python(name, rest, stdin, where)
	case "node", "nodejs", "bun", "deno", "tsx", "ts-node":
		s.javascript(name, rest, stdin, where)
	case "pip", "pip3":
		s.pip(name, rest, where)
	case "npm", "pnpm", "yarn":
		s.npm(name, rest, where, depth)
	case "find":
		for _, found := range command.Found(rest) {
			s.command(found, nil, where, depth+1)
		}
	default:
		s.outside(name, rest, where)
	}
}

// systemFolders are where programs are that are no files of the space.
var systemFolders = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}

func joined(rest []word) (string, bool) {
	texts := make([]string, len(rest))
	for i, w := range rest {
		if !w.Known {
			return "", false
		}
		texts[i] = w.Text
	}
	return strings.Join(texts, " "), true
}

// operand returns the first word that is not an option, where no option takes an argument, and what stands behind it.
func operand(rest []word) (first word, behind []word) { return command.Options{}.Operand(rest) }

// given returns the argument of the first option for which ask says that what is run stands in it. Ok says that there is one before the
// first operand, or that what stands there is not known.
func given(rest []word, options command.Options, ask func(option string) bool) (argument, option word, ok bool) {
	for i := 0; i < len(rest); i++ {
		switch w := rest[i]; {
		case !w.Known:
			return word{}, word{}, true
		case len(w.Text) < 2 || w.Text[0] != '-' || w.Text == "--":
			return word{}, word{}, false
		case ask(w.Text):
			if i+1 < len(rest) {
				argument = rest[i+1]
			}
			return argument, w, true
		case options.Takes(w.Text):
			i++
		}
	}
	return word{}, word{}, false
}

// shell checks the commands that a shell would run.
func (s *look) shell(rest []word, stdin *string, where string, depth int) {
	text, file, reads := command.Shell(rest)
	switch {
	case text.Text != "":
		s.text(text.Text, where, depth+1)
	case file.Text != "":
		s.shellFile(file.Text, depth)
	case reads && stdin != nil:
		s.text(*stdin, where, depth+1)
	}
}

func (s *look) shellFile(name string, depth int) {
	if at, ok := s.once(name); ok {
		if text, ok := s.file(at); ok {
			s.text(text, strings.TrimPrefix(at, "/"), depth+1)
		}
	}
}

// once returns the place of a file that was not looked into yet.
func (s *look) once(name string) (string, bool) {
	at, ok := s.at(name)
	if !ok || s.seen[at] {
		return "", false
	}
	s.seen[at] = true
	return at, true
}

// program looks at a file of the space that is run as a program.
func (s *look) program(at string, rest []word, stdin *string, depth int) {
	text, ok := s.file(at)
	where := strings.TrimPrefix(at, "/")
	switch {
	case !ok || strings.HasPrefix(text, "\x00asm"): // a module of WebAssembly is what nano itself runs
	case strings.HasPrefix(text, "\x7fELF"):
		s.need(space.Need{Kind: space.LackFeature, Name: space.Binaries, Where: where, Why: "it is a program of machine code"})
	case strings.HasPrefix(text, "#!"):
		line, _, _ := strings.Cut(text[2:], "\n")
		var words []word
		for field := range strings.FieldsSeq(line) {
			words = append(words, word{Text: field, Known: true})
		}
		if len(words) > 1 && path.Base(words[0].Text) == "env" && words[1].Text == "-S" {
			words = slices.Delete(words, 1, 2)
		}
		if len(words) > 0 {
			words[0].Text = path.Base(words[0].Text)
			s.command(slices.Concat(words, []word{{Text: workspace + at, Known: true}}, rest), stdin, where, depth+1)
		}
	default:
		if !s.seen[at] {
			s.seen[at] = true
			s.text(text, where, depth+1)
		}
	}
}
