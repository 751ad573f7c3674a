package layout

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
)

// prOptions reads the arguments of pr.
func prOptions(p *program.Process) (*prLayout, []string) {
	opts, operands := p.Options(1, "0123456789abcdD:e::fFh:i::Jl:mn::N:o:rs::S::tTvw:W:", "across a", "columns=", "show-control-chars c",
		"double-space d", "date-format D", "expand-tabs e",
		"form-feed F", "header h", "output-tabs i", "join-lines J", "length l", "merge m", "number-lines n", "first-line-number N", "indent o",
		"no-file-warnings r",
		"separator s", "sep-string S", "omit-header t", "omit-pagination T", "show-nonprinting v", "width w", "page-width W", "pages=")
	l := &prLayout{columns: 1, length: prLength, width: prWidth, digits: 5, numberEnd: '\t', tabIn: '\t', tabOut: '\t', first: 1,
		dates: "%Y-%m-%d %H:%M"}
	digits := ""
	for _, o := range opts {
		if len(o.Name) == 1 && o.Name[0] >= '0' && o.Name[0] <= '9' {
			if digits += o.Name; digits == "0" { // -02 is -2
				l.columns = 0
				continue
			}
			l.columns = prNumber(p, digits, "number of columns", 1)
			continue
		}
		digits = ""
		if !l.flag(o.Name) {
			l.option(p, o)
		}
	}
	if l.columns == 0 {
		p.Errorf("invalid number of columns: ‘0’")
		p.Exit(1)
	}
	var files []string
	for _, x := range operands {
		if strings.HasPrefix(x, "+") && len(x) > 1 && x[1] >= '0' && x[1] <= '9' {
			l.pages(p, x[1:])
			continue
		}
		files = append(files, x)
	}
	if l.merge && l.across {
		p.Errorf("cannot specify both printing across and printing in parallel")
		p.Exit(1)
	}
	if l.merge && l.columns > 1 {
		p.Errorf("cannot specify number of columns when printing in parallel")
		p.Exit(1)
	}
	l.settle(len(files))
	return l, files
}

// flag takes an option without a value, and reports whether it is one.
func (l *prLayout) flag(name string) bool {
	switch name {
	case "a":
		l.across = true
	case "b":
	case "c":
		l.carets = true
	case "d":
		l.double = true
	case "f", "F":
		l.feed = true
	case "J":
		l.join = true
	case "m":
		l.merge = true
	case "r":
		l.quiet = true
	case "t":
		l.bare = true
	case "T":
		l.bare, l.ignoreFeed = true, true
	case "v":
		l.octal = true
	default:
		return false
	}
	return true
}

// option takes an option with a value.
func (l *prLayout) option(p *program.Process, o program.Option) {
	switch o.Name {
	case "columns":
		l.columns = prNumber(p, o.Value, "number of columns", 1)
	case "D":
		l.dates = o.Value
	case "h":
		l.title, l.titled = o.Value, true
	case "e":
		l.tabIn, l.inWidth = prTab(p, o.Value, '\t', "-e")
	case "i":
		l.tabOut, l.outWidth = prTab(p, o.Value, '\t', "-i")
	case "l":
		l.length = prNumber(p, o.Value, "number of lines", 1)
	case "n":
		var width int
		l.numbered = true
		l.numberEnd, width = prTab(p, o.Value, '\t', "-n")
		if l.digits = 5; o.Value != "" && strings.ContainsAny(o.Value[len(o.Value)-1:], "0123456789") {
			l.digits = width
		}
	case "N":
		l.number, l.counted = prNumber(p, o.Value, "starting line number", -prMaximum), true
	case "o":
		l.margin = prNumber(p, o.Value, "margin", 0)
	case "s":
		l.separator, l.separated = o.Value, true
		if o.Value == "" {
			l.separator = "\t"
		}
		l.join = l.join || !l.widthGiven
	case "S":
		l.separator, l.separated = o.Value, true
	case "w":
		l.width, l.widthGiven = prNumber(p, o.Value, "number of characters", 1), true
	case "W":
		l.width, l.widthGiven, l.lineWidth = prNumber(p, o.Value, "number of characters", 1), true, true
	case "pages":
		l.pages(p, o.Value)
	}
}

// pages reads FIRST[:LAST].
func (l *prLayout) pages(p *program.Process, spec string) {
	a, b, ranged := strings.Cut(spec, ":")
	l.first = prNumber(p, a, "page range", 1)
	if ranged {
		if l.last = prNumber(p, b, "page range", 1); l.last < l.first {
			p.Errorf("invalid page range ‘%s’", spec)
			p.Exit(1)
		}
	}
}

// settle decides what follows from the options together.
func (l *prLayout) settle(files int) {
	l.bare = l.bare || l.length <= 2*prHeader
	many := l.columns > 1 || l.merge && files > 0
	if !many {
		l.lineWidth = l.lineWidth && !l.join
		return
	}
	if l.widthGiven && l.separated {
		l.join = false
	}
	l.aligned = !l.join
	switch {
	case !l.separated && l.join:
		l.separator = "\t"
	case !l.separated || l.aligned && l.separator == "\t":
		l.separator = " "
	}
	if l.aligned {
		if l.inWidth == 0 {
			l.inWidth = 8
		}
		if l.outWidth == 0 {
			l.outWidth = 8
		}
	}
}

// prNumber reads a number, or ends the program.
func prNumber(p *program.Process, s, what string, least int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > prMaximum {
		p.Errorf("invalid %s: ‘%s’", what, s)
		p.Exit(1)
	}
	return n
}

// prTab reads [CHAR[WIDTH]], of which both may be missing.
func prTab(p *program.Process, s string, char byte, option string) (byte, int) {
	if s != "" && (s[0] < '0' || s[0] > '9') {
		char, s = s[0], s[1:]
	}
	if s == "" {
		return char, 8
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > prMaximum {
		p.Errorf("'%s' extra characters or invalid number in the argument: ‘%s’", option, s)
		p.Exit(1)
	}
	return char, n
}
