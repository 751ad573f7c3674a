package toolbox

import (
	"compress/bzip2"
	"errors"
	"io"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// bzip2Bytes is what unpacking holds: a block of 900,000 bytes and where each of them goes.
const bzip2Bytes = 4_600_000

// gasPerBlock is what it costs to make room for a block of 100,000 bytes, which happens once for a file, however short that is.
const gasPerBlock = 300_000

// unbzip2 is a bzip2 that unpacks.
type unbzip2 struct {
	p                         *program.Process
	stdout, keep, force, test bool
	verbose                   bool
}

// bzip2Command is bzip2, bunzip2 and bzcat. It only unpacks.
func bzip2Command(p *program.Process) int {
	called := gnu.LastName(p.Name())
	opts, operands := p.Options(1, "cdfkqstvz123456789", "stdout c", "decompress d", "force f", "keep k", "quiet q", "small s", "test t",
		"verbose v", "compress z", "fast 1", "best 9")
	u := &unbzip2{p: p, stdout: called == "bzcat"}
	unpack := called != "bzip2"
	for _, o := range opts {
		switch o.Name {
		case "c":
			u.stdout = true
		case "d":
			unpack = true
		case "z":
			unpack = false
		case "f":
			u.force = true
		case "k":
			u.keep = true
		case "t":
			u.test, unpack = true, true
		case "v":
			u.verbose = true
		}
	}
	if !unpack {
		p.Lack(program.LackFeature, "packing")
		p.Errorf("packing is not supported here: use gzip; bzip2 -d unpacks")
		return 1
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	p.Hold(bzip2Bytes)
	code := 0
	for _, name := range operands {
		code = max(code, u.file(name))
	}
	return code
}

func (u *unbzip2) fail(code int, format string, args ...any) int {
	u.p.Charge(0)
	u.p.Errorf(format, args...)
	return code
}

// file unpacks one file and returns what the exit code is at least.
func (u *unbzip2) file(name string) int {
	p := u.p
	if name == "-" {
		return u.unpack(p.Reader(p.Stdin), p.Out(), "(stdin)")
	}
	info, err := p.FS.Stat(p.At(), name, true)
	if err != nil {
		return u.fail(1, "Can't open input file %s: %s.", name, program.Message(err))
	}
	if info.IsDir() {
		return u.fail(1, "Input file %s is a directory.", name)
	}
	h, err := p.Open(name, vfs.Read)
	if err != nil {
		return u.fail(1, "Can't open input file %s: %s.", name, program.Message(err))
	}
	defer func() { _ = p.Close(h) }()
	if u.stdout || u.test {
		return u.unpack(p.Reader(h), p.Out(), name)
	}
	to := ""
	for _, ending := range []struct{ packed, plain string }{{".bz2", ""}, {".bz", ""}, {".tbz2", ".tar"}, {".tbz", ".tar"}} {
		if base, ok := strings.CutSuffix(name, ending.packed); ok {
			to = base + ending.plain
			break
		}
	}
	if to == "" {
		to = name + ".out"
		p.Errorf("Can't guess original name for %s -- using %s", name, to)
	}
	if _, err := p.FS.Stat(p.At(), to, false); err == nil {
		if !u.force {
			return u.fail(1, "Output file %s already exists.", to)
		}
		_ = p.FS.Unlink(p.At(), to)
	}
	out, w, err := gnu.Create(p, to)
	if err != nil {
		return u.fail(1, "Can't create output file %s: %s.", to, program.Message(err))
	}
	code := u.unpack(p.Reader(h), w, name)
	w.Flush()
	if code != 0 {
		_ = p.Close(out)
		_ = p.FS.Unlink(p.At(), to)
		return code
	}
	_ = out.Node().Chmod(info.Mode)
	_ = out.Node().Utimes(info.Accessed, info.Modified)
	_ = p.Close(out)
	if !u.keep {
		if err := p.FS.Unlink(p.At(), name); err != nil {
			return u.fail(1, "Can't remove %s: %s.", name, program.Message(err))
		}
	}
	return 0
}

func (u *unbzip2) unpack(in *program.Input, out io.Writer, shown string) int {
	p := u.p
	if u.test {
		out = &tested{p: p}
	}
	read := &charger{p: p, r: in, n: gasPerPacked}
	head := make([]byte, 4)
	n, _ := io.ReadFull(read, head)
	if n < 4 || string(head[:3]) != "BZh" || head[3] < '1' || head[3] > '9' {
		if u.test {
			return u.fail(2, "%s: bad magic number (file not created by bzip2)", shown)
		}
		return u.fail(2, "%s is not a bzip2 file.", shown)
	}
	p.Charge(int(head[3]-'0') * gasPerBlock)
	z := bzip2.NewReader(io.MultiReader(strings.NewReader(string(head)), read))
	_, err := io.Copy(out, &charger{p: p, r: z, n: 5 * gasPerPacked})
	switch {
	case err == nil:
		if u.verbose {
			if u.test {
				p.Stderrf("  %s: ok\n", shown)
			} else {
				p.Stderrf("  %s:  done\n", shown)
			}
		}
		return 0
	case errors.Is(err, vfs.EFBIG):
		return u.fail(1, "%s: %s", shown, program.Message(err))
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		p.Stderrf("\n%s: Compressed file ends unexpectedly;\n\tperhaps it is corrupted?  *Possible* reason follows.\n", p.Name())
	default:
		p.Stderrf("\n%s: Data integrity error when decompressing.\n", p.Name())
	}
	p.Charge(0)
	return 2
}
