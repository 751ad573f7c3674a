package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/userland/program"
)

// testClause evaluates [[ ... ]].
func testClause(sh *shell, c *syntax.TestClause) int {
	r, err := tryTest(sh, c.X)
	if err != nil {
		sh.complain("[[", "%s", err.text)
		return 1
	}
	if r == badRegexp {
		return 2
	}
	return int(truth(r == 0))
}

const badRegexp = 2

func tryTest(sh *shell, x syntax.TestExpr) (r int, err *arithError) {
	defer func() {
		if x := recover(); x != nil {
			e, ok := x.(*arithError)
			if !ok {
				panic(x)
			}
			err = e
		}
	}()
	return testExpr(sh, x), nil
}

func testExpr(sh *shell, x syntax.TestExpr) int {
	switch x := x.(type) {
	case *syntax.Word:
		s := sh.literal(x)
		if sh.on[optXtrace] {
			sh.trace("[[ -n " + plainTrace(s) + " ]]")
		}
		return int(truth(s != ""))
	case *syntax.ParenTest:
		return testExpr(sh, x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			if b, ok := x.X.(*syntax.BinaryTest); ok && (b.Op == syntax.AndTest || b.Op == syntax.OrTest) {
				// The parser lets ! reach over what binds less tightly.
				return testExpr(sh, &syntax.BinaryTest{OpPos: b.OpPos, Op: b.Op, X: &syntax.UnaryTest{OpPos: x.OpPos, Op: x.Op, X: b.X}, Y: b.Y})
			}
			if r := testExpr(sh, x.X); r != badRegexp {
				return 1 - r
			}
			return badRegexp
		}
		if x.Op == syntax.TsParen {
			return testExpr(sh, x.X)
		}
		w, ok := x.X.(*syntax.Word)
		if !ok {
			return 0
		}
		s := ""
		if x.Op == syntax.TsVarSet {
			s = codeOf(sh, w)
			if strings.ContainsAny(s, "\"'") || !strings.Contains(s, "[") {
				s = sh.literal(w)
			}
			if strings.Contains(s, "$") && !strings.Contains(s, "[") {
				s = sh.literal(w)
			}
		} else {
			s = sh.literal(w)
		}
		if sh.on[optXtrace] {
			sh.trace("[[ " + x.Op.String() + " " + plainTrace(s) + " ]]")
		}
		r, _ := conditionsOf(sh).unary(x.Op.String(), s)
		return int(truth(r))
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			if r := testExpr(sh, x.X); r != 1 {
				return r
			}
			return testExpr(sh, x.Y)
		case syntax.OrTest:
			if r := testExpr(sh, x.X); r == 1 {
				return r
			}
			return testExpr(sh, x.Y)
		}
		a, okA := x.X.(*syntax.Word)
		b, okB := x.Y.(*syntax.Word)
		if !okA || !okB {
			return 0
		}
		return testBinary(sh, x, a, b)
	}
	return 0
}

func testBinary(sh *shell, x *syntax.BinaryTest, a, b *syntax.Word) int {
	left := sh.literal(a)
	show := func(right string) {
		if sh.on[optXtrace] {
			sh.trace("[[ " + plainTrace(left) + " " + x.Op.String() + " " + plainTrace(right) + " ]]")
		}
	}
	switch x.Op {
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		pat := sh.pattern(b)
		if sh.on[optXtrace] {
			show(patternForTrace(sh, b, pat))
		}
		hit := sh.match(pat, left, sh.shopts["nocasematch"])
		return int(truth(hit == (x.Op != syntax.TsNoMatch)))
	case syntax.TsReMatch:
		expr := sh.one(b, modeRegexp, false)
		show(expr)
		return matchRegexp(sh, left, expr)
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		right := sh.literal(b)
		show(right)
		m, n := evalArith(sh, left), evalArith(sh, right)
		hit := false
		switch x.Op {
		case syntax.TsEql:
			hit = m == n
		case syntax.TsNeq:
			hit = m != n
		case syntax.TsLeq:
			hit = m <= n
		case syntax.TsGeq:
			hit = m >= n
		case syntax.TsLss:
			hit = m < n
		default:
			hit = m > n
		}
		return int(truth(hit))
	}
	right := sh.literal(b)
	show(right)
	r, _ := conditionsOf(sh).binary(left, x.Op.String(), right)
	return int(truth(r))
}

// plainTrace is how set -x writes a word of [[.
func plainTrace(s string) string {
	if s == "" {
		return "''"
	}
	return s
}

// patternForTrace returns a pattern of [[ as set -x writes it, with a backslash before each quoted letter.
func patternForTrace(sh *shell, w *syntax.Word, pattern string) string {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted, *syntax.DblQuoted:
			if q, ok := p.(*syntax.DblQuoted); ok {
				for _, inner := range q.Parts {
					switch inner.(type) {
					case *syntax.Lit, *syntax.ParamExp:
					default:
						return pattern // it would be evaluated twice
					}
				}
			}
			for _, r := range sh.literal(&syntax.Word{Parts: []syntax.WordPart{p}}) {
				b.WriteByte('\\')
				b.WriteRune(r)
			}
		default:
			return pattern
		}
	}
	return b.String()
}

// matchRegexp is =~ : an extended regular expression, by linear time. BASH_REMATCH holds what the groups have matched.
func matchRegexp(sh *shell, s, expr string) int {
	sh.charge(50 + len(s) + len(expr))
	translated := posixClasses(expr)
	if sh.shopts["nocasematch"] {
		translated = "(?i)" + translated
	}
	re := compilePattern(sh, "(?s)"+translated, true)
	if re == nil {
		sh.w.Report(program.Lack{Kind: program.LackFeature, Name: "bash", Detail: "regular expression " + expr})
		return badRegexp
	}
	loc := locate(sh, re, s)
	sh.drop("BASH_REMATCH")
	v := sh.mine("BASH_REMATCH")
	v.kind, v.set = indexed, true
	for i := 0; i+1 < len(loc); i += 2 {
		group := ""
		if loc[i] >= 0 {
			group = s[loc[i]:loc[i+1]]
		}
		_ = assignIndex(sh, "BASH_REMATCH", i/2, group, false)
	}
	return int(truth(loc != nil))
}

// posixClasses writes what POSIX has in regular expressions and RE2 has not: a bracket that begins with ] and the word boundaries of GNU.
func posixClasses(expr string) string {
	if !strings.ContainsAny(expr, `[\`) {
		return expr
	}
	var b strings.Builder
	for i := 0; i < len(expr); i++ {
		switch expr[i] {
		case '\\':
			if i+1 < len(expr) {
				i++
				switch expr[i] {
				case '<', '>':
					b.WriteString(`\b`)
				case 'b', 'B', 'w', 'W', 's', 'S':
					b.WriteString(expr[i-1 : i+1])
				default:
					b.WriteString(regexp.QuoteMeta(expr[i : i+1]))
				}
				continue
			}
			b.WriteString(`\\`)
		case '[':
			j := i + 1
			if j < len(expr) && expr[j] == '^' {
				j++
			}
			if j < len(expr) && expr[j] == ']' {
				j++
			}
			for j < len(expr) && expr[j] != ']' {
				if expr[j] == '[' && j+1 < len(expr) && strings.IndexByte(":.=", expr[j+1]) >= 0 {
					if end := strings.Index(expr[j+2:], expr[j+1:j+2]+"]"); end >= 0 {
						j += end + 3
					}
				}
				j++
			}
			if j >= len(expr) {
				b.WriteByte('[')
				continue
			}
			set := expr[i+1 : j]
			b.WriteByte('[')
			if strings.HasPrefix(set, "^") {
				b.WriteByte('^')
				set = set[1:]
			}
			if strings.HasPrefix(set, "]") {
				b.WriteString(`\]`)
				set = set[1:]
			}
			for k := 0; k < len(set); k++ {
				if set[k] == '[' && k+1 < len(set) && set[k+1] == ':' {
					if end := strings.Index(set[k:], ":]"); end > 0 {
						b.WriteString(set[k : k+end+2])
						k += end + 1
						continue
					}
				}
				if set[k] == '\\' && k+1 < len(set) && strings.IndexByte(`.[]{}()*+?^$|/-`, set[k+1]) >= 0 {
					// Quoted text of the shell was escaped before.
					b.WriteString(`\` + set[k+1:k+2])
					k++
					continue
				}
				if set[k] == '[' || set[k] == '\\' || set[k] == '&' || set[k] == '~' {
					b.WriteByte('\\')
				}
				b.WriteByte(set[k])
			}
			b.WriteByte(']')
			i = j
		default:
			b.WriteByte(expr[i])
		}
	}
	return b.String()
}
