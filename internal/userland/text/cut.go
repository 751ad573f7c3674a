package text

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// span is a range of positions, from 1.
type span struct{ from, to int }

// ranges reads the list of cut.
func ranges(p *program.Process, list, kind string) []span {
	var all []span
	bad := func(s string) {
		if kind == "field" {
			gnu.FailUsage(p, 1, "invalid field value ‘%s’", s)
		}
		gnu.FailUsage(p, 1, "invalid byte/character position ‘%s’", s)
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
			gnu.FailUsage(p, 1, "invalid range with no endpoint: -")
		}
		if s.from < 1 || s.to < 1 {
			if kind == "field" {
				gnu.FailUsage(p, 1, "fields are numbered from 1")
			}
			gnu.FailUsage(p, 1, "byte/character positions are numbered from 1")
		}
		if s.to < s.from {
			gnu.FailUsage(p, 1, "invalid decreasing range")
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		bad(list)
	}
	return all
}

// cutOptions are what the options of cut say.
type cutOptions struct {
	p                    *program.Process
	list                 []span
	kind, delim          string
	only, complement     bool
	end                  byte
	output               string
	hasOutput, delimited bool
}

func cut(p *program.Process) int {
	opt := &cutOptions{p: p}
	opts, files := p.Options(1, "b:c:d:f:nsz", "bytes b", "characters c", "delimiter d", "fields f", "only-delimited s", "zero-terminated z",
		"complement", "output-delimiter=")

	opt.delim, opt.end = "\t", byte('\n')

	for _, o := range opts {
		if code, done := opt.option(o); done {
			return code
		}
	}
	if opt.kind == "" {
		gnu.FailUsage(p, 1, "you must specify a list of bytes, characters, or fields")
	}
	if opt.kind != "field" && opt.delimited {
		gnu.FailUsage(p, 1, "an input delimiter may be specified only when operating on fields")
	}
	if opt.kind != "field" && opt.only {
		gnu.FailUsage(p, 1, "suppressing non-delimited lines makes sense\n\tonly when operating on fields")
	}
	if !opt.hasOutput && opt.kind == "field" {
		opt.output = opt.delim
	}
	in := func(n int) bool {
		for _, s := range opt.list {
			if s.from <= n && n <= s.to {
				return !opt.complement
			}
		}
		return opt.complement
	}
	status, out := 0, p.Out()
	for _, name := range gnu.OrStdin(files) {
		r := gnu.OpenOrTell(p, name)
		if r == nil {
			status = 1
			continue
		}
		if opt.kind == "field" && opt.delim[0] == opt.end {
			lines(p, r, opt.end, opt.output, opt.only, in)
		}
		for opt.kind != "field" || opt.delim[0] != opt.end {
			line, _, ok := r.Line(opt.end)
			if !ok {
				break
			}
			p.Charge(10 + len(line)*len(opt.list)/2)
			if opt.kind == "byte" {
				joined := false
				for i := 0; i < len(line); i++ {
					if !in(i + 1) {
						joined = i > 0 && joined
						continue
					}
					begin := i
					for i+1 < len(line) && in(i+2) && (!opt.hasOutput || sameRange(opt.list, i+1, i+2, opt.complement)) {
						i++
					}
					if joined && opt.hasOutput {
						_, _ = out.WriteString(opt.output)
					}
					_, _ = out.Write(line[begin : i+1])
					joined = true
				}
				_ = out.WriteByte(opt.end)
				continue
			}
			if bytes.IndexByte(line, opt.delim[0]) < 0 {
				if !opt.only {
					gnu.WriteLine(out, line, opt.end, true)
				}
				continue
			}
			first := true
			for n := 1; ; n++ {
				field, rest, more := bytes.Cut(line, []byte(opt.delim))
				if in(n) {
					if !first {
						_, _ = out.WriteString(opt.output)
					}
					first = false
					_, _ = out.Write(field)
				}
				if !more {
					break
				}
				line = rest
			}
			_ = out.WriteByte(opt.end)
		}
		if !gnu.EndedWell(p, name, r) {
			status = 1
		}
	}
	return status
}

// option takes one option. It returns whether the command ends with that, and the code.
func (opt *cutOptions) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "b", "c", "f":
		if opt.kind != "" {
			gnu.FailUsage(opt.p, 1, "only one list may be specified")
		}
		opt.kind = map[string]string{"b": "byte", "c": "byte", "f": "field"}[o.Name]
		opt.list = ranges(opt.p, o.Value, opt.kind)
	case "d":
		if len(o.Value) > 1 {
			gnu.FailUsage(opt.p, 1, "the delimiter must be a single character")
		}
		opt.delim, opt.delimited = o.Value, true
		if opt.delim == "" {
			opt.delim = "\x00"
		}
	case "s":
		opt.only = true
	case "z":
		opt.end = 0
	case "complement":
		opt.complement = true
	case "output-delimiter":
		if opt.output, opt.hasOutput = o.Value, true; opt.output == "" {
			opt.output = "\x00"
		}
	}
	return 0, false
}

// lines cuts where the fields are the lines of an input.
func lines(p *program.Process, r *program.Input, end byte, output string, only bool, in func(int) bool) {
	out, shown := p.Out(), false
	var first []byte
	n := 1
	for ; ; n++ {
		line, _, ok := r.Line(end)
		if !ok {
			break
		}
		p.Charge(20)
		if n == 1 { // which is not a field where it is the only one
			first = bytes.Clone(line)
			continue
		}
		if n == 2 && in(1) {
			_, _ = out.Write(first)
			shown = true
		}
		if in(n) {
			if shown {
				_, _ = out.WriteString(output)
			}
			shown = true
			_, _ = out.Write(line)
		}
	}
	if n == 2 && !only {
		if in(1) {
			_, _ = out.Write(first)
		}
		shown = true
	}
	if shown {
		_ = out.WriteByte(end)
	}
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
