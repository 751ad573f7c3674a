// Package dump has the commands that show the bytes of files: od, hexdump, xxd and strings.
package dump

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"hd": hexdump, "hexdump": hexdump,
		"od": od, "strings": stringsCommand, "xxd": xxd,
	})
}

// odType is one way in which od shows data.
type odType struct {
	kind  byte // a, c, d, u, o, x or f
	size  int
	width int // of a cell
	text  bool
}

// odOptions are what the options of od say.
type odOptions struct {
	p            *program.Process
	radix        byte
	skip, limit  int64
	width        int
	every, given bool
	types        []odType
	order        binary.ByteOrder
}

// od shows data in numbers.
func od(p *program.Process) int {
	d := &odOptions{p: p}
	opts, operands := p.Options(1, "A:j:N:t:vw::abcdfiloxsS:", "address-radix= A", "skip-bytes= j", "read-bytes= N", "format= t",
		"output-duplicates v", "width=? w", "endian=", "strings= S", "traditional")
	d.radix, d.limit = byte('o'), int64(-1)
	d.order = binary.ByteOrder(binary.LittleEndian)
	for _, o := range opts {
		if code, done := d.option(o); done {
			return code
		}
	}
	if len(d.types) == 0 {
		d.add('o', 2)
	}
	perByte, least := 0.0, 1 // the widest cell decides how cells are set, and a row holds a whole number of each
	for _, t := range d.types {
		perByte, least = max(perByte, float64(t.width)/float64(t.size)), max(least, t.size)
	}
	switch {
	case !d.given:
		d.width = 16
	case d.width == 0 || d.width%least != 0:
		p.Errorf("warning: invalid width %d; using %d instead", d.width, least)
		d.width = least
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	out := p.Out()
	code := 0
	var row, last []byte
	at := int64(0)
	starred := false
	address := func(n int64) string {
		switch d.radix {
		case 'd':
			return fmt.Sprintf("%07d", n)
		case 'o':
			return fmt.Sprintf("%07o", n)
		case 'x':
			return fmt.Sprintf("%06x", n)
		}
		return ""
	}
	flush := func() {
		if len(row) == 0 {
			return
		}
		p.Charge(len(row) * 20)
		if !d.every && len(row) == d.width && bytes.Equal(row, last) {
			if !starred {
				out.WriteString("*\n")
				starred = true
			}
			at += int64(len(row))
			row = row[:0]
			return
		}
		starred = false
		for i, t := range d.types {
			if i == 0 {
				out.WriteString(address(at))
			} else {
				out.WriteString(strings.Repeat(" ", len(address(at))))
			}
			out.WriteString(t.line(row, d.width, perByte, d.order) + "\n")
		}
		last = append(last[:0], row...)
		at += int64(len(row))
		row = row[:0]
	}
	at = d.skip
	left := d.limit
	for _, name := range operands {
		in, done, err := gnu.OpenInput(p, name)
		if err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			code = 1
			continue
		}
		for b := in.Chunk(); b != nil; b = in.Chunk() {
			if n := min(d.skip, int64(len(b))); n > 0 {
				b, d.skip = b[n:], d.skip-n
			}
			if left >= 0 {
				b = b[:min(int64(len(b)), left)]
				left -= int64(len(b))
			}
			for len(b) > 0 {
				n := min(d.width-len(row), len(b))
				row = append(row, b[:n]...)
				b = b[n:]
				if len(row) == d.width {
					flush()
				}
			}
			if left == 0 {
				break
			}
		}
		if err := in.Err(); err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			code = 1
		}
		done()
	}
	if d.skip > 0 {
		p.Errorf("cannot skip past end of combined input")
		return 1
	}
	flush()
	if d.radix != 'n' {
		out.WriteString(address(at) + "\n")
	}
	return code
}

// option takes one option. It returns whether the command ends with that, and the code.
func (d *odOptions) option(o program.Option) (code int, done bool) {
	var err error
	switch o.Name {
	case "A":
		if o.Value == "" || strings.IndexByte("doxn", o.Value[0]) < 0 {
			d.p.Errorf("invalid output address radix '%s'; it must be one character from [doxn]", o.Value)
			return 1, true
		}
		d.radix = o.Value[0]
	case "j":
		d.skip, err = odNumber(o.Value)
	case "N":
		d.limit, err = odNumber(o.Value)
	case "t":
		parsed, ok := odTypes(o.Value)
		if !ok {
			d.p.Errorf("invalid type string %s", gnu.Quote(o.Value))
			return 1, true
		}
		d.types = append(d.types, parsed...)
	case "v":
		d.every = true
	case "w":
		d.width, d.given = 32, true
		if o.Given {
			d.width = min(gnu.ParseCount(d.p, 1, o.Value, "invalid -w argument"), 4096)
		}
	case "a":
		d.add('a', 1)
	case "b":
		d.add('o', 1)
	case "c":
		d.add('c', 1)
	case "d":
		d.add('u', 2)
	case "f":
		d.add('f', 4)
	case "i":
		d.add('d', 4)
	case "l":
		d.add('d', 8)
	case "o":
		d.add('o', 2)
	case "x":
		d.add('x', 2)
	case "s":
		d.add('d', 2)
	case "endian":
		if o.Value == "big" {
			d.order = binary.BigEndian
		}
	case "S":
		d.p.Lack(program.LackOption, "-S")
		d.p.Errorf("the option -S is not supported here: use strings")
		return 1, true
	}
	if err != nil {
		d.p.Errorf("invalid -%s argument %s", o.Name, gnu.Quote(o.Value))
		return 1, true
	}
	return 0, false
}

func odNumber(s string) (int64, error) {
	if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") || len(s) > 1 && s[0] == '0' {
		return strconv.ParseInt(s, 0, 64)
	}
	return gnu.ParseSize(s)
}

func newOdType(kind byte, size int) odType {
	t := odType{kind: kind, size: size}
	switch kind {
	case 'a', 'c':
		t.width = 4
	case 'o':
		t.width = map[int]int{1: 4, 2: 7, 4: 12, 8: 23}[size]
	case 'x':
		t.width = map[int]int{1: 3, 2: 5, 4: 9, 8: 17}[size]
	case 'd':
		t.width = map[int]int{1: 5, 2: 7, 4: 12, 8: 21}[size]
	case 'u':
		t.width = map[int]int{1: 4, 2: 6, 4: 11, 8: 21}[size]
	case 'f':
		t.width = map[int]int{4: 16, 8: 25}[size]
	}
	return t
}

func odTypes(s string) ([]odType, bool) {
	var all []odType
	for i := 0; i < len(s); {
		kind := s[i]
		i++
		size := 4
		switch kind {
		case 'a', 'c':
			size = 1
		case 'd', 'o', 'u', 'x':
		case 'f':
			size = 8
		default:
			return nil, false
		}
		if i < len(s) && kind != 'a' && kind != 'c' {
			if n, ok := map[byte]int{'1': 1, '2': 2, '4': 4, '8': 8, 'C': 1, 'S': 2, 'I': 4, 'L': 8, 'F': 4, 'D': 8}[s[i]]; ok {
				size = n
				i++
			}
		}
		t := newOdType(kind, size)
		if t.width == 0 {
			return nil, false
		}
		if i < len(s) && s[i] == 'z' {
			t.text = true
			i++
		}
		all = append(all, t)
	}
	return all, len(all) > 0
}

var odNames = []string{
	"nul", "soh", "stx", "etx", "eot", "enq", "ack", "bel", "bs", "ht", "nl", "vt", "ff", "cr", "so", "si", "dle",
	"dc1", "dc2", "dc3", "dc4", "nak", "syn", "etb", "can", "em", "sub", "esc", "fs", "gs", "rs", "us", "sp",
}

func (t odType) line(row []byte, width int, perByte float64, order binary.ByteOrder) string {
	var b strings.Builder
	cells := width / t.size
	total := int(perByte*float64(width) + 0.5)
	used := 0
	for i := range cells {
		// The room of wider types is spread over the cells.
		room := total*(i+1)/cells - used
		if i*t.size >= len(row) {
			if t.text {
				b.WriteString(strings.Repeat(" ", room))
			}
			used += room
			continue
		}
		chunk := make([]byte, t.size)
		copy(chunk, row[i*t.size:])
		fmt.Fprintf(&b, "%*s", room, t.cell(chunk, order))
		used += room
	}
	if t.text {
		b.WriteString("  >")
		for _, c := range row {
			if c < ' ' || c > '~' {
				c = '.'
			}
			b.WriteByte(c)
		}
		b.WriteByte('<')
	}
	return b.String()
}

func (t odType) cell(c []byte, order binary.ByteOrder) string {
	var v uint64
	switch t.size {
	case 1:
		v = uint64(c[0])
	case 2:
		v = uint64(order.Uint16(c))
	case 4:
		v = uint64(order.Uint32(c))
	case 8:
		v = order.Uint64(c)
	}
	switch t.kind {
	case 'a':
		switch v &= 0x7f; {
		case v <= ' ':
			return odNames[v]
		case v == 0x7f:
			return "del"
		}
		return string(rune(v))
	case 'c':
		if i := strings.IndexByte("\x00\a\b\t\n\v\f\r", byte(v)); i >= 0 {
			return `\` + string("0abtnvfr"[i])
		}
		if v >= ' ' && v <= '~' {
			return string(rune(v))
		}
		return fmt.Sprintf("%03o", v)
	case 'o':
		return fmt.Sprintf("%0*o", t.width-1, v)
	case 'x':
		return fmt.Sprintf("%0*x", t.width-1, v)
	case 'd':
		shift := 64 - 8*t.size
		return strconv.FormatInt(int64(v<<shift)>>shift, 10)
	case 'f':
		if t.size == 4 {
			return strconv.FormatFloat(float64(math.Float32frombits(uint32(v))), 'g', -1, 32)
		}
		return strconv.FormatFloat(math.Float64frombits(v), 'g', -1, 64)
	}
	return strconv.FormatUint(v, 10)
}

// add adds a type of numbers to those that are shown.
func (d *odOptions) add(kind byte, size int) { d.types = append(d.types, newOdType(kind, size)) }
