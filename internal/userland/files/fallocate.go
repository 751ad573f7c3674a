package files

import (
	"fmt"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// fallocate makes a file at least so long, and writes zeros where -p or -z says. Files here have no holes, so that there is nothing to
// take or to give back.
func fallocate(p *program.Process) int {
	opts, operands := p.Options(1, "cdil:no:pvxz", "collapse-range c", "dig-holes d", "insert-range i", "length= l", "keep-size n",
		"offset= o", "punch-hole p", "verbose v",
		"posix x", "zero-range z")
	length, offset, keep, zero, verbose, dig := int64(-1), int64(0), false, false, false, false
	for _, o := range opts {
		var err error
		switch o.Name {
		case "l":
			if length, err = gnu.ParseSize(o.Value); err != nil || length <= 0 {
				p.Errorf("invalid length value specified")
				return 1
			}
		case "o":
			if offset, err = gnu.ParseSize(o.Value); err != nil {
				p.Errorf("invalid offset value specified")
				return 1
			}
		case "n":
			keep = true
		case "p":
			zero, keep = true, true
		case "z":
			zero = true
		case "d":
			dig = true
		case "v":
			verbose = true
		case "c", "i":
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("fallocate failed: Operation not supported")
			return 1
		}
	}
	switch {
	case len(operands) == 0:
		p.Errorf("no filename specified")
	case len(operands) > 1:
		p.Errorf("unexpected number of arguments")
	case length < 0 && !dig:
		p.Errorf("no length argument specified")
	default:
		return allocate(p, operands[0], offset, length, keep, zero, verbose, dig)
	}
	return 1
}

// binarySize writes a size as util-linux does: 1.5 MiB.
func binarySize(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	unit, letters := int64(1<<10), "KMGTPE"
	for n/unit >= 1<<10 && len(letters) > 1 {
		unit, letters = unit<<10, letters[1:]
	}
	tenths := n % unit * 10 / unit
	if tenths == 0 {
		return fmt.Sprintf("%d %ciB", n/unit, letters[0])
	}
	return fmt.Sprintf("%d.%d %ciB", n/unit, tenths, letters[0])
}

func allocate(p *program.Process, name string, offset, length int64, keep, zero, verbose, dig bool) int {
	flags := vfs.Read | vfs.Write
	if !dig && !(zero && keep) {
		flags |= vfs.Create
	}
	h, err := p.Open(name, flags)
	if err != nil {
		p.Errorf("cannot open %s: %s", name, program.Message(err))
		return 1
	}
	fail := func(err error) int {
		p.Check(err)
		p.Errorf("fallocate failed: %s", program.Message(err))
		return 1
	}
	old := h.Info().Size
	if dig || offset > 1<<62-length {
		return 0
	}
	end := offset + length
	if zero {
		part := make([]byte, 32<<10)
		for at := offset; at < min(end, old); {
			n := min(int64(len(part)), min(end, old)-at)
			p.Charge(int(n))
			if _, err := h.WriteAt(part[:n], at); err != nil {
				return fail(err)
			}
			at += n
		}
	}
	if !keep && end > old {
		if err := h.Truncate(end); err != nil {
			return fail(err)
		}
	}
	if verbose {
		p.Out().Printf("%s: %s (%d bytes) allocated.\n", name, binarySize(length), length)
	}
	return 0
}
