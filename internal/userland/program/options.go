package program

import "strings"

// Option is one option of a command line.
type Option struct {
	Name  string // the letter, or the long name of one that has no letter
	Value string
	Given bool // there is a value
}

// Options parses the arguments as GNU's getopt_long does: options may stand behind operands, and -- ends them. short has the letters,
// each with : for a value or :: for an optional one; with a leading + the first operand ends the options. A long option is written
// "name", "name=" with a value, "name=?" with an optional one, or "name x" for the letter x. An error is printed, reported as lacking,
// and ends the program with the code bad.
func (p *Process) Options(bad int, short string, long ...string) (opts []Option, operands []string) {
	short, stop := strings.CutPrefix(short, "+")
	args := p.Args[1:]
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return opts, append(operands, args[i+1:]...)
		case strings.HasPrefix(a, "--"):
			opts, i = longOption(p, bad, opts, short, long, args, i)
		case len(a) > 1 && a[0] == '-':
			for a = a[1:]; a != ""; {
				c := a[:1]
				a = a[1:]
				at := strings.Index(short, c)
				if at < 0 || c == ":" {
					p.Lack(LackOption, "-"+c)
					p.Errorf("invalid option -- '%s'", c)
					p.tryHelp(bad)
				}
				rule := short[at+1:]
				switch {
				case strings.HasPrefix(rule, "::"):
					opts = append(opts, Option{c, a, a != ""})
					a = ""
				case strings.HasPrefix(rule, ":"):
					if a == "" {
						if i+1 == len(args) {
							p.Errorf("option requires an argument -- '%s'", c)
							p.tryHelp(bad)
						}
						i++
						a = args[i]
					}
					opts = append(opts, Option{c, a, true})
					a = ""
				default:
					opts = append(opts, Option{Name: c})
				}
			}
		case stop:
			return opts, append(operands, args[i:]...)
		default:
			operands = append(operands, a)
		}
	}
	return opts, operands
}

// longOption parses the long option args[i].
func longOption(p *Process, bad int, opts []Option, short string, long, args []string, i int) ([]Option, int) {
	name, value, given := strings.Cut(args[i][2:], "=")
	spec, same := "", []string(nil)
	for _, s := range long {
		full, _, _ := strings.Cut(s, " ")
		full = strings.TrimRight(full, "=?")
		if full == name {
			spec, same = s, nil
			break
		}
		if strings.HasPrefix(full, name) {
			spec = s
			same = append(same, full)
		}
	}
	if len(same) > 1 {
		p.Errorf("option '--%s' is ambiguous; possibilities: '--%s'", name, strings.Join(same, "' '--"))
		p.tryHelp(bad)
	}
	if spec == "" {
		switch name {
		case "help":
			writeHelp(p, short, long)
		case "version":
			p.Out().Printf("%s (agentbox)\n", p.Name())
			p.Exit(0)
		}
		p.Lack(LackOption, "--"+name)
		p.Errorf("unrecognized option '--%s'", name)
		p.tryHelp(bad)
	}
	full, letter, isLetter := strings.Cut(spec, " ")
	rule := full[len(strings.TrimRight(full, "=?")):]
	full = full[:len(full)-len(rule)]
	o := Option{Name: full, Value: value, Given: given}
	if isLetter {
		o.Name = letter
		if after := short[strings.Index(short, letter)+1:]; rule == "" && strings.HasPrefix(after, "::") {
			rule = "=?"
		} else if rule == "" && strings.HasPrefix(after, ":") {
			rule = "="
		}
	}
	switch {
	case rule == "" && given:
		p.Errorf("option '--%s' doesn't allow an argument", full)
		p.tryHelp(bad)
	case rule == "=" && !given:
		if i+1 == len(args) {
			p.Errorf("option '--%s' requires an argument", full)
			p.tryHelp(bad)
		}
		i++
		o.Value, o.Given = args[i], true
	}
	return append(opts, o), i
}

func (p *Process) tryHelp(bad int) {
	p.Stderrf("Try '%s --help' for more information.\n", p.Name())
	p.Exit(bad)
}
