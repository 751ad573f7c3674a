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

func cut(p *program.Process) int {
	opts, files := p.Options(1, "b:c:d:f:nsz", "bytes b", "characters c", "delimiter d", "fields f", "only-delimited s", "zero-terminated z",
		"complement", "output-delimiter=")
	var list []span
	kind, delim, only, complement, end := "", "\t", false, false, byte('\n')
	output, hasOutput := "", false
	delimited := false
	for _, o := range opts {
		switch o.Name {
		case "b", "c", "f":
			if kind != "" {
				gnu.FailUsage(p, 1, "only one list may be specified")
			}
			kind = map[string]string{"b": "byte", "c": "byte", "f": "field"}[o.Name]
			list = ranges(p, o.Value, kind)
		case "d":
			if len(o.Value) > 1 {
				gnu.FailUsage(p, 1, "the delimiter must be a single character")
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
			if output, hasOutput = o.Value, true; output == "" {
				output = "\x00"
			}
		}
	}
	if kind == "" {
		gnu.FailUsage(p, 1, "you must specify a list of bytes, characters, or fields")
	}
	if kind != "field" && delimited {
		gnu.FailUsage(p, 1, "an input delimiter may be specified only when operating on fields")
	}
	if kind != "field" && only {
		gnu.FailUsage(p, 1, "suppressing non-delimited lines makes sense\n\tonly when operating on fields")
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
	for _, name := range gnu.OrStdin(files) {
		r := gnu.OpenOrTell(p, name)
		if r == nil {
			status = 1
			continue
		}
		if kind == "field" && delim[0] == end {
			lines(p, r, end, output, only, in)
		}
		for kind != "field" || delim[0] != end {
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
					gnu.WriteLine(out, line, end, true)
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
		if !gnu.EndedWell(p, name, r) {
			status = 1
		}
	}
	return status
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
		if n == 1 { // which is no field where it is the only one
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
