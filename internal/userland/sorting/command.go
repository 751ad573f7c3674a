// Package sorting has the commands sort and uniq.
package sorting

import (
	"bytes"
	"crypto/md5" // as GNU's sort shuffles
	"io"
	"slices"
	"strconv"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{"sort": sortCommand, "uniq": uniq})
}

// sortOptions are what the options of sort say.
type sortOptions struct {
	p            *program.Process
	s            sorter
	source, list string
	delim        byte
	output       string
	check, quiet bool
}

func sortCommand(p *program.Process) int {
	opt := &sortOptions{p: p}
	p.Args = withoutOldKeys(p.Args)
	opts, files := p.Options(2, "bdfghik:MnrRsVcCmo:S:t:T:uz", "ignore-leading-blanks b", "dictionary-order d", "ignore-case f",
		"general-numeric-sort g", "human-numeric-sort h",
		"ignore-nonprinting i", "key k", "month-sort M", "numeric-sort n", "reverse r", "random-sort R", "stable s", "version-sort V", "check=?",
		"merge m", "output o",
		"buffer-size S", "field-separator t", "temporary-directory T", "unique u", "zero-terminated z", "parallel=", "sort=", "debug",
		"batch-size=", "files0-from=", "random-source=", "compress-program=")
	opt.s = sorter{tab: -1}

	opt.delim = byte('\n')
	for _, o := range opts {
		if code, done := opt.option(o); done {
			return code
		}
	}
	opt.s.check1(p, opt.s.global)
	random := opt.s.global.random
	for _, k := range opt.s.keys {
		opt.s.check1(p, k.ordering)
		random = random || k.random
	}
	if random {
		seed := make([]byte, md5.Size)
		if opt.source == "" {
			p.Account.Entropy(seed)
		} else if h, err := p.Open(opt.source, vfs.Read); err != nil {
			p.Errorf("open failed: %s: %s", opt.source, program.Message(err))
			return 2
		} else if n, _ := io.ReadFull(p.Reader(h), seed); n < len(seed) {
			p.Errorf("‘%s’: end of file", opt.source)
			return 2
		}
		opt.s.global.seed = seed
		for i := range opt.s.keys {
			opt.s.keys[i].seed = seed
		}
	}
	if opt.list != "" {
		var wrong int
		if files, wrong = p.NamesFrom(2, opt.list, files); wrong > 0 {
			return 2
		}
		if len(files) == 0 {
			p.Errorf("no input from ‘%s’", opt.list)
			return 2
		}
	}
	if opt.check {
		return opt.s.check(p, gnu.OrStdin(files)[0], opt.delim, opt.quiet)
	}
	var lines program.List[[]byte]
	for _, name := range gnu.OrStdin(files) {
		in := p.Reader(p.Stdin)
		if name != "-" {
			h, err := p.Open(name, vfs.Read)
			if err != nil {
				p.Errorf("cannot read: %s: %s", name, program.Message(err))
				return 2
			}
			in = p.Reader(h)
		}
		for {
			line, _, ok := in.Line(opt.delim)
			if !ok {
				break
			}
			p.Hold(len(line) + 24)
			lines.Append(bytes.Clone(line))
		}
		if err := in.Err(); err != nil {
			p.Errorf("read failed: %s: %s", name, program.Message(err))
			return 2
		}
	}
	for _, block := range lines.Blocks() {
		slices.SortStableFunc(block, opt.s.charged(p))
	}
	out := p.Out()
	if opt.output != "" && opt.output != "-" {
		h, err := p.Open(opt.output, vfs.Write|vfs.Create|vfs.Truncate)
		if err != nil {
			p.Errorf("open failed: %s: %s", opt.output, program.Message(err))
			return 2
		}
		out = p.Writer(h)
	}
	var previous []byte
	first := true
	merge(lines.Blocks(), opt.s.charged(p), func(line []byte) {
		if opt.s.unique && !first && opt.s.compare(previous, line) == 0 {
			return
		}
		previous, first = line, false
		gnu.WriteLine(out, line, opt.delim, true)
	})
	out.Flush()
	return 0
}

// option takes one option. It returns whether the command ends with that, and the code.
func (opt *sortOptions) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "k":
		opt.s.keys = append(opt.s.keys, parseKey(opt.p, o.Value))
	case "t":
		t := o.Value
		if t == "\\0" {
			t = "\x00"
		}
		if len(t) != 1 {
			if t == "" {
				opt.p.Errorf("empty tab")
			} else {
				opt.p.Errorf("multi-character tab %s", "‘"+t+"’")
			}
			return 2, true
		}
		opt.s.tab = int(t[0])
	case "o":
		opt.output = o.Value
	case "u":
		opt.s.unique = true
	case "s":
		opt.s.stable = true
	case "z":
		opt.delim = 0
	case "c":
		opt.check = true
	case "C":
		opt.check, opt.quiet = true, true
	case "check":
		opt.check, opt.quiet = true, o.Value == "quiet" || o.Value == "silent"
	case "sort":
		c, ok := map[string]byte{"general-numeric": 'g', "human-numeric": 'h', "month": 'M', "numeric": 'n', "random": 'R',
			"version": 'V'}[o.Value]
		if !ok {
			gnu.FailUsage(opt.p, 2, "invalid argument ‘%s’ for ‘--sort’", o.Value)
		}
		opt.s.global.letter(c)
	case "files0-from":
		opt.list = o.Value
	case "batch-size":
		if n, err := strconv.ParseUint(o.Value, 10, 64); err != nil || n < 2 {
			opt.p.Errorf("invalid --batch-size argument ‘%s’", o.Value)
			opt.p.Errorf("minimum --batch-size argument is ‘2’")
			return 2, true
		}
	case "random-source":
		opt.source = o.Value
	case "m", "S", "T", "parallel", "compress-program":
	case "debug":
		opt.p.Lack(program.LackOption, "--debug")
		gnu.FailUsage(opt.p, 2, "option '--debug' is not supported in a nano space")
	default:
		opt.s.global.letter(o.Name[0])
	}
	return 0, false
}

// check1 ends the program where the letters of a key do not go together.
func (s *sorter) check1(p *program.Process, o ordering) {
	n := 0
	for _, on := range []bool{o.numeric, o.general, o.human, o.month, o.version || o.random || o.dictionary || o.printing} {
		if on {
			n++
		}
	}
	if n < 2 && !(o.version && o.random) {
		return
	}
	letters := ""
	for _, x := range []struct {
		on bool
		c  string
	}{{o.dictionary, "d"}, {o.fold, "f"}, {o.general, "g"}, {o.human, "h"}, {o.printing && !o.dictionary, "i"}, {o.month, "M"},
		{o.numeric, "n"}, {o.random, "R"}, {o.version, "V"}} {
		if x.on {
			letters += x.c
		}
	}
	p.Errorf("options '-%s' are incompatible", letters)
	p.Exit(2)
}

// check says whether an input is sorted.
func (s *sorter) check(p *program.Process, name string, delim byte, quiet bool) int {
	in := gnu.OpenOrTell(p, name)
	if in == nil {
		return 2
	}
	var previous []byte
	for n := 1; ; n++ {
		line, _, ok := in.Line(delim)
		if !ok {
			return 0
		}
		if n > 1 {
			if c := s.compare(previous, line); c > 0 || c == 0 && s.unique {
				if !quiet {
					p.Errorf("%s:%d: disorder: %s", name, n, line)
				}
				return 1
			}
		}
		previous = append(previous[:0], line...)
	}
}
