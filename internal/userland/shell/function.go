package shell

import (
	"agentbox/internal/userland/bound"
	"mvdan.cc/sh/v3/syntax"
)

// function is a function of the shell's language.
type function struct {
	name     string
	body     *syntax.Stmt
	source   *text
	line     int
	exported bool
}

func declareFunction(sh *shell, c *syntax.FuncDecl) {
	if c.Name == nil {
		unsupported(sh, "function without a name")
		return
	}
	if old := sh.funcs[c.Name.Value]; old != nil && old.name == "readonly" {
		return
	}
	f := &function{name: c.Name.Value, body: c.Body, source: sh.source, line: int(c.Pos().Line()) + sh.source.base}
	sh.funcs[f.name] = f
	sh.charge(100)
	sh.status = 0
}

func importFunction(sh *shell, name, body string) {
	stmts, code, err := parseSource(sh, name+" "+body)
	if err != nil || len(stmts) != 1 {
		return
	}
	if d, ok := stmts[0].Cmd.(*syntax.FuncDecl); ok && d.Name != nil {
		sh.funcs[name] = &function{name: name, body: d.Body, source: &text{code: code, name: "environment"}, exported: true}
	}
}

// sourceOf returns the name of what defined a function.
func sourceOf(sh *shell, f *function) string {
	switch {
	case f.source.name != "":
		return f.source.name
	case sh.fromText:
		return "environment"
	}
	return sh.name
}

// call calls a function. saved is what the assignments before the call have hidden; it comes back when the function returns.
func (sh *shell) call(f *function, args []string, saved []savedVar) int {
	if err := sh.w.account.Enter(); err != nil {
		sh.restore(saved)
		sh.w.refuse(bound.Depth)
		sh.complain("", "%s: maximum function nesting level exceeded (%d)", f.name, sh.w.account.Limits().Depth)
		panic(discard{1})
	}
	fr := &frame{name: f.name, source: sourceOf(sh, f), line: sh.line, params: sh.params, saved: saved}
	for _, s := range saved {
		fr.temps = append(fr.temps, s.name)
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
	hidden, trapped := sh.traps[trapReturn]
	if trapped && !sh.on[optFunctrace] {
		delete(sh.traps, trapReturn)
	}
	sh.stmt(f.body)
	if sh.flow == flowReturn {
		sh.flow = flowNone
	}
	returnTrap(sh)
	if _, set := sh.traps[trapReturn]; trapped && !set && !sh.on[optFunctrace] {
		sh.traps[trapReturn] = hidden
	}
	return sh.status
}
