package textdiff

import (
	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// cmp compares two files byte by byte.
func cmp(p *program.Process) int {
	opts, operands := p.Options(2, "bi:ln:s", "print-bytes b", "ignore-initial= i", "verbose l", "bytes= n", "quiet s", "silent s")
	verbose, silent, shown := false, false, false
	limit, skip := int64(-1), int64(0)
	for _, o := range opts {
		var err error
		switch o.Name {
		case "l":
			verbose = true
		case "s":
			silent = true
		case "b":
			shown = true
		case "n":
			limit, err = gnu.ParseSize(o.Value)
		case "i":
			skip, err = gnu.ParseSize(o.Value)
		}
		if err != nil {
			p.Errorf("invalid --%s value '%s'", map[string]string{"n": "bytes", "i": "ignore-initial"}[o.Name], o.Value)
			return 2
		}
	}
	if len(operands) == 0 {
		p.Errorf("missing operand after '%s'", p.Name())
		p.Stderrf("cmp: Try 'cmp --help' for more information.\n")
		return 2
	}
	if len(operands) == 1 {
		operands = append(operands, "-")
	}
	var ins [2]*program.Input
	for i := range ins {
		in, done, err := gnu.OpenInput(p, operands[i])
		if err != nil && silent {
			return 2
		}
		if err != nil {
			p.Errorf("%s: %s", operands[i], program.Message(err))
			return 2
		}
		defer done()
		ins[i] = in
	}
	out := p.Out()
	at, line := int64(0), 1
	var a, b []byte
	code := 0
	for limit < 0 || at < limit {
		if len(a) == 0 {
			a = ins[0].Chunk()
		}
		if len(b) == 0 {
			b = ins[1].Chunk()
		}
		n := min(len(a), len(b))
		if n == 0 {
			break
		}
		p.Charge(n)
		for i := range n {
			if limit >= 0 && at >= limit {
				return code
			}
			at++
			if at <= skip {
				continue
			}
			if a[i] != b[i] {
				code = 1
				switch {
				case silent:
					return 1
				case verbose:
					out.Printf("%d %3o %3o\n", at-skip, a[i], b[i])
				case shown:
					out.Printf("%s %s differ: byte %d, line %d is %3o %s %3o %s\n", operands[0], operands[1], at-skip, line, a[i], visible(a[i]), b[i],
						visible(b[i]))
					return 1
				default:
					out.Printf("%s %s differ: byte %d, line %d\n", operands[0], operands[1], at-skip, line)
					return 1
				}
			}
			if a[i] == '\n' {
				line++
			}
		}
		a, b = a[n:], b[n:]
	}
	for i, in := range ins {
		if err := in.Err(); err != nil {
			p.Errorf("%s: %s", operands[i], program.Message(err))
			return 2
		}
	}
	if (len(a) > 0 || len(b) > 0) && (limit < 0 || at < limit) {
		short := operands[0]
		if len(a) > 0 {
			short = operands[1]
		}
		if !silent {
			switch {
			case at == 0:
				p.Errorf("EOF on %s which is empty", short)
			case verbose:
				p.Errorf("EOF on %s after byte %d", short, at)
			default:
				p.Errorf("EOF on %s after byte %d, in line %d", short, at, line)
			}
		}
		return 1
	}
	return code
}

// visible writes a byte as cat -v does.
func visible(c byte) string {
	s := ""
	if c >= 0x80 {
		s, c = "M-", c-0x80
	}
	switch {
	case c < ' ':
		return s + "^" + string(rune(c+'@'))
	case c == 0x7f:
		return s + "^?"
	}
	return s + string(rune(c))
}
