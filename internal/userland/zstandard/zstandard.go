// Package zstandard is the program zstd of nano spaces, with unzstd and zstdcat.
package zstandard

import (
	"errors"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Memory and gas costs of unpacking and packing. A file of the levels up to 19 has a window of at most 8 MiB. A file with a window above
// maxWindow is refused.
const (
	maxWindow   = 32 << 20
	packWindow  = 1 << 20
	packHolds   = 24 << 20
	gasToUnpack = 8 // of an unpacked byte
	gasToPack   = 60
	suffix      = ".zst"
)

// Magic is what packed files begin with: three of the four bytes.
const Magic = "\x28\xb5\x2f"

// Programs returns the commands.
func Programs() program.Table {
	f := program.Func(run)
	return program.Table{"zstd": f, "unzstd": f, "zstdcat": f}
}

// Reader unpacks for a program, which pays for it. Close releases what it holds.
func Reader(p *program.Process, in io.Reader) (io.ReadCloser, error) {
	p.Hold(maxWindow)
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return &unpacking{p, z}, nil
}

// Writer packs for a program, which pays for it. Close writes the end and releases what it holds.
func Writer(p *program.Process, to io.Writer) (io.WriteCloser, error) { return newWriter(p, to, 3) }

func newWriter(p *program.Process, to io.Writer, level int) (*packing, error) {
	p.Hold(packHolds)
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithZeroFrames(true))
	if err != nil {
		return nil, err
	}
	return &packing{p, z}, nil
}

type packing struct {
	p *program.Process
	z *zstd.Encoder
}

func (c *packing) Write(b []byte) (int, error) {
	c.p.Charge(len(b) * gasToPack)
	return c.z.Write(b)
}

func (c *packing) Close() error {
	defer c.p.Drop(packHolds)
	return c.z.Close()
}

type unpacking struct {
	p *program.Process
	z *zstd.Decoder
}

func (u *unpacking) Read(b []byte) (int, error) {
	n, err := u.z.Read(b)
	u.p.Charge(n * gasToUnpack)
	return n, err
}

func (u *unpacking) Close() error {
	u.z.Close()
	u.p.Drop(maxWindow)
	return nil
}

// job holds the options.
type job struct {
	p                                          *program.Process
	unpack, stdout, force, test, remove, quiet bool
	level                                      int
	to                                         string
}

func run(p *program.Process) int {
	j := &job{p: p, level: 3}
	switch path.Base(p.Name()) {
	case "unzstd":
		j.unpack = true
	case "zstdcat":
		j.unpack, j.stdout, j.force = true, true, true
	}
	opts, operands := p.Options(1, "cdfhkqtvzo:T:123456789", "stdout c", "decompress d", "uncompress d", "force f", "keep k", "quiet q",
		"test t", "verbose v", "compress z", "rm", "threads= T", "no-progress", "ultra", "fast", "long")
	digits := 0
	for _, o := range opts {
		switch o.Name {
		case "c":
			j.stdout = true
		case "d":
			j.unpack = true
		case "z":
			j.unpack = false
		case "f":
			j.force = true
		case "t":
			j.test, j.unpack = true, true
		case "q":
			j.quiet = true
		case "rm":
			j.remove = true
		case "o":
			j.to = o.Value
		case "fast":
			j.level = 1
		default:
			if c := o.Name[0]; len(o.Name) == 1 && c >= '1' && c <= '9' {
				digits = digits*10 + int(c-'0')
				j.level = digits
			}
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	for _, name := range operands {
		code = max(code, j.file(name))
	}
	return code
}

// fail prints an error about a file in the words of zstd.
func (j *job) fail(name, what string) int {
	j.p.Charge(0)
	j.p.Stderrf("zstd: %s: %s \n", name, what)
	return 1
}

// file packs or unpacks one file and returns the exit code.
func (j *job) file(name string) int {
	p := j.p
	in, to, stdout := p.Stdin, j.to, j.stdout
	var info vfs.Info
	if name == "-" {
		stdout = stdout || to == ""
	} else {
		var err error
		if info, err = p.FS.Stat(p.At(), name, true); err != nil {
			return j.fail("can't stat "+name, program.Message(err)+" -- ignored")
		}
		if info.IsDir() {
			return j.fail(name, "is a directory -- ignored")
		}
		if to == "" && !stdout && !j.test {
			var is bool
			if to, is = strings.CutSuffix(name, suffix); j.unpack && !is {
				return j.fail(name, "unknown suffix (.zst expected). Can't derive the output file name. Specify it with -o dstFileName. Ignoring.")
			} else if !j.unpack {
				to = name + suffix
			}
		}
		if in, err = p.Open(name, vfs.Read); err != nil {
			return j.fail(name, program.Message(err))
		}
		defer func() { _ = p.Close(in) }()
	}
	var target io.Writer = p.Out()
	var out *vfs.Handle
	var written *program.Output
	switch {
	case j.test:
		target = &tested{p: p}
	case !stdout:
		if _, err := p.FS.Stat(p.At(), to, false); err == nil && !j.force {
			return j.fail(to, "already exists; not overwritten")
		}
		h, err := p.Open(to, vfs.Write|vfs.Create|vfs.Truncate)
		if err != nil {
			return j.fail(to, program.Message(err))
		}
		out, written = h, p.Writer(h)
		target = written
	}
	err := j.convert(p.Reader(in), target)
	if written != nil {
		written.Flush()
		if info.Mode != 0 && out.Node() != nil {
			_ = out.Node().Chmod(info.Mode)
			_ = out.Node().Utimes(info.Accessed, info.Modified)
		}
		_ = p.Close(out)
	}
	if err != nil {
		if out != nil {
			_ = p.FS.Unlink(p.At(), to)
		}
		return j.fail(name, reason(err))
	}
	if j.remove && name != "-" && !stdout && !j.test {
		if err := p.FS.Unlink(p.At(), name); err != nil {
			return j.fail(name, program.Message(err))
		}
	}
	return 0
}

// convert packs or unpacks everything.
func (j *job) convert(in io.Reader, to io.Writer) error {
	if j.unpack {
		r, err := Reader(j.p, in)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		_, err = io.Copy(to, r)
		return err
	}
	w, err := newWriter(j.p, to, j.level)
	if err != nil {
		return err
	}
	_, err = io.Copy(struct{ io.Writer }{w}, struct{ io.Reader }{in})
	return errors.Join(err, w.Close())
}

// reason returns the words of zstd for an error.
func reason(err error) string {
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch):
		return "unsupported format"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "Read error (39) : premature end"
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return "Decoding error (36) : Frame requires too much memory for decoding"
	case errors.Is(err, zstd.ErrCRCMismatch):
		return "Decoding error (36) : Restored data doesn't match checksum"
	}
	if _, is := errors.AsType[vfs.Errno](err); is {
		return program.Message(err)
	}
	return "Decoding error (36) : Data corruption detected"
}

// tested discards content that is only tested. It stops at the limit of a file.
type tested struct {
	p *program.Process
	n int64
}

func (t *tested) Write(b []byte) (int, error) {
	if t.n += int64(len(b)); t.n > t.p.Account.Limits().FileBytes {
		t.p.Account.Hit(bound.File)
		return 0, vfs.EFBIG
	}
	return len(b), nil
}
