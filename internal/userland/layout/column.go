package layout

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

// column formats a list into columns or a table.
func column(p *program.Process) int {
	opts, operands := p.Options(1, "ts:o:c:xN:R:nLH:dJe", "table t", "separator= s", "output-separator= o", "output-width= c", "fillrows x",
		"table-columns= N", "table-right= R",
		"keep-empty-lines L", "table-noheadings d", "table-hide= H")
	table, sep, between, width, rows := false, "", "  ", 80, false
	keep, noHead := false, false
	var names, right []string
	for _, o := range opts {
		switch o.Name {
		case "t":
			table = true
		case "s":
			sep = o.Value
		case "o":
			between = o.Value
		case "c":
			width = gnu.ParseCount(p, 1, o.Value, "invalid columns argument")
		case "x":
			rows = true
		case "N":
			names = strings.Split(o.Value, ",")
		case "R":
			right = strings.Split(o.Value, ",")
		case "L":
			keep = true
		case "d":
			noHead = true
		case "n":
		default:
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option -%s is not supported here", o.Name)
			return 1
		}
	}
	var lines []string
	code := gnu.EachInput(p, operands, func(_ string, in *program.Input) {
		for {
			line, _, ok := in.Line('\n')
			if !ok {
				break
			}
			if len(bytes.TrimSpace(line)) == 0 && !keep {
				continue
			}
			p.Hold(len(line) + 32)
			lines = append(lines, string(line))
		}
	})
	if table {
		columnTable(p, lines, sep, between, names, right, noHead)
		return code
	}
	if len(lines) == 0 {
		return code
	}
	longest := 0
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], "\r")
		longest = max(longest, utf8.RuneCountInString(lines[i]))
	}
	p.Charge(len(lines) * 20)
	out := p.Out()
	cell := (longest + 8) &^ 7
	columns := width / cell
	if columns < 1 || longest >= width {
		for _, l := range lines {
			out.WriteString(l + "\n")
		}
		return code
	}
	height := (len(lines) + columns - 1) / columns
	for y := range height {
		at, want := 0, 0
		for x := range columns {
			i := x*height + y
			if rows {
				i = y*columns + x
			}
			if i >= len(lines) {
				break
			}
			for at < want {
				out.WriteString("\t")
				at = (at + 8) &^ 7
			}
			out.WriteString(lines[i])
			at += utf8.RuneCountInString(lines[i])
			want += cell
		}
		out.WriteString("\n")
	}
	return code
}

func columnTable(p *program.Process, lines []string, sep, between string, names, right []string, noHead bool) {
	var table [][]string
	if len(names) > 0 && !noHead {
		table = append(table, names)
	}
	var widths []int
	for _, l := range lines {
		p.Charge(len(l))
		var row []string
		switch {
		case sep == "":
			row = strings.FieldsFunc(l, func(r rune) bool { return r == ' ' || r == '\t' })
		default:
			start := 0
			for i, r := range l {
				if strings.ContainsRune(sep, r) {
					row = append(row, l[start:i])
					start = i + utf8.RuneLen(r)
				}
			}
			row = append(row, l[start:])
		}
		table = append(table, row)
	}
	for _, row := range table {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	onRight := make([]bool, len(widths))
	for _, r := range right {
		if n, err := strconv.Atoi(r); err == nil && n >= 1 && n <= len(widths) {
			onRight[n-1] = true
		} else if i := slices.Index(names, r); i >= 0 && i < len(widths) {
			onRight[i] = true
		}
	}
	out := p.Out()
	for _, row := range table {
		for i, w := range widths {
			c := ""
			if i < len(row) {
				c = row[i]
			}
			fill := strings.Repeat(" ", max(w-utf8.RuneCountInString(c), 0))
			switch {
			case onRight[i]:
				out.WriteString(fill + c)
			case i+1 == len(widths):
				out.WriteString(c)
			case i+1 >= len(row) && sep == "":
				out.WriteString(c + fill)
			default:
				out.WriteString(c + fill)
			}
			if i+1 < len(widths) {
				out.WriteString(between)
			}
		}
		out.WriteString("\n")
	}
}
