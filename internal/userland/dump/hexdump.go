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

// xxd makes dumps, and files of them.
func xxd(p *program.Process) int {
	args := p.Args[1:]
	cols, group, skip, limit := -1, -1, int64(0), int64(-1)
	plain, bits, include, upper, revert, little, autoskip, decimal := false, false, false, false, false, false, false, false
	name := ""
	var files []string
	bad := func(a string) int {
		p.Lack(program.LackOption, a)
		p.Stderrf("Usage:\n       xxd [options] [infile [outfile]]\n")
		return 1
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' {
			files = append(files, a)
			continue
		}
		value := func(letter string) (string, bool) {
			rest := strings.TrimPrefix(strings.TrimPrefix(a, "-"), letter)
			if rest != "" {
				return rest, true
			}
			if i+1 < len(args) {
				i++
				return args[i], true
			}
			return "", false
		}
		number := func(letter string) int64 {
			s, _ := value(letter)
			n, err := odNumber(strings.TrimPrefix(s, "+"))
			if err != nil {
				p.Exit(bad(a))
			}
			return n
		}
		switch {
		case a == "-a":
			autoskip = true
		case a == "-b":
			bits = true
		case a == "-e":
			little = true
		case a == "-i" || a == "-include":
			include = true
		case a == "-p" || a == "-ps" || a == "-postscript" || a == "-plain":
			plain = true
		case a == "-r" || a == "-revert":
			revert = true
		case a == "-u":
			upper = true
		case a == "-d":
			decimal = true
		case a == "-rp" || a == "-pr":
			plain, revert = true, true
		case strings.HasPrefix(a, "-c"):
			cols = int(number("c"))
		case strings.HasPrefix(a, "-g"):
			group = int(number("g"))
		case strings.HasPrefix(a, "-l"):
			limit = number("l")
		case strings.HasPrefix(a, "-s"):
			skip = number("s")
		case strings.HasPrefix(a, "-n"):
			name, _ = value("n")
		default:
			return bad(a)
		}
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	data, err := gnu.ReadWhole(p, files[0])
	if err != nil {
		p.Errorf("%s: %s", files[0], program.Message(err))
		return 2
	}
	out := p.Out()
	if len(files) > 1 && files[1] != "-" {
		_, w, err := gnu.Create(p, files[1])
		if err != nil {
			p.Errorf("%s: %s", files[1], program.Message(err))
			return 3
		}
		out = w
		defer w.Flush()
	}
	p.Charge(len(data) * 20)
	if revert {
		revertDump(out, data, plain)
		return 0
	}
	data = data[min(skip, int64(len(data))):]
	if limit >= 0 {
		data = data[:min(limit, int64(len(data)))]
	}
	digits := "%02x"
	if upper {
		digits = "%02X"
	}
	switch {
	case plain:
		if cols < 0 {
			cols = 30
		}
		for i, c := range data {
			out.Printf(digits, c)
			if cols > 0 && (i+1)%cols == 0 && i+1 < len(data) {
				out.WriteString("\n")
			}
		}
		if len(data) > 0 {
			out.WriteString("\n")
		}
		return 0
	case include:
		includeDump(out, data, files[0], name, cols, upper)
		return 0
	}
	if cols <= 0 {
		if cols = 16; bits {
			cols = 6
		}
	}
	cols = min(cols, 256)
	if group < 0 {
		switch {
		case bits:
			group = 1
		case little:
			group = 4
		default:
			group = 2
		}
	}
	if group == 0 || group > cols {
		group = cols
	}
	cell := 2
	if bits {
		cell = 8
	}
	width := (cols/group)*(cell*group+1) + map[bool]int{true: cell*(cols%group) + 1}[cols%group > 0]
	at := skip
	zeros := 0
	for i := 0; i < len(data); i += cols {
		row := data[i:min(i+cols, len(data))]
		if autoskip && len(bytes.Trim(row, "\x00")) == 0 && i+cols < len(data) {
			if zeros++; zeros == 2 {
				out.WriteString("*\n")
			}
			if zeros >= 2 {
				at += int64(len(row))
				continue
			}
		} else {
			zeros = 0
		}
		var b strings.Builder
		for j := 0; j < len(row); j += group {
			chunk := row[j:min(j+group, len(row))]
			if little {
				b.WriteString(strings.Repeat("  ", group-len(chunk)))
			}
			for k := range chunk {
				c := chunk[k]
				if little {
					c = chunk[len(chunk)-1-k]
				}
				if bits {
					fmt.Fprintf(&b, "%08b", c)
				} else {
					fmt.Fprintf(&b, digits, c)
				}
			}
			b.WriteByte(' ')
		}
		if decimal {
			out.Printf("%08d: %-*s ", at, width, b.String())
		} else {
			out.Printf("%08x: %-*s ", at, width, b.String())
		}
		for _, c := range row {
			if c < ' ' || c > '~' {
				c = '.'
			}
			_ = out.WriteByte(c)
		}
		out.WriteString("\n")
		at += int64(len(row))
	}
	return 0
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
