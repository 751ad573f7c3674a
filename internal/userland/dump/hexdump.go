package dump

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// hexdump shows data as BSD's does.
func hexdump(p *program.Process) int {
	opts, operands := p.Options(1, "Cbcdoxn:s:ve:f:", "canonical C", "length= n", "skip= s", "no-squeezing v")
	mode, limit, skip, every := byte('n'), int64(-1), int64(0), false
	if gnu.LastName(p.Name()) == "hd" {
		mode = 'C'
	}
	for _, o := range opts {
		var err error
		switch o.Name {
		case "C", "b", "c", "d", "o", "x":
			mode = o.Name[0]
		case "n":
			limit, err = odNumber(o.Value)
		case "s":
			skip, err = odNumber(o.Value)
		case "v":
			every = true
		case "e", "f":
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option -%s is not supported here: use -C, or od", o.Name)
			return 1
		}
		if err != nil {
			p.Errorf("bad number %s", o.Value)
			return 1
		}
	}
	var data []byte
	code := gnu.EachInput(p, operands, func(_ string, in *program.Input) {
		for b := in.Chunk(); b != nil && (limit < 0 || int64(len(data)) < skip+limit); b = in.Chunk() {
			p.Hold(len(b))
			data = append(data, b...)
		}
	})
	start := min(skip, int64(len(data)))
	data = data[start:]
	if limit >= 0 {
		data = data[:min(limit, int64(len(data)))]
	}
	out := p.Out()
	address := "%07x"
	if mode == 'C' {
		address = "%08x"
	}
	at := start
	starred := false
	var last []byte
	for len(data) > 0 {
		row := data[:min(16, len(data))]
		data = data[len(row):]
		p.Charge(200)
		if !every && len(row) == 16 && bytes.Equal(row, last) {
			if !starred {
				out.WriteString("*\n")
				starred = true
			}
			at += 16
			continue
		}
		starred, last = false, row
		out.Printf(address, at)
		at += int64(len(row))
		switch mode {
		case 'C':
			for i := range 16 {
				if i%8 == 0 {
					out.WriteString(" ")
				}
				if i < len(row) {
					out.Printf(" %02x", row[i])
				} else {
					out.WriteString("   ")
				}
			}
			out.WriteString("  |")
			for _, c := range row {
				if c < ' ' || c > '~' {
					c = '.'
				}
				_ = out.WriteByte(c)
			}
			out.WriteString("|")
		case 'b', 'c':
			for i := range 16 {
				switch {
				case i >= len(row):
					out.WriteString("    ")
				case mode == 'b':
					out.Printf(" %03o", row[i])
				default:
					out.Printf("%4s", odType{kind: 'c', size: 1}.cell(row[i:i+1], binary.LittleEndian))
				}
			}
		default:
			format, blank := map[byte]string{'n': " %04x", 'x': "    %04x", 'd': "   %05d", 'o': "  %06o"}[mode], map[byte]int{'n': 5, 'x': 8,
				'd': 8, 'o': 8}[mode]
			for i := 0; i < 16; i += 2 {
				if i >= len(row) {
					out.WriteString(strings.Repeat(" ", blank))
					continue
				}
				v := uint16(row[i])
				if i+1 < len(row) {
					v |= uint16(row[i+1]) << 8
				}
				out.Printf(format, v)
			}
		}
		out.WriteString("\n")
	}
	if at > start || at > 0 {
		out.Printf(address+"\n", at)
	}
	return code
}

// xxdCall is a call of xxd: its options, and what it writes to.
type xxdCall struct {
	p                                                              *program.Process
	out                                                            *program.Output
	args                                                           []string // that are not read yet
	cols, group                                                    int      // -1 where no option says it
	skip, limit                                                    int64
	plain, bits, include, upper, revert, little, autoskip, decimal bool
	name                                                           string // of the variable of -i
	files                                                          []string
	digits                                                         string // the format of a byte
}

// xxd makes dumps, and files of them.
func xxd(p *program.Process) int {
	x := &xxdCall{p: p, out: p.Out(), args: p.Args[1:], cols: -1, group: -1, limit: -1, digits: "%02x"}
	for len(x.args) > 0 {
		if a := x.next(); len(a) < 2 || a[0] != '-' {
			x.files = append(x.files, a)
		} else if !x.option(a) {
			return x.wrong(a)
		}
	}
	if len(x.files) == 0 {
		x.files = []string{"-"}
	}
	data, err := gnu.ReadWhole(p, x.files[0])
	if err != nil {
		p.Errorf("%s: %s", x.files[0], program.Message(err))
		return 2
	}
	if len(x.files) > 1 && x.files[1] != "-" {
		_, w, err := gnu.Create(p, x.files[1])
		if err != nil {
			p.Errorf("%s: %s", x.files[1], program.Message(err))
			return 3
		}
		x.out = w
		defer w.Flush()
	}
	p.Charge(len(data) * 20)
	if x.revert {
		revertDump(x.out, data, x.plain)
		return 0
	}
	data = data[min(x.skip, int64(len(data))):]
	if x.limit >= 0 {
		data = data[:min(x.limit, int64(len(data)))]
	}
	if x.upper {
		x.digits = "%02X"
	}
	switch {
	case x.plain:
		x.writePlain(data)
		return 0
	case x.include:
		includeDump(x.out, data, x.files[0], x.name, x.cols, x.upper)
		return 0
	}
	x.writeRows(data)
	return 0
}

func (x *xxdCall) next() string {
	a := x.args[0]
	x.args = x.args[1:]
	return a
}

// wrong writes how xxd is used, and returns the code of that.
func (x *xxdCall) wrong(a string) int {
	x.p.Lack(program.LackOption, a)
	x.p.Stderrf("Usage:\n       xxd [options] [infile [outfile]]\n")
	return 1
}

// value returns what stands behind the letter of an option, or the next argument.
func (x *xxdCall) value(a, letter string) string {
	if rest := strings.TrimPrefix(strings.TrimPrefix(a, "-"), letter); rest != "" {
		return rest
	}
	if len(x.args) > 0 {
		return x.next()
	}
	return ""
}

// number reads the number of an option, or ends the program.
func (x *xxdCall) number(a, letter string) int64 {
	n, err := odNumber(strings.TrimPrefix(x.value(a, letter), "+"))
	if err != nil {
		x.p.Exit(x.wrong(a))
	}
	return n
}

// option reads an option, and reports whether it is one.
func (x *xxdCall) option(a string) bool {
	switch {
	case a == "-a":
		x.autoskip = true
	case a == "-b":
		x.bits = true
	case a == "-e":
		x.little = true
	case a == "-i" || a == "-include":
		x.include = true
	case a == "-p" || a == "-ps" || a == "-postscript" || a == "-plain":
		x.plain = true
	case a == "-r" || a == "-revert":
		x.revert = true
	case a == "-u":
		x.upper = true
	case a == "-d":
		x.decimal = true
	case a == "-rp" || a == "-pr":
		x.plain, x.revert = true, true
	case strings.HasPrefix(a, "-c"):
		x.cols = int(x.number(a, "c"))
	case strings.HasPrefix(a, "-g"):
		x.group = int(x.number(a, "g"))
	case strings.HasPrefix(a, "-l"):
		x.limit = x.number(a, "l")
	case strings.HasPrefix(a, "-s"):
		x.skip = x.number(a, "s")
	case strings.HasPrefix(a, "-n"):
		x.name = x.value(a, "n")
	default:
		return false
	}
	return true
}

// writePlain writes nothing but digits: -p.
func (x *xxdCall) writePlain(data []byte) {
	if x.cols < 0 {
		x.cols = 30
	}
	for i, c := range data {
		x.out.Printf(x.digits, c)
		if x.cols > 0 && (i+1)%x.cols == 0 && i+1 < len(data) {
			x.out.WriteString("\n")
		}
	}
	if len(data) > 0 {
		x.out.WriteString("\n")
	}
}

// writeRows writes a dump of rows, each with its address, its bytes and its characters.
func (x *xxdCall) writeRows(data []byte) {
	if x.cols <= 0 {
		if x.cols = 16; x.bits {
			x.cols = 6
		}
	}
	x.cols = min(x.cols, 256)
	if x.group < 0 {
		switch {
		case x.bits:
			x.group = 1
		case x.little:
			x.group = 4
		default:
			x.group = 2
		}
	}
	if x.group == 0 || x.group > x.cols {
		x.group = x.cols
	}
	cell := 2
	if x.bits {
		cell = 8
	}
	width := (x.cols/x.group)*(cell*x.group+1) + map[bool]int{true: cell*(x.cols%x.group) + 1}[x.cols%x.group > 0]
	at := x.skip
	zeros := 0
	for i := 0; i < len(data); i += x.cols {
		row := data[i:min(i+x.cols, len(data))]
		if x.autoskip && len(bytes.Trim(row, "\x00")) == 0 && i+x.cols < len(data) {
			if zeros++; zeros == 2 {
				x.out.WriteString("*\n")
			}
			if zeros >= 2 {
				at += int64(len(row))
				continue
			}
		} else {
			zeros = 0
		}
		x.writeRow(row, at, width)
		at += int64(len(row))
	}
}

// writeRow writes one row of a dump.
func (x *xxdCall) writeRow(row []byte, at int64, width int) {
	var b strings.Builder
	for j := 0; j < len(row); j += x.group {
		chunk := row[j:min(j+x.group, len(row))]
		if x.little {
			b.WriteString(strings.Repeat("  ", x.group-len(chunk)))
		}
		for k := range chunk {
			c := chunk[k]
			if x.little {
				c = chunk[len(chunk)-1-k]
			}
			if x.bits {
				fmt.Fprintf(&b, "%08b", c)
			} else {
				fmt.Fprintf(&b, x.digits, c)
			}
		}
		b.WriteByte(' ')
	}
	if x.decimal {
		x.out.Printf("%08d: %-*s ", at, width, b.String())
	} else {
		x.out.Printf("%08x: %-*s ", at, width, b.String())
	}
	for _, c := range row {
		if c < ' ' || c > '~' {
			c = '.'
		}
		_ = x.out.WriteByte(c)
	}
	x.out.WriteString("\n")
}

func includeDump(out *program.Output, data []byte, file, name string, cols int, upper bool) {
	if cols <= 0 {
		cols = 12
	}
	if name == "" && file != "-" {
		name = file
	}
	ident := []byte(name)
	for i, c := range ident {
		if c >= 0x80 || !gnu.InClass("alnum", rune(c)) {
			ident[i] = '_'
		}
	}
	if len(ident) > 0 && ident[0] >= '0' && ident[0] <= '9' {
		ident = append([]byte("__"), ident...)
	}
	if name != "" {
		out.Printf("unsigned char %s[] = {\n", ident)
	}
	for i, c := range data {
		if i%cols == 0 {
			out.WriteString("  ")
		}
		if upper {
			out.Printf("0X%02X", c)
		} else {
			out.Printf("0x%02x", c)
		}
		switch {
		case i+1 == len(data):
			out.WriteString("\n")
		case (i+1)%cols == 0:
			out.WriteString(",\n")
		default:
			out.WriteString(", ")
		}
	}
	if name != "" {
		out.Printf("};\nunsigned int %s_len = %d;\n", ident, len(data))
	}
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// revertDump writes what a dump shows.
func revertDump(out *program.Output, data []byte, plain bool) {
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line, data = data[:i], data[i+1:]
		} else {
			data = nil
		}
		if !plain {
			i := bytes.Index(line, []byte(": "))
			if i < 0 {
				continue
			}
			line = line[i+2:]
			if j := bytes.Index(line, []byte("  ")); j >= 0 {
				line = line[:j]
			}
		}
		high := -1
		for _, c := range line {
			v := hexValue(c)
			switch {
			case v < 0:
				continue
			case high < 0:
				high = v
			default:
				_ = out.WriteByte(byte(high<<4 | v))
				high = -1
			}
		}
	}
}

// stringsCommand finds runs of printable characters.
func stringsCommand(p *program.Process) int {
	args := p.Args[:1:1]
	for _, a := range p.Args[1:] {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" {
			a = "-n" + a[1:]
		}
		args = append(args, a)
	}
	p.Args = args
	opts, operands := p.Options(1, "afn:ot:e:wds:", "all a", "print-file-name f", "bytes= n", "radix= t", "encoding= e", "data d")
	least, named, radix := 4, false, byte(0)
	for _, o := range opts {
		switch o.Name {
		case "n":
			if least = gnu.ParseCount(p, 1, o.Value, "invalid integer argument"); least == 0 {
				p.Errorf("invalid minimum string length 0")
				return 1
			}
		case "f":
			named = true
		case "o":
			radix = 'o'
		case "t":
			if o.Value != "" {
				radix = o.Value[0]
			}
		case "e":
			if o.Value != "s" && o.Value != "S" {
				p.Lack(program.LackOption, "-e")
				p.Errorf("the encoding %s is not supported here", o.Value)
				return 1
			}
		}
	}
	out := p.Out()
	return gnu.EachInput(p, operands, func(name string, in *program.Input) {
		var run []byte
		at, start := 0, 0
		end := func() {
			if len(run) >= least {
				if named {
					out.WriteString(name + ": ")
				}
				switch radix {
				case 'd':
					out.Printf("%7d ", start)
				case 'o':
					out.Printf("%7o ", start)
				case 'x':
					out.Printf("%7x ", start)
				}
				_, _ = out.Write(run)
				_ = out.WriteByte('\n')
			}
			run = run[:0]
		}
		for b := in.Chunk(); b != nil; b = in.Chunk() {
			p.Charge(len(b) * 2)
			for _, c := range b {
				if c == '\t' || c >= ' ' && c <= '~' {
					if len(run) == 0 {
						start = at
					}
					run = append(run, c)
				} else {
					end()
				}
				at++
			}
			if len(run) > 1<<16 {
				p.Hold(len(run))
				p.Drop(len(run))
			}
		}
		end()
	})
}
