package tools

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
	unpack, stdout, keep, force, test, list := false, false, false, false, false, false
	level := gzip.DefaultCompression
	suffix := ".gz"
	switch called {
	case "gunzip":
		unpack = true
	case "zcat":
		unpack, stdout, force = true, true, false
	}
	for _, o := range opts {
		switch o.Name {
		case "c":
			stdout = true
		case "d":
			unpack = true
		case "f":
			force = true
		case "k":
			keep = true
		case "t":
			test, unpack = true, true
		case "l":
			list, unpack = true, true
		case "S":
			suffix = o.Value
		case "r":
			p.Lack(program.LackOption, "-r")
			p.Errorf("the option -r is not supported here: use find -exec")
			return 1
		default:
			if o.Name[0] >= '1' && o.Name[0] <= '9' {
				level = int(o.Name[0] - '0')
			}
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	if list {
		p.Out().WriteString("         compressed        uncompressed  ratio uncompressed_name\n")
	}
	for _, name := range operands {
		switch now := packOne(p, name, suffix, level, unpack, stdout || name == "-", keep || stdout, force, test, list); {
		case now == 1:
			code = 1
		case code == 0:
			code = now
		}
	}
	return code
}

// packOne packs or unpacks one file. It returns 1 for a failure and 2 for a warning, as gzip ends.
func packOne(p *program.Process, name, suffix string, level int, unpack, stdout, keep, force, test, list bool) int {
	tell := func(code int, format string, args ...any) int {
		p.Charge(0)
		p.Errorf(format, args...)
		return code
	}
	fail := func(format string, args ...any) int { return tell(1, format, args...) }
	h := p.Stdin
	to := name + suffix
	var info vfs.Info
	if name != "-" {
		var err error
		if unpack && !stdout && !test && !list {
			switch {
			case strings.HasSuffix(name, suffix):
				to = strings.TrimSuffix(name, suffix)
			case strings.HasSuffix(name, ".tgz"):
				to = strings.TrimSuffix(name, ".tgz") + ".tar"
			default:
				if _, err := p.FS.Stat(p.At(), name, true); err != nil {
					if _, err := p.FS.Stat(p.At(), name+suffix, true); err == nil {
						return packOne(p, name+suffix, suffix, level, unpack, stdout, keep, force, test, list)
					}
					return fail("%s%s: %s", name, suffix, program.Message(err))
				}
				return tell(2, "%s: unknown suffix -- ignored", name)
			}
		}
		if info, err = p.FS.Stat(p.At(), name, true); err != nil {
			return fail("%s: %s", name, program.Message(err))
		}
		if info.IsDir() {
			return tell(2, "%s is a directory -- ignored", name)
		}
		if !unpack && strings.HasSuffix(name, suffix) && !stdout && !force {
			return tell(0, "%s already has %s suffix -- unchanged", name, suffix)
		}
		if h, err = p.Open(name, vfs.Read); err != nil {
			return fail("%s: %s", name, program.Message(err))
		}
		defer func() { _ = p.Close(h) }()
	}
	in := p.Reader(h)
	w := p.Out()
	var out *vfs.Handle
	if !stdout && !test && !list {
		if _, err := p.FS.Stat(p.At(), to, false); err == nil && !force {
			return tell(2, "%s already exists;\tnot overwritten", to)
		}
		var err error
		if out, w, err = gnu.Create(p, to); err != nil {
			return fail("%s: %s", to, program.Message(err))
		}
	}
	shown := name
	if shown == "-" {
		shown = "stdin"
	}
	code := 0
	if unpack {
		head := make([]byte, 2)
		got, _ := io.ReadFull(in, head)
		z, err := gzip.NewReader(io.MultiReader(bytes.NewReader(head[:got]), in))
		if err != nil {
			if out != nil {
				_ = p.Close(out)
				_ = p.FS.Unlink(p.At(), to)
			}
			p.Stderrf("\n")
			if (got < 2 || string(head) == "\x1f\x8b") && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
				return fail("%s: unexpected end of file", shown)
			}
			return fail("%s: not in gzip format", shown)
		}
		var n int64
		var target io.Writer = w
		if test || list {
			target = &tested{p: p}
		}
		n, err = io.Copy(target, &charger{p: p, r: z, n: gasPerPacked})
		if errors.Is(err, vfs.EFBIG) && (test || list) {
			return fail("%s: %s", shown, program.Message(err))
		}
		if errors.Is(err, gzip.ErrHeader) {
			w.Flush()
			p.Stderrf("\n")
			code, err = tell(2, "%s: decompression OK, trailing garbage ignored", shown), nil
		}
		if err != nil {
			w.Flush()
			p.Stderrf("\n")
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return fail("%s: unexpected end of file", shown)
			}
			return fail("%s: invalid compressed data--format violated", shown)
		}
		if list {
			ratio := 0.0
			if n > 0 {
				ratio = 100 * (1 - float64(info.Size-18-int64(len(z.Name)))/float64(n))
			}
			p.Out().Printf("%19d %19d %5.1f%% %s\n", info.Size, n, ratio, strings.TrimSuffix(name, suffix))
		}
	} else {
		z, _ := gzip.NewWriterLevel(w, level)
		if name != "-" {
			z.Name = gnu.LastName(name)
			z.ModTime = info.Modified
		}
		z.OS = 3
		if _, err := io.Copy(z, &charger{p: p, r: in, n: 2 * gasPerPacked}); err != nil {
			return fail("%s: %s", shown, program.Message(err))
		}
		_ = z.Close()
	}
	w.Flush()
	if out != nil {
		if out.Node() != nil {
			_ = out.Node().Chmod(info.Mode)
			_ = out.Node().Utimes(info.Accessed, info.Modified)
		}
		_ = p.Close(out)
		if !keep {
			if err := p.FS.Unlink(p.At(), name); err != nil {
				return fail("%s: %s", name, program.Message(err))
			}
		}
	}
	return code
}
