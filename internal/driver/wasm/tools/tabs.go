package tools

import (
	"strconv"
	"strings"

	"agentbox/internal/driver/wasm/program"
)

// tabs reads the stops of expand and unexpand.
func tabs(p *program.Process, s string) []int {
	var all []int
	for _, x := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(x)
		if err != nil {
			p.Errorf("tab size contains invalid character(s): %s", quote(x))
			p.Exit(1)
		}
		if n <= 0 {
			p.Errorf("tab size cannot be 0")
			p.Exit(1)
		}
		if len(all) > 0 && n <= all[len(all)-1] {
			p.Errorf("tab sizes must be ascending")
			p.Exit(1)
		}
		all = append(all, n)
	}
	return all
}

// stop returns the next stop behind a column.
func stop(tabs []int, column int) int {
	if len(tabs) == 1 {
		return column + tabs[0] - column%tabs[0]
	}
	for _, t := range tabs {
		if t > column {
			return t
		}
	}
	return column + 1
}

func digitsAsTabs(p *program.Process) {
	args := p.Args[:1:1]
	for _, a := range p.Args[1:] {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789,") == "" {
			a = "-t" + a[1:]
		}
		args = append(args, a)
	}
	p.Args = args
}

func expand(p *program.Process) int {
	digitsAsTabs(p)
	opts, operands := p.Options(1, "it:", "initial i", "tabs= t")
	stops, initial := []int{8}, false
	for _, o := range opts {
		if o.Name == "i" {
			initial = true
		} else if stops = tabs(p, o.Value); len(stops) == 0 {
			stops = []int{8}
		}
	}
	out := p.Out()
	return each(p, operands, func(_ string, in *program.Input) {
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				return
			}
			p.Charge(len(line))
			column, leading := 0, true
			for _, c := range line {
				switch {
				case c == '\t' && (leading || !initial):
					next := stop(stops, column)
					out.WriteString(strings.Repeat(" ", next-column))
					column = next
					continue
				case c == '\b':
					column = max(column-1, 0)
				default:
					column++
				}
				leading = leading && c == ' '
				_ = out.WriteByte(c)
			}
			if ended {
				_ = out.WriteByte('\n')
			}
		}
	})
}

func unexpand(p *program.Process) int {
	digitsAsTabs(p)
	opts, operands := p.Options(1, "at:", "all a", "first-only", "tabs= t")
	stops, all, first := []int{8}, false, false
	for _, o := range opts {
		switch o.Name {
		case "a":
			all = true
		case "first-only":
			first = true
		case "t":
			stops, all = tabs(p, o.Value), true
		}
	}
	if first {
		all = false
	}
	out := p.Out()
	return each(p, operands, func(_ string, in *program.Input) {
		for {
			line, ended, ok := in.Line('\n')
			if !ok {
				return
			}
			p.Charge(len(line))
			column, pending, leading := 0, "", true
			for _, c := range line {
				if (c == ' ' || c == '\t') && (all || leading) {
					next := stop(stops, column)
					if c == '\t' {
						pending, column = "", next
						_ = out.WriteByte('\t')
						continue
					}
					pending += " "
					if column++; column == next {
						if len(pending) > 1 || leading && false {
							_ = out.WriteByte('\t')
						} else {
							out.WriteString(pending)
						}
						pending = ""
					}
					continue
				}
				leading = false
				out.WriteString(pending)
				pending = ""
				column++
				_ = out.WriteByte(c)
			}
			out.WriteString(pending)
			if ended {
				_ = out.WriteByte('\n')
			}
		}
	})
}
