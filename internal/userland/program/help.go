package program

import "strings"

// writeHelp prints how the program is called, with all its options, and ends it.
func writeHelp(p *Process, short string, long []string) {
	var b strings.Builder
	name := p.Name()
	b.WriteString("Usage: " + name[strings.LastIndexByte(name, '/')+1:] + " [OPTION]... [ARGUMENT]...\n")
	named := map[string]bool{}
	rows := 0
	row := func(s string) {
		if rows == 0 {
			b.WriteString("\nOptions:\n")
		}
		rows++
		b.WriteString(s + "\n")
	}
	for i := 0; i < len(short); i++ {
		letter := short[i : i+1]
		if letter == ":" {
			continue
		}
		rule := short[i+1:]
		argument := ""
		switch {
		case strings.HasPrefix(rule, "::"):
			argument = "[=ARG]"
		case strings.HasPrefix(rule, ":"):
			argument = "=ARG"
		}
		names := []string{"  -" + letter}
		for _, spec := range long {
			if full, of, ok := strings.Cut(spec, " "); ok && of == letter {
				full = strings.TrimRight(full, "=?")
				named[full] = true
				names = append(names, "--"+full+argument)
			}
		}
		if len(names) == 1 && argument != "" {
			names[0] += strings.TrimPrefix(argument, "=")
		}
		row(strings.Join(names, ", "))
	}
	for _, spec := range long {
		full, _, _ := strings.Cut(spec, " ")
		bare := strings.TrimRight(full, "=?")
		if named[bare] || strings.HasPrefix(bare, "-") {
			continue
		}
		named[bare] = true
		row("      --" + bare + map[string]string{"": "", "=": "=ARG", "=?": "[=ARG]"}[full[len(bare):]])
	}
	row("      --help")
	row("      --version")
	p.Out().WriteString(b.String())
	p.Exit(0)
}
