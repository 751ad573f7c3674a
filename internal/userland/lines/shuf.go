// Package lines has the commands that split, join and reorder the lines of files: split, join, paste, comm, shuf, tac and tsort.
package lines

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"comm": comm, "csplit": csplit, "join": joinCommand, "paste": paste,
		"shuf": shuf, "split": splitCommand, "tac": tac, "tsort": tsort,
	})
}

// shuf writes lines in an order that the execution's seed decides.
func shuf(p *program.Process) int {
	opts, operands := p.Options(1, "ei:n:o:rz", "echo e", "input-range= i", "head-count= n", "output= o", "random-source=", "repeat r",
		"zero-terminated z")
	limit, repeat, end, echo := -1, false, byte('\n'), false
	output := ""
	var lines []string
	ranged := false
	for _, o := range opts {
		switch o.Name {
		case "e":
			echo = true
		case "i":
			a, b, ok := strings.Cut(o.Value, "-")
			low, err := strconv.Atoi(a)
			high, err2 := strconv.Atoi(b)
			if !ok || err != nil || err2 != nil || low > high+1 {
				p.Errorf("invalid input range: %s", gnu.Quote(o.Value))
				return 1
			}
			ranged = true
			p.Hold(max(high-low, 0) * 32)
			for i := low; i <= high; i++ {
				p.Charge(20)
				lines = append(lines, strconv.Itoa(i))
			}
		case "n":
			limit = gnu.ParseCount(p, 1, o.Value, "invalid line count")
		case "o":
			output = o.Value
		case "r":
			repeat = true
		case "z":
			end = 0
		case "random-source": // the seed is the execution's
		}
	}
	switch {
	case echo:
		lines = operands
	case !ranged:
		if code := gnu.EachInput(p, operands, func(_ string, in *program.Input) {
			for {
				line, _, ok := in.Line(end)
				if !ok {
					return
				}
				p.Hold(len(line) + 32)
				lines = append(lines, string(line))
			}
		}); code != 0 {
			return code
		}
	}
	out := p.Out()
	if output != "" {
		_, w, err := gnu.Create(p, output)
		if err != nil {
			p.Errorf("%s: %s", output, program.Message(err))
			return 1
		}
		out = w
		defer w.Flush()
	}
	draw := func(n int) int {
		var b [8]byte
		p.Account.Entropy(b[:])
		v := uint64(0)
		for _, c := range b {
			v = v<<8 | uint64(c)
		}
		return int(v % uint64(n))
	}
	if repeat {
		if len(lines) == 0 {
			p.Errorf("no lines to repeat")
			return 1
		}
		for i := 0; limit < 0 || i < limit; i++ {
			p.Charge(30)
			out.WriteString(lines[draw(len(lines))])
			_ = out.WriteByte(end)
		}
		return 0
	}
	lines = slices.Clone(lines)
	for i := range lines {
		if limit >= 0 && i >= limit {
			break
		}
		p.Charge(30)
		j := i + draw(len(lines)-i)
		lines[i], lines[j] = lines[j], lines[i]
		out.WriteString(lines[i])
		_ = out.WriteByte(end)
	}
	return 0
}

// tsort sorts by pairs of what comes before what.
func tsort(p *program.Process) int {
	_, operands := p.Options(1, "w")
	if len(operands) > 1 {
		p.Errorf("extra operand %s", gnu.Quote(operands[1]))
		return 1
	}
	var words []string
	name := "-"
	if len(operands) == 1 {
		name = operands[0]
	}
	if code := gnu.EachInput(p, operands, func(_ string, in *program.Input) { words = strings.Fields(string(in.All())) }); code != 0 {
		return code
	}
	if len(words)%2 != 0 {
		p.Errorf("%s: input contains an odd number of tokens", name)
		return 1
	}
	p.Charge(len(words) * 50)
	before := map[string]int{}
	after := map[string][]string{}
	var order []string
	see := func(w string) {
		if _, ok := before[w]; !ok {
			before[w] = 0
			order = append(order, w)
		}
	}
	for i := 0; i < len(words); i += 2 {
		a, b := words[i], words[i+1]
		see(a)
		see(b)
		if a != b {
			before[b]++
			after[a] = append(after[a], b)
		}
	}
	slices.Sort(order)
	var ready []string
	for _, w := range order {
		if before[w] == 0 {
			ready = append(ready, w)
		}
	}
	out, left, code := p.Out(), len(order), 0
	done := map[string]bool{}
	for left > 0 {
		if len(ready) == 0 {
			code = 1
			p.Errorf("%s: input contains a loop:", name)
			loop := loopOf(order, after, done)
			for _, w := range loop {
				p.Errorf("%s", w)
			}
			last := loop[len(loop)-1]
			after[last] = slices.DeleteFunc(after[last], func(w string) bool { return w == loop[0] })
			if before[loop[0]]--; before[loop[0]] == 0 {
				ready = append(ready, loop[0])
			}
			continue
		}
		w := ready[0]
		ready = ready[1:]
		out.WriteString(w + "\n")
		done[w] = true
		left--
		p.Charge(20)
		list := after[w]
		for i := len(list) - 1; i >= 0; i-- { // GNU has the last one of a word first
			if before[list[i]]--; before[list[i]] == 0 {
				ready = append(ready, list[i])
			}
		}
	}
	return code
}

// loopOf finds words that wait for each other.
func loopOf(order []string, after map[string][]string, done map[string]bool) []string {
	state := map[string]int{}
	var path, loop []string
	var visit func(w string) bool
	visit = func(w string) bool {
		state[w] = 1
		path = append(path, w)
		for _, x := range after[w] {
			if done[x] || state[x] == 2 {
				continue
			}
			if state[x] == 1 {
				loop = slices.Clone(path[slices.Index(path, x):])
				return true
			}
			if visit(x) {
				return true
			}
		}
		state[w] = 2
		path = path[:len(path)-1]
		return false
	}
	for _, w := range order {
		if !done[w] && state[w] == 0 && visit(w) {
			break
		}
	}
	return loop
}

// csplit cuts a file where lines match.
func csplit(p *program.Process) int {
	opts, operands := p.Options(1, "b:f:kn:sqz", "suffix-format= b", "prefix= f", "keep-files k", "digits= n", "quiet s", "silent s",
		"elide-empty-files z", "suppress-matched")
	prefix, digits, silent, elide, suppress := "xx", 2, false, false, false
	format := ""
	for _, o := range opts {
		switch o.Name {
		case "b":
			format = o.Value
		case "f":
			prefix = o.Value
		case "n":
			digits = gnu.ParseCount(p, 1, o.Value, "invalid number")
		case "s", "q":
			silent = true
		case "z":
			elide = true
		case "suppress-matched":
			suppress = true
		}
	}
	if len(operands) < 2 {
		p.Errorf("missing operand")
		return 1
	}
	data, err := gnu.ReadWhole(p, operands[0])
	if err != nil {
		p.Errorf("cannot open '%s' for reading: %s", operands[0], program.Message(err))
		return 1
	}
	all := gnu.Lines(data)
	at, nth := 0, 0
	out := p.Out()
	write := func(to int) {
		part := bytes.Join(all[at:to], nil)
		at = to
		if len(part) == 0 && elide {
			return
		}
		name := prefix + fmt.Sprintf("%0*d", digits, nth)
		if format != "" {
			v, _, ok := posix.ParseVerb(format[max(strings.IndexByte(format, '%'), 0):], func() int { return 0 })
			if ok {
				i := strings.IndexByte(format, '%')
				_, n, _ := posix.ParseVerb(format[i:], func() int { return 0 })
				name = prefix + format[:i] + string(v.Int(nil, int64(nth))) + format[i+n:]
			}
		}
		nth++
		_, w, err := gnu.Create(p, name)
		if err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			p.Exit(1)
		}
		_, _ = w.Write(part)
		w.Flush()
		if !silent {
			out.Printf("%d\n", len(part))
		}
	}
	fail := func(pattern string) int {
		p.Errorf("%s: match not found", gnu.Quote(pattern))
		return 1
	}
	seen := 0 // up to where lines were searched
	for i := 1; i < len(operands); i++ {
		arg := operands[i]
		repeat := 1
		if i+1 < len(operands) && strings.HasPrefix(operands[i+1], "{") && strings.HasSuffix(operands[i+1], "}") {
			r := strings.Trim(operands[i+1], "{}")
			if repeat = 1 << 30; r != "*" {
				repeat = 1 + gnu.ParseCount(p, 1, r, "invalid repeat count")
			}
			i++
		}
		for range repeat {
			p.Charge(100)
			if arg[0] != '/' && arg[0] != '%' {
				n := gnu.ParseCount(p, 1, arg, "invalid pattern")
				if n > len(all) {
					write(len(all))
					out.Flush()
					p.Errorf("%s: line number out of range", gnu.Quote(arg))
					return 1
				}
				write(max(n-1, at))
				seen = at
				continue
			}
			end := strings.LastIndexByte(arg, arg[0])
			if end == 0 {
				p.Errorf("%s: closing delimiter '%c' missing", arg, arg[0])
				return 1
			}
			offset, _ := strconv.Atoi(strings.TrimPrefix(arg[end+1:], "+"))
			re := gnu.Compile(p, 1, arg[1:end], 0)
			found := -1
			for k := seen; k < len(all); k++ {
				ok, err := re.Match(bytes.TrimSuffix(all[k], []byte("\n")))
				gnu.Check(p, 1, err)
				if ok {
					found = k
					break
				}
			}
			if found < 0 {
				if repeat == 1<<30 {
					break
				}
				return fail(arg)
			}
			to := min(max(found+offset, at), len(all))
			if arg[0] == '%' {
				at = to
			} else {
				write(to)
			}
			seen = found + 1
			if suppress && at < len(all) {
				at++
			}
		}
	}
	write(len(all))
	return 0
}
