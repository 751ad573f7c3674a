package program

import "agentbox/internal/userland/vfs"

// NamesFrom returns the names of files that a list holds, which --files0-from names; each ends with a NUL. Names that cannot be are told,
// counted and left out. It ends the program with the code bad where there are operands as well, or where the list cannot be read.
func (p *Process) NamesFrom(bad int, list string, operands []string) (names []string, wrong int) {
	if len(operands) > 0 {
		p.Errorf("extra operand ‘%s’\nfile operands cannot be combined with --files0-from", operands[0])
		p.tryHelp(bad)
	}
	in := p.Reader(p.Stdin)
	if list != "-" {
		h, err := p.Open(list, vfs.Read)
		if err != nil {
			p.Errorf("cannot open ‘%s’ for reading: %s", list, Message(err))
			p.Exit(bad)
		}
		defer func() { _ = p.Close(h) }()
		in = p.Reader(h)
	}
	for n := 1; ; n++ {
		line, _, more := in.Line(0)
		if !more {
			break
		}
		switch name := string(line); {
		case name == "":
			p.Errorf("%s:%d: invalid zero-length file name", list, n)
			wrong++
		case name == "-" && list == "-":
			p.Errorf("when reading file names from standard input, no file name of ‘-’ allowed")
			wrong++
		default:
			p.Hold(len(name) + 16)
			names = append(names, name)
		}
	}
	if err := in.Err(); err != nil {
		p.Errorf("%s: read error: %s", list, Message(err))
		p.Exit(bad)
	}
	return names, wrong
}
