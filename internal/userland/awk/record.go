package awk

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// maxFields bounds the fields of a record.
const maxFields = 1 << 20

// source reads records.
type source struct {
	in   *program.Input
	rest string // what a separating expression left
	all  bool   // everything was read into rest
}

// read reads the next record.
func (e *engine) read(s *source) (string, bool) {
	switch {
	case s.all:
	case e.rs == "":
		return readParagraph(e, s)
	case len(e.rs) == 1:
		line, ended, ok := s.in.Line(e.rs[0])
		e.globals[vRT].v = str("")
		if ended {
			e.globals[vRT].v = str(e.rs)
		}
		return string(line), ok
	default:
		s.rest, s.all = string(s.in.All()), true
	}
	if s.rest == "" {
		return "", false
	}
	m, err := e.compile(e.rs).FindString(s.rest)
	e.check(err)
	if len(m) == 0 || m[1] == m[0] {
		record := s.rest
		s.rest = ""
		e.globals[vRT].v = str("")
		return record, true
	}
	record := s.rest[:m[0]]
	e.globals[vRT].v = str(s.rest[m[0]:m[1]])
	s.rest = s.rest[m[1]:]
	return record, true
}

// readParagraph reads lines up to an empty one.
func readParagraph(e *engine, s *source) (string, bool) {
	var b strings.Builder
	any := false
	for {
		line, _, ok := s.in.Line('\n')
		switch {
		case !ok:
			e.globals[vRT].v = str("\n")
			return b.String(), any
		case len(line) == 0 && any:
			e.globals[vRT].v = str("\n\n")
			return b.String(), true
		case len(line) == 0:
			continue
		}
		if any {
			b.WriteByte('\n')
		}
		b.Write(line)
		e.fit(b.Len())
		any = true
	}
}

// setRecord makes a text $0.
func (e *engine) setRecord(s string) {
	e.record, e.split, e.stale, e.isText = s, false, false, false
}

// keepFields splits the record before what splits it changes.
func keepFields(e *engine) {
	if !e.split && e.record != "" {
		e.splitRecord()
	}
}

// splitRecord makes the fields.
func (e *engine) splitRecord() {
	if e.split {
		return
	}
	e.split = true
	e.fields = e.fields[:0]
	e.tick(10 + len(e.record))
	switch {
	case e.record == "":
	case e.byFPAT:
		all, err := e.compile(e.fpat).FindAllString(e.record, -1)
		e.check(err)
		for _, m := range all {
			e.fields = append(e.fields, e.record[m[0]:m[1]])
		}
	case e.widths != nil:
		rest := e.record
		for _, w := range e.widths {
			rest = rest[bytesOf(e, rest, w.skip):]
			if rest == "" {
				break
			}
			n := len(rest)
			if w.size >= 0 {
				n = bytesOf(e, rest, w.size)
			}
			e.fields = append(e.fields, rest[:n])
			rest = rest[n:]
		}
	default:
		fs := e.fs
		if e.fold && len(fs) == 1 && fs[0]|0x20 >= 'a' && fs[0]|0x20 <= 'z' {
			fs = "[" + fs + "]"
		}
		if e.rs == "" && fs != " " {
			if len(fs) == 1 {
				fs = "[" + fs + "]"
				if e.fs == "\\" || e.fs == "^" {
					fs = `\` + e.fs
				}
			}
			fs = "(" + fs + ")|\n"
		}
		e.fields, _ = cutFields(e, e.fields, nil, e.record, fs)
	}
	for len(e.isInput) < len(e.fields) {
		e.isInput = append(e.isInput, true)
	}
	for i := range e.fields {
		e.isInput[i] = true
	}
}

// width is a field of FIELDWIDTHS: how many characters are left out before it, and how many it has; -1 for the rest.
type width struct{ skip, size int }

// readWidths reads a word of FIELDWIDTHS.
func readWidths(e *engine, word string) (w width) {
	skip, size, ok := strings.Cut(word, ":")
	if !ok {
		skip, size = "0", word
	}
	n, err := strconv.Atoi(skip)
	if w.skip = n; size == "*" && err == nil && n >= 0 {
		return width{n, -1}
	}
	m, bad := strconv.Atoi(size)
	if w.size = m; err != nil || bad != nil || n < 0 || m < 0 {
		e.fatal("invalid FIELDWIDTHS value, for field %d, near `%s'", len(e.widths)+1, word)
	}
	return w
}

// bytesOf returns how many bytes the first n characters of a text take.
func bytesOf(e *engine, s string, n int) int {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		if e.octets {
			size = 1
		}
		at += size
	}
	return at
}

// someWork counts the work of many fields, some of them at once.
func someWork(e *engine, fields int) {
	if fields%1024 == 0 {
		e.tick(1024 * 10)
	}
}

// cutFields splits a text as FS says, and keeps the separators if seps is not nil.
func cutFields(e *engine, fields, seps []string, s, fs string) ([]string, []string) {
	switch {
	case s == "":
		return fields, seps
	case fs == " ":
		i := 0
		for {
			start := i
			for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n') {
				i++
			}
			if seps != nil { // what is before the first, between them, and behind the last
				seps = append(seps, s[start:i])
			}
			if i == len(s) {
				return fields, seps
			}
			start = i
			for i < len(s) && s[i] != ' ' && s[i] != '\t' && s[i] != '\n' {
				i++
			}
			fields = append(fields, s[start:i])
			someWork(e, len(fields))
		}
	case fs == "":
		for len(s) > 0 {
			_, size := utf8.DecodeRuneInString(s)
			fields = append(fields, s[:size])
			someWork(e, len(fields))
			if s = s[size:]; seps != nil && s != "" {
				seps = append(seps, "")
			}
		}
		return fields, seps
	case len(fs) == 1 && fs != "\\":
		for {
			i := strings.IndexByte(s, fs[0])
			if i < 0 {
				return append(fields, s), seps
			}
			fields = append(fields, s[:i])
			someWork(e, len(fields))
			if seps != nil {
				seps = append(seps, fs)
			}
			s = s[i+1:]
		}
	}
	if fs == "\\" {
		fs = `\\`
	}
	all, err := e.compile(fs).FindAllString(s, -1)
	e.check(err)
	last := 0
	for _, m := range all {
		if m[0] == m[1] {
			continue
		}
		fields = append(fields, s[last:m[0]])
		if seps != nil {
			seps = append(seps, s[m[0]:m[1]])
		}
		last = m[1]
	}
	return append(fields, s[last:]), seps
}

func fieldNumberOf(e *engine, x expr) int {
	n := e.eval(x).num()
	if n < 0 || n > maxFields || n != n {
		e.fatal("attempt to access field %s", e.str(num(n)))
	}
	return int(n)
}

func (e *engine) field(i int) value {
	if i == 0 {
		e.refresh()
		if e.isText {
			return str(e.record)
		}
		return in(e.record)
	}
	e.splitRecord()
	if i > len(e.fields) {
		return value{}
	}
	if !e.isInput[i-1] {
		return str(e.fields[i-1])
	}
	return in(e.fields[i-1])
}

// resizeFields sets how many fields there are.
func resizeFields(e *engine, n int) {
	for len(e.fields) < n {
		e.fields = append(e.fields, "")
	}
	e.fields = e.fields[:n]
	for len(e.isInput) < n {
		e.isInput = append(e.isInput, true)
	}
	e.tick(n)
}

func (e *engine) setField(i int, s string, fromInput bool) {
	if i == 0 {
		e.setRecord(s)
		e.isText = !fromInput
		return
	}
	e.splitRecord()
	if i > len(e.fields) {
		resizeFields(e, i)
	}
	e.fields[i-1] = s
	e.isInput[i-1] = fromInput
	e.stale = true
}

// refresh makes $0 of the fields if one was changed.
func (e *engine) refresh() {
	if !e.stale {
		return
	}
	e.isText = false
	size := 0
	for _, f := range e.fields {
		size += len(f) + len(e.ofs)
	}
	e.fit(size)
	if size < bound.Piece {
		e.record, e.stale = strings.Join(e.fields, e.ofs), false
		return
	}
	all := make([]byte, 0, size)
	for i, f := range e.fields {
		if i > 0 {
			all = e.p.Append(all, []byte(e.ofs))
		}
		all = e.p.Append(all, []byte(f))
		someWork(e, i)
	}
	e.record, e.stale = e.p.Text(all), false
}

// nextMainRecord reads the next record of the input and reports whether there is one.
func nextMainRecord(e *engine) bool {
	s, ok := readMainInput(e)
	if !ok {
		return false
	}
	e.setRecord(s)
	e.nr++
	e.fnr++
	return true
}

func readMainInput(e *engine) (string, bool) {
	for {
		if e.main.in == nil && !openNextInput(e) {
			return "", false
		}
		if s, ok := e.read(&e.main); ok {
			return s, true
		}
		if err := e.main.in.Err(); err != nil {
			e.p.Errorf("warning: cannot read file `%s': %s", e.str(e.globals[vFILENAME].v), program.Message(err))
			e.code = exitFatal
		}
		closeMainInput(e)
	}
}

func closeMainInput(e *engine) {
	if e.main.in == nil {
		return
	}
	e.main = source{}
	if e.handle != nil {
		_ = e.p.Close(e.handle)
		e.handle = nil
	}
	if len(e.s.endFile) > 0 {
		e.block(e.s.endFile)
	}
	endInplace(e)
}

// openNextInput opens the next operand that is a file.
func openNextInput(e *engine) bool {
	argv := e.globals[vARGV].arr
	for ; e.argument < int(e.globals[vARGC].v.num()); e.argument++ {
		v, ok := argv.get(strconv.Itoa(e.argument))
		arg := e.str(v)
		if !ok || arg == "" {
			continue
		}
		if name, _, ok := strings.Cut(arg, "="); ok && isName(name) {
			assignText(e, arg)
			continue
		}
		e.opened = true
		if arg == "-" {
			beginFile(e, "-", e.p.Stdin)
			e.argument++
			return true
		}
		h, err := e.p.Open(arg, vfs.Read)
		if err == nil && h.Kind() == vfs.Directory {
			e.p.Errorf("warning: command line argument `%s' is a directory: skipped", arg)
			_ = e.p.Close(h)
			continue
		}
		if err != nil && len(e.s.beginFile) > 0 { // which may go on to the next one
			e.globals[vERRNO].v = str(program.Message(err))
			e.fnr = 0
			e.globals[vFILENAME].v = str(arg)
			if f := runGuarded(e, func() flow { return e.block(e.s.beginFile) }); f == nextFile {
				continue
			} else if f == exited {
				panic(unwind{f})
			}
		}
		if err != nil {
			e.out.Flush()
			e.fatal("cannot open file `%s' for reading: %s", arg, program.Message(err))
		}
		e.globals[vERRNO].v = str("")
		e.handle = h
		e.globals[vARGIND].v = num(float64(e.argument))
		beginFile(e, arg, h)
		e.argument++
		return true
	}
	if e.opened {
		return false
	}
	e.opened = true
	beginFile(e, "-", e.p.Stdin)
	return true
}

func beginFile(e *engine, name string, h *vfs.Handle) {
	e.main = source{in: e.p.Reader(h)}
	e.fnr = 0
	e.globals[vFILENAME].v = str(name)
	if e.inplace != "" && h != e.p.Stdin {
		beginInplace(e, name, h)
	}
	if len(e.s.beginFile) > 0 {
		e.block(e.s.beginFile)
	}
}

// beginInplace has print write the file anew that is read, which is in memory until it was read.
func beginInplace(e *engine, name string, h *vfs.Handle) {
	text, mode := string(e.main.in.All()), h.Node().Info().Mode
	e.p.Hold(len(text))
	e.main.in = e.p.Reader(e.p.FS.Stream(&given{strings.NewReader(text)}, vfs.Read))
	e.out.Flush()
	if e.suffix != "" {
		rewriteFile(e, name+e.suffix, mode).WriteString(text)
		endInplace(e)
	}
	rewriteFile(e, name, mode)
}

// rewriteFile has print write a file.
func rewriteFile(e *engine, name string, mode uint32) *program.Output {
	out, err := e.p.OpenAs(name, vfs.Write|vfs.Create|vfs.Truncate, mode)
	if err != nil {
		e.fatal("inplace::begin: cannot open `%s': %s", name, program.Message(err))
	}
	e.changed, e.standard = out, e.out
	e.out = e.p.Writer(out)
	return e.out
}

// endInplace gives the standard output back.
func endInplace(e *engine) {
	if e.changed == nil {
		return
	}
	e.out.Flush()
	_ = e.p.Close(e.changed)
	e.out, e.changed, e.standard = e.standard, nil, nil
}

// given is a text as a stream.
type given struct{ *strings.Reader }

func (given) Write([]byte) (int, error) { return 0, vfs.EBADF }
