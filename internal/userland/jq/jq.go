// Package jq has the command jq.
package jq

import (
	"context"
	"errors"
	"strings"

	"github.com/itchyny/gojq"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{"jq": jq})
}

// gasPerJQ is what an instruction of jq's machine costs.
const gasPerJQ = 150

// maxFilter is how many bytes a program may have: what is nested in it, and what is named, takes time with the square of its number.
const maxFilter = 64 << 10

// querier is a jq that runs. Its methods are the builtins whose work and memory it counts, and what those share.
type querier struct {
	p      *program.Process
	out    *program.Output
	indent string
	packed bool
	live   bool // what is encoded is printed, so that it may leave before it is whole
	raw    bool
	joined bool
	nul    bool
	ascii  bool
	sorted bool
	seq    bool

	order  map[uintptr][]string // of the keys of the objects that were read
	keep   []map[string]any     // so that their addresses stay theirs
	rank   map[string]int       // the order in which keys were first seen in the input
	shapes map[string][]string  // the objects that the program writes, by their sorted keys
	texts  map[string]int       // the order in which the program names keys

	machine *machine // that runs; nil before
	fresh   int      // bytes that may have been made since the values were weighed

	regexps map[string]jqExpression
	name    string // of which the program asks objects, where it is one only
	keyed   bool   // the program computes the keys of objects
}

// steps is a context that charges each instruction, which is what jq's machine asks it before.
type steps struct {
	context.Context
	p       *program.Process
	n       int
	machine *machine
}

func (s *steps) Done() <-chan struct{} {
	s.p.Check(s.p.Account.Check()) // an instruction may take as much memory as all before it
	if s.n++; s.n%64 == 0 {
		s.p.Charge(64 * gasPerJQ)
		if s.n%growEvery == 0 {
			s.machine.grow()
		}
	}
	return nil
}

// jqOwn takes the place of what would ask the clock and the time zone of the machine, of what jq answers where the library has an error,
// and of what goes through an object in the order of its keys.
const jqOwn = `def now: _clock; def localtime: _localtime; def leaf_paths: paths(scalars); def strflocaltime($f): _strflocaltime($f);
def ltrimstr($x): if type == "string" and ($x | type) == "string" and startswith($x) then .[($x | length):] end;
def _each: if _unordered then .[keys_unsorted[]] else .[] end; def map(f): [_each | f]; def map_values(f): _each |= f;
def recurse: def r: ., (_each? | r); r; def to_entries: [keys_unsorted[] as $k | {key: $k, value: .[$k]}];
def from_entries: map({(.key // .Key // .name // .Name): if has("value") then .value else .Value end}) as $all | $all | add // {} | _ordered($all);
def with_entries(f): to_entries | map(f) | from_entries;
def walk(f): def w: if type == "array" then map(w) elif type == "object" then map_values(w) end | f; w;
def paths: path(..) | select(. != []); def paths(f): path(.. | select(f)) | select(. != []);
def tostream: path(def r: (_each? | r), .; r) as $p | getpath($p) | reduce path(_each?) as $q ([$p, .]; [$p + $q]);
def INDEX(f): INDEX(_each; f); def toarray: if type == "array" then . else [.] end; def ascii: [.] | implode; def have_decnum: false; def have_literal_numbers: true;
def rtrimstr($x): if type == "string" and ($x | type) == "string" and endswith($x) then .[:length - ($x | length)] end; .`

// jqInput is where jq's values come from.
type jqInput struct {
	q      *querier
	files  []string
	name   string
	data   []byte
	at     int
	raw    bool
	stream bool      // values are divided into their parts
	events *jqEvents // of the present value
	failed int
}

// call is a call of jq: what its arguments say.
type call struct {
	p          *program.Process
	q          *querier
	args       []string // that are not read yet
	ended      bool     // by --
	filter     string
	hasFilter  bool
	fromFile   string
	files      []string
	library    []string // the folders of modules
	null       bool
	slurp      bool
	rawInput   bool
	status     bool
	stream     bool
	names      []string // of the variables
	values     []any
	named      map[string]any
	positional []any
	rest       int // what the other arguments are: 1 for --args, 2 for --jsonargs
}

// set makes a variable of the filter.
func (c *call) set(name string, v any) {
	c.names = append(c.names, "$"+name)
	c.values = append(c.values, v)
	c.named[name] = v
}

// need takes the n arguments of an option, or ends the program.
func (c *call) need(n int, of string) []string {
	if len(c.args) < n {
		c.p.Errorf("error: %s takes %d parameter%s (e.g. %s)", of, n, gnu.Plural(n), of+strings.Repeat(" x", n))
		c.p.Exit(2)
	}
	took := c.args[:n]
	c.args = c.args[n:]
	return took
}

// parse reads the one JSON value of an option, or ends the program.
func (c *call) parse(text, what string) any {
	vs, err := allValues(c.q, []byte(text))
	if err != nil || len(vs) != 1 {
		c.p.Errorf("Invalid JSON text passed to --%s", what)
		c.p.Stderrf("Use jq --help for help with command-line options,\nor see the jq manpage, or online docs  at " +
			"https://stedolan.github.io/jq\n")
		c.p.Exit(2)
	}
	return vs[0]
}

// operand takes an argument that is not an option.
func (c *call) operand(a string) {
	switch {
	case !c.hasFilter && c.fromFile == "":
		c.filter, c.hasFilter = a, true
	case c.rest == 1:
		c.positional = append(c.positional, a)
	case c.rest == 2:
		c.positional = append(c.positional, c.parse(a, "jsonargs"))
	default:
		c.files = append(c.files, a)
	}
}

// word takes an option that is a word. It returns the code where jq ends with that, and whether it knows the option.
func (c *call) word(a string) (code int, done, known bool) {
	switch a {
	case "--":
		c.ended = true
		return 0, false, true
	case "--arg":
		v := c.need(2, a)
		c.set(v[0], v[1])
		return 0, false, true
	case "--argjson":
		v := c.need(2, a)
		c.set(v[0], c.parse(v[1], "argjson"))
		return 0, false, true
	case "--slurpfile", "--rawfile":
		v := c.need(2, a)
		b, err := gnu.ReadWhole(c.p, v[1])
		if err != nil {
			c.p.Errorf("error: Bad JSON in --%s %s %s: Could not open %s: %s", a[2:], v[0], v[1], v[1], program.Message(err))
			return 2, true, true
		}
		if a == "--rawfile" {
			c.set(v[0], string(b))
			return 0, false, true
		}
		all, err := allValues(c.q, b)
		if err != nil {
			c.p.Errorf("error: Bad JSON in --slurpfile %s %s: %s", v[0], v[1], err.Error())
			return 2, true, true
		}
		if all == nil {
			all = []any{}
		}
		c.set(v[0], all)
		return 0, false, true
	case "--args":
		c.rest = 1
		return 0, false, true
	case "--jsonargs":
		c.rest = 2
		return 0, false, true
	case "--indent":
		n := gnu.ParseCount(c.p, 2, c.need(1, a)[0], "indent")
		if n > 7 {
			c.p.Errorf("Cannot indent more than 7 characters")
			return 2, true, true
		}
		c.q.indent = strings.Repeat(" ", n)
		c.q.packed = n == 0
		return 0, false, true
	case "--tab":
		c.q.indent = "\t"
		return 0, false, true
	case "--raw-output0":
		c.q.raw, c.q.nul = true, true
		return 0, false, true
	case "--seq":
		c.q.seq = true
		return 0, false, true
	case "--stream":
		c.stream = true
		return 0, false, true
	case "--unbuffered":
		return 0, false, true
	case "--from-file":
		c.fromFile = c.need(1, a)[0]
		return 0, false, true
	case "-L", "--library-path":
		c.library = append(c.library, c.need(1, a)[0])
		return 0, false, true
	}
	return 0, false, false
}

// letters takes an option of letters, or the long form of one. It returns the code where jq ends with that.
func (c *call) letters(a string) (code int, done bool) {
	if folder, ok := strings.CutPrefix(a, "-L"); ok {
		c.library = append(c.library, folder)
		return 0, false
	}
	letters := a[1:]
	if strings.HasPrefix(a, "--") {
		letters = map[string]string{
			"--null-input": "n", "--raw-output": "r", "--join-output": "j", "--compact-output": "c", "--slurp": "s", "--sort-keys": "S",
			"--exit-status": "e",
			"--raw-input":   "R", "--ascii-output": "a", "--color-output": "C", "--monochrome-output": "M", "--help": "h", "--version": "V",
		}[a]
		if letters == "" {
			letters = "?"
		}
	}
	for _, letter := range letters {
		switch letter {
		case 'n':
			c.null = true
		case 'r':
			c.q.raw = true
		case 'j':
			c.q.raw, c.q.joined = true, true
		case 'c':
			c.q.packed = true
		case 's':
			c.slurp = true
		case 'S':
			c.q.sorted = true
		case 'e':
			c.status = true
		case 'R':
			c.rawInput = true
		case 'a':
			c.q.ascii = true
		case 'C', 'M':
		case 'f':
			c.fromFile = c.need(1, a)[0]
		case 'h':
			c.q.out.WriteString("Usage:\tjq [OPTIONS] FILTER [FILES...]\n")
			return 0, true
		case 'V':
			c.q.out.WriteString("jq-1.7.1\n")
			return 0, true
		default:
			c.p.Lack(program.LackOption, a)
			c.p.Errorf("Unknown option: %s", a)
			c.p.Stderrf("Use jq --help for help with command-line options,\nor see the jq manpage, or online docs  at " +
				"https://stedolan.github.io/jq\n")
			return 2, true
		}
	}
	return 0, false
}

// arguments reads the arguments. It returns the code where jq ends with that.
func (c *call) arguments() (code int, done bool) {
	for len(c.args) > 0 {
		a := c.args[0]
		c.args = c.args[1:]
		if c.ended || a == "" || a[0] != '-' || a == "-" {
			c.operand(a)
			continue
		}
		code, done, known := c.word(a)
		if !known {
			code, done = c.letters(a)
		}
		if done {
			return code, true
		}
	}
	return 0, false
}

func jq(p *program.Process) int {
	q := &querier{p: p, out: p.Out(), indent: "  ", order: map[uintptr][]string{}, rank: map[string]int{}, shapes: map[string][]string{
		"key\x00value": {"key", "value"}, "captures\x00length\x00offset\x00string": {"offset", "length", "string", "captures"},
		"length\x00name\x00offset\x00string": {"offset", "length", "string", "name"}, "name\x00value": {"name", "value"},
		"named\x00positional": {"positional", "named"},
	}, texts: map[string]int{}, regexps: map[string]jqExpression{}}
	c := &call{p: p, q: q, args: p.Args[1:], named: map[string]any{}, positional: []any{}}
	if code, done := c.arguments(); done {
		return code
	}
	if c.fromFile != "" {
		b, err := gnu.ReadWhole(p, c.fromFile)
		if err != nil {
			p.Errorf("error: Could not open %s: %s", c.fromFile, program.Message(err))
			return 2
		}
		if c.hasFilter {
			c.files = append([]string{c.filter}, c.files...)
		}
		c.filter = string(b)
	} else if !c.hasFilter {
		p.Stderrf("Usage:\tjq [OPTIONS] FILTER [FILES...]\n")
		return 2
	}
	if len(c.filter) > maxFilter {
		p.Errorf("error: the program has %d bytes; at most %d are taken", len(c.filter), maxFilter)
		return 3
	}
	p.Charge(len(c.filter)*200 + len(c.filter)*len(c.filter)/16)
	query, err := gojq.Parse(c.filter)
	if err != nil {
		p.Errorf("error: %s", err.Error())
		p.Errorf("1 compile error")
		return 3
	}
	studyKeys(q, c.filter)
	q.name, q.keyed = onlyName(query), keyed(c.filter)
	jqAdapted(query)
	inOrder(query)
	line := 1 + strings.Count(c.filter[:max(strings.Index(c.filter, "$__loc__"), 0)], "\n")
	own, err := gojq.Parse(jqOwn)
	if err != nil {
		p.Errorf("error: %s", err.Error())
		return 3
	}
	query.FuncDefs = append(own.FuncDefs, query.FuncDefs...)
	in := &jqInput{q: q, files: c.files, raw: c.rawInput, stream: c.stream}
	if len(c.files) == 0 {
		in.files = []string{"-"}
	}
	c.names = append(c.names, "$ARGS") // it is not a name of its own: a value that held itself could never be written
	c.values = append(c.values, map[string]any{"named": c.named, "positional": c.positional})
	c.names = append(c.names, "$__loc__")
	c.values = append(c.values, map[string]any{"file": "<top-level>", "line": line})
	if c.library == nil {
		c.library = []string{"~/.jq"}
	}
	modules := &jqModules{q: q, folders: c.library, bytes: len(c.filter)}
	code, err := gojq.Compile(query, append(compilerOptions(q, in, c.names), gojq.WithModuleLoader(modules))...)
	if err != nil {
		if label, ok := strings.CutPrefix(err.Error(), "label not defined: $"); ok {
			err = errors.New("$*label-" + label + " is not defined")
		}
		p.Errorf("error: %s", err.Error())
		p.Errorf("1 compile error")
		return 3
	}
	if err := meterFunctions(q, code); err != nil {
		p.Errorf("error: %s", err.Error())
		return 3
	}
	exit := 0
	last := any(nil)
	any1 := false
	work := func(v any) {
		failed, l, some := runQuery(q, code, v, c.values, in)
		if some {
			last, any1 = l, true
		}
		if failed != 0 {
			exit = failed
		}
	}
	switch {
	case c.null:
		work(nil)
	case c.slurp && c.rawInput:
		var b strings.Builder
		in.raw = true
		for in.open() {
			b.WriteString(q.p.Text(in.data))
			in.at = len(in.data)
		}
		work(b.String())
	case c.slurp:
		all := []any{}
		for {
			v, ok := in.Next()
			if !ok {
				break
			}
			if err, isErr := v.(error); isErr {
				p.Stderrf("parse error: %s\n", err.Error())
				return 2
			}
			all = append(all, v)
		}
		work(all)
	default:
		for {
			v, ok := in.Next()
			if !ok {
				break
			}
			if err, isErr := v.(error); isErr {
				p.Stderrf("parse error: %s\n", err.Error())
				exit = 2
				break
			}
			work(v)
		}
	}
	if in.failed != 0 && exit == 0 {
		exit = in.failed
	}
	if c.status && exit == 0 {
		switch {
		case !any1:
			return 4
		case last == nil || last == false:
			return 1
		}
	}
	return exit
}

func compilerOptions(q *querier, in *jqInput, names []string) []gojq.CompilerOption {
	p := q.p
	return []gojq.CompilerOption{
		gojq.WithVariables(names),
		gojq.WithInputIter(in),
		gojq.WithEnvironLoader(func() []string { return p.Env }),
		gojq.WithFunction("_clock", 0, 0, func(any, []any) any { return float64(p.Now().UnixMicro()) / 1e6 }),
		gojq.WithFunction("_words", 1, 1, func(v any, args []any) any {
			s, ok := v.(string)
			key, _ := args[0].(string)
			if !ok {
				return v
			}
			return wordsOf(q, s, key)
		}),
		gojq.WithFunction("keys_unsorted", 0, 0, func(v any, _ []any) any { return unsortedKeysOf(q, v) }),
		gojq.WithFunction("_unordered", 0, 0, func(v any, _ []any) any { return unorderedFunction(q, v) }),
		gojq.WithFunction("_ordered", 1, 1, func(v any, args []any) any { return orderedFunction(q, v, args) }),
		gojq.WithFunction("_localtime", 0, 0, func(v any, _ []any) any { return localTime(p, v) }),
		gojq.WithFunction("_strflocaltime", 1, 1, func(v any, args []any) any { return formatLocalTime(p, v, args[0]) }),
		gojq.WithFunction("input_filename", 0, 0, func(any, []any) any {
			if in.name == "" || in.name == "-" {
				return nil
			}
			return in.name
		}),
		gojq.WithFunction("input_line_number", 0, 0, func(any, []any) any { return strings.Count(string(in.data[:in.at]), "\n") }),
		gojq.WithFunction("debug", 0, 1, func(v any, args []any) any {
			x := v
			if len(args) > 0 {
				x = args[0]
			}
			p.Stderrf(`["DEBUG:",%s]`+"\n", textOf(q, x))
			return v
		}),
		gojq.WithFunction("stderr", 0, 0, func(v any, _ []any) any {
			p.Stderrf("%s", textOf(q, v))
			return v
		}),
	}
}

// textOf writes a value without blanks.
func textOf(q *querier, v any) string {
	was := q.packed
	q.packed = true
	b := appendValue(q, nil, v, 0)
	q.packed = was
	return string(b)
}

// runQuery runs the program on one value.
func runQuery(q *querier, code *gojq.Code, v any, values []any, in *jqInput) (exit int, last any, some bool) {
	s := &steps{Context: context.Background(), p: q.p}
	iter := code.RunWithContext(s, v, values...)
	var err error
	if s.machine, err = machineFor(q, code, iter); err != nil {
		q.p.Errorf("error: %s", err.Error())
		return 3, nil, false
	}
	q.machine = s.machine
	for {
		v, ok := iter.Next()
		if !ok {
			return exit, last, some
		}
		if err, isErr := v.(error); isErr {
			if halt, ok := errors.AsType[*gojq.HaltError](err); ok {
				q.out.Flush()
				if x := halt.Value(); x != nil {
					if s, isText := x.(string); isText {
						q.p.Stderrf("%s", s)
					} else {
						q.p.Stderrf("%s\n", textOf(q, x))
					}
				}
				q.p.Exit(halt.ExitCode())
			}
			if of, ok := errors.AsType[gojq.ValueError](err); ok {
				if _, isText := of.Value().(string); !isText {
					q.p.Errorf("error (at %s) (not a string): %s", in.where(), textOf(q, of.Value()))
					return 5, last, some
				}
			}
			q.p.Errorf("error (at %s): %s", in.where(), wordsOf(q, strings.TrimPrefix(err.Error(), "error: "), q.name))
			return 5, last, some
		}
		last, some = v, true
		printValue(q, v)
	}
}

func printValue(q *querier, v any) {
	if q.seq {
		_ = q.out.WriteByte(0x1e)
	}
	if s, ok := v.(string); ok && q.raw {
		q.p.Charge(len(s) / 8)
		q.out.WriteString(s)
	} else {
		q.live = true
		b := appendValue(q, nil, v, 0)
		q.live = false
		_, _ = q.out.Write(b)
	}
	switch {
	case q.nul:
		_ = q.out.WriteByte(0)
	case !q.joined:
		_ = q.out.WriteByte('\n')
	}
}
