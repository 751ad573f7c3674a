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

// splitOptions are what the options of split say.
type splitOptions struct {
	p                                  *program.Process
	perFile                            int64
	byBytes                            bool
	chunks, width                      int
	extra, digits                      string
	from                               int
	byLines, lineBytes, verbose, fixed bool
}

// split writes pieces of a file into files of their own.
func splitCommand(p *program.Process) int {
	opt := &splitOptions{p: p}
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
	opt.perFile, opt.width = int64(1000), 2
	opt.digits = "abcdefghijklmnopqrstuvwxyz"

	for _, o := range opts {
		if code, done := opt.option(o); done {
			return code
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
	nth := opt.from
	suffix := func() string {
		n, k := nth, len(opt.digits)
		nth++
		w := opt.width
		if !opt.fixed { // where the names run out, they grow, as GNU's do
			limit := 1
			for range w {
				limit *= k
			}
			limit -= limit / k
			if opt.digits[0] == 'a' {
				for n >= limit {
					n -= limit
					w++
					limit *= k
				}
				if w > opt.width {
					lead := strings.Repeat(opt.digits[k-1:], w-opt.width)
					return lead + letters(n, w, opt.digits)
				}
			}
		}
		s := letters(n, w, opt.digits)
		if len(s) > w && opt.fixed {
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
		path := prefix + suffix() + opt.extra
		if h, w, err = gnu.Create(p, path); err != nil {
			p.Errorf("%s: %s", path, program.Message(err))
			p.Exit(1)
		}
		if opt.verbose {
			p.Out().Printf("creating file '%s'\n", path)
		}
	}
	switch {
	case opt.chunks > 0:
		opt.intoChunks(in.All(), func(part []byte) {
			open()
			_, _ = w.Write(part)
		})
	case opt.byBytes:
		left := int64(0)
		for b := in.Chunk(); b != nil; b = in.Chunk() {
			for len(b) > 0 {
				if left == 0 {
					open()
					left = opt.perFile
				}
				n := min(left, int64(len(b)))
				_, _ = w.Write(b[:n])
				b, left = b[n:], left-n
			}
		}
	case opt.lineBytes: // lines, as many as fit; one that is longer is cut
		left := int64(0)
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				break
			}
			if ended {
				line = append(bytes.Clone(line), '\n')
			}
			if int64(len(line)) > left && left < opt.perFile {
				left = 0
			}
			for len(line) > 0 {
				if left == 0 {
					open()
					left = opt.perFile
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
				left = opt.perFile
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

// intoChunks cuts data into as many chunks as -n says, at the ends of lines where it says so.
func (opt *splitOptions) intoChunks(data []byte, write func(part []byte)) {
	each := len(data) / opt.chunks
	at := 0
	for i := range opt.chunks {
		end := at + each
		if i+1 == opt.chunks {
			end = len(data)
		}
		if opt.byLines {
			end = each * (i + 1)
			if i+1 == opt.chunks {
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
		write(data[at:end])
		at = end
	}
}

// option takes one option. It returns whether the command ends with that, and the code.
func (opt *splitOptions) option(o program.Option) (code int, done bool) {
	var err error
	switch o.Name {
	case "l":
		if opt.perFile, err = gnu.ParseSize(o.Value); err != nil || opt.perFile == 0 {
			opt.p.Errorf("invalid number of lines: %s", gnu.Quote(o.Value))
			return 1, true
		}
	case "b":
		opt.byBytes = true
		if opt.perFile, err = gnu.ParseSize(o.Value); err != nil || opt.perFile == 0 {
			opt.p.Errorf("invalid number of bytes: %s", gnu.Quote(o.Value))
			return 1, true
		}
	case "C":
		opt.lineBytes = true
		if opt.perFile, err = gnu.ParseSize(o.Value); err != nil || opt.perFile == 0 {
			opt.p.Errorf("invalid number of bytes: %s", gnu.Quote(o.Value))
			return 1, true
		}
	case "n":
		s := o.Value
		if strings.HasPrefix(s, "l/") {
			opt.byLines, s = true, s[2:]
		}
		if opt.chunks, err = strconv.Atoi(s); err != nil || opt.chunks <= 0 {
			if strings.ContainsAny(s, "r/") {
				opt.p.Lack(program.LackOption, "-n "+o.Value)
			}
			opt.p.Errorf("invalid number of chunks: %s", gnu.Quote(o.Value))
			return 1, true
		}
	case "a":
		opt.width = gnu.ParseCount(opt.p, 1, o.Value, "invalid suffix length")
		opt.fixed = opt.width > 0
		opt.width = max(opt.width, 2)
	case "d", "numeric-suffixes":
		opt.digits = "0123456789"
		opt.from, _ = strconv.Atoi(o.Value)
	case "x", "hex-suffixes":
		opt.digits = "0123456789abcdef"
		v, _ := strconv.ParseInt(o.Value, 16, 32)
		opt.from = int(v)
	case "additional-suffix":
		opt.extra = o.Value
	case "verbose":
		opt.verbose = true
	case "e", "u":
	default:
		opt.p.Lack(program.LackOption, "-"+o.Name)
		opt.p.Errorf("the option %s is not supported here", o.Name)
		return 1, true
	}
	return 0, false
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
