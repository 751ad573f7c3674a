package command

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/policy"
)

// stdin is the input of a command, if the command line determines it.
type stdin struct {
	set    bool
	script arg // of a here-document or a here-string
	file   arg // of a redirection
}

// call reads a simple command of a script.
func (r *reader) call(c *syntax.CallExpr, redirs []*syntax.Redirect, depth int) error {
	if len(c.Args) == 0 {
		return nil // assignments only
	}
	args, err := r.words(c.Args)
	if err != nil {
		return err
	}
	var in stdin
	for _, d := range redirs {
		if d.N != nil && d.N.Value != "0" {
			continue
		}
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			in = stdin{set: true, script: document(d)}
		case syntax.WordHdoc:
			in = stdin{set: true, script: literal(d.Word)}
		case syntax.RdrIn:
			in = stdin{set: true, file: literal(d.Word)}
		}
	}
	if !captured(redirs) {
		r.mentions.mentionAll(path.Base(args[0].text), args[1:])
	}
	return r.command(args, &in, depth, true)
}

// document reads the body of a here-document.
func document(d *syntax.Redirect) arg {
	a := arg{known: true}
	if d.Hdoc == nil {
		return a
	}
	if d.Word.Lit() == "" || strings.Contains(d.Word.Lit(), `\`) { // the delimiter is quoted, so the body is literal
		a.text = d.Hdoc.Lit()
		return a
	}
	var text strings.Builder
	quoted(d.Hdoc.Parts, &text, &a)
	a.text = text.String()
	return a
}

// command reads one simple command and the commands that it runs in turn. Lookup says that the shell looks its name up, so that it may be
// a function.
func (r *reader) command(args []arg, in *stdin, depth int, lookup bool) error {
	if in == nil {
		in = &stdin{}
	}
	if depth > maxDepth {
		return &Error{Msg: fmt.Sprintf("commands are nested more than %d deep", maxDepth)}
	}
	word, rest := args[0], args[1:]
	if !word.known || word.glob || word.text == "" {
		r.doubt(policy.TraitUnresolved, "a command whose name is only known when it runs")
		return r.emit(Command{Args: known(rest), Traits: []string{policy.TraitUnresolved}})
	}
	c := Command{Name: path.Base(word.text), Args: known(rest)}
	if strings.Contains(word.text, "/") {
		c.Traits = append(c.Traits, policy.TraitByPath)
		if !system[path.Dir(path.Clean(word.text))] {
			c.Traits = append(c.Traits, policy.TraitOwnProgram)
			r.unseal(word)
			if foreign(r.cwd, word.text) {
				r.unknown(&c)
			}
		}
	} else if lookup && r.functions[c.Name] {
		c.Traits = append(c.Traits, policy.TraitFunction)
	}
	if loader(c.Name) {
		r.unknown(&c)
	}
	for trait, names := range byTrait {
		if names[c.Name] {
			c.Traits = append(c.Traits, trait)
		}
	}
	inner, err := r.effects(&c, rest, in, depth)
	if err != nil {
		return err
	}
	if err := r.emit(c); err != nil {
		return err
	}
	if c.Name == "ln" {
		r.places.links = append(r.places.links, rest)
	}
	if c.Name == "mv" {
		r.places.moves = append(r.places.moves, moving{len(r.out.Commands) - 1, rest})
	}
	for _, run := range inner {
		if len(run) == 0 {
			continue
		}
		r.mentions.mentionAll(path.Base(run[0].text), run[1:])
		if err := r.command(run, in, depth+1, false); err != nil {
			return err
		}
	}
	return nil
}

// unseal notes a file whose content decides what runs.
func (r *reader) unseal(a arg) {
	name := a.text
	if !a.known {
		name = "a file that is only known when it runs"
	} else {
		name = resolve(r.cwd, name)
		_ = r.open(a, false, true) // never fails: it is not a device of the network, which only a shell opens
	}
	r.out.Unsealed = append(r.out.Unsealed, name)
}

// unknown marks a command whose arguments decide what runs and are not known.
func (r *reader) unknown(c *Command) {
	c.Traits = append(c.Traits, policy.TraitUnresolved)
	r.doubt(policy.TraitUnresolved, "what "+c.Name+" runs is only known when it runs")
}

// effects finds out the effects of a command's arguments: the traits that follow, and the commands that it runs.
// It is long because it is one switch over the commands that are known.
//
//nolint:cyclop // one case for each family of programs
func (r *reader) effects(c *Command, rest []arg, in *stdin, depth int) (inner [][]arg, err error) {
	switch c.Name {
	case "sh", "bash", "dash", "ash", "rbash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh":
		return nil, r.shell(c, rest, in, depth)
	case "eval":
		r.unknown(c)
		rest = operand(rest)
		return nil, r.joined(rest, depth)
	case "source", ".":
		r.doubt(policy.TraitPoisons, c.Name)
		c.Traits = append(c.Traits, policy.TraitPoisons, policy.TraitRunsFile)
		if len(rest) > 0 {
			r.unseal(rest[0])
		}
	case "alias", "unalias", "enable", "hash":
		if len(rest) > 0 {
			r.doubt(policy.TraitPoisons, c.Name)
			c.Traits = append(c.Traits, policy.TraitPoisons)
		}
	case "unset", "read", "mapfile", "readarray", "getopts", "printf", "export", "declare", "typeset", "local", "readonly", "complete",
		"compgen", "bind", "wait":
		r.variables(c, rest)
	case "trap":
		if rest = operand(rest); len(rest) > 0 && rest[0].text != "-" {
			if !rest[0].known {
				r.unknown(c)
				return nil, nil
			}
			return nil, r.script(rest[0].text, Bash, depth+1)
		}
	case "shopt":
		r.globs(rest)
	case "set":
		for i, a := range rest {
			if len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.Contains(a.text, "k") || a.text == "keyword" && i > 0 {
				r.doubt(policy.TraitPoisons, "set -k")
			}
		}
	case "cd", "pushd":
		if c.Name == "cd" && len(operand(rest)) == 0 {
			r.places.folders = append(r.places.folders, arg{text: home, known: true})
		}
		for _, a := range rest {
			if !a.known || !strings.HasPrefix(a.text, "-") {
				r.places.folders = append(r.places.folders, a)
			}
			if a.known && !strings.HasPrefix(a.text, "-") {
				if err := r.open(a, false, true); err != nil {
					return nil, err
				}
				r.places.dirs = append(r.places.dirs, strings.TrimPrefix(path.Join("/", r.cwd, a.text), "/"))
			}
		}
	case "git":
		return nil, r.programs.git(c, rest)
	case "test", "[":
		r.arith = true
	case "rm", "unlink", "shred":
		r.programs.removes(c, rest)
	case "truncate": // emptying files whose number is not known is deleting them
		if slices.ContainsFunc(rest, func(a arg) bool { return !a.known || a.glob }) {
			c.Traits = append(c.Traits, policy.TraitDeletesTree)
		}
	case "find":
		return r.programs.find(c, rest)
	case "sed":
		if err := r.programs.streamEditor(c, rest, in); err != nil {
			return nil, err
		}
	case "awk", "gawk", "mawk", "nawk":
		r.programs.awk(c, rest)
		r.programs.awkProgram(rest)
		r.programs.options(c, rest)
	case "python", "python2", "python3", "node", "nodejs", "deno", "perl", "ruby", "php", "lua", "bun", "tsx", "ts-node":
		r.programs.interpreter(c, rest, in)
	case "sqlite3", "sqlite":
		return nil, r.sqlite(c, rest, in)
	case "wasm":
		r.programs.wasm(c, rest)
	case "npm", "pnpm", "yarn", "pip", "pip3", "uv", "poetry", "cargo", "go", "gem":
		r.programs.packages(c, rest)
	default:
		if wrappers[c.Name].known {
			return r.wrapper(c, rest, depth)
		}
		r.programs.fetcher(c, rest)
		r.programs.options(c, rest)
	}
	if skip, ok := fileTools[c.Name]; ok {
		return nil, r.operands(c, rest, skip)
	}
	return nil, nil
}

// operand returns the arguments behind a leading --.
func operand(rest []arg) []arg {
	if len(rest) > 0 && rest[0].known && rest[0].text == "--" {
		return rest[1:]
	}
	return rest
}

// joined reads arguments as the command line that they are joined to.
func (r *reader) joined(rest []arg, depth int) error {
	line, ok := joinedText(rest)
	if !ok {
		return nil // already marked as unknown
	}
	return r.script(line, Bash, depth+1)
}

// joinedText returns the command line to which arguments are joined; false where one of them is not known.
func joinedText(rest []arg) (string, bool) {
	words := make([]string, len(rest))
	for i, a := range rest {
		if !a.known {
			return "", false
		}
		words[i] = a.text
	}
	return strings.Join(words, " "), true
}

// shell reads the code that a shell would run.
func (r *reader) shell(c *Command, rest []arg, in *stdin, depth int) error {
	dialect := Bash
	switch c.Name {
	case "sh", "dash", "ash":
		dialect = POSIX
	case "bash", "rbash":
	default:
		r.unknown(c) // another language
	}
	told := invoked(rest)
	for _, file := range told.files {
		r.unseal(file)
	}
	r.globs(told.sets)
	if told.starts {
		r.out.Unsealed = append(r.out.Unsealed, "the start files of "+c.Name)
	}
	if !told.known {
		r.unknown(c)
		return nil
	}
	script, i := told.script, told.at
	switch {
	case script && i < len(rest):
		c.Traits = append(c.Traits, policy.TraitInlineCode)
		if !rest[i].known {
			r.unknown(c)
			return nil
		}
		return r.script(rest[i].text, dialect, depth+1)
	case script:
		return nil // a usage error
	case i < len(rest) && !told.stdin && !isStdin(resolve(r.cwd, rest[i].text)):
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		r.unseal(rest[i])
		return nil
	case in.set && in.file.known && in.file.text != "":
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		r.unseal(in.file)
		return nil
	case in.set && in.script.known:
		return r.script(in.script.text, dialect, depth+1)
	}
	if len(rest) == 1 && (rest[0].text == "--version" || rest[0].text == "--help") {
		return nil
	}
	r.unknown(c) // it reads commands from a pipe
	return nil
}

// wrapper finds the command within the arguments of one that runs another.
func (r *reader) wrapper(c *Command, rest []arg, depth int) ([][]arg, error) {
	w := wrappers[c.Name]
	if w.opaque {
		r.unknown(c)
		return nil, nil
	}
	options, i, assigned, ok := w.place(rest)
	for _, a := range rest[:options] {
		if hides(a.text, w.refuse) {
			r.unknown(c)
		}
	}
	if looksUp(c.Name, rest[:options]) {
		return nil, nil
	}
	if c.Name == "env" {
		r.places.folders = append(r.places.folders, chdirs(rest[:options])...)
	}
	for _, name := range assigned {
		r.assigned(name)
	}
	if !ok {
		r.unknown(c)
	}
	if !ok || i >= len(rest) {
		return nil, nil
	}
	run := append([]arg(nil), rest[i:]...)
	if c.Name == "xargs" {
		if err := r.argFile(c, rest[:i]); err != nil {
			return nil, err
		}
		text, replaces := replaced(rest[:i])
		for j := range run {
			if replaces && (text == "" || strings.Contains(run[j].text, text)) {
				run[j].known, run[j].one = false, true
				run[j].word, run[j].shape = nil, starred(run[j].text, text)
			}
		}
		run = append(run, arg{})
	}
	if takesLine(c.Name, run) {
		return nil, r.joined(run[1:], depth)
	}
	return [][]arg{run}, nil
}

// chdirs returns the folders into which the options of env change.
func chdirs(options []arg) (folders []arg) {
	for i, o := range options {
		name, text, has := strings.Cut(o.text, "=")
		switch {
		case o.text == "-C" || len(name) > 2 && strings.HasPrefix("--chdir", name) && !has:
			if i+1 < len(options) {
				folders = append(folders, options[i+1])
			}
		case strings.HasPrefix(o.text, "-C"):
			folders = append(folders, arg{text: o.text[2:], known: true})
		case len(name) > 2 && strings.HasPrefix("--chdir", name):
			folders = append(folders, arg{text: text, known: true})
		}
	}
	return folders
}

// starred replaces the text that xargs and find insert into a word by a star. If the replaced text is not known, the whole word becomes a
// star.
func starred(word, text string) string {
	if text == "" {
		return "*"
	}
	return strings.ReplaceAll(word, text, "*")
}

// globs reads the options that change the meaning of the shell's patterns.
func (r *reader) globs(rest []arg) {
	for _, a := range rest {
		r.late.fold = r.late.fold || !a.known || a.text == "nocaseglob"
		r.late.dots = r.late.dots || !a.known || a.text == "dotglob"
	}
}

// argFile notes the file from which xargs reads its arguments.
func (r *reader) argFile(c *Command, rest []arg) error {
	for i, a := range rest {
		name, text, has := strings.Cut(a.text, "=")
		switch {
		case strings.HasPrefix(name, "--") && len(name) > 2 && strings.HasPrefix("--arg-file", name):
		case len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.Contains(a.text, "a"):
			_, text, _ = strings.Cut(a.text, "a")
			has = text != ""
		default:
			continue
		}
		from := arg{text: text, known: true}
		if !has && i+1 < len(rest) {
			from = rest[i+1]
		}
		if err := r.operand(c, from, false); err != nil {
			return err
		}
	}
	return nil
}

// hides reports whether an option is, or has in its cluster, one of those behind which nothing is known.
func hides(option string, refuse []string) bool {
	for _, f := range refuse {
		switch {
		case len(f) == 2 && len(option) > 1 && option[0] == '-' && option[1] != '-':
			if strings.Contains(option, f[1:]) {
				return true
			}
		case len(f) > 2 && strings.HasPrefix(option, "--"):
			name, _, _ := strings.Cut(option, "=")
			if len(name) > 2 && strings.HasPrefix(f, name) {
				return true
			}
		}
	}
	return false
}

// replaced returns the text that xargs replaces by its input, "" if it is not known, and whether it replaces any.
func replaced(options []arg) (text string, replaces bool) {
	for i, o := range options {
		switch {
		case o.text == "-I" && i+1 < len(options):
			text, replaces = options[i+1].text, true
		case strings.HasPrefix(o.text, "-I"):
			text, replaces = o.text[2:], true
		case strings.HasPrefix(o.text, "--r") && strings.HasPrefix("--replace", strings.SplitN(o.text, "=", 2)[0]):
			text, replaces = "", true
		case len(o.text) > 1 && o.text[0] == '-' && o.text[1] != '-' && strings.ContainsAny(o.text, "iI"):
			text, replaces = "", true
		}
	}
	return text, replaces
}
