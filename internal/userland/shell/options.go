package shell

import (
	"slices"
	"sort"
	"strings"
)

// The options of set -o.
const (
	optAllexport = iota
	optBraceexpand
	optEmacs
	optErrexit
	optErrtrace
	optFunctrace
	optHashall
	optHistexpand
	optHistory
	optIgnoreeof
	optInteractiveComments
	optKeyword
	optMonitor
	optNoclobber
	optNoexec
	optNoglob
	optNolog
	optNotify
	optNounset
	optOnecmd
	optPhysical
	optPipefail
	optPosix
	optPrivileged
	optVerbose
	optVi
	optXtrace
	optionCount
)

type option struct {
	name   string
	letter byte
}

// optionTable returns the options of set in the order of their constants, which is that of their names.
func optionTable() []option {
	return []option{{"allexport", 'a'}, {"braceexpand", 'B'}, {"emacs", 0}, {"errexit", 'e'}, {"errtrace", 'E'}, {"functrace", 'T'},
		{"hashall", 'h'}, {"histexpand", 'H'},
		{"history", 0}, {"ignoreeof", 0}, {"interactive-comments", 0}, {"keyword", 'k'}, {"monitor", 'm'}, {"noclobber", 'C'}, {"noexec", 'n'},
		{"noglob", 'f'}, {"nolog", 0},
		{"notify", 'b'}, {"nounset", 'u'}, {"onecmd", 't'}, {"physical", 'P'}, {"pipefail", 0}, {"posix", 0}, {"privileged", 'p'},
		{"verbose", 'v'}, {"vi", 0}, {"xtrace", 'x'}}
}

// optionLetters is $-.
func optionLetters(sh *shell) string {
	var b []byte
	for i, o := range optionTable() {
		if o.letter != 0 && sh.on[i] {
			b = append(b, o.letter)
		}
	}
	slices.SortFunc(b, func(x, y byte) int {
		order := "abefhkmnptuvxBCEHPT"
		return strings.IndexByte(order, x) - strings.IndexByte(order, y)
	})
	if sh.fromText {
		b = append(b, 'c')
	}
	return string(b)
}

// defaultShopts returns the options of shopt as a script finds them.
func defaultShopts() map[string]bool {
	names := shoptNames()
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = false
	}
	for _, n := range []string{"checkwinsize", "cmdhist", "complete_fullquote", "extquote", "force_fignore", "globasciiranges", "globskipdots",
		"hostcomplete",
		"interactive_comments", "patsub_replacement", "progcomp", "promptvars", "sourcepath"} {
		m[n] = true
	}
	return m
}

func shoptNames() []string {
	return []string{"autocd", "assoc_expand_once", "cdable_vars", "cdspell", "checkhash", "checkjobs", "checkwinsize", "cmdhist", "compat31",
		"compat32",
		"compat40", "compat41", "compat42", "compat43", "compat44", "complete_fullquote", "direxpand", "dirspell", "dotglob", "execfail",
		"expand_aliases", "extdebug",
		"extglob", "extquote", "failglob", "force_fignore", "globasciiranges", "globskipdots", "globstar", "gnu_errfmt", "histappend",
		"histreedit", "histverify",
		"hostcomplete", "huponexit", "inherit_errexit", "interactive_comments", "lastpipe", "lithist", "localvar_inherit", "localvar_unset",
		"login_shell", "mailwarn",
		"no_empty_cmd_completion", "nocaseglob", "nocasematch", "noexpand_translation", "nullglob", "patsub_replacement", "progcomp",
		"progcomp_alias", "promptvars",
		"restricted_shell", "shift_verbose", "sourcepath", "varredir_close", "xpg_echo"}
}

// setOption sets an option of set by its name.
func setOption(sh *shell, name string, on bool) bool {
	for i, o := range optionTable() {
		if o.name == name {
			sh.on[i] = on
			return true
		}
	}
	return false
}

// setLetter sets an option of set by its letter.
func setLetter(sh *shell, c byte, on bool) bool {
	for i, o := range optionTable() {
		if o.letter == c && c != 0 {
			sh.on[i] = on
			return true
		}
	}
	return false
}

const setUsage = "set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]\n"

// biSet is the builtin set.
func biSet(sh *shell, args []string) int {
	if len(args) == 1 {
		var b strings.Builder
		names := make([]string, 0, len(sh.vars))
		for n, v := range sh.vars {
			if v.set {
				names = append(names, n)
			}
		}
		sort.Strings(names)
		for _, n := range names {
			v := sh.vars[n]
			switch {
			case v.kind != scalar:
				b.WriteString(n + "=" + v.compound(false) + "\n")
			case hasControl(v.str):
				b.WriteString(n + "=" + quoteANSI(v.str) + "\n")
			case strings.ContainsAny(v.str, " \t'\"\\|&;()<>!{}*[]?^$`#~"):
				b.WriteString(n + "=" + quoteSingle(v.str) + "\n")
			default:
				b.WriteString(n + "=" + v.str + "\n")
			}
		}
		return sh.stdout("set", b.String())
	}
	rest, params, ok := setOptions(sh, "set", args[1:])
	if !ok {
		return 2
	}
	if params {
		sh.params, sh.setParams = slices.Clone(rest), true
	}
	return 0
}

// setOptions reads options as set has them; it returns what follows and whether that are parameters.
func setOptions(sh *shell, name string, args []string) (rest []string, params, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return args[i+1:], true, true
		case a == "-":
			sh.on[optXtrace], sh.on[optVerbose] = false, false
			return args[i+1:], i+1 < len(args), true
		case a == "+":
			return args[i+1:], i+1 < len(args), true
		case len(a) > 1 && (a[0] == '-' || a[0] == '+'):
			for _, c := range []byte(a[1:]) {
				if c == 'o' {
					if i+1 >= len(args) {
						printOptions(sh, a[0] == '+')
						continue
					}
					i++
					if !setOption(sh, args[i], a[0] == '-') {
						sh.complain(name, "%s: invalid option name", args[i])
						return nil, false, false
					}
					continue
				}
				if !setLetter(sh, c, a[0] == '-') {
					sh.complain(name, "%c%c: invalid option", a[0], c)
					if name == "set" {
						sh.stderr(setUsage)
					}
					return nil, false, false
				}
			}
		default:
			return args[i:], true, true
		}
	}
	return nil, false, true
}

func printOptions(sh *shell, commands bool) {
	var b strings.Builder
	for i, o := range optionTable() {
		state := "off"
		if sh.on[i] {
			state = "on"
		}
		if commands {
			sign := "+"
			if sh.on[i] {
				sign = "-"
			}
			b.WriteString("set " + sign + "o " + o.name + "\n")
			continue
		}
		b.WriteString(pad(o.name, 15) + "\t" + state + "\n")
	}
	sh.stdout("set", b.String())
}

func pad(s string, n int) string {
	if len(s) < n {
		return s + strings.Repeat(" ", n-len(s))
	}
	return s
}

// biShopt is the builtin shopt.
func biShopt(sh *shell, args []string) int {
	set, unset, quiet, print, options := false, false, false, false, false
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		for _, c := range []byte(args[i][1:]) {
			switch c {
			case 's':
				set = true
			case 'u':
				unset = true
			case 'q':
				quiet = true
			case 'p':
				print = true
			case 'o':
				options = true
			default:
				sh.complain("shopt", "-%c: invalid option", c)
				sh.stderr("shopt: usage: shopt [-pqsu] [-o] [optname ...]\n")
				return 2
			}
		}
	}
	names := args[i:]
	status := 0
	state := func(n string) (bool, bool) {
		if options {
			for i, o := range optionTable() {
				if o.name == n {
					return sh.on[i], true
				}
			}
			return false, false
		}
		on, ok := sh.shopts[n]
		return on, ok
	}
	if len(names) == 0 {
		all := shoptNames()
		if options {
			all = nil
			for _, o := range optionTable() {
				all = append(all, o.name)
			}
		}
		for _, n := range all {
			if on, _ := state(n); (!set || on) && (!unset || !on) {
				names = append(names, n)
			}
		}
		set, unset = false, false
		if quiet {
			return 0
		}
	}
	var b strings.Builder
	for _, n := range names {
		on, ok := state(n)
		if !ok {
			kind := "shell option name"
			if options {
				kind = "option name"
			}
			sh.complain("shopt", "%s: invalid %s", n, kind)
			status = 1
			continue
		}
		switch {
		case set || unset:
			if options {
				setOption(sh, n, set)
			} else {
				sh.shopts[n] = set
				if n == "expand_aliases" {
					sh.aliasState++
				}
			}
			continue
		case !on && len(args[i:]) > 0:
			status = 1
		}
		switch {
		case quiet:
		case print && options:
			b.WriteString("set " + map[bool]string{true: "-o ", false: "+o "}[on] + n + "\n")
		case print:
			b.WriteString("shopt " + map[bool]string{true: "-s ", false: "-u "}[on] + n + "\n")
		default:
			b.WriteString(pad(n, 15) + "\t" + map[bool]string{true: "on", false: "off"}[on] + "\n")
		}
	}
	if b.Len() > 0 {
		sh.stdout("shopt", b.String())
	}
	return status
}
