package command

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/policy"
)

// lates are the words of which only the end of the command line says whether they may be options that run a command.
type lates struct {
	line               *reader
	all                []late
	sure               []span          // of the script that is being read
	loose              map[string]bool // variables that may have values which the line does not show
	dashed             bool            // the line mentions a text that looks like an option
	fold, dots, alters bool            // globs fold letters; globs stand for dots too; values are changed where they are used
}

// The programs of sed and awk run commands. One that is put together of variables (sed "$p" f) is read with the values that the command
// line gives them, and is not known where a variable may have another value: from the environment, or from a command.

// late is a command whose program may only be read at the end, when all values of the line are known.
type late struct {
	command  int    // its place in the reading
	awk      bool   // else sed
	program  []arg  // parts of the program, each a line; none where only the operands decide
	operands []arg  // words that may turn out to be options
	sure     []span // where variables surely have a value that the line gives them
}

// span is a part of a command line in which a variable surely has one of the values that the line gives it.
type span struct {
	name     string
	from, to uint
}

// postpone notes a program that the reader reads at the end.
func (lt *lates) postpone(l late) {
	l.command, l.sure = len(lt.line.out.Commands), lt.sure // the command is emitted next
	lt.all = append(lt.all, l)
}

// settle reads the programs that were noted.
func (lt *lates) settle() error {
	for _, l := range lt.all {
		c := &lt.line.out.Commands[l.command]
		doubted, err := lt.runsLate(l, c.Name)
		if err != nil {
			return err
		}
		if doubted {
			c = &lt.line.out.Commands[l.command]
			c.Traits = add(c.Traits, policy.TraitUnresolved)
			lt.line.doubt(policy.TraitUnresolved, "what "+c.Name+" runs is only known when it runs")
		}
	}
	return nil
}

// runsLate reads a noted program and reports whether it may run something.
func (lt *lates) runsLate(l late, name string) (bool, error) {
	maybeOption := func(a arg) bool { return lt.maybeOption(a, name) }
	if len(l.program) == 0 {
		return slices.ContainsFunc(l.operands, maybeOption), nil
	}
	programs := []string{""}
	for i, part := range l.program {
		texts, sure := lt.surely(part, l.sure)
		if !sure || len(programs)*len(texts) > maxAlternatives {
			return true, nil
		}
		var next []string
		for _, p := range programs {
			for _, text := range texts {
				if i > 0 {
					text = p + "\n" + text
				}
				next = append(next, text)
			}
		}
		programs = next
	}
	for _, p := range programs {
		if strings.HasPrefix(p, "-") {
			return true, nil // an option, or no program at all
		}
		tried := Command{Name: name}
		if l.awk {
			lt.line.programs.awk(&tried, []arg{{text: p, known: true}})
		} else if err := lt.line.programs.sed(&tried, p); err != nil {
			return false, err
		}
		if tried.Has(policy.TraitUnresolved) {
			return true, nil
		}
	}
	return slices.ContainsFunc(l.operands, maybeOption), nil
}

// inPlace are beginnings of words that are options of sed, whatever stands behind: a suffix, a length.
var inPlace = regexp.MustCompile(`^(-[nErsuz]*[il]|--in-place=|--line-length=)`)

// maybeOption reports whether an operand of a program may turn out to be an option by which something runs. These programs take options at
// any place.
func (lt *lates) maybeOption(a arg, program string) bool {
	names := []string{unknownPart}
	switch {
	case a.word != nil:
		names = lt.line.joins.alternatives(a.word.Parts, 0)
	case a.shape != "":
		names = []string{strings.ReplaceAll(a.shape, "*", unknownPart)}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		switch {
		case strings.HasPrefix(name, "-"):
			if program == "sed" {
				return !inPlace.MatchString(name)
			}
			return mayRun(program, name)
		case !strings.HasPrefix(name, unknownPart):
			return !a.one && slices.ContainsFunc(strings.Fields(name), func(word string) bool { return strings.HasPrefix(word, "-") })
		}
		return lt.dashed || a.word != nil && (program != "sed" || lt.line.places.inherited(a.word.Parts, 0))
	})
}

// mayRun reports whether an option of which some parts are not known may run a program. The text behind an option that takes a value
// cannot: -f"$x", --file="$x".
func mayRun(program, option string) bool {
	begin, _, cut := strings.Cut(option, unknownPart)
	switch {
	case runsBy(program, begin):
		return true
	case strings.HasPrefix(begin, "--"):
		return cut && !strings.Contains(begin, "=")
	}
	takes, _, _ := shortTaking(optionTable[program], begin[1:])
	return cut && takes == nothing
}

// surely returns the texts that a word may stand for; false where it may stand for others, too.
func (lt *lates) surely(a arg, sure []span) (texts []string, ok bool) {
	if a.known {
		return []string{a.text}, true
	}
	if a.word == nil || !a.one || !lt.plain(a.word.Parts, sure) || !lt.given(a.word.Parts, 0) {
		return nil, false
	}
	texts = lt.line.joins.alternatives(a.word.Parts, 0)
	return texts, !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, unknownPart) })
}

// given reports whether all variables of a word, and those of their values, have only values that the command line shows.
func (lt *lates) given(parts []syntax.WordPart, depth int) bool {
	ok := depth <= maxIndirections
	eachVariable(parts, func(p *syntax.ParamExp) {
		if !ok || p.Length || numeric[p.Param.Value] {
			return
		}
		if ok = !lt.loose[p.Param.Value] && !lt.line.math.received[p.Param.Value]; !ok {
			return
		}
		for _, w := range lt.line.joins.values[p.Param.Value] {
			if ok = ok && lt.given(w.Parts, depth+1); !ok {
				return
			}
		}
	})
	return ok
}

// plain reports whether all variables in a word stand there as they are, where they surely have a value of the line.
func (lt *lates) plain(parts []syntax.WordPart, sure []span) bool {
	ok := true
	eachVariable(parts, func(p *syntax.ParamExp) {
		switch {
		case p.Param == nil:
			ok = false
		case p.Length || numeric[p.Param.Value]:
		default:
			name, at := p.Param.Value, p.Pos().Offset()
			ok = ok && p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Excl && p.Names == 0 && !moody[name] &&
				slices.ContainsFunc(sure, func(s span) bool { return s.name == name && s.from <= at && at < s.to })
		}
	})
	return ok
}

// moody are variables that a shell changes by itself.
var moody = names("_ PWD OLDPWD REPLY OPTARG MAPFILE COPROC DIRSTACK FUNCNAME PIPESTATUS BASH_COMMAND BASH_REMATCH BASH_ARGV BASH_ARGV0")

// eachVariable visits the variables of a word; those within what it substitutes are not its own.
func eachVariable(parts []syntax.WordPart, visit func(*syntax.ParamExp)) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.DblQuoted:
			eachVariable(p.Parts, visit)
		case *syntax.ParamExp:
			visit(p)
		}
	}
}

// loosens notes that a variable may have other values than those of the line.
func (lt *lates) loosens(name string) {
	if lt.loose == nil {
		lt.loose = map[string]bool{}
	}
	lt.loose[name] = true
}

// gets notes what a variable is given, and that it may have other values where a part of that is not sure.
// split says that the shell splits the word and replaces patterns in it.
func (lt *lates) gets(name string, w *syntax.Word, split bool) {
	if w == nil {
		return
	}
	a := literal(w)
	if split && (!a.one && !a.known || a.glob) || !lt.plain(w.Parts, lt.sure) || slices.ContainsFunc(w.Parts, func(part syntax.WordPart) bool {
		lit, ok := part.(*syntax.Lit)
		return ok && strings.Contains(lit.Value, "~")
	}) {
		lt.loosens(name)
	}
}

// assures notes where the variables that statements give values surely have them: in what follows in the same list, as far as it reaches.
func (lt *lates) assures(list []*syntax.Stmt, end uint) {
	for _, s := range list {
		if s.Background || s.Coprocess || len(s.Redirs) > 0 {
			continue
		}
		lt.assured(s, s.End().Offset(), end)
		switch cmd := s.Cmd.(type) {
		case *syntax.ForClause:
			switch loop := cmd.Loop.(type) {
			case *syntax.WordIter:
				if loop.Name != nil && !cmd.Select && loop.InPos.IsValid() {
					lt.sure = append(lt.sure, span{loop.Name.Value, cmd.DoPos.Offset(), s.End().Offset()})
				}
			case *syntax.CStyleLoop:
				if b, ok := loop.Init.(*syntax.BinaryArithm); ok && b.Op == syntax.Assgn {
					if w, ok := b.X.(*syntax.Word); ok {
						lt.sure = append(lt.sure, span{w.Lit(), cmd.DoPos.Offset(), s.End().Offset()})
					}
				}
			}
		case *syntax.BinaryCmd:
			lt.assuresNext(cmd)
		}
	}
}

// assuresNext notes the same for a && b: b runs only where a has given its values.
func (lt *lates) assuresNext(b *syntax.BinaryCmd) {
	if b.Op != syntax.AndStmt {
		return
	}
	left := b.X
	if inner, ok := left.Cmd.(*syntax.BinaryCmd); ok && inner.Op == syntax.AndStmt && len(left.Redirs) == 0 && !left.Negated {
		lt.assuresNext(inner)
		left = inner.Y
		if x := inner.X; x.Cmd != nil && !x.Negated && len(x.Redirs) == 0 {
			lt.assuredAll(x, inner.End().Offset(), b.End().Offset())
		}
	}
	lt.assured(left, b.X.End().Offset(), b.End().Offset())
}

// assuredAll is assured for each part of a chain of a && b.
func (lt *lates) assuredAll(s *syntax.Stmt, from, to uint) {
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.AndStmt && !s.Negated && len(s.Redirs) == 0 {
		lt.assuredAll(b.X, from, to)
		lt.assuredAll(b.Y, from, to)
		return
	}
	lt.assured(s, from, to)
}

// assured notes the variables that a statement of mere assignments gives values.
func (lt *lates) assured(s *syntax.Stmt, from, to uint) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) > 0 || s.Background || s.Coprocess || len(s.Redirs) > 0 {
		return
	}
	for _, a := range call.Assigns {
		if a.Name != nil && !a.Append && !a.Naked && a.Array == nil && a.Index == nil {
			lt.sure = append(lt.sure, span{a.Name.Value, from, to})
		}
	}
}

// lists notes the same for every list of statements of a script.
func (lt *lates) lists(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.File:
		lt.assures(n.Stmts, n.End().Offset())
	case *syntax.Block:
		lt.assures(n.Stmts, n.End().Offset())
	case *syntax.Subshell:
		lt.assures(n.Stmts, n.End().Offset())
	case *syntax.CmdSubst:
		lt.assures(n.Stmts, n.End().Offset())
	case *syntax.ForClause:
		lt.assures(n.Do, n.End().Offset())
	case *syntax.WhileClause:
		lt.assures(n.Do, n.End().Offset())
	case *syntax.IfClause:
		lt.assures(n.Then, ends(n.Then))
	case *syntax.CaseItem:
		lt.assures(n.Stmts, ends(n.Stmts))
	}
}

// ends is where a list of statements ends.
func ends(list []*syntax.Stmt) uint {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].End().Offset()
}
