package command

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/domain/policy"
)

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
func (r *reader) streamEditor(c *Command, rest []arg) error {
	var script []string
	var operand *arg
	given := false
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		if !a.known || len(a.text) < 2 || a.text[0] != '-' {
			if operand == nil {
				operand = &rest[i]
			}
			continue
		}
		name, value, attached := strings.Cut(a.text, "=")
		if strings.HasPrefix(name, "--") {
			if len(name) > 3 && (strings.HasPrefix("--expression", name) || strings.HasPrefix("--file", name)) {
				given = true
				if !attached && i+1 < len(rest) {
					i++
					value = rest[i].text
				}
				r.sedOption(c, name[2], value, &script)
			}
			continue
		}
	letters:
		for j, letter := range a.text[1:] {
			switch letter {
			case 'e', 'f', 'l':
				value := a.text[j+2:]
				if value == "" && i+1 < len(rest) {
					i++
					value = rest[i].text
				}
				given = given || letter != 'l'
				r.sedOption(c, byte(letter), value, &script)
				break letters
			case 'i':
				break letters // the rest is a suffix
			}
		}
	}
	if !given && operand != nil && operand.known {
		script = append(script, operand.text)
	}
	return r.sed(c, strings.Join(script, "\n"))
}

func (r *reader) sedOption(c *Command, option byte, value string, script *[]string) {
	switch option {
	case 'e':
		*script = append(*script, value)
	case 'f':
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		r.unseal(arg{text: value, known: true})
	}
}

// sed searches a sed program for commands that it runs and files that it names.
func (r *reader) sed(c *Command, s string) error {
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
			r.unknown(c)
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
					r.unknown(c)
					return nil
				}
				if command == 's' && flag == 'w' {
					if err := r.open(arg{text: strings.TrimSpace(line()), known: true}, true, false); err != nil {
						return err
					}
					break
				}
			}
		case 'r', 'R', 'w', 'W':
			write := command == 'w' || command == 'W'
			if err := r.open(arg{text: strings.TrimSpace(line()), known: true}, write, !write); err != nil {
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
func (r *reader) awk(c *Command, rest []arg) {
	runs := regexp.MustCompile(awkRuns)
	if slices.ContainsFunc(rest, func(a arg) bool { return a.known && runs.MatchString(strings.ReplaceAll(a.text, "||", "")) }) {
		r.unknown(c)
	}
	for _, a := range rest {
		if a.known {
			r.awkFiles(a.text)
		}
	}
}

var (
	awkOpens = regexp.MustCompile(`getline[^;}\n|]*<|\bprintf?\b[^;}\n|]*?>>?`)
	awkTexts = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
)

// awkFiles reads the names of the files that an awk program opens: constant names, and names joined from constants and unknown parts.
func (r *reader) awkFiles(program string) {
	bare := awkTexts.ReplaceAllStringFunc(program, func(text string) string { return `"` + strings.Repeat("x", len(text)-2) + `"` })
	opens := awkOpens.FindAllStringIndex(bare, -1)
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
		r.blind = r.blind || strings.Contains(shape, "*")
		r.joins = append(r.joins, joinedWord{arg{shape: shape}, program[at[1]-1] == '>'})
	}
	if len(opens) > 0 {
		for _, text := range awkTexts.FindAllString(program, -1) {
			r.mention(arg{text: awkText(text), known: true})
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
func (r *reader) deletesByOption(c *Command, rest []arg) {
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
