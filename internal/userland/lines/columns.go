package lines

import (
	"bytes"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// paste joins lines of several files.
func paste(p *program.Process) int {
	opts, operands := p.Options(1, "d:sz", "delimiters= d", "serial s", "zero-terminated z")
	delims, serial, end := []string{"\t"}, false, byte('\n')
	for _, o := range opts {
		switch o.Name {
		case "d":
			delims = nil
			for i := 0; i < len(o.Value); i++ {
				c := o.Value[i]
				if c == '\\' && i+1 < len(o.Value) {
					i++
					d := map[byte]string{'n': "\n", 't': "\t", '\\': `\`, '0': "", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v"}
					if s, ok := d[o.Value[i]]; ok {
						delims = append(delims, s)
						continue
					}
					c = o.Value[i]
				}
				delims = append(delims, string(c))
			}
			if len(delims) == 0 {
				delims = []string{""}
			}
		case "s":
			serial = true
		case "z":
			end = 0
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	out := p.Out()
	if serial {
		return gnu.EachInput(p, operands, func(_ string, in *program.Input) {
			for i := 0; ; i++ {
				line, _, ok := in.Line(end)
				if !ok {
					break
				}
				if i > 0 {
					out.WriteString(delims[(i-1)%len(delims)])
				}
				_, _ = out.Write(line)
			}
			_ = out.WriteByte(end)
		})
	}
	var ins []*program.Input
	var stdin *program.Input
	for _, name := range operands {
		if name == "-" {
			if stdin == nil {
				stdin = p.Reader(p.Stdin)
			}
			ins = append(ins, stdin)
			continue
		}
		in, _, err := gnu.OpenInput(p, name)
		if err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			return 1
		}
		ins = append(ins, in)
	}
	done := make([]bool, len(ins))
	for {
		var row []byte
		some := false
		for i, in := range ins {
			if !done[i] {
				line, _, ok := in.Line(end)
				done[i] = !ok
				some = some || ok
				row = append(row, line...)
			}
			if i+1 < len(ins) {
				row = append(row, delims[i%len(delims)]...)
			}
		}
		if !some {
			return 0
		}
		_, _ = out.Write(row)
		_ = out.WriteByte(end)
	}
}

// comm compares sorted files line by line.
func comm(p *program.Process) int {
	opts, operands := p.Options(1, "123z", "check-order", "nocheck-order", "output-delimiter=", "total", "zero-terminated z")
	var hide [4]bool
	sep, end, total, ordered := "\t", byte('\n'), false, true
	strict := false
	for _, o := range opts {
		switch o.Name {
		case "1", "2", "3":
			hide[o.Name[0]-'0'] = true
		case "output-delimiter":
			if sep = o.Value; sep == "" {
				sep = "\x00"
			}
		case "z":
			end = 0
		case "total":
			total = true
		case "nocheck-order":
			ordered = false
		case "check-order":
			strict = true
		}
	}
	if !two(p, operands) {
		return 1
	}
	var ins [2]*program.Input
	for i := range ins {
		in, done, err := gnu.OpenInput(p, operands[i])
		if err != nil {
			p.Errorf("%s: %s", operands[i], program.Message(err))
			return 1
		}
		defer done()
		ins[i] = in
	}
	out := p.Out()
	var lines [2][]byte
	var have, warned [2]bool
	var counts [4]int // of the lines in each column
	code := 0
	next := func(i int) {
		last := bytes.Clone(lines[i])
		had := have[i]
		line, _, ok := ins[i].Line(end)
		lines[i], have[i] = bytes.Clone(line), ok
		if ok && had && ordered && (strict || counts[1]+counts[2] > 0) && bytes.Compare(last, line) > 0 && !warned[i] {
			warned[i] = true
			out.Flush()
			p.Errorf("file %d is not in sorted order", i+1)
			if code = 1; strict {
				p.Exit(1)
			}
		}
	}
	next(0)
	next(1)
	put := func(column int, line []byte) {
		counts[column]++
		if hide[column] {
			return
		}
		for i := 1; i < column; i++ {
			if !hide[i] {
				out.WriteString(sep)
			}
		}
		_, _ = out.Write(line)
		_ = out.WriteByte(end)
	}
	for have[0] || have[1] {
		c := 0
		switch {
		case !have[0]:
			c = 1
		case !have[1]:
			c = -1
		default:
			c = bytes.Compare(lines[0], lines[1])
		}
		switch {
		case c < 0:
			put(1, lines[0])
			next(0)
		case c > 0:
			put(2, lines[1])
			next(1)
		default:
			put(3, lines[0])
			next(0)
			next(1)
		}
	}
	if total {
		out.Printf("%d%s%d%s%d%stotal%c", counts[1], sep, counts[2], sep, counts[3], sep, end)
	}
	if code != 0 {
		out.Flush()
		p.Errorf("input is not in sorted order")
	}
	return code
}

// two refuses anything but two operands.
func two(p *program.Process, operands []string) bool {
	switch {
	case len(operands) == 0:
		p.Errorf("missing operand")
	case len(operands) == 1:
		p.Errorf("missing operand after %s", gnu.Quote(operands[0]))
	case len(operands) > 2:
		p.Errorf("extra operand %s", gnu.Quote(operands[2]))
	default:
		return true
	}
	p.Stderrf("Try '%s --help' for more information.\n", p.Name())
	return false
}

// joiner is a join that runs.
type joiner struct {
	names             []string
	lines             [2]int // that were read
	strict, unchecked bool   // the order is checked always, or never
	unpairable        bool   // there was a line without a partner
	disorder          [2]bool
	p                 *program.Process
	out               *program.Output
	sep               string // "" for blanks
	fold              bool
	empty             string
	format            []joinField
	auto              bool
	fields            [2]int
	unpaired          [2]bool
	only              bool
	ins               [2]*program.Input
	rows              [2][][]string // of the same key
	ahead             [2][]string
	have              [2]bool
	widths            [2]int
	end               byte
	header            bool
}

type joinField struct{ file, field int } // file -1 for the key

func joinCommand(p *program.Process) int {
	j := &joiner{p: p, out: p.Out(), end: '\n'}
	opts, operands := p.Options(1, "a:v:e:io:t:1:2:j:z", "ignore-case i", "header", "check-order", "nocheck-order", "zero-terminated z")
	for _, o := range opts {
		if code, done := j.option(o); done {
			return code
		}
	}
	if !two(p, operands) {
		return 1
	}
	j.names = operands
	for i := range j.ins {
		in, done, err := gnu.OpenInput(p, operands[i])
		if err != nil {
			p.Errorf("%s: %s", operands[i], program.Message(err))
			return 1
		}
		defer done()
		j.ins[i] = in
		j.next(i)
	}
	j.widths = [2]int{len(j.ahead[0]), len(j.ahead[1])}
	if j.header && (j.have[0] || j.have[1]) {
		j.row(j.ahead[0], j.ahead[1])
		j.ahead = [2][]string{}
		j.next(0)
		j.next(1)
	}
	for j.have[0] && j.have[1] {
		p.Charge(50)
		a, b := j.key(0, j.ahead[0]), j.key(1, j.ahead[1])
		switch c := j.compare(a, b); {
		case c < 0:
			j.alone(0)
		case c > 0:
			j.alone(1)
		default:
			for i := range 2 {
				j.rows[i] = j.rows[i][:0]
				for j.have[i] && j.compare(j.key(i, j.ahead[i]), a) == 0 {
					j.rows[i] = append(j.rows[i], j.ahead[i])
					p.Hold(64)
					j.next(i)
				}
			}
			if !j.only {
				for _, x := range j.rows[0] {
					for _, y := range j.rows[1] {
						j.row(x, y)
					}
				}
			}
			p.Drop(64 * (len(j.rows[0]) + len(j.rows[1])))
		}
	}
	for i := range 2 {
		for j.have[i] {
			j.alone(i)
		}
	}
	if j.disorder[0] || j.disorder[1] {
		j.out.Flush()
		p.Errorf("input is not in sorted order")
		return 1
	}
	return 0
}

// option takes one option. It returns whether the command ends with that, and the code.
func (j *joiner) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "a", "v":
		if o.Value != "1" && o.Value != "2" {
			j.p.Errorf("invalid file number: %s", gnu.Quote(o.Value))
			return 1, true
		}
		j.unpaired[o.Value[0]-'1'] = true
		j.only = j.only || o.Name == "v"
	case "e":
		j.empty = o.Value
	case "i":
		j.fold = true
	case "o":
		if o.Value == "auto" {
			j.auto = true
			break
		}
		for _, f := range strings.FieldsFunc(o.Value, func(r rune) bool { return r == ',' || r == ' ' }) {
			if f == "0" {
				j.format = append(j.format, joinField{-1, 0})
				continue
			}
			file, field, ok := strings.Cut(f, ".")
			if !ok || file != "1" && file != "2" {
				j.p.Errorf("invalid field specifier: %s", gnu.Quote(f))
				return 1, true
			}
			j.format = append(j.format, joinField{int(file[0] - '1'), j.number(field)})
		}
	case "t":
		if j.sep = o.Value; j.sep == `\0` {
			j.sep = "\x00"
		}
	case "1":
		j.fields[0] = j.number(o.Value)
	case "2":
		j.fields[1] = j.number(o.Value)
	case "j":
		j.fields[0] = j.number(o.Value)
		j.fields[1] = j.fields[0]
	case "z":
		j.end = 0
	case "header":
		j.header = true
	case "check-order":
		j.strict, j.unchecked = true, false
	case "nocheck-order":
		j.strict, j.unchecked = false, true
	}
	return 0, false
}

// order tells where a file is not sorted: always, or once there was a line without a partner.
func (j *joiner) order(i int, last []string, line []byte) {
	if last == nil || j.unchecked || j.disorder[i] || !j.strict && !j.unpairable || j.compare(j.key(i, last), j.key(i, j.ahead[i])) <= 0 {
		return
	}
	j.disorder[i] = true
	j.out.Flush()
	j.p.Errorf("%s:%d: is not sorted: %s", j.names[i], j.lines[i], line)
	if j.strict {
		j.p.Exit(1)
	}
}

func (j *joiner) next(i int) {
	last := j.ahead[i]
	j.lines[i]++
	line, _, ok := j.ins[i].Line(j.end)
	j.have[i] = ok
	if !ok {
		j.ahead[i] = nil
		return
	}
	if j.sep == "" {
		j.ahead[i] = strings.Fields(string(line))
	} else {
		j.ahead[i] = strings.Split(string(line), j.sep)
	}
	j.order(i, last, line)
}

func (j *joiner) key(i int, row []string) string {
	if j.fields[i] < len(row) {
		return row[j.fields[i]]
	}
	return ""
}

func (j *joiner) compare(a, b string) int {
	if j.fold {
		a, b = strings.ToLower(a), strings.ToLower(b)
	}
	return strings.Compare(a, b)
}

func (j *joiner) alone(i int) {
	j.unpairable = true
	if j.unpaired[i] {
		if i == 0 {
			j.row(j.ahead[0], nil)
		} else {
			j.row(nil, j.ahead[1])
		}
	}
	j.next(i)
}

func (j *joiner) row(a, b []string) {
	j.p.Charge(30)
	rows := [2][]string{a, b}
	key := ""
	if a != nil {
		key = j.key(0, a)
	} else {
		key = j.key(1, b)
	}
	var cells []string
	cell := func(s string) {
		if s == "" {
			s = j.empty
		}
		cells = append(cells, s)
	}
	if j.format != nil {
		for _, f := range j.format {
			switch {
			case f.file < 0:
				cell(key)
			case f.field < len(rows[f.file]):
				cell(rows[f.file][f.field])
			default:
				cell("")
			}
		}
	} else {
		cell(key)
		for i, row := range rows {
			width := len(row)
			if j.auto {
				width = j.widths[i]
			}
			for k := range width {
				if k == j.fields[i] {
					continue
				}
				if k < len(row) {
					cell(row[k])
				} else {
					cell("")
				}
			}
		}
	}
	sep := j.sep
	if sep == "" {
		sep = " "
	}
	j.out.WriteString(strings.Join(cells, sep))
	_ = j.out.WriteByte(j.end)
}

// number reads the number of a field, or ends the program. The first field has the number 0 here.
func (j *joiner) number(s string) int {
	n := gnu.ParseCount(j.p, 1, s, "invalid field number")
	if n < 1 {
		j.p.Errorf("invalid field number: %s", gnu.Quote(s))
		j.p.Exit(1)
	}
	return n - 1
}
