package layout

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// rev writes each line backwards.
func rev(p *program.Process) int {
	_, operands := p.Options(1, "")
	out := p.Out()
	return gnu.EachInput(p, operands, func(_ string, in *program.Input) {
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				return
			}
			p.Charge(len(line) * 2)
			r := []rune(string(line))
			slices.Reverse(r)
			out.WriteString(string(r))
			if ended {
				_ = out.WriteByte('\n')
			}
		}
	})
}

// nl numbers lines.
func nl(p *program.Process) int {
	opts, operands := p.Options(1, "b:f:h:n:s:v:w:i:l:d:p", "body-numbering= b", "footer-numbering= f", "header-numbering= h",
		"number-format= n", "number-separator= s",
		"starting-line-number= v", "number-width= w", "line-increment= i", "join-blank-lines= l", "section-delimiter= d", "no-renumber p")
	style := map[byte]string{'b': "t", 'f': "n", 'h': "n"}
	format, sep, start, width, step, delim, blanks, keep := "rn", "\t", 1, 6, 1, `\:`, 1, false
	number := func(s, what string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			p.Errorf("invalid %s: %s", what, gnu.Quote(s))
			p.Exit(1)
		}
		return n
	}
	for _, o := range opts {
		switch o.Name {
		case "b", "f", "h":
			style[o.Name[0]] = o.Value
		case "n":
			format = o.Value
		case "s":
			sep = o.Value
		case "v":
			start = number(o.Value, "starting line number")
		case "w":
			width = min(number(o.Value, "line number field width"), 1000)
		case "i":
			step = number(o.Value, "line number increment")
		case "l":
			blanks = max(number(o.Value, "line number of blank lines"), 1)
		case "d":
			if delim = o.Value; len(delim) == 1 {
				delim += ":"
			}
		case "p":
			keep = true
		}
	}
	res := map[byte]*posix.Regexp{}
	for k, s := range style {
		if strings.HasPrefix(s, "p") {
			res[k] = gnu.Compile(p, 1, s[1:], 0)
		} else if s != "a" && s != "t" && s != "n" {
			p.Errorf("invalid %s numbering style: %s", map[byte]string{'b': "body", 'h': "header", 'f': "footer"}[k], gnu.Quote(s))
			return 1
		}
	}
	out := p.Out()
	n, section, blank := start, byte('b'), 0
	return gnu.EachInput(p, operands, func(_ string, in *program.Input) {
		for {
			line, _, ok := in.Line('\n')
			if !ok {
				return
			}
			kind := byte(0)
			switch string(line) {
			case delim + delim + delim:
				kind = 'h'
			case delim + delim:
				kind = 'b'
			case delim:
				kind = 'f'
			}
			if kind != 0 {
				section = kind
				if !keep {
					n = start
				}
				out.WriteString("\n")
				continue
			}
			counted := false
			switch s := style[section]; s[0] {
			case 'a':
				if len(line) == 0 {
					blank++
					counted = blank == blanks
				} else {
					counted = true
				}
				if counted {
					blank = 0
				}
			case 't':
				counted = len(line) > 0
			case 'p':
				var err error
				counted, err = res[section].Match(line)
				gnu.Check(p, 1, err)
			}
			if counted {
				switch format {
				case "ln":
					out.Printf("%-*d%s", width, n, sep)
				case "rz":
					out.Printf("%0*d%s", width, n, sep)
				default:
					out.Printf("%*d%s", width, n, sep)
				}
				n += step
			} else {
				out.WriteString(strings.Repeat(" ", width+len(sep)))
			}
			_, _ = out.Write(line)
			_ = out.WriteByte('\n')
		}
	})
}

// fold breaks long lines.
func fold(p *program.Process) int {
	args := p.Args[:1:1]
	for _, a := range p.Args[1:] {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" {
			a = "-w" + a[1:]
		}
		args = append(args, a)
	}
	p.Args = args
	opts, operands := p.Options(1, "bsw:", "bytes b", "spaces s", "width= w")
	width, spaces, byBytes := 80, false, false
	for _, o := range opts {
		switch o.Name {
		case "w":
			if width = gnu.ParseCount(p, 1, o.Value, "invalid number of columns"); width == 0 {
				p.Errorf("invalid number of columns: %s", gnu.Quote(o.Value))
				return 1
			}
		case "s":
			spaces = true
		case "b":
			byBytes = true
		}
	}
	out := p.Out()
	advance := func(column int, c byte) int {
		if byBytes {
			return column + 1
		}
		switch c {
		case '\b':
			return max(column-1, 0)
		case '\r':
			return 0
		case '\t':
			return column + 8 - column%8
		}
		return column + 1
	}
	return gnu.EachInput(p, operands, func(_ string, in *program.Input) {
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				return
			}
			start, column := 0, 0
			for i := 0; i < len(line); i++ {
				if i%(1<<16) == 0 {
					p.Charge(min(len(line)-i, 1<<16))
				}
				next := advance(column, line[i])
				if next > width && i > start {
					cut := i
					if spaces {
						if at := bytes.LastIndexAny(line[start:i], " \t"); at >= 0 {
							cut = start + at + 1
						}
					}
					_, _ = out.Write(line[start:cut])
					_ = out.WriteByte('\n')
					start, column = cut, 0
					for _, c := range line[start:i] {
						column = advance(column, c)
					}
					next = advance(column, line[i])
				}
				column = next
			}
			_, _ = out.Write(line[start:])
			if ended {
				_ = out.WriteByte('\n')
			}
		}
	})
}
