package digest

import (
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// coding is one way to write bytes as letters. Each has a block of bytes and the letters that stand for it.
type coding struct {
	letters string
	bits    int  // of a letter; 0 for z85, which counts to the base 85
	bytes   int  // of a block
	chars   int  // of a block
	padded  bool // with = to a whole block
	low     bool // the lowest bit comes first
	folded  bool // letters of both cases mean the same
}

const (
	digitsAndLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	base64Letters    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

var codings = map[string]coding{
	"base64":    {letters: base64Letters + "+/", bits: 6, bytes: 3, chars: 4, padded: true},
	"base64url": {letters: base64Letters + "-_", bits: 6, bytes: 3, chars: 4, padded: true},
	"base32":    {letters: base64Letters[:26] + "234567", bits: 5, bytes: 5, chars: 8, padded: true},
	"base32hex": {letters: digitsAndLetters[:32], bits: 5, bytes: 5, chars: 8, padded: true},
	"base16":    {letters: digitsAndLetters[:16], bits: 4, bytes: 1, chars: 2, folded: true},
	"base2msbf": {letters: "01", bits: 1, bytes: 1, chars: 8},
	"base2lsbf": {letters: "01", bits: 1, bytes: 1, chars: 8, low: true},
	"z85":       {letters: "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", bytes: 4, chars: 5},
}

// basenc is basenc, base64 and base32: it writes data as letters, and reads them again.
func basenc(p *program.Process) int {
	kind := p.Name()[strings.LastIndexByte(p.Name(), '/')+1:]
	long := []string{"decode d", "ignore-garbage i", "wrap w"}
	if kind == "basenc" {
		kind = ""
		long = append(long, "base64", "base64url", "base32", "base32hex", "base16", "base2msbf", "base2lsbf", "z85")
	}
	opts, operands := p.Options(1, "diw:", long...)
	decode, garbage, wrap := false, false, int64(76)
	for _, o := range opts {
		switch o.Name {
		case "d":
			decode = true
		case "i":
			garbage = true
		case "w":
			n, ok := gnu.ParseSuffixed(o.Value)
			if !ok || strings.Trim(o.Value, "0123456789") != "" {
				p.Errorf("invalid wrap size: ‘%s’", o.Value)
				return 1
			}
			wrap = n
		default:
			kind = o.Name
		}
	}
	if kind == "" {
		gnu.FailUsage(p, 1, "missing encoding type")
	}
	if len(operands) > 1 {
		gnu.FailUsage(p, 1, "extra operand ‘%s’", operands[1])
	}
	c := codings[kind]
	name := gnu.OrStdin(operands)[0]
	in := gnu.OpenOrTell(p, name)
	if in == nil {
		return 1
	}
	good := false
	if decode {
		good = c.decode(p, in, garbage)
	} else {
		good = c.encode(p, in, wrap)
	}
	if err := in.Err(); err != nil {
		p.Errorf("read error: %s", program.Message(err))
		return 1
	}
	if !good {
		return 1
	}
	return 0
}

// encode reports whether the input could be written.
func (c coding) encode(p *program.Process, in *program.Input, wrap int64) bool {
	out := p.Out()
	column := int64(0)
	next := in.Chunk
	if c.bits == 0 { // nothing is written of what has the wrong length
		all := in.All()
		if len(all)%c.bytes != 0 {
			p.Errorf("invalid input (length must be multiple of 4 characters)")
			return false
		}
		next = func() []byte { b := all; all = nil; return b }
	}
	var block, text []byte
	put := func() {
		text = c.block(text[:0], block)
		for _, letter := range text {
			_ = out.WriteByte(letter)
			if column++; column == wrap {
				_ = out.WriteByte('\n')
				column = 0
			}
		}
		block = block[:0]
	}
	for chunk := next(); chunk != nil; chunk = next() {
		for i, b := range chunk {
			if i%4096 == 0 {
				p.Charge(min(len(chunk)-i, 4096) * 2 * c.chars / c.bytes)
			}
			if block = append(block, b); len(block) == c.bytes {
				put()
			}
		}
	}
	if in.Err() != nil {
		return false
	}
	if len(block) > 0 {
		put()
	}
	if wrap > 0 && column > 0 {
		_ = out.WriteByte('\n')
	}
	return true
}

// block appends the letters of a block of bytes.
func (c coding) block(to, block []byte) []byte {
	value := uint64(0)
	for _, b := range block {
		value = value<<8 | uint64(b)
	}
	if c.bits == 0 {
		for place := uint64(85 * 85 * 85 * 85); place > 0; place /= 85 {
			to = append(to, c.letters[value/place%85])
		}
		return to
	}
	bits := len(block) * 8
	letters := (bits + c.bits - 1) / c.bits
	value <<= letters*c.bits - bits
	for i := range letters {
		at := (letters - 1 - i) * c.bits
		if c.low {
			at = i * c.bits
		}
		to = append(to, c.letters[value>>at&(1<<c.bits-1)])
	}
	for c.padded && letters < c.chars {
		to = append(to, '=')
		letters++
	}
	return to
}

// decode reports whether the input was well-formed. It writes the part before a fault.
func (c coding) decode(p *program.Process, in *program.Input, garbage bool) bool {
	var values [256]int
	for i := range values {
		values[i] = -1
	}
	for i := range len(c.letters) {
		values[c.letters[i]] = i
		if c.folded {
			values[strings.ToLower(c.letters[i : i+1])[0]] = i
		}
	}
	out := p.Out()
	var block, text []byte
	good := true
	put := func() {
		text, good = c.unblock(text[:0], block, &values)
		_, _ = out.Write(text)
		block = block[:0]
	}
	for chunk := in.Chunk(); chunk != nil && good; chunk = in.Chunk() {
		for i := 0; i < len(chunk) && good; i++ {
			if i%4096 == 0 {
				p.Charge(min(len(chunk)-i, 4096) * 4)
			}
			letter := chunk[i]
			if letter == '\n' || garbage && values[letter] < 0 && (!c.padded || letter != '=') {
				continue
			}
			if block = append(block, letter); len(block) == c.chars {
				put()
			}
		}
	}
	if good && len(block) > 0 {
		if good = c.padded; good {
			for len(block) < c.chars { // the padding at the end may be missing
				block = append(block, '=')
			}
			put()
		}
	}
	if !good {
		p.Errorf("invalid input")
	}
	return good && in.Err() == nil
}

// unblock appends the bytes of a block of letters as far as they are good, and reports whether all are.
func (c coding) unblock(to, block []byte, values *[256]int) ([]byte, bool) {
	if c.bits == 0 {
		value := uint64(0)
		for _, letter := range block {
			if values[letter] < 0 {
				return to, false
			}
			value = value*85 + uint64(values[letter])
		}
		if value >= 1<<32 {
			return to, false
		}
		return append(to, byte(value>>24), byte(value>>16), byte(value>>8), byte(value)), true
	}
	letters := len(block)
	for c.padded && letters > 0 && block[letters-1] == '=' {
		letters--
	}
	value, held := uint64(0), 0
	for i, letter := range block[:letters] {
		v := values[letter]
		if v < 0 {
			return to, false
		}
		if c.low {
			value |= uint64(v) << i
		} else {
			value = value<<c.bits | uint64(v)
		}
		if held += c.bits; held >= 8 {
			held -= 8
			to = append(to, byte(value>>held))
			value &= 1<<held - 1
		}
	}
	// Letters of which nothing is left over are too many, and what is left over of the last one has to be nothing.
	return to, letters > 0 && held < c.bits && value == 0
}
