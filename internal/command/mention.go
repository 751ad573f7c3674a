package command

import (
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// mentions are the words that may be names of files which one program hands to another.
type mentions struct {
	line     *reader
	words    []arg
	blind    bool // some command is handed a file that is not known
	searches bool // find says what may be handed on
}

// A command line mentions a file if it contains the name without passing it to a command: in a variable, in the output of echo, in an
// expression of find. If a command gets an unknown file, it may be any of those.

// mention notes a text, as far as it is known; an option is none.
func (mn *mentions) mention(a arg) {
	switch {
	case a.text == "":
	case a.text[0] != '-':
		mn.words = append(mn.words, a)
		mn.line.late.dashed = mn.line.late.dashed || strings.Contains(a.text, "\n-") // a line of a here-document
	default:
		mn.line.late.dashed = mn.line.late.dashed || len(a.text) > 2
	}
}

// mentionAll notes the words of a command that is not a file tool: it may print them, or hand them on.
func (mn *mentions) mentionAll(name string, rest []arg) {
	if fileless[name] || wrappers[name].known && !wrappers[name].opaque { // the command behind a wrapper is checked itself
		return
	}
	if _, ok := fileTools[name]; ok {
		return
	}
	if name == "printf" {
		mn.mention(printed(rest))
	}
	for i, a := range rest {
		if strings.HasPrefix(a.text, "-") && !mn.handsOn(name, i, a.text) {
			continue // an option of its own
		}
		mn.mention(a)
	}
}

// conversion is a place of a format of printf where an argument stands.
var conversion = regexp.MustCompile(`%[-+ #0-9.*']*[A-Za-z]`)

// printed returns the output of a printf, with a star for unknown parts.
func printed(rest []arg) arg {
	if len(rest) > 0 && strings.HasPrefix(rest[0].text, "-v") { // into a variable
		if len(rest[0].text) == 2 {
			rest = rest[1:]
		}
		rest = rest[min(1, len(rest)):]
	}
	if rest = operand(rest); len(rest) == 0 || !rest[0].known {
		return arg{}
	}
	format, given := rest[0].text, known(rest[1:])
	if len(given) == len(rest)-1 {
		var text strings.Builder
		for {
			part, n, err := expand.Format(nil, format, given)
			if text.WriteString(part); err != nil {
				break
			}
			if given = given[min(n, len(given)):]; n == 0 || len(given) == 0 || text.Len() > MaxChars {
				return arg{text: text.String(), known: true}
			}
		}
	}
	return arg{text: strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\n").Replace(conversion.ReplaceAllString(format, "*")), known: true}
}

// handsOn reports whether a word of a command that looks like an option may be handed on to another.
func (mn *mentions) handsOn(name string, i int, text string) bool {
	switch name {
	case "echo":
		return strings.Trim(text, "-neE") != ""
	case "printf", "set":
		return true
	case "sh", "bash", "dash":
		return i > 1 // behind -c and the script
	}
	return mn.line.functions[name]
}

// fileless are the commands that print nothing of what they are given; find and grep say for themselves what they mention.
var fileless = names("test [ [[ find true false : cd pushd exit return kill sleep trap let unset alias hash")

// open turns mentions into files, if a command gets an unknown file.
func (mn *mentions) open() error {
	if !mn.blind {
		return nil
	}
	n := 0
	for _, a := range mn.words {
		for word := range strings.FieldsSeq(a.text) {
			if n++; n > maxWords {
				return &Error{Msg: fmt.Sprintf("more than %d words may be names of files", maxWords)}
			}
			glob := a.glob || strings.ContainsAny(word, "*?[")
			if !a.known { // the text before it may be a folder of the space
				word = strings.TrimPrefix(word, "/")
			}
			if err := mn.line.open(arg{text: word, known: true, glob: glob}, false, true); err != nil {
				return err
			}
		}
	}
	for i := range mn.line.out.Files {
		if f := &mn.line.out.Files[i]; mn.line.late.alters && f.Argument { // ${f%.txt}, ${f,,}: another name comes of it
			f.Fold, f.Part = true, true
		}
		if mn.line.out.Files[i].Pattern {
			mn.line.out.Files[i].Dots = mn.line.out.Files[i].Dots || mn.searches
		}
	}
	return nil
}

// feeds notes the text that a statement reads from a here-document or a here-string, unless its output goes to a file.
func (mn *mentions) feeds(redirs []*syntax.Redirect) {
	if captured(redirs) {
		return
	}
	for _, d := range redirs {
		switch d.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			mn.mention(document(d))
		case syntax.WordHdoc:
			mn.mention(literal(d.Word))
		}
	}
}

// captured reports whether the output of a statement goes to a file.
func captured(redirs []*syntax.Redirect) bool {
	for _, d := range redirs {
		switch d.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			if d.N == nil || d.N.Value == "1" {
				return true
			}
		}
	}
	return false
}

// search reads the files that an expression of find matches. Negated tests match nothing. Pruned folders are not passed on, unless
// nothing else is.
func (mn *mentions) search(rest []arg) {
	var branch, held, found []arg
	pruned, acts, acted := false, false, false
	negated := []bool{false} // by the parentheses around
	flip := false
	end := func() {
		if pruned && !acts {
			held = append(held, branch...)
		} else {
			found = append(found, branch...)
		}
		branch, pruned, acts = nil, false, false
	}
	for i := 0; i < len(rest); i++ {
		switch text := rest[i].text; text {
		case "!", "-not":
			flip = !flip
			continue
		case "(":
			negated = append(negated, negated[len(negated)-1] != flip)
		case ")":
			if len(negated) > 1 {
				negated = negated[:len(negated)-1]
			}
		case "-o", "-or", ",":
			if len(negated) == 1 {
				end()
			}
		case "-prune":
			pruned = true
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-samefile", "-lname", "-ilname", "-regex", "-iregex":
			if i++; i < len(rest) && negated[len(negated)-1] == flip {
				branch = append(branch, sought(text, rest[i])...)
			}
		default:
			if strings.HasPrefix(text, "-exec") || strings.HasPrefix(text, "-ok") || strings.HasPrefix(text, "-print") || strings.HasPrefix(text,
				"-fprint") || text == "-delete" || text == "-ls" {
				acts, acted = true, true
			}
		}
		flip = false
	}
	end()
	if !acted { // find prints whatever fits the whole expression
		found = append(found, held...)
	}
	mn.searches = mn.searches || len(found) > 0
	for _, a := range found {
		mn.mention(a)
	}
}

// sought returns the operand of a find test, as names and patterns of the shell.
func sought(test string, a arg) []arg {
	if strings.HasSuffix(test, "regex") {
		a.text = strings.NewReplacer(`\`, "", ".*", "*").Replace(a.text)
	}
	if strings.HasPrefix(test, "-i") {
		lower := a
		lower.text = strings.ToLower(a.text)
		return []arg{a, lower}
	}
	return []arg{a}
}
