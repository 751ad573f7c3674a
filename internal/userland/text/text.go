// Package text has the commands that pass text on or change it: cat, head, tail, tee, cut, tr, wc and seq.
package text

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"cat": cat, "cut": cut, "head": head, "seq": seq,
		"tail": tail, "tee": tee, "tr": tr, "wc": wc, "yes": yes,
	})
}

// obsolete writes an option like -5 as -n 5, and one like -2k as -c 2k.
func obsolete(p *program.Process) {
	if len(p.Args) < 2 {
		return
	}
	a := p.Args[1]
	if len(a) < 2 || a[0] != '-' || a[1] < '0' || a[1] > '9' {
		return
	}
	letters := strings.TrimLeft(a[1:], "0123456789")
	n := a[1 : len(a)-len(letters)]
	option, unit, others := "-n", "", []string(nil)
	for _, c := range []byte(letters) {
		switch c {
		case 'c':
			option, unit = "-c", ""
		case 'b', 'k', 'm':
			option, unit = "-c", string(c)
		case 'l':
			option = "-n"
		case 'q', 'v', 'z':
			others = append(others, "-"+string(c))
		default:
			gnu.FailUsage(p, 1, "invalid trailing option -- %c", c)
		}
	}
	p.Args = slices.Concat([]string{p.Args[0], option, n + unit}, others, p.Args[2:])
}

func head(p *program.Process) int {
	obsolete(p)
	opts, files := p.Options(1, "c:n:qvz", "bytes c", "lines n", "quiet q", "silent q", "verbose v", "zero-terminated z")
	count, byBytes, allBut, quiet, verbose, delim := int64(10), false, false, false, false, byte('\n')
	for _, o := range opts {
		switch o.Name {
		case "c", "n":
			byBytes = o.Name == "c"
			var ok bool
			if count, allBut, ok = amount(p, o, "-", "+"); !ok {
				return 1
			}
		case "q":
			quiet, verbose = true, false
		case "v":
			verbose, quiet = true, false
		case "z":
			delim = 0
		}
	}
	status := 0
	show := headers(p, files, quiet, verbose)
	for i, name := range gnu.OrStdin(files) {
		in := openFor(p, name)
		if in == nil {
			status = 1
			continue
		}
		show(i, name)
		switch {
		case allBut && byBytes:
			all := in.All()
			_, _ = p.Out().Write(all[:max(int64(len(all))-count, 0)])
		case allBut:
			var kept [][]byte
			var ends []bool
			for {
				line, end, ok := in.Line(delim)
				if !ok {
					break
				}
				p.Hold(len(line) + 32)
				kept, ends = append(kept, bytes.Clone(line)), append(ends, end)
				if int64(len(kept)) > count {
					gnu.WriteLine(p.Out(), kept[0], delim, ends[0])
					p.Drop(len(kept[0]) + 32)
					kept, ends = kept[1:], ends[1:]
				}
			}
		case byBytes:
			for left := count; left > 0; {
				chunk := in.Chunk()
				if chunk == nil {
					break
				}
				p.Charge(len(chunk) / 8)
				if int64(len(chunk)) > left {
					chunk = chunk[:left]
				}
				_, _ = p.Out().Write(chunk)
				left -= int64(len(chunk))
			}
		default:
			for range count {
				line, end, ok := in.Line(delim)
				if !ok {
					break
				}
				gnu.WriteLine(p.Out(), line, delim, end)
			}
			in.Unread()
		}
		if err := in.Err(); err != nil {
			p.Errorf("error reading %s: %s", gnu.QuoteName(gnu.StdinName(name)), program.Message(err))
			status = 1
		}
	}
	return status
}

// openFor opens an operand of head and tail.
func openFor(p *program.Process, name string) *program.Input {
	if name == "-" {
		return p.Reader(p.Stdin)
	}
	h, err := p.Open(name, vfs.Read)
	if err != nil {
		p.Errorf("cannot open %s for reading: %s", gnu.QuoteName(name), program.Message(err))
		return nil
	}
	return p.Reader(h)
}

// headers returns what prints the name of a file before its part.
func headers(p *program.Process, files []string, quiet, verbose bool) func(i int, name string) {
	first := true
	return func(_ int, name string) {
		if (len(files) > 1 || verbose) && !quiet {
			if !first {
				_ = p.Out().WriteByte('\n')
			}
			p.Out().Printf("==> %s <==\n", gnu.StdinName(name))
		}
		first = false
	}
}

// amount reads the number of -c or -n, which may begin with mark; another sign is ignored. It prints an error and returns false for a text
// that is no number.
func amount(p *program.Process, o program.Option, mark, ignored string) (n int64, marked, ok bool) {
	digits, marked := strings.CutPrefix(o.Value, mark)
	if n, ok = gnu.ParseSuffixed(strings.TrimPrefix(digits, ignored)); ok {
		return n, marked, true
	}
	kind := "lines"
	if o.Name == "c" {
		kind = "bytes"
	}
	p.Errorf("invalid number of %s: ‘%s’", kind, o.Value)
	return 0, false, false
}

// oldTail turns the old form of tail's options, like -5, +3c or -1l, into the new one. With it there is one file at most.
func oldTail(p *program.Process) {
	args := p.Args[1:]
	switch n := len(args); {
	case n == 1, n == 2 && (args[1] == "-" || !strings.HasPrefix(args[1], "-")), (n == 2 || n == 3) && args[1] == "--":
	default:
		return
	}
	a := args[0]
	if len(a) < 2 || a[0] != '+' && a[0] != '-' || a == "-c" {
		return
	}
	rest := strings.TrimLeft(a[1:], "0123456789")
	number := a[1 : len(a)-len(rest)]
	option, unit := "-n", ""
	switch {
	case strings.HasPrefix(rest, "b"):
		option, unit, rest = "-c", "b", rest[1:]
	case strings.HasPrefix(rest, "c"):
		option, rest = "-c", rest[1:]
	case strings.HasPrefix(rest, "l"):
		rest = rest[1:]
	}
	follow := rest == "f"
	if rest != "" && !follow || number == "" && len(a) > 1 && a[0] == '-' && rest == "f" && option == "-n" {
		return
	}
	if number == "" {
		number = "10"
	}
	if a[0] == '+' {
		number = "+" + number
	}
	p.Args = []string{p.Args[0], option, number + unit}
	if follow {
		p.Args = append(p.Args, "-f")
	}
	p.Args = append(p.Args, args[1:]...)
}

func tail(p *program.Process) int {
	oldTail(p)
	opts, files := p.Options(1, "c:n:qvzfFs:0123456789", "bytes c", "lines n", "quiet q", "silent q", "verbose v", "zero-terminated z",
		"follow=?", "pid=", "retry", "sleep-interval s")
	count, byBytes, from, quiet, verbose, delim := int64(10), false, false, false, false, byte('\n')
	for _, o := range opts {
		switch o.Name {
		case "c", "n":
			byBytes = o.Name == "c"
			var ok bool
			if count, from, ok = amount(p, o, "+", "-"); !ok {
				return 1
			}
		case "q":
			quiet, verbose = true, false
		case "v":
			verbose, quiet = true, false
		case "z":
			delim = 0
		case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
			p.Errorf("option used in invalid context -- %s", o.Name)
			return 1
		case "f", "F", "follow":
			p.Lack(program.LackOption, "-f")
			p.Errorf("following a file is not supported in a nano space: nothing else writes it")
			return 1
		}
	}
	status := 0
	show := headers(p, files, quiet, verbose)
	for i, name := range gnu.OrStdin(files) {
		in := openFor(p, name)
		if in == nil {
			status = 1
			continue
		}
		show(i, name)
		switch {
		case from && byBytes:
			skip := max(count-1, 0)
			for {
				chunk := in.Chunk()
				if chunk == nil {
					break
				}
				p.Charge(len(chunk) / 8)
				n := min(skip, int64(len(chunk)))
				skip -= n
				_, _ = p.Out().Write(chunk[n:])
			}
		case from:
			for n := int64(1); ; n++ {
				line, end, ok := in.Line(delim)
				if !ok {
					break
				}
				if n >= count {
					gnu.WriteLine(p.Out(), line, delim, end)
				}
			}
		case byBytes:
			var kept []byte
			for {
				chunk := in.Chunk()
				if chunk == nil {
					break
				}
				p.Charge(len(chunk) / 8)
				p.Hold(len(chunk))
				kept = append(kept, chunk...)
				if over := int64(len(kept)) - count; over > 1<<16 {
					kept = append([]byte(nil), kept[over:]...)
					p.Drop(int(over))
				}
			}
			_, _ = p.Out().Write(kept[max(int64(len(kept))-count, 0):])
			p.Drop(len(kept))
		default:
			lastLines(p, in, count, delim)
		}
		if err := in.Err(); err != nil {
			p.Errorf("error reading %s: %s", gnu.QuoteName(gnu.StdinName(name)), program.Message(err))
			status = 1
		}
	}
	return status
}

// lastLines prints the last lines of an input, keeping no more of them.
func lastLines(p *program.Process, in *program.Input, count int64, delim byte) {
	if count == 0 {
		for in.Chunk() != nil {
			p.Charge(100)
		}
		return
	}
	var ring program.List[[]byte]
	at, last := 0, true
	for {
		line, end, ok := in.Line(delim)
		if !ok {
			break
		}
		last = end
		p.Hold(len(line) + 32)
		kept := bytes.Clone(line)
		if int64(ring.Len()) < count {
			ring.Append(kept)
			continue
		}
		oldest := ring.At(at)
		p.Drop(len(*oldest) + 32)
		*oldest = kept
		at = (at + 1) % ring.Len()
	}
	for i := range ring.Len() {
		p.Charge(10)
		line := *ring.At((at + i) % ring.Len())
		gnu.WriteLine(p.Out(), line, delim, i+1 < ring.Len() || last)
		p.Drop(len(line) + 32)
	}
}

func tee(p *program.Process) int {
	opts, files := p.Options(1, "aip", "append a", "ignore-interrupts i", "output-error=?")
	flags := vfs.Write | vfs.Create | vfs.Truncate
	for _, o := range opts {
		if o.Name == "a" {
			flags = vfs.Write | vfs.Create | vfs.Append
		}
	}
	status := 0
	type target struct {
		name string
		h    *vfs.Handle
	}
	var targets []target
	for _, name := range files {
		if name == "-" {
			continue
		}
		h, err := p.Open(name, flags)
		if err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			status = 1
			continue
		}
		targets = append(targets, target{name, h})
	}
	in := p.Reader(p.Stdin)
	for {
		chunk := in.Chunk()
		if chunk == nil {
			break
		}
		p.Charge(10 + len(chunk)/8)
		_, _ = p.Out().Write(chunk)
		p.Out().Flush()
		for i, t := range targets {
			if t.h == nil {
				continue
			}
			if _, err := t.h.Write(chunk); err != nil {
				p.Check(err)
				p.Errorf("%s: %s", t.name, program.Message(err))
				targets[i].h, status = nil, 1
			}
		}
	}
	if err := in.Err(); err != nil {
		p.Errorf("read error: %s", program.Message(err))
		return 1
	}
	return status
}

var _ io.Reader = (*program.Input)(nil)
