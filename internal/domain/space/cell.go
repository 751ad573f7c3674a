package space

import (
	"path"
	"strings"
)

// Cell is a command that runs a piece of code in an interpreter context.
type Cell struct {
	Context  string // its name
	Language string // Python or JavaScript
	Code     string
	File     string // absolute, in the space, instead of code
}

// cellPrograms are the beginnings of the commands of cells, and the option with which each takes code.
var cellPrograms = map[string][2]string{Python: {"python3 --context=", "-c"}, JavaScript: {"node --context=", "-e"}}

// ReadCell returns the cell that a command is, in the form in which cells are requested; false for every other command. A command that
// does anything beside a cell is none.
func ReadCell(command string, env map[string]string) (Cell, bool) {
	for language, p := range cellPrograms {
		rest, ok := strings.CutPrefix(command, p[0])
		if !ok {
			continue
		}
		name, argument, _ := strings.Cut(rest, " ")
		c := Cell{Context: name, Language: language}
		if ContextName(name) != nil {
			return c, false
		}
		code, option := strings.CutPrefix(argument, p[1]+" ")
		if option && code == `"$`+CellVariable+`"` {
			c.Code, ok = env[CellVariable]
			return c, ok
		}
		word, ok := unquoted(code)
		if !option {
			c.File = word
			return c, ok && path.IsAbs(word)
		}
		c.Code = word
		return c, ok
	}
	return Cell{}, false
}

// unquoted returns the text of one word of the shell that is written in single quotes, as a cell is.
func unquoted(word string) (string, bool) {
	inner, begins := strings.CutPrefix(word, "'")
	inner, ends := strings.CutSuffix(inner, "'")
	text := strings.ReplaceAll(inner, `'\''`, "\x00")
	if !begins || !ends || strings.ContainsAny(inner, "\x00") || strings.Contains(text, "'") {
		return "", false
	}
	return strings.ReplaceAll(text, "\x00", "'"), true
}
