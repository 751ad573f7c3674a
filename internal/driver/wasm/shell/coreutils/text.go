package coreutils

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// obsolete writes an option like -5 as -n 5.
func obsolete(p *program.Process) {
	if len(p.Args) < 2 {
		return
	}
	a := p.Args[1]
	if len(a) > 1 && (a[0] == '-') && a[1] >= '0' && a[1] <= '9' {
		digits := strings.TrimLeft(a[1:], "0123456789")
		n := a[1 : len(a)-len(digits)]
		args := []string{p.Args[0], "-n", n}
		if strings.HasPrefix(digits, "c") {
			args[1], digits = "-c", digits[1:]
		} else {
			digits = strings.TrimPrefix(digits, "l")
		}
		if digits != "" {
			args = append(args, "-"+digits)
		}
		p.Args = append(args, p.Args[2:]...)
	}
}

func head(p *program.Process) int {
	obsolete(p)
	opts, files := p.Options(1, "c:n:qvz", "bytes c", "lines n", "quiet q", "silent q", "verbose v", "zero-terminated z")
	count, byBytes, allBut, quiet, verbose, delim := int64(10), false, false, false, false, byte('\n')
	for _, o := range opts {
		switch o.Name {
		case "c", "n":
			byBytes = o.Name == "c"
			digits, but := strings.CutPrefix(o.Value, "-")
			n, ok := suffixed(strings.TrimPrefix(digits, "+"))
			if !ok {
				kind := "lines"
				if byBytes {
					kind = "bytes"
				}
				p.Errorf("invalid number of %s: ‘%s’", kind, o.Value)
				return 1
			}
			count, allBut = n, but
		case "q":
			quiet, verbose = true, false
		case "v":
			verbose, quiet = true, false
		case "z":
			delim = 0
		}
	}
	status := 0
	show := headers(p, files, quiet, verbose)
	for i, name := range orStdin(files) {
		in := openFor(p, name)
		if in == nil {
			status = 1
			continue
		}
		show(i, name)
		switch {
		case allBut && byBytes:
			all := in.All()
			_, _ = p.Out().Write(all[:max(int64(len(all))-count, 0)])
		case allBut:
			var kept [][]byte
			var ends []bool
			for {
				line, end, ok := in.Line(delim)
				if !ok {
					break
				}
				p.Hold(len(line) + 32)
				kept, ends = append(kept, bytes.Clone(line)), append(ends, end)
				if int64(len(kept)) > count {
					writeLine(p.Out(), kept[0], delim, ends[0])
					p.Drop(len(kept[0]) + 32)
					kept, ends = kept[1:], ends[1:]
				}
			}
		case byBytes:
			for left := count; left > 0; {
				chunk := in.Chunk()
				if chunk == nil {
					break
				}
				p.Charge(len(chunk) / 8)
				if int64(len(chunk)) > left {
					chunk = chunk[:left]
				}
				_, _ = p.Out().Write(chunk)
				left -= int64(len(chunk))
			}
		default:
			for range count {
				line, end, ok := in.Line(delim)
				if !ok {
					break
				}
				writeLine(p.Out(), line, delim, end)
			}
			in.Unread()
		}
		if err := in.Err(); err != nil {
			p.Errorf("error reading %s: %s", quoteName(stdinName(name)), program.Message(err))
			status = 1
		}
	}
	return status
}

func writeLine(out *program.Output, line []byte, delim byte, end bool) {
	_, _ = out.Write(line)
	if end {
		_ = out.WriteByte(delim)
	}
}

func orStdin(files []string) []string {
	if len(files) == 0 {
		return []string{"-"}
	}
	return files
}

func stdinName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// openFor opens an operand of head and tail.
func openFor(p *program.Process, name string) *program.Input {
	if name == "-" {
		return p.Reader(p.Stdin)
	}
	h, err := p.Open(name, vfs.Read)
	if err != nil {
		p.Errorf("cannot open %s for reading: %s", quoteName(name), program.Message(err))
		return nil
	}
	return p.Reader(h)
}

// headers returns what prints the name of a file before its part.
func headers(p *program.Process, files []string, quiet, verbose bool) func(i int, name string) {
	first := true
	return func(_ int, name string) {
		if (len(files) > 1 || verbose) && !quiet {
			if !first {
				_ = p.Out().WriteByte('\n')
			}
			p.Out().Printf("==> %s <==\n", stdinName(name))
		}
		first = false
	}
}

func tail(p *program.Process) int {
	obsolete(p)
	if len(p.Args) > 1 && len(p.Args[1]) > 1 && p.Args[1][0] == '+' && p.Args[1][1] >= '0' && p.Args[1][1] <= '9' {
		p.Args = append([]string{p.Args[0], "-n", p.Args[1]}, p.Args[2:]...)
	}
	opts, files := p.Options(1, "c:n:qvzfFs:", "bytes c", "lines n", "quiet q", "silent q", "verbose v", "zero-terminated z", "follow=?", "pid=", "retry", "sleep-interval s")
	count, byBytes, from, quiet, verbose, delim := int64(10), false, false, false, false, byte('\n')
	for _, o := range opts {
		switch o.Name {
		case "c", "n":
			byBytes = o.Name == "c"
			digits, plus := strings.CutPrefix(o.Value, "+")
			n, ok := suffixed(strings.TrimPrefix(digits, "-"))
			if !ok {
				kind := "lines"
				if byBytes {
					kind = "bytes"
				}
				p.Errorf("invalid number of %s: ‘%s’", kind, o.Value)
				return 1
			}
			count, from = n, plus
		case "q":
			quiet, verbose = true, false
		case "v":
			verbose, quiet = true, false
		case "z":
			delim = 0
		case "f", "F", "follow":
			p.Lack(program.LackOption, "-f")
			p.Errorf("following a file is not supported in a nano space: nothing else writes it")
			return 1
		}
	}
	status := 0
	show := headers(p, files, quiet, verbose)
	for i, name := range orStdin(files) {
		in := openFor(p, name)
		if in == nil {
			status = 1
			continue
		}
		show(i, name)
		switch {
		case from && byBytes:
			skip := max(count-1, 0)
			for {
				chunk := in.Chunk()
				if chunk == nil {
					break
				}
				p.Charge(len(chunk) / 8)
				n := min(skip, int64(len(chunk)))
				skip -= n
				_, _ = p.Out().Write(chunk[n:])
			}
		case from:
			for n := int64(1); ; n++ {
				line, end, ok := in.Line(delim)
				if !ok {
					break
				}
				if n >= count {
					writeLine(p.Out(), line, delim, end)
				}
			}
		case byBytes:
			var kept []byte
			for {
				chunk := in.Chunk()
				if chunk == nil {
					break
				}
				p.Charge(len(chunk) / 8)
				p.Hold(len(chunk))
				kept = append(kept, chunk...)
				if over := int64(len(kept)) - count; over > 1<<16 {
					kept = append([]byte(nil), kept[over:]...)
					p.Drop(int(over))
				}
			}
			_, _ = p.Out().Write(kept[max(int64(len(kept))-count, 0):])
			p.Drop(len(kept))
		default:
			lastLines(p, in, count, delim)
		}
		if err := in.Err(); err != nil {
			p.Errorf("error reading %s: %s", quoteName(stdinName(name)), program.Message(err))
			status = 1
		}
	}
	return status
}

// lastLines prints the last lines of an input, keeping no more of them.
func lastLines(p *program.Process, in *program.Input, count int64, delim byte) {
	if count == 0 {
		for in.Chunk() != nil {
			p.Charge(100)
		}
		return
	}
	var ring [][]byte
	at, last := 0, true
	for {
		line, end, ok := in.Line(delim)
		if !ok {
			break
		}
		last = end
		p.Hold(len(line) + 32)
		kept := bytes.Clone(line)
		if int64(len(ring)) < count {
			ring = append(ring, kept)
			continue
		}
		p.Drop(len(ring[at]) + 32)
		ring[at] = kept
		at = (at + 1) % len(ring)
	}
	for i := range ring {
		line := ring[(at+i)%len(ring)]
		writeLine(p.Out(), line, delim, i+1 < len(ring) || last)
		p.Drop(len(line) + 32)
	}
}

type counts struct{ lines, words, chars, bytes, longest int64 }

func wc(p *program.Process) int {
	opts, files := p.Options(1, "clmwL", "bytes c", "lines l", "chars m", "words w", "max-line-length L", "files0-from=", "total=")
	lines, words, chars, size, longest := false, false, false, false, false
	for _, o := range opts {
		switch o.Name {
		case "c":
			size = true
		case "l":
			lines = true
		case "m":
			chars = true
		case "w":
			words = true
		case "L":
			longest = true
		default:
			p.Lack(program.LackOption, "--"+o.Name)
			usage(p, 1, "option '--%s' is not supported in a nano space", o.Name)
		}
	}
	if !lines && !words && !chars && !size && !longest {
		lines, words, size = true, true, true
	}
	status := 0
	var all []counts
	var total counts
	var opened []bool
	sizes := int64(0)
	for _, name := range orStdin(files) {
		var c counts
		in := input(p, name)
		if in != nil {
			c = count(p, in, words || chars || longest)
			if h := in.Handle(); h != nil && h.Kind() == vfs.Regular {
				sizes += h.Info().Size
			} else {
				sizes = math.MinInt64
			}
		}
		if in == nil || !ended(p, quoteIfNeeded(name), in) {
			status = 1
		}
		opened = append(opened, in != nil)
		all = append(all, c)
		total = counts{total.lines + c.lines, total.words + c.words, total.chars + c.chars, total.bytes + c.bytes, max(total.longest, c.longest)}
	}
	columns := 0
	for _, on := range []bool{lines, words, chars, size, longest} {
		if on {
			columns++
		}
	}
	width := len(strconv.FormatInt(max(sizes, 0), 10))
	if sizes < 0 {
		width = 7
	}
	if columns == 1 && len(all) == 1 {
		width = 1
	}
	print := func(c counts, name string) {
		first := true
		for _, column := range []struct {
			on bool
			n  int64
		}{{lines, c.lines}, {words, c.words}, {chars, c.chars}, {size, c.bytes}, {longest, c.longest}} {
			if column.on {
				if !first {
					_ = p.Out().WriteByte(' ')
				}
				first = false
				p.Out().Printf("%*d", width, column.n)
			}
		}
		if name != "" {
			p.Out().Printf(" %s", quoteIfNeededNewline(name))
		}
		_ = p.Out().WriteByte('\n')
	}
	for i, c := range all {
		if !opened[i] {
			continue
		}
		name := ""
		if len(files) > 0 {
			name = files[i]
		}
		print(c, name)
	}
	if len(files) > 1 {
		print(total, "total")
	}
	return status
}

func quoteIfNeededNewline(s string) string {
	if strings.Contains(s, "\n") {
		return quoteName(s)
	}
	return s
}

// count counts an input.
func count(p *program.Process, in *program.Input, text bool) counts {
	var c counts
	word, column := false, int64(0)
	var tail []byte
	for {
		chunk := in.Chunk()
		if chunk == nil {
			break
		}
		c.bytes += int64(len(chunk))
		c.lines += int64(bytes.Count(chunk, []byte{'\n'}))
		if !text {
			p.Charge(10 + len(chunk)/16)
			continue
		}
		p.Charge(10 + len(chunk)*2)
		if len(tail) > 0 {
			chunk = append(tail, chunk...)
			tail = nil
		}
		for i := 0; i < len(chunk); {
			r, size := rune(chunk[i]), 1
			if r >= utf8.RuneSelf {
				if !utf8.FullRune(chunk[i:]) {
					tail = bytes.Clone(chunk[i:])
					break
				}
				r, size = utf8.DecodeRune(chunk[i:])
			}
			i += size
			if r != utf8.RuneError || size > 1 {
				c.chars++
			}
			switch {
			case r == '\n', r == '\r', r == '\f':
				c.longest = max(c.longest, column)
				column = 0
				word = false
			case r == '\t':
				column = column/8*8 + 8
				word = false
			case r == ' ', r == '\v', r == 0xa0, r == 0x2003, r == 0x3000:
				column++
				word = false
			default:
				if r >= 32 && r != 127 {
					column++
				}
				if !word {
					c.words++
					word = true
				}
			}
		}
	}
	c.longest = max(c.longest, column)
	return c
}

func uniq(p *program.Process) int {
	opts, files := p.Options(1, "cdDuif:s:w:z", "count c", "repeated d", "all-repeated=?", "unique u", "ignore-case i", "skip-fields f", "skip-chars s", "check-chars w", "zero-terminated z", "group=?")
	counting, repeated, unique, fold, all := false, false, false, false, false
	skipFields, skipChars, check, delim := 0, 0, -1, byte('\n')
	number := func(s, what string) int {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			p.Errorf("%s: invalid number of %s", s, what)
			p.Exit(1)
		}
		return n
	}
	for _, o := range opts {
		switch o.Name {
		case "c":
			counting = true
		case "d":
			repeated = true
		case "D", "all-repeated":
			all, repeated = true, true
		case "u":
			unique = true
		case "i":
			fold = true
		case "f":
			skipFields = number(o.Value, "fields to skip")
		case "s":
			skipChars = number(o.Value, "bytes to skip")
		case "w":
			check = number(o.Value, "bytes to compare")
		case "z":
			delim = 0
		default:
			p.Lack(program.LackOption, "--"+o.Name)
			usage(p, 1, "option '--%s' is not supported in a nano space", o.Name)
		}
	}
	if len(files) > 2 {
		usage(p, 1, "extra operand ‘%s’", files[2])
	}
	name := "-"
	if len(files) > 0 {
		name = files[0]
	}
	in := input(p, name)
	if in == nil {
		return 1
	}
	out := p.Out()
	if len(files) > 1 && files[1] != "-" {
		h, err := p.Open(files[1], vfs.Write|vfs.Create|vfs.Truncate)
		if err != nil {
			p.Errorf("%s: %s", files[1], program.Message(err))
			return 1
		}
		out = p.Writer(h)
	}
	key := func(line []byte) []byte {
		for range skipFields {
			line = bytes.TrimLeft(line, " \t")
			i := bytes.IndexAny(line, " \t")
			if i < 0 {
				i = len(line)
			}
			line = line[i:]
		}
		line = line[min(skipChars, len(line)):]
		if check >= 0 {
			line = line[:min(check, len(line))]
		}
		return line
	}
	var previous []byte
	n := 0
	emit := func() {
		switch {
		case n == 0, repeated && n < 2, unique && n > 1, all:
			return
		case counting:
			out.Printf("%7d %s%c", n, previous, delim)
		default:
			writeLine(out, previous, delim, true)
		}
	}
	for {
		line, _, ok := in.Line(delim)
		if !ok {
			break
		}
		p.Charge(len(line) / 4)
		same := n > 0 && bytes.Equal(key(line), key(previous))
		if fold && n > 0 {
			same = bytes.EqualFold(key(line), key(previous))
		}
		if same {
			if n++; all && !unique {
				if n == 2 {
					writeLine(out, previous, delim, true)
				}
				writeLine(out, line, delim, true)
			}
			continue
		}
		emit()
		n = 1
		previous = append(previous[:0], line...)
	}
	emit()
	out.Flush()
	if !ended(p, name, in) {
		return 1
	}
	return 0
}

// span is a range of positions, from 1.
type span struct{ from, to int }

// ranges reads the list of cut.
func ranges(p *program.Process, list, kind string) []span {
	var all []span
	bad := func(s string) {
		if kind == "field" {
			usage(p, 1, "invalid field value ‘%s’", s)
		}
		usage(p, 1, "invalid byte/character position ‘%s’", s)
	}
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		a, b, dash := strings.Cut(item, "-")
		s := span{1, math.MaxInt}
		var err error
		if a != "" {
			if s.from, err = strconv.Atoi(a); err != nil {
				bad(item)
			}
		}
		switch {
		case !dash:
			s.to = s.from
		case b != "":
			if s.to, err = strconv.Atoi(b); err != nil {
				bad(item)
			}
		case a == "":
			usage(p, 1, "invalid range with no endpoint: -")
		}
		if s.from < 1 || s.to < 1 {
			if kind == "field" {
				usage(p, 1, "fields are numbered from 1")
			}
			usage(p, 1, "byte/character positions are numbered from 1")
		}
		if s.to < s.from {
			usage(p, 1, "invalid decreasing range")
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		bad(list)
	}
	return all
}

func cut(p *program.Process) int {
	opts, files := p.Options(1, "b:c:d:f:nsz", "bytes b", "characters c", "delimiter d", "fields f", "only-delimited s", "zero-terminated z", "complement", "output-delimiter=")
	var list []span
	kind, delim, only, complement, end := "", "\t", false, false, byte('\n')
	output, hasOutput := "", false
	delimited := false
	for _, o := range opts {
		switch o.Name {
		case "b", "c", "f":
			if kind != "" {
				usage(p, 1, "only one list may be specified")
			}
			kind = map[string]string{"b": "byte", "c": "byte", "f": "field"}[o.Name]
			list = ranges(p, o.Value, kind)
		case "d":
			if len(o.Value) > 1 {
				usage(p, 1, "the delimiter must be a single character")
			}
			delim, delimited = o.Value, true
			if delim == "" {
				delim = "\x00"
			}
		case "s":
			only = true
		case "z":
			end = 0
		case "complement":
			complement = true
		case "output-delimiter":
			output, hasOutput = o.Value, true
		}
	}
	if kind == "" {
		usage(p, 1, "you must specify a list of bytes, characters, or fields")
	}
	if kind != "field" && delimited {
		usage(p, 1, "an input delimiter may be specified only when operating on fields")
	}
	if kind != "field" && only {
		usage(p, 1, "suppressing non-delimited lines makes sense\n\tonly when operating on fields")
	}
	if !hasOutput && kind == "field" {
		output = delim
	}
	in := func(n int) bool {
		for _, s := range list {
			if s.from <= n && n <= s.to {
				return !complement
			}
		}
		return complement
	}
	status, out := 0, p.Out()
	for _, name := range orStdin(files) {
		r := input(p, name)
		if r == nil {
			status = 1
			continue
		}
		for {
			line, _, ok := r.Line(end)
			if !ok {
				break
			}
			p.Charge(10 + len(line)*len(list)/2)
			if kind == "byte" {
				joined := false
				for i := 0; i < len(line); i++ {
					if !in(i + 1) {
						joined = i > 0 && joined
						continue
					}
					begin := i
					for i+1 < len(line) && in(i+2) && (!hasOutput || sameRange(list, i+1, i+2, complement)) {
						i++
					}
					if joined && hasOutput {
						_, _ = out.WriteString(output)
					}
					_, _ = out.Write(line[begin : i+1])
					joined = true
				}
				_ = out.WriteByte(end)
				continue
			}
			if bytes.IndexByte(line, delim[0]) < 0 {
				if !only {
					writeLine(out, line, end, true)
				}
				continue
			}
			first := true
			for n := 1; ; n++ {
				field, rest, more := bytes.Cut(line, []byte(delim))
				if in(n) {
					if !first {
						_, _ = out.WriteString(output)
					}
					first = false
					_, _ = out.Write(field)
				}
				if !more {
					break
				}
				line = rest
			}
			_ = out.WriteByte(end)
		}
		if !ended(p, name, r) {
			status = 1
		}
	}
	return status
}

func sameRange(list []span, a, b int, complement bool) bool {
	if complement {
		return true
	}
	for _, s := range list {
		if s.from <= a && b <= s.to {
			return true
		}
	}
	return false
}

func seq(p *program.Process) int {
	// A negative number is no option.
	opts := []program.Option{}
	args := p.Args[1:]
	separator, format, equal := "\n", "", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && !(args[0][1] >= '0' && args[0][1] <= '9' || args[0][1] == '.') {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		value := func(short, long string) (string, bool) {
			switch {
			case a == short || a == long:
				if len(args) == 0 {
					usage(p, 1, "option requires an argument -- '%s'", short[1:])
				}
				v := args[0]
				args = args[1:]
				return v, true
			case strings.HasPrefix(a, long+"="):
				return a[len(long)+1:], true
			case strings.HasPrefix(a, short) && !strings.HasPrefix(a, "--"):
				return a[2:], true
			}
			return "", false
		}
		if v, ok := value("-s", "--separator"); ok {
			separator = v
		} else if v, ok := value("-f", "--format"); ok {
			format = v
		} else if a == "-w" || a == "--equal-width" {
			equal = true
		} else {
			p.Args = append([]string{p.Args[0]}, a)
			opts, _ = p.Options(1, "")
		}
	}
	_ = opts
	if len(args) == 0 {
		usage(p, 1, "missing operand")
	}
	if len(args) > 3 {
		usage(p, 1, "extra operand ‘%s’", args[3])
	}
	nums := make([]float64, len(args))
	decimals, whole := 0, true
	for i, a := range args {
		n, err := strconv.ParseFloat(a, 64)
		if err != nil {
			usage(p, 1, "invalid floating point argument: ‘%s’", a)
		}
		nums[i] = n
		if dot := strings.IndexByte(a, '.'); dot >= 0 && i != len(args)-1 || dot >= 0 && len(args) == 1 {
			decimals = max(decimals, len(a)-dot-1)
			whole = false
		}
		if strings.ContainsAny(a, ".eE") {
			whole = false
		}
	}
	first, step, last := 1.0, 1.0, nums[len(nums)-1]
	if len(nums) > 1 {
		first = nums[0]
	}
	if len(nums) == 3 {
		if step = nums[1]; step == 0 {
			usage(p, 1, "invalid Zero increment value: ‘%s’", args[1])
		}
	}
	if len(args) == 1 {
		decimals = 0
	}
	width := 0
	text := func(x float64) string {
		if format != "" {
			return fmt.Sprintf(format, x)
		}
		s := strconv.FormatFloat(x, 'f', decimals, 64)
		if equal && len(s) < width {
			if s[0] == '-' {
				return "-" + strings.Repeat("0", width-len(s)) + s[1:]
			}
			return strings.Repeat("0", width-len(s)) + s
		}
		return s
	}
	if equal && format == "" {
		end := first + math.Floor((last-first)/step)*step
		width = max(len(text(first)), len(text(end)))
		if len(args) > 0 {
			width = max(width, len(strconv.FormatFloat(last, 'f', decimals, 64)))
		}
	}
	if format != "" && !strings.Contains(format, "%") {
		p.Errorf("format ‘%s’ has no %% directive", format)
		return 1
	}
	out := p.Out()
	printed := false
	put := func(s string) {
		p.Charge(20)
		if printed {
			_, _ = out.WriteString(separator)
		}
		printed = true
		_, _ = out.WriteString(s)
	}
	if whole && format == "" && math.Abs(first) < 1<<52 && math.Abs(last) < 1<<52 {
		a, d, b := int64(first), int64(step), int64(last)
		for n := a; d > 0 && n <= b || d < 0 && n >= b; n += d {
			if equal {
				put(text(float64(n)))
			} else {
				put(strconv.FormatInt(n, 10))
			}
		}
	} else {
		for i := 0.0; ; i++ {
			x := first + i*step
			if step > 0 && x > last+step*1e-10 || step < 0 && x < last+step*1e-10 || math.IsNaN(x) {
				break
			}
			put(text(x))
		}
	}
	if printed {
		_ = out.WriteByte('\n')
	}
	return 0
}

func yes(p *program.Process) int {
	_, words := p.Options(1, "+")
	line := strings.Join(words, " ") + "\n"
	if len(words) == 0 {
		line = "y\n"
	}
	block := []byte(strings.Repeat(line, max(4096/len(line), 1)))
	for {
		p.Charge(len(block))
		_, _ = p.Out().Write(block)
	}
}

func tee(p *program.Process) int {
	opts, files := p.Options(1, "aip", "append a", "ignore-interrupts i", "output-error=?")
	flags := vfs.Write | vfs.Create | vfs.Truncate
	for _, o := range opts {
		if o.Name == "a" {
			flags = vfs.Write | vfs.Create | vfs.Append
		}
	}
	status := 0
	type target struct {
		name string
		h    *vfs.Handle
	}
	var targets []target
	for _, name := range files {
		if name == "-" {
			continue
		}
		h, err := p.Open(name, flags)
		if err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			status = 1
			continue
		}
		targets = append(targets, target{name, h})
	}
	in := p.Reader(p.Stdin)
	for {
		chunk := in.Chunk()
		if chunk == nil {
			break
		}
		p.Charge(10 + len(chunk)/8)
		_, _ = p.Out().Write(chunk)
		p.Out().Flush()
		for i, t := range targets {
			if t.h == nil {
				continue
			}
			if _, err := t.h.Write(chunk); err != nil {
				p.Check(err)
				p.Errorf("%s: %s", t.name, program.Message(err))
				targets[i].h, status = nil, 1
			}
		}
	}
	if err := in.Err(); err != nil {
		p.Errorf("read error: %s", program.Message(err))
		return 1
	}
	return status
}

var _ io.Reader = (*program.Input)(nil)
