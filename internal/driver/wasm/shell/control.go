package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
