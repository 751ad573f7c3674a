package shell

import (
	"slices"
	"strings"
)

// aliaser puts the values of aliases into a text where commands begin, before the text is parsed, as bash does while it reads. So an
// alias may open a loop, or a quote that the text closes.
type aliaser struct {
	sh      *shell
	src     string
	pos     int
	out     strings.Builder
	lines   []int // of each line of the result, that of the text
	line    int
	command bool // a command may begin here
	next    bool // look up this word, though it begins no command: the alias before it ends in a blank
	within  []aliasText
	open    []byte // what is open: ( { or c for the patterns of a case
	pending []string
	added   int // by the values of aliases
}

// aliasText is the value of an alias that is being read; it ends where left bytes of the text are left.
type aliasText struct {
	name  string
	left  int
	blank bool
}

// maxAliased is the number of bytes that the values of aliases may add to a text. Further aliases stay unexpanded.
const maxAliased = 1 << 20

// expandAliases returns a text with the values of aliases in their places, and for each line of the result the line of the text.
func expandAliases(sh *shell, code string) (string, []int) {
	sh.charge(len(code))
	a := &aliaser{sh: sh, src: code, command: true, lines: []int{1}, line: 1}
	for a.pos < len(a.src) {
		a.leave()
		if a.pos < len(a.src) {
			a.step()
		}
	}
	return a.out.String(), a.lines
}

// leave notes that the value of an alias has been read.
func (a *aliaser) leave() {
	for len(a.within) > 0 && len(a.src)-a.pos <= a.within[len(a.within)-1].left {
		last := a.within[len(a.within)-1]
		a.next = a.next || last.blank
		a.within = a.within[:len(a.within)-1]
	}
}

// emit copies n bytes.
func (a *aliaser) emit(n int) {
	text := a.src[a.pos : a.pos+n]
	a.out.WriteString(text)
	a.pos += n
	for range strings.Count(text, "\n") {
		if len(a.within) == 0 {
			a.line++
		}
		a.lines = append(a.lines, a.line)
	}
}

func (a *aliaser) step() {
	c := a.src[a.pos]
	rest := a.src[a.pos:]
	switch {
	case c == '\n':
		a.emit(1)
		a.command, a.next = true, false
		a.documents()
	case c == ' ' || c == '\t':
		a.emit(1)
	case strings.HasPrefix(rest, "\\\n"):
		a.emit(2)
	case c == '#':
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		a.emit(end)
	case a.command && strings.HasPrefix(rest, "(("):
		if end := closingParenthesis(rest, 0); end > 0 && rest[end-1] == ')' {
			a.emit(end + 1)
			a.command = false
			return
		}
		a.operator()
	case strings.IndexByte(";&|()<>", c) >= 0 && !strings.HasPrefix(rest, "<(") && !strings.HasPrefix(rest, ">("):
		a.operator()
	default:
		a.word()
	}
}

// patterns reports whether the patterns of a case may stand here.
func (a *aliaser) patterns() bool { return len(a.open) > 0 && a.open[len(a.open)-1] == 'p' }

func (a *aliaser) operator() {
	rest := a.src[a.pos:]
	a.next = false
	for _, op := range []string{";;&", ";;", ";&", "<<-", "<<<", "<<", "&>>", "&>", ">>", ">|", "<>", "<&", ">&", "&&", "||", "|&"} {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		a.emit(len(op))
		switch {
		case op[0] == ';' && len(a.open) > 0 && a.open[len(a.open)-1] == 'c':
			a.open[len(a.open)-1] = 'p'
			a.command = false
		case op == "<<" || op == "<<-":
			a.delimiter(op == "<<-")
		case strings.ContainsAny(op, "<>"):
			a.target()
		default:
			a.command = true
		}
		return
	}
	c := rest[0]
	a.emit(1)
	switch c {
	case '<', '>':
		a.target()
		return
	case '(':
		if a.patterns() {
			return
		}
		a.open = append(a.open, '(')
	case ')':
		if a.patterns() {
			a.open[len(a.open)-1] = 'c'
		} else if n := len(a.open); n > 0 && a.open[n-1] == '(' {
			a.open = a.open[:n-1]
		}
	case '|':
		if a.patterns() {
			return
		}
	}
	a.command = true
}

// target copies what a redirection leads to.
func (a *aliaser) target() {
	for a.pos < len(a.src) && (a.src[a.pos] == ' ' || a.src[a.pos] == '\t') {
		a.emit(1)
	}
	a.emit(endOfWord(a.src, a.pos) - a.pos)
	a.command = false
}

// delimiter notes a here-document, whose body follows the line.
func (a *aliaser) delimiter(tabs bool) {
	begin := a.pos
	a.target()
	word := strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(strings.TrimSpace(a.src[begin:a.pos]))
	if tabs {
		word = "\t" + word
	}
	a.pending = append(a.pending, word)
}

// documents copies the bodies of here-documents.
func (a *aliaser) documents() {
	for _, delim := range a.pending {
		word, tabs := strings.CutPrefix(delim, "\t")
		for a.pos < len(a.src) {
			line, _, _ := strings.Cut(a.src[a.pos:], "\n")
			a.emit(min(len(line)+1, len(a.src)-a.pos))
			if tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == word {
				break
			}
		}
	}
	a.pending = nil
}

func (a *aliaser) word() {
	end := endOfWord(a.src, a.pos)
	if end == a.pos {
		a.emit(1)
		return
	}
	word := a.src[a.pos:end]
	looked := a.command || a.next
	a.next = false
	if looked && !a.patterns() && a.replace(word) {
		a.next = true // look up its first word too
		return
	}
	if a.patterns() {
		if word == "esac" {
			a.open = a.open[:len(a.open)-1]
		}
		a.copyWord(end)
		return
	}
	if a.command {
		a.reserved(word)
	} else if word == "in" && len(a.open) > 0 && a.open[len(a.open)-1] == 'w' {
		a.open[len(a.open)-1] = 'p'
	}
	a.copyWord(end)
}

// reserved says whether a command may follow a word that stands where a command may.
func (a *aliaser) reserved(word string) {
	switch word {
	case "if", "then", "else", "elif", "do", "while", "until", "!", "time", "{":
		return
	case "case":
		a.open = append(a.open, 'w')
	case "esac":
		if n := len(a.open); n > 0 && a.open[n-1] == 'c' {
			a.open = a.open[:n-1]
		}
	}
	if name, _, ok := strings.Cut(word, "="); ok && (validName(strings.TrimSuffix(name, "+"))) {
		return
	}
	a.command = false
}

// replace puts the value of an alias in the place of its name, and reports whether there is one.
func (a *aliaser) replace(word string) bool {
	val, ok := a.sh.aliases[word]
	if !ok || slices.ContainsFunc(a.within, func(t aliasText) bool { return t.name == word }) || a.added+len(val) > maxAliased {
		return false
	}
	a.sh.charge(50 + len(val) + len(a.src)/8)
	rest := a.src[a.pos+len(word):]
	a.added += len(val)
	a.src = val + rest
	a.pos = 0
	a.within = append(a.within, aliasText{name: word, left: len(rest), blank: strings.HasSuffix(val, " ") || strings.HasSuffix(val, "\t")})
	if val == "" {
		a.leave()
	}
	return true
}

// copyWord copies a word, and expands the aliases of the command substitutions in it.
func (a *aliaser) copyWord(end int) {
	for a.pos < end {
		i := strings.Index(a.src[a.pos:end], "$(")
		if i < 0 || strings.HasPrefix(a.src[a.pos+i:], "$((") || strings.ContainsRune(a.src[a.pos:a.pos+i], '\'') {
			break
		}
		a.emit(i + 1)
		close := closingParenthesis(a.src[:end], a.pos)
		if close < 0 || !enterLevel(a.sh) {
			break
		}
		inner, lines := expandAliases(a.sh, a.src[a.pos+1:close])
		a.sh.w.account.Leave()
		a.out.WriteString("(" + inner)
		for _, l := range lines[1:] {
			a.lines = append(a.lines, a.line+l-1)
		}
		a.line += strings.Count(a.src[a.pos:close], "\n")
		a.pos = close
	}
	a.emit(end - a.pos)
}
