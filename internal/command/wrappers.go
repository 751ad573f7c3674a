package command

import (
	"slices"
	"strings"
)

// Both readers of a command line use this file: the gate, which wants to know what would run, and tiering, which
// wants to know what that needs.

// Builtins returns the commands of a shell that change nothing but the shell itself, and print. Policies that permit any command at all
// permit them too, for no script does without.
func Builtins() []string {
	var list []string
	for name := range builtins {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

var builtins = names(`: true false cd pushd popd dirs pwd export declare local readonly typeset nameref set shift return exit break continue
	wait read mapfile readarray test [ [[ let unset getopts umask ulimit jobs times echo printf type trap shopt command builtin exec eval
	source . alias unalias enable hash`)

// builtinsBeside are the other commands that a shell has itself. A policy permits them by their names alone.
var builtinsBeside = names(": bg bind caller compgen complete compopt disown fc fg help history kill logout suspend")

// Builtin reports whether a shell has a command of the name itself.
func Builtin(name string) bool { return builtins[name] || builtinsBeside[name] }

// wrap says how to find the command within the arguments of one that runs another.
type wrap struct {
	Options
	known    bool
	opaque   bool     // its grammar is not read: it always asks
	holds    bool     // the command is its own, and its first argument
	refuse   []string // options behind which nothing is known
	assigns  bool     // NAME=value may stand before the command
	operands int      // operands of its own before the command
}

// wrappers are the commands that run another.
var wrappers = map[string]wrap{
	"env": {known: true, Options: Options{"uCSa", []string{"--unset", "--chdir", "--split-string", "--argv0"}}, refuse: []string{"-S",
		"--split-string"}, assigns: true},
	"xargs": {known: true, Options: Options{"adEILnPs", []string{"--arg-file", "--delimiter", "--max-lines", "--max-args", "--max-procs",
		"--max-chars", "--process-slot-var", "--replace"}}, refuse: []string{"-i", "-e", "-l"}},
	"timeout": {known: true, Options: Options{"ks", []string{"--kill-after", "--signal"}}, operands: 1},
	"nice":    {known: true, Options: Options{"n", []string{"--adjustment"}}},
	"ionice":  {known: true, Options: Options{"cnpPu", []string{"--class", "--classdata"}}},
	"nohup":   {known: true},
	"setsid":  {known: true},
	"stdbuf":  {known: true, Options: Options{"ioe", []string{"--input", "--output", "--error"}}},
	"time":    {known: true, Options: Options{"fo", []string{"--format", "--output"}}},
	"command": {known: true},
	"builtin": {known: true},
	"exec":    {known: true, Options: Options{Letters: "a"}},
	"busybox": {known: true, holds: true},
	"toybox":  {known: true, holds: true},
	"flock":   {known: true, Options: Options{"wE", []string{"--timeout", "--conflict-exit-code"}}, operands: 1},
	"taskset": {known: true, Options: Options{Letters: "p"}, operands: 1},
	"chrt":    {known: true, Options: Options{Letters: "TPDp"}, operands: 1},
	"prlimit": {known: true, Options: Options{Letters: "p"}},
	"sudo": {known: true, Options: Options{"ugpCrtTDRUh", []string{"--user", "--group", "--prompt", "--chdir", "--host", "--role", "--type"}},
		assigns: true},
	"doas":     {known: true, Options: Options{Letters: "uC"}},
	"coproc":   {known: true, opaque: true},
	"parallel": {known: true, opaque: true}, "watch": {known: true, opaque: true}, "script": {known: true, opaque: true},
	"expect": {known: true, opaque: true}, "strace": {known: true, opaque: true}, "ltrace": {known: true, opaque: true},
	"gdb": {known: true, opaque: true}, "unshare": {known: true, opaque: true}, "nsenter": {known: true, opaque: true},
	"chroot": {known: true, opaque: true}, "setpriv": {known: true, opaque: true}, "runuser": {known: true, opaque: true},
	"su": {known: true, opaque: true}, "pkexec": {known: true, opaque: true}, "systemd-run": {known: true, opaque: true},
	"at": {known: true, opaque: true}, "batch": {known: true, opaque: true}, "crontab": {known: true, opaque: true},
	"run-parts": {known: true, opaque: true}, "start-stop-daemon": {known: true, opaque: true}, "ssh": {known: true, opaque: true},
	"entr": {known: true, opaque: true}, "unbuffer": {known: true, opaque: true}, "rlwrap": {known: true, opaque: true},
	"vi": {known: true, opaque: true}, "vim": {known: true, opaque: true}, "nvim": {known: true, opaque: true}, "ex": {known: true,
		opaque: true},
	"ed": {known: true, opaque: true}, "emacs": {known: true, opaque: true}, "make": {known: true, opaque: true}, "gmake": {known: true,
		opaque: true},
	"fc": {known: true, opaque: true}, "history": {known: true, opaque: true}, "dpkg": {known: true, opaque: true},
}

// place returns how many of the arguments are options, where the command begins that is run, and the variables that are set for it. Not
// ok is where that cannot be told.
func (w wrap) place(rest []arg) (options, at int, assigned []string, ok bool) {
	if !w.holds {
		if options, ok = w.skip(rest); !ok {
			return 0, 0, nil, false
		}
	}
	at = options
	for w.assigns && at < len(rest) {
		name, _, is := strings.Cut(rest[at].text, "=")
		if !is && !rest[at].known {
			return options, at, assigned, false
		}
		if !is {
			break
		}
		assigned = append(assigned, name)
		at++
	}
	return options, min(at+w.operands, len(rest)), assigned, true
}

// looksUp reports whether the options of the builtin command make it say what a name stands for, instead of running it.
func looksUp(name string, options []arg) bool {
	return name == "command" && slices.ContainsFunc(options, func(a arg) bool {
		return strings.HasPrefix(a.text, "-v") || strings.HasPrefix(a.text, "-V")
	})
}

// takesLine reports whether what a wrapper runs is not a command but a command line behind an option: flock FILE -c LINE.
func takesLine(name string, run []arg) bool {
	return name == "flock" && len(run) > 1 && (run[0].text == "-c" || run[0].text == "--command")
}

// Inner returns the command within the arguments of one that runs another; a command line where it runs that. Both are empty where
// there is none, or where it is not known.
func Inner(name string, rest []Word) (words []Word, line string) {
	w, args := wrappers[name], argsOf(rest)
	if !w.known || w.opaque {
		return nil, ""
	}
	options, at, _, ok := w.place(args)
	if !ok || looksUp(name, args[:options]) {
		return nil, ""
	}
	if takesLine(name, args[at:]) {
		line, _ = joinedText(args[at+1:])
		return nil, line
	}
	return rest[at:], ""
}

// Holds reports whether the commands that a program runs are its own: those of busybox need no program of their names.
func Holds(name string) bool { return wrappers[name].holds }
