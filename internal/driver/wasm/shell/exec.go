package shell

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/driver/wasm/bound"
	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// function is a function of the shell's language.
type function struct {
	name     string
	body     *syntax.Stmt
	source   *text
	exported bool
}

// print writes the body as it can be read again.
func (f *function) print() string {
	var b strings.Builder
	_ = syntax.NewPrinter(syntax.Indent(4), syntax.FunctionNextLine(true)).Print(&b, f.body)
	s := b.String()
	if strings.HasPrefix(s, "{\n") {
		s = "{ \n" + s[2:]
	}
	return s
}

// script runs a text of lines. An error of an expansion ends the line that it is in, one of the syntax everything from its line on.
func (sh *shell) script(code, where string) {
	stmts, code, err := sh.parse(code)
	sh.hold(int64(20 * len(code)))
	before := sh.source
	sh.source = &text{code: code, name: before.name}
	defer func() {
		sh.source = before
		sh.hold(int64(-20 * len(code)))
	}()
	bad := -1
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		bad = int(e.Pos.Line())
	}
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
		sh.group(stmts[:n])
		stmts = stmts[n:]
	}
	if err != nil && sh.flow == flowNone {
		if where == "" && sh.fromText {
			where = "-c"
		}
		sh.syntaxError(code, where, err)
		sh.status = 2
	}
}

// group runs the commands of a line.
func (sh *shell) group(stmts []*syntax.Stmt) {
	quiet, loops, frames, sourcing := sh.quiet, sh.loops, len(sh.frames), sh.sourcing
	source := sh.source
	defer func() {
		x := recover()
		if x == nil {
			return
		}
		d, ok := x.(discard)
		if !ok || frames > 0 || sh.level > 0 || sourcing > 0 {
			panic(x)
		}
		sh.quiet, sh.loops, sh.source = quiet, loops, source
		sh.status = d.code
		if sh.on[optErrexit] && sh.quiet == 0 {
			panic(exitShell(d))
		}
	}()
	sh.stmts(stmts)
}

// runText runs a text within the shell: of eval, of a trap.
func (sh *shell) runText(code, where string) {
	stmts, code, err := sh.parse(code)
	before, line := sh.source, sh.line
	sh.source = &text{code: code, name: before.name}
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
		sh.syntaxError(code, where, err)
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

// condition runs statements whose failing is an answer.
func (sh *shell) condition(list []*syntax.Stmt) bool {
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
		sh.unsupported("coprocess")
		return
	}
	if s.Background {
		sh.background(s)
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
		sh.closeSubsts(mark)
	}
}

// unsupported refuses what the shell cannot do.
func (sh *shell) unsupported(what string) {
	sh.w.Report(program.Lack{Kind: program.LackFeature, Name: "bash", Detail: what})
	sh.complain("", "%s: not supported in a nano space", what)
	sh.status = 1
}

// run runs a command with its redirections.
func (sh *shell) run(s *syntax.Stmt) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		sh.simple(s, c)
		sh.failed()
		return
	case *syntax.Subshell:
		sh.line = int(s.Pos().Line())
		sh.tick()
		sh.subshell(s, c)
		sh.failed()
		return
	}
	checks := false
	if len(s.Redirs) > 0 {
		sh.line = int(s.Pos().Line())
		undo, ok := sh.redirect(s.Redirs)
		defer undo.restore(sh)
		if !ok {
			sh.status = 1
			sh.failed()
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
		sh.pipeline(s)
		checks = true
	case *syntax.Block:
		sh.stmts(c.Stmts)
	case *syntax.IfClause:
		sh.ifClause(c)
	case *syntax.WhileClause:
		sh.whileClause(c)
	case *syntax.ForClause:
		sh.forClause(c)
	case *syntax.CaseClause:
		sh.caseClause(c)
	case *syntax.FuncDecl:
		sh.declareFunction(c)
	case *syntax.ArithmCmd:
		sh.line = int(s.Pos().Line())
		sh.tick()
		sh.debugTrap(c)
		sh.status = sh.arithmCommand("((", sh.arithExpr(c.X))
		checks = true
	case *syntax.TestClause:
		sh.line = int(s.Pos().Line())
		sh.tick()
		sh.debugTrap(c)
		sh.status = sh.testClause(c)
		checks = true
	case *syntax.DeclClause:
		sh.line = int(s.Pos().Line())
		sh.tick()
		sh.debugTrap(c)
		sh.declClause(c)
		checks = true
	case *syntax.LetClause:
		sh.line = int(s.Pos().Line())
		sh.tick()
		exprs := make([]string, len(c.Exprs))
		trace := "let"
		for i, x := range c.Exprs {
			exprs[i] = sh.letText(x)
			trace += " " + quoteTrace(exprs[i])
		}
		if sh.on[optXtrace] {
			sh.trace(trace)
		}
		for _, x := range exprs {
			sh.status = sh.arithmCommand("let", x)
		}
		checks = true
	case *syntax.TimeClause:
		sh.timeClause(c)
	case *syntax.CoprocClause:
		sh.unsupported("coproc")
	default:
		sh.unsupported(fmt.Sprintf("%T", c))
	}
	if checks {
		sh.failed()
	}
}

// letText returns an expression of let: the quotes of the word are gone.
func (sh *shell) letText(x syntax.ArithmExpr) string {
	raw := sh.code(x)
	if strings.ContainsRune(raw, '\'') {
		raw = strings.ReplaceAll(raw, "'", "")
	}
	return sh.arithText(raw)
}

func (sh *shell) arithmCommand(name, expr string) int {
	if sh.on[optXtrace] && name == "((" {
		sh.trace("(( " + strings.TrimSpace(expr) + " ))")
	}
	n, err := sh.tryArith(expr)
	if err != nil {
		if err.plain {
			name = ""
		}
		sh.complain(name, "%s", err.text)
		return 1
	}
	return int(truth(n == 0))
}

// failed does what a command that has failed brings about: the trap ERR, and the end of the shell with set -e.
func (sh *shell) failed() {
	if sh.status == 0 || sh.quiet > 0 || sh.flow != flowNone {
		return
	}
	if t, ok := sh.traps[trapErr]; ok && t != "" && (len(sh.frames) == 0 || sh.on[optErrtrace]) && !sh.inTrap[trapErr] {
		sh.runTrap(trapErr, t)
	}
	if sh.on[optErrexit] {
		panic(exitShell{sh.status})
	}
}

func (sh *shell) ifClause(c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		if !c.ThenPos.IsValid() {
			sh.stmts(c.Then)
			return
		}
		sh.charge(20)
		ok := sh.condition(c.Cond)
		if sh.flow != flowNone {
			return
		}
		if ok {
			sh.stmts(c.Then)
			return
		}
	}
	sh.status = 0
}

// loop handles a jump out of the body of a loop; it reports whether the loop ends.
func (sh *shell) loop() bool {
	switch sh.flow {
	case flowBreak:
		if sh.levels--; sh.levels == 0 {
			sh.flow = flowNone
		}
		return true
	case flowContinue:
		if sh.levels--; sh.levels == 0 {
			sh.flow = flowNone
			return false
		}
		return true
	}
	return sh.flow != flowNone
}

func (sh *shell) whileClause(c *syntax.WhileClause) {
	sh.loops++
	defer func() { sh.loops-- }()
	status := 0
	for {
		sh.charge(20)
		ok := sh.condition(c.Cond)
		if sh.flow != flowNone {
			if sh.loop() {
				break
			}
			continue
		}
		if ok == c.Until {
			break
		}
		sh.stmts(c.Do)
		status = sh.status
		if sh.loop() {
			break
		}
	}
	sh.status = status
}

func (sh *shell) forClause(c *syntax.ForClause) {
	if c.Select {
		sh.unsupported("select")
		return
	}
	sh.loops++
	defer func() { sh.loops-- }()
	if l, ok := c.Loop.(*syntax.CStyleLoop); ok {
		sh.cLoop(c, l)
		return
	}
	l := c.Loop.(*syntax.WordIter)
	words := sh.params
	if l.InPos.IsValid() {
		sh.line = int(c.Pos().Line())
		words = sh.fields(l.Items)
		defer sh.release(sh.holdWords(words))
	}
	sh.status = 0
	for _, w := range words {
		sh.line = int(c.Pos().Line())
		sh.tick()
		sh.debugTrap(c)
		if sh.on[optXtrace] {
			sh.traceFor(l, words)
		}
		name := l.Name.Value
		if v := sh.vars[name]; v != nil && v.ref {
			v = sh.mine(name)
			v.str = w
		} else if err := sh.assign(name, w, false); err != nil {
			sh.complain("", "%s", err)
			sh.status = 1
			return
		}
		sh.stmts(c.Do)
		if sh.loop() {
			return
		}
	}
}

func (sh *shell) cLoop(c *syntax.ForClause, l *syntax.CStyleLoop) {
	sh.line = int(c.Pos().Line())
	eval := func(x syntax.ArithmExpr) (int64, bool) {
		if x == nil {
			return 1, true
		}
		text := sh.arithExpr(x)
		if sh.on[optXtrace] {
			sh.trace("(( " + strings.TrimSpace(text) + " ))")
		}
		n, err := sh.tryArith(text)
		if err != nil {
			name := "(("
			if err.plain {
				name = ""
			}
			sh.complain(name, "%s", err.text)
			sh.status = 1
		}
		return n, err == nil
	}
	status := 0
	if _, ok := eval(l.Init); !ok {
		return
	}
	for {
		sh.tick()
		n, ok := eval(l.Cond)
		if !ok {
			return
		}
		if n == 0 {
			break
		}
		sh.status = status
		sh.stmts(c.Do)
		status = sh.status
		if sh.loop() {
			break
		}
		if _, ok := eval(l.Post); !ok {
			return
		}
	}
	sh.status = status
}

func (sh *shell) caseClause(c *syntax.CaseClause) {
	sh.line = int(c.Pos().Line())
	sh.tick()
	sh.debugTrap(c)
	word := sh.literal(c.Word)
	if sh.on[optXtrace] {
		sh.trace("case " + sh.code(c.Word) + " in")
	}
	sh.status = 0
	through := false
	for _, item := range c.Items {
		if !through && !slices.ContainsFunc(item.Patterns, func(w *syntax.Word) bool { return sh.match(sh.pattern(w), word, sh.shopts["nocasematch"]) }) {
			continue
		}
		sh.stmts(item.Stmts)
		if sh.flow != flowNone {
			return
		}
		switch item.Op {
		case syntax.Fallthrough:
			through = true
		case syntax.Resume, syntax.ResumeKorn:
			through = false
		default:
			return
		}
	}
}

func (sh *shell) declareFunction(c *syntax.FuncDecl) {
	if c.Name == nil {
		sh.unsupported("function without a name")
		return
	}
	if old := sh.funcs[c.Name.Value]; old != nil && old.name == "readonly" {
		return
	}
	f := &function{name: c.Name.Value, body: c.Body, source: sh.source}
	sh.funcs[f.name] = f
	sh.charge(100)
	sh.status = 0
}

func (sh *shell) importFunction(name, body string) {
	stmts, code, err := sh.parse(name + " " + body)
	if err != nil || len(stmts) != 1 {
		return
	}
	if d, ok := stmts[0].Cmd.(*syntax.FuncDecl); ok && d.Name != nil {
		sh.funcs[name] = &function{name: name, body: d.Body, source: &text{code: code, name: "environment"}, exported: true}
	}
}

// call calls a function.
func (sh *shell) call(f *function, args []string) int {
	if err := sh.w.account.Enter(); err != nil {
		sh.complain("", "%s: maximum function nesting level exceeded (%d)", f.name, sh.w.account.Limits().Depth)
		panic(discard{1})
	}
	fr := &frame{name: f.name, source: f.source.name, line: sh.line, params: sh.params}
	if fr.source == "" {
		if fr.source = "environment"; !sh.fromText {
			fr.source = sh.name
		}
	}
	source, loops, line, depth := sh.source, sh.loops, sh.line, len(sh.frames)
	sh.frames = append(sh.frames, fr)
	sh.params, sh.source, sh.loops = args[1:], f.source, 0
	defer func() {
		sh.w.account.Leave()
		sh.restore(fr.saved)
		sh.frames = sh.frames[:depth]
		sh.params, sh.source, sh.loops, sh.line = fr.params, source, loops, line
	}()
	sh.stmt(f.body)
	if sh.flow == flowReturn {
		sh.flow = flowNone
	}
	if t, ok := sh.traps[trapReturn]; ok && t != "" && sh.on[optFunctrace] {
		sh.runTrap(trapReturn, t)
	}
	return sh.status
}

// subshell runs ( ... ) on the same fiber.
func (sh *shell) subshell(s *syntax.Stmt, c *syntax.Subshell) {
	if !sh.enter() {
		return
	}
	defer sh.w.account.Leave()
	own, procs := sh.own, len(sh.w.procs)
	child := sh.fork(nil)
	status := child.process(func() {
		if len(s.Redirs) > 0 {
			if _, ok := child.redirect(s.Redirs); !ok {
				child.status = 1
				return
			}
		}
		child.loops = 0
		child.stmts(c.Stmts)
	})
	if len(sh.w.procs) == procs {
		sh.own = own
	}
	sh.status = status.Exit()
}

func (sh *shell) enter() bool {
	if err := sh.w.account.Enter(); err != nil {
		sh.complain("", "fork: Resource temporarily unavailable")
		sh.status = 254
		return false
	}
	return true
}

// stages returns the commands of a pipeline, and for each whether its errors go into the pipe too.
func stages(s *syntax.Stmt, list []*syntax.Stmt, all []bool) ([]*syntax.Stmt, []bool) {
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) && !s.Negated && !s.Background && len(s.Redirs) == 0 {
		list, all = stages(b.X, list, all)
		all[len(all)-1] = b.Op == syntax.PipeAll
		return stages(b.Y, list, all)
	}
	return append(list, s), append(all, false)
}

// pipeline runs the stages of a pipeline, each on a fiber of its own, and waits for all.
func (sh *shell) pipeline(s *syntax.Stmt) {
	plain := *s
	plain.Negated, plain.Redirs = false, nil
	list, all := stages(&plain, nil, nil)
	if !sh.enter() {
		return
	}
	defer sh.w.account.Leave()
	own, before := sh.own, len(sh.w.procs)
	procs := make([]*proc, len(list))
	var in *vfs.Handle
	for i, stage := range list {
		var r, w *vfs.Handle
		if i+1 < len(list) {
			var err error
			if r, w, err = sh.w.fs.Pipe(); err != nil {
				sh.w.stop(err)
				if in != nil {
					_ = in.Close()
				}
				sh.complain("", "pipe error: %s", err)
				procs = procs[:i]
				break
			}
		}
		child := sh.fork(nil)
		if in != nil {
			child.replace0(0, in)
			child.piped = true
		}
		if w != nil {
			if all[i] {
				child.replace0(2, w.Dup())
			}
			child.replace0(1, w)
		}
		in = r
		procs[i] = sh.spawn(child, "", func() {
			child.loops = 0
			child.stmt(stage)
		})
	}
	codes := make([]int, len(procs))
	for i, p := range procs {
		sh.w.wait(p)
		codes[i] = p.status
	}
	if len(sh.w.procs) == before {
		sh.own = own
	}
	if len(procs) < len(list) {
		sh.status = 1
		return
	}
	sh.pipes = codes
	sh.status = codes[len(codes)-1]
	if sh.on[optPipefail] {
		sh.status = 0
		for _, c := range codes {
			if c != 0 {
				sh.status = c
			}
		}
	}
}

// replace0 puts a handle in the place of a descriptor. It belongs to the shell then.
func (sh *shell) replace0(fd int, h *vfs.Handle) {
	if old := sh.fds[fd]; old != nil {
		_ = old.Close()
	}
	sh.fds[fd] = h
}

// spawn runs a shell's process on a fiber of its own.
func (sh *shell) spawn(child *shell, text string, body func()) *proc {
	p := sh.w.start(child.pid, text, child, nil)
	sh.lastProc = p
	p.reader = child.proc != nil && child.proc.reader
	child.proc = p
	if len(child.fds) > 1 {
		p.stdout = child.fds[1]
	}
	sh.w.group.Go(func() {
		status := program.Status{Signal: program.SIGKILL}
		defer func() {
			x := recover()
			sh.w.end(p, status.Exit())
			if _, stopped := x.(*bound.Stopped); x != nil && !stopped {
				panic(x)
			}
		}()
		status = child.process(body)
	})
	return p
}

// background runs a statement beside the shell.
func (sh *shell) background(s *syntax.Stmt) {
	sh.line = int(s.Pos().Line())
	sh.tick()
	plain := *s
	plain.Background = false
	child := sh.fork(nil)
	if !sh.piped {
		child.replace0(0, sh.w.fs.Stream(empty{}, vfs.Read))
	}
	p := sh.spawn(child, strings.TrimSuffix(strings.TrimSpace(sh.code(s)), "&"), func() {
		child.loops = 0
		child.stmt(&plain)
	})
	sh.lastJob = p.pid
	sh.jobs = append(sh.jobs, p)
	sh.status = 0
}

// commandSubst runs $( ... ) and returns what it has printed.
func (sh *shell) commandSubst(c *syntax.CmdSubst) string {
	if c.TempFile || c.ReplyVar {
		sh.unsupported("${ command; }")
		return ""
	}
	sh.substs++
	sh.substCode = 0
	if len(c.Stmts) == 0 {
		return ""
	}
	if s := c.Stmts[0]; len(c.Stmts) == 1 && s.Cmd == nil && len(s.Redirs) == 1 && s.Redirs[0].Op == syntax.RdrIn && s.Redirs[0].N == nil {
		return sh.fileSubst(s)
	}
	if !sh.enter() {
		panic(discard{1})
	}
	defer sh.w.account.Leave()
	own, procs := sh.own, len(sh.w.procs)
	out := &capture{account: sh.w.account}
	child := sh.fork(nil)
	h := sh.w.fs.Stream(out, vfs.Write)
	child.replace0(1, h)
	child.evals++
	if !sh.shopts["inherit_errexit"] {
		child.on[optErrexit] = false
	}
	status := child.process(func() {
		child.loops = 0
		child.stmts(c.Stmts)
	})
	for _, p := range slices.Clone(sh.w.procs) {
		if p.stdout == h {
			sh.w.wait(p)
		}
	}
	if len(sh.w.procs) == procs {
		sh.own = own
	}
	sh.substCode = status.Exit()
	sh.w.account.Release(out.held)
	return sh.captured(out.buf)
}

func (sh *shell) fileSubst(s *syntax.Stmt) string {
	undo, ok := sh.redirect(s.Redirs)
	defer undo.restore(sh)
	if !ok {
		sh.substCode = 1
		return ""
	}
	all, err := sh.fds[0].ReadAll()
	if err != nil {
		sh.w.stop(err)
		sh.complain("", "%s", err)
		sh.substCode = 1
		return ""
	}
	sh.w.account.Release(int64(len(all)))
	return sh.captured(all)
}

// captured is what a command substitution stands for.
func (sh *shell) captured(out []byte) string {
	s := string(out)
	if strings.IndexByte(s, 0) >= 0 {
		sh.complain("", "warning: command substitution: ignored null byte in input")
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return strings.TrimRight(s, "\n")
}

// capture keeps what is written to it.
type capture struct {
	account *bound.Account
	buf     []byte
	held    int64
}

func (c *capture) Read([]byte) (int, error) { return 0, vfs.EBADF }

func (c *capture) Write(p []byte) (int, error) {
	if err := c.account.Allocate(int64(len(p))); err != nil {
		return 0, vfs.ENOMEM
	}
	c.held += int64(len(p))
	c.buf = append(c.buf, p...)
	return len(p), nil
}

// processSubst starts <( ... ) or >( ... ) and returns the path of its pipe.
func (sh *shell) processSubst(c *syntax.ProcSubst) string {
	r, w, err := sh.w.fs.Pipe()
	if err != nil {
		sh.w.stop(err)
		sh.complain("", "cannot make pipe for process substitution: %s", err)
		panic(discard{1})
	}
	child := sh.fork(nil)
	mine, theirs, fd := r, w, 1
	if c.Op == syntax.CmdOut {
		mine, theirs, fd = w, r, 0
	}
	child.replace0(fd, theirs)
	p := sh.spawn(child, "", func() {
		child.loops = 0
		child.stmts(c.Stmts)
	})
	sh.lastJob = p.pid
	n := 63
	for n < len(sh.fds) && sh.fds[n] != nil {
		n--
	}
	for len(sh.fds) <= n {
		sh.fds = append(sh.fds, nil)
	}
	sh.fds[n] = mine
	sh.hidden = append(sh.hidden, mine.Dup())
	var wait *proc
	if fd == 0 {
		wait, p.reader = p, true
	}
	sh.producers = append(sh.producers, wait)
	return "/dev/fd/" + strconv.Itoa(n)
}

// closeSubsts closes the pipes of process substitutions when their command has ended, and waits for those that read.
func (sh *shell) closeSubsts(mark int) {
	wait := sh.producers[mark:]
	for i, h := range sh.hidden[mark:] {
		for fd := 63; fd > 9; fd-- {
			if fd < len(sh.fds) && sh.fds[fd] == h {
				_ = h.Close()
				sh.fds[fd] = nil
			}
		}
		if _ = h.Close(); h.Open() {
			wait[i] = nil // who has it besides goes on writing
		}
	}
	sh.hidden, sh.producers = sh.hidden[:mark], sh.producers[:mark]
	for _, p := range wait {
		if p != nil {
			sh.w.wait(p)
		}
	}
}

func (sh *shell) timeClause(c *syntax.TimeClause) {
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
func (sh *shell) holdWords(words []string) int64 {
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

func (sh *shell) release(n int64) { sh.hold(-n) }

// simple runs a simple command.
func (sh *shell) simple(s *syntax.Stmt, c *syntax.CallExpr) {
	sh.line = int(c.Pos().Line())
	sh.tick()
	sh.debugTrap(c)
	if len(sh.aliases) > 0 && len(c.Args) > 0 && sh.aliased(s, c) {
		return
	}
	substs := sh.substs
	args := sh.fields(c.Args)
	held := int64(0)
	if len(args) > 64 || len(args) == 1 && len(args[0]) > 4096 {
		held = sh.holdWords(args)
		defer sh.release(held)
	}
	if len(args) == 0 {
		sh.assignments(s, c, substs)
		return
	}
	if len(c.Assigns) == 0 && len(s.Redirs) == 0 {
		if sh.on[optXtrace] {
			sh.traceWords(args)
		}
		sh.command = ""
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
			defer func() { undo.restore(sh) }()
		}
		if !ok {
			sh.status = 1
			if keep {
				panic(exitShell{1})
			}
			return
		}
	}
	assigns := make([]assigned, 0, len(c.Assigns))
	for _, a := range c.Assigns {
		if a.Array != nil || a.Index != nil {
			continue
		}
		val := sh.one(a.Value, modeLiteral, true)
		if sh.on[optXtrace] {
			sh.trace(a.Name.Value + "=" + quoteTrace(val))
		}
		assigns = append(assigns, assigned{a.Name.Value, val, a.Append})
	}
	if sh.on[optXtrace] {
		sh.traceWords(args)
	}
	sh.status = sh.dispatch(args, assigns)
	sh.last = args[len(args)-1]
}

type assigned struct {
	name string
	val  string
	add  bool
}

// assignments runs a command that has no words.
func (sh *shell) assignments(s *syntax.Stmt, c *syntax.CallExpr, substs int) {
	if len(s.Redirs) > 0 {
		undo, ok := sh.redirect(s.Redirs)
		undo.restore(sh)
		if !ok {
			sh.status = 1
			return
		}
	}
	for _, a := range c.Assigns {
		if err := sh.assignNode(a); err != nil {
			sh.complain("", "%s", err)
			panic(discard{1})
		}
	}
	sh.status = 0
	if sh.substs != substs {
		sh.status = sh.substCode
	}
}

// assignNode does one assignment of a script.
func (sh *shell) assignNode(a *syntax.Assign) error {
	name := a.Name.Value
	if a.Array != nil {
		return sh.assignArray(name, a.Array, a.Append, scalar)
	}
	if a.Index != nil {
		sub := sh.code(a.Index)
		val := sh.one(a.Value, modeLiteral, true)
		if sh.on[optXtrace] {
			sh.trace(name + "[" + sub + "]" + assignOperator(a.Append) + quoteTrace(val))
		}
		return sh.assignElement(name, sub, val, a.Append)
	}
	val := sh.one(a.Value, modeLiteral, true)
	if sh.on[optXtrace] {
		sh.trace(name + assignOperator(a.Append) + quoteTrace(val))
	}
	return sh.assign(name, val, a.Append)
}

func assignOperator(add bool) string {
	if add {
		return "+="
	}
	return "="
}

// assignArray is name=( ... ). want is the kind that a declaration asks for, scalar for none.
func (sh *shell) assignArray(name string, array *syntax.ArrayExpr, add bool, want kind) error {
	name = sh.resolve(name)
	old := sh.vars[name]
	if old != nil && old.readonly {
		return readonlyError{name}
	}
	assoc := want == associative || old != nil && old.kind == associative
	type element struct {
		key, val string
		keyed    bool
	}
	var elements []element
	sh.charge(gasPerWord * len(array.Elems))
	for _, e := range array.Elems {
		if e.Index != nil {
			sub := sh.code(e.Index)
			el := element{key: sub, val: sh.one(e.Value, modeLiteral, true), keyed: true}
			if assoc {
				el.key = sh.subscriptKey(sub)
			}
			elements = append(elements, el)
			continue
		}
		for _, f := range sh.fields([]*syntax.Word{e.Value}) {
			elements = append(elements, element{val: f})
		}
	}
	if sh.on[optXtrace] {
		raw := make([]string, 0, len(array.Elems))
		for _, e := range array.Elems {
			raw = append(raw, sh.code(e))
		}
		sh.trace(name + assignOperator(add) + "(" + strings.Join(raw, " ") + ")")
	}
	v := sh.mine(name)
	if !add {
		sh.grow(v, variableBytes+len(name)-int(v.size))
		v.str, v.vals, v.keys, v.m, v.list = "", nil, nil, nil, nil
	} else if v.kind == scalar && v.set && !assoc {
		v.vals, v.str = []string{v.str}, ""
	}
	v.set = true
	if assoc {
		v.kind = associative
		if v.m == nil {
			v.m = map[string]item{}
		}
		for i := 0; i < len(elements); i++ {
			e := elements[i]
			if !e.keyed {
				key := e.val
				e.val = ""
				if i+1 < len(elements) && !elements[i+1].keyed {
					i++
					e.val = elements[i].val
				}
				e.key = key
			}
			if e.key == "" {
				return fmt.Errorf("%s: bad array subscript", name)
			}
			if err := sh.assignKey(name, e.key, e.val, false); err != nil {
				return err
			}
		}
		return nil
	}
	v.kind = indexed
	next := v.top()
	for _, e := range elements {
		if e.keyed {
			i, ok := sh.subscriptIndex(v, e.key)
			if !ok {
				return fmt.Errorf("[%s]=%s: bad array subscript", e.key, e.val)
			}
			next = i
		}
		if err := sh.assignIndex(name, next, e.val, false); err != nil {
			return err
		}
		next++
	}
	return nil
}

// aliased expands an alias at the beginning of a command and runs what that makes; it reports whether there was one.
func (sh *shell) aliased(s *syntax.Stmt, c *syntax.CallExpr) bool {
	if !sh.shopts["expand_aliases"] || len(c.Assigns) > 0 {
		return false
	}
	name := c.Args[0].Lit()
	val, ok := sh.aliases[name]
	if !ok || name == "" {
		return false
	}
	from, to := int(c.Args[0].End().Offset()), int(s.End().Offset())
	if to > len(sh.source.code) || from > to {
		return false
	}
	rest := sh.source.code[from:to]
	if strings.HasSuffix(val, " ") {
		trimmed := strings.TrimLeft(rest, " \t")
		word, after, _ := strings.Cut(trimmed, " ")
		if next, ok := sh.aliases[word]; ok {
			rest = " " + next + " " + after
		}
	}
	if s.Semicolon.IsValid() {
		rest = strings.TrimRight(rest, ";&")
	}
	saved := sh.aliases
	sh.aliases = map[string]string{}
	for k, v := range saved {
		if k != name {
			sh.aliases[k] = v
		}
	}
	mark := sh.aliases
	if !sh.enter() {
		return true
	}
	sh.runText(val+rest, "")
	sh.w.account.Leave()
	if len(sh.aliases) == len(mark) {
		sh.aliases = saved
	}
	return true
}

// dispatch runs a command by its words: a function, a builtin or a program.
func (sh *shell) dispatch(args []string, assigns []assigned) int {
	name := args[0]
	if f := sh.funcs[name]; f != nil {
		if len(assigns) == 0 {
			return sh.call(f, args)
		}
		defer sh.restore(sh.temporary(assigns))
		return sh.call(f, args)
	}
	if b := sh.builtin(name); b != nil {
		if len(assigns) == 0 {
			return b(sh, args)
		}
		defer sh.restore(sh.temporary(assigns))
		return b(sh, args)
	}
	return sh.program(args, assigns, false)
}

// temporary sets variables for one command and returns what they were.
func (sh *shell) temporary(assigns []assigned) []savedVar {
	saved := make([]savedVar, 0, len(assigns))
	for _, a := range assigns {
		old := sh.vars[a.name]
		if old != nil && old.readonly {
			sh.complain("", "%s: readonly variable", a.name)
			continue
		}
		saved = append(saved, savedVar{a.name, old})
		delete(sh.vars, a.name)
		val := a.val
		if a.add && old != nil {
			val = old.str + val
		}
		v := sh.mine(a.name)
		sh.grow(v, len(val))
		v.str, v.set, v.exported = val, true, true
		sh.changed(a.name)
	}
	return saved
}

// process returns what a program that the shell starts gets.
func (sh *shell) processFor(args []string, assigns []assigned) *program.Process {
	p := *sh.p
	c := p.Child(args...)
	c.Cwd, c.Umask = sh.cwd, sh.umask
	if len(assigns) > 0 {
		saved := sh.temporary(assigns)
		c.Env = sh.environ()
		sh.restore(saved)
	} else {
		c.Env = sh.environ()
	}
	c.PPID = sh.pid
	c.Stdin, c.Stdout, c.Stderr = sh.fd(0), sh.fd(1), sh.fd(2)
	c.Files = nil
	for n := 3; n < len(sh.fds); n++ {
		if sh.fds[n] != nil {
			if c.Files == nil {
				c.Files = map[int]*vfs.Handle{}
			}
			c.Files[n] = sh.fds[n]
		}
	}
	c.Signal, c.Host = sh.proc.dying, host{sh.w, sh.proc}
	return c
}

func (sh *shell) fd(n int) *vfs.Handle {
	if n < len(sh.fds) {
		return sh.fds[n]
	}
	return nil
}

// program runs a program and waits for it.
func (sh *shell) program(args []string, assigns []assigned, standard bool) int {
	name := args[0]
	p := sh.processFor(args, assigns)
	path, err := sh.find(p, name, standard)
	if err != nil {
		return sh.notFound(name, err)
	}
	status, err := sh.w.execute(p, path)
	if err != nil {
		return sh.notStarted(name, path, err)
	}
	if signal := sh.proc.dying(); signal != 0 {
		panic(program.Killed{Signal: signal})
	}
	if d := sh.p.Deadline; !d.IsZero() && !sh.p.Now().Before(d) {
		panic(program.Killed{Signal: program.SIGTERM})
	}
	switch status.Signal {
	case 0, program.SIGINT, program.SIGPIPE:
	default:
		sh.complain("", "%5d %-23s %s", p.PID, signalText(status.Signal), strings.Join(args, " "))
	}
	return status.Exit()
}

// find looks for a program as the shell does: it remembers where it was.
func (sh *shell) find(p *program.Process, name string, standard bool) (string, error) {
	if strings.Contains(name, "/") {
		return name, sh.w.executable(p.At(), name)
	}
	if standard {
		return sh.w.search(p.At(), defaultPath, name)
	}
	for _, kv := range p.Env {
		if strings.HasPrefix(kv, "PATH=") && kv[5:] != sh.str("PATH") {
			return sh.w.search(p.At(), kv[5:], name)
		}
	}
	if path, ok := sh.hash[name]; ok {
		if sh.w.executable(p.At(), path) == nil {
			return path, nil
		}
		delete(sh.hash, name)
	}
	path, ok := sh.get("PATH")
	if !ok {
		path = defaultPath
	}
	full, err := sh.w.search(p.At(), path, name)
	if err == nil && sh.on[optHashall] {
		sh.hash[name] = full
	}
	return full, err
}

// notFound tells that there is no such program and returns the status that this is.
func (sh *shell) notFound(name string, err error) int {
	if strings.Contains(name, "/") {
		n, lookErr := sh.w.fs.Lookup(sh.at(), name, true)
		sh.w.stop(lookErr)
		if lookErr == nil && n.Kind() == vfs.Directory {
			sh.complain("", "%s: Is a directory", name)
			return 126
		}
		sh.complain("", "%s: %s", name, err)
		if errors.Is(err, vfs.ENOENT) {
			return 127
		}
		return 126
	}
	if errors.Is(err, vfs.EACCES) {
		sh.complain("", "%s: Permission denied", name)
		return 126
	}
	if f := sh.funcs["command_not_found_handle"]; f != nil {
		return sh.call(f, []string{f.name, name})
	}
	if path := sh.str("PATH"); path == "" {
		sh.complain("", "%s: %s", name, err)
		return 127
	}
	if name != "" {
		sh.w.Report(program.Lack{Kind: program.LackCommand, Name: name})
	}
	sh.complain("", "%s: command not found", name)
	return 127
}

func (sh *shell) notStarted(name, path string, err error) int {
	if _, ok := errors.AsType[badInterpreter](err); ok {
		sh.complain("", "%s: %s", path, err)
		return 127
	}
	if strings.Contains(name, "/") {
		path = name
	}
	sh.complain("", "%s: %s", path, program.Message(err))
	if errors.Is(err, vfs.ENOENT) {
		return 127
	}
	return 126
}

// stdout writes for a builtin; what does not succeed is told, and is its status.
func (sh *shell) stdout(name, s string) int {
	h := sh.fd(1)
	if s == "" && h != nil {
		return 0
	}
	err := error(vfs.EBADF)
	if h != nil {
		_, err = h.Write([]byte(s))
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, vfs.EPIPE):
		if t, ok := sh.traps[program.SIGPIPE]; !ok || t != "" {
			panic(program.Killed{Signal: program.SIGPIPE})
		}
	}
	sh.w.stop(err)
	sh.complain(name, "write error: %s", program.Message(err))
	return 1
}

// stderr writes a message.
func (sh *shell) stderr(s string) {
	h := sh.fd(2)
	if h == nil {
		return
	}
	_, err := h.Write([]byte(s))
	sh.w.stop(err)
	if errors.Is(err, vfs.EPIPE) {
		panic(program.Killed{Signal: program.SIGPIPE})
	}
}

// complain prints a message as bash does: behind the name of the script, the line and the builtin.
func (sh *shell) complain(builtin, format string, args ...any) {
	name := sh.name
	if n := sh.source.name; n != "" {
		name = n
	}
	if len(sh.frames) > 0 {
		name = sh.frames[len(sh.frames)-1].source
	}
	prefix := fmt.Sprintf("%s: line %d: ", name, sh.line)
	if builtin != "" {
		prefix += builtin + ": "
	}
	sh.stderr(prefix + fmt.Sprintf(format, args...) + "\n")
}

// trace prints a command for set -x.
func (sh *shell) trace(s string) {
	prefix := "+ "
	if ps4, ok := sh.get("PS4"); ok {
		prefix = ps4
		if strings.ContainsAny(prefix, "$`") {
			sh.on[optXtrace] = false
			status := sh.status
			prefix = sh.documentText(prefix)
			sh.status = status
			sh.on[optXtrace] = true
		}
	}
	if prefix != "" {
		prefix = strings.Repeat(prefix[:1], sh.evals) + prefix
	}
	sh.stderr(prefix + s + "\n")
}

func (sh *shell) traceWords(args []string) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = quoteTrace(a)
	}
	sh.trace(strings.Join(words, " "))
}

func (sh *shell) traceFor(l *syntax.WordIter, words []string) {
	s := "for " + l.Name.Value
	if l.InPos.IsValid() {
		var raw []string
		for _, w := range l.Items {
			raw = append(raw, sh.code(w))
		}
		s += " in " + strings.Join(raw, " ")
	} else {
		s += ` in "$@"`
	}
	sh.trace(s)
}
