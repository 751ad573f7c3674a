package tools

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/driver/wasm/posix"
	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// tac writes lines from the last to the first.
func tac(p *program.Process) int {
	opts, operands := p.Options(1, "bs:r", "before b", "separator= s", "regex r")
	sep, before := "\n", false
	for _, o := range opts {
		switch o.Name {
		case "s":
			sep = o.Value
		case "b":
			before = true
		case "r":
			p.Lack(program.LackOption, "-r")
			p.Errorf("the option -r is not supported here")
			return 1
		}
	}
	out := p.Out()
	return each(p, operands, func(_ string, in *program.Input) {
		all := in.All()
		rest := all
		end := len(rest)
		for end > 0 {
			p.Charge(20)
			cut := end - len(sep)
			if cut < 0 || !bytes.HasSuffix(rest[:end], []byte(sep)) {
				cut = end
			}
			from := 0
			if before {
				if from = bytes.LastIndex(rest[:max(end-1, 0)], []byte(sep)); from < 0 {
					from = 0
				}
			} else if i := bytes.LastIndex(rest[:cut], []byte(sep)); i >= 0 {
				from = i + len(sep)
			}
			_, _ = out.Write(rest[from:end])
			end = from
		}
		p.Drop(len(all))
	})
}

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
			p.Charge(len(line))
			start, column := 0, 0
			for i := 0; i < len(line); i++ {
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
		words[start].cost = best + f.base(words, start)
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

// base is what it costs to begin a line with a word.
func (f *filler) base(words []fillWord, i int) int64 {
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

// tabs reads the stops of expand and unexpand.
func tabs(p *program.Process, s string) []int {
	var all []int
	for _, x := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(x)
		if err != nil {
			p.Errorf("tab size contains invalid character(s): %s", quote(x))
			p.Exit(1)
		}
		if n <= 0 {
			p.Errorf("tab size cannot be 0")
			p.Exit(1)
		}
		if len(all) > 0 && n <= all[len(all)-1] {
			p.Errorf("tab sizes must be ascending")
			p.Exit(1)
		}
		all = append(all, n)
	}
	return all
}

// stop returns the next stop behind a column.
func stop(tabs []int, column int) int {
	if len(tabs) == 1 {
		return column + tabs[0] - column%tabs[0]
	}
	for _, t := range tabs {
		if t > column {
			return t
		}
	}
	return column + 1
}

func digitsAsTabs(p *program.Process) {
	args := p.Args[:1:1]
	for _, a := range p.Args[1:] {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789,") == "" {
			a = "-t" + a[1:]
		}
		args = append(args, a)
	}
	p.Args = args
}

func expand(p *program.Process) int {
	digitsAsTabs(p)
	opts, operands := p.Options(1, "it:", "initial i", "tabs= t")
	stops, initial := []int{8}, false
	for _, o := range opts {
		if o.Name == "i" {
			initial = true
		} else if stops = tabs(p, o.Value); len(stops) == 0 {
			stops = []int{8}
		}
	}
	out := p.Out()
	return each(p, operands, func(_ string, in *program.Input) {
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				return
			}
			p.Charge(len(line))
			column, leading := 0, true
			for _, c := range line {
				switch {
				case c == '\t' && (leading || !initial):
					next := stop(stops, column)
					out.WriteString(strings.Repeat(" ", next-column))
					column = next
					continue
				case c == '\b':
					column = max(column-1, 0)
				default:
					column++
				}
				leading = leading && c == ' '
				_ = out.WriteByte(c)
			}
			if ended {
				_ = out.WriteByte('\n')
			}
		}
	})
}

func unexpand(p *program.Process) int {
	digitsAsTabs(p)
	opts, operands := p.Options(1, "at:", "all a", "first-only", "tabs= t")
	stops, all, first := []int{8}, false, false
	for _, o := range opts {
		switch o.Name {
		case "a":
			all = true
		case "first-only":
			first = true
		case "t":
			stops, all = tabs(p, o.Value), true
		}
	}
	if first {
		all = false
	}
	out := p.Out()
	return each(p, operands, func(_ string, in *program.Input) {
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				return
			}
			p.Charge(len(line))
			column, pending, leading := 0, "", true
			for _, c := range line {
				if (c == ' ' || c == '\t') && (all || leading) {
					next := stop(stops, column)
					if c == '\t' {
						pending, column = "", next
						_ = out.WriteByte('\t')
						continue
					}
					pending += " "
					if column++; column == next {
						if len(pending) > 1 || leading && false {
							_ = out.WriteByte('\t')
						} else {
							out.WriteString(pending)
						}
						pending = ""
					}
					continue
				}
				leading = false
				out.WriteString(pending)
				pending = ""
				column++
				_ = out.WriteByte(c)
			}
			out.WriteString(pending)
			if ended {
				_ = out.WriteByte('\n')
			}
		}
	})
}

// split writes pieces of a file into files of their own.
func splitCommand(p *program.Process) int {
	args := p.Args[:1:1]
	for _, a := range p.Args[1:] {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" {
			a = "-l" + a[1:]
		}
		args = append(args, a)
	}
	p.Args = args
	opts, operands := p.Options(1, "l:b:C:n:a:dxe", "lines= l", "bytes= b", "line-bytes= C", "number= n", "suffix-length= a", "numeric-suffixes=?", "hex-suffixes=?",
		"additional-suffix=", "elide-empty-files e", "verbose", "filter=", "separator= t", "unbuffered u")
	perFile, byBytes, chunks, width, extra := int64(1000), false, 0, 2, ""
	digits, from := "abcdefghijklmnopqrstuvwxyz", 0
	byLines := false
	verbose := false
	fixed := false
	for _, o := range opts {
		var err error
		switch o.Name {
		case "l":
			if perFile, err = size(o.Value); err != nil || perFile == 0 {
				p.Errorf("invalid number of lines: %s", quote(o.Value))
				return 1
			}
		case "b":
			byBytes = true
			if perFile, err = size(o.Value); err != nil || perFile == 0 {
				p.Errorf("invalid number of bytes: %s", quote(o.Value))
				return 1
			}
		case "n":
			s := o.Value
			if strings.HasPrefix(s, "l/") {
				byLines, s = true, s[2:]
			}
			if chunks, err = strconv.Atoi(s); err != nil || chunks <= 0 {
				if strings.ContainsAny(s, "r/") {
					p.Lack(program.LackOption, "-n "+o.Value)
				}
				p.Errorf("invalid number of chunks: %s", quote(o.Value))
				return 1
			}
		case "a":
			width = count(p, 1, o.Value, "invalid suffix length")
			fixed = width > 0
			width = max(width, 2)
		case "d", "numeric-suffixes":
			digits = "0123456789"
			from, _ = strconv.Atoi(o.Value)
		case "x", "hex-suffixes":
			digits = "0123456789abcdef"
			v, _ := strconv.ParseInt(o.Value, 16, 32)
			from = int(v)
		case "additional-suffix":
			extra = o.Value
		case "verbose":
			verbose = true
		case "e", "u":
		default:
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option %s is not supported here", o.Name)
			return 1
		}
	}
	name, prefix := "-", "x"
	if len(operands) > 0 {
		name = operands[0]
	}
	if len(operands) > 1 {
		prefix = operands[1]
	}
	in, done, err := input(p, name)
	if err != nil {
		p.Errorf("cannot open %s for reading: %s", quote(name), program.Message(err))
		return 1
	}
	defer done()
	nth := from
	suffix := func() string {
		n, k := nth, len(digits)
		nth++
		w := width
		if !fixed { // where the names run out, they grow, as GNU's do
			limit := 1
			for range w {
				limit *= k
			}
			limit -= limit / k
			if digits[0] == 'a' {
				for n >= limit {
					n -= limit
					w++
					limit *= k
				}
				if w > width {
					lead := strings.Repeat(digits[k-1:], w-width)
					return lead + letters(n, w, digits)
				}
			}
		}
		s := letters(n, w, digits)
		if len(s) > w && fixed {
			p.Errorf("output file suffixes exhausted")
			p.Exit(1)
		}
		return s
	}
	var h *vfs.Handle
	var w *program.Output
	open := func() {
		if w != nil {
			w.Flush()
			_ = p.Close(h)
		}
		path := prefix + suffix() + extra
		if h, w, err = create(p, path); err != nil {
			p.Errorf("%s: %s", path, program.Message(err))
			p.Exit(1)
		}
		if verbose {
			p.Out().Printf("creating file '%s'\n", path)
		}
	}
	switch {
	case chunks > 0:
		data := in.All()
		each := len(data) / chunks
		at := 0
		for i := range chunks {
			end := at + each
			if i+1 == chunks {
				end = len(data)
			}
			if !byLines {
				if i < len(data)%chunks && i+1 < chunks && false {
					end++
				}
			} else {
				end = each * (i + 1)
				if i+1 == chunks {
					end = len(data)
				}
				end = max(end, at)
				if end > at && end < len(data) && data[end-1] != '\n' {
					if k := bytes.IndexByte(data[end:], '\n'); k >= 0 {
						end += k + 1
					} else {
						end = len(data)
					}
				}
			}
			open()
			_, _ = w.Write(data[at:end])
			at = end
		}
	case byBytes:
		left := int64(0)
		for b := in.Chunk(); b != nil; b = in.Chunk() {
			for len(b) > 0 {
				if left == 0 {
					open()
					left = perFile
				}
				n := min(left, int64(len(b)))
				_, _ = w.Write(b[:n])
				b, left = b[n:], left-n
			}
		}
	default:
		left := int64(0)
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				break
			}
			if left == 0 {
				open()
				left = perFile
			}
			_, _ = w.Write(line)
			if ended {
				_ = w.WriteByte('\n')
			}
			left--
		}
	}
	if w != nil {
		w.Flush()
	}
	return 0
}

// letters writes a number in digits of one's own.
func letters(n, width int, digits string) string {
	var b []byte
	for n > 0 || len(b) < width {
		b = append(b, digits[n%len(digits)])
		n /= len(digits)
	}
	slices.Reverse(b)
	return string(b)
}

// shuf writes lines in an order that the execution's seed decides.
func shuf(p *program.Process) int {
	opts, operands := p.Options(1, "ei:n:o:rz", "echo e", "input-range= i", "head-count= n", "output= o", "random-source=", "repeat r", "zero-terminated z")
	limit, repeat, end, echo := -1, false, byte('\n'), false
	output := ""
	var lines []string
	ranged := false
	for _, o := range opts {
		switch o.Name {
		case "e":
			echo = true
		case "i":
			a, b, ok := strings.Cut(o.Value, "-")
			low, err := strconv.Atoi(a)
			high, err2 := strconv.Atoi(b)
			if !ok || err != nil || err2 != nil || low > high+1 {
				p.Errorf("invalid input range: %s", quote(o.Value))
				return 1
			}
			ranged = true
			p.Hold(max(high-low, 0) * 32)
			for i := low; i <= high; i++ {
				p.Charge(20)
				lines = append(lines, strconv.Itoa(i))
			}
		case "n":
			limit = count(p, 1, o.Value, "invalid line count")
		case "o":
			output = o.Value
		case "r":
			repeat = true
		case "z":
			end = 0
		case "random-source": // the seed is the execution's
		}
	}
	switch {
	case echo:
		lines = operands
	case !ranged:
		if code := each(p, operands, func(_ string, in *program.Input) {
			for {
				line, _, ok := in.Line(end)
				if !ok {
					return
				}
				p.Hold(len(line) + 32)
				lines = append(lines, string(line))
			}
		}); code != 0 {
			return code
		}
	}
	out := p.Out()
	if output != "" {
		_, w, err := create(p, output)
		if err != nil {
			p.Errorf("%s: %s", output, program.Message(err))
			return 1
		}
		out = w
		defer w.Flush()
	}
	draw := func(n int) int {
		var b [8]byte
		p.Account.Entropy(b[:])
		v := uint64(0)
		for _, c := range b {
			v = v<<8 | uint64(c)
		}
		return int(v % uint64(n))
	}
	if repeat {
		if len(lines) == 0 {
			p.Errorf("no lines to repeat")
			return 1
		}
		for i := 0; limit < 0 || i < limit; i++ {
			p.Charge(30)
			out.WriteString(lines[draw(len(lines))])
			_ = out.WriteByte(end)
		}
		return 0
	}
	lines = slices.Clone(lines)
	for i := range lines {
		if limit >= 0 && i >= limit {
			break
		}
		p.Charge(30)
		j := i + draw(len(lines)-i)
		lines[i], lines[j] = lines[j], lines[i]
		out.WriteString(lines[i])
		_ = out.WriteByte(end)
	}
	return 0
}

// tsort sorts by pairs of what comes before what.
func tsort(p *program.Process) int {
	_, operands := p.Options(1, "w")
	if len(operands) > 1 {
		p.Errorf("extra operand %s", quote(operands[1]))
		return 1
	}
	var words []string
	name := "-"
	if len(operands) == 1 {
		name = operands[0]
	}
	if code := each(p, operands, func(_ string, in *program.Input) { words = strings.Fields(string(in.All())) }); code != 0 {
		return code
	}
	if len(words)%2 != 0 {
		p.Errorf("%s: input contains an odd number of tokens", name)
		return 1
	}
	p.Charge(len(words) * 50)
	before := map[string]int{}
	after := map[string][]string{}
	var order []string
	see := func(w string) {
		if _, ok := before[w]; !ok {
			before[w] = 0
			order = append(order, w)
		}
	}
	for i := 0; i < len(words); i += 2 {
		a, b := words[i], words[i+1]
		see(a)
		see(b)
		if a != b {
			before[b]++
			after[a] = append(after[a], b)
		}
	}
	slices.Sort(order)
	var ready []string
	for _, w := range order {
		if before[w] == 0 {
			ready = append(ready, w)
		}
	}
	out, left, code := p.Out(), len(order), 0
	done := map[string]bool{}
	for left > 0 {
		if len(ready) == 0 {
			code = 1
			p.Errorf("%s: input contains a loop:", name)
			loop := loopOf(order, after, done)
			for _, w := range loop {
				p.Errorf("%s", w)
			}
			last := loop[len(loop)-1]
			after[last] = slices.DeleteFunc(after[last], func(w string) bool { return w == loop[0] })
			if before[loop[0]]--; before[loop[0]] == 0 {
				ready = append(ready, loop[0])
			}
			continue
		}
		w := ready[0]
		ready = ready[1:]
		out.WriteString(w + "\n")
		done[w] = true
		left--
		p.Charge(20)
		list := after[w]
		for i := len(list) - 1; i >= 0; i-- { // GNU has the last one of a word first
			if before[list[i]]--; before[list[i]] == 0 {
				ready = append(ready, list[i])
			}
		}
	}
	return code
}

// loopOf finds words that wait for each other.
func loopOf(order []string, after map[string][]string, done map[string]bool) []string {
	state := map[string]int{}
	var path, loop []string
	var visit func(w string) bool
	visit = func(w string) bool {
		state[w] = 1
		path = append(path, w)
		for _, x := range after[w] {
			if done[x] || state[x] == 2 {
				continue
			}
			if state[x] == 1 {
				loop = slices.Clone(path[slices.Index(path, x):])
				return true
			}
			if visit(x) {
				return true
			}
		}
		state[w] = 2
		path = path[:len(path)-1]
		return false
	}
	for _, w := range order {
		if !done[w] && state[w] == 0 && visit(w) {
			break
		}
	}
	return loop
}

// csplit cuts a file where lines match.
func csplit(p *program.Process) int {
	opts, operands := p.Options(1, "b:f:kn:sqz", "suffix-format= b", "prefix= f", "keep-files k", "digits= n", "quiet s", "silent s", "elide-empty-files z", "suppress-matched")
	prefix, digits, silent, elide, suppress := "xx", 2, false, false, false
	format := ""
	for _, o := range opts {
		switch o.Name {
		case "b":
			format = o.Value
		case "f":
			prefix = o.Value
		case "n":
			digits = count(p, 1, o.Value, "invalid number")
		case "s", "q":
			silent = true
		case "z":
			elide = true
		case "suppress-matched":
			suppress = true
		}
	}
	if len(operands) < 2 {
		p.Errorf("missing operand")
		return 1
	}
	data, err := whole(p, operands[0])
	if err != nil {
		p.Errorf("cannot open %s for reading: %s", quote(operands[0]), program.Message(err))
		return 1
	}
	all := lines(data)
	at, nth := 0, 0
	out := p.Out()
	write := func(to int) {
		part := bytes.Join(all[at:to], nil)
		at = to
		if len(part) == 0 && elide {
			return
		}
		name := prefix + fmt.Sprintf("%0*d", digits, nth)
		if format != "" {
			v, _, ok := posix.ParseVerb(format[max(strings.IndexByte(format, '%'), 0):], func() int { return 0 })
			if ok {
				i := strings.IndexByte(format, '%')
				_, n, _ := posix.ParseVerb(format[i:], func() int { return 0 })
				name = prefix + format[:i] + string(v.Int(nil, int64(nth))) + format[i+n:]
			}
		}
		nth++
		_, w, err := create(p, name)
		if err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			p.Exit(1)
		}
		_, _ = w.Write(part)
		w.Flush()
		if !silent {
			out.Printf("%d\n", len(part))
		}
	}
	fail := func(pattern string) int {
		p.Errorf("%s: match not found", quote(pattern))
		return 1
	}
	seen := 0 // up to where lines were searched
	for i := 1; i < len(operands); i++ {
		arg := operands[i]
		repeat := 1
		if i+1 < len(operands) && strings.HasPrefix(operands[i+1], "{") && strings.HasSuffix(operands[i+1], "}") {
			r := strings.Trim(operands[i+1], "{}")
			if repeat = 1 << 30; r != "*" {
				repeat = 1 + count(p, 1, r, "invalid repeat count")
			}
			i++
		}
		for range repeat {
			p.Charge(100)
			if arg[0] != '/' && arg[0] != '%' {
				n := count(p, 1, arg, "invalid pattern")
				if n > len(all) {
					p.Errorf("%s: line number out of range", quote(arg))
					return 1
				}
				write(max(n-1, at))
				seen = at
				continue
			}
			end := strings.LastIndexByte(arg, arg[0])
			if end == 0 {
				p.Errorf("%s: closing delimiter '%c' missing", arg, arg[0])
				return 1
			}
			offset, _ := strconv.Atoi(strings.TrimPrefix(arg[end+1:], "+"))
			re := compile(p, 1, arg[1:end], 0)
			found := -1
			for k := seen; k < len(all); k++ {
				ok, err := re.Match(bytes.TrimSuffix(all[k], []byte("\n")))
				check(p, 1, err)
				if ok {
					found = k
					break
				}
			}
			if found < 0 {
				if repeat == 1<<30 {
					break
				}
				return fail(arg)
			}
			to := min(max(found+offset, at), len(all))
			if arg[0] == '%' {
				at = to
			} else {
				write(to)
			}
			seen = found + 1
			if suppress && at < len(all) {
				at++
			}
		}
	}
	write(len(all))
	return 0
}
