package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// ddOptions are what the operands of dd say.
type ddOptions struct {
	p                                                               *program.Process
	from, to                                                        string
	ibs, obs, blockCount, skip, seek                                int64
	notrunc, appends, quiet, noxfer, upper, lower, swab, sync, excl bool
	nocreat, bytesCount, bytesSkip, bytesSeek                       bool
}

// dd copies blocks.
func dd(p *program.Process) int {
	d := &ddOptions{p: p, ibs: 512, obs: 512, blockCount: -1}
	for _, a := range d.p.Args[1:] {
		if code, done := d.option(a); done {
			return code
		}
	}
	if d.ibs <= 0 || d.obs <= 0 || d.ibs > 64<<20 || d.obs > 64<<20 {
		return d.fail("invalid number: %s", gnu.Quote("0"))
	}
	in, out, ok := d.open()
	if !ok {
		return 1
	}
	if in == nil || out == nil {
		return d.fail("error reading 'standard input': %s", vfs.EBADF.Error())
	}
	p.Hold(int(d.ibs + d.obs))
	buf := make([]byte, d.ibs)
	d.skipInput(in, buf)
	var fullIn, partIn, fullOut, partOut, copied int64
	var pending []byte
	code := 0
	write := func(b []byte) bool {
		n, err := out.Write(b)
		copied += int64(n)
		if err != nil {
			p.Charge(0)
			if errors.Is(err, vfs.EPIPE) {
				p.Kill(program.SIGPIPE)
			}
			name := d.to
			if name == "" {
				name = "standard output"
			}
			p.Errorf("error writing '%s': %s", name, program.Message(err))
			code = 1
			return false
		}
		if int64(len(b)) == d.obs {
			fullOut++
		} else {
			partOut++
		}
		return true
	}
	limit := d.blockCount
	for code == 0 && (d.blockCount < 0 || (!d.bytesCount && fullIn+partIn < d.blockCount) || d.bytesCount && limit > 0) {
		want := d.ibs
		if d.bytesCount && d.blockCount >= 0 {
			want = min(want, limit)
		}
		n, err := in.Read(buf[:want])
		if n == 0 {
			if err != nil && !gnu.Ended(err) {
				p.Charge(0)
				name := d.from
				if name == "" {
					name = "standard input"
				}
				p.Errorf("error reading '%s': %s", name, program.Message(err))
				code = 1
			}
			break
		}
		limit -= int64(n)
		if int64(n) == d.ibs {
			fullIn++
		} else {
			partIn++
		}
		b := buf[:n]
		if d.sync && int64(n) < d.ibs {
			clear(buf[n:])
			b = buf
		}
		p.Charge(n / 8)
		b = d.converted(b)
		if d.ibs == d.obs {
			if !write(b) {
				break
			}
			continue
		}
		pending = append(pending, b...)
		for int64(len(pending)) >= d.obs {
			if !write(pending[:d.obs]) {
				break
			}
			pending = pending[d.obs:]
		}
	}
	if len(pending) > 0 && code == 0 {
		write(pending)
	}
	if !d.quiet {
		p.Stderrf("%d+%d records in\n%d+%d records out\n", fullIn, partIn, fullOut, partOut)
		if !d.noxfer {
			p.Stderrf("%s copied, 0.001 s, %s/s\n", amount(copied), humanSize(copied*1000, 1000, " ", "B"))
		}
	}
	return code
}

// skipInput reads what skip= leaves out.
func (d *ddOptions) skipInput(in *vfs.Handle, buf []byte) {
	left := d.skip * d.ibs
	if d.bytesSkip {
		left = d.skip
	}
	for left > 0 {
		n, err := in.Read(buf[:min(left, d.ibs)])
		left -= int64(n)
		if err != nil || n == 0 {
			break
		}
	}
}

// open opens the input and the output, and goes to the place where the output begins.
func (d *ddOptions) open() (in, out *vfs.Handle, ok bool) {
	in, out = d.p.Stdin, d.p.Stdout
	if d.from != "" {
		var err error
		if in, err = d.p.Open(d.from, vfs.Read); err != nil {
			d.fail("failed to open '%s': %s", d.from, program.Message(err))
			return nil, nil, false
		}
	}
	if d.to != "" {
		flags := vfs.Write | vfs.Create
		if d.nocreat {
			flags = vfs.Write
		}
		if d.excl {
			flags |= vfs.Exclusive
		}
		if !d.notrunc && d.seek == 0 && !d.appends {
			flags |= vfs.Truncate
		}
		if d.appends {
			flags |= vfs.Append
		}
		var err error
		if out, err = d.p.Open(d.to, flags); err != nil {
			d.fail("failed to open '%s': %s", d.to, program.Message(err))
			return nil, nil, false
		}
		if d.seek > 0 {
			at := d.seek * d.obs
			if d.bytesSeek {
				at = d.seek
			}
			if !d.notrunc && out.Kind() == vfs.Regular {
				if err := out.Truncate(at); err != nil {
					d.fail("failed to truncate to %d bytes in output file '%s': %s", at, d.to, program.Message(err))
					return nil, nil, false
				}
			}
			if _, err := out.Seek(at, io.SeekStart); err != nil {
				d.fail("'%s': cannot seek: %s", d.to, program.Message(err))
				return nil, nil, false
			}
		}
	}
	return in, out, true
}

// converted applies the conversions of letters and of pairs of bytes to a block.
func (d *ddOptions) converted(b []byte) []byte {
	switch {
	case d.upper:
		b = bytes.ToUpper(b)
	case d.lower:
		b = bytes.ToLower(b)
	}
	if d.swab {
		b = bytes.Clone(b)
		for i := 0; i+1 < len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
	}
	return b
}

// amount returns a number of bytes as the summary has it, with its rounded forms.
func amount(copied int64) string {
	unit := "bytes"
	if copied == 1 {
		unit = "byte"
	}
	human := ""
	if copied >= 1000 {
		human = " (" + humanSize(copied, 1000, " ", "B")
		if copied >= 1024 {
			human += ", " + humanSize(copied, 1024, " ", "iB")
		}
		human += ")"
	}
	return fmt.Sprintf("%d %s%s", copied, unit, human)
}
