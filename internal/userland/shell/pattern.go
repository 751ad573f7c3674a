package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/userland/bound"
)

// special characters of patterns.
const patternMeta = `*?[\`

// quotePattern escapes what is special in a pattern.
func quotePattern(s string) string {
	if !strings.ContainsAny(s, `*?[]\!()|@+-^`) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`*?[]\!()|@+-^`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// plain returns the text that a pattern without special characters stands for.
func plain(p string) (string, bool) {
	if !strings.ContainsAny(p, patternMeta) && !hasExtended(p) {
		return p, true
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*', '?', '[':
			return "", false
		case '+', '@', '!':
			if i+1 < len(p) && p[i+1] == '(' {
				return "", false
			}
		case '\\':
			if i++; i == len(p) {
				b.WriteByte('\\')
				return b.String(), true
			}
		}
		b.WriteByte(p[i])
	}
	return b.String(), true
}

// hasExtended reports whether there is an extended operator in a pattern.
func hasExtended(p string) bool {
	for i := 1; i < len(p); i++ {
		if p[i] == '(' && strings.IndexByte("?*+@!", p[i-1]) >= 0 && (i < 2 || p[i-2] != '\\') {
			return true
		}
	}
	return false
}

// matcher matches one pattern.
type matcher struct {
	sh    *shell
	fold  bool
	steps int
}

// match reports whether a pattern matches all of a text.
func (sh *shell) match(pat, s string, fold bool) bool {
	if lit, ok := plain(pat); ok {
		sh.charge(1 + len(s)/8)
		if fold {
			return strings.EqualFold(lit, s)
		}
		return lit == s
	}
	m := matcher{sh: sh, fold: fold}
	ok := m.match(pat, s)
	sh.charge(m.steps)
	return ok
}

func (m *matcher) step() {
	if m.steps++; m.steps >= 4096 {
		m.sh.charge(m.steps * 4)
		m.steps = 0
	}
}

// match is iterative over what is simple: only the last star is taken up again.
func (m *matcher) match(p, s string) bool {
	starP, starS := "", ""
	star := false
	for {
		m.step()
		switch {
		case len(p) > 1 && p[1] == '(' && strings.IndexByte("?*+@!", p[0]) >= 0:
			if m.extended(p, s) {
				return true
			}
		case p == "":
			if s == "" {
				return true
			}
		case p[0] == '*':
			for p != "" && p[0] == '*' && (len(p) < 2 || p[1] != '(') {
				p = p[1:]
			}
			if p == "" {
				return true
			}
			star, starP, starS = true, p, s
			continue
		case s != "":
			if np, ns, ok := m.one(p, s); ok {
				p, s = np, ns
				continue
			}
		}
		if !star || starS == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(starS)
		starS = starS[size:]
		p, s = starP, starS
	}
}

// one matches one character and returns what is left.
func (m *matcher) one(p, s string) (string, string, bool) {
	r, size := utf8.DecodeRuneInString(s)
	switch p[0] {
	case '?':
		return p[1:], s[size:], true
	case '[':
		if ok, rest, valid := m.bracket(p, r); valid {
			return rest, s[size:], ok
		}
	case '\\':
		if len(p) > 1 {
			p = p[1:]
		}
	}
	pr, psize := utf8.DecodeRuneInString(p)
	if pr == utf8.RuneError && psize == 1 {
		return p[1:], s[1:], p[0] == s[0]
	}
	if pr != r && (!m.fold || unicode.ToLower(pr) != unicode.ToLower(r)) {
		return p, s, false
	}
	return p[psize:], s[size:], true
}

// bracket matches [...]; valid is false where p is none.
func (m *matcher) bracket(p string, r rune) (ok bool, rest string, valid bool) {
	set, rest, valid := cutBracket(p)
	if !valid {
		return false, p, false
	}
	not := false
	if set != "" && (set[0] == '!' || set[0] == '^') {
		not, set = true, set[1:]
	}
	hit := m.inSet(set, r)
	if !hit && m.fold {
		hit = m.inSet(set, unicode.ToLower(r)) || m.inSet(set, unicode.ToUpper(r))
	}
	return hit != not, rest, true
}

// cutBracket returns what stands between the brackets at the beginning of p and what follows.
func cutBracket(p string) (set, rest string, ok bool) {
	i := 1
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		i++
	}
	first := i
	for ; i < len(p); i++ {
		switch p[i] {
		case ']':
			if i > first {
				return p[1:i], p[i+1:], true
			}
		case '\\':
			i++
		case '[':
			if i+1 < len(p) && (p[i+1] == ':' || p[i+1] == '.' || p[i+1] == '=') {
				if end := strings.Index(p[i+2:], p[i+1:i+2]+"]"); end >= 0 {
					i += end + 3
				}
			}
		case '/':
			return "", "", false
		}
	}
	return "", "", false
}

func (m *matcher) inSet(set string, r rune) bool {
	hit := false
	for set != "" {
		m.step()
		if strings.HasPrefix(set, "[:") {
			if name, rest, ok := strings.Cut(set[2:], ":]"); ok {
				hit = hit || inClass(name, r)
				set = rest
				continue
			}
		}
		var lo rune
		if lo, set = setRune(set); len(set) > 1 && set[0] == '-' {
			var hi rune
			hi, set = setRune(set[1:])
			hit = hit || lo <= r && r <= hi
			continue
		}
		hit = hit || lo == r
	}
	return hit
}

func setRune(set string) (rune, string) {
	if len(set) > 1 && set[0] == '\\' {
		set = set[1:]
	}
	if len(set) > 4 && (strings.HasPrefix(set, "[.") || strings.HasPrefix(set, "[=")) {
		if end := strings.Index(set[2:], set[1:2]+"]"); end > 0 {
			r, _ := utf8.DecodeRuneInString(set[2:])
			return r, set[end+4:]
		}
	}
	r, size := utf8.DecodeRuneInString(set)
	return r, set[size:]
}

func inClass(name string, r rune) bool {
	switch name {
	case "alpha":
		return unicode.IsLetter(r)
	case "digit":
		return r >= '0' && r <= '9'
	case "alnum":
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	case "upper":
		return unicode.IsUpper(r)
	case "lower":
		return unicode.IsLower(r)
	case "space":
		return r == ' ' || r >= 9 && r <= 13
	case "blank":
		return r == ' ' || r == '\t'
	case "punct":
		return r > 32 && r < 127 && !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	case "print":
		return r >= 32 && r != 127
	case "graph":
		return r > 32 && r != 127
	case "cntrl":
		return r < 32 || r == 127
	case "xdigit":
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	case "word":
		return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	return false
}

// cutExtended splits op(a|b)rest.
func cutExtended(p string) (alternatives []string, rest string, ok bool) {
	depth, begin := 0, 2
	for i := 1; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			if _, after, bracket := cutBracket(p[i:]); bracket {
				i = len(p) - len(after) - 1
			}
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return append(alternatives, p[begin:i]), p[i+1:], true
			}
		case '|':
			if depth == 1 {
				alternatives = append(alternatives, p[begin:i])
				begin = i + 1
			}
		}
	}
	return nil, "", false
}

// extended matches a pattern that begins with an extended operator.
func (m *matcher) extended(p, s string) bool {
	if err := m.sh.w.account.Enter(); err != nil {
		return false
	}
	defer m.sh.w.account.Leave()
	alternatives, rest, ok := cutExtended(p)
	if !ok {
		if s == "" || p[0] != s[0] {
			return p[0] == '*' && m.match(p[1:], s)
		}
		return m.match(p[1:], s[1:])
	}
	switch p[0] {
	case '?', '*':
		if m.match(rest, s) {
			return true
		}
	case '!':
		for i := len(s); i >= 0; i-- {
			hit := false
			for _, a := range alternatives {
				hit = hit || m.match(a, s[:i])
			}
			if !hit && m.match(rest, s[i:]) {
				return true
			}
		}
		return false
	}
	again := p[0] == '*' || p[0] == '+'
	for i := 0; i <= len(s); i++ {
		for _, a := range alternatives {
			if !m.match(a, s[:i]) {
				continue
			}
			if m.match(rest, s[i:]) {
				return true
			}
			if again && i > 0 && m.extended("*"+p[1:], s[i:]) {
				return true
			}
		}
	}
	return false
}

// trimPrefix and trimSuffix are ${x#pat}, ${x##pat}, ${x%pat} and ${x%%pat}.
func trimPrefix(sh *shell, s, pat string, longest bool) string {
	if lit, ok := plain(pat); ok {
		return strings.TrimPrefix(s, lit)
	}
	sh.charge(20 + len(s))
	if x, ok := patternRegexp(pat, !longest); ok {
		if re := compilePattern(sh, "^(?:"+x+")", longest); re != nil {
			if loc := locate(sh, re, s); loc != nil {
				return s[loc[1]:]
			}
			return s
		}
	}
	for i := 0; i <= len(s); i++ {
		at := i
		if longest {
			at = len(s) - i
		}
		if sh.match(pat, s[:at], false) {
			return s[at:]
		}
	}
	return s
}

func trimSuffix(sh *shell, s, pat string, longest bool) string {
	if lit, ok := plain(pat); ok {
		return strings.TrimSuffix(s, lit)
	}
	sh.charge(20 + len(s))
	if x, ok := patternRegexp(pat, false); ok {
		if longest {
			if re := compilePattern(sh, "(?:"+x+`)\z`, true); re != nil {
				if loc := locate(sh, re, s); loc != nil {
					return s[:loc[0]]
				}
				return s
			}
		} else if re := compilePattern(sh, "^((?s:.*))(?:"+x+`)\z`, false); re != nil {
			if loc := locate(sh, re, s); loc != nil {
				return s[:loc[3]]
			}
			return s
		}
	}
	for i := 0; i <= len(s); i++ {
		at := len(s) - i
		if longest {
			at = i
		}
		if sh.match(pat, s[at:], false) {
			return s[:at]
		}
	}
	return s
}

// replaceAll is ${x/pat/with} and ${x//pat/with}; anchor is '#' or '%' where the pattern begins with it. An & in with stands for what was
// matched.
func replaceAll(sh *shell, s, pat, with string, all bool) string {
	anchor := byte(0)
	if pat != "" && !all && (pat[0] == '#' || pat[0] == '%') {
		anchor, pat = pat[0], pat[1:]
	}
	fill := func(string) string { return with }
	if strings.ContainsAny(with, `&\`) {
		fill = func(hit string) string {
			var b strings.Builder
			for i := 0; i < len(with); i++ {
				switch {
				case with[i] == '\\' && i+1 < len(with) && (with[i+1] == '&' || with[i+1] == '\\'):
					i++
					b.WriteByte(with[i])
				case with[i] == '&':
					b.WriteString(hit)
				default:
					b.WriteByte(with[i])
				}
			}
			return b.String()
		}
	}
	if pat == "" {
		switch anchor {
		case '#':
			return fill("") + s
		case '%':
			return s + fill("")
		}
		return s
	}
	sh.charge(20 + len(s))
	var spans [][]int
	if lit, ok := plain(pat); ok {
		switch {
		case anchor == '#':
			if strings.HasPrefix(s, lit) {
				spans = [][]int{{0, len(lit)}}
			}
		case anchor == '%':
			if strings.HasSuffix(s, lit) {
				spans = [][]int{{len(s) - len(lit), len(s)}}
			}
		default:
			for at := 0; ; {
				i := strings.Index(s[at:], lit)
				if i < 0 {
					break
				}
				sh.charge(20 + i/8)
				spans = append(spans, []int{at + i, at + i + len(lit)})
				sh.w.stop(listRoom(sh, len(spans)*spanBytes))
				if at += i + len(lit); !all || lit == "" {
					break
				}
			}
		}
	} else {
		spans = findSpans(sh, s, pat, all, anchor)
	}
	if len(spans) == 0 {
		return s
	}
	var b []byte
	last, size := 0, 0
	for _, p := range spans {
		b = extendText(sh, b, s[last:p[0]])
		b = extendText(sh, b, fill(s[p[0]:p[1]]))
		last = p[1]
		if len(b)-size > 1<<16 {
			spareMemory(sh, len(b))
			sh.charge(len(b) - size)
			size = len(b)
		}
	}
	return countedText(sh, extendText(sh, b, s[last:]))
}

// countedText returns a text of its own.
func countedText(sh *shell, b []byte) string {
	s, err := bound.Text(sh.w.account, b)
	sh.w.stop(err)
	return s
}

// extendText appends to a text that may be long.
func extendText(sh *shell, dst []byte, s string) []byte {
	dst, err := bound.Append(sh.w.account, dst, s)
	sh.w.stop(err)
	return dst
}

// spareMemory ends the shell where so much memory could not be held.
func spareMemory(sh *shell, n int) {
	sh.hold(int64(n))
	sh.hold(-int64(n))
}

// spanBytes is what one match takes in a list.
const spanBytes = 40

// listRoom ends the shell where a list of matches of so many bytes could not be held. It holds none.
func listRoom(sh *shell, bytes int) error {
	if bytes > 1<<16 && int64(bytes) > sh.w.account.Spare() {
		spareMemory(sh, bytes)
	}
	return nil
}

func findSpans(sh *shell, s, pat string, all bool, anchor byte) [][]int {
	if x, ok := patternRegexp(pat, false); ok {
		switch anchor {
		case '#':
			x = "^(?:" + x + ")"
		case '%':
			x = "(?:" + x + `)\z`
		}
		if re := compilePattern(sh, x, true); re != nil {
			n := 1
			if all {
				n = -1
			}
			re.Bound(func(bytes int) error { return listRoom(sh, bytes) })
			spans, err := re.FindAllString(s, n)
			sh.w.stop(err)
			for i := range spans {
				if spans[i][0] == spans[i][1] && (i > 0 || all) {
					return dropEmpty(spans)
				}
			}
			return spans
		}
	}
	var spans [][]int
	for i := 0; i <= len(s); {
		hit := -1
		for j := len(s); j >= i; j-- {
			if sh.match(pat, s[i:j], false) {
				hit = j
				break
			}
			if anchor == '%' {
				break
			}
		}
		if hit >= 0 && (hit > i || anchor != 0) {
			spans = append(spans, []int{i, hit})
			sh.w.stop(listRoom(sh, len(spans)*spanBytes))
			if !all {
				break
			}
			i = max(hit, i+1)
			continue
		}
		if anchor == '#' {
			break
		}
		i++
	}
	return spans
}

func dropEmpty(spans [][]int) [][]int {
	kept := spans[:0]
	for _, p := range spans {
		if p[1] > p[0] {
			kept = append(kept, p)
		}
	}
	return kept
}
