package sed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

type addressKind uint8

const (
	byNumber addressKind = iota + 1
	byStep
	byLast
	byPattern
	byOffset   // ,+N
	byMultiple // ,~N
)

// address is a line that a command is for.
type address struct {
	kind addressKind
	n    int
	step int
	re   *posix.Regexp // nil for the last one that was used
}

// command is one of the script's.
type command struct {
	from, to *address
	not      bool
	active   bool // in its range
	closed   bool // its range, which begins with a number, was left
	end      int  // the line at which the range ends
	name     byte
	text     string
	label    string
	file     string
	out      *output
	n        int // of q, Q, l
	jump     int // of {, b, t, T
	sub      *substitution
	table    map[rune]rune
}

// substitution is what s does.
type substitution struct {
	re     *posix.Regexp
	parts  []part
	global bool
	print  int
	nth    int
}

// part is a piece of a replacement.
type part struct {
	text  string
	group int  // -1 for text
	mode  byte // 'L', 'U', 'E', 'l' or 'u': what begins here; 0 for none
}

// compiler reads a script.
type compiler struct {
	p        *program.Process
	e        *editor
	src      string
	at       int
	pieces   []piece
	flags    posix.Flags
	sandbox  bool
	commands []*command
	open     []int
}

// failed is thrown at a mistake in the script.
type failed struct{ error }

// fail throws a mistake at where the script is read.
func (c *compiler) fail(format string, args ...any) { c.failAt(c.at, format, args...) }

func (c *compiler) failAt(at int, format string, args ...any) {
	in := c.pieces[0]
	for _, x := range c.pieces {
		if x.at <= at {
			in = x
		}
	}
	msg := fmt.Sprintf(format, args...)
	at = min(at, len(c.src))
	if in.file != "" {
		panic(failed{fmt.Errorf("file %s line %d: %s", in.file, 1+strings.Count(c.src[in.at:at], "\n"), msg)})
	}
	panic(failed{fmt.Errorf("-e expression #%d, char %d: %s", in.nth, at-in.at, msg)})
}

// noLabel is a jump to a label that is not there.
type noLabel string

func (n noLabel) Error() string { return "can't find label for jump to `" + string(n) + "'" }

func (c *compiler) compile() (err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case failed:
			err = x.error
		default:
			panic(x)
		}
	}()
	c.p.Charge(len(c.src) * 20)
	for c.command() {
	}
	if len(c.open) > 0 {
		c.at = 0
		return errors.New("-e expression #1, char 0: unmatched `{'")
	}
	labels := map[string]int{}
	for i, cmd := range c.commands {
		if cmd.name == ':' {
			labels[cmd.label] = i
		}
	}
	for _, cmd := range c.commands {
		switch cmd.name {
		case 'b', 't', 'T':
			at, ok := labels[cmd.label]
			switch {
			case cmd.label == "":
				cmd.jump = len(c.commands)
			case ok:
				cmd.jump = at
			default:
				return noLabel(cmd.label)
			}
		}
	}
	return nil
}

// peek returns the next character, 0 at the end.
func (c *compiler) peek() byte {
	if c.at < len(c.src) {
		return c.src[c.at]
	}
	return 0
}

func (c *compiler) skip(set string) {
	for c.at < len(c.src) && strings.IndexByte(set, c.src[c.at]) >= 0 {
		c.at++
	}
}

// command reads one command and reports whether there was one.
func (c *compiler) command() bool {
	c.skip(" \t\n;")
	if c.at >= len(c.src) {
		return false
	}
	cmd := &command{}
	if cmd.from = c.address(false); cmd.from != nil {
		c.skip(" \t")
		if c.peek() == ',' {
			c.at++
			c.skip(" \t")
			if cmd.to = c.address(true); cmd.to == nil {
				c.at++
				c.fail("unexpected `,'")
			}
		}
		if cmd.from.kind == byNumber && cmd.from.n == 0 {
			if cmd.to == nil || cmd.to.kind != byPattern {
				c.fail("invalid usage of line address 0")
			}
			cmd.active = true
		}
	}
	c.skip(" \t")
	for c.peek() == '!' {
		if cmd.not {
			c.at++
			c.fail("multiple `!'s")
		}
		cmd.not = true
		c.at++
		c.skip(" \t")
	}
	if c.at >= len(c.src) {
		c.fail("missing command")
	}
	cmd.name = c.src[c.at]
	c.at++
	c.arguments(cmd)
	if cmd.name != '#' {
		c.commands = append(c.commands, cmd)
	}
	return true
}

func (c *compiler) arguments(cmd *command) {
	switch cmd.name {
	case '#':
		if cmd.from != nil {
			c.fail("comments don't accept any addresses")
		}
		for c.at < len(c.src) && c.src[c.at] != '\n' {
			c.at++
		}
	case '{':
		c.open = append(c.open, len(c.commands))
	case '}':
		if len(c.open) == 0 {
			c.fail("unexpected `}'")
		}
		if cmd.from != nil {
			c.fail("} doesn't want any addresses")
		}
		c.commands[c.open[len(c.open)-1]].jump = len(c.commands)
		c.open = c.open[:len(c.open)-1]
		c.done()
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		c.done()
	case 'a', 'i', 'c':
		c.text(cmd)
	case ':':
		if cmd.from != nil {
			c.fail(": doesn't want any addresses")
		}
		c.skip(" \t")
		start := c.at
		for c.at < len(c.src) && c.src[c.at] != '\n' && c.src[c.at] != ';' {
			c.at++
		}
		if cmd.label = strings.TrimRight(c.src[start:c.at], " \t"); cmd.label == "" {
			c.fail("\":\" lacks a label")
		}
	case 'b', 't', 'T':
		c.skip(" \t")
		start := c.at
		for c.at < len(c.src) && strings.IndexByte("\n;}", c.src[c.at]) < 0 {
			c.at++
		}
		cmd.label = strings.TrimRight(c.src[start:c.at], " \t")
	case 'r', 'R', 'w', 'W':
		cmd.file = c.filename()
	case 'q', 'Q', 'l', 'L':
		if cmd.to != nil && cmd.name != 'l' {
			c.fail("command only uses one address")
		}
		c.skip(" \t")
		cmd.n = -1
		if n, ok := c.number(); ok {
			cmd.n = n
		}
		c.done()
	case 's':
		c.substitute(cmd)
	case 'y':
		c.transliterate(cmd)
	case 'v':
		for c.at < len(c.src) && strings.IndexByte("\n;", c.src[c.at]) < 0 {
			c.at++
		}
	case 'e':
		c.p.Lack(program.LackFeature, "the command e")
		c.fail("the command `e' is not supported here: start programs by the shell instead")
	default:
		c.fail("unknown command: `%c'", cmd.name)
	}
}

// done expects the end of a command.
func (c *compiler) done() {
	c.skip(" \t")
	switch c.peek() {
	case 0, '\n', ';':
		c.at++
	case '}', '#':
	default:
		c.at++
		c.fail("extra characters after command")
	}
}

func (c *compiler) number() (int, bool) {
	start := c.at
	c.skip("0123456789")
	if c.at == start {
		return 0, false
	}
	n, err := strconv.Atoi(c.src[start:c.at])
	if err != nil {
		c.fail("invalid number")
	}
	return n, true
}

func (c *compiler) filename() string {
	c.skip(" \t")
	start := c.at
	for c.at < len(c.src) && c.src[c.at] != '\n' {
		c.at++
	}
	if start == c.at {
		c.fail("missing filename in r/R/w/W commands")
	}
	return c.src[start:c.at]
}

func (c *compiler) address(second bool) *address {
	switch b := c.peek(); {
	case b == '$':
		c.at++
		return &address{kind: byLast}
	case b >= '0' && b <= '9':
		n, _ := c.number()
		c.skip(" \t")
		if c.peek() == '~' && !second {
			c.at++
			step, _ := c.number()
			return &address{kind: byStep, n: n, step: step}
		}
		return &address{kind: byNumber, n: n}
	case second && (b == '+' || b == '~'):
		c.at++
		n, ok := c.number()
		if !ok {
			c.fail("expected a number")
		}
		if b == '+' {
			return &address{kind: byOffset, n: n}
		}
		return &address{kind: byMultiple, n: n}
	case b == '/' || b == '\\':
		c.at++
		if b == '\\' {
			if b = c.peek(); b == 0 {
				c.fail("unterminated address regex")
			}
			c.at++
		}
		text, ok := c.until(b, true)
		if !ok {
			c.fail("unterminated address regex")
		}
		flags := c.flags
		for {
			switch c.peek() {
			case 'I':
				flags |= posix.IgnoreCase
				c.at++
				continue
			case 'M':
				flags |= posix.Lines
				c.at++
				continue
			}
			break
		}
		return &address{kind: byPattern, re: c.regexp(text, flags)}
	}
	return nil
}

// until reads up to a delimiter. An escaped delimiter loses its backslash, and \ before a newline in a pattern is left.
func (c *compiler) until(delim byte, pattern bool) (string, bool) {
	var b strings.Builder
	for c.at < len(c.src) {
		x := c.src[c.at]
		c.at++
		switch {
		case x == delim:
			return b.String(), true
		case x == '\\' && c.at < len(c.src):
			y := c.src[c.at]
			c.at++
			switch {
			case y == delim && pattern && strings.IndexByte("+?|(){}", y) >= 0 && c.flags&posix.Extended != 0:
				b.WriteString("[" + string(y) + "]")
			case y == delim && pattern && (y == '.' || y == '*' || y == '[' || y == '^' || y == '$'):
				b.WriteString(`\` + string(y))
			case y == delim && (pattern || y != '&'):
				b.WriteByte(y)
			default:
				b.WriteByte('\\')
				b.WriteByte(y)
			}
		case x == '\n' && pattern:
			return "", false
		case x == '[' && pattern:
			b.WriteByte(x)
			b.WriteString(c.bracket(delim))
		default:
			b.WriteByte(x)
		}
	}
	return "", false
}

// bracket reads what stands in brackets, behind the first, in which a delimiter is not a delimiter. Brackets that do not end are none.
func (c *compiler) bracket(delim byte) string {
	i := c.at
	if i < len(c.src) && c.src[i] == '^' {
		i++
	}
	if i < len(c.src) && c.src[i] == ']' {
		i++
	}
	for ; i < len(c.src) && c.src[i] != '\n'; i++ {
		switch {
		case c.src[i] == ']':
			s := c.src[c.at : i+1]
			c.at = i + 1
			return strings.ReplaceAll(s, `\`+string(delim), string(delim))
		case c.src[i] == '[' && i+1 < len(c.src) && strings.IndexByte(":.=", c.src[i+1]) >= 0:
			if end := strings.Index(c.src[i+2:], c.src[i+1:i+2]+"]"); end >= 0 {
				i += end + 3
			}
		}
	}
	return ""
}

// regexp compiles an expression; nil stands for an empty one.
func (c *compiler) regexp(text string, flags posix.Flags) *posix.Regexp {
	if text == "" {
		return nil
	}
	re, err := posix.Compile(text, flags|posix.Escapes, func(gas int64) error { c.p.Charge(int(gas)); return nil })
	if err != nil {
		c.fail("%s", err.Error())
	}
	re.Bound(c.p.Room)
	return re
}

// text reads what a, i and c write.
func (c *compiler) text(cmd *command) {
	c.skip(" \t")
	if c.at >= len(c.src) {
		c.fail("expected \\ after `a', `c' or `i'")
	}
	if c.peek() == '\\' {
		c.at++
		start := c.at
		c.skip(" \t")
		if c.peek() == '\n' {
			c.at++
		} else {
			c.at = start // one line: the backslash keeps blanks
		}
	}
	var b strings.Builder
	for c.at < len(c.src) {
		x := c.src[c.at]
		c.at++
		if x == '\n' {
			break
		}
		if x == '\\' {
			if c.at >= len(c.src) {
				break
			}
			text, size := escaped(c.src[c.at:])
			b.WriteString(text)
			c.at += size
			continue
		}
		b.WriteByte(x)
	}
	cmd.text = b.String() + "\n"
}
