package files

import (
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// colorCodes are the keywords of a database of dircolors, and what LS_COLORS calls them.
var colorCodes = map[string]string{
	"NORMAL": "no", "NORM": "no", "FILE": "fi", "RESET": "rs", "DIR": "di", "LNK": "ln", "LINK": "ln", "SYMLINK": "ln", "ORPHAN": "or",
	"MISSING": "mi", "FIFO": "pi",
	"PIPE": "pi", "SOCK": "so", "BLK": "bd", "BLOCK": "bd", "CHR": "cd", "CHAR": "cd", "DOOR": "do", "EXEC": "ex", "LEFT": "lc",
	"LEFTCODE": "lc", "RIGHT": "rc",
	"RIGHTCODE": "rc", "END": "ec", "ENDCODE": "ec", "SUID": "su", "SETUID": "su", "SGID": "sg", "SETGID": "sg", "STICKY": "st",
	"OTHER_WRITABLE": "ow", "OWR": "ow",
	"STICKY_OTHER_WRITABLE": "tw", "OWT": "tw", "CAPABILITY": "ca", "MULTIHARDLINK": "mh", "CLRTOEOL": "cl",
}

// defaultColors is the default database: terminals, kinds of files, and endings of names by their color.
var defaultColors = []struct{ value, keys string }{
	{"", "COLORTERM ?*"},
	{"", "TERM Eterm ansi *color* con[0-9]*x[0-9]* cons25 console cygwin *direct* dtterm gnome hurd jfbterm konsole kterm linux linux-c " +
		"mlterm putty rxvt* screen* st terminator tmux* " +
		"vt100 xterm*"},
	{"0", "RESET"}, {"01;34", "DIR"}, {"01;36", "LINK"}, {"00", "MULTIHARDLINK"}, {"40;33", "FIFO"}, {"01;35", "SOCK DOOR"},
	{"40;33;01", "BLK CHR"}, {"40;31;01", "ORPHAN"},
	{"00", "MISSING"}, {"37;41", "SETUID"}, {"30;43", "SETGID"}, {"00", "CAPABILITY"}, {"30;42", "STICKY_OTHER_WRITABLE"},
	{"34;42", "OTHER_WRITABLE"}, {"37;44", "STICKY"},
	{"01;32", "EXEC"},
	{"01;31", ".tar .tgz .arc .arj .taz .lha .lz4 .lzh .lzma .tlz .txz .tzo .t7z .zip .z .dz .gz .lrz .lz .lzo .xz .zst .tzst .bz2 .bz .tbz " +
		".tbz2 .tz .deb .rpm .jar .war .ear .sar " +
		".rar .alz .ace .zoo .cpio .7z .rz .cab .wim .swm .dwm .esd"},
	{"01;35", ".avif .jpg .jpeg .mjpg .mjpeg .gif .bmp .pbm .pgm .ppm .tga .xbm .xpm .tif .tiff .png .svg .svgz .mng .pcx .mov .mpg .mpeg " +
		".m2v .mkv .webm .webp .ogm .mp4 .m4v .mp4v " +
		".vob .qt .nuv .wmv .asf .rm .rmvb .flc .avi .fli .flv .gl .dl .xcf .xwd .yuv .cgm .emf .ogv .ogx"},
	{"00;36", ".aac .au .flac .m4a .mid .midi .mka .mp3 .mpc .ogg .ra .wav .oga .opus .spx .xspf"},
	{"00;90", "*~ *# .bak .old .orig .part .rej .swp .tmp .dpkg-dist .dpkg-old .ucf-dist .ucf-new .ucf-old .rpmnew .rpmorig .rpmsave"},
}

// colorDatabase writes the database as a file of dircolors has it.
func colorDatabase() string {
	var b strings.Builder
	for _, d := range defaultColors {
		keys := strings.Fields(d.keys)
		if d.value == "" {
			for _, value := range keys[1:] {
				b.WriteString(keys[0] + " " + value + "\n")
			}
			continue
		}
		for _, key := range keys {
			b.WriteString(key + " " + d.value + "\n")
		}
	}
	return b.String()
}

// coloring is a dircolors that runs.
type coloring struct {
	p                     *program.Process
	term, colorTerm       string
	csh, shown            bool // shown is for people
	pairs                 strings.Builder
	failed                bool
	name                  string
	matched, skips, asked bool // of the terminals that the database names
}

// dircolors writes the commands that set LS_COLORS.
func dircolors(p *program.Process) int {
	opts, operands := p.Options(1, "bcp", "sh b", "bourne-shell b", "csh c", "c-shell c", "print-database p", "print-ls-colors")
	c := &coloring{p: p, term: p.Getenv("TERM"), colorTerm: p.Getenv("COLORTERM")}
	if c.term == "" {
		c.term = "none"
	}
	syntax, print := "", false
	for _, o := range opts {
		switch o.Name {
		case "p":
			print = true
		case "print-ls-colors":
			c.shown = true
		default:
			syntax = o.Name
		}
	}
	switch {
	case (print || c.shown) && syntax != "":
		return gnu.WrongUsage(p, "the options to output non shell syntax,\nand to select a shell syntax are mutually exclusive")
	case print && c.shown:
		return gnu.WrongUsage(p, "options --print-database and --print-ls-colors are mutually exclusive")
	case print && len(operands) > 0:
		p.Errorf("extra operand %s", gnu.Quote(operands[0]))
		p.Stderrf("file operands cannot be combined with --print-database (-p)\nTry '%s --help' for more information.\n", p.Name())
		return 1
	case len(operands) > 1:
		return gnu.WrongUsage(p, "extra operand %s", gnu.Quote(operands[1]))
	case print:
		p.Out().WriteString(colorDatabase())
		return 0
	}
	if syntax == "" && !c.shown {
		shell := p.Getenv("SHELL")
		if shell == "" {
			p.Errorf("no SHELL environment variable, and no shell type option given")
			return 1
		}
		if shell = gnu.LastName(shell); shell == "csh" || shell == "tcsh" {
			syntax = "c"
		}
	}
	c.csh = syntax == "c"
	if len(operands) == 0 {
		p.Charge(100_000)
		for i, line := range strings.Split(strings.TrimSuffix(colorDatabase(), "\n"), "\n") {
			c.line(i+1, line)
		}
	} else if !c.read(operands[0]) {
		return 1
	}
	if c.failed {
		return 1
	}
	switch out := p.Out(); {
	case c.shown:
		out.WriteString(c.pairs.String())
	case c.csh:
		out.WriteString("setenv LS_COLORS '" + c.pairs.String() + "'\n")
	default:
		out.WriteString("LS_COLORS='" + c.pairs.String() + "';\nexport LS_COLORS\n")
	}
	return 0
}

// read reads a database, and reports whether it could be opened.
func (c *coloring) read(name string) bool {
	in, done, err := gnu.OpenInput(c.p, name)
	if err != nil {
		c.p.Errorf("%s: %s", gnu.BareOrQuoted(name), program.Message(err))
		return false
	}
	defer done()
	c.name = name
	for n := 1; ; n++ {
		line, _, ok := in.Line('\n')
		if !ok {
			break
		}
		c.p.Charge(len(line) * 4)
		c.line(n, string(line))
	}
	if err := in.Err(); err != nil {
		c.p.Errorf("%s: read error: %s", gnu.BareOrQuoted(name), program.Message(err))
		return false
	}
	return true
}

// line reads a line of a database.
func (c *coloring) line(n int, line string) {
	line = strings.TrimLeft(line, " \t\r\v\f")
	if line == "" || line[0] == '#' {
		return
	}
	end := strings.IndexAny(line, " \t\r\v\f")
	if end < 0 {
		c.fault(n, "invalid line;  missing second token")
		return
	}
	key, value := line[:end], line[end:]
	if at := strings.IndexByte(value, '#'); at >= 0 {
		value = value[:at]
	}
	if value = strings.Trim(value, " \t\r\v\f"); value == "" {
		c.fault(n, "invalid line;  missing second token")
		return
	}
	switch upper := strings.ToUpper(key); {
	case upper == "TERM" || upper == "COLORTERM":
		term := c.term
		if upper == "COLORTERM" {
			term = c.colorTerm
		}
		if !c.asked { // a new list of terminals
			c.asked, c.matched = true, false
		}
		c.p.Charge(len(value) * 8)
		c.matched = c.matched || gnu.Glob(value, term, false)
		c.skips = !c.matched
		return
	case c.skips:
	case key[0] == '.':
		c.pair("*"+key, value)
	case key[0] == '*':
		c.pair(key, value)
	case upper == "OPTIONS" || upper == "COLOR" || upper == "EIGHTBIT":
	case colorCodes[upper] != "":
		c.pair(colorCodes[upper], value)
	case c.matched: // before the first terminal anything may stand
		c.fault(n, "unrecognized keyword "+key)
	}
	c.asked = false
}

func (c *coloring) fault(n int, what string) {
	name := gnu.BareOrQuoted(c.name)
	if c.name == "" {
		name = "<internal>"
	}
	c.p.Errorf("%s:%d: %s", name, n, what)
	c.failed = true
}

// pair appends one color, as the shell reads it.
func (c *coloring) pair(key, value string) {
	c.p.Hold(2 * (len(key) + len(value)))
	if c.shown {
		c.pairs.WriteString("\x1b[" + value + "m" + key + "\t" + value + "\x1b[0m\n")
		return
	}
	c.pairs.WriteString(shellSafe(key) + "=" + shellSafe(value) + ":")
}

// shellSafe escapes what would end the quotes around LS_COLORS, or a pair.
func shellSafe(s string) string {
	var b strings.Builder
	escape := true
	for _, c := range []byte(s) {
		switch {
		case c == '\'':
			b.WriteString(`'\'`)
			escape = true
		case c == '\\' || c == '^':
			escape = !escape
		default:
			if (c == ':' || c == '=') && escape {
				b.WriteByte('\\')
			}
			escape = true
		}
		b.WriteByte(c)
	}
	return b.String()
}
