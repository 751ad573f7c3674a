package command

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Word is a word of a command, for callers that ask for the needs of a command. Its text is empty if it is known only when the command
// runs.
type Word struct {
	Text  string
	Known bool
}

// Literal takes the quotes of a word away.
func Literal(w *syntax.Word) Word {
	a := literal(w)
	if !a.known {
		return Word{}
	}
	return Word{a.text, true}
}

func argsOf(words []Word) []arg {
	args := make([]arg, len(words))
	for i, w := range words {
		args[i] = arg{text: w.Text, known: w.Known}
	}
	return args
}

// Options are those options of a program that take the next argument.
type Options struct {
	Letters string
	Long    []string // with their dashes
}

// OptionsOf returns the known options of a program.
func OptionsOf(tool string) Options {
	if o, ok := takes[tool]; ok {
		return o
	}
	o := Options{Letters: takesMore[tool]}
	for _, name := range slices.Sorted(maps.Keys(optionTable[tool])) {
		switch t := optionTable[tool][name]; {
		case t == attached:
		case strings.HasPrefix(name, "--"):
			o.Long = append(o.Long, name)
		default:
			o.Letters += name
		}
	}
	return o
}

// Takes reports whether an option takes the next argument: a long one by any beginning of its name, and a cluster of letters where the
// first that takes anything is the last.
func (o Options) Takes(option string) bool {
	if len(option) < 2 || option[0] != '-' || option == "--" {
		return false
	}
	if strings.HasPrefix(option, "--") {
		// GNU programs take any unique beginning of an option.
		return !strings.Contains(option, "=") && slices.ContainsFunc(o.Long, func(l string) bool { return strings.HasPrefix(l, option) })
	}
	i := strings.IndexAny(option[1:], o.Letters)
	return i >= 0 && i == len(option)-2
}

// names reports whether an option is, as it stands there, one that takes the next argument.
func (o Options) names(option string) bool {
	return slices.Contains(o.Long, option) || len(option) == 2 && strings.Contains(o.Letters, option[1:])
}

// skip returns the place of the first operand behind the options; false where an option is not known.
func (o Options) skip(rest []arg) (int, bool) {
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		switch {
		case !a.known:
			return i, false
		case a.text == "--":
			return i + 1, true
		case len(a.text) < 2 || a.text[0] != '-':
			return i, true
		case o.Takes(a.text):
			i++
			if i < len(rest) && !rest[i].known && !rest[i].one {
				return i, false // it may be several words, of which only the first is the option's
			}
		}
	}
	return len(rest), true
}

// Operand returns the first word that is not an option, and the words after it. It returns nothing if there is none, or if it is unknown.
func (o Options) Operand(rest []Word) (first Word, behind []Word) {
	i, ok := o.skip(argsOf(rest))
	if !ok || i >= len(rest) {
		return Word{}, nil
	}
	return rest[i], rest[i+1:]
}

var (
	pythonTakes = Options{Letters: "WX"}
	nodeTakes   = Options{"rC", append([]string{"--context"}, fileOptions...)}
	scriptTakes = Options{Letters: "IlM"}
	npmTakes    = Options{"Cw", []string{"--prefix", "--loglevel", "--workspace", "--userconfig", "--globalconfig", "--cache", "--registry",
		"--script-shell"}}
	pipTakes = Options{Long: []string{"--log", "--proxy", "--cache-dir", "--timeout", "--retries", "--python", "--cert"}}
)

// takes says of interpreters, and of programs with verbs, which options take the next argument. Those of the file tools stand in
// optionTable, and those of wrappers in wrappers.
var takes = map[string]Options{
	"python": pythonTakes, "python2": pythonTakes, "python3": pythonTakes,
	"node": nodeTakes, "nodejs": nodeTakes, "bun": nodeTakes, "tsx": nodeTakes, "ts-node": nodeTakes,
	"perl": scriptTakes, "ruby": scriptTakes, "php": scriptTakes, "lua": scriptTakes,
	"git": {"Cc", []string{"--git-dir", "--work-tree", "--namespace"}},
	"npm": npmTakes, "pnpm": {"CF", []string{"--dir", "--filter"}}, "yarn": {Long: []string{"--cwd"}},
	"pip": pipTakes, "pip3": pipTakes, "go": {Letters: "C"}, "apt": {Letters: "oct"}, "apt-get": {Letters: "oct"},
}

// takesMore are letters that optionTable leaves out: there what stands behind them counts as a file, which is the stricter.
var takesMore = map[string]string{"curl": "CPQrtUxyYz"}

// invocation holds the arguments of a shell.
type invocation struct {
	at     int   // where the first argument stands that is not an option
	script bool  // there stands the text of a command line
	stdin  bool  // what it reads are commands, whatever stands there
	starts bool  // it reads its start files
	files  []arg // that it reads before
	sets   []arg // names of options of the shell
	known  bool
}

// invoked reads the options of a shell.
func invoked(rest []arg) (told invocation) {
	i := 0
	for ; i < len(rest); i++ {
		a := rest[i]
		if !a.known {
			return told
		}
		if a.text == "--" || a.text == "-" {
			i++
			break
		}
		if len(a.text) < 2 || a.text[0] != '-' && a.text[0] != '+' {
			break
		}
		if strings.HasPrefix(a.text, "--") {
			if a.text == "--rcfile" || a.text == "--init-file" {
				i++
				told.files = append(told.files, rest[min(i, len(rest)):min(i+1, len(rest))]...)
			}
			continue
		}
		for j, letter := range a.text[1:] {
			switch letter {
			case 'c':
				told.script = true
			case 's':
				told.stdin = true
			case 'i', 'l':
				told.starts = true
			case 'o', 'O':
				if j == len(a.text)-2 {
					i++ // the option's name
					told.sets = append(told.sets, rest[min(i, len(rest)):min(i+1, len(rest))]...)
				}
			}
		}
	}
	told.at, told.known = i, true
	return told
}

// Shell says what a shell would run: a text, a file, or the commands that it reads. It is empty if that is not known.
func Shell(rest []Word) (text, file Word, reads bool) {
	told := invoked(argsOf(rest))
	switch {
	case !told.known || told.script && told.at >= len(rest):
	case told.script:
		text = rest[told.at]
	case told.at < len(rest) && !told.stdin && !isStdin(rest[told.at].Text):
		file = rest[told.at]
	default:
		reads = true
	}
	return text, file, reads
}
