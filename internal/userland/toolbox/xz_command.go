package toolbox

import (
	"errors"
	"io"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// xzJob is an xz that unpacks.
type xzJob struct {
	p                               *program.Process
	stdout, keep, force, test, loud bool
}

// xzCommand is xz, unxz and xzcat. It only unpacks.
func xzCommand(p *program.Process) int {
	called := gnu.LastName(p.Name())
	p.Args[0] = "xz" // that is what its messages call it
	opts, operands := p.Options(1, "cdfkqtvzT:0123456789e", "stdout c", "to-stdout c", "decompress d", "uncompress d", "force f", "keep k",
		"quiet q", "test t", "verbose v", "compress z", "threads= T", "extreme e")
	j := &xzJob{p: p, stdout: called == "xzcat", loud: true}
	unpack := called != "xz"
	for _, o := range opts {
		switch o.Name {
		case "c":
			j.stdout = true
		case "d":
			unpack = true
		case "z":
			unpack = false
		case "f":
			j.force = true
		case "k":
			j.keep = true
		case "q":
			j.loud = false
		case "t":
			j.test, unpack = true, true
		}
	}
	if !unpack {
		p.Lack(program.LackFeature, "packing")
		p.Errorf("packing is not supported here: use gzip or zstd; xz -d unpacks")
		return 1
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	for _, name := range operands {
		if now := j.file(name); now == 1 || code == 0 {
			code = now
		}
	}
	return code
}

// fail says what is wrong with a file. It returns the code, which is 2 for a warning, as xz ends.
func (j *xzJob) fail(code int, name, what string) int {
	j.p.Charge(0)
	if j.loud {
		j.p.Errorf("%s: %s", name, what)
	}
	return code
}

// file unpacks one file and returns the exit code.
func (j *xzJob) file(name string) int {
	p := j.p
	if name == "-" {
		return j.unpack(p.Stdin, p.Out(), "(stdin)")
	}
	info, err := p.FS.Stat(p.At(), name, true)
	if err != nil {
		return j.fail(1, name, program.Message(err))
	}
	if info.IsDir() {
		return j.fail(2, name, "Is a directory, skipping")
	}
	to, packed := strings.CutSuffix(name, ".xz")
	if base, ok := strings.CutSuffix(name, ".txz"); ok {
		to, packed = base+".tar", true
	}
	if !packed && !j.stdout && !j.test {
		return j.fail(2, name, "Filename has an unknown suffix, skipping")
	}
	h, err := p.Open(name, vfs.Read)
	if err != nil {
		return j.fail(1, name, program.Message(err))
	}
	defer func() { _ = p.Close(h) }()
	if j.stdout || j.test {
		return j.unpack(h, p.Out(), name)
	}
	if _, err := p.FS.Stat(p.At(), to, false); err == nil {
		if !j.force {
			return j.fail(1, to, "File exists")
		}
		_ = p.FS.Unlink(p.At(), to)
	}
	out, w, err := gnu.Create(p, to)
	if err != nil {
		return j.fail(1, to, program.Message(err))
	}
	code := j.unpack(h, w, name)
	w.Flush()
	if code != 0 {
		_ = p.Close(out)
		_ = p.FS.Unlink(p.At(), to)
		return code
	}
	_ = out.Node().Chmod(info.Mode)
	_ = out.Node().Utimes(info.Accessed, info.Modified)
	_ = p.Close(out)
	if !j.keep {
		if err := p.FS.Unlink(p.At(), name); err != nil {
			return j.fail(1, name, program.Message(err))
		}
	}
	return 0
}

func (j *xzJob) unpack(from *vfs.Handle, to io.Writer, shown string) int {
	if j.test {
		to = &tested{p: j.p}
	}
	u := newUnxz(j.p, j.p.Reader(from))
	defer func() { _ = u.Close() }()
	_, err := io.Copy(to, u)
	if err == nil {
		return 0
	}
	if _, is := errors.AsType[vfs.Errno](err); is {
		return j.fail(1, shown, program.Message(err))
	}
	return j.fail(1, shown, err.Error())
}
