package shell

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/userland/program"
)

// runScript runs a text of lines. An error of an expansion ends its line. An error of the syntax ends the text at its line. If a line
// changes the aliases, the shell parses the lines after it again.
func runScript(sh *shell, code, where string) {
	before := sh.source
	sh.hold(int64(20 * len(code)))
	defer func() {
		sh.source = before
		sh.hold(int64(-20 * len(code)))
	}()
	rest, base := code, before.base
	for again := true; again; {
		rest, base, again = runLines(sh, rest, where, base)
	}
}

// runLines runs a text up to a line that changes the aliases. It returns what follows that, the number of the lines before it, and whether
// there is any.
func runLines(sh *shell, source, where string, base int) (rest string, after int, again bool) {
	stmts, code, err := parseSource(sh, source)
	sh.source = &text{code: code, name: sh.source.name, base: base}
	bad := -1
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		bad = int(e.Pos.Line())
	}
	origin := sh.aliasLines
	shown := 0 // lines
	defer func() { echoSource(sh, code, shown, len(code)) }()
	for len(stmts) > 0 && sh.flow == flowNone {
		end := stmts[0].End().Line()
		n := 1
		for n < len(stmts) && stmts[n].Pos().Line() <= end {
			end = max(end, stmts[n].End().Line())
			n++
		}
		if err != nil && n == len(stmts) && int(end) >= bad && bad > 0 {
			break
		}
		state := sh.aliasState
		echoSource(sh, code, shown, int(end))
		shown = max(shown, int(end))
		runGroup(sh, stmts[:n])
		if sh.aliasState != state && sh.flow == flowNone {
			line := int(end)
			if n < len(stmts) {
				line = int(stmts[n].Pos().Line()) - 1
			}
			if line = originalLine(origin, line+1) - 1; line > 0 {
				return afterLines(source, line), base + line, true
			}
		}
		stmts = stmts[n:]
	}
	if err != nil && sh.flow == flowNone {
		if where == "" && sh.fromText {
			where = "-c"
		}
		syntaxError(sh, code, where, err)
		sh.status = 2
	}
	return "", base, false
}

// originalLine returns the line of a text from which a line of what aliases have made of it comes.
func originalLine(lines []int, n int) int {
	if lines == nil {
		return n
	}
	if n-1 < len(lines) {
		return lines[n-1]
	}
	return lines[len(lines)-1] + n - len(lines)
}

// afterLines returns what follows the first n lines.
func afterLines(s string, n int) string {
	for range n {
		i := strings.IndexByte(s, '\n')
		if i < 0 {
			return ""
		}
		s = s[i+1:]
	}
	return s
}

// runGroup runs the commands of a line.
func runGroup(sh *shell, stmts []*syntax.Stmt) {
	quiet, loops, frames, sourcing := sh.quiet, sh.loops, len(sh.frames), sh.sourcing
	source := sh.source
	thrown := program.Catch(func() { sh.stmts(stmts) })
	if thrown == nil {
		return
	}
	d, ok := thrown.(discard)
	if !ok || frames > 0 || sh.level > 0 || sourcing > 0 {
		panic(thrown)
	}
	sh.quiet, sh.loops, sh.source = quiet, loops, source
	sh.status = d.code
	if sh.on[optErrexit] && sh.quiet == 0 {
		panic(exitShell(d))
	}
}

// lineOf notes the line of a command.
func lineOf(sh *shell, n syntax.Node) { sh.line = int(n.Pos().Line()) + sh.source.base }

// afterCommand notes the status of a single command for PIPESTATUS, and does what its failing brings about.
func afterCommand(sh *shell) {
	sh.pipes, sh.single, sh.ranAny = nil, sh.status, true
	afterFailure(sh)
}

// runText runs a text within the shell: of eval, of a trap. Its lines are counted from the current one, except in traps of signals.
func runText(sh *shell, code, where string) {
	stmts, code, err := parseSource(sh, code)
	before, line := sh.source, sh.line
	base := 0
	if where != "signal" {
		base = max(sh.line-1, 0)
	}
	sh.source = &text{code: code, name: before.name, base: base}
	defer func() { sh.source, sh.line = before, line }()
	if err == nil {
		sh.stmts(stmts)
		return
	}
	bad := 1
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		bad = int(e.Pos.Line())
	}
	for len(stmts) > 0 && int(stmts[len(stmts)-1].End().Line()) >= bad {
		stmts = stmts[:len(stmts)-1]
	}
	sh.stmts(stmts)
	if sh.flow == flowNone {
		syntaxError(sh, code, where, err)
		sh.status = 2
	}
}

func (sh *shell) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		sh.stmt(s)
		if sh.flow != flowNone {
			return
		}
	}
}

// runCondition runs statements whose failing is an answer.
func runCondition(sh *shell, list []*syntax.Stmt) bool {
	sh.quiet++
	sh.stmts(list)
	sh.quiet--
	return sh.status == 0
}

func (sh *shell) stmt(s *syntax.Stmt) {
	if sh.on[optNoexec] {
		return
	}
	if s.Coprocess || s.Disown {
		unsupported(sh, "coprocess")
		return
	}
	if s.Background {
		runBackground(sh, s)
		return
	}
	mark := len(sh.hidden)
	if s.Negated {
		sh.quiet++
		sh.run(s)
		sh.quiet--
		if sh.flow == flowNone {
			sh.status = int(truth(sh.status == 0))
		}
	} else {
		sh.run(s)
	}
	if len(sh.hidden) > mark {
		closeSubsts(sh, mark)
	}
}

// unsupported refuses what the shell cannot do.
func unsupported(sh *shell, what string) {
	sh.w.Report(program.Lack{Kind: program.LackFeature, Name: "bash", Detail: what})
	sh.complain("", "%s: not supported in a nano space", what)
	sh.status = 1
}

// run runs a command with its redirections.
func (sh *shell) run(s *syntax.Stmt) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		sh.simple(s, c)
		afterCommand(sh)
		return
	case *syntax.Subshell:
		lineOf(sh, s)
		sh.tick()
		runSubshell(sh, s, c)
		afterCommand(sh)
		return
	}
	checks := false
	if len(s.Redirs) > 0 {
		lineOf(sh, s)
		undo, ok := sh.redirect(s.Redirs)
		defer undo.restore(sh)
		if !ok {
			sh.status = 1
			afterCommand(sh)
			return
		}
	}
	switch c := s.Cmd.(type) {
	case nil:
		sh.status = 0
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt, syntax.OrStmt:
			sh.quiet++
			sh.stmt(c.X)
			sh.quiet--
			if sh.flow == flowNone && (sh.status == 0) == (c.Op == syntax.AndStmt) {
				sh.stmt(c.Y)
			}
			return
		}
		runPipeline(sh, s)
		afterFailure(sh)
	case *syntax.Block:
		sh.stmts(c.Stmts)
	case *syntax.IfClause:
		ifClause(sh, c)
	case *syntax.WhileClause:
		whileClause(sh, c)
	case *syntax.ForClause:
		forClause(sh, c)
	case *syntax.CaseClause:
		caseClause(sh, c)
	case *syntax.FuncDecl:
		declareFunction(sh, c)
	case *syntax.ArithmCmd:
		lineOf(sh, s)
		sh.tick()
		debugTrap(sh, c)
		if expr := arithExpr(sh, c.X); sh.on[optXtrace] {
			sh.trace("(( " + spacedExpression(sh, c, expr) + " ))")
			sh.status = arithmCommand(sh, "", expr)
		} else {
			sh.status = arithmCommand(sh, "((", expr)
		}
		checks = true
	case *syntax.TestClause:
		lineOf(sh, s)
		sh.tick()
		debugTrap(sh, c)
		sh.status = testClause(sh, c)
		checks = true
	case *syntax.DeclClause:
		lineOf(sh, s)
		sh.tick()
		debugTrap(sh, c)
		declClause(sh, c)
		checks = true
	case *syntax.LetClause:
		lineOf(sh, s)
		sh.tick()
		exprs := make([]string, len(c.Exprs))
		trace := "let"
		for i, x := range c.Exprs {
			exprs[i] = letText(sh, x)
			trace += " " + quoteTrace(exprs[i])
		}
		if sh.on[optXtrace] {
			sh.trace(trace)
		}
		for _, x := range exprs {
			sh.status = arithmCommand(sh, "let", x)
		}
		checks = true
	case *syntax.TimeClause:
		timeClause(sh, c)
	case *syntax.CoprocClause:
		runCoproc(sh, s, c)
		checks = true
	default:
		unsupported(sh, fmt.Sprintf("%T", c))
	}
	if checks {
		afterCommand(sh)
	}
}

// spacedExpression is the expression of (( with the blanks that stand around it.
func spacedExpression(sh *shell, c *syntax.ArithmCmd, expr string) string {
	from, to := int(c.Left.Offset())+2, int(c.Right.Offset())
	if from > to || to > len(sh.source.code) {
		return expr
	}
	raw := sh.source.code[from:to]
	inner := strings.Trim(raw, " \t\n")
	if inner == "" {
		return expr
	}
	at := strings.Index(raw, inner)
	return raw[:at] + strings.Trim(expr, " \t\n") + raw[at+len(inner):]
}

// echoSource shows the lines of a text that are read, as set -v has it.
func echoSource(sh *shell, code string, from, to int) {
	if !sh.on[optVerbose] || from >= to {
		return
	}
	lines := strings.SplitAfter(code, "\n")
	shown := strings.Join(lines[min(from, len(lines)):min(to, len(lines))], "")
	if shown != "" && !strings.HasSuffix(shown, "\n") {
		shown += "\n"
	}
	sh.stderr(shown)
}

// letText returns an expression of let: the quotes of the word are gone.
func letText(sh *shell, x syntax.ArithmExpr) string {
	raw := codeOf(sh, x)
	if strings.ContainsRune(raw, '\'') {
		raw = strings.ReplaceAll(raw, "'", "")
	}
	return arithText(sh, raw)
}

func arithmCommand(sh *shell, name, expr string) int {
	if sh.on[optXtrace] && name == "((" {
		sh.trace("(( " + expr + " ))")
	}
	n, err := tryArith(sh, expr)
	if err != nil {
		if err.plain {
			name = ""
		}
		sh.complain(name, "%s", err.text)
		return 1
	}
	return int(truth(n == 0))
}

// afterFailure does what a command that has failed brings about: the trap ERR, and the end of the shell with set -e.
func afterFailure(sh *shell) {
	if sh.status == 0 || sh.quiet > 0 || sh.flow != flowNone {
		return
	}
	if t, ok := sh.traps[trapErr]; ok && t != "" && (len(sh.frames) == 0 || sh.on[optErrtrace]) && !sh.inTrap[trapErr] {
		runTrap(sh, trapErr, t)
	}
	if sh.on[optErrexit] {
		panic(exitShell{sh.status})
	}
}

func timeClause(sh *shell, c *syntax.TimeClause) {
	begin, gas := sh.p.Now(), sh.w.account.Used()
	if c.Stmt != nil {
		sh.stmt(c.Stmt)
	}
	real, user := sh.p.Now().Sub(begin), time.Duration(sh.w.account.Used()-gas)
	if c.PosixFormat {
		sh.stderr(fmt.Sprintf("real %.2f\nuser %.2f\nsys 0.00\n", real.Seconds(), user.Seconds()))
		return
	}
	show := func(d time.Duration) string {
		return fmt.Sprintf("%dm%d.%03ds", int(d.Minutes()), int(d.Seconds())%60, d.Milliseconds()%1000)
	}
	sh.stderr("\nreal\t" + show(real) + "\nuser\t" + show(user) + "\nsys\t0m0.000s\n")
}

// holdWords counts the memory of many words; release gives it back.
func holdWords(sh *shell, words []string) int64 {
	n := 0
	for _, w := range words {
		n += len(w) + 16
	}
	if n < 16<<10 {
		return 0
	}
	sh.charge(n / 16)
	sh.hold(int64(n))
	return int64(n)
}

func releaseWords(sh *shell, n int64) { sh.hold(-n) }

// simple runs a simple command.
func (sh *shell) simple(s *syntax.Stmt, c *syntax.CallExpr) {
	lineOf(sh, c)
	sh.tick()
	if len(sh.inTrap) == 0 {
		sh.command = codeOf(sh, c)
	}
	debugTrap(sh, c)
	substs := sh.substs
	s, c = withDescriptor(sh, s, c)
	args := sh.fields(c.Args)
	held := int64(0)
	if len(args) > 64 || len(args) == 1 && len(args[0]) > 4096 {
		held = holdWords(sh, args)
		defer releaseWords(sh, held)
	}
	if len(args) == 0 {
		runAssignments(sh, s, c, substs)
		return
	}
	if args[0] == badArray && len(args) == 3 {
		name := sh.name
		if sh.fromText {
			name += ": -c"
		}
		sh.stderr(fmt.Sprintf("%[1]s: line %[2]d: syntax error near unexpected token `%[3]s'\n%[1]s: line %[2]d: `%[4]s'\n", name, sh.line,
			args[1], args[2]))
		panic(discard{1})
	}
	if len(c.Assigns) == 0 && len(s.Redirs) == 0 {
		if sh.on[optXtrace] {
			traceWords(sh, args)
		}
		sh.status = sh.dispatch(args, nil)
		sh.last = args[len(args)-1]
		return
	}
	var undo redirections
	if len(s.Redirs) > 0 {
		var ok bool
		undo, ok = sh.redirect(s.Redirs)
		keep := args[0] == "exec" && sh.funcs["exec"] == nil
		if keep && ok {
			undo.keep(sh)
		} else {
			if keep {
				undo.forget()
			}
			defer func() { undo.restore(sh) }()
		}
		if !ok {
			sh.status = 1
			if keep && sh.on[optPosix] {
				panic(exitShell{1})
			}
			return
		}
	}
	assigns := make([]assigned, 0, len(c.Assigns))
	var seen []savedVar // by the assignments that follow
	for i, a := range c.Assigns {
		if a.Array != nil || a.Index != nil {
			continue
		}
		val := sh.one(a.Value, modeLiteral, true)
		if a.Name.Value == notAName {
			sh.complain("", "`%s': not a valid identifier", val)
			continue
		}
		if sh.on[optXtrace] {
			sh.trace(a.Name.Value + "=" + quoteTrace(val))
		}
		assigns = append(assigns, assigned{a.Name.Value, val, a.Append})
		if i+1 < len(c.Assigns) {
			if v := sh.vars[a.Name.Value]; v == nil || !v.readonly {
				seen = append(seen, assignTemporarily(sh, assigns[len(assigns)-1:])...)
			}
		}
	}
	sh.restore(seen)
	if sh.on[optXtrace] {
		traceWords(sh, args)
	}
	sh.status = sh.dispatch(args, assigns)
	sh.last = args[len(args)-1]
}

// dispatch runs a command by its words: a function, a builtin or a program.
func (sh *shell) dispatch(args []string, assigns []assigned) int {
	name := args[0]
	if f := sh.funcs[name]; f != nil {
		return sh.call(f, args, assignTemporarily(sh, assigns))
	}
	if b := builtinNamed(sh, name); b != nil {
		if len(assigns) == 0 {
			return b(sh, args)
		}
		defer sh.restore(assignTemporarily(sh, assigns))
		return b(sh, args)
	}
	return runProgram(sh, args, assigns, false)
}
