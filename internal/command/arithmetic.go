package command

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/policy"
)

// Shell arithmetic evaluates the values of variables, and an array index in a value may hold a command: with x=$(cat f), $((x)) runs the
// code in f. So arithmetic over data counts as a script. It is harmless if the policy lets scripts run, and is refused if the policy
// names single commands. Values that can only be numbers are no data.

// arithmetic is the known facts about the variables that arithmetic evaluates.
type arithmetic struct {
	known    map[string]bool     // given values that stand in the command line
	data     map[string]bool     // given values from elsewhere
	received map[string]bool     // given values by a command, such as read
	from     map[string][]string // given the values of other variables
	used     map[string]bool     // evaluated
	integer  bool                // some variable evaluates whatever it is given
	opaque   bool                // something is evaluated that is not a variable of the command line
}

// assign notes that a variable gets a word. Found says that the word stands for search results, such as the names of files.
func (m *arithmetic) assign(name string, w *syntax.Word, found bool) {
	if m.known == nil {
		m.known, m.data, m.from, m.used = map[string]bool{}, map[string]bool{}, map[string][]string{}, map[string]bool{}
	}
	m.known[name] = true
	if w == nil {
		return
	}
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			m.data[name] = m.data[name] || found && strings.ContainsAny(n.Value, "*?[~")
		case *syntax.ParamExp:
			if n.Param != nil && !n.Length {
				m.from[name] = append(m.from[name], n.Param.Value)
			}
		case *syntax.CmdSubst:
			m.data[name] = m.data[name] || !isNumber(n)
			return false
		case *syntax.ArithmExp:
			return false
		case *syntax.ExtGlob:
			m.data[name] = true
		}
		return true
	})
}

// receive notes that a variable is given a value from elsewhere.
func (m *arithmetic) receive(name string) {
	m.assign(name, nil, false)
	m.data[name] = true
	if m.received == nil {
		m.received = map[string]bool{}
	}
	m.received[name] = true
}

var identifiers = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// evaluate notes the variables that an expression evaluates.
func (m *arithmetic) evaluate(n syntax.Node) {
	if n == nil {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryArithm:
			if name, number := plainAssignment(n); number {
				m.assign(name, nil, false)
				return false
			}
		case *syntax.Lit:
			if !strings.HasPrefix(n.Value, "0x") && !strings.HasPrefix(n.Value, "0X") {
				m.use(identifiers.FindAllString(n.Value, -1)...)
			}
		case *syntax.SglQuoted:
			m.use(identifiers.FindAllString(n.Value, -1)...)
		case *syntax.ParamExp:
			if n.Param != nil && !n.Length {
				m.use(n.Param.Value)
			}
			return n.Exp != nil
		case *syntax.CmdSubst:
			m.opaque = m.opaque || !isNumber(n)
			return false
		}
		return true
	})
}

// plainAssignment returns the name of a variable that arithmetic sets to a number.
func plainAssignment(n *syntax.BinaryArithm) (string, bool) {
	x, ok := n.X.(*syntax.Word)
	y, ok2 := n.Y.(*syntax.Word)
	if !ok || !ok2 || n.Op != syntax.Assgn {
		return "", false
	}
	return x.Lit(), x.Lit() != "" && identifiers.FindString(x.Lit()) == x.Lit() && strings.Trim(y.Lit(), "0123456789") == "" && y.Lit() != ""
}

// use notes that variables are evaluated. One that was given nothing yet has its value from outside.
func (m *arithmetic) use(names ...string) {
	for _, name := range names {
		switch {
		case numeric[name]:
		case !m.known[name]:
			m.opaque = true
		default:
			m.used[name] = true
		}
	}
}

// numeric are the variables that the shell itself sets to numbers.
var numeric = names("RANDOM SRANDOM SECONDS LINENO BASHPID UID EUID PPID EPOCHSECONDS # ? $ !")

// overData reports whether anything that is evaluated may come from elsewhere.
func (m *arithmetic) overData() bool {
	if m.opaque {
		return true
	}
	seen := map[string]bool{}
	var isData func(name string) bool
	isData = func(name string) bool {
		if seen[name] || numeric[name] {
			return false
		}
		seen[name] = true
		return !m.known[name] || m.data[name] || slices.ContainsFunc(m.from[name], isData)
	}
	for name := range m.known {
		if (m.used[name] || m.integer) && isData(name) {
			return true
		}
	}
	return false
}

// evaluates is the command that arithmetic over data amounts to.
func (r *reader) evaluates() error {
	if !r.math.overData() {
		return nil
	}
	r.out.Unsealed = append(r.out.Unsealed, "the data that arithmetic evaluates")
	return r.emit(Command{Name: "bash", Traits: []string{policy.TraitInterpreter, policy.TraitRunsFile}})
}

// arithmetical notes the variables that a node evaluates and assigns.
func (r *reader) arithmetical(n syntax.Node) {
	m := &r.math
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name == nil {
			return
		}
		if n.Index != nil {
			m.evaluate(n.Index)
		}
		switch {
		case n.Array != nil:
			m.assign(n.Name.Value, nil, false)
			for _, e := range n.Array.Elems {
				m.assign(n.Name.Value, e.Value, true)
				if e.Index != nil {
					m.evaluate(e.Index)
				}
			}
		case !n.Naked:
			m.assign(n.Name.Value, n.Value, false)
		}
	case *syntax.WordIter:
		if len(n.Items) == 0 && n.Name != nil {
			m.receive(n.Name.Value) // the arguments
		}
		for _, w := range n.Items {
			m.assign(n.Name.Value, w, true)
		}
	case *syntax.ArithmExp:
		m.evaluate(n.X)
	case *syntax.ArithmCmd:
		m.evaluate(n.X)
	case *syntax.LetClause:
		for _, x := range n.Exprs {
			m.evaluate(x)
		}
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{n.Init, n.Cond, n.Post} {
			if x != nil {
				m.evaluate(x)
			}
		}
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			m.evaluate(n.X)
			m.evaluate(n.Y)
		}
	case *syntax.ParamExp:
		if n.Index != nil {
			m.evaluate(n.Index)
		}
		if n.Slice != nil {
			for _, x := range []syntax.ArithmExpr{n.Slice.Offset, n.Slice.Length} {
				if x != nil {
					m.evaluate(x)
				}
			}
		}
	}
}

// isNumber reports whether a substitution can only yield numbers.
func isNumber(c *syntax.CmdSubst) bool {
	if len(c.Stmts) != 1 {
		return false
	}
	return printsNumber(c.Stmts[0])
}

func printsNumber(s *syntax.Stmt) bool {
	if pipe, ok := s.Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe {
		return printsNumber(pipe.Y)
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 {
		return false
	}
	var words []string
	for _, w := range call.Args {
		a := literal(w)
		if !a.known || a.glob {
			return false
		}
		words = append(words, a.text)
	}
	rest := words[1:]
	option := func(word string) bool { return strings.HasPrefix(word, "-") }
	switch words[0] {
	case "wc": // of its standard input; it prints the names of files
		return !slices.ContainsFunc(rest, func(word string) bool { return !option(word) || strings.HasPrefix(word, "--files") })
	case "nproc":
		return true
	case "seq":
		return !slices.ContainsFunc(rest, func(word string) bool { return strings.Trim(word, "0123456789") != "" })
	case "grep": // with one file it prints no name
		return len(rest) > 0 && rest[0] == "-c" && len(rest) <= 3 && !slices.ContainsFunc(rest[1:], option)
	case "date":
		return len(rest) == 1 && len(rest[0]) > 2 && rest[0][0] == '+' && strings.Trim(rest[0][1:], "%sdmHMSYyjNuw") == ""
	}
	return false
}
