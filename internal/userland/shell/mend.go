package shell

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var unclosedDocument = regexp.MustCompile("^unclosed here-document `(.*)`$")

// The words that stand for what the parser does not know. The evaluation of the syntax tree recognizes them.
const (
	badExpansion   = "__bad_substitution" // a command: ${...} is none; it is an error only when it is reached
	badArray       = "__bad_array"        // a command: the list of elements of an array is none
	notAName       = "__not_a_name"       // a variable: an element of an array was assigned before a command
	countParameter = "__count"            // a parameter: $#
	toggleCase     = "__toggle"           // a pattern begins with it: ${x~} and ${x~~}
	emptySubscript = "__empty"            // a subscript: there is none
	appendElement  = "__append"           // a subscript ends with it: [x]+=y in a list
)

// mendSource writes what the parser has refused in another way, where bash understands it.
func mendSource(sh *shell, code string, err error) (string, bool) {
	pos, message := 0, ""
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		pos, message = int(e.Pos.Offset()), e.Text
	} else if e, ok := errors.AsType[syntax.LangError](err); ok {
		pos, message = int(e.Pos.Offset()), e.Feature
	} else {
		return "", false
	}
	if pos > len(code) {
		return "", false
	}
	if fixed, ok := redirectLet(code, pos); ok {
		return fixed, true
	}
	switch {
	case message == "cannot negate a command multiple times":
		return dropNegations(code, pos)
	case strings.HasPrefix(message, "`!` cannot form a statement alone"):
		return code[:pos+1] + " :" + code[pos+1:], true
	case strings.HasPrefix(message, "`!` can only be used in full statements"):
		return negateTime(code, pos)
	case strings.HasPrefix(message, "reached `)` without matching"):
		return separateParentheses(code, pos)
	case strings.HasPrefix(message, "ternary operator missing") && inExpansion(code, pos):
		return quoteLength(code, pos)
	case strings.HasPrefix(message, "not a valid arithmetic operator"), strings.HasPrefix(message, "floating point arithmetic"),
		strings.HasSuffix(message, "must follow a name"),
		strings.HasSuffix(message, "must be followed by a literal"), strings.HasPrefix(message, "ternary operator missing"):
		return mendArithmetic(sh, code, pos)
	case strings.HasSuffix(message, "must be followed by an expression"):
		return mendEmpty(sh, code, pos)
	case strings.HasPrefix(message, "cannot combine multiple parameter expansion operators"):
		return countExpansion(code, pos)
	case strings.HasPrefix(message, "not a valid parameter expansion operator: `~`"):
		return code[:pos] + strings.Replace(toggled(code[pos:]), "~", "^", 1), true
	case strings.HasPrefix(message, "not a valid parameter expansion operator"), strings.HasPrefix(message, "invalid @ expansion operator"),
		message == "invalid parameter name":
		return refuseExpansion(code, pos)
	case message == "inline variables cannot be arrays":
		return refuseElement(code, pos)
	case strings.HasPrefix(message, "array element values must be words"):
		return refuseArray(code, pos)
	case message == "`function foo(` must be followed by `)`":
		return closeFunction(code, pos)
	case message == "expansions not allowed in heredoc words":
		return plainDelimiter(code, pos)
	case message == "`[x]` must be followed by `=`":
		return appendedElement(code, pos)
	}
	if m := unclosedDocument.FindStringSubmatch(message); m != nil {
		sh.complain("", "warning: here-document at line %d delimited by end-of-file (wanted `%s')", 1+strings.Count(code[:pos], "\n"), m[1])
		if code != "" && code[len(code)-1] != '\n' {
			code += "\n"
		}
		return code + m[1] + "\n", true
	}
	return "", false
}

// inExpansion reports whether an offset lies within a ${ that is not closed before it.
func inExpansion(code string, at int) bool {
	begin := strings.LastIndex(code[:at], "${")
	return begin >= 0 && !strings.ContainsAny(code[begin:at], "}\n()")
}

// quoteLength writes what stands behind the second colon of ${x:1:2:3} in quotes: only its evaluation tells that it is not an expression.
func quoteLength(code string, at int) (string, bool) {
	begin := strings.LastIndexByte(code[:at], ':') + 1
	end := strings.IndexByte(code[at:], '}')
	if begin == 0 || end < 0 || strings.ContainsAny(code[begin:at+end], "\"'\n") {
		return "", false
	}
	end += at
	return code[:begin] + `"` + code[begin:end] + `"` + code[end:], true
}

// original undoes the changes of mend, for a text that people read.
func original(code string) string {
	if !strings.Contains(code, "__") {
		return code
	}
	return strings.NewReplacer("${"+countParameter, "${#", "^^"+toggleCase, "~~", "^"+toggleCase, "~", appendElement+"]=", "]+=").Replace(code)
}

// dropNegations removes two of the exclamation marks at an offset.
func dropNegations(code string, at int) (string, bool) {
	end := at + 1
	for end < len(code) && isSpace(code[end]) {
		end++
	}
	if !strings.HasPrefix(code[at:], "!") || end >= len(code) || code[end] != '!' {
		return "", false
	}
	return code[:at] + " " + code[at+1:end] + " " + code[end+1:], true
}

// negateTime writes "time ! x" as "! time x".
func negateTime(code string, at int) (string, bool) {
	begin := strings.LastIndex(code[:at], "time")
	if begin < 0 || strings.TrimRight(strings.TrimSuffix(strings.TrimRight(code[begin+4:at], " \t"), "-p"), " \t") != "" {
		return "", false
	}
	return code[:begin] + "! " + code[begin:at] + code[at+1:], true
}

// enclosingArithmetic returns the innermost (( that is open at an offset: where it opens, and where its second parenthesis closes. The
// end is -1 where nothing closes it.
func enclosingArithmetic(sh *shell, code string, at int) (open, end int) {
	for i := min(at, len(code)) - 2; i >= 0 && i >= at-maxMended; i-- {
		if code[i] != '(' || code[i+1] != '(' {
			continue
		}
		end := closingParenthesis(code, i+1)
		sh.charge(max(end-i, 10))
		if end < 0 || end >= at {
			return i, end
		}
	}
	return -1, -1
}

// maxMended is how far before an error the search for its beginning goes.
const maxMended = 1 << 14

// closingParenthesis returns where the parenthesis at an offset closes, -1 for nowhere. It skips what is quoted.
func closingParenthesis(code string, at int) int {
	depth := 0
	for i := at; i < len(code); i++ {
		switch code[i] {
		case '\\':
			i++
		case '\'':
			end := strings.IndexByte(code[i+1:], '\'')
			if end < 0 {
				return -1
			}
			i += end + 1
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// separateParentheses writes "((" as "( (", since it does not end with "))": it begins a command in a subshell.
func separateParentheses(code string, at int) (string, bool) {
	i := strings.Index(code[at:], "((")
	if i < 0 || i > 1 {
		return "", false
	}
	return code[:at+i+1] + " " + code[at+i+1:], true
}

// mendArithmetic is for what is wrong within "((": that is a command, or an expression of which only its evaluation tells what it is.
func mendArithmetic(sh *shell, code string, at int) (string, bool) {
	if open, end := enclosingArithmetic(sh, code, at); open >= 0 && end >= 0 && !strings.HasPrefix(code[end+1:], ")") {
		return separateParentheses(code, open)
	}
	return quoteArithmetic(code, at)
}

var letBefore = regexp.MustCompile(`(?:^|[;&|(){}!\n]|\b(?:then|do|else|if|while|until)\s)[ \t]*(let)[ \t][^;&|\n]*$`)

// redirectLet makes let the builtin where a redirection follows: the parser's clause takes its number for an expression and its sign for
// an operator.
func redirectLet(code string, at int) (string, bool) {
	m := letBefore.FindStringSubmatchIndex(code[:at])
	if m == nil {
		return "", false
	}
	line, _, _ := strings.Cut(code[m[2]:], "\n")
	if !strings.ContainsAny(line, "<>") {
		return "", false
	}
	return code[:m[2]] + `\` + code[m[2]:], true
}

// mendEmpty writes a zero where an expression is empty.
func mendEmpty(sh *shell, code string, at int) (string, bool) {
	rest := strings.TrimPrefix(code[at:], "$")
	if strings.HasPrefix(rest, "let") { // the parser's clause has expressions; the builtin says what is wrong when it is reached
		return code[:at] + `\` + code[at:], true
	}
	if strings.HasPrefix(rest, "((") {
		if inner := strings.TrimLeft(rest[2:], " \t\n"); strings.HasPrefix(inner, "))") {
			begin := len(code) - len(rest) + 2
			return code[:begin] + "0" + code[begin:], true
		}
	}
	if strings.HasPrefix(rest, ":") {
		inner := strings.TrimLeft(rest[1:], " \t\n")
		if inner == "" || inner[0] != '}' && inner[0] != ':' {
			return "", false
		}
		if length := len(inner) < len(rest)-1 || strings.LastIndexByte(code[:at], ':') > strings.LastIndexByte(code[:at], '{'); length ||
			inner[0] == ':' {
			return code[:at+1] + "0" + code[at+1:], true
		}
		return refuseExpansion(code, at)
	}
	if strings.HasPrefix(rest, "[") {
		if fixed, ok := refuseExpansion(code, at); ok {
			return fixed, true
		}
		if strings.HasPrefix(rest, "[]") {
			return code[:at+1] + emptySubscript + code[at+1:], true
		}
		if inner := strings.TrimLeft(rest[1:], " \t"); strings.HasPrefix(inner, "]") {
			return code[:at+1] + "0" + code[at+1:], true
		}
		return "", false
	}
	return mendArithmetic(sh, code, at)
}

// countExpansion writes the operators of $# so that the parser tells them from the length of a parameter: ${##x} and the like.
func countExpansion(code string, at int) (string, bool) {
	begin := strings.LastIndex(code[:at], "${#")
	if begin < 0 {
		return "", false
	}
	if rest := code[begin+3:]; rest == "" || strings.IndexByte("#%:-+=?/", rest[0]) < 0 {
		return refuseExpansion(code, at)
	}
	return code[:begin+2] + countParameter + code[begin+3:], true
}

// toggled writes what follows ~ or ~~ as a pattern that begins with toggleCase.
func toggled(s string) string {
	if strings.HasPrefix(s, "~~") {
		return "~^" + toggleCase + s[2:]
	}
	return "~" + toggleCase + s[1:]
}

// refuseExpansion puts badExpansion in the place of the ${...} around an offset.
func refuseExpansion(code string, at int) (string, bool) {
	begin := strings.LastIndex(code[:min(at, len(code))], "${")
	if begin < 0 {
		return "", false
	}
	end := strings.IndexByte(code[begin:], '}')
	if end < 0 || begin+end < at || strings.ContainsAny(code[begin:begin+end], "'\n") {
		return "", false
	}
	return code[:begin] + "$(" + badExpansion + " '" + code[begin:begin+end+1] + "')" + code[begin+end+1:], true
}

// refuseElement puts notAName in the place of the element of an array that is assigned before a command; that is an error, but the
// command runs.
func refuseElement(code string, at int) (string, bool) {
	i := strings.IndexByte(code[at:], '=')
	if i < 0 {
		return "", false
	}
	name := strings.TrimSuffix(code[at:at+i], "+")
	if strings.ContainsAny(name, "'\n \t;|&") {
		return "", false
	}
	if strings.HasPrefix(code[at+i+1:], "(") {
		end := closingParenthesis(code, at+i+1)
		if end < 0 {
			return "", false
		}
		return code[:at] + notAName + "='" + name + "'" + code[end+1:], true
	}
	return code[:at] + notAName + "='" + name + "'" + code[endOfWord(code, at+i+1):], true
}

// refuseArray puts badArray in the place of a list of elements that has an operator in it. Only the line is an error, not the text.
func refuseArray(code string, at int) (string, bool) {
	begin := strings.LastIndex(code[:at], "=(")
	if begin < 0 {
		return "", false
	}
	end := closingParenthesis(code, begin+1)
	from := strings.LastIndexByte(code[:begin], '\n') + 1
	if end < at || strings.ContainsAny(code[from:end], "'\n") {
		return "", false
	}
	token := code[at : at+1]
	if at+1 < len(code) && code[at+1] == code[at] && code[at] != '(' {
		token += token
	}
	for begin > 0 && !isSpace(code[begin-1]) && strings.IndexByte(";|&(", code[begin-1]) < 0 {
		begin--
	}
	line, _, _ := strings.Cut(code[from:], "\n")
	if strings.ContainsRune(line, '\'') {
		return "", false
	}
	return code[:begin] + badArray + " '" + token + "' '" + line + "'" + code[end+1:], true
}

// closeFunction writes "function f (" as "function f () (" where a subshell is the body.
func closeFunction(code string, at int) (string, bool) {
	i := strings.IndexByte(code[at:], '(')
	if i < 0 {
		return "", false
	}
	return code[:at+i] + "() " + code[at+i:], true
}

// appendedElement writes "[x]+=y" of a list as "[x__append]=y".
func appendedElement(code string, at int) (string, bool) {
	end := closing(code, at)
	if end < 0 || !strings.HasPrefix(code[end+1:], "+=") {
		return "", false
	}
	return code[:end] + appendElement + "]" + code[end+2:], true
}

var documentWord = regexp.MustCompile(`<<(-?)[ \t]*$`)

// plainDelimiter gives a here-document whose delimiter has a $ or a ` another one. They mean nothing there.
func plainDelimiter(code string, at int) (string, bool) {
	begin := at
	for begin > 0 && !isSpace(code[begin-1]) && strings.IndexByte(";|&<>", code[begin-1]) < 0 && (code[begin-1] != '-' || begin < 3 ||
		code[begin-3:begin-1] != "<<") {
		begin--
	}
	m := documentWord.FindStringSubmatch(code[:begin])
	if m == nil {
		return "", false
	}
	end := endOfWord(code, begin)
	raw := code[begin:end]
	plain := strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(raw)
	fresh := ""
	for n := 0; ; n++ {
		if fresh = "__END" + strconv.Itoa(n); !strings.Contains(code, fresh) {
			break
		}
	}
	line := strings.IndexByte(code[end:], '\n')
	if line < 0 {
		line = len(code) - end
	}
	body := code[end+line:]
	var b strings.Builder
	found := false
	for l := range strings.Lines(body) {
		text := strings.TrimSuffix(l, "\n")
		if m[1] == "-" {
			text = strings.TrimLeft(text, "\t")
		}
		if !found && text == plain {
			found = true
			l = strings.Replace(l, text, fresh, 1)
		}
		b.WriteString(l)
	}
	if raw != plain {
		return code[:begin] + "'" + fresh + "'" + code[end:end+line] + b.String(), true
	}
	return code[:begin] + fresh + code[end:end+line] + b.String(), true
}

// endOfWord returns where the word that begins at an offset ends.
func endOfWord(code string, at int) int {
	quote := byte(0)
	depth := 0
	for i := at; i < len(code); i++ {
		c := code[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\\':
			i++
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case (c == '(' || c == '{') && i > at && (code[i-1] == '$' || depth > 0 || code[i-1] == '<' || code[i-1] == '>'):
			depth++
		case (c == ')' || c == '}') && depth > 0:
			depth--
		case depth == 0 && (isSpace(c) || strings.IndexByte(";|&()", c) >= 0 || (c == '<' || c == '>') && (i+1 >= len(code) || code[i+1] != '(')):
			return i
		}
	}
	return len(code)
}

// quoteArithmetic puts the expression around an offset in double quotes, which mean nothing there.
func quoteArithmetic(code string, at int) (string, bool) {
	tries := 0
	for i := min(at, len(code)) - 1; i >= 0 && tries < 64; i-- {
		if code[i] == '[' || code[i] == '(' {
			tries++ // each looks for its end
		}
		var open, end int
		switch {
		case code[i] == '[':
			open = i + 1
			if end = closing(code, i); end < at {
				continue
			}
		case i > 0 && code[i] == '(' && code[i-1] == '(':
			open = i + 1
			if end = closingParenthesis(code, i); end < at {
				continue
			}
		default:
			continue
		}
		inner := code[open:end]
		if strings.ContainsRune(inner, '"') {
			if strings.Contains(inner, "$(") || strings.ContainsAny(inner, "`\\") {
				return "", false
			}
			stripped := strings.ReplaceAll(inner, `"`, "")
			if code[open-1] == '[' || len(stripped) > len(inner)-2 || strings.HasPrefix(inner, `"`) && strings.HasSuffix(inner, `"`) &&
				len(inner)-len(stripped) == 2 {
				return "", false
			}
			inner = stripped
		}
		if inner == "" {
			return "", false
		}
		return code[:open] + `"` + inner + `"` + code[end:], true
	}
	return "", false
}
