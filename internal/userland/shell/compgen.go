package shell

import (
	"maps"
	"slices"
	"strings"

	"agentbox/internal/userland/vfs"
)

const compgenUsage = "compgen: usage: compgen [-abcdefgjksuv] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C " +
	"command] [-X filterpat] [-P prefix] [-S suffix] [word]\n"

// compgenActions are the letters of compgen as actions.
var compgenActions = map[byte]string{
	'a': "alias", 'b': "builtin", 'c': "command", 'd': "directory", 'e': "export", 'f': "file", 'g': "group", 'j': "job", 'k': "keyword",
	's': "service", 'u': "user", 'v': "variable",
}

// reserved are the words of the language in the order in which bash has them.
var reserved = []string{"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
	"function", "time", "{", "}", "!", "[[", "]]", "coproc"}

// biCompgen is the builtin compgen: it prints what may complete a word.
func biCompgen(sh *shell, args []string) int {
	var actions []string
	words, glob, function, filter, prefix, suffix, word := "", "", "", "", "", "", ""
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		if args[i] == "--" {
			i++
			break
		}
		for letters := args[i][1:]; letters != ""; {
			c := letters[0]
			letters = letters[1:]
			if action, ok := compgenActions[c]; ok {
				actions = append(actions, action)
				continue
			}
			if strings.IndexByte("oAGWFCXPS", c) < 0 {
				sh.complain("compgen", "-%c: invalid option", c)
				sh.stderr(compgenUsage)
				return 2
			}
			value := letters
			if letters = ""; value == "" {
				if i++; i >= len(args) {
					sh.complain("compgen", "-%c: option requires an argument", c)
					sh.stderr(compgenUsage)
					return 2
				}
				value = args[i]
			}
			switch c {
			case 'A':
				actions = append(actions, value)
			case 'G':
				glob = value
			case 'W':
				words = value
			case 'F', 'C':
				function = value
			case 'X':
				filter = value
			case 'P':
				prefix = value
			case 'S':
				suffix = value
			}
		}
	}
	if i < len(args) {
		word = args[i]
	}
	var all []string
	for _, action := range actions {
		names, ok := completionsOf(sh, action, word)
		if !ok {
			sh.complain("compgen", "%s: invalid action name", action)
			return 2
		}
		all = append(all, names...)
	}
	if glob != "" {
		all = append(all, expandGlob(sh, glob)...)
	}
	if words != "" {
		for _, w := range strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(separatorsOf(sh), r) }) {
			if strings.HasPrefix(w, word) {
				all = append(all, w)
			}
		}
	}
	if function != "" {
		sh.complain("compgen", "warning: -F option may not work as you expect")
		if sh.funcs[function] == nil {
			sh.complain("", "completion: function `%s' not found", function)
			return 1
		}
		_ = sh.unset("COMPREPLY")
		sh.call(sh.funcs[function], []string{function, "compgen", word, ""}, nil)
		if v := sh.lookup("COMPREPLY"); v != nil {
			all = append(all, v.values()...)
		}
	}
	var b strings.Builder
	status := 1
	for _, name := range all {
		sh.charge(10)
		if filter != "" {
			keeps := strings.HasPrefix(filter, "!")
			if sh.match(strings.TrimPrefix(filter, "!"), name, false) != keeps {
				continue
			}
		}
		b.WriteString(prefix + name + suffix + "\n")
		status = 0
	}
	if b.Len() > 0 {
		sh.stdout("compgen", b.String())
	}
	return status
}

// separatorsOf are those of IFS.
func separatorsOf(sh *shell) string {
	if ifs, ok := sh.get("IFS"); ok {
		return ifs
	}
	return " \t\n"
}

// completionsOf returns the names of an action that begin with a word.
func completionsOf(sh *shell, action, word string) (names []string, ok bool) {
	switch action {
	case "alias":
		names = slices.Sorted(maps.Keys(sh.aliases))
	case "builtin", "helptopic", "enabled":
		names = slices.DeleteFunc(builtinNames(), func(s string) bool { return action == "enabled" && sh.disabled[s] })
	case "disabled":
		names = slices.Sorted(maps.Keys(sh.disabled))
	case "command":
		names = slices.Concat(slices.Sorted(maps.Keys(sh.aliases)), reserved, slices.Sorted(maps.Keys(sh.funcs)), builtinNames(),
			slices.Sorted(maps.Keys(sh.w.programs)))
	case "function":
		names = slices.Sorted(maps.Keys(sh.funcs))
	case "keyword":
		names = reserved
	case "variable", "export", "arrayvar":
		for name, v := range sh.vars {
			if action == "variable" || action == "export" && v.exported || action == "arrayvar" && v.kind != scalar {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	case "shopt":
		names = shoptNames()
	case "setopt":
		for _, o := range optionTable() {
			names = append(names, o.name)
		}
	case "signal":
		for n := 1; n < 65; n++ {
			if s := signalName(n); s != "" {
				names = append(names, "SIG"+s)
			}
		}
	case "user", "group":
		names = []string{"root"}
	case "hostname":
		names = []string{"localhost"}
	case "service", "binding":
	case "job", "running", "stopped":
		for _, p := range sh.jobs {
			if action != "stopped" {
				names = append(names, strings.Fields(p.text + " ?")[0])
			}
		}
	case "file", "directory":
		for _, name := range expandGlob(sh, quotePattern(word)+"*") {
			if n, err := sh.w.fs.Lookup(sh.at(), name, true); action == "file" || err == nil && n.Kind() == vfs.Directory {
				names = append(names, name)
			}
		}
	default:
		return nil, false
	}
	return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return !strings.HasPrefix(s, word) }), true
}
