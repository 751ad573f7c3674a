// Package files has the commands that fill, measure and describe files: dd, install, truncate, shred, du, file and more.
package files

import (
	"errors"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"dd": dd, "df": df, "dircolors": dircolors, "du": du, "fallocate": fallocate,
		"file": fileCommand, "install": install, "pathchk": pathchk, "shred": shred, "truncate": truncate,
	})
}

// option takes one option. It returns whether the command ends with that, and the code.
func (d *ddOptions) option(a string) (code int, done bool) {
	k, v, ok := strings.Cut(a, "=")
	if !ok {
		if a == "--" {
			return 0, false
		}
		d.p.Errorf("unrecognized operand %s", gnu.Quote(a))
		d.p.Stderrf("Try 'dd --help' for more information.\n")
		return 1, true
	}
	switch k {
	case "if":
		d.from = v
	case "of":
		d.to = v
	case "bs":
		d.ibs = d.number(v)
		d.obs = d.ibs
	case "ibs":
		d.ibs = d.number(v)
	case "obs":
		d.obs = d.number(v)
	case "count":
		if s, ok := strings.CutSuffix(v, "B"); ok && strings.Trim(s, "0123456789") == "" {
			v, d.bytesCount = s, true
		}
		d.blockCount = d.number(v)
	case "skip", "iseek":
		d.skip = d.number(v)
	case "seek", "oseek":
		d.seek = d.number(v)
	case "status":
		d.quiet, d.noxfer = v == "none", v == "noxfer"
	case "conv":
		for _, c := range strings.Split(v, ",") {
			switch c {
			case "notrunc":
				d.notrunc = true
			case "ucase":
				d.upper = true
			case "lcase":
				d.lower = true
			case "swab":
				d.swab = true
			case "sync":
				d.sync = true
			case "excl":
				d.excl = true
			case "nocreat":
				d.nocreat = true
			case "noerror", "fsync", "fdatasync", "sparse":
			default:
				d.p.Lack(program.LackOption, "conv="+c)
				return d.fail("invalid conversion: %s", gnu.Quote(c)), true
			}
		}
	case "iflag", "oflag":
		for _, f := range strings.Split(v, ",") {
			switch f {
			case "append":
				d.appends = true
			case "count_bytes":
				d.bytesCount = true
			case "skip_bytes":
				d.bytesSkip = true
			case "seek_bytes":
				d.bytesSeek = true
			}
		}
	default:
		d.p.Errorf("unrecognized operand %s", gnu.Quote(a))
		d.p.Stderrf("Try 'dd --help' for more information.\n")
		return 1, true
	}
	return 0, false
}

// humanSize writes a size with a unit, rounded as dd does.
func humanSize(n, factor int64, sep, unit string) string {
	v, i := float64(n), 0
	for v >= float64(factor) && i < len(gnu.UnitLetters) {
		v /= float64(factor)
		i++
	}
	letter := ""
	if i > 0 {
		if letter = gnu.UnitLetters[i-1 : i]; factor == 1000 && i == 1 {
			letter = "k"
		}
	} else {
		unit = "B"
	}
	if i == 0 || v >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64) + sep + letter + unit
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + sep + letter + unit
}

// truncate sets the sizes of files.
func truncate(p *program.Process) int {
	opts, operands := p.Options(1, "cor:s:", "no-create c", "io-blocks o", "reference= r", "size= s")
	spec, create, reference := "", true, ""
	for _, o := range opts {
		switch o.Name {
		case "c":
			create = false
		case "s":
			spec = strings.TrimSpace(o.Value)
		case "r":
			reference = o.Value
		}
	}
	try := func() int {
		p.Stderrf("Try 'truncate --help' for more information.\n")
		return 1
	}
	if spec == "" && reference == "" {
		p.Errorf("you must specify either ‘--size’ or ‘--reference’")
		return try()
	}
	if len(operands) == 0 {
		p.Errorf("missing file operand")
		return try()
	}
	mode := byte(0)
	n := int64(0)
	if reference != "" {
		i, err := p.FS.Stat(p.At(), reference, true)
		if err != nil {
			p.Errorf("cannot stat '%s': %s", reference, program.Message(err))
			return 1
		}
		n = i.Size
	}
	if spec != "" {
		digits := spec
		if strings.IndexByte("+-<>/%", spec[0]) >= 0 {
			mode, digits = spec[0], spec[1:]
		}
		v, err := gnu.ParseSize(digits)
		if err != nil || mode == '/' && v == 0 || mode == '%' && v == 0 {
			p.Errorf("Invalid number: %s", gnu.Quote(spec))
			return 1
		}
		if reference != "" && mode != 0 {
			if mode == '-' {
				v = -v
			}
			n, mode = max(n+v, 0), 0
		} else {
			n = v
		}
	}
	code := 0
	for _, name := range operands {
		flags := vfs.Write
		if create {
			flags |= vfs.Create
		}
		h, err := p.Open(name, flags)
		if err != nil {
			if !create && errors.Is(err, vfs.ENOENT) {
				continue
			}
			p.Errorf("cannot open '%s' for writing: %s", name, program.Message(err))
			code = 1
			continue
		}
		old := h.Info().Size
		to := n
		switch mode {
		case '+':
			to = old + n
		case '-':
			to = max(old-n, 0)
		case '<':
			to = min(old, n)
		case '>':
			to = max(old, n)
		case '/':
			to = old / n * n
		case '%':
			to = (old + n - 1) / n * n
		}
		if err := h.Truncate(to); err != nil {
			p.Charge(0)
			p.Errorf("failed to truncate '%s' at %d bytes: %s", name, to, program.Message(err))
			code = 1
		}
		_ = p.Close(h)
	}
	return code
}

// installOptions are what the options of install say.
type installOptions struct {
	dirs, parents bool
	mode          string
	keep, verbose bool
	target        string
	noTarget      bool
}

// install copies files and sets their modes.
func install(p *program.Process) int {
	c := &installOptions{}
	opts, operands := p.Options(1, "bcCdDg:m:o:pst:TvS:", "directory d", "mode= m", "preserve-timestamps p", "target-directory= t",
		"no-target-directory T", "verbose v",
		"group= g", "owner= o", "compare C", "strip s")
	c.mode = "755"
	for _, o := range opts {
		if code, done := c.option(o); done {
			return code
		}
	}
	bits, ok := program.Mode(c.mode, 0, 0, false)
	if !ok {
		p.Errorf("invalid mode %s", gnu.Quote(c.mode))
		return 1
	}
	out := p.Out()
	at := p.At()
	makeDirs := func(path string, perm uint32) error {
		for i := range path + "/" {
			if (path + "/")[i] != '/' || i == 0 {
				continue
			}
			err := p.FS.Mkdir(at, path[:i], 0o755)
			if err == nil && c.verbose {
				out.Printf("install: creating directory '%s'\n", path[:i])
			}
			if err != nil && !errors.Is(err, vfs.EEXIST) {
				return err
			}
		}
		return p.FS.Chmod(at, path, perm, true)
	}
	code := 0
	if c.dirs {
		for _, d := range operands {
			if err := makeDirs(strings.TrimRight(d, "/"), bits); err != nil {
				p.Errorf("cannot create directory '%s': %s", d, program.Message(err))
				code = 1
			}
		}
		return code
	}
	isDir := false
	if c.target == "" {
		if len(operands) < 2 {
			if len(operands) == 0 {
				p.Errorf("missing file operand")
			} else {
				p.Errorf("missing destination file operand after '%s'", operands[0])
			}
			p.Stderrf("Try 'install --help' for more information.\n")
			return 1
		}
		c.target = operands[len(operands)-1]
		operands = operands[:len(operands)-1]
		i, err := p.FS.Stat(at, c.target, true)
		isDir = err == nil && i.IsDir() && !c.noTarget
		if !isDir && len(operands) > 1 {
			p.Errorf("target '%s' is not a directory", c.target)
			return 1
		}
		if c.parents && !isDir {
			if i := strings.LastIndexByte(c.target, '/'); i > 0 {
				if err := makeDirs(c.target[:i], 0o755); err != nil {
					p.Errorf("cannot create directory '%s': %s", c.target[:i], program.Message(err))
					return 1
				}
			}
		}
	} else {
		isDir = true
		if c.parents {
			if err := makeDirs(c.target, 0o755); err != nil {
				p.Errorf("cannot create directory '%s': %s", c.target, program.Message(err))
				return 1
			}
		}
	}
	for _, name := range operands {
		to := c.target
		if isDir {
			to = gnu.Join(c.target, gnu.LastName(name))
		}
		in, done, err := gnu.OpenInput(p, name)
		if err != nil {
			p.Errorf("cannot stat '%s': %s", name, program.Message(err))
			code = 1
			continue
		}
		info, _ := p.FS.Stat(at, name, true)
		if info.IsDir() {
			p.Errorf("omitting directory '%s'", name)
			code = 1
			done()
			continue
		}
		_ = p.FS.Unlink(at, to)
		h, w, err := gnu.Create(p, to)
		if err != nil {
			p.Errorf("cannot create regular file '%s': %s", to, program.Message(err))
			code = 1
			done()
			continue
		}
		for b := in.Chunk(); b != nil; b = in.Chunk() {
			_, _ = w.Write(b)
		}
		w.Flush()
		_ = h.Node().Chmod(bits)
		if c.keep {
			_ = h.Node().Utimes(info.Accessed, info.Modified)
		}
		if c.verbose {
			out.Printf("'%s' -> '%s'\n", name, to)
		}
		_ = p.Close(h)
		done()
	}
	return code
}

// option takes one option. It returns whether the command ends with that, and the code.
func (c *installOptions) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "d":
		c.dirs = true
	case "D":
		c.parents = true
	case "m":
		c.mode = o.Value
	case "p":
		c.keep = true
	case "v":
		c.verbose = true
	case "t":
		c.target = o.Value
	case "T":
		c.noTarget = true
	}
	return 0, false
}

// fail writes an error and returns the code of it.
func (d *ddOptions) fail(format string, args ...any) int {
	d.p.Errorf(format, args...)
	return 1
}

// number reads a product of sizes, such as 2x512, or ends the program.
func (d *ddOptions) number(s string) int64 {
	total := int64(1)
	for _, part := range strings.Split(s, "x") {
		n, err := gnu.ParseSize(part)
		if err != nil {
			d.p.Errorf("invalid number: %s", gnu.Quote(s))
			d.p.Exit(1)
		}
		total *= n
	}
	return total
}
