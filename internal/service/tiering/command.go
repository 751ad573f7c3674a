package tiering

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/space"
)

// builtins are what every shell has itself.
const builtins = `. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable
	eval exec exit
	export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set
	shift shopt source
	suspend test times trap true type typeset ulimit umask unalias unset wait`

// wrappers run the command that their arguments are; letters are those of their options that take an argument of their own, operands how
// many words of their own come before the command.
var wrappers = map[string]struct {
	letters  string
	operands int
}{
	"command": {}, "builtin": {}, "exec": {letters: "a"}, "env": {letters: "uCS"}, "xargs": {letters: "adEILnPs"}, "timeout": {letters: "ks",
		operands: 1},
	"nice": {letters: "n"}, "ionice": {letters: "cn"}, "nohup": {}, "setsid": {}, "stdbuf": {letters: "ioe"}, "time": {letters: "fo"},
	"sudo": {letters: "ug"},
}

// word is a word of a command: known only where nothing of it is decided when it runs.
type word struct {
	text  string
	known bool
}

// text checks a text of a shell. Where names the place that contains it.
func (s *look) text(text, where string, depth int) {
	if len(text) > maxText || depth > maxDepth {
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return // the shell says so itself
	}
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
			if value := literal(a.Value); value.known {
				s.variable(a.Name.Value, value.text)
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
			if w := literal(d.Word); w.known {
				stdin = &w.text
			}
		case syntax.RdrIn:
			if w := literal(d.Word); w.known {
				if at, ok := s.at(w.text); ok {
					if text, ok := s.file(at); ok {
						stdin = &text
					}
				}
			}
		case syntax.RdrOut, syntax.RdrClob:
			if w := literal(d.Word); w.known && (d.N == nil || d.N.Value == "1") {
				into = w.text
			}
		}
	}
	words := make([]word, len(call.Args))
	for i, w := range call.Args {
		words[i] = literal(w)
	}
	if len(words) == 0 {
		return
	}
	if at, ok := s.at(into); ok && words[0].text == "cat" && len(words) == 1 && stdin != nil {
		s.written[at] = *stdin // a script that is written and then run
	}
	if where == "" {
		where = fmt.Sprintf("line %d", call.Pos().Line())
	}
	s.command(words, stdin, where, depth)
}

// raw returns the text of a here-document; expansions in it are left as they are written.
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

// literal takes the quotes of a word away.
func literal(w *syntax.Word) word {
	var text strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			unescape(&text, p.Value, "")
		case *syntax.SglQuoted:
			value := p.Value
			if p.Dollar {
				value, _, _ = expand.Format(nil, value, nil)
			}
			text.WriteString(value)
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				l, plain := q.(*syntax.Lit)
				if !plain {
					return word{}
				}
				unescape(&text, l.Value, "$`\"\\\n")
			}
		default:
			return word{}
		}
	}
	return word{text.String(), true}
}

// unescape writes a text without the backslashes that stand before one of some characters, before any where none are named.
func unescape(out *strings.Builder, text, before string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (before == "" || strings.IndexByte(before, text[i+1]) >= 0) {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		out.WriteByte(text[i])
	}
}

// command looks at a command by its words.
func (s *look) command(words []word, stdin *string, where string, depth int) {
	if s.count++; len(words) == 0 || !words[0].known || words[0].text == "" || depth > maxDepth || s.count > maxCommands {
		return
	}
	name, rest := words[0].text, words[1:]
	if strings.Contains(name, "/") {
		if folder := path.Dir(path.Clean(name)); !slices.Contains(systemFolders, folder) {
			if at, ok := s.at(name); ok {
				s.program(at, rest, stdin, depth)
			}
			return
		}
		name = path.Base(name)
	} else if s.functions[name] {
		return
	}
	switch {
	case s.heavy(s.rules.Heavy.Commands, name):
		s.need(space.Need{Kind: space.LackCommand, Name: name, Where: where, Why: "the rules say so"})
	case !s.shellHas[name] && !s.has.Program(name) && !(s.nano && s.commands[name]):
		s.need(space.Need{Kind: space.LackCommand, Name: name, Where: where})
	}
	switch name {
	case "cd":
		if len(rest) == 1 && rest[0].known {
			if at, ok := s.at(rest[0].text); ok {
				s.cwd = at
			}
		}
	case "eval":
		if text, ok := joined(rest); ok {
			s.text(text, where, depth+1)
		}
	case "source", ".":
		if len(rest) > 0 && rest[0].known {
			s.shellFile(rest[0].text, depth)
		}
	case "sh", "bash", "dash":
		s.shell(rest, stdin, where, depth)
	case "python", "python3":
		s.python(rest, stdin, where)
	case "node", "nodejs", "bun", "deno", "tsx", "ts-node":
		s.javascript(rest, stdin, where)
	case "pip", "pip3":
		s.pip(rest, where)
	case "npm", "pnpm", "yarn":
		s.npm(name, rest, where, depth)
	case "find":
		s.find(rest, where, depth)
	default:
		s.outside(name, rest, where)
	}
	if w, ok := wrappers[name]; ok && !(name == "command" && len(rest) > 0 && strings.Trim(rest[0].text, "-vV") == "") {
		s.command(inner(rest, w.letters, w.operands), stdin, where, depth+1)
	}
}

// systemFolders are where programs are that are no files of the space.
var systemFolders = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}

// inner returns the command within the arguments of one that runs another.
func inner(rest []word, letters string, operands int) []word {
	for i := 0; i < len(rest); i++ {
		text := rest[i].text
		switch {
		case !rest[i].known:
			return nil
		case text == "--":
			continue
		case strings.HasPrefix(text, "--"):
			continue // as --option=value
		case len(text) == 2 && text[0] == '-' && strings.ContainsRune(letters, rune(text[1])):
			i++
		case len(text) > 1 && text[0] == '-':
		case strings.Contains(text, "="):
		case operands > 0:
			operands--
		default:
			return rest[i:]
		}
	}
	return nil
}

func joined(rest []word) (string, bool) {
	texts := make([]string, len(rest))
	for i, w := range rest {
		if !w.known {
			return "", false
		}
		texts[i] = w.text
	}
	return strings.Join(texts, " "), true
}

// operand returns the first word that is no option, and the words after it. Letters are those of options that take an argument.
func operand(rest []word, letters string) (first word, behind []word) {
	found := inner(rest, letters, 0)
	if len(found) == 0 {
		return word{}, nil
	}
	return found[0], found[1:]
}

// given returns the argument of the first option for which ask says that its argument is code. Ok says that there is such an option before
// the first operand, or that the words there are not known.
func given(rest []word, letters string, ask func(option string) bool) (argument, option word, ok bool) {
	for i := 0; i < len(rest); i++ {
		switch w := rest[i]; {
		case !w.known:
			return word{}, word{}, true
		case len(w.text) < 2 || w.text[0] != '-' || w.text == "--":
			return word{}, word{}, false
		case ask(w.text):
			if i+1 < len(rest) {
				argument = rest[i+1]
			}
			return argument, w, true
		case len(w.text) == 2 && strings.ContainsRune(letters, rune(w.text[1])):
			i++
		}
	}
	return word{}, word{}, false
}

// shell checks the code that a shell is asked to run.
func (s *look) shell(rest []word, stdin *string, where string, depth int) {
	text, _, ok := given(rest, "oO", func(o string) bool { return o[1] != '-' && strings.Contains(o, "c") })
	if ok {
		s.text(text.text, where, depth+1)
		return
	}
	if file, _ := operand(rest, "oO"); file.text != "" {
		s.shellFile(file.text, depth)
	} else if stdin != nil {
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
			words = append(words, word{field, true})
		}
		if len(words) > 1 && path.Base(words[0].text) == "env" && words[1].text == "-S" {
			words = slices.Delete(words, 1, 2)
		}
		if len(words) > 0 {
			words[0].text = path.Base(words[0].text)
			s.command(slices.Concat(words, []word{{workspace + at, true}}, rest), stdin, where, depth+1)
		}
	default:
		if !s.seen[at] {
			s.seen[at] = true
			s.text(text, where, depth+1)
		}
	}
}

// find looks at what find runs.
func (s *look) find(rest []word, where string, depth int) {
	for i, w := range rest {
		if w.text != "-exec" && w.text != "-execdir" && w.text != "-ok" {
			continue
		}
		end := slices.IndexFunc(rest[i+1:], func(w word) bool { return w.text == ";" || w.text == "+" })
		if end > 0 {
			s.command(rest[i+1:i+1+end], nil, where, depth+1)
		}
	}
}
