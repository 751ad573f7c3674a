package shell

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// sink takes what a word expands to.
type sink struct {
	sh      *shell
	mode    byte // one of the modes below
	assign  bool // a tilde behind a colon is expanded
	out     []string
	text    []byte
	esc     []byte // text as a pattern, once there is something special in it
	glob    bool
	started bool // there is a field, perhaps an empty one
	ended   int  // fields
}

const (
	modeFields  = 'f' // split into fields and globbed
	modeLiteral = 'l'
	modePattern = 'p' // what is quoted is escaped as in patterns
	modeRegexp  = 'r' // what is quoted is escaped as in regular expressions
)

// add appends text to the field.
func (k *sink) add(s string, quoted bool) {
	if quoted || s != "" {
		k.started = true
	}
	switch k.mode {
	case modePattern:
		if quoted {
			s = quotePattern(s)
		}
	case modeRegexp:
		if quoted {
			s = regexp.QuoteMeta(s)
		}
	case modeFields:
		if !k.glob && !quoted && s != "" && (strings.ContainsAny(s, `*?[\`) || k.sh.shopts["extglob"] && hasExtended(s)) {
			k.glob = true
			k.esc = append(k.esc[:0], quotePattern(string(k.text))...)
		}
		if k.glob {
			if quoted {
				k.esc = append(k.esc, quotePattern(s)...)
			} else {
				k.esc = append(k.esc, s...)
			}
		}
	}
	if len(s) > 4096 {
		spareMemory(k.sh, len(k.text)+len(s))
	}
	k.text = extendText(k.sh, k.text, s)
}

// end ends the field, if there is one.
func (k *sink) end() {
	if !k.started || k.mode != modeFields {
		return
	}
	sh := k.sh
	if k.ended++; k.ended%256 == 0 {
		sh.charge(256 * gasPerWord)
	}
	if k.glob && !sh.on[optNoglob] && hasGlob(sh, string(k.esc)) {
		found := expandGlob(sh, string(k.esc))
		switch {
		case len(found) > 0:
			k.out = append(k.out, found...)
		case sh.shopts["failglob"]:
			sh.complain("", "no match: %s", k.text)
			panic(discard{1})
		case !sh.shopts["nullglob"]:
			k.out = append(k.out, string(k.text))
		}
	} else {
		k.out = append(k.out, countedText(sh, k.text))
	}
	k.text, k.esc, k.glob, k.started = k.text[:0], k.esc[:0], false, false
}

// split appends the result of an expansion that is not quoted.
func (k *sink) split(s string) {
	if k.mode != modeFields {
		k.add(s, false)
		return
	}
	ifs := k.sh.ifs
	if !k.sh.ifsSet {
		ifs = " \t\n"
	}
	if !strings.ContainsAny(s, ifs) {
		k.add(s, false)
		return
	}
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && strings.IndexByte(ifs, s[j]) < 0 {
			j++
		}
		if j > i {
			k.add(s[i:j], false)
		}
		if i = j; i == len(s) {
			return
		}
		hard := false
		for i < len(s) && strings.IndexByte(ifs, s[i]) >= 0 {
			if !isSpace(s[i]) {
				if hard {
					break
				}
				hard = true
			}
			i++
		}
		if hard {
			k.started = true
		}
		k.end()
	}
}

// hardIFS reports whether the first character of IFS is no blank. Then words that it joins keep their empty parts when they are split
// again.
func hardIFS(sh *shell) bool { return sh.ifsSet && sh.ifs != "" && !isSpace(sh.ifs[0]) }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// fields expands words as the arguments of a command.
func (sh *shell) fields(words []*syntax.Word) []string {
	if len(words) == 0 {
		return nil
	}
	k := sink{sh: sh, mode: modeFields, out: make([]string, 0, len(words))}
	sh.charge(gasPerWord * len(words))
	for _, w := range words {
		k.field(w)
	}
	return k.out
}

func (k *sink) field(w *syntax.Word) {
	sh := k.sh
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\~{*?[+@!") {
			k.out = append(k.out, lit.Value)
			return
		}
	}
	if sh.on[optBraceexpand] && hasBrace(w.Parts) {
		split := *w
		if syntax.SplitBraces(&split) {
			for _, parts := range expandBraces(sh, split.Parts) {
				k.walk(parts, false)
				k.end()
			}
			return
		}
	}
	k.walk(w.Parts, false)
	k.end()
}

// literal expands a word without splitting it.
func (sh *shell) literal(w *syntax.Word) string { return sh.one(w, modeLiteral, false) }

// pattern expands a word to a pattern.
func (sh *shell) pattern(w *syntax.Word) string { return sh.one(w, modePattern, false) }

func (sh *shell) one(w *syntax.Word, mode byte, assign bool) string {
	if w == nil {
		return ""
	}
	if len(w.Parts) == 1 && mode != modeRegexp {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\~") {
			return lit.Value
		}
	}
	sh.charge(gasPerWord)
	k := sink{sh: sh, mode: mode, assign: assign}
	k.walk(w.Parts, false)
	return string(k.text)
}

// expandDocument expands the body of a here-document.
func expandDocument(sh *shell, w *syntax.Word) string {
	if w == nil {
		return ""
	}
	k := sink{sh: sh, mode: modeLiteral}
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			k.doubleQuoted(lit.Value, true)
			continue
		}
		k.part(p, true)
	}
	return string(k.text)
}

// documentText expands text in which only $, ` and \ are special.
func (sh *shell) documentText(raw string) string {
	p, ok := sh.w.words["d"+raw]
	if !ok {
		sh.charge(200 + 20*len(raw))
		p.word, p.err = newParser().Document(strings.NewReader(raw))
		remember(sh, "d"+raw, p)
	}
	if p.err != nil {
		sh.complain("", "%s: bad substitution", raw)
		panic(discard{1})
	}
	before := sh.source
	sh.source = &text{code: raw, name: before.name}
	defer func() { sh.source = before }()
	return expandDocument(sh, p.word)
}

type parsed struct {
	word *syntax.Word
	err  error
}

// remember keeps a parsed word for the next time.
func remember(sh *shell, key string, p parsed) {
	if len(sh.w.words) >= 1024 {
		clear(sh.w.words)
	}
	if len(key) < 4096 {
		sh.w.words[key] = p
	}
}

// subscriptKey expands the source text of an associative array's subscript.
func subscriptKey(sh *shell, raw string) string {
	if !strings.ContainsAny(raw, "$`\\'\"") {
		return raw
	}
	p, ok := sh.w.words["k"+raw]
	if !ok {
		sh.charge(200 + 20*len(raw))
		text := oneWord(raw)
		for w, err := range newParser().WordsSeq(strings.NewReader(text)) {
			if p.word == nil && p.err == nil {
				p.word, p.err = w, err
			}
		}
		remember(sh, "k"+raw, p)
	}
	if p.err != nil || p.word == nil {
		return raw
	}
	before := sh.source
	sh.source = &text{code: oneWord(raw), name: before.name}
	defer func() { sh.source = before }()
	return sh.one(p.word, modeLiteral, false)
}

// oneWord escapes what would end a word.
func oneWord(raw string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '\\' && i+1 < len(raw):
			b.WriteByte(c)
			i++
		case c == '\'' && depth == 0 || c == '"':
			end := i + 1
			for end < len(raw) && raw[end] != c {
				if raw[end] == '\\' && c == '"' {
					end++
				}
				end++
			}
			end = min(end, len(raw)-1)
			b.WriteString(raw[i:end])
			i = end
		case c == '$' && i+1 < len(raw) && (raw[i+1] == '{' || raw[i+1] == '('):
			depth++
			b.WriteByte(c)
			i++
		case depth > 0 && (c == '(' || c == '{'):
			depth++
		case depth > 0 && (c == ')' || c == '}'):
			depth--
		case depth == 0 && strings.IndexByte(" \t\n|&;<>()#*?[]{}~!", c) >= 0:
			b.WriteByte('\\')
		}
		b.WriteByte(raw[i])
	}
	return b.String()
}

// walk expands the parts of a word.
func (k *sink) walk(parts []syntax.WordPart, quoted bool) {
	for i, p := range parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			k.part(p, quoted)
			continue
		}
		if quoted {
			k.doubleQuoted(lit.Value, false)
			continue
		}
		s := lit.Value
		if strings.IndexByte(s, '~') >= 0 && (i == 0 || k.assign) {
			s = k.tilde(s, i == 0, i+1 == len(parts))
		}
		k.unquoted(s)
	}
}

// unquoted appends literal text outside of quotes.
func (k *sink) unquoted(s string) {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			k.add(s, false)
			return
		}
		if i > 0 {
			k.add(s[:i], false)
		}
		if s[i+1] != '\n' {
			k.add(s[i+1:i+2], true)
		}
		s = s[i+2:]
	}
}

// doubleQuoted appends literal text within double quotes or a here-document.
func (k *sink) doubleQuoted(s string, document bool) {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			k.add(s, true)
			return
		}
		switch s[i+1] {
		case '$', '`', '\\':
			k.add(s[:i]+s[i+1:i+2], true)
		case '\n':
			k.add(s[:i], true)
		case '"':
			if !document {
				k.add(s[:i]+`"`, true)
				break
			}
			fallthrough
		default:
			k.add(s[:i+2], true)
		}
		s = s[i+2:]
	}
}

// tilde expands home folders at the beginning of literal text, and behind colons in assignments. It appends what it has read and returns
// the rest.
func (k *sink) tilde(s string, first, last bool) string {
	sh := k.sh
	for {
		if first && strings.HasPrefix(s, "~") {
			end := strings.IndexAny(s, "/:")
			if end >= 0 && s[end] == ':' && !k.assign {
				end = strings.IndexByte(s, '/')
			}
			whole := end < 0
			if whole {
				end = len(s)
			}
			if home, ok := homeOf(sh, s[1:end]); ok && (!whole || last) {
				k.add(home, true)
				s = s[end:]
			}
		}
		if !k.assign {
			return s
		}
		i := strings.Index(s, ":~")
		if i < 0 {
			return s
		}
		k.unquoted(s[:i+1])
		s, first = s[i+1:], true
	}
}

func homeOf(sh *shell, user string) (string, bool) {
	switch user {
	case "":
		if h, ok := sh.get("HOME"); ok {
			return h, true
		}
		return "/root", true
	case "+":
		return sh.get("PWD")
	case "-":
		return sh.get("OLDPWD")
	case "root":
		return "/root", true
	}
	return "", false
}

// part expands one part of a word that is not a literal.
func (k *sink) part(p syntax.WordPart, quoted bool) {
	sh := k.sh
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			k.doubleQuoted(p.Value, false)
		} else {
			k.unquoted(p.Value)
		}
	case *syntax.SglQuoted:
		if quoted && !p.Dollar {
			k.add("'"+p.Value+"'", true)
			return
		}
		s := p.Value
		if p.Dollar {
			s, _ = unescape(s, '$')
			s, _, _ = strings.Cut(s, "\x00")
		}
		k.add(s, true)
	case *syntax.DblQuoted:
		if len(p.Parts) == 0 {
			k.add("", true)
		}
		for _, inner := range p.Parts {
			k.part(inner, true)
		}
	case *syntax.ParamExp:
		k.param(p, quoted)
	case *syntax.CmdSubst:
		refuseSubstitution(sh, p)
		s := commandSubst(sh, p)
		if quoted {
			k.add(s, true)
		} else {
			k.split(s)
		}
		sh.charge(len(s) / 8)
	case *syntax.ArithmExp:
		s := strconv.FormatInt(sh.arith(arithExpr(sh, p.X)), 10)
		if quoted {
			k.add(s, true)
		} else {
			k.split(s)
		}
	case *syntax.ProcSubst:
		k.add(processSubst(sh, p), true)
	case *syntax.ExtGlob:
		s := p.Pattern.Value
		if strings.ContainsAny(s, "$`'\"") {
			s = extendedText(sh, s)
		}
		k.add(p.Op.String()+s+")", false)
	default:
		sh.complain("", "bad substitution")
		panic(discard{1})
	}
}

// refuseSubstitution discards the command line where a command substitution stands for an expansion that there is not.
func refuseSubstitution(sh *shell, c *syntax.CmdSubst) {
	if len(c.Stmts) != 1 {
		return
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 2 || call.Args[0].Lit() != badExpansion {
		return
	}
	sh.complain("", "%s: bad substitution", sh.literal(call.Args[1]))
	panic(discard{1})
}

// extendedText expands what stands within an extended glob operator: variables, and quotes that make characters plain.
func extendedText(sh *shell, s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '\'' || c == '"' {
			end := strings.IndexByte(s[i+1:], c)
			if end >= 0 {
				inner := s[i+1 : i+1+end]
				if c == '"' {
					inner = sh.documentText(inner)
				}
				b.WriteString(quotePattern(inner))
				i += end + 1
				continue
			}
		}
		if s[i] == '\\' && i+1 < len(s) {
			b.WriteString(s[i : i+2])
			i++
			continue
		}
		if s[i] == '$' {
			end := i + 1
			switch {
			case end < len(s) && s[end] == '{':
				if close := strings.IndexByte(s[end:], '}'); close > 0 {
					end += close + 1
				}
			default:
				for end < len(s) && (s[end] == '_' || s[end] >= 'a' && s[end] <= 'z' || s[end] >= 'A' && s[end] <= 'Z' || s[end] >= '0' &&
					s[end] <= '9') {
					end++
				}
			}
			b.WriteString(sh.documentText(s[i:end]))
			i = end - 1
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// joinFields joins a list with the first character of IFS.
func joinFields(sh *shell, list []string) string {
	sep := " "
	if sh.ifsSet {
		sep = ""
		if sh.ifs != "" {
			_, size := utf8.DecodeRuneInString(sh.ifs)
			sep = sh.ifs[:size]
		}
	}
	return strings.Join(list, sep)
}
