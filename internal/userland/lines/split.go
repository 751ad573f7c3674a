package lines

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

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
	opts, operands := p.Options(1, "l:b:C:n:a:dxe", "lines= l", "bytes= b", "line-bytes= C", "number= n", "suffix-length= a",
		"numeric-suffixes=?", "hex-suffixes=?",
		"additional-suffix=", "elide-empty-files e", "verbose", "filter=", "separator= t", "unbuffered u")
	perFile, byBytes, chunks, width, extra := int64(1000), false, 0, 2, ""
	digits, from := "abcdefghijklmnopqrstuvwxyz", 0
	byLines, lineBytes := false, false
	verbose := false
	fixed := false
	for _, o := range opts {
		var err error
		switch o.Name {
		case "l":
			if perFile, err = gnu.ParseSize(o.Value); err != nil || perFile == 0 {
				p.Errorf("invalid number of lines: %s", gnu.Quote(o.Value))
				return 1
			}
		case "b":
			byBytes = true
			if perFile, err = gnu.ParseSize(o.Value); err != nil || perFile == 0 {
				p.Errorf("invalid number of bytes: %s", gnu.Quote(o.Value))
				return 1
			}
		case "C":
			lineBytes = true
			if perFile, err = gnu.ParseSize(o.Value); err != nil || perFile == 0 {
				p.Errorf("invalid number of bytes: %s", gnu.Quote(o.Value))
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
				p.Errorf("invalid number of chunks: %s", gnu.Quote(o.Value))
				return 1
			}
		case "a":
			width = gnu.ParseCount(p, 1, o.Value, "invalid suffix length")
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
	if len(operands) > 2 {
		p.Errorf("extra operand %s", gnu.Quote(operands[2]))
		p.Stderrf("Try 'split --help' for more information.\n")
		return 1
	}
	in, done, err := gnu.OpenInput(p, name)
	if err != nil {
		p.Errorf("cannot open '%s' for reading: %s", name, program.Message(err))
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
		if h, w, err = gnu.Create(p, path); err != nil {
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
	case lineBytes: // lines, as many as fit; one that is longer is cut
		left := int64(0)
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				break
			}
			if ended {
				line = append(bytes.Clone(line), '\n')
			}
			if int64(len(line)) > left && left < perFile {
				left = 0
			}
			for len(line) > 0 {
				if left == 0 {
					open()
					left = perFile
				}
				n := min(left, int64(len(line)))
				_, _ = w.Write(line[:n])
				line, left = line[n:], left-n
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
