package shell

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

type builtin func(sh *shell, args []string) int

// builtinNamed returns a command of the shell itself, or nil. It is a switch over the names and no map, because builtins call it: a map of
// them would refer to itself.
//
//nolint:cyclop // one case for each builtin
func builtinNamed(sh *shell, name string) builtin {
	if sh.disabled[name] {
		return nil
	}
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
	case "help":
		return biHelp
	case "history":
		return biHistory
	case "complete", "compopt", "bind", "fc", "suspend":
		return func(sh *shell, args []string) int { unsupported(sh, args[0]); return 1 }
	}
	return nil
}

// builtinNames returns the names of what builtin knows.
func builtinNames() []string {
	return []string{".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt",
		"continue", "declare", "dirs",
		"disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill",
		"let", "local", "logout",
		"mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend",
		"test", "times", "trap", "true",
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
	if sh.inTrap[trapExit] {
		code = sh.leaving
	}
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
			if !unsetElement(sh, base, sub) {
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
				unsetElement(sh, base, sub)
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

func unsetElement(sh *shell, name, sub string) bool {
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
		key := subscriptKey(sh, sub)
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
		if n := sh.arith(arithText(sh, sub)); n != 0 {
			sh.complain("unset", "%s: not an array variable", name)
			return false
		}
		_ = sh.unset(name)
		return true
	}
	i, ok := subscriptIndex(sh, v, sub)
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
	if !enterLevel(sh) {
		panic(discard{1})
	}
	defer sh.w.account.Leave()
	sh.evals++
	defer func() { sh.evals-- }()
	runText(sh, code, "eval")
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
	code, err := readFile(sh, path)
	if err != nil {
		if errors.Is(err, vfs.EISDIR) {
			sh.complain(args[0], "%s: is a directory", name)
		} else {
			sh.complain("", "%s: %s", name, program.Message(err))
		}
		return 1
	}
	if !enterLevel(sh) {
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
	stmts, code, err := parseSource(sh, code)
	sh.source.code = code
	if err == nil {
		sh.stmts(stmts)
	} else {
		runScript(sh, code, name)
	}
	if sh.flow == flowReturn {
		sh.flow = flowNone
	}
	if len(sh.frames) == 0 || sh.on[optFunctrace] {
		returnTrap(sh)
	}
	return sh.status
}

// readFile reads a script.
func readFile(sh *shell, path string) (string, error) {
	h, err := openFile(sh, path, vfs.Read)
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

func biLet(sh *shell, args []string) int {
	if len(args) < 2 {
		sh.complain("let", "expression expected")
		return 1
	}
	status := 0
	for _, a := range args[1:] {
		status = arithmCommand(sh, "let", a)
	}
	return status
}
