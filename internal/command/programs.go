package command

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/policy"
)

// programs reads the arguments of programs that have a language or rules of their own: sed, awk, find, git, interpreters.
type programs struct{ line *reader }

// foreign reports whether a program's path is outside the folders of system programs and of the space's files. Such a program may be a
// loader that runs its argument, or a link of /proc that stands for any program.
func foreign(cwd, name string) bool {
	name = resolve(cwd, name)
	return strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "/tmp/") && !system[path.Dir(name)]
}

// loader reports whether a program runs the program that is its argument.
func loader(name string) bool {
	return name == "ld.so" || strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld-2.")
}

// streamEditor reads the program of sed: it can run commands and open files of its own.
func (pr *programs) streamEditor(c *Command, rest []arg, in *stdin) error {
	var script, operands []arg
	given := false
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		next := func(text string) arg {
			if text == "" && i+1 < len(rest) {
				i++
				return rest[i]
			}
			return arg{text: text, known: true}
		}
		if !a.known || len(a.text) < 2 || a.text[0] != '-' {
			operands = append(operands, a)
			continue
		}
		name, value, attached := strings.Cut(a.text, "=")
		if strings.HasPrefix(name, "--") {
			if len(name) > 3 && (strings.HasPrefix("--expression", name) || strings.HasPrefix("--file", name)) {
				given = true
				text := arg{text: value, known: true}
				if !attached {
					text = next("")
				}
				pr.sedOption(c, name[2], text, &script, in)
			}
			continue
		}
	letters:
		for j, letter := range a.text[1:] {
			switch letter {
			case 'e', 'f', 'l':
				given = given || letter != 'l'
				pr.sedOption(c, byte(letter), next(a.text[j+2:]), &script, in)
				break letters
			case 'i':
				break letters // the rest is a suffix
			}
		}
	}
	if !given && len(operands) > 0 {
		script, operands = operands[:1], operands[1:]
	}
	unknown := func(a arg) bool { return !a.known }
	if operands = slices.DeleteFunc(slices.Clone(operands), func(a arg) bool { return a.known }); len(operands) > 0 ||
		slices.ContainsFunc(script, unknown) {
		pr.line.late.postpone(late{program: script, operands: operands})
	}
	if slices.ContainsFunc(script, unknown) {
		return nil
	}
	return pr.sed(c, strings.Join(known(script), "\n"))
}

func (pr *programs) sedOption(c *Command, option byte, value arg, script *[]arg, in *stdin) {
	switch option {
	case 'e':
		*script = append(*script, value)
	case 'f':
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		switch {
		case value.known && (value.text == "-" || isStdin(resolve(pr.line.cwd, value.text))):
			switch {
			case in.set && in.file.known && in.file.text != "":
				pr.line.unseal(in.file)
			case in.set && in.file.word == nil:
				*script = append(*script, in.script)
			default:
				pr.line.unknown(c) // it reads its program from a pipe
			}
		default:
			pr.line.unseal(value)
			if !value.known { // it may be the standard input
				pr.line.unknown(c)
			}
		}
	}
}

// sed searches a sed program for commands that it runs and files that it names.
func (pr *programs) sed(c *Command, s string) error {
	line := func() string {
		text, rest, _ := strings.Cut(s, "\n")
		s = rest
		return text
	}
	for s != "" {
		s = sedAddresses(s)
		if s == "" {
			return nil
		}
		command := s[0]
		s = s[1:]
		switch command {
		case 'e':
			pr.line.unknown(c)
			return nil
		case 's', 'y':
			if s == "" {
				return nil
			}
			delimiter := s[0]
			s = sedPart(sedPart(s[1:], delimiter), delimiter)
			for s != "" && strings.IndexByte(";}\n", s[0]) < 0 {
				flag := s[0]
				s = s[1:]
				if command == 's' && flag == 'e' {
					pr.line.unknown(c)
					return nil
				}
				if command == 's' && flag == 'w' {
					if err := pr.line.open(arg{text: strings.TrimSpace(line()), known: true}, true, false); err != nil {
						return err
					}
					break
				}
			}
		case 'r', 'R', 'w', 'W':
			write := command == 'w' || command == 'W'
			if err := pr.line.open(arg{text: strings.TrimSpace(line()), known: true}, write, !write); err != nil {
				return err
			}
		case 'a', 'i', 'c':
			for strings.HasSuffix(line(), `\`) && s != "" {
			}
		case '#':
			line()
		case ':', 'b', 't', 'T', 'v':
			if i := strings.IndexAny(s, ";\n"); i >= 0 {
				s = s[i:]
			} else {
				return nil
			}
		}
	}
	return nil
}

// sedAddresses skips everything that may precede a command: separators, line numbers and patterns.
func sedAddresses(s string) string {
	for s != "" {
		switch ch := s[0]; {
		case strings.IndexByte(" \t\n\r\f\v;{}!,+~$0123456789", ch) >= 0:
			s = s[1:]
		case ch == '/':
			s = strings.TrimLeft(sedPart(s[1:], '/'), "IM")
		case ch == '\\' && len(s) > 1:
			s = strings.TrimLeft(sedPart(s[2:], s[1]), "IM")
		default:
			return s
		}
	}
	return s
}

// sedPart skips to behind the next delimiter that has no backslash before it.
func sedPart(s string, delimiter byte) string {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case delimiter:
			return s[i+1:]
		case '\\':
			i++
		}
	}
	return ""
}

// awkRuns finds what makes a program of awk run commands: a call of system or of a function whose name is in a variable, a library, a pipe.
const awkRuns = `\bsystem\s*\(|@\s*(load|include|\w+\s*\()|\|&?\s*(getline|")|\bprintf?\b[^;}\n/]*\|&?\s*[A-Za-z(]`

// awk doubts programs that run commands.
func (pr *programs) awk(c *Command, rest []arg) {
	runs := regexp.MustCompile(awkRuns)
	if slices.ContainsFunc(rest, func(a arg) bool { return a.known && runs.MatchString(strings.ReplaceAll(a.text, "||", "")) }) {
		pr.line.unknown(c)
	}
	for _, a := range rest {
		if a.known {
			pr.awkFiles(a.text)
		}
	}
}

var (
	awkOpens     = regexp.MustCompile(`getline[^;}\n|]*<|\bprintf?\b[^;}\n|]*?>>?`)
	awkArguments = regexp.MustCompile(`\bARGV\b(?:\s*\[[^;}\n=]*\]\s*=)?`)
	awkTexts     = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
)

// awkProgram finds the program of awk where it is not known yet. Words behind the program are not options.
func (pr *programs) awkProgram(rest []arg) {
	var program []arg
	given, flags, shifts := false, true, 0
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		if flags && a.known && a.text == "--" {
			flags = false
			continue
		}
		if flags && len(a.text) > 1 && a.text[0] == '-' && (a.known || awkValue(a)) {
			var takes taking
			var text string
			var has bool
			if name, value, is := strings.Cut(a.text, "="); strings.HasPrefix(name, "--") {
				takes, text, has = longTaking(optionTable["gawk"], name), value, is
			} else {
				takes, text, has = shortTaking(optionTable["gawk"], a.text[1:])
			}
			part := arg{text: text, known: true}
			if !a.known {
				shifts++ // the value may be empty, and then is the next word
			}
			if takes != nothing && !has && a.known && i+1 < len(rest) {
				i++
				part = rest[i]
			}
			if takes == script {
				given = true // options says that it is not known
			}
			if takes == taking('p') {
				given, program = true, append(program, part)
			}
			continue
		}
		if !given {
			program = append(program, a)
		}
		if shifts--; shifts < 0 {
			break
		}
	}
	if slices.ContainsFunc(program, func(a arg) bool { return !a.known }) {
		pr.line.late.postpone(late{awk: true, program: program})
	}
}

// awkValue reports whether a word that is not known is an option with a value behind it: -F"$x".
func awkValue(a arg) bool {
	if a.word == nil || !a.one {
		return false
	}
	parts := a.word.Parts
	if q, ok := parts[0].(*syntax.DblQuoted); ok {
		parts = q.Parts
	}
	lit, ok := parts[0].(*syntax.Lit)
	return ok && (strings.HasPrefix(lit.Value, "-F") || strings.HasPrefix(lit.Value, "-v"))
}

// awkFiles reads the names of the files that a program of awk opens: constant names, and names made of constants and unknown parts.
func (pr *programs) awkFiles(program string) {
	bare := awkTexts.ReplaceAllStringFunc(program, func(text string) string { return `"` + strings.Repeat("x", len(text)-2) + `"` })
	opens := awkOpens.FindAllStringIndex(bare, -1)
	for _, at := range awkArguments.FindAllStringIndex(bare, -1) { // what awk is to read: ARGV[1] = "x"
		pr.line.mentions.blind = true
		if bare[at[1]-1] == '=' && !strings.HasPrefix(bare[at[1]:], "=") {
			opens = append(opens, at)
		}
	}
	for _, at := range opens {
		name := program[at[1]:]
		shape, end := "", 0
		for end < len(name) && strings.IndexByte(";}\n)", name[end]) < 0 {
			if text := awkTexts.FindStringIndex(name[end:]); len(text) > 0 && text[0] == 0 {
				shape, end = shape+awkText(name[end:end+text[1]]), end+text[1]
				continue
			}
			if name[end] != ' ' && name[end] != '\t' && !strings.HasSuffix(shape, "*") {
				shape += "*"
			}
			end++
		}
		pr.line.mentions.blind = pr.line.mentions.blind || strings.Contains(shape, "*")
		pr.line.joins.words = append(pr.line.joins.words, joinedWord{arg{shape: shape}, program[at[1]-1] == '>'})
	}
	if len(opens) > 0 || awkArguments.MatchString(bare) {
		for _, text := range awkTexts.FindAllString(program, -1) {
			pr.line.mentions.mention(arg{text: awkText(text), known: true})
		}
	}
}

// awkText takes the quotes of a constant of awk away.
func awkText(quoted string) string {
	if text, err := strconv.Unquote(quoted); err == nil {
		return text
	}
	return strings.Trim(quoted, `"`)
}

// isStdin reports whether a path is a name of the standard input.
func isStdin(name string) bool {
	return name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0"
}

// deletesByOption marks archivers whose options delete the packed files, or files that are in the way.
func (pr *programs) deletesByOption(c *Command, rest []arg) {
	for _, a := range rest {
		long := len(a.text) > 4 && strings.HasPrefix(a.text, "--")
		switch {
		case !a.known:
		case c.Name == "tar" && long && (strings.HasPrefix("--remove-files", a.text) || strings.HasPrefix("--recursive-unlink", a.text)),
			c.Name == "zip" && (long && strings.HasPrefix("--move", a.text) || strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") &&
				strings.Contains(a.text, "m")):
			c.Traits = append(c.Traits, policy.TraitDeletesTree)
		}
	}
}
