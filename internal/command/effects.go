package command

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/policy"
)

// add adds a trait and keeps the order.
func add(traits []string, trait string) []string {
	traits = append(slices.Clone(traits), trait)
	slices.Sort(traits)
	return slices.Compact(traits)
}

// variables reads the builtins that set variables whose names are arguments, or that are given code to run later.
func (r *reader) variables(c *Command, rest []arg) {
	if c.Name == "printf" && (len(rest) == 0 || rest[0].known && !strings.HasPrefix(rest[0].text, "-v")) {
		return
	}
	if c.Name == "read" || c.Name == "mapfile" || c.Name == "readarray" || c.Name == "getopts" {
		for _, name := range []string{"REPLY", "MAPFILE", "OPTARG"} {
			r.math.receive(name)
		}
	}
	if c.Name == "compgen" || c.Name == "complete" || c.Name == "bind" {
		if len(rest) > 0 {
			r.unknown(c)
		}
		return
	}
	for _, a := range rest {
		name, _, has := strings.Cut(a.text, "=")
		if c.Name == "printf" || c.Name != "unset" && c.Name != "wait" && !has && !strings.HasPrefix(name, "-") {
			r.math.receive(strings.TrimPrefix(name, "-v"))
		}
		if len(name) > 2 && name[0] == '-' {
			name = name[2:] // the value of an option may stand right behind its letter
		}
		switch {
		case !a.known && name == a.text:
			c.Traits = append(c.Traits, policy.TraitUnknownOptions)
			r.doubt(policy.TraitUnresolved, c.Name+" of a variable that is only known when it runs")
		case poisonous(name):
			r.assigned(name)
			c.Traits = append(c.Traits, policy.TraitPoisons)
		case strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "C") && (c.Name == "mapfile" || c.Name == "readarray"):
			r.unknown(c)
		case c.Name == "unset" && strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "f"):
			r.doubt(policy.TraitPoisons, "unset -f")
		}
		if c.Name == "unset" {
			r.late.loosens(a.text)
		}
		if strings.Contains(name, "[") {
			r.arith = true
			r.text(name)
		}
	}
}

// declare reads a builtin that declares variables.
func (r *reader) declare(d *syntax.DeclClause, depth int) error {
	var args []arg
	for _, a := range d.Args {
		if a.Naked && a.Name == nil && a.Value != nil {
			more, err := r.words([]*syntax.Word{a.Value})
			if err != nil {
				return err
			}
			args = append(args, more...)
		} else if a.Name != nil {
			args = append(args, arg{text: a.Name.Value, known: true})
		}
	}
	for _, a := range args {
		name, _, _ := strings.Cut(a.text, "=")
		switch {
		case !a.known:
			r.doubt(policy.TraitUnresolved, d.Variant.Value+" of a name that is not known")
		case poisonous(name):
			r.assigned(name)
		}
		if strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "i") {
			r.arith, r.math.integer = true, true
		}
		if d.Variant.Value != "export" && d.Variant.Value != "readonly" {
			r.late.loosens(name) // it may be empty again, or change what it is given
		}
		if strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "n") || d.Variant.Value == "nameref" {
			r.doubt(policy.TraitPoisons, "a name that stands for another")
		}
	}
	return r.emit(Command{Name: d.Variant.Value, Args: known(args)})
}

// removes reads what rm and similar commands would remove.
func (pr *programs) removes(c *Command, rest []arg) {
	options := true
	for _, a := range rest {
		switch {
		case !a.known || a.glob:
			c.Traits = append(c.Traits, policy.TraitDeletesTree)
		case options && a.text == "--":
			options = false
		case options && strings.HasPrefix(a.text, "--"):
			if strings.HasPrefix("--recursive", a.text) || strings.HasPrefix("--dir", a.text) {
				c.Traits = append(c.Traits, policy.TraitDeletesTree, policy.TraitRecursive)
			}
		case options && len(a.text) > 1 && a.text[0] == '-':
			if strings.ContainsAny(a.text, "rRd") {
				c.Traits = append(c.Traits, policy.TraitDeletesTree, policy.TraitRecursive)
			}
		default:
			pr.line.deletes++
		}
	}
}

// findTakes are the tests of find that take an argument, so that a quoted unknown behind them is harmless.
var findTakes = names(`-name -iname -path -ipath -wholename -regex -iregex -type -xtype -newer -anewer -cnewer -size -mtime -mmin -atime
	-amin -ctime -cmin -user -group -perm -maxdepth -mindepth -printf -samefile -lname -ilname -fstype -inum -links -uid -gid -newermt`)

// find reads find's expression: it deletes, it writes files and it runs commands.
func (pr *programs) find(c *Command, rest []arg) ([][]arg, error) {
	pr.line.mentions.search(rest)
	var inner [][]arg
	expression := false
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		if !a.known {
			if !a.one || i == 0 || !findTakes[rest[i-1].text] {
				pr.line.unknown(c)
			}
			continue
		}
		switch a.text {
		case "-delete":
			c.Traits = append(c.Traits, policy.TraitDeletesTree)
		case "-exec", "-execdir", "-ok", "-okdir":
			var run []arg
			end := foundEnd(rest, i+1)
			for i++; i < end; i++ {
				if strings.Contains(rest[i].text, "{}") {
					run = append(run, arg{text: rest[i].text, one: true, shape: starred(rest[i].text, "{}")})
				} else {
					run = append(run, rest[i])
				}
			}
			inner = append(inner, run)
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i++; i < len(rest) {
				if err := pr.line.open(rest[i], true, false); err != nil {
					return nil, err
				}
			}
		case "-files0-from":
			pr.line.unknown(c)
		default:
			if strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" {
				expression = true
			} else if !expression {
				if err := pr.line.open(a, false, true); err != nil {
					return nil, err
				}
			}
		}
	}
	return inner, nil
}

// foundEnd returns where the command ends that find runs and that begins at a place: at a semicolon, or at a plus behind what was found.
func foundEnd(rest []arg, at int) int {
	for i := at; i < len(rest); i++ {
		if rest[i].text == ";" || rest[i].text == "+" && i > at && (!rest[i-1].known || strings.Contains(rest[i-1].text, "{}")) {
			return i
		}
	}
	return len(rest)
}

// Found returns the commands that find runs with what it finds.
func Found(rest []Word) (commands [][]Word) {
	args := argsOf(rest)
	for i := 0; i < len(rest); i++ {
		switch rest[i].Text {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := foundEnd(args, i+1)
			commands = append(commands, rest[min(i+1, end):end])
			i = end
		}
	}
	return commands
}

// InputOf precedes the name of an interpreter that reads its code from its standard input, in Reading.Unsealed.
const InputOf = "the standard input of "

// Interactive reports whether an option asks an interpreter to take code from its input, beside what it is given. It knows the option, and
// not its place: an argument of a script that looks like it counts too.
func Interactive(c Command) bool {
	return slices.ContainsFunc(c.Args, func(word string) bool {
		return word == "--interactive" || word == "--repl" || len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(word, "i")
	})
}

// interpreter reads what an interpreter of another language would run.
//
//nolint:cyclop // one case for each interpreter
func (pr *programs) interpreter(c *Command, rest []arg, in *stdin) {
	if c.Name == "bun" && pr.bun(c, rest) {
		return
	}
	takes := takes[c.Name].Letters
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		switch {
		case !a.known && !a.one, !a.known && i == 0 && strings.HasPrefix(c.Name, "python"):
			pr.line.unknown(c)
			return
		case !a.known:
			c.Traits = append(c.Traits, policy.TraitRunsFile)
			pr.line.unseal(a)
			return
		case a.text == "-" || a.text == "--":
			continue
		case strings.HasPrefix(c.Name, "python") && strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text,
			"m"):
			pr.module(c, a.text, rest[i+1:])
			return
		case inline(c.Name, a.text):
			c.Traits = append(c.Traits, policy.TraitInlineCode)
			return
		case a.text == "--check-hash-based-pycs":
			i++
		case a.text == "--context" && takes != "" && takes != "IlM":
			if i++; i < len(rest) {
				pr.context(rest[i])
			}
		case strings.HasPrefix(a.text, "--context=") && takes != "" && takes != "IlM":
			pr.context(arg{text: strings.TrimPrefix(a.text, "--context="), known: a.known})
		case slices.Contains(fileOptions, a.text) || a.text == "-r" && takes == "rC":
			i++
			if i < len(rest) {
				pr.line.unseal(rest[i])
			}
		case slices.ContainsFunc(fileOptions, func(o string) bool { return strings.HasPrefix(a.text, o+"=") }):
			_, name, _ := strings.Cut(a.text, "=")
			pr.line.unseal(arg{text: name, known: true})
		case strings.HasPrefix(a.text, "-"):
			if len(a.text) == 2 && strings.Contains(takes, a.text[1:]) {
				i++
			}
		default:
			c.Traits = append(c.Traits, policy.TraitRunsFile)
			pr.line.unseal(a)
			if installer(resolve(pr.line.cwd, a.text)) {
				c.Traits = append(c.Traits, policy.TraitInstalls)
			}
			return
		}
	}
	switch {
	case in.set && in.file.known && in.file.text != "":
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		pr.line.unseal(in.file)
	case in.set && in.script.known:
		c.Traits = append(c.Traits, policy.TraitInlineCode)
	case len(rest) == 0 || rest[len(rest)-1].text == "-":
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		pr.line.out.Unsealed = append(pr.line.out.Unsealed, InputOf+c.Name)
	}
}

// bun reads a verb of bun, such as install. It reports whether there is one, which is all that the command does.
func (pr *programs) bun(c *Command, rest []arg) bool {
	if bunInstalls(rest) {
		c.Traits = append(c.Traits, policy.TraitInstalls)
	}
	if len(rest) > 0 && rest[0].known && bunVerbs[rest[0].text] != "" {
		switch bunVerbs[rest[0].text] {
		case "install":
			c.Traits = append(c.Traits, policy.TraitInstalls)
			if fetches("bun", rest[0].text, rest) {
				c.Traits = append(c.Traits, policy.TraitNetwork)
			}
		case "script":
			c.Traits = append(c.Traits, policy.TraitRunsFile)
			if len(rest) > 1 && rest[1].known && strings.ContainsAny(rest[1].text, "./") {
				pr.line.unseal(rest[1])
			} else {
				pr.line.out.Unsealed = append(pr.line.out.Unsealed, resolve(pr.line.cwd, "package.json"))
			}
		}
		return true
	}
	return false
}

// wasm reads which WebAssembly module is run; all that follows is the module's.
func (pr *programs) wasm(c *Command, rest []arg) {
	if len(rest) > 0 && rest[0].known && rest[0].text == "--" {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return
	}
	c.Traits = append(c.Traits, policy.TraitRunsFile)
	pr.line.unseal(rest[0])
}

// context reads the name of an interpreter context: what earlier cells have left there decides what the code does.
func (pr *programs) context(name arg) {
	what := "an interpreter context that is only known when it runs"
	if name.known {
		what = "the interpreter context " + name.text
	}
	pr.line.out.Unsealed = append(pr.line.out.Unsealed, what)
}

// fileOptions are the options of interpreters that name a file which decides what runs.
var fileOptions = []string{"--require", "--import", "--loader", "--env-file", "--env-file-if-exists", "--preload", "--config"}

// inline reports whether an option is followed by code.
func inline(name, option string) bool {
	switch name {
	case "python", "python2", "python3":
		return strings.HasPrefix(option, "-") && !strings.HasPrefix(option, "--") && strings.Contains(option, "c")
	case "node", "nodejs", "bun", "tsx", "ts-node", "deno":
		return option == "-e" || option == "-p" || option == "-pe" || strings.HasPrefix(option, "--eval") || strings.HasPrefix(option, "--print")
	case "php":
		return option == "-r"
	}
	return strings.HasPrefix(option, "-") && !strings.HasPrefix(option, "--") && strings.ContainsAny(option, "eE")
}

// module reads python -m.
func (pr *programs) module(c *Command, option string, rest []arg) {
	_, name, _ := strings.Cut(option, "m")
	if name == "" {
		if len(rest) == 0 {
			return
		}
		if !rest[0].known {
			pr.line.unknown(c)
			return
		}
		name, rest = rest[0].text, rest[1:]
	}
	top, _, _ := strings.Cut(name, ".")
	switch top {
	case "runpy", "cProfile", "profile", "pdb", "trace", "timeit": // they run another module
		if slices.ContainsFunc(rest, func(a arg) bool { return !a.known || installers[strings.TrimPrefix(a.text, "-m")] }) {
			c.Traits = append(c.Traits, policy.TraitInstalls)
		}
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		pr.line.out.Unsealed = append(pr.line.out.Unsealed, "the Python module "+name)
	case "pip", "ensurepip", "easy_install", "pipx", "uv", "conda":
		pr.packages(&Command{Name: "pip"}, rest)
		if v := verb("pip", rest); v == "" || !harmless["pip"][v] {
			c.Traits = append(c.Traits, policy.TraitInstalls)
			if fetches("pip", v, rest) {
				c.Traits = append(c.Traits, policy.TraitNetwork)
			}
		}
	default:
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		pr.line.out.Unsealed = append(pr.line.out.Unsealed, "the Python module "+name)
	}
}

// packages reads the verbs of package tools: few are harmless, some run a script of the space, the rest fetch code of others.
func (pr *programs) packages(c *Command, rest []arg) {
	for _, a := range rest {
		if !a.known && !a.one {
			pr.line.unknown(c)
			return
		}
	}
	v := verb(c.Name, rest)
	switch {
	case v == "" && !slices.ContainsFunc(rest, func(a arg) bool { return !a.known }) && c.Name != "yarn":
		return // prints its help or version
	case harmless[c.Name][v]:
		return
	case scripts[c.Name][v]:
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		pr.line.out.Unsealed = append(pr.line.out.Unsealed, resolve(pr.line.cwd, manifests[c.Name]))
		return
	}
	c.Traits = append(c.Traits, policy.TraitInstalls)
	if fetches(c.Name, v, rest) {
		c.Traits = append(c.Traits, policy.TraitNetwork)
	}
}

// options marks programs that are harmless, except for an option that runs a command.
func (pr *programs) options(c *Command, rest []arg) {
	if c.Name == "chmod" || c.Name == "chown" || c.Name == "chgrp" || c.Name == "cp" {
		for _, a := range rest {
			if a.known && strings.HasPrefix(a.text, "-") && (strings.Contains(a.text, "R") || strings.HasPrefix(a.text, "--r")) {
				c.Traits = append(c.Traits, policy.TraitRecursive)
			}
		}
	}
	pr.deletesByOption(c, rest)
	running := runsByOption[c.Name]
	if len(running) == 0 {
		return
	}
	var later []arg
	flags, values := true, 0 // values are the words that follow as values of options: these are never options
	for i, a := range rest {
		if values > 0 && (a.known || a.one) {
			values--
			continue
		}
		if !a.known {
			if !a.one {
				pr.line.unknown(c)
				return
			}
			if flags {
				later = append(later, a)
			}
			continue
		}
		if a.text == "--" {
			flags = false
		}
		text := a.text
		if i == 0 && c.Name == "tar" && !strings.HasPrefix(text, "-") {
			text = "-" + text // tar takes its first letters without a dash
			values = oldValues(text)
		} else if flags {
			values = valuesBehind(c.Name, text)
		}
		if runsBy(c.Name, text) {
			pr.line.unknown(c)
			return
		}
	}
	if len(later) > 0 && !strings.HasSuffix(c.Name, "awk") { // awk takes no options behind its program, which is read elsewhere
		pr.line.late.postpone(late{operands: later})
	}
}

// runsBy reports whether a text is an option by which a program runs another one.
func runsBy(name, text string) bool {
	option, _, _ := strings.Cut(text, "=")
	return slices.ContainsFunc(runsByOption[name], func(o string) bool {
		short := len(o) == 2 && strings.HasPrefix(option, "-") && !strings.HasPrefix(option, "--") && strings.Contains(option, o[1:])
		long := len(option) > 3 && strings.HasPrefix(option, "--") && strings.HasPrefix(o, option)
		return short || long || option == o
	})
}

// oldValues returns how many words behind the first letters of tar are values of these letters.
func oldValues(letters string) (n int) {
	for _, l := range letters[1:] {
		if takes := optionTable["tar"][string(l)]; takes != nothing && takes != attached {
			n++
		}
	}
	return n
}

// valuesBehind returns how many words behind an option are its values. An option that is not listed has none.
func valuesBehind(name, option string) int {
	table := optionTable[name]
	var takes taking
	has := false
	switch {
	case len(option) < 2 || option[0] != '-':
		return 0
	case strings.HasPrefix(option, "--"):
		if takes = table[option]; takes == without {
			return 0
		}
	default:
		takes, _, has = shortTaking(table, option[1:])
	}
	switch {
	case takes == nothing || takes == attached || takes == without || has:
		return 0
	case takes == pair || takes == pairFile:
		return 2
	}
	return 1
}
