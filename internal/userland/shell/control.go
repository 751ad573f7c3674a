package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

func ifClause(sh *shell, c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		if !c.ThenPos.IsValid() {
			sh.stmts(c.Then)
			return
		}
		sh.charge(20)
		ok := runCondition(sh, c.Cond)
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

// leavesLoop handles a jump out of the body of a loop; it reports whether the loop ends.
func leavesLoop(sh *shell) bool {
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

func whileClause(sh *shell, c *syntax.WhileClause) {
	sh.loops++
	defer func() { sh.loops-- }()
	status := 0
	for {
		sh.charge(20)
		ok := runCondition(sh, c.Cond)
		if sh.flow != flowNone {
			if leavesLoop(sh) {
				break
			}
			continue
		}
		if ok == c.Until {
			break
		}
		sh.stmts(c.Do)
		status = sh.status
		if leavesLoop(sh) {
			break
		}
	}
	if sh.flow != flowReturn {
		sh.status = status
	}
}

func forClause(sh *shell, c *syntax.ForClause) {
	sh.loops++
	defer func() { sh.loops-- }()
	if c.Select {
		selectClause(sh, c)
		return
	}
	if l, ok := c.Loop.(*syntax.CStyleLoop); ok {
		cLoop(sh, c, l)
		return
	}
	l := c.Loop.(*syntax.WordIter)
	words := sh.params
	if l.InPos.IsValid() {
		lineOf(sh, c)
		words = sh.fields(l.Items)
		defer releaseWords(sh, holdWords(sh, words))
	}
	if !validName(l.Name.Value) {
		sh.complain("", "`%s': not a valid identifier", l.Name.Value)
		sh.status = 1
		return
	}
	sh.status = 0
	for _, w := range words {
		lineOf(sh, c)
		sh.tick()
		debugTrap(sh, c)
		if sh.on[optXtrace] {
			traceFor(sh, l, words)
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
		if leavesLoop(sh) {
			return
		}
	}
}

// selectClause lets the input choose among words, until it ends.
func selectClause(sh *shell, c *syntax.ForClause) {
	l := c.Loop.(*syntax.WordIter)
	words := sh.params
	if l.InPos.IsValid() {
		lineOf(sh, c)
		words = sh.fields(l.Items)
		defer releaseWords(sh, holdWords(sh, words))
	}
	sh.status = 0
	if len(words) == 0 {
		return
	}
	for menu := true; ; {
		lineOf(sh, c)
		sh.tick()
		if menu {
			writeMenu(sh, words)
		}
		prompt := "#? "
		if v := sh.vars["PS3"]; v != nil {
			prompt = sh.str("PS3")
		}
		sh.stderr(prompt)
		if biRead(sh, []string{"read"}) != 0 {
			sh.stdout("select", "\n")
			sh.status = 1
			return
		}
		reply := sh.str("REPLY")
		if menu = reply == ""; menu {
			continue
		}
		chosen := ""
		if n, err := strconv.Atoi(strings.TrimSpace(reply)); err == nil && n >= 1 && n <= len(words) {
			chosen = words[n-1]
		}
		if err := sh.assign(l.Name.Value, chosen, false); err != nil {
			sh.complain("", "%s", err)
			sh.status = 1
			return
		}
		sh.stmts(c.Do)
		if leavesLoop(sh) {
			return
		}
		menu = sh.str("REPLY") == ""
	}
}

// writeMenu writes words and their numbers in columns, as bash does.
func writeMenu(sh *shell, words []string) {
	width := 80
	if n, err := strconv.Atoi(sh.str("COLUMNS")); err == nil && n > 0 {
		width = n
	}
	digits := len(strconv.Itoa(len(words)))
	longest := 0
	for _, w := range words {
		longest = max(longest, utf8.RuneCountInString(w))
	}
	longest += digits + len(") ") + 2
	columns := max(1, width/longest)
	rows := (len(words) + columns - 1) / columns
	columns = (len(words) + rows - 1) / rows
	if rows == 1 {
		rows = columns
	}
	inFirst := len(strconv.Itoa(rows))
	for row := range rows {
		sh.charge(20)
		var line strings.Builder
		for i, at := row, 0; ; at += longest {
			indices := digits
			if at == 0 {
				indices = inFirst
			}
			fmt.Fprintf(&line, "%*d) %s", indices, i+1, words[i])
			from, to := at+utf8.RuneCountInString(words[i])+indices+len(") "), at+longest
			if i += rows; i >= len(words) {
				break
			}
			for from < to { // with tabs where they reach, as bash does
				if to/8 > from/8 {
					line.WriteByte('\t')
					from += 8 - from%8
				} else {
					line.WriteByte(' ')
					from++
				}
			}
		}
		sh.stderr(line.String() + "\n")
	}
}

func cLoop(sh *shell, c *syntax.ForClause, l *syntax.CStyleLoop) {
	lineOf(sh, c)
	eval := func(x syntax.ArithmExpr) (int64, bool) {
		if x == nil {
			return 1, true
		}
		text := arithExpr(sh, x)
		if sh.on[optXtrace] {
			sh.trace("(( " + strings.TrimSpace(text) + " ))")
		}
		n, err := tryArith(sh, text)
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
		if leavesLoop(sh) {
			break
		}
		if _, ok := eval(l.Post); !ok {
			return
		}
	}
	sh.status = status
}

func caseClause(sh *shell, c *syntax.CaseClause) {
	lineOf(sh, c)
	sh.tick()
	debugTrap(sh, c)
	word := sh.literal(c.Word)
	if sh.on[optXtrace] {
		sh.trace("case " + codeOf(sh, c.Word) + " in")
	}
	through, matched := false, false
	for _, item := range c.Items {
		if !through && !slices.ContainsFunc(item.Patterns, func(w *syntax.Word) bool {
			return sh.match(sh.pattern(w), word, sh.shopts["nocasematch"])
		}) {
			continue
		}
		if matched = true; len(item.Stmts) == 0 {
			sh.status = 0
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
	if !matched {
		sh.status = 0
	}
}
