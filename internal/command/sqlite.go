package command

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"agentbox/internal/domain/policy"
)

// sqliteTakes are the options of sqlite3 that take words, and how many. They have one dash or two.
var sqliteTakes = map[string]int{
	"-cmd": 1, "-init": 1, "-separator": 1, "-newline": 1, "-nullvalue": 1, "-mmap": 1, "-maxsize": 1, "-vfs": 1, "-heap": 1, "-key": 1,
	"-hexkey": 1, "-textkey": 1, "-escape": 1, "-sorterref": 1, "-nonce": 1, "-lookaside": 2, "-pagecache": 2,
}

// sqlite reads the arguments of SQLite's shell: the database that it opens, the files that its commands and its SQL name, and whether it
// starts programs or loads code.
func (r *reader) sqlite(c *Command, rest []arg, in *stdin) error {
	operands, told, flags := 0, false, true
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		switch {
		case !a.known && (!a.one || operands != 0): // an option or several words; they decide what runs
			r.unknown(c)
			operands++
			told = told || operands > 1
		case flags && a.text == "--":
			flags = false
		case flags && a.known && len(a.text) > 1 && a.text[0] == '-':
			name := "-" + strings.TrimLeft(a.text, "-")
			var given arg
			for n := sqliteTakes[name]; n > 0 && i+1 < len(rest); n-- {
				i++
				given = rest[i]
			}
			switch {
			case name == "-init":
				c.Traits = append(c.Traits, policy.TraitRunsFile)
				r.unseal(given)
			case name == "-cmd":
				c.Traits = append(c.Traits, policy.TraitInlineCode)
				if err := r.sqliteText(c, given); err != nil {
					return err
				}
			case strings.HasPrefix(name, "-A"), name == "-vfs": // an archive, or another way to files
				r.unknown(c)
			}
		case operands == 0:
			operands++
			if a.text != "" && a.text != ":memory:" || !a.known {
				if err := r.operand(c, sqliteFile(a), true); err != nil {
					return err
				}
			}
		default:
			operands++
			told = true
			c.Traits = append(c.Traits, policy.TraitInlineCode)
			if err := r.sqliteText(c, a); err != nil {
				return err
			}
		}
	}
	switch {
	case told:
	case in.set && in.file.known && in.file.text != "":
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		r.unseal(in.file)
	case in.set && in.script.known:
		c.Traits = append(c.Traits, policy.TraitInlineCode)
		return r.sqliteText(c, in.script)
	case len(rest) == 1 && strings.TrimLeft(rest[0].text, "-") == "version":
	default:
		c.Traits = append(c.Traits, policy.TraitRunsFile)
		r.out.Unsealed = append(r.out.Unsealed, "the standard input of "+c.Name)
	}
	return nil
}

// sqliteFile takes a name out of the URI of a database.
func sqliteFile(a arg) arg {
	if name, is := strings.CutPrefix(a.text, "file:"); is && a.known {
		name, _, _ = strings.Cut(name, "?")
		a.text = strings.TrimPrefix(name, "//")
	}
	return a
}

var (
	sqliteDots  = regexp.MustCompile(`(?m)^[ \t]*\.(\w+)[ \t]*(.*)$`)
	sqliteWords = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|\S+`)
	// Functions and tables that start a program, load code or list files; and the names of those that take a file.
	sqliteRuns = regexp.MustCompile(`(?i)\b(load_extension|edit|fts3_tokenizer|fsdir|lsdir|zipfile|sqlar_\w+)\b\s*\(|` +
		`\bvfs=|\busing\s+zipfile\b`)
	sqliteFiles = regexp.MustCompile(`(?i)\b(attach(?:\s+database)?|vacuum\b[^;]*?\binto|` +
		`readfile\s*\(|writefile\s*\()(\s*)('(?:[^']|'')*'|"[^"]*")?`)
	sqliteNext = regexp.MustCompile(`^\s*(\|\||->|[-+*/%])`)
)

// sqliteText reads SQL and commands of the shell. SQLite accepts the beginnings of its commands' names.
func (r *reader) sqliteText(c *Command, a arg) error {
	if !a.known {
		r.unknown(c)
		return nil
	}
	if sqliteRuns.MatchString(a.text) {
		r.unknown(c)
	}
	for _, dot := range sqliteDots.FindAllStringSubmatch(a.text, -1) {
		if err := r.sqliteDot(c, dot[1], sqliteWords.FindAllString(dot[2], -1)); err != nil {
			return err
		}
	}
	for _, at := range sqliteFiles.FindAllStringSubmatchIndex(a.text, -1) {
		verb := strings.ToLower(a.text[at[2]:at[3]])
		if at[6] < 0 || sqliteNext.MatchString(a.text[at[1]:]) { // a name that the query makes
			r.unknown(c)
			continue
		}
		quote := a.text[at[6] : at[6]+1]
		name := arg{text: strings.ReplaceAll(a.text[at[6]+1:at[7]-1], quote+quote, quote), known: true}
		if name.text == "" || name.text == ":memory:" {
			continue
		}
		if err := r.operand(c, sqliteFile(name), !strings.HasPrefix(verb, "readfile")); err != nil {
			return err
		}
	}
	return nil
}

// sqliteNames are the commands of the shell that name files, and whether they write them. Other commands neither name a file nor start a
// program.
var sqliteNames = map[string]bool{
	"backup": true, "save": true, "clone": true, "open": true, "output": true, "once": true, "log": true, "trace": true, "testcase": true,
	"import": false, "read": false, "restore": false,
}

// sqliteDot reads one command of the shell.
func (r *reader) sqliteDot(c *Command, name string, words []string) error {
	for _, runs := range []string{"shell", "system", "load", "excel", "www", "archive", "cd"} {
		if strings.HasPrefix(runs, name) {
			r.unknown(c)
			return nil
		}
	}
	for _, command := range slices.Sorted(maps.Keys(sqliteNames)) {
		if !strings.HasPrefix(command, name) {
			continue
		}
		for _, word := range words {
			word = strings.Trim(word, `"'`)
			switch {
			case strings.HasPrefix(word, "|"), command == "once" && (word == "-e" || word == "-x" || word == "-w"):
				r.unknown(c) // a program, or the user's editor
				return nil
			case word == "" || word[0] == '-' || word == "stdout" || word == "off" || word == "on":
				continue
			case command == "read":
				r.unseal(arg{text: word, known: true})
			}
			if err := r.operand(c, arg{text: word, known: true}, sqliteNames[command]); err != nil {
				return err
			}
			if command == "import" {
				break // the table follows
			}
		}
	}
	return nil
}
