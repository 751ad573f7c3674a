package toolbox

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// gzipCommand is gzip, gunzip and zcat.
func gzipCommand(p *program.Process) int {
	called := gnu.LastName(p.Name())
	p.Args[0] = "gzip" // that is what its messages call it
	opts, operands := p.Options(1, "cdfhklLnNqrS:tv123456789", "stdout c", "to-stdout c", "decompress d", "uncompress d", "force f", "keep k",
		"list l", "no-name n", "name N", "quiet q",
		"recursive r", "suffix= S", "test t", "verbose v", "fast 1", "best 9")
	z := &gzipper{p: p, level: gzip.DefaultCompression, suffix: ".gz"}
	switch called {
	case "gunzip":
		z.unpack = true
	case "zcat":
		z.unpack, z.stdout = true, true
	}
	for _, o := range opts {
		switch o.Name {
		case "c":
			z.stdout = true
		case "d":
			z.unpack = true
		case "f":
			z.force = true
		case "k":
			z.keep = true
		case "t":
			z.test, z.unpack = true, true
		case "l":
			z.list, z.unpack = true, true
		case "S":
			z.suffix = o.Value
		case "r":
			p.Lack(program.LackOption, "-r")
			p.Errorf("the option -r is not supported here: use find -exec")
			return 1
		default:
			if o.Name[0] >= '1' && o.Name[0] <= '9' {
				z.level = int(o.Name[0] - '0')
			}
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	if z.list {
		p.Out().WriteString("         compressed        uncompressed  ratio uncompressed_name\n")
	}
	for _, name := range operands {
		switch now := z.one(name); {
		case now == 1:
			code = 1
		case code == 0:
			code = now
		}
	}
	return code
}

// gzipper is a gzip that runs.
type gzipper struct {
	p                                       *program.Process
	level                                   int
	suffix                                  string
	unpack, stdout, keep, force, test, list bool
}

// tell writes a message and returns the code. 1 is a failure and 2 a warning, as gzip ends.
func (z *gzipper) tell(code int, format string, args ...any) int {
	z.p.Charge(0)
	z.p.Errorf(format, args...)
	return code
}

func (z *gzipper) fail(format string, args ...any) int { return z.tell(1, format, args...) }

// one packs or unpacks one file.
func (z *gzipper) one(name string) int {
	p := z.p
	h, to := p.Stdin, name+z.suffix
	toFile := name != "-" && !z.stdout && !z.test && !z.list
	var info vfs.Info
	if name != "-" {
		var err error
		if z.unpack && toFile {
			code, done := z.unpacked(&name, &to)
			if done {
				return code
			}
		}
		if info, err = p.FS.Stat(p.At(), name, true); err != nil {
			return z.fail("%s: %s", name, program.Message(err))
		}
		if info.IsDir() {
			return z.tell(2, "%s is a directory -- ignored", name)
		}
		if !z.unpack && strings.HasSuffix(name, z.suffix) && !z.stdout && !z.force {
			return z.tell(0, "%s already has %s suffix -- unchanged", name, z.suffix)
		}
		if h, err = p.Open(name, vfs.Read); err != nil {
			return z.fail("%s: %s", name, program.Message(err))
		}
		defer func() { _ = p.Close(h) }()
	}
	w := p.Out()
	var out *vfs.Handle
	if toFile {
		if _, err := p.FS.Stat(p.At(), to, false); err == nil && !z.force {
			return z.tell(2, "%s already exists;\tnot overwritten", to)
		}
		var err error
		if out, w, err = gnu.Create(p, to); err != nil {
			return z.fail("%s: %s", to, program.Message(err))
		}
	}
	var code int
	var whole bool
	if z.unpack {
		code, whole = z.read(name, p.Reader(h), w, info, func() {
			if out != nil {
				_ = p.Close(out)
				_ = p.FS.Unlink(p.At(), to)
			}
		})
	} else {
		code, whole = z.write(name, p.Reader(h), w, info)
	}
	if !whole {
		return code
	}
	w.Flush()
	if out == nil {
		return code
	}
	if out.Node() != nil {
		_ = out.Node().Chmod(info.Mode)
		_ = out.Node().Utimes(info.Accessed, info.Modified)
	}
	_ = p.Close(out)
	if !z.keep {
		if err := p.FS.Unlink(p.At(), name); err != nil {
			return z.fail("%s: %s", name, program.Message(err))
		}
	}
	return code
}

// unpacked finds the name that a packed file has unpacked. A name without its suffix gets it when only the packed file is there.
// It returns true with a code when the file is left as it is.
func (z *gzipper) unpacked(name, to *string) (code int, done bool) {
	p := z.p
	if !strings.HasSuffix(*name, z.suffix) && !strings.HasSuffix(*name, ".tgz") {
		if _, err := p.FS.Stat(p.At(), *name, true); err == nil {
			return z.tell(2, "%s: unknown suffix -- ignored", *name), true
		} else if _, packed := p.FS.Stat(p.At(), *name+z.suffix, true); packed != nil {
			return z.fail("%s%s: %s", *name, z.suffix, program.Message(err)), true
		}
		*name += z.suffix
	}
	if tgz, ok := strings.CutSuffix(*name, ".tgz"); ok && !strings.HasSuffix(*name, z.suffix) {
		*to = tgz + ".tar"
	} else {
		*to = strings.TrimSuffix(*name, z.suffix)
	}
	return 0, false
}

// read unpacks, tests or lists. It calls drop for what is not an archive, and returns false when it failed.
func (z *gzipper) read(name string, in io.Reader, w *program.Output, info vfs.Info, drop func()) (code int, whole bool) {
	p, shown := z.p, name
	if shown == "-" {
		shown = "stdin"
	}
	head := make([]byte, 2)
	got, _ := io.ReadFull(in, head)
	r, err := gzip.NewReader(io.MultiReader(bytes.NewReader(head[:got]), in))
	if err != nil {
		drop()
		p.Stderrf("\n")
		if (got < 2 || string(head) == "\x1f\x8b") && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
			return z.fail("%s: unexpected end of file", shown), false
		}
		return z.fail("%s: not in gzip format", shown), false
	}
	var target io.Writer = w
	if z.test || z.list {
		target = &tested{p: p}
	}
	n, err := io.Copy(target, &charger{p: p, r: r, n: gasPerPacked})
	switch {
	case err == nil:
	case errors.Is(err, vfs.EFBIG) && (z.test || z.list):
		return z.fail("%s: %s", shown, program.Message(err)), false
	case errors.Is(err, gzip.ErrHeader):
		w.Flush()
		p.Stderrf("\n")
		code = z.tell(2, "%s: decompression OK, trailing garbage ignored", shown)
	default:
		w.Flush()
		p.Stderrf("\n")
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return z.fail("%s: unexpected end of file", shown), false
		}
		return z.fail("%s: invalid compressed data--format violated", shown), false
	}
	if z.list {
		ratio := 0.0
		if n > 0 {
			ratio = 100 * (1 - float64(info.Size-18-int64(len(r.Name)))/float64(n))
		}
		p.Out().Printf("%19d %19d %5.1f%% %s\n", info.Size, n, ratio, strings.TrimSuffix(name, z.suffix))
	}
	return code, true
}

// write packs. It returns false when it failed.
func (z *gzipper) write(name string, in io.Reader, w io.Writer, info vfs.Info) (code int, whole bool) {
	packed, _ := gzip.NewWriterLevel(w, z.level)
	if name != "-" {
		packed.Name = gnu.LastName(name)
		packed.ModTime = info.Modified
	} else {
		name = "stdin"
	}
	packed.OS = 3
	if _, err := io.Copy(packed, &charger{p: z.p, r: in, n: 2 * gasPerPacked}); err != nil {
		return z.fail("%s: %s", name, program.Message(err)), false
	}
	_ = packed.Close()
	return 0, true
}
