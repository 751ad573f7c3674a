package tools

import (
	"errors"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// crcTable is that of POSIX's cksum.
func crcTable() *[256]uint32 {
	var t [256]uint32
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			if c&0x80000000 != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return &t
}

// cksum and sum write checksums of files.
func cksum(p *program.Process) int {
	opts, operands := p.Options(1, "a:rs", "algorithm= a", "sysv s")
	kind := "crc"
	if lastName(p.Name()) == "sum" {
		kind = "bsd"
	}
	for _, o := range opts {
		switch o.Name {
		case "a":
			kind = o.Value
		case "s":
			kind = "sysv"
		case "r":
			kind = "bsd"
		}
	}
	if kind != "crc" && kind != "bsd" && kind != "sysv" {
		p.Lack(program.LackOption, "-a "+kind)
		p.Errorf("the algorithm %s is not supported here: use %ssum", kind, kind)
		return 1
	}
	t := crcTable()
	out := p.Out()
	named := len(operands) > 0
	return each(p, operands, func(name string, in *program.Input) {
		crc, n := uint32(0), uint64(0)
		for b := in.Chunk(); b != nil; b = in.Chunk() {
			p.Charge(len(b) * 2)
			n += uint64(len(b))
			switch kind {
			case "crc":
				for _, c := range b {
					crc = crc<<8 ^ t[byte(crc>>24)^c]
				}
			case "bsd":
				for _, c := range b {
					crc = (crc>>1 + (crc&1)<<15 + uint32(c)) & 0xffff
				}
			default:
				for _, c := range b {
					crc += uint32(c)
				}
			}
		}
		switch kind {
		case "crc":
			for m := n; m > 0; m >>= 8 {
				crc = crc<<8 ^ t[byte(crc>>24)^byte(m)]
			}
			out.Printf("%d %d", ^crc, n)
		case "bsd":
			out.Printf("%05d %5d", crc, (n+1023)/1024)
		default:
			r := crc&0xffff + crc>>16
			r = r&0xffff + r>>16
			out.Printf("%d %d", r, (n+511)/512)
		}
		if named {
			out.WriteString(" " + name)
		}
		out.WriteString("\n")
	})
}

// runs starts the program that its operands name, which is all that nice, nohup, setsid, stdbuf and ionice have to do here.
func runs(p *program.Process) int {
	short := map[string]string{"nice": "+n:", "nohup": "+", "setsid": "+cfw", "stdbuf": "+i:o:e:", "ionice": "+c:n:p:t"}[lastName(p.Name())]
	_, operands := p.Options(125, short, "adjustment= n", "input= i", "output= o", "error= e", "wait w", "fork f")
	if len(operands) == 0 {
		if lastName(p.Name()) == "nice" {
			p.Out().WriteString("0\n")
			return 0
		}
		p.Errorf("missing operand")
		p.Stderrf("Try '%s --help' for more information.\n", p.Name())
		return 125
	}
	s, err := p.Execute(p.Child(operands...))
	if err != nil {
		p.Errorf("failed to run command '%s': %s", operands[0], program.Message(err))
		if errors.Is(err, vfs.ENOENT) {
			return 127
		}
		return 126
	}
	return s.Exit()
}

// refuses is for what makes no sense in an execution of its own.
func refuses(why string) program.Func {
	return func(p *program.Process) int {
		p.Lack(program.LackFeature, why)
		p.Errorf("%s", why)
		return 1
	}
}

// tty tells that there is no terminal.
func tty(p *program.Process) int {
	opts, _ := p.Options(2, "s", "silent s", "quiet s")
	if len(opts) == 0 {
		p.Out().WriteString("not a tty\n")
	}
	return 1
}
