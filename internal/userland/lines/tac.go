package lines

import (
	"bytes"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// tac writes records from the last to the first.
func tac(p *program.Process) int {
	opts, operands := p.Options(1, "bs:r", "before b", "separator= s", "regex r")
	separator, before, regex := "\n", false, false
	for _, o := range opts {
		switch o.Name {
		case "s":
			separator = o.Value
		case "b":
			before = true
		case "r":
			regex = true
		}
	}
	if separator == "" && regex {
		p.Errorf("separator cannot be empty")
		return 1
	}
	if separator == "" {
		separator = "\x00"
	}
	find := func(text []byte) (from, to int) { return lastText(text, separator) }
	if regex {
		re := gnu.Compile(p, 1, gnu.EmacsSyntax(separator), 0)
		find = func(text []byte) (from, to int) { return lastMatch(p, re, text) }
	}
	return gnu.EachInput(p, operands, func(_ string, in *program.Input) {
		all := in.All()
		backwards(p, all, find, before)
		p.Drop(len(all))
	})
}

// backwards writes the records of a text. find returns the last separator of a text, or -1.
func backwards(p *program.Process, text []byte, find func([]byte) (from, to int), before bool) {
	out, end := p.Out(), len(text)
	for limit := end; limit > 0; {
		p.Charge(20)
		from, to := find(text[:limit])
		if from < 0 || to <= from {
			break
		}
		limit = from
		if before {
			to = from
		}
		_, _ = out.Write(text[to:end])
		end = to
	}
	_, _ = out.Write(text[:end])
}

func lastText(text []byte, separator string) (from, to int) {
	from = bytes.LastIndex(text, []byte(separator))
	return from, from + len(separator)
}

// lastMatch returns where the match begins that begins last. GNU's tac searches backwards in the same way.
func lastMatch(p *program.Process, re *posix.Regexp, text []byte) (from, to int) {
	s := string(text)
	for at := len(s) - 1; at >= 0; at-- {
		p.Charge(10)
		m, err := re.FindString(s[at:])
		gnu.Check(p, 1, err)
		if len(m) > 1 && m[0] == 0 && m[1] > 0 {
			return at, at + m[1]
		}
	}
	return -1, -1
}
