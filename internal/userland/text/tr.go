package text

import (
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// trSet is what an operand of tr stands for.
type trSet struct {
	bytes  []byte
	fill   int // where [c*] stands, -1 for nowhere
	char   byte
	upper  []int // where [:upper:] and [:lower:] begin
	lower  []int
	class  bool // there is a class other than those
	repeat bool
}

// trUnit is a character of a set, which a backslash may have written.
type trUnit struct {
	c       byte
	escaped bool
}

// trUnits reads the characters of a set.
func trUnits(s string) []trUnit {
	var units []trUnit
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 == len(s) {
			units = append(units, trUnit{c, false})
			continue
		}
		i++
		switch c = s[i]; c {
		case 'a':
			c = '\a'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'v':
			c = '\v'
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, j := 0, i
			for ; j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7' && n*8+int(s[j]-'0') < 256; j++ {
				n = n*8 + int(s[j]-'0')
			}
			c = byte(n)
			i = j - 1
		}
		units = append(units, trUnit{c, true})
	}
	return units
}

// parseSet reads an operand of tr.
func parseSet(p *program.Process, s string) trSet {
	set := trSet{fill: -1}
	units := trUnits(s)
	text := func(i, n int) string {
		var b strings.Builder
		for _, u := range units[i:min(i+n, len(units))] {
			b.WriteByte(u.c)
		}
		return b.String()
	}
	for i := 0; i < len(units); i++ {
		u := units[i]
		if u.c == '[' && !u.escaped && i+1 < len(units) {
			rest := text(i, len(units)-i)
			if strings.HasPrefix(rest, "[:") {
				if end := strings.Index(rest[2:], ":]"); end >= 0 {
					name := rest[2 : 2+end]
					switch name {
					case "upper":
						set.upper = append(set.upper, len(set.bytes))
					case "lower":
						set.lower = append(set.lower, len(set.bytes))
					default:
						set.class = true
					}
					before := len(set.bytes)
					for c := range 256 {
						if gnu.ByteClass(name, byte(c)) {
							set.bytes = append(set.bytes, byte(c))
						}
					}
					if len(set.bytes) == before {
						p.Errorf("invalid character class ‘%s’", name)
						p.Exit(1)
					}
					i += end + 3
					continue
				}
			}
			if strings.HasPrefix(rest, "[=") && len(rest) >= 5 && rest[3:5] == "=]" {
				set.bytes = append(set.bytes, rest[2])
				i += 4
				continue
			}
			if len(rest) > 3 && rest[2] == '*' && !(units[i+2].escaped) {
				if end := strings.IndexByte(rest[3:], ']'); end >= 0 {
					digits := rest[3 : 3+end]
					base := 10
					if strings.HasPrefix(digits, "0") {
						base = 8
					}
					n, err := strconv.ParseUint(digits, base, 16)
					if digits == "" || err == nil {
						if digits == "" || n == 0 {
							set.fill, set.char = len(set.bytes), rest[1]
						} else {
							for range n {
								set.bytes = append(set.bytes, rest[1])
							}
						}
						set.repeat = true
						i += end + 3
						continue
					}
				}
			}
		}
		if i+2 < len(units) && units[i+1].c == '-' && !units[i+1].escaped {
			hi := units[i+2].c
			if hi < u.c {
				p.Errorf("range-endpoints of '%s' are in reverse collating sequence order", printable(u.c)+"-"+printable(hi))
				p.Exit(1)
			}
			for c := int(u.c); c <= int(hi); c++ {
				set.bytes = append(set.bytes, byte(c))
			}
			i += 2
			continue
		}
		set.bytes = append(set.bytes, u.c)
	}
	return set
}

// fits ends the program where the classes of the second operand stand for nothing.
func (t trSet) fits(p *program.Process, first trSet) {
	if t.class {
		p.Errorf("when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'")
		p.Exit(1)
	}
	for _, at := range slices.Concat(t.upper, t.lower) {
		if t.fill < 0 && !slices.Contains(first.upper, at) && !slices.Contains(first.lower, at) {
			p.Errorf("misaligned [:upper:] and/or [:lower:] construct")
			p.Exit(1)
		}
	}
}

func printable(c byte) string {
	if c < 32 || c > 126 {
		return "\\" + strconv.FormatInt(int64(c)+512, 8)[1:]
	}
	return string(rune(c))
}

// trOptions are what the options of tr say.
type trOptions struct {
	complement, remove, squeeze, truncate bool
}

func tr(p *program.Process) int {
	opt := &trOptions{}
	opts, sets := p.Options(1, "+cCdst", "complement c", "delete d", "squeeze-repeats s", "truncate-set1 t")

	for _, o := range opts {
		if code, done := opt.option(o); done {
			return code
		}
	}
	switch {
	case len(sets) == 0:
		gnu.FailUsage(p, 1, "missing operand")
	case len(sets) == 1 && opt.remove == opt.squeeze, len(sets) == 2 && opt.remove && !opt.squeeze:
		opt.wrongSets(p, sets)
		return 1
	case len(sets) > 2:
		gnu.FailUsage(p, 1, "extra operand ‘%s’", sets[2])
	}
	first := parseSet(p, sets[0])
	if first.repeat {
		p.Errorf("the [c*] repeat construct may not appear in string1")
		return 1
	}
	var second trSet
	if len(sets) > 1 {
		second = parseSet(p, sets[1])
	}
	var member, squeezed [256]bool
	for _, c := range first.bytes {
		member[c] = true
	}
	from := first.bytes
	if opt.complement {
		from = nil
		for c := range 256 {
			if member[c] = !member[c]; member[c] {
				from = append(from, byte(c))
			}
		}
	}
	if !opt.remove && len(sets) == 2 {
		second.fits(p, first)
	}
	var to [256]byte
	for c := range 256 {
		to[c] = byte(c)
	}
	if !opt.remove && len(sets) == 2 {
		target := second.filled(len(from))
		if len(target) == 0 && !opt.truncate && len(from) > 0 {
			p.Errorf("when not truncating set1, string2 must be non-empty")
			return 1
		}
		for i, c := range from {
			switch {
			case i < len(target):
				to[c] = target[i]
			case !opt.truncate:
				to[c] = target[len(target)-1]
			}
		}
	}
	if opt.squeeze {
		squeezed = member
		if len(sets) == 2 {
			squeezed = second.members()
		}
	}
	in, out := p.Reader(p.Stdin), p.Out()
	last := -1
	for {
		chunk := in.Chunk()
		if chunk == nil {
			break
		}
		p.Charge(10 + len(chunk))
		kept := chunk[:0]
		for _, c := range chunk {
			if opt.remove && member[c] {
				continue
			}
			c = to[c]
			if opt.squeeze && squeezed[c] && int(c) == last {
				continue
			}
			last = int(c)
			kept = append(kept, c)
		}
		_, _ = out.Write(kept)
	}
	if err := in.Err(); err != nil {
		p.Errorf("read error: %s", program.Message(err))
		return 1
	}
	return 0
}

// wrongSets writes how many sets the options of tr need.
func (opt *trOptions) wrongSets(p *program.Process, sets []string) {
	need := "Two strings must be given when translating.\n"
	switch {
	case len(sets) == 2:
		p.Errorf("extra operand ‘%s’", sets[1])
		p.Stderrf("Only one string may be given when deleting without squeezing repeats.\n")
		p.Stderrf("Try '%s --help' for more information.\n", p.Name())
		return
	case opt.remove:
		need = "Two strings must be given when both deleting and squeezing repeats.\n"
	}
	p.Errorf("missing operand after ‘%s’", sets[0])
	p.Stderrf("%s", need)
	p.Stderrf("Try '%s --help' for more information.\n", p.Name())
}

// filled returns the bytes of the set, with its repeated character filling it up to n.
func (t trSet) filled(n int) []byte {
	target := t.bytes
	if t.fill >= 0 {
		missing := n - len(target)
		var grown []byte
		grown = append(grown, target[:t.fill]...)
		for range max(missing, 0) {
			grown = append(grown, t.char)
		}
		target = append(grown, target[t.fill:]...)
	}
	return target
}

// members returns which bytes are in the set.
func (t trSet) members() (in [256]bool) {
	for _, c := range t.bytes {
		in[c] = true
	}
	if t.fill >= 0 {
		in[t.char] = true
	}
	return in
}

// option takes one option. It returns whether the command ends with that, and the code.
func (opt *trOptions) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "c", "C":
		opt.complement = true
	case "d":
		opt.remove = true
	case "s":
		opt.squeeze = true
	case "t":
		opt.truncate = true
	}
	return 0, false
}
