package tools

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/driver/wasm/posix"
	"agentbox/internal/driver/wasm/program"
)

// rev writes each line backwards.
func rev(p *program.Process) int {
	_, operands := p.Options(1, "")
	out := p.Out()
	return each(p, operands, func(_ string, in *program.Input) {
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
	opts, operands := p.Options(1, "b:f:h:n:s:v:w:i:l:d:p", "body-numbering= b", "footer-numbering= f", "header-numbering= h", "number-format= n", "number-separator= s",
		"starting-line-number= v", "number-width= w", "line-increment= i", "join-blank-lines= l", "section-delimiter= d", "no-renumber p")
	style := map[byte]string{'b': "t", 'f': "n", 'h': "n"}
	format, sep, start, width, step, delim, blanks, keep := "rn", "\t", 1, 6, 1, `\:`, 1, false
	number := func(s, what string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			p.Errorf("invalid %s: %s", what, quote(s))
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
			res[k] = compile(p, 1, s[1:], 0)
		} else if s != "a" && s != "t" && s != "n" {
			p.Errorf("invalid %s numbering style: %s", map[byte]string{'b': "body", 'h': "header", 'f': "footer"}[k], quote(s))
			return 1
		}
	}
	out := p.Out()
	n, section, blank := start, byte('b'), 0
	return each(p, operands, func(_ string, in *program.Input) {
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
				check(p, 1, err)
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
			if width = count(p, 1, o.Value, "invalid number of columns"); width == 0 {
				p.Errorf("invalid number of columns: %s", quote(o.Value))
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
	return each(p, operands, func(_ string, in *program.Input) {
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

// fmtCommand fills paragraphs.
func fmtCommand(p *program.Process) int {
	args := p.Args[:1:1]
	for _, a := range p.Args[1:] {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" {
			a = "-w" + a[1:]
		}
		args = append(args, a)
	}
	p.Args = args
	opts, operands := p.Options(1, "cp:stug:w:", "crown-margin c", "prefix= p", "split-only s", "tagged-paragraph t", "uniform-spacing u", "goal= g", "width= w")
	width, goal, splitOnly, uniform := 75, 0, false, false
	for _, o := range opts {
		switch o.Name {
		case "w":
			width = min(count(p, 1, o.Value, "invalid width"), 2500)
		case "g":
			goal = count(p, 1, o.Value, "invalid width")
		case "s":
			splitOnly = true
		case "u":
			uniform = true
		case "c", "t", "p":
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option -%s is not supported here", o.Name)
			return 1
		}
	}
	if goal == 0 {
		goal = width * 187 / 200
	}
	f := &filler{p: p, out: p.Out(), width: width, goal: goal, uniform: uniform}
	return each(p, operands, func(_ string, in *program.Input) {
		indent, any := 0, false
		var words []fillWord
		end := func() {
			if any {
				f.paragraph(indent, words)
			}
			words, any = nil, false
		}
		for {
			line, _, ok := in.Line('\n')
			if !ok {
				break
			}
			text := strings.TrimRight(string(line), " \t\r")
			if text == "" {
				end()
				f.out.WriteString("\n")
				continue
			}
			margin := 0
			for margin < len(text) && (text[margin] == ' ' || text[margin] == '\t') {
				margin++
			}
			if any && margin != indent || splitOnly {
				end()
			}
			indent, any = margin, true
			p.Hold(len(text))
			words = append(words, f.words(text[margin:])...)
		}
		end()
	})
}

// filler breaks paragraphs into lines as GNU's fmt does: with the least cost over all.
type filler struct {
	p           *program.Process
	out         *program.Output
	width, goal int
	uniform     bool
}

type fillWord struct {
	text                       string
	space                      int
	paren, period, punct, last bool
	length                     int
	cost                       int64
	next                       int
}

func (f *filler) words(s string) []fillWord {
	var all []fillWord
	for s != "" {
		n := strings.IndexAny(s, " \t")
		if n < 0 {
			n = len(s)
		}
		w := fillWord{text: s[:n], length: utf8.RuneCountInString(s[:n])}
		s = s[n:]
		k := len(s) - len(strings.TrimLeft(s, " \t"))
		w.space = k
		s = s[k:]
		w.paren = strings.IndexByte("(['`\"", w.text[0]) >= 0
		w.punct = w.text[len(w.text)-1] < 0x80 && inClass("punct", rune(w.text[len(w.text)-1]))
		core := strings.TrimRight(w.text, ")]'\"")
		w.period = core != "" && strings.IndexByte(".?!", core[len(core)-1]) >= 0
		w.last = w.period && (s == "" || w.space > 1)
		if s == "" || f.uniform {
			w.space = 1
			if w.last {
				w.space = 2
			}
		}
		all = append(all, w)
	}
	return all
}

func (f *filler) paragraph(indent int, words []fillWord) {
	n := len(words)
	if n == 0 {
		return
	}
	const big = int64(1) << 60
	square := func(x int64) int64 { return x * x }
	words = append(words, fillWord{})
	for start := n - 1; start >= 0; start-- {
		best, next := big, start+1
		length := indent + words[start].length
		for w := start + 1; ; w++ {
			f.p.Charge(10)
			cost := int64(0)
			if w < n {
				cost = square(10 * int64(f.goal-length))
				if words[w].next != n && w < n && words[w].next > 0 {
					cost += square(10*int64(length-words[w].length2(words, indent))) / 2
				}
			}
			cost += words[w].cost
			if cost < best {
				best, next = cost, w
			}
			if w == n {
				break
			}
			length += words[w-1].space + words[w].length
			if length >= f.width {
				break
			}
		}
		words[start].next = next
		words[start].cost = best + f.opening(words, start)
	}
	for at := 0; at < n; {
		end := words[at].next
		f.out.WriteString(strings.Repeat(" ", indent))
		for i := at; i < end; i++ {
			f.out.WriteString(words[i].text)
			if i+1 < end {
				f.out.WriteString(strings.Repeat(" ", words[i].space))
			}
		}
		f.out.WriteString("\n")
		at = end
	}
}

// length2 is how long the line is that begins with a word.
func (w *fillWord) length2(words []fillWord, indent int) int {
	n := indent
	for i := range words {
		if &words[i] == w {
			for j := i; j < w.next; j++ {
				n += words[j].length
				if j+1 < w.next {
					n += words[j].space
				}
			}
			break
		}
	}
	return n
}

// opening is what it costs to begin a line with a word.
func (f *filler) opening(words []fillWord, i int) int64 {
	cost := int64(70 * 70)
	if i > 0 {
		before := &words[i-1]
		switch {
		case before.period && before.last:
			cost -= 50 * 50
		case before.period:
			cost += 600 * 600
		case before.punct:
			cost -= 40 * 40
		case i > 1 && words[i-2].last:
			cost += 200 * 200 / int64(before.length+2)
		}
	}
	switch {
	case words[i].paren:
		cost -= 40 * 40
	case words[i].last:
		cost += 150 * 150 / int64(words[i].length+2)
	}
	return cost
}
