// Package awk is the awk of the virtual shell: that of POSIX with most of the functions of gawk.
//
// Elements of arrays come in the order in which they were made, so that output is the same each time.
package awk

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Program returns awk.
func Program() program.Program { return program.Func(run) }

const exitFatal = 2

// The variables that mean something to awk itself; their places are those of the globals.
const (
	vNF = iota
	vNR
	vFNR
	vFS
	vOFS
	vORS
	vRS
	vSUBSEP
	vCONVFMT
	vOFMT
	vFILENAME
	vRSTART
	vRLENGTH
	vIGNORECASE
	vFPAT
	vFIELDWIDTHS
	vRT
	vENVIRON
	vARGC
	vARGV
	vPROCINFO
	vSYMTAB
	vFUNCTAB
	vERRNO
	vLINT
	vBINMODE
	vTEXTDOMAIN
	vARGIND
	vPREC
	vROUNDMODE
)

var specials = []string{
	"NF", "NR", "FNR", "FS", "OFS", "ORS", "RS", "SUBSEP", "CONVFMT", "OFMT", "FILENAME", "RSTART", "RLENGTH", "IGNORECASE", "FPAT",
	"FIELDWIDTHS", "RT",
	"ENVIRON", "ARGC", "ARGV", "PROCINFO", "SYMTAB", "FUNCTAB", "ERRNO", "LINT", "BINMODE", "TEXTDOMAIN", "ARGIND", "PREC", "ROUNDMODE",
}

// flow is how a statement ended.
type flow uint8

const (
	normal flow = iota
	broke
	continued
	nextRecord
	nextFile
	exited
	returned
)

// engine runs a program. Its methods evaluate and execute. Code for one builtin, stream or kind of array is a function.
type engine struct {
	p        *program.Process
	builtins map[string]builtin
	s        *script
	globals  []cell
	frame    []cell
	depth    int
	gas      int
	debt     int // of memory, not counted yet

	local     *time.Location
	localName string

	record   string
	fields   []string
	isInput  []bool // which fields are as they were read
	split    bool   // the fields are those of the record
	stale    bool   // the record has to be made of the fields
	isText   bool   // the record was assigned a text
	nr, fnr  float64
	fs, rs   string
	ofs, ors string
	subsep   string
	convfmt  string
	ofmt     string
	widths   []width
	fpat     string
	byFPAT   bool
	fold     bool

	main     source
	handle   *vfs.Handle
	argument int
	opened   bool // an operand was a file

	out     *program.Output
	writers map[string]*writer
	readers map[string]*reader
	order   []string // of writers and readers
	regexps map[string]*posix.Regexp
	result  value
	code    int
	seed    uint64
	chance  uint64
	inEnd   bool
	line    int // of the statement that runs, 0 before the first
	sandbox bool
	octets  bool // characters are bytes
	loose   bool // input may have hexadecimal and octal numbers
	inplace string
	suffix  string // of the copies that inplace keeps

	changed  *vfs.Handle // the file that inplace writes
	standard *program.Output
}

// usage is gawk's text for a call without a program.
const usage = `Usage: gawk [POSIX or GNU style options] -f progfile [--] file ...
Usage: gawk [POSIX or GNU style options] [--] 'program' file ...
POSIX options:		GNU long options: (standard)
	-f progfile		--file=progfile
	-F fs			--field-separator=fs
	-v var=val		--assign=var=val
`

func run(p *program.Process) int {
	e := &engine{
		p: p, fs: " ", rs: "\n", ofs: " ", ors: "\n", subsep: "\x1c", convfmt: "%.6g", ofmt: "%.6g", argument: 1, out: p.Out(),
		builtins: builtins, writers: map[string]*writer{}, readers: map[string]*reader{}, regexps: map[string]*posix.Regexp{},
	}
	opts, operands := p.Options(exitFatal, "+F:v:f:e:i:E:W:bcCd::D::ghIkl:L::MNnOo::Pp::rsStV", "field-separator= F", "assign= v", "file= f",
		"source= e", "posix P", "traditional c",
		"re-interval r", "lint=?", "characters-as-bytes b", "sandbox S", "non-decimal-data n", "use-lc-numeric N", "optimize O", "version V",
		"help h", "include= i", "exec= E", "no-optimize s", "bignum M", "lint-old t",
		"csv k")
	var src strings.Builder
	var sources []origin
	add := func(name, text string) {
		sources = append(sources, origin{name, strings.Count(src.String(), "\n") + 1})
		src.WriteString(text + "\n")
	}
	given := false
	var assigns []string
	fs := ""
	hasFS := false
	for _, o := range opts {
		switch o.Name {
		case "F":
			fs, hasFS = o.Value, true
		case "v":
			if name, _, ok := strings.Cut(o.Value, "="); !ok || !isName(name) {
				if ok {
					p.Errorf("fatal: `%s' is not a legal variable name", name)
				} else {
					p.Errorf("fatal: `%s' argument to `-v' not in `var=value' form\n", o.Value)
					p.Stderrf("%s", usage)
				}
				return exitFatal
			}
			assigns = append(assigns, o.Value)
		case "f", "E":
			h := p.Stdin
			if o.Value != "-" {
				var err error
				if h, err = p.Open(o.Value, vfs.Read); err != nil {
					p.Errorf("fatal: cannot open source file `%s' for reading: %s", o.Value, program.Message(err))
					return exitFatal
				}
			}
			add(o.Value, strings.TrimSuffix(string(p.Reader(h).All()), "\n"))
			given = true
		case "e":
			add("cmd. line", o.Value)
			given = true
		case "V":
			p.Out().WriteString("GNU Awk 5.2.1, API 3.2 (agentbox)\n")
			return 0
		case "h":
			p.Out().WriteString(usage)
			return 0
		case "S":
			e.sandbox = true
		case "b":
			e.octets = true
		case "n":
			e.loose = true
		case "i":
			if o.Value == "inplace" {
				e.inplace = o.Value
				break
			}
			fallthrough
		case "W":
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option -%s is not supported here", o.Name)
			return exitFatal
		}
	}
	if !given {
		if len(operands) == 0 {
			p.Stderrf("%s", usage)
			return 1
		}
		add("cmd. line", operands[0])
		operands = operands[1:]
	}
	p.Charge(src.Len() * 50)
	s, err := parse(strings.TrimSuffix(src.String(), "\n"), sources, func(line int, text string) {
		if line < 0 {
			p.Errorf("%serror: %s", whereIs(sources, -line), text)
			return
		}
		p.Errorf("%swarning: %s", whereIs(sources, line), text)
	})
	if err != nil {
		switch f, ok := errors.AsType[foreign](err); {
		case ok:
			p.Lack(program.LackFeature, f.what)
			p.Errorf("%s", err.Error())
			return exitFatal
		case errors.Is(err, errUndefined):
			p.Errorf("%s", err.Error())
			return exitFatal
		case errors.Is(err, errRead):
		default:
			p.Errorf("%s", strings.ReplaceAll(err.Error(), "\x00", p.Name()+": "))
		}
		return 1
	}
	e.s = s
	e.globals = make([]cell, len(s.globals))
	setUpGlobals(e, operands)
	if hasFS {
		assignSpecial(e, vFS, str(unescape(fs)))
	}
	for _, a := range assigns {
		assignText(e, a)
	}
	defer e.abandon()
	return runProgram(e)
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		if !(c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

func setUpGlobals(e *engine, operands []string) {
	for i, v := range map[int]string{
		vFS: " ", vRS: "\n", vOFS: " ", vORS: "\n", vSUBSEP: "\x1c", vCONVFMT: "%.6g", vOFMT: "%.6g", vFILENAME: "", vRT: "",
		vFPAT: "[^[:space:]]+", vFIELDWIDTHS: "",
	} {
		e.globals[i].v = str(v)
	}
	for _, i := range []int{vERRNO, vTEXTDOMAIN} {
		e.globals[i].v = str(map[int]string{vTEXTDOMAIN: "messages"}[i])
	}
	for _, i := range []int{vNF, vNR, vFNR, vRSTART, vIGNORECASE, vLINT, vBINMODE, vARGIND} {
		e.globals[i].v = num(0)
	}
	e.globals[vRLENGTH].v, e.globals[vPREC].v, e.globals[vROUNDMODE].v = num(0), num(53), str("N")
	env := newArray()
	for _, kv := range e.p.Env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			e.set(env, k, in(v))
		}
	}
	e.globals[vENVIRON].arr = env
	argv := newArray()
	e.set(argv, "0", str(e.p.Name()))
	for i, a := range operands {
		e.set(argv, strconv.Itoa(i+1), in(a))
	}
	e.globals[vARGV].arr = argv
	e.globals[vARGC].v = num(float64(len(operands) + 1))
	info := newArray()
	e.set(info, "version", str("5.2.1"))
	e.set(info, "pid", num(float64(e.p.PID)))
	e.set(info, "ppid", num(float64(e.p.PPID)))
	for _, name := range []string{"uid", "gid", "euid", "egid"} {
		e.set(info, name, num(0))
	}
	for name, v := range map[string]string{"FS": "FS", "platform": "posix", "strftime": "%a %b %e %H:%M:%S %Z %Y"} {
		e.set(info, name, str(v))
	}
	e.set(info, "pgrpid", num(float64(e.p.PPID)))
	e.globals[vPROCINFO].arr = info
	e.globals[vSYMTAB].arr, e.globals[vFUNCTAB].arr = newArray(), newArray()
	if e.s.functab {
		for _, name := range slices.Concat(slices.Sorted(maps.Keys(builtins)), slices.Sorted(maps.Keys(e.s.functions))) {
			e.set(e.globals[vFUNCTAB].arr, name, str(name))
		}
	}
}

// assignText does what var=value says.
func assignText(e *engine, a string) {
	name, v, _ := strings.Cut(a, "=")
	if name == "INPLACE_SUFFIX" || name == "inplace::suffix" {
		e.suffix = unescape(v)
	}
	i, ok := e.s.globals[name]
	if !ok {
		return // the program does not know it
	}
	assignSpecial(e, i, in(unescape(v)))
}

// fatal ends the program for a mistake.
func (e *engine) fatal(format string, args ...any) {
	e.p.Errorf("%sfatal: %s", position(e), fmt.Sprintf(format, args...))
	e.finish()
	e.p.Exit(exitFatal)
}

func (e *engine) warn(format string, args ...any) {
	e.p.Errorf("%swarning: %s", position(e), fmt.Sprintf(format, args...))
}

// position says which statement runs, and on which record.
func position(e *engine) string {
	if e.line == 0 {
		return ""
	}
	at := whereIs(e.s.sources, e.line)
	if e.fnr > 0 {
		at += fmt.Sprintf("(FILENAME=%s FNR=%.0f) ", e.str(e.globals[vFILENAME].v), e.fnr)
	}
	return at
}

// tick counts work, and now and then charges it.
func (e *engine) tick(n int) {
	if e.gas += n; e.gas >= 4096 {
		n, e.gas = e.gas, 0
		e.p.Charge(n)
	}
}

// hold counts memory, and now and then accounts for it.
func (e *engine) hold(n int) {
	e.debt += n
	switch {
	case e.debt > 16<<10:
		e.p.Hold(e.debt)
		e.debt = 0
	case e.debt < -64<<10:
		e.p.Drop(-e.debt)
		e.debt = 0
	}
}

// appendText appends to a text that may be long.
func appendText(e *engine, dst []byte, s string) []byte {
	dst, err := bound.Append(e.p.Account, dst, s)
	e.p.Check(err)
	return dst
}

// fit refuses a text that no memory would hold.
func (e *engine) fit(size int) {
	e.tick(size / 8)
	if size > 1<<16 && int64(size) > e.p.Account.Spare() {
		e.p.Hold(size)
	}
}

// unwind is thrown where next or exit stands in a function.
type unwind struct{ to flow }

// runGuarded runs statements and catches an unwind.
func runGuarded(e *engine, body func() flow) (f flow) {
	depth, frame := e.depth, e.frame
	thrown := program.Catch(func() { f = body() })
	if thrown == nil {
		return f
	}
	u, ok := thrown.(unwind)
	if !ok {
		panic(thrown)
	}
	for ; e.depth > depth; e.depth-- {
		e.p.Account.Leave()
	}
	e.frame = frame
	return u.to
}

func runProgram(e *engine) int {
	f := runGuarded(e, func() flow { return e.block(e.s.begin) })
	if f != exited && (len(e.s.rules) > 0 || len(e.s.end) > 0 || len(e.s.beginFile) > 0 || len(e.s.endFile) > 0) {
		for {
			f = runGuarded(e, func() flow { return runRecords(e) })
			if f == nextFile {
				closeMainInput(e)
				continue
			}
			if f != nextRecord {
				break
			}
		}
	}
	e.inEnd = true
	if f != exited || len(e.s.end) > 0 && !skipsEnd(e) {
		runGuarded(e, func() flow { return e.block(e.s.end) })
	}
	e.tick(4096)
	e.finish()
	return e.code
}

// skipsEnd reports whether exit was called in an END.
func skipsEnd(e *engine) bool { return false }

// runRecords reads the input and runs the rules, until an unwind.
func runRecords(e *engine) flow {
	for nextMainRecord(e) {
		for _, r := range e.s.rules {
			e.tick(20)
			e.line = r.line
			if !ruleApplies(e, r) {
				continue
			}
			if r.bare {
				e.refresh()
				e.out.WriteString(e.record)
				e.out.WriteString(e.ors)
				continue
			}
			f := e.block(r.body)
			if f == exited || f == nextFile {
				return f
			}
			if f == nextRecord {
				break
			}
		}
	}
	return normal
}

func ruleApplies(e *engine, r *rule) bool {
	switch {
	case r.from == nil:
		return true
	case r.to == nil:
		return e.eval(r.from).truth()
	}
	if !r.inRange {
		if !e.eval(r.from).truth() {
			return false
		}
		r.inRange = true
	}
	if e.eval(r.to).truth() {
		r.inRange = false
	}
	return true
}

func (e *engine) block(body []stmt) flow {
	for _, s := range body {
		if f := e.exec(s); f != normal {
			return f
		}
	}
	return normal
}

func (e *engine) exec(s stmt) flow {
	e.tick(10)
	switch s := s.(type) {
	case *lined:
		e.line = s.line
		return e.exec(s.s)
	case *simple:
		e.eval(s.x)
	case *output:
		e.print(s)
	case *ifStmt:
		if e.eval(s.test).truth() {
			return e.block(s.then)
		}
		return e.block(s.orElse)
	case *block:
		return e.block(s.body)
	case *loop:
		return runLoop(e, s)
	case *forIn:
		a := e.array(s.array)
		for _, key := range sortedKeysOf(e, a) {
			e.tick(20)
			if _, ok := a.at[key]; !ok {
				continue
			}
			e.store(s.to, in(key))
			switch f := e.block(s.body); f {
			case normal, continued:
			case broke:
				return normal
			default:
				return f
			}
		}
	case *deleteAll:
		refuseFixed(e, s.array, "`delete' is not allowed with %s")
		emptyArray(e, e.array(s.array))
	case *deleteOne:
		refuseFixed(e, s.array, "`delete' is not allowed with %s")
		removeElement(e, e.array(s.array), e.subscript(s.subs))
	case *jump:
		return s.to
	case *ret:
		e.result = value{}
		if s.x != nil {
			e.result = e.eval(s.x)
		}
		return returned
	case *exitStmt:
		if s.x != nil {
			e.code = int(e.eval(s.x).num()) & 0xff
		}
		return exited
	case *choose:
		return runSwitch(e, s)
	}
	return normal
}

func runLoop(e *engine, s *loop) flow {
	if s.init != nil {
		e.exec(s.init)
	}
	for first := s.first; first || s.test == nil || e.eval(s.test).truth(); first = false {
		e.tick(10)
		switch f := e.block(s.body); f {
		case normal, continued:
		case broke:
			return normal
		default:
			return f
		}
		if s.after != nil {
			e.exec(s.after)
		}
	}
	return normal
}

func runSwitch(e *engine, s *choose) flow {
	v := e.eval(s.x)
	at := -1
	for i, c := range s.cases {
		if c.x == nil {
			continue
		}
		x := e.eval(c.x)
		if c.regex && e.matches(e.str(v), x.s) || !c.regex && e.compare("==", v, x) {
			at = i
			break
		}
	}
	if at < 0 {
		at = slices.IndexFunc(s.cases, func(c choice) bool { return c.x == nil })
	}
	for ; at >= 0 && at < len(s.cases); at++ {
		switch f := e.block(s.cases[at].body); f {
		case normal:
		case broke:
			return normal
		default:
			return f
		}
	}
	return normal
}
