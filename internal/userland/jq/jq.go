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

func jq(p *program.Process) int {
	q := &querier{p: p, out: p.Out(), indent: "  ", order: map[uintptr][]string{}, rank: map[string]int{}, shapes: map[string][]string{
		"key\x00value": {"key", "value"}, "captures\x00length\x00offset\x00string": {"offset", "length", "string", "captures"},
		"length\x00name\x00offset\x00string": {"offset", "length", "string", "name"}, "name\x00value": {"name", "value"},
		"named\x00positional": {"positional", "named"},
	}, texts: map[string]int{}, regexps: map[string]jqExpression{}}
	var files []string
	filter, hasFilter := "", false
	null, slurp, rawInput, status, stream := false, false, false, false, false
	var names []string
	var values []any
	named := map[string]any{}
	positional := []any{}
	set := func(name string, v any) {
		names = append(names, "$"+name)
		values = append(values, v)
		named[name] = v
	}
	rest := 0 // 1: --args, 2: --jsonargs
	args := p.Args[1:]
	need := func(n int, of string) []string {
		if len(args) < n {
			p.Errorf("error: %s takes %d parameter%s (e.g. %s)", of, n, gnu.Plural(n), of+strings.Repeat(" x", n))
			p.Exit(2)
		}
		took := args[:n]
		args = args[n:]
		return took
	}
	parse := func(text, what string) any {
		vs, err := allValues(q, []byte(text))
		if err != nil || len(vs) != 1 {
			p.Errorf("Invalid JSON text passed to --%s", what)
			p.Stderrf("Use jq --help for help with command-line options,\nor see the jq manpage, or online docs  at https://stedolan.github.io/jq\n")
			p.Exit(2)
		}
		return vs[0]
	}
	fromFile := ""
	var library []string // where modules are
	ended := false
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if ended || a == "" || a[0] != '-' || a == "-" {
			switch {
			case !hasFilter && fromFile == "":
				filter, hasFilter = a, true
			case rest == 1:
				positional = append(positional, a)
			case rest == 2:
				positional = append(positional, parse(a, "jsonargs"))
			default:
				files = append(files, a)
			}
			continue
		}
		switch a {
		case "--":
			ended = true
			continue
		case "--arg":
			v := need(2, a)
			set(v[0], v[1])
			continue
		case "--argjson":
			v := need(2, a)
			set(v[0], parse(v[1], "argjson"))
			continue
		case "--slurpfile", "--rawfile":
			v := need(2, a)
			b, err := gnu.ReadWhole(p, v[1])
			if err != nil {
				p.Errorf("error: Bad JSON in --%s %s %s: Could not open %s: %s", a[2:], v[0], v[1], v[1], program.Message(err))
				return 2
			}
			if a == "--rawfile" {
				set(v[0], string(b))
				continue
			}
			all, err := allValues(q, b)
			if err != nil {
				p.Errorf("error: Bad JSON in --slurpfile %s %s: %s", v[0], v[1], err.Error())
				return 2
			}
			if all == nil {
				all = []any{}
			}
			set(v[0], all)
			continue
		case "--args":
			rest = 1
			continue
		case "--jsonargs":
			rest = 2
			continue
		case "--indent":
			n := gnu.ParseCount(p, 2, need(1, a)[0], "indent")
			if n > 7 {
				p.Errorf("Cannot indent more than 7 characters")
				return 2
			}
			q.indent = strings.Repeat(" ", n)
			q.packed = n == 0
			continue
		case "--tab":
			q.indent = "\t"
			continue
		case "--raw-output0":
			q.raw, q.nul = true, true
			continue
		case "--seq":
			q.seq = true
			continue
		case "--stream":
			stream = true
			continue
		case "--unbuffered":
			continue
		case "--from-file":
			fromFile = need(1, a)[0]
			continue
		case "-L", "--library-path":
			library = append(library, need(1, a)[0])
			continue
		}
		if folder, ok := strings.CutPrefix(a, "-L"); ok {
			library = append(library, folder)
			continue
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
		for _, c := range letters {
			switch c {
			case 'n':
				null = true
			case 'r':
				q.raw = true
			case 'j':
				q.raw, q.joined = true, true
			case 'c':
				q.packed = true
			case 's':
				slurp = true
			case 'S':
				q.sorted = true
			case 'e':
				status = true
			case 'R':
				rawInput = true
			case 'a':
				q.ascii = true
			case 'C', 'M':
			case 'f':
				fromFile = need(1, a)[0]
			case 'h':
				q.out.WriteString("Usage:\tjq [OPTIONS] FILTER [FILES...]\n")
				return 0
			case 'V':
				q.out.WriteString("jq-1.7.1\n")
				return 0
			default:
				p.Lack(program.LackOption, a)
				p.Errorf("Unknown option: %s", a)
				p.Stderrf("Use jq --help for help with command-line options,\nor see the jq manpage, or online docs  at " +
					"https://stedolan.github.io/jq\n")
				return 2
			}
		}
	}
	if fromFile != "" {
		b, err := gnu.ReadWhole(p, fromFile)
		if err != nil {
			p.Errorf("error: Could not open %s: %s", fromFile, program.Message(err))
			return 2
		}
		if hasFilter {
			files = append([]string{filter}, files...)
		}
		filter = string(b)
	} else if !hasFilter {
		p.Stderrf("Usage:\tjq [OPTIONS] FILTER [FILES...]\n")
		return 2
	}
	if len(filter) > maxFilter {
		p.Errorf("error: the program has %d bytes; at most %d are taken", len(filter), maxFilter)
		return 3
	}
	p.Charge(len(filter)*200 + len(filter)*len(filter)/16)
	query, err := gojq.Parse(filter)
	if err != nil {
		p.Errorf("error: %s", err.Error())
		p.Errorf("1 compile error")
		return 3
	}
	studyKeys(q, filter)
	q.name, q.keyed = onlyName(query), keyed(filter)
	jqAdapted(query)
	inOrder(query)
	line := 1 + strings.Count(filter[:max(strings.Index(filter, "$__loc__"), 0)], "\n")
	own, err := gojq.Parse(jqOwn)
	if err != nil {
		p.Errorf("error: %s", err.Error())
		return 3
	}
	query.FuncDefs = append(own.FuncDefs, query.FuncDefs...)
	in := &jqInput{q: q, files: files, raw: rawInput, stream: stream}
	if len(files) == 0 {
		in.files = []string{"-"}
	}
	names = append(names, "$ARGS") // it is no name of its own: a value that held itself could never be written
	values = append(values, map[string]any{"named": named, "positional": positional})
	names = append(names, "$__loc__")
	values = append(values, map[string]any{"file": "<top-level>", "line": line})
	if library == nil {
		library = []string{"~/.jq"}
	}
	modules := &jqModules{q: q, folders: library, bytes: len(filter)}
	code, err := gojq.Compile(query, append(compilerOptions(q, in, names), gojq.WithModuleLoader(modules))...)
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
		c, l, some := runQuery(q, code, v, values, in)
		if some {
			last, any1 = l, true
		}
		if c != 0 {
			exit = c
		}
	}
	switch {
	case null:
		work(nil)
	case slurp && rawInput:
		var b strings.Builder
		in.raw = true
		for in.open() {
			b.WriteString(q.p.Text(in.data))
			in.at = len(in.data)
		}
		work(b.String())
	case slurp:
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
	if status && exit == 0 {
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
