package shell

import (
	"errors"
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

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

// readArguments runs bash with the arguments of its command line.
func readArguments(sh *shell, args []string) {
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
					if c == 'o' && !setOption(sh, args[i], a[0] == '-') {
						sh.stderr(sh.name + ": line 0: " + sh.name + ": " + args[i] + ": invalid option name\n")
						sh.status = 2
						return
					}
					if c == 'O' {
						sh.shopts[args[i]] = a[0] == '-'
					}
				}
			case setLetter(sh, c, a[0] == '-'):
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
		runScript(sh, rest[0], "")
	case stdin || len(rest) == 0:
		sh.params = rest
		fromStdin(sh)
	default:
		code, err := readFile(sh, rest[0])
		if err != nil {
			sh.stderr(sh.name + ": " + rest[0] + ": " + program.Message(err) + "\n")
			if sh.status = 126; errors.Is(err, vfs.ENOENT) {
				sh.status = 127
			}
			return
		}
		sh.name, sh.params = rest[0], rest[1:]
		runScript(sh, code, "")
	}
}

// fromStdin runs a script that the standard input is. A file is read only as far as the commands are run, since they may read it too.
func fromStdin(sh *shell) {
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
	runScript(sh, string(all), "")
}
