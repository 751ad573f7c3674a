// Package dates reads and writes dates as GNU does, and has the command date.
package dates

import (
	"fmt"
	"strings"
	"time"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{"date": date})
}

// dateCommand holds the options of date.
type dateCommand struct {
	p      *program.Process
	zone   *time.Location
	layout string
	given  bool // the format
	debug  bool
	name   string // of the zone
}

func date(p *program.Process) int {
	opts, args := p.Options(1, "d:f:I::Rr:s:u", "date d", "file f", "iso-8601=?", "rfc-email R", "rfc-2822 R", "rfc-822 R", "rfc-3339=",
		"reference r", "set s", "universal u",
		"utc u", "uct u", "debug", "resolution")
	c := &dateCommand{p: p, zone: p.Zone()}
	for _, kv := range p.Env {
		if name, ok := strings.CutPrefix(kv, "TZ="); ok {
			c.name = name
		}
	}
	var source program.Option
	for _, o := range opts {
		switch o.Name {
		case "u":
			c.zone, c.name = time.UTC, "UTC0"
		case "debug":
			c.debug = true
		case "d", "f", "r", "s", "resolution":
			if source.Name != "" && source.Name != o.Name {
				gnu.FailUsage(p, 1, "the options to specify dates for printing are mutually exclusive")
			}
			source = o
		case "R", "I", "iso-8601", "rfc-3339":
			if c.layout != "" {
				p.Errorf("multiple output formats specified")
				return 1
			}
			c.layout = c.standard(o)
		}
	}
	c.operands(args, source.Name)
	if c.layout == "" && !c.given {
		c.layout = "%a %b %e %H:%M:%S %Z %Y"
	}
	at := p.Now()
	switch source.Name {
	case "resolution":
		_, _ = p.Out().WriteString("0.000000001\n")
		return 0
	case "f":
		return c.file(source.Value)
	case "r":
		n, err := gnu.Lookup(p, source.Value, true)
		if !gnu.Try(p, err, "%s", source.Value) {
			return 1
		}
		at = n.Info().Modified
	case "s":
		if t, ok := ParseDate(source.Value, p.Now().In(c.zone)); ok {
			p.Errorf("cannot set date: %s", vfs.EPERM.Error())
			c.show(t)
			return 1
		}
		p.Errorf("invalid date ‘%s’", source.Value)
		return 1
	case "d":
		return c.text(source.Value)
	}
	return c.show(at)
}

// operands reads +FORMAT.
func (c *dateCommand) operands(args []string, source string) {
	if len(args) > 1 {
		gnu.FailUsage(c.p, 1, "extra operand ‘%s’", args[1])
	}
	if len(args) == 0 {
		return
	}
	format, ok := strings.CutPrefix(args[0], "+")
	switch {
	case ok && c.layout != "":
		c.p.Errorf("multiple output formats specified")
		c.p.Exit(1)
	case ok:
		c.layout, c.given = format, true
	case source != "":
		gnu.FailUsage(c.p, 1,
			"the argument ‘%s’ lacks a leading '+';\nwhen using an option to specify date(s), any non-option\nargument must be a "+
				"format string beginning with '+'", args[0])
	default:
		c.p.Errorf("invalid date ‘%s’", args[0])
		c.p.Exit(1)
	}
}

// standard returns the format of an option that names a standard.
func (c *dateCommand) standard(o program.Option) string {
	if o.Name == "R" {
		return "%a, %d %b %Y %H:%M:%S %z"
	}
	names := []string{"hours", "minutes", "date", "seconds", "ns"}
	formats := []string{"%FT%H%:z", "%FT%H:%M%:z", "%F", "%FT%T%:z", "%FT%T,%N%:z"}
	option := "--iso-8601"
	if o.Name == "rfc-3339" {
		option, names, formats = "--rfc-3339", names[2:], []string{"%F", "%F %T%:z", "%F %T.%N%:z"}
	} else if !o.Given {
		return "%F"
	}
	for i, name := range names {
		if o.Value != "" && strings.HasPrefix(name, o.Value) {
			return formats[i]
		}
	}
	c.p.Errorf("invalid argument ‘%s’ for ‘%s’", o.Value, option)
	c.p.Stderrf("Valid arguments are:\n  - ‘%s’\nTry '%s --help' for more information.\n", strings.Join(names, "’\n  - ‘"), c.p.Name())
	c.p.Exit(1)
	return ""
}

// text shows the time that a text means.
func (c *dateCommand) text(s string) int {
	c.p.Charge(len(s) * 20)
	var trace *dateTrace
	if c.debug {
		trace = &dateTrace{say: func(text string) { c.p.Errorf("%s", text) }, zone: c.name}
	}
	t, ok := parseDate(s, c.p.Now().In(c.zone), trace)
	if !ok {
		c.p.Errorf("invalid date ‘%s’", s)
		return 1
	}
	return c.show(t)
}

// file shows the time that each line of a file means.
func (c *dateCommand) file(name string) int {
	h := c.p.Stdin
	if name != "-" {
		var err error
		if h, err = c.p.Open(name, vfs.Read); !gnu.Try(c.p, err, "%s", name) {
			return 1
		}
	}
	in, code := c.p.Reader(h), 0
	for {
		line, _, ok := in.Line('\n')
		if !ok {
			return code
		}
		code |= c.text(string(line))
	}
}

// show prints a time.
func (c *dateCommand) show(t time.Time) int {
	if c.debug {
		c.p.Errorf("output format: ‘%s’", c.layout)
	}
	_, _ = fmt.Fprintln(c.p.Out(), program.Strftime(c.layout, t.In(c.zone)))
	return 0
}
