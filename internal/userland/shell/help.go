package shell

import (
	"strings"
)

// synopses returns how the builtins are called, in the order of their names.
func synopses() []string {
	return []string{". filename [arguments]", ": ", "[ arg... ]", "alias [-p] [name[=value] ... ]", "bg [job_spec ...]", "break [n]",
		"builtin [shell-builtin [arg ...]]",
		"caller [expr]", "cd [-L|[-P [-e]] [-@]] [dir]", "command [-pVv] command [arg ...]",
		"compgen [-abcdefgjksuv] [-A action] [-W wordlist] [word]", "continue [n]",
		"declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]", "dirs [-clpv] [+N] [-N]",
		"disown [-h] [-ar] [jobspec ... | pid ...]",
		"echo [-neE] [arg ...]", "enable [-a] [-dnps] [-f filename] [name ...]", "eval [arg ...]",
		"exec [-cl] [-a name] [command [argument ...]] [redirection ...]", "exit [n]",
		"export [-fn] [name[=value] ...] or export -p", "false", "fg [job_spec]", "getopts optstring name [arg ...]",
		"hash [-lr] [-p pathname] [-dt] [name ...]",
		"help [-dms] [pattern ...]", "history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]",
		"jobs [-lnprs] [jobspec ...] or jobs -x command [args]",
		"kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]", "let arg [arg ...]", "local [option] name[=value] ...",
		"logout [n]",
		"mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]", "popd [-n] [+N | -N]",
		"printf [-v var] format [arguments]",
		"pushd [-n] [+N | -N | dir]", "pwd [-LP]",
		"read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]",
		"readarray [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]",
		"readonly [-aAf] [name[=value] ...] or readonly -p", "return [n]",
		"set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]", "shift [n]", "shopt [-pqsu] [-o] [optname ...]",
		"source filename [arguments]", "test [expr]", "times",
		"trap [-lp] [[arg] signal_spec ...]", "true", "type [-afptP] name [name ...]",
		"typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]",
		"ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]", "umask [-p] [-S] [mode]", "unalias [-a] name [name ...]", "unset [-f] [-v] [-n] [name ...]",
		"wait [-fn] [-p var] [id ...]"}
}

// biHelp is the builtin help: it prints how builtins are called.
func biHelp(sh *shell, args []string) int {
	patterns := args[1:]
	for len(patterns) > 0 && len(patterns[0]) > 1 && patterns[0][0] == '-' {
		for _, c := range []byte(patterns[0][1:]) {
			if strings.IndexByte("dms-", c) < 0 {
				sh.complain("help", "-%c: invalid option", c)
				sh.stderr("help: usage: help [-dms] [pattern ...]\n")
				return 2
			}
		}
		patterns = patterns[1:]
	}
	if len(patterns) == 0 {
		return sh.stdout("help", "These shell commands are defined internally. Type `help name' to see how `name' is called.\n\n "+
			strings.Join(synopses(), "\n ")+"\n")
	}
	var b strings.Builder
	for _, p := range patterns {
		for _, s := range synopses() {
			if name, _, _ := strings.Cut(s, " "); strings.HasPrefix(name, p) && (name == p || builtinNamed(sh, p) == nil) || hasGlob(sh, p) &&
				sh.match(p, name, false) {
				b.WriteString(name + ": " + s + "\n")
			}
		}
	}
	if b.Len() == 0 {
		sh.complain("help", "no help topics match `%s'.  Try `help help' or `man -k %s' or `info %s'.", patterns[len(patterns)-1],
			patterns[len(patterns)-1], patterns[len(patterns)-1])
		return 1
	}
	return sh.stdout("help", b.String())
}

// biHistory is the builtin history. A shell that is not interactive keeps no history: the list is empty, and may be cleared.
func biHistory(sh *shell, args []string) int {
	for i, a := range args[1:] {
		if len(a) < 2 || a[0] != '-' {
			if i == 0 && strings.Trim(a, "0123456789") != "" {
				sh.complain("history", "%s: numeric argument required", a)
				return 1
			}
			return 0
		}
		switch a[1] {
		case 'd':
			sh.complain("history", "%s: history position out of range", strings.Join(args[i+2:], ""))
			return 1
		case 'p':
			return sh.stdout("history", strings.Join(append(args[i+2:], ""), "\n"))
		case 'c', 'a', 'n', 'r', 'w', 's':
		default:
			sh.complain("history", "%s: invalid option", a[:2])
			sh.stderr("history: usage: history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]\n")
			return 2
		}
	}
	return 0
}
