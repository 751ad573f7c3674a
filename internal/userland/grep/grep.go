// Package grep has the command grep.
package grep

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{"egrep": grep, "fgrep": grep, "grep": grep})
}

// searcher is a grep that runs.
type searcher struct {
	kind     byte // of the expressions: G, E, F or P
	flags    posix.Flags
	patterns []string
	given    bool // an option gave the patterns
	named    bool // names are always shown
	unnamed  bool // names are never shown

	p   *program.Process
	out *program.Output
	res []*posix.Regexp

	invert, count, only, quiet, silent, names, numbers, offsets, list, without, word, tab, text, skipBinary bool
	recursive, follow, null, skipDirs                                                                       bool
	max, before, after                                                                                      int
	delim                                                                                                   byte
	include, exclude, excludeDir                                                                            []string
	label                                                                                                   string
	color                                                                                                   bool

	found  bool
	failed bool
}

func grep(p *program.Process) int {
	s := &searcher{p: p, out: p.Out(), max: -1, before: -1, after: -1, delim: '\n', label: "(standard input)"}
	args := p.Args[:1:1]
	for i, a := range p.Args[1:] {
		if a == "--" {
			args = append(args, p.Args[i+1:]...)
			break
		}
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" {
			a = "-C" + a[1:]
		}
		args = append(args, a)
	}
	p.Args = args
	opts, operands := p.Options(2, "EFGPe:f:ivwxcLlm:oqsbHhnTZzA:B:C:rRaIUd:D:y", "extended-regexp E", "fixed-strings F", "basic-regexp G",
		"perl-regexp P", "regexp= e",
		"file= f", "ignore-case i", "no-ignore-case", "invert-match v", "word-regexp w", "line-regexp x", "count c", "files-without-match L",
		"files-with-matches l",
		"max-count= m", "only-matching o", "quiet q", "silent q", "no-messages s", "byte-offset b", "with-filename H", "no-filename h",
		"line-number n", "initial-tab T",
		"null Z", "null-data z", "after-context= A", "before-context= B", "context= C", "recursive r", "dereference-recursive R", "text a",
		"binary U",
		"include=", "exclude=", "exclude-dir=", "color=?", "colour=?", "line-buffered", "binary-files=", "directories= d", "devices= D", "label=")
	s.kind = byte('G')
	switch gnu.LastName(p.Name()) {
	case "egrep":
		s.kind = 'E'
	case "fgrep":
		s.kind = 'F'
	}

	for _, o := range opts {
		if code, done := s.option(o); done {
			return code
		}
	}
	s.before, s.after = max(s.before, 0), max(s.after, 0)
	if !s.given {
		if len(operands) == 0 {
			p.Stderrf("Usage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n")
			return 2
		}
		s.patterns = strings.Split(operands[0], "\n")
		operands = operands[1:]
	}
	s.compile(s.patterns, s.kind, s.flags)
	switch {
	case len(operands) > 0:
		s.names = len(operands) > 1 || s.recursive
	case s.recursive:
		s.names = true
	default:
		operands = []string{"-"}
	}
	if s.named {
		s.names = true
	}
	if s.unnamed {
		s.names = false
	}
	if len(operands) == 0 {
		s.folder("", ".", 0)
	}
	for _, name := range operands {
		if s.found && s.quiet {
			break
		}
		s.operand(name)
	}
	switch {
	case s.found && s.quiet:
		return 0
	case s.failed:
		return 2
	case s.found:
		return 0
	}
	return 1
}

// option takes one option. It returns whether the command ends with that, and the code. It is long because it is one switch over the
// options.
//
//nolint:cyclop // one case for each option
func (s *searcher) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "E", "F", "G", "P":
		s.kind = o.Name[0]
	case "e":
		s.patterns = append(s.patterns, strings.Split(o.Value, "\n")...)
		s.given = true
	case "f":
		b, err := gnu.ReadWhole(s.p, o.Value)
		if err != nil {
			s.p.Errorf("%s: %s", o.Value, program.Message(err))
			return 2, true
		}
		s.given = true
		if len(b) > 0 {
			s.patterns = append(s.patterns, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
		}
	case "i", "y":
		s.flags |= posix.IgnoreCase
	case "no-ignore-case":
		s.flags &^= posix.IgnoreCase
	case "v":
		s.invert = true
	case "w":
		s.word = true
	case "x":
		s.flags |= posix.Whole
	case "c":
		s.count = true
	case "L":
		s.without = true
	case "l":
		s.list = true
	case "m":
		s.max = s.number(o)
	case "o":
		s.only = true
	case "q":
		s.quiet = true
	case "s":
		s.silent = true
	case "b":
		s.offsets = true
	case "H":
		s.named, s.unnamed = true, false
	case "h":
		s.unnamed, s.named = true, false
	case "n":
		s.numbers = true
	case "T":
		s.tab = true
	case "Z":
		s.null = true
	case "z":
		s.delim = 0
	case "A":
		s.after = s.number(o)
	case "B":
		s.before = s.number(o)
	case "C":
		if n := s.number(o); true {
			if s.after < 0 {
				s.after = n
			}
			if s.before < 0 {
				s.before = n
			}
		}
	case "r":
		s.recursive = true
	case "R":
		s.recursive, s.follow = true, true
	case "a":
		s.text = true
	case "I":
		s.skipBinary = true
	case "binary-files":
		s.text, s.skipBinary = o.Value == "text", o.Value == "without-match"
	case "d":
		s.skipDirs, s.recursive = o.Value == "skip", o.Value == "recurse"
	case "include":
		s.include = append(s.include, o.Value)
	case "exclude":
		s.exclude = append(s.exclude, o.Value)
	case "exclude-dir":
		s.excludeDir = append(s.excludeDir, strings.TrimRight(o.Value, "/"))
	case "label":
		s.label = o.Value
	case "color", "colour":
		s.color = o.Value == "always"
	}
	return 0, false
}

// compile compiles the patterns, those that are independent as one.
func (s *searcher) compile(patterns []string, kind byte, flags posix.Flags) {
	var sources []string
	switch kind {
	case 'E':
		flags |= posix.Extended
	case 'P':
		flags |= posix.Perl
		if len(patterns) > 1 {
			s.p.Errorf("the -P option only supports a single pattern")
			s.p.Exit(2)
		}
	case 'F':
		if len(patterns) == 1 {
			flags |= posix.Literal
		} else {
			flags |= posix.Extended
			for i, x := range patterns {
				patterns[i] = regexp.QuoteMeta(x)
			}
		}
	}
	separate := flags&(posix.Perl|posix.Literal) != 0
	for _, x := range patterns {
		for d := byte('1'); d <= '9'; d++ {
			separate = separate || strings.Contains(x, `\`+string(d))
		}
	}
	switch {
	case separate || len(patterns) == 1:
		sources = patterns
	case len(patterns) > 1 && flags&posix.Extended != 0:
		sources = []string{"(" + strings.Join(patterns, ")|(") + ")"}
	case len(patterns) > 1:
		sources = []string{`\(` + strings.Join(patterns, `\)\|\(`) + `\)`}
	}
	for _, x := range sources {
		re, err := posix.Compile(x, flags, gnu.Charger(s.p))
		if err != nil {
			if errors.Is(err, posix.ErrPerl) {
				s.p.Lack(program.LackFeature, "this expression of Perl: "+x)
			}
			s.p.Errorf("%s", err.Error())
			s.p.Exit(2)
		}
		re.Bound(s.p.Room)
		s.res = append(s.res, re)
	}
}

func (s *searcher) fail(name string, err error) {
	s.failed = true
	if !s.silent {
		s.p.Errorf("%s: %s", name, program.Message(err))
	}
}

func (s *searcher) operand(name string) {
	if name == "-" {
		s.file(s.label, s.p.Reader(s.p.Stdin))
		return
	}
	h, err := s.p.Open(name, vfs.Read)
	if err != nil {
		s.fail(name, err)
		return
	}
	if h.Kind() == vfs.Directory {
		_ = s.p.Close(h)
		switch {
		case s.recursive:
			if !s.skipsDir(gnu.LastName(name)) {
				s.folder(name, name, 0)
			}
		case !s.skipDirs:
			s.p.Errorf("%s: Is a directory", name)
			s.failed = true
		}
		return
	}
	if s.wants(gnu.LastName(name)) {
		s.file(name, s.p.Reader(h))
	}
	_ = s.p.Close(h)
}

func (s *searcher) wants(name string) bool {
	for _, x := range s.exclude {
		if gnu.Glob(x, name, false) {
			return false
		}
	}
	for _, x := range s.include {
		if gnu.Glob(x, name, false) {
			return true
		}
	}
	return len(s.include) == 0
}

func (s *searcher) skipsDir(name string) bool {
	for _, x := range s.excludeDir {
		if gnu.Glob(x, name, false) {
			return true
		}
	}
	return false
}

// folder searches what is in a folder. shown is its path in names, path how it is found.
func (s *searcher) folder(shown, path string, depth int) {
	entries, err := s.p.FS.List(s.p.At(), path)
	if err != nil || depth > vfs.MaxDepth {
		if err == nil {
			err = vfs.ELOOP
		}
		s.check(err)
		s.fail(path, err)
		return
	}
	for _, e := range entries {
		if s.found && s.quiet {
			return
		}
		name := e.Name
		if shown != "" {
			name = gnu.Join(shown, e.Name)
		}
		node := e.Node
		if node.Kind() == vfs.Symlink {
			if !s.follow {
				continue
			}
			if node, err = s.p.FS.Lookup(s.p.At(), gnu.Join(path, e.Name), true); err != nil {
				s.fail(name, err)
				continue
			}
		}
		switch node.Kind() {
		case vfs.Directory:
			if !s.skipsDir(e.Name) {
				s.folder(name, gnu.Join(path, e.Name), depth+1)
			}
		case vfs.Regular:
			if !s.wants(e.Name) {
				continue
			}
			h, err := s.p.Open(gnu.Join(path, e.Name), vfs.Read)
			if err != nil {
				s.fail(name, err)
				continue
			}
			s.file(name, s.p.Reader(h))
			_ = s.p.Close(h)
		}
	}
}

func (s *searcher) check(err error) { gnu.Check(s.p, 2, stopped(s.p, err)) }

// stopped returns nil, unless the execution was stopped.
func stopped(p *program.Process, err error) error {
	if err != nil {
		p.Charge(0)
	}
	return nil
}

// match returns where the first match at or behind from is.
func (s *searcher) match(line []byte) [][]int {
	var all [][]int
	if s.word {
		return s.words(line)
	}
	for _, re := range s.res {
		found, err := re.FindAll(line, -1)
		gnu.Check(s.p, 2, err)
		all = append(all, found...)
	}
	if len(s.res) > 1 {
		all = merge(all)
	}
	return all
}

// merge puts the matches of several expressions in order and drops those that overlap.
func merge(all [][]int) [][]int {
	for i := 1; i < len(all); i++ {
		for j := i; j > 0 && (all[j][0] < all[j-1][0] || all[j][0] == all[j-1][0] && all[j][1] > all[j-1][1]); j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	kept := all[:0]
	end := 0
	for _, m := range all {
		if m[0] >= end {
			kept = append(kept, m)
			end = m[1]
		}
	}
	return kept
}

func (s *searcher) matches(line []byte) bool {
	if s.word {
		return len(s.words(line)) > 0
	}
	for _, re := range s.res {
		ok, err := re.Match(line)
		gnu.Check(s.p, 2, err)
		if ok {
			return true
		}
	}
	return false
}

// words returns the matches that are whole words, as far as longer and shorter ones at the same place show.
func (s *searcher) words(line []byte) [][]int {
	var all [][]int
	for _, re := range s.res {
		for at := 0; at <= len(line); {
			m, err := re.Find(line[at:])
			gnu.Check(s.p, 2, err)
			if m == nil {
				break
			}
			from, to := at+m[0], at+m[1]
			for to > from && (wordBefore(line, from) || wordAfter(line, to)) { // a shorter one
				shorter, err := re.Find(line[from : to-1])
				gnu.Check(s.p, 2, err)
				if len(shorter) == 0 || shorter[0] != 0 {
					to = from
					break
				}
				to = from + shorter[1]
			}
			if to > from || m[0] == m[1] && !wordBefore(line, from) && !wordAfter(line, to) {
				all = append(all, []int{from, to})
				at = max(to, at+1)
				continue
			}
			_, size := utf8.DecodeRune(line[from:])
			at = from + max(size, 1)
			for at < len(line) && wordBefore(line, at) { // the rest of the word
				_, size := utf8.DecodeRune(line[at:])
				if !wordAfter(line, at) {
					break
				}
				at += size
			}
		}
	}
	return merge(all)
}

func wordBefore(line []byte, i int) bool {
	r, _ := utf8.DecodeLastRune(line[:i])
	return wordRune(r)
}

func wordAfter(line []byte, i int) bool {
	r, _ := utf8.DecodeRune(line[i:])
	return wordRune(r)
}

func wordRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || r >= 0x80 && r != utf8.RuneError
}

// number reads the number of an option, or ends the program.
func (s *searcher) number(o program.Option) int {
	n, err := strconv.Atoi(o.Value)
	if err != nil || n < 0 && o.Name != "m" {
		s.p.Errorf("%s: invalid context length argument", o.Value)
		s.p.Exit(2)
	}
	return n
}
