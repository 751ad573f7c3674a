package text

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

type counts struct{ lines, words, chars, bytes, longest int64 }

// wcOptions are what the options of wc say.
type wcOptions struct {
	p                                  *program.Process
	lines, words, chars, size, longest bool
	list, totals                       string
}

func wc(p *program.Process) int {
	opt := &wcOptions{p: p}
	opts, files := p.Options(1, "clmwL", "bytes c", "lines l", "chars m", "words w", "max-line-length L", "files0-from=", "total=")

	opt.totals = "auto"
	for _, o := range opts {
		if code, done := opt.option(o); done {
			return code
		}
	}
	if !opt.lines && !opt.words && !opt.chars && !opt.size && !opt.longest {
		opt.lines, opt.words, opt.size = true, true, true
	}
	status, wrong, inputs := 0, 0, gnu.OrStdin(files)
	if opt.list != "" {
		if files, wrong = p.NamesFrom(1, opt.list, files); wrong > 0 {
			status = 1
		}
		inputs = files
	}
	var all []counts
	var total counts
	var opened []bool
	sizes := int64(0)
	for _, name := range inputs {
		var c counts
		in := gnu.OpenOrTell(p, name)
		if in != nil {
			c = count(p, in, opt.words || opt.chars || opt.longest)
			if h := in.Handle(); h != nil && h.Kind() == vfs.Regular {
				sizes += h.Info().Size
			} else {
				sizes = math.MinInt64
			}
		}
		if in == nil || !gnu.EndedWell(p, gnu.QuoteIfNeeded(name), in) {
			status = 1
		}
		opened = append(opened, in != nil)
		all = append(all, c)
		total = counts{total.lines + c.lines, total.words + c.words, total.chars + c.chars, total.bytes + c.bytes, max(total.longest, c.longest)}
	}
	columns := 0
	for _, on := range []bool{opt.lines, opt.words, opt.chars, opt.size, opt.longest} {
		if on {
			columns++
		}
	}
	width := len(strconv.FormatInt(max(sizes, 0), 10))
	if sizes < 0 {
		width = 7
	}
	if columns == 1 && len(all) == 1 || opt.list != "" && opt.list != "-" && len(all) == 0 {
		width = 1
	}
	print := func(c counts, name string) {
		first := true
		for _, column := range []struct {
			on bool
			n  int64
		}{{opt.lines, c.lines}, {opt.words, c.words}, {opt.chars, c.chars}, {opt.size, c.bytes}, {opt.longest, c.longest}} {
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
		if !opened[i] || opt.totals == "only" {
			continue
		}
		name := ""
		if len(files) > 0 {
			name = files[i]
		}
		print(c, name)
	}
	switch {
	case opt.totals == "only":
		width = 1
		print(total, "")
	case opt.totals == "always", opt.totals == "auto" && len(files)+wrong > 1:
		print(total, "total")
	}
	return status
}

// option takes one option. It returns whether the command ends with that, and the code.
func (opt *wcOptions) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "c":
		opt.size = true
	case "l":
		opt.lines = true
	case "m":
		opt.chars = true
	case "w":
		opt.words = true
	case "L":
		opt.longest = true
	case "files0-from":
		opt.list = o.Value
	case "total":
		opt.totals = ""
		for _, word := range []string{"auto", "always", "only", "never"} {
			if o.Value != "" && strings.HasPrefix(word, o.Value) {
				opt.totals = word
				break
			}
		}
		if opt.totals == "" {
			opt.p.Errorf("invalid argument ‘%s’ for ‘--total’", o.Value)
			opt.p.Stderrf("Valid arguments are:\n  - ‘auto’\n  - ‘always’\n  - ‘only’\n  - ‘never’\nTry '%s --help' for more information.\n",
				opt.p.Name())
			return 1, true
		}
	default:
		opt.p.Lack(program.LackOption, "--"+o.Name)
		gnu.FailUsage(opt.p, 1, "option '--%s' is not supported in a nano space", o.Name)
	}
	return 0, false
}

func quoteIfNeededNewline(s string) string {
	if strings.Contains(s, "\n") {
		return gnu.QuoteName(s)
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
