package shell

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

func biExec(sh *shell, args []string) int {
	args = args[1:]
	clear := false
	name := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		switch {
		case a == "-c":
			clear = true
		case a == "-a" && len(args) > 0:
			name, args = args[0], args[1:]
		case a == "-l":
		default:
			sh.complain("exec", "%s: invalid option", a)
			return 2
		}
	}
	if len(args) == 0 {
		return 0
	}
	p := processFor(sh, args, nil)
	if clear {
		p.Env = nil
	}
	path, err := findProgram(sh, p, args[0], false)
	if err == nil {
		if name != "" {
			p.Args = append([]string{name}, args[1:]...)
		}
		var status program.Status
		if status, err = sh.w.execute(p, path); err == nil {
			sh.traps = map[int]string{}
			if status.Signal != 0 {
				panic(program.Killed{Signal: status.Signal})
			}
			panic(exitShell{status.Code})
		}
	}
	code := 126
	if errors.Is(err, vfs.ENOENT) {
		code = 127
		if !strings.Contains(args[0], "/") {
			sh.w.Report(program.Lack{Kind: program.LackCommand, Name: args[0]})
			err = errNotFound
		}
	}
	sh.complain("exec", "%s: %s", args[0], program.Message(err))
	if sh.shopts["execfail"] {
		return code
	}
	panic(exitShell{code})
}

var errNotFound = errors.New("not found")

func biCommand(sh *shell, args []string) int {
	args = args[1:]
	standard, verbose, short := false, false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, c := range a[1:] {
			switch c {
			case 'p':
				standard = true
			case 'v':
				short = true
			case 'V':
				verbose = true
			default:
				sh.complain("command", "-%c: invalid option", c)
				sh.stderr("command: usage: command [-pVv] command [arg ...]\n")
				return 2
			}
		}
	}
	if len(args) == 0 {
		return 0
	}
	if short || verbose {
		status := 1
		for _, a := range args {
			if describeName(sh, a, short, false, "command") {
				status = 0
			}
		}
		return status
	}
	if b := builtinNamed(sh, args[0]); b != nil {
		return b(sh, args)
	}
	return runProgram(sh, args, nil, standard)
}

func biBuiltin(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	if b := builtinNamed(sh, args[0]); b != nil {
		return b(sh, args)
	}
	sh.complain("builtin", "%s: not a shell builtin", args[0])
	return 1
}

func isKeyword(s string) bool {
	return slices.Contains([]string{"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
		"function", "time", "{", "}", "!", "[[", "]]", "coproc"}, s)
}

// describeName says what a command name means, as command -v (short) and type do.
func describeName(sh *shell, name string, short, all bool, by string) bool {
	found := false
	say := func(brief, long string) bool {
		found = true
		if short {
			long = brief
		}
		sh.stdout(by, long+"\n")
		return !all
	}
	if val, ok := sh.aliases[name]; ok && sh.shopts["expand_aliases"] {
		if say("alias "+name+"="+quoteSingle(val), name+" is aliased to `"+val+"'") {
			return true
		}
	}
	if isKeyword(name) && say(name, name+" is a shell keyword") {
		return true
	}
	if f := sh.funcs[name]; f != nil && say(name, name+" is a function\n"+name+" () \n"+f.print()) {
		return true
	}
	if builtinNamed(sh, name) != nil && say(name, name+" is a shell builtin") {
		return true
	}
	if path, hashed := sh.hash[name]; hashed && !all && by == "type" {
		if say(path, name+" is hashed ("+path+")") {
			return true
		}
	}
	if strings.Contains(name, "/") {
		if sh.w.executable(sh.at(), name) == nil && say(name, name+" is "+name) {
			return true
		}
	} else {
		for dir := range strings.SplitSeq(sh.str("PATH"), ":") {
			if path, err := sh.w.search(sh.at(), dir, name); err == nil && say(path, name+" is "+path) {
				return true
			}
		}
	}
	if !found && !short {
		sh.complain(by, "%s: not found", name)
	}
	return found
}

func biType(sh *shell, args []string) int {
	all, paths, kinds, force := false, false, false, false
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		for _, c := range args[i][1:] {
			switch c {
			case 'a':
				all = true
			case 'p':
				paths = true
			case 'P':
				force = true
			case 't':
				kinds = true
			case 'f':
			default:
				sh.complain("type", "-%c: invalid option", c)
				sh.stderr("type: usage: type [-afptP] name [name ...]\n")
				return 2
			}
		}
	}
	status := 0
	for _, name := range args[i:] {
		if !kinds && !paths && !force {
			if !describeName(sh, name, false, all, "type") {
				status = 1
			}
			continue
		}
		kind, path := "", ""
		switch {
		case force:
		case sh.aliases[name] != "" && sh.shopts["expand_aliases"]:
			kind = "alias"
		case isKeyword(name):
			kind = "keyword"
		case sh.funcs[name] != nil:
			kind = "function"
		case builtinNamed(sh, name) != nil:
			kind = "builtin"
		}
		if kind == "" {
			var err error
			if strings.Contains(name, "/") {
				path, err = name, sh.w.executable(sh.at(), name)
			} else {
				path, err = sh.w.search(sh.at(), sh.str("PATH"), name)
			}
			if err != nil {
				status = 1
				continue
			}
			kind = "file"
		}
		if kinds {
			sh.stdout("type", kind+"\n")
		} else if path != "" {
			sh.stdout("type", path+"\n")
		}
	}
	return status
}

func biHash(sh *shell, args []string) int {
	if len(args) == 1 {
		if len(sh.hash) == 0 {
			return sh.stdout("hash", "hash: hash table empty\n")
		}
		var b strings.Builder
		b.WriteString("hits\tcommand\n")
		for _, n := range slices.Sorted(maps.Keys(sh.hash)) {
			b.WriteString("   1\t" + sh.hash[n] + "\n")
		}
		return sh.stdout("hash", b.String())
	}
	status := 0
	for i := 1; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-r":
			clear(sh.hash)
		case a == "-p" && i+2 < len(args):
			sh.hash[args[i+2]] = args[i+1]
			return 0
		case a == "-t" || a == "-l" || a == "-d":
		default:
			path, err := sh.w.search(sh.at(), sh.str("PATH"), a)
			if err != nil {
				sh.complain("hash", "%s: not found", a)
				status = 1
				continue
			}
			sh.hash[a] = path
			if args[1] == "-t" {
				sh.stdout("hash", path+"\n")
			}
		}
	}
	return status
}

func biAlias(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-p" {
		args = args[1:]
	}
	if len(args) == 0 {
		var b strings.Builder
		for _, n := range slices.Sorted(maps.Keys(sh.aliases)) {
			b.WriteString("alias " + n + "=" + quoteSingle(sh.aliases[n]) + "\n")
		}
		return sh.stdout("alias", b.String())
	}
	status := 0
	for _, a := range args {
		name, val, set := strings.Cut(a, "=")
		if set {
			sh.hold(int64(len(a) + variableBytes))
			sh.aliases[name] = val
			sh.aliasState++
		} else if val, ok := sh.aliases[name]; ok {
			sh.stdout("alias", "alias "+name+"="+quoteSingle(val)+"\n")
		} else {
			sh.complain("alias", "%s: not found", name)
			status = 1
		}
	}
	return status
}

func biUnalias(sh *shell, args []string) int {
	sh.aliasState++
	status := 0
	for _, a := range args[1:] {
		if a == "-a" {
			clear(sh.aliases)
			continue
		}
		if _, ok := sh.aliases[a]; !ok {
			sh.complain("unalias", "%s: not found", a)
			status = 1
		}
		delete(sh.aliases, a)
	}
	return status
}
