package shell

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

type builtin func(sh *shell, args []string) int

// builtin returns a command of the shell itself, nil for what is none.
func (sh *shell) builtin(name string) builtin {
	switch name {
	case "echo":
		return biEcho
	case "[", "test":
		return biTest
	case "printf":
		return biPrintf
	case ":", "true":
		return func(*shell, []string) int { return 0 }
	case "false":
		return func(*shell, []string) int { return 1 }
	case "cd":
		return biCd
	case "pwd":
		return biPwd
	case "pushd", "popd", "dirs":
		return biDirs
	case "exit", "logout":
		return biExit
	case "return":
		return biReturn
	case "break", "continue":
		return biBreak
	case "shift":
		return biShift
	case "set":
		return biSet
	case "shopt":
		return biShopt
	case "unset":
		return biUnset
	case "export", "readonly", "declare", "typeset", "local":
		return biDeclare
	case "read":
		return biRead
	case "mapfile", "readarray":
		return biMapfile
	case "eval":
		return biEval
	case "source", ".":
		return biSource
	case "exec":
		return biExec
	case "command":
		return biCommand
	case "builtin":
		return biBuiltin
	case "type":
		return biType
	case "hash":
		return biHash
	case "alias":
		return biAlias
	case "unalias":
		return biUnalias
	case "let":
		return biLet
	case "getopts":
		return biGetopts
	case "trap":
		return biTrap
	case "kill":
		return biKill
	case "wait":
		return biWait
	case "jobs":
		return biJobs
	case "fg", "bg":
		return func(sh *shell, args []string) int { sh.complain(args[0], "no job control"); return 1 }
	case "disown":
		return biDisown
	case "umask":
		return biUmask
	case "ulimit":
		return biUlimit
	case "times":
		return func(sh *shell, _ []string) int { return sh.stdout("times", "0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n") }
	case "caller":
		return biCaller
	case "enable":
		return biEnable
	case "compgen":
		return biCompgen
	case "complete", "compopt", "bind", "history", "fc", "suspend", "help":
		return func(sh *shell, args []string) int { sh.unsupported(args[0]); return 1 }
	}
	return nil
}

// builtinNames returns the names of what builtin knows.
func builtinNames() []string {
	return []string{".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt", "continue", "declare", "dirs",
		"disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout",
		"mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "test", "times", "trap", "true",
		"type", "typeset", "ulimit", "umask", "unalias", "unset", "wait"}
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// echoText returns what echo prints.
func echoText(args []string, escapes bool) string {
	newline := true
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			switch c {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
		args = args[1:]
	}
	s := ""
	if len(args) == 1 {
		s = args[0]
	} else {
		s = strings.Join(args, " ")
	}
	if escapes {
		var stop bool
		if s, stop = unescape(s, 'e'); stop {
			return s
		}
	}
	if newline {
		s += "\n"
	}
	return s
}

func biEcho(sh *shell, args []string) int {
	return sh.stdout("echo", echoText(args[1:], sh.shopts["xpg_echo"]))
}

func biExit(sh *shell, args []string) int {
	code := sh.status
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			sh.complain("exit", "%s: numeric argument required", args[1])
			n = 2
		} else if len(args) > 2 {
			sh.complain("exit", "too many arguments")
			return 1
		}
		code = n
	}
	panic(exitShell{code & 0xff})
}

func biReturn(sh *shell, args []string) int {
	if len(sh.frames) == 0 && sh.sourcing == 0 {
		sh.complain("return", "can only `return' from a function or sourced script")
		return 2
	}
	code := sh.status
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			sh.complain("return", "%s: numeric argument required", args[1])
			n = 2
		}
		code = n & 0xff
	}
	sh.flow = flowReturn
	return code
}

func biBreak(sh *shell, args []string) int {
	n := 1
	if len(args) > 1 {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil {
			sh.complain(args[0], "%s: numeric argument required", args[1])
			panic(exitShell{128})
		}
		if n < 1 {
			sh.complain(args[0], "%s: loop count out of range", args[1])
			n = sh.loops
			if n == 0 {
				return 1
			}
			sh.flow, sh.levels = flowBreak, n
			return 1
		}
	}
	if sh.loops == 0 {
		sh.complain(args[0], "only meaningful in a `for', `while', or `until' loop")
		return 0
	}
	sh.levels = min(n, sh.loops)
	if sh.flow = flowBreak; args[0] == "continue" {
		sh.flow = flowContinue
	}
	return 0
}

func biShift(sh *shell, args []string) int {
	n := 1
	if len(args) > 1 {
		var err error
		if n, err = strconv.Atoi(args[1]); err != nil {
			sh.complain("shift", "%s: numeric argument required", args[1])
			return 1
		}
	}
	if n < 0 {
		sh.complain("shift", "%s: shift count out of range", args[1])
		return 1
	}
	if n > len(sh.params) {
		if sh.shopts["shift_verbose"] {
			sh.complain("shift", "%d: shift count out of range", n)
		}
		return 1
	}
	sh.params = sh.params[n:]
	return 0
}

func biUnset(sh *shell, args []string) int {
	functions, variables, ref := false, false, false
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		if args[i] == "--" {
			i++
			break
		}
		for _, c := range args[i][1:] {
			switch c {
			case 'f':
				functions = true
			case 'v':
				variables = true
			case 'n':
				ref = true
			default:
				sh.complain("unset", "-%c: invalid option", c)
				sh.stderr("unset: usage: unset [-f] [-v] [-n] [name ...]\n")
				return 2
			}
		}
	}
	status := 0
	for _, name := range args[i:] {
		if functions {
			delete(sh.funcs, name)
			continue
		}
		if base, sub, ok := splitSubscript(name); ok {
			if !sh.unsetElement(base, sub) {
				status = 1
			}
			continue
		}
		if !validName(name) {
			if !variables && sh.funcs[name] != nil {
				delete(sh.funcs, name)
				continue
			}
			if variables {
				sh.complain("unset", "`%s': not a valid identifier", name)
				status = 1
			}
			continue
		}
		target := name
		if !ref {
			target = sh.resolve(name)
			if base, sub, ok := splitSubscript(target); ok {
				sh.unsetElement(base, sub)
				continue
			}
		}
		if sh.vars[target] == nil && !variables {
			delete(sh.funcs, name)
			continue
		}
		if err := sh.unset(target); err != nil {
			sh.complain("unset", "%s", err)
			status = 1
		}
	}
	return status
}

func (sh *shell) unsetElement(name, sub string) bool {
	name = sh.resolve(name)
	v := sh.vars[name]
	if v == nil {
		return true
	}
	if v.readonly {
		sh.complain("unset", "%s: cannot unset: readonly variable", name)
		return false
	}
	if v.kind == associative && sub != "@" && sub != "*" {
		key := sh.subscriptKey(sub)
		v = sh.mine(name)
		if old, ok := v.m[key]; ok {
			sh.grow(v, -(len(old.val) + variableBytes + len(key)))
			delete(v.m, key)
			v.list = nil
		}
		return true
	}
	if sub == "@" || sub == "*" {
		_ = sh.unset(name)
		return true
	}
	if v.kind == scalar {
		if n := sh.arith(sh.arithText(sub)); n != 0 {
			sh.complain("unset", "%s: not an array variable", name)
			return false
		}
		_ = sh.unset(name)
		return true
	}
	i, ok := sh.subscriptIndex(v, sub)
	if !ok {
		sh.complain("unset", "[%s]: bad array subscript", sub)
		return false
	}
	v = sh.mine(name)
	if old, has := v.at(i); has {
		sh.grow(v, -(len(old) + 16))
		v.unsetAt(i)
	}
	return true
}

func biEval(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	code := strings.Join(args, " ")
	sh.status = 0
	if strings.TrimSpace(code) == "" {
		return 0
	}
	if !sh.enter() {
		panic(discard{1})
	}
	defer sh.w.account.Leave()
	sh.evals++
	defer func() { sh.evals-- }()
	sh.runText(code, "eval")
	return sh.status
}

func biSource(sh *shell, args []string) int {
	if len(args) < 2 {
		sh.complain(args[0], "filename argument required")
		sh.stderr(args[0] + ": usage: " + args[0] + " filename [arguments]\n")
		return 2
	}
	name := args[1]
	path := name
	if !strings.Contains(name, "/") {
		for dir := range strings.SplitSeq(sh.str("PATH"), ":") {
			full := strings.TrimSuffix(dir, "/") + "/" + name
			n, err := sh.w.fs.Lookup(sh.at(), full, true)
			sh.w.stop(err)
			if err == nil && n.Kind() == vfs.Regular && dir != "" {
				path = full
				break
			}
		}
	}
	code, err := sh.readFile(path)
	if err != nil {
		if errors.Is(err, vfs.EISDIR) {
			sh.complain(args[0], "%s: is a directory", name)
		} else {
			sh.complain("", "%s: %s", name, program.Message(err))
		}
		return 1
	}
	if !sh.enter() {
		panic(discard{1})
	}
	defer sh.w.account.Leave()
	params, source, loops := sh.params, sh.source, sh.loops
	if len(args) > 2 {
		sh.params = args[2:]
	}
	changed := sh.setParams
	sh.setParams = false
	sh.sourcing++
	sh.loops = 0
	sh.source = &text{name: name}
	sh.sources = append(slices.Clip(sh.sources), name)
	defer func() {
		sh.sourcing--
		sh.sources = sh.sources[:len(sh.sources)-1]
		sh.source, sh.loops = source, loops
		if len(args) > 2 && !sh.setParams {
			sh.params = params
		}
		sh.setParams = sh.setParams || changed
	}()
	sh.status = 0
	stmts, code, err := sh.parse(code)
	sh.source.code = code
	if err == nil {
		sh.stmts(stmts)
	} else {
		sh.script(code, name)
	}
	if sh.flow == flowReturn {
		sh.flow = flowNone
	}
	return sh.status
}

// readFile reads a script.
func (sh *shell) readFile(path string) (string, error) {
	h, err := sh.open(path, vfs.Read)
	if err != nil {
		sh.w.stop(err)
		return "", err
	}
	defer func() { _ = h.Close() }()
	all, err := h.ReadAll()
	if err != nil {
		sh.w.stop(err)
		return "", err
	}
	sh.w.account.Release(int64(len(all)))
	return string(all), nil
}

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
	p := sh.processFor(args, nil)
	if clear {
		p.Env = nil
	}
	path, err := sh.find(p, args[0], false)
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
			if sh.describe(a, short, false, "command") {
				status = 0
			}
		}
		return status
	}
	if b := sh.builtin(args[0]); b != nil {
		return b(sh, args)
	}
	return sh.program(args, nil, standard)
}

func biBuiltin(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	if b := sh.builtin(args[0]); b != nil {
		return b(sh, args)
	}
	sh.complain("builtin", "%s: not a shell builtin", args[0])
	return 1
}

func isKeyword(s string) bool {
	return slices.Contains([]string{"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc"}, s)
}

// describe says what a command name means, as command -v (short) and type do.
func (sh *shell) describe(name string, short, all bool, by string) bool {
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
	if sh.builtin(name) != nil && say(name, name+" is a shell builtin") {
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
			if !sh.describe(name, false, all, "type") {
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
		case sh.builtin(name) != nil:
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

func biLet(sh *shell, args []string) int {
	if len(args) < 2 {
		sh.complain("let", "expression expected")
		return 2
	}
	status := 0
	for _, a := range args[1:] {
		status = sh.arithmCommand("let", a)
	}
	return status
}

// biGetopts is the builtin getopts.
func biGetopts(sh *shell, args []string) int {
	if len(args) < 3 {
		sh.stderr("getopts: usage: getopts optstring name [arg ...]\n")
		return 2
	}
	spec, name := args[1], args[2]
	params := sh.params
	if len(args) > 3 {
		params = args[3:]
	}
	silent := strings.HasPrefix(spec, ":")
	opterr := sh.str("OPTERR") != "0"
	index, _ := strconv.Atoi(sh.str("OPTIND"))
	index = max(index, 1)
	end := func() int {
		sh.set("OPTIND", strconv.Itoa(index))
		sh.optind = 1
		sh.set(name, "?")
		_ = sh.unset("OPTARG")
		return 1
	}
	if sh.optlast != index {
		sh.optind = 1
	}
	if index > len(params) {
		return end()
	}
	a := params[index-1]
	if sh.optind == 1 {
		if a == "--" {
			index++
			return end()
		}
		if len(a) < 2 || a[0] != '-' {
			return end()
		}
	}
	if sh.optind >= len(a) {
		sh.optind = 1
		return end()
	}
	c := a[sh.optind]
	next := sh.optind + 1
	i := strings.IndexByte(strings.TrimPrefix(spec, ":"), c)
	trimmed := strings.TrimPrefix(spec, ":")
	status := func(opt, optarg string, has bool) int {
		if next >= len(a) {
			index++
			next = 1
		}
		sh.set("OPTIND", strconv.Itoa(index))
		sh.optind, sh.optlast = next, index
		if has {
			sh.set("OPTARG", optarg)
		} else {
			_ = sh.unset("OPTARG")
		}
		if err := sh.assign(name, opt, false); err != nil {
			sh.complain("getopts", "%s", err)
			return 1
		}
		return 0
	}
	if i < 0 || c == ':' {
		if silent {
			return status("?", string(c), true)
		}
		if opterr {
			sh.stderr(sh.name + ": illegal option -- " + string(c) + "\n")
		}
		return status("?", "", false)
	}
	if i+1 >= len(trimmed) || trimmed[i+1] != ':' {
		return status(string(c), "", false)
	}
	if next < len(a) {
		optarg := a[next:]
		next = len(a)
		return status(string(c), optarg, true)
	}
	if index < len(params) {
		optarg := params[index]
		index++
		return status(string(c), optarg, true)
	}
	next = len(a)
	if silent {
		return status(":", string(c), true)
	}
	if opterr {
		sh.stderr(sh.name + ": option requires an argument -- " + string(c) + "\n")
	}
	return status("?", "", false)
}

func biUmask(sh *shell, args []string) int {
	symbolic, print := false, false
	args = args[1:]
	for len(args) > 0 && (args[0] == "-S" || args[0] == "-p") {
		symbolic, print = symbolic || args[0] == "-S", print || args[0] == "-p"
		args = args[1:]
	}
	show := func() string {
		if !symbolic {
			return fmt.Sprintf("%04o", sh.umask)
		}
		s := ""
		for i, who := range []string{"u=", ",g=", ",o="} {
			bits := ^sh.umask >> (6 - 3*i) & 7
			s += who
			for j, c := range "rwx" {
				if bits&(4>>j) != 0 {
					s += string(c)
				}
			}
		}
		return s
	}
	if len(args) == 0 {
		s := show()
		if print {
			s = "umask " + map[bool]string{true: "-S "}[symbolic] + s
		}
		return sh.stdout("umask", s+"\n")
	}
	n, err := strconv.ParseUint(args[0], 8, 32)
	switch {
	case err == nil && n <= 0o777:
		sh.umask = uint32(n)
	case args[0] != "" && args[0][0] >= '0' && args[0][0] <= '9':
		sh.complain("umask", "%s: octal number out of range", args[0])
		return 1
	default:
		mode, ok := program.Mode(args[0], 0o777&^sh.umask, 0, false)
		if !ok {
			sh.complain("umask", "`%s': invalid symbolic mode character", args[0][:1])
			return 1
		}
		sh.umask = 0o777 &^ mode
	}
	if symbolic {
		return sh.stdout("umask", show()+"\n")
	}
	return 0
}

func biUlimit(sh *shell, args []string) int {
	l := sh.w.account.Limits()
	type row struct {
		letter byte
		text   string
		val    string
	}
	rows := []row{{'c', "core file size              (blocks, -c) ", "0"}, {'f', "file size                   (blocks, -f) ", strconv.FormatInt(l.FileBytes/1024, 10)},
		{'n', "open files                          (-n) ", strconv.FormatInt(l.OpenFiles, 10)}, {'s', "stack size                  (kbytes, -s) ", "8192"},
		{'t', "cpu time                   (seconds, -t) ", strconv.Itoa(int(l.Time.Seconds()))}, {'u', "max user processes                  (-u) ", strconv.FormatInt(l.Depth, 10)},
		{'v', "virtual memory              (kbytes, -v) ", strconv.FormatInt(l.MemoryBytes/1024, 10)}}
	letter := byte('f')
	set := ""
	for _, a := range args[1:] {
		if len(a) < 2 || a[0] != '-' {
			set = a
			continue
		}
		for _, c := range []byte(a[1:]) {
			switch {
			case c == 'H' || c == 'S':
			case c == 'a' || slices.ContainsFunc(rows, func(r row) bool { return r.letter == c }):
				letter = c
			case strings.IndexByte("bdeiklmpqrxPRT", c) >= 0:
				letter = 0
			default:
				sh.complain("ulimit", "-%c: invalid option", c)
				sh.stderr("ulimit: usage: ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]\n")
				return 2
			}
		}
	}
	if set != "" { // the bounds of the execution hold: none is raised, and a lower one is no bound of ours
		n, err := strconv.ParseInt(set, 10, 64)
		i := slices.IndexFunc(rows, func(r row) bool { return r.letter == letter })
		if set != "unlimited" && set != "hard" && set != "soft" && err != nil {
			sh.complain("ulimit", "%s: invalid number", set)
			return 1
		}
		if most, e := int64(0), error(nil); i >= 0 && set != "hard" && set != "soft" {
			if most, e = strconv.ParseInt(rows[i].val, 10, 64); e == nil && (err != nil || n > most) {
				name := strings.TrimSpace(rows[i].text[:strings.IndexByte(rows[i].text, '(')])
				sh.complain("ulimit", "%s: cannot modify limit: Operation not permitted", name)
				return 1
			}
		}
		return 0
	}
	if letter == 0 {
		return sh.stdout("ulimit", "unlimited\n")
	}
	var b strings.Builder
	for _, r := range rows {
		if letter == 'a' {
			b.WriteString(r.text + r.val + "\n")
		} else if r.letter == letter {
			b.WriteString(r.val + "\n")
		}
	}
	return sh.stdout("ulimit", b.String())
}

func biCaller(sh *shell, args []string) int {
	n := 0
	if len(args) > 1 {
		n, _ = strconv.Atoi(args[1])
	}
	i := len(sh.frames) - 1 - n
	if i < 0 || i == 0 && sh.fromText {
		return 1
	}
	name, source := "main", sh.name
	if i > 0 {
		name, source = sh.frames[i-1].name, sh.frames[i-1].source
	}
	line := strconv.Itoa(sh.frames[i].line)
	if len(args) == 1 {
		return sh.stdout("caller", line+" "+source+"\n")
	}
	return sh.stdout("caller", line+" "+name+" "+source+"\n")
}

func biEnable(sh *shell, args []string) int {
	if len(args) == 1 {
		var b strings.Builder
		for _, n := range builtinNames() {
			b.WriteString("enable " + n + "\n")
		}
		return sh.stdout("enable", b.String())
	}
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			if a == "-n" {
				sh.unsupported("enable -n")
				return 1
			}
			continue
		}
		if sh.builtin(a) == nil {
			sh.complain("enable", "%s: not a shell builtin", a)
			return 1
		}
	}
	return 0
}

// biCompgen lists names that begin with a prefix.
func biCompgen(sh *shell, args []string) int {
	var names []string
	prefix := ""
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-b":
			names = append(names, builtinNames()...)
		case "-v":
			names = append(names, slices.Sorted(maps.Keys(sh.vars))...)
		case "-A":
			if i++; i < len(args) && args[i] == "function" {
				names = append(names, slices.Sorted(maps.Keys(sh.funcs))...)
			} else if i < len(args) && args[i] == "variable" {
				names = append(names, slices.Sorted(maps.Keys(sh.vars))...)
			}
		case "-a":
			names = append(names, slices.Sorted(maps.Keys(sh.aliases))...)
		case "-c":
			names = append(append(names, builtinNames()...), slices.Sorted(maps.Keys(sh.w.programs))...)
			names = append(names, slices.Sorted(maps.Keys(sh.funcs))...)
		case "-W":
			if i++; i < len(args) {
				names = append(names, strings.Fields(args[i])...)
			}
		case "-f", "-d":
			n := len(names)
			if i+1 < len(args) {
				prefix = args[i+1]
			}
			names = append(names, sh.glob(quotePattern(prefix)+"*")...)
			if args[i] == "-d" {
				names = slices.DeleteFunc(names, func(s string) bool {
					f, err := sh.w.fs.Lookup(sh.at(), s, true)
					return slices.Index(names, s) >= n && (err != nil || f.Kind() != vfs.Directory)
				})
			}
		case "--":
		default:
			prefix = args[i]
		}
	}
	var b strings.Builder
	status := 1
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			b.WriteString(n + "\n")
			status = 0
		}
	}
	if b.Len() > 0 {
		sh.stdout("compgen", b.String())
	}
	return status
}

// arguments runs bash with the arguments of its command line.
func (sh *shell) arguments(args []string) {
	sh.name = args[0]
	sh.line = 0
	command, stdin := false, false
	i := 1
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" || a == "-" {
			i++
			break
		}
		if strings.HasPrefix(a, "--") {
			switch a {
			case "--norc", "--noprofile", "--login", "--posix", "--noediting", "--verbose", "--restricted":
				continue
			case "--rcfile", "--init-file":
				i++
				continue
			case "--version":
				sh.stdout("", "GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\n")
				return
			case "--help":
				sh.stdout("", "Usage:\tbash [GNU long option] [option] ...\n\tbash [GNU long option] [option] script-file ...\n")
				return
			}
			sh.stderr(sh.name + ": " + a + ": invalid option\n")
			sh.status = 2
			return
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		for _, c := range []byte(a[1:]) {
			switch {
			case c == 'c':
				command = true
			case c == 's':
				stdin = true
			case c == 'l' || c == 'i' || c == 'r':
			case c == 'o' || c == 'O':
				if i++; i < len(args) {
					if c == 'o' && !sh.setOption(args[i], a[0] == '-') {
						sh.stderr(sh.name + ": line 0: " + sh.name + ": " + args[i] + ": invalid option name\n")
						sh.status = 2
						return
					}
					if c == 'O' {
						sh.shopts[args[i]] = a[0] == '-'
					}
				}
			case sh.setLetter(c, a[0] == '-'):
			default:
				sh.stderr(sh.name + ": " + a + ": invalid option\n")
				sh.status = 2
				return
			}
		}
	}
	rest := args[min(i, len(args)):]
	sh.line = 1
	switch {
	case command:
		if len(rest) == 0 {
			sh.stderr(sh.name + ": -c: option requires an argument\n")
			sh.status = 2
			return
		}
		sh.fromText = true
		if len(rest) > 1 {
			sh.name, sh.params = rest[1], rest[2:]
		}
		sh.script(rest[0], "")
	case stdin || len(rest) == 0:
		sh.params = rest
		sh.fromStdin()
	default:
		code, err := sh.readFile(rest[0])
		if err != nil {
			sh.stderr(sh.name + ": " + rest[0] + ": " + program.Message(err) + "\n")
			if sh.status = 126; errors.Is(err, vfs.ENOENT) {
				sh.status = 127
			}
			return
		}
		sh.name, sh.params = rest[0], rest[1:]
		sh.script(code, "")
	}
}

// fromStdin runs a script that the standard input is. A file is read only as far as the commands are run, since they may read it too.
func (sh *shell) fromStdin() {
	h := sh.fd(0)
	if h == nil {
		return
	}
	all, err := h.ReadAll()
	if err != nil {
		sh.w.stop(err)
		return
	}
	sh.w.account.Release(int64(len(all)))
	sh.script(string(all), "")
}
