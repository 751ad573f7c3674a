// Package command reads a command line without running it and says which commands it would run and which files it would open.
//
// It answers for intent, not for isolation: the space bounds what a program does when it runs. The package never guesses. It says
// that something is unknown if it cannot be known before the command runs.
package command

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/policy"
)

// Limits of the reader.
const (
	MaxChars    = 4_096     // of one command line
	MaxArgBytes = 128 << 10 // of all arguments together, where no shell is involved
	maxDepth    = 8         // of command lines within arguments of command lines
	maxCommands = 512       // in one command line, all depths together
	maxWords    = 1_024     // in one simple command, after brace expansion
	maxBraces   = 64        // brace expressions in one word
	maxDeletes  = 20        // files that one command line may delete without being a tree
)

// Mount is where a space's files lie inside the space.
const Mount = "/workspace"

// otherMount is a link to Mount in every space.
const otherMount = "/home/user"

// Reading holds the effects of a command line, as far as they can be known.
type Reading struct {
	Commands []Command
	Files    []File
	Unsealed []string // files whose content decides what runs, and which are read later
	Doubts   []Doubt  // why a person has to look, whatever the policy says about the single commands
	Leaves   bool     // some command moves files out of the space's files
	Exact    bool     // one simple command, every word of it known, that runs nothing else; a standing approval may cover it
}

// Words returns the words of the one command, its name first, where the reading is exact; else nil.
func (r Reading) Words() []string {
	if !r.Exact {
		return nil
	}
	return append([]string{r.Commands[0].Name}, r.Commands[0].Args...)
}

// Command is one simple command.
type Command struct {
	Name   string   // without its folder; "" where it is not known
	Args   []string // those that are known
	Traits []string // TraitX constants of package policy, sorted
}

// Has reports whether the command has a trait.
func (c Command) Has(trait string) bool { return slices.Contains(c.Traits, trait) }

// Line returns the name and the arguments, joined by spaces.
func (c Command) Line() string { return strings.Join(append([]string{c.Name}, c.Args...), " ") }

// File is a file that the command line opens or hands to a command.
type File struct {
	Path     string // relative to the space's files and cleaned; absolute where it lies outside of them
	Write    bool
	Argument bool // handed to a command that reads or writes files, instead of opened by the shell
	Pattern  bool // a glob
	Dots     bool // whose stars stand for dots at the beginning too, as those of find do
	Joined   bool // put together of parts: the stars stand for anything, slashes too
	Fold     bool // capital and small letters are the same in it
	Part     bool // a part of it may be the name
}

// Doubt is a reason why a person has to look.
type Doubt struct {
	Trait string // TraitUnresolved or TraitPoisons
	What  string // what stands in the command line
}

// Error says why a command line is refused as it stands.
type Error struct {
	Line, Col uint // 0 where the whole is meant
	Msg       string
}

// Error returns the position and the message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Msg)
}

// Dialect is the language of a command line.
type Dialect int

// The dialects.
const (
	Bash  Dialect = iota
	POSIX         // sh and dash; read as Bash too, for on some systems sh is Bash
)

// ReadScript reads a command line that starts in the folder cwd, relative to the space's files.
func ReadScript(script string, dialect Dialect, cwd string) (Reading, error) {
	r := newReader(cwd)
	if err := r.script(script, dialect, 0); err != nil {
		return Reading{}, err
	}
	return r.finish()
}

// ReadArgv reads an argument vector. Where it is a shell with -c it reads the script, else it is one simple command.
func ReadArgv(argv []string, cwd string) (Reading, error) {
	if len(argv) == 3 && argv[1] == "-c" && (!strings.Contains(argv[0], "/") || system[path.Dir(argv[0])]) {
		switch path.Base(argv[0]) {
		case "bash":
			return ReadScript(argv[2], Bash, cwd)
		case "sh", "dash":
			return ReadScript(argv[2], POSIX, cwd)
		}
	}
	r := newReader(cwd)
	args := make([]arg, len(argv))
	total := 0
	for i, a := range argv {
		if err := checkText(a); err != nil {
			return Reading{}, err
		}
		total += len(a)
		args[i] = arg{text: a, known: true}
	}
	if total > MaxArgBytes || len(argv) > maxWords {
		return Reading{}, &Error{Msg: fmt.Sprintf("the arguments are longer than %d bytes or more than %d", MaxArgBytes, maxWords)}
	}
	if len(argv) == 0 || argv[0] == "" {
		return Reading{}, &Error{Msg: "there is no command"}
	}
	if err := r.command(args, nil, 0, false); err != nil {
		return Reading{}, err
	}
	r.exact = grantable[argv[0]]
	return r.finish()
}

func checkText(text string) error {
	if i := strings.IndexByte(text, 0); i >= 0 {
		return &Error{Msg: fmt.Sprintf("there is a NUL byte at position %d", i)}
	}
	if !utf8.ValidString(text) {
		return &Error{Msg: "the command is not UTF-8"}
	}
	return nil
}

// reader collects a Reading. Its parts hold the rest of its knowledge of the command line, by subject.
type reader struct {
	cwd       string
	out       Reading
	functions map[string]bool // defined in every case before what follows
	deletes   int             // operands of rm so far
	exact     bool
	math      arithmetic
	traps     bool // some text holds a substitution that arithmetic would run
	arith     bool // there is arithmetic

	places   places
	joins    joins
	late     lates
	mentions mentions
	programs programs
}

func newReader(cwd string) *reader {
	r := &reader{cwd: cwd, functions: map[string]bool{}}
	r.places.line, r.joins.line, r.late.line, r.mentions.line, r.programs.line = r, r, r, r, r
	return r
}

func (r *reader) finish() (Reading, error) {
	if err := r.late.settle(); err != nil {
		return Reading{}, err
	}
	if err := r.joins.files(); err != nil {
		return Reading{}, err
	}
	if err := r.mentions.open(); err != nil {
		return Reading{}, err
	}
	for i := range r.out.Files {
		f := &r.out.Files[i]
		f.Fold = f.Fold || r.late.fold && f.Pattern
		f.Dots = f.Dots || r.late.dots
	}
	if err := r.evaluates(); err != nil {
		return Reading{}, err
	}
	if r.arith && r.traps {
		r.doubt(policy.TraitUnresolved, "arithmetic over text that holds a substitution")
	}
	if r.deletes > maxDeletes {
		for i, c := range r.out.Commands {
			if deleters[c.Name] {
				r.out.Commands[i].Traits = add(c.Traits, policy.TraitDeletesTree)
			}
		}
	}
	r.places.leaves()
	slices.Sort(r.out.Unsealed)
	r.out.Unsealed = slices.Compact(r.out.Unsealed)
	r.out.Exact = r.exact && len(r.out.Commands) == 1 && len(r.out.Doubts) == 0 && len(r.out.Unsealed) == 0 &&
		!slices.ContainsFunc(r.out.Files, func(f File) bool {
			return f.Pattern || !f.Argument
		})
	return r.out, nil
}

func (r *reader) doubt(trait, what string) {
	d := Doubt{trait, what}
	if !slices.Contains(r.out.Doubts, d) {
		r.out.Doubts = append(r.out.Doubts, d)
	}
}

// script reads a command line at some depth.
func (r *reader) script(script string, dialect Dialect, depth int) error {
	if err := checkText(script); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(script); n > MaxChars {
		return &Error{Msg: fmt.Sprintf("the command has %d characters; the limit is %d", n, MaxChars)}
	}
	if depth > maxDepth {
		return &Error{Msg: fmt.Sprintf("command lines are nested more than %d deep", maxDepth)}
	}
	if dialect == POSIX {
		file, err := parsePOSIX(script)
		if err != nil {
			return err
		}
		if err := r.file(file, depth); err != nil {
			return err
		}
		// On systems where sh is Bash, the same text means what Bash makes of it.
		other, err := Parse(script)
		if err != nil || !other.Mended && sameShape(file, other.File) {
			return nil //nolint:nilerr // what Bash cannot parse, Bash does not run
		}
		err = r.parsed(other, depth)
		r.exact = false // it means two things
		return err
	}
	file, err := Parse(script)
	if err != nil {
		return refused(err)
	}
	return r.parsed(file, depth)
}

// parsed reads a text of Bash. A text that was written otherwise for the parser is never exact.
func (r *reader) parsed(p Parsed, depth int) error {
	if p.Unknown {
		r.doubt(policy.TraitUnresolved, "an expression that is not known")
	}
	err := r.file(p.File, depth)
	r.exact = r.exact && !p.Mended
	return err
}

func parsePOSIX(script string) (*syntax.File, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script), "")
	if err == nil {
		return file, nil
	}
	return nil, refused(err)
}

// refused turns an error of the parser into one of a command line.
func refused(err error) error {
	if pe, ok := errors.AsType[syntax.ParseError](err); ok {
		return &Error{Line: pe.Pos.Line(), Col: pe.Pos.Col(), Msg: pe.Text}
	}
	if le, ok := errors.AsType[syntax.LangError](err); ok {
		return &Error{Line: le.Pos.Line(), Col: le.Pos.Col(), Msg: "this shell has no " + le.Feature}
	}
	return &Error{Msg: "the command cannot be parsed"}
}

// sameShape reports whether two parses consist of the same kinds of nodes, so that the second need not be read.
func sameShape(a, b *syntax.File) bool {
	var kinds []string
	syntax.Walk(a, func(n syntax.Node) bool {
		if n != nil {
			kinds = append(kinds, fmt.Sprintf("%T", n))
		}
		return true
	})
	i, same := 0, true
	syntax.Walk(b, func(n syntax.Node) bool {
		if n != nil {
			same = same && i < len(kinds) && kinds[i] == fmt.Sprintf("%T", n)
			i++
		}
		return same
	})
	return same && i == len(kinds)
}

// file reads a parsed command line.
func (r *reader) file(file *syntax.File, depth int) error {
	if depth == 0 && len(file.Stmts) == 1 {
		r.exact = plain(file.Stmts[0])
	}
	outer := r.late.sure
	defer func() { r.late.sure = outer }()
	r.late.sure = nil // places are those of this text, and its variables may be those of another shell
	var failed error
	// The meaning of a function's name is certain only if its definition is a statement of its own, before the call.
	certain := map[*syntax.FuncDecl]bool{}
	for _, stmt := range file.Stmts {
		if decl, ok := stmt.Cmd.(*syntax.FuncDecl); ok && !stmt.Negated && !stmt.Background && depth == 0 && decl.Name != nil {
			certain[decl] = true
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if failed != nil {
			return false
		}
		failed = r.node(n, certain, depth)
		return failed == nil
	})
	return failed
}

// node reads one node; its children come by themselves. It is long because it is one switch over the types of nodes.
//
//nolint:cyclop // one case for each kind of node of the grammar
func (r *reader) node(n syntax.Node, certain map[*syntax.FuncDecl]bool, depth int) error {
	r.arithmetical(n)
	r.late.lists(n)
	switch n := n.(type) {
	case *syntax.Stmt:
		r.mentions.feeds(n.Redirs)
		if call, ok := n.Cmd.(*syntax.CallExpr); ok {
			return r.call(call, n.Redirs, depth)
		}
	case *syntax.CoprocClause:
		if n.Name != nil && n.Stmt != nil && n.Stmt.Cmd == nil { // coproc bash <<< x: the parser takes the command for a name
			return r.call(&syntax.CallExpr{Args: []*syntax.Word{n.Name}}, n.Stmt.Redirs, depth)
		}
	case *syntax.FuncDecl:
		if n.Name != nil {
			if named[n.Name.Value] || Builtin(n.Name.Value) {
				r.doubt(policy.TraitPoisons, "function "+n.Name.Value)
			}
			if certain[n] {
				r.functions[n.Name.Value] = true
			}
		}
	case *syntax.Redirect:
		return r.redirect(n)
	case *syntax.Assign:
		if n.Name != nil && !n.Naked {
			r.assigned(n.Name.Value)
		}
		if n.Value != nil {
			r.mentions.mention(literal(n.Value))
		}
		if n.Name != nil && n.Array == nil && !n.Naked {
			r.joins.gives(n.Name.Value, n.Value, n.Append)
			r.late.gets(n.Name.Value, n.Value, false)
		}
		if n.Index != nil {
			r.arith = true
		}
	case *syntax.ArrayElem:
		if n.Value != nil {
			r.mentions.mention(literal(n.Value))
		}
	case *syntax.DeclClause:
		return r.declare(n, depth)
	case *syntax.LetClause:
		r.arith = true
		return r.emit(Command{Name: "let"})
	case *syntax.TestClause:
		r.arith = true
		return r.emit(Command{Name: "[["})
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.CStyleLoop:
		r.arith = true
	case *syntax.BinaryArithm:
		if w, ok := n.X.(*syntax.Word); ok && strings.HasSuffix(n.Op.String(), "=") {
			r.assigned(w.Lit())
		}
	case *syntax.WordIter:
		items, err := r.words(n.Items)
		if err != nil {
			return err
		}
		if n.Name != nil {
			r.assigned(n.Name.Value)
			if !n.InPos.IsValid() {
				r.late.loosens(n.Name.Value) // it runs through the arguments
			}
			for _, a := range items {
				r.joins.gives(n.Name.Value, a.word, false)
				r.late.gets(n.Name.Value, a.word, true)
			}
		}
		for _, a := range items {
			r.mentions.mention(a)
		}
	case *syntax.ParamExp:
		r.param(n)
	case *syntax.SglQuoted:
		value := n.Value
		if n.Dollar {
			value, _, _ = expand.Format(nil, value, nil)
		}
		r.text(value)
	case *syntax.Lit:
		r.text(n.Value)
	case *syntax.TestDecl:
		return &Error{Line: n.Pos().Line(), Col: n.Pos().Col(), Msg: "a Bats test is not a command"}
	}
	return nil
}

// trap finds text that arithmetic runs: the index of an array with a substitution in it.
var trap = regexp.MustCompile("(?s)[A-Za-z_][A-Za-z0-9_]*\\[.*[$`]")

// Trap reports whether arithmetic of a shell that evaluates a variable of this value would run a command.
func Trap(value string) bool { return trap.MatchString(value) }

// text notes text that arithmetic would run: an array index with a substitution in it.
func (r *reader) text(value string) {
	if i := strings.IndexByte(value, '['); i >= 0 && strings.ContainsAny(value[i:], "$`") {
		r.traps = true
	}
}

func (r *reader) param(p *syntax.ParamExp) {
	if p.Excl || p.Index != nil || p.Slice != nil {
		r.arith = true
	}
	r.late.alters = r.late.alters || p.Exp != nil || p.Slice != nil || p.Repl != nil
	if p.Repl != nil && p.Repl.With != nil {
		r.mentions.mention(literal(p.Repl.With))
	}
	if p.Exp == nil {
		return
	}
	if p.Exp.Word != nil {
		r.mentions.mention(literal(p.Exp.Word))
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Param != nil {
			r.assigned(p.Param.Value)
			r.joins.gives(p.Param.Value, p.Exp.Word, false)
		}
	case syntax.OtherParamOps:
		r.doubt(policy.TraitUnresolved, "${...@...}")
	}
}

// assigned notes a variable that is given a value.
func (r *reader) assigned(name string) {
	if poisonous(name) {
		r.doubt(policy.TraitPoisons, name+"=")
	}
	r.late.dots = r.late.dots || name == "GLOBIGNORE"
}

// emit adds a simple command.
func (r *reader) emit(c Command) error {
	if len(r.out.Commands) == maxCommands {
		return &Error{Msg: fmt.Sprintf("there are more than %d commands", maxCommands)}
	}
	slices.Sort(c.Traits)
	c.Traits = slices.Compact(c.Traits)
	r.out.Commands = append(r.out.Commands, c)
	return nil
}

// redirect reads a redirection of the shell.
func (r *reader) redirect(d *syntax.Redirect) error {
	write := true
	switch d.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return nil
	case syntax.RdrIn:
		write = false
	case syntax.DplIn, syntax.DplOut:
		if text := d.Word.Lit(); text != "" && strings.Trim(text, "0123456789-") == "" {
			return nil
		}
	}
	if d.N != nil && strings.HasPrefix(d.N.Value, "{") {
		r.assigned(strings.Trim(d.N.Value, "{}"))
	}
	args, err := r.words([]*syntax.Word{d.Word})
	if err != nil {
		return err
	}
	for _, a := range args {
		switch {
		case a.known:
			if err := r.open(a, write, false); err != nil {
				return err
			}
		case write:
			r.doubt(policy.TraitUnresolved, "a redirection into a file that is not known")
		default:
			r.mentions.blind = true
			r.joins.join(a, false)
			r.mentions.mention(a)
		}
	}
	return nil
}

// open notes a file, as it is named and as it would be named from every folder that the command line changes into.
func (r *reader) open(a arg, write, argument bool) error { return r.name(a, write, argument, false) }

// name is open, for a name that may have been put together of parts.
func (r *reader) name(a arg, write, argument, joined bool) error {
	for _, dir := range append([]string{r.cwd}, r.places.dirs...) {
		name := resolve(dir, a.text)
		switch {
		case strings.HasPrefix(name, "/dev/tcp/"), strings.HasPrefix(name, "/dev/udp/"):
			return r.emit(Command{Name: strings.Join(strings.Split(name, "/")[:3], "/"), Traits: []string{policy.TraitNetwork}})
		case slices.Contains(devices, name), strings.HasPrefix(name, "/dev/fd/"):
			return nil
		}
		f := File{Path: name, Write: write, Argument: argument, Pattern: a.glob, Joined: joined}
		if !slices.Contains(r.out.Files, f) {
			r.out.Files = append(r.out.Files, f)
		}
	}
	return nil
}

// resolve makes a path relative to the space's files and cleans it; a path outside of them stays absolute.
func resolve(dir, name string) string {
	if strings.HasPrefix(name, "~/") || name == "~" {
		name = Mount + "/" + strings.TrimPrefix(strings.TrimPrefix(name, "~"), "/")
	}
	if !strings.HasPrefix(name, "/") {
		name = path.Join(Mount, dir, name)
	}
	name = path.Clean(name)
	if rest, ok := strings.CutPrefix(name, otherMount); ok && (rest == "" || rest[0] == '/') {
		name = Mount + rest
	}
	if rest, ok := strings.CutPrefix(name, Mount+"/"); ok {
		return rest
	}
	if name == Mount {
		return "."
	}
	return name
}

// plain reports whether a statement is one simple command with nothing around it.
func plain(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return false
	}
	for _, w := range call.Args {
		if w.Lit() == "" || strings.ContainsAny(w.Lit(), "\\*?[]{}~") {
			if len(w.Parts) != 1 {
				return false
			}
			if q, ok := w.Parts[0].(*syntax.SglQuoted); !ok || q.Dollar {
				return false
			}
		}
	}
	return grantable[call.Args[0].Lit()]
}
