package tools

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// readerAt reads a file at offsets, as archives need it.
type readerAt struct{ h *vfs.Handle }

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.h.ReadAt(p, off) }

// unzip unpacks and lists archives.
func unzip(p *program.Process) int {
	var names, exclude []string
	dir, file := "", ""
	list, test, stdout, quiet, overwrite, never, flat, excluding, verbose := false, false, false, false, false, false, false, false, false
	args := p.Args[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "-d" && len(args) > 0:
			dir = args[0]
			args = args[1:]
			excluding = false
		case a == "-x":
			excluding = true
		case len(a) > 1 && a[0] == '-' && !excluding:
			for _, c := range a[1:] {
				switch c {
				case 'l':
					list = true
				case 'v':
					list, verbose = true, true
				case 't':
					test = true
				case 'p', 'c':
					stdout = true
				case 'q':
					quiet = true
				case 'o':
					overwrite = true
				case 'n':
					never = true
				case 'j':
					flat = true
				case 'a', 'u', 'f', 'C', 'L', 'X', 'K', 'b', 'D', 'U', 'M':
				case 'Z':
					p.Lack(program.LackOption, "-Z")
					p.Errorf("the option -Z is not supported here: use -l")
					return 10
				default:
					p.Lack(program.LackOption, "-"+string(c))
					p.Errorf("unknown option -%c", c)
					return 10
				}
			}
		case excluding:
			exclude = append(exclude, a)
		case file == "":
			file = a
		default:
			names = append(names, a)
		}
	}
	if file == "" {
		p.Stderrf("Usage: unzip [-opts] file[.zip] [list] [-x xlist] [-d exdir]\n")
		return 10
	}
	h, err := p.Open(file, vfs.Read)
	if errors.Is(err, vfs.ENOENT) {
		if h, err = p.Open(file+".zip", vfs.Read); err == nil {
			file += ".zip"
		}
	}
	out := p.Out()
	if err != nil {
		p.Stderrf("unzip:  cannot find or open %s, %s.zip or %s.ZIP.\n", file, file, file)
		return 9
	}
	p.Charge(int(h.Info().Size / 8))
	z, err := zip.NewReader(readerAt{h}, h.Info().Size)
	if err != nil {
		p.Charge(0)
		if !quiet {
			out.Printf("Archive:  %s\n", file)
		}
		p.Stderrf("  End-of-central-directory signature not found.  Either this file is not\n  a zipfile, or it constitutes one disk of a " +
			"multi-part archive.\n")
		p.Stderrf("unzip:  cannot find zipfile directory in one of %s or\n        %s.zip, and cannot find %s.ZIP, period.\n", file, file, file)
		return 9
	}
	p.Hold(len(z.File) * 256)
	wanted := func(name string) bool {
		for _, x := range exclude {
			if gnu.Glob(x, name, false) {
				return false
			}
		}
		for _, x := range names {
			if gnu.Glob(x, name, false) {
				return true
			}
		}
		return len(names) == 0
	}
	if !quiet && !stdout {
		out.Printf("Archive:  %s\n", file)
	}
	if list {
		return listZip(p, z, wanted, quiet, verbose)
	}
	matched := 0
	code := 0
	for _, f := range z.File {
		p.Charge(500)
		if !wanted(f.Name) {
			continue
		}
		matched++
		isDir := strings.HasSuffix(f.Name, "/")
		if stdout || test {
			if isDir {
				continue
			}
			w := io.Writer(out)
			if test {
				w = &tested{p: p}
			}
			err := copyZip(p, f, w)
			if errors.Is(err, vfs.EFBIG) { // as where it is unpacked
				p.Errorf("%s: %s", f.Name, program.Message(err))
				return 1
			}
			if test && !quiet {
				result := "OK"
				if err != nil {
					result = "bad CRC or data"
				}
				out.Printf("    testing: %-22s   %s\n", f.Name, result)
			}
			if err != nil {
				p.Charge(0)
				code = 2
			}
			continue
		}
		if c := unzipOne(p, f, dir, isDir, flat, overwrite, never, quiet); c != 0 {
			code = c
		}
	}
	if test && !quiet && code == 0 {
		out.Printf("No errors detected in compressed data of %s.\n", file)
	}
	if matched == 0 && len(names) > 0 {
		for _, n := range names {
			p.Stderrf("caution: filename not matched:  %s\n", n)
		}
		return 11
	}
	return code
}

func listZip(p *program.Process, z *zip.Reader, wanted func(string) bool, quiet, verbose bool) int {
	out := p.Out()
	total, files, packed := uint64(0), 0, uint64(0)
	if verbose {
		out.WriteString(" Length   Method    Size  Cmpr    Date    Time   CRC-32   Name\n--------  ------  ------- ---- ---------- ----- " +
			"--------  ----\n")
	} else if !quiet {
		out.WriteString("  Length      Date    Time    Name\n---------  ---------- -----   ----\n")
	}
	ratio := func(full, packed uint64) uint64 {
		if full == 0 || packed > full {
			return 0
		}
		return (full - packed) * 100 / full
	}
	for _, f := range z.File {
		if !wanted(f.Name) {
			continue
		}
		when := f.Modified.Format("2006-01-02 15:04")
		if verbose {
			method := "Defl:N"
			if f.Method == zip.Store {
				method = "Stored"
			}
			out.Printf("%8d  %s %8d %3d%% %s %08x  %s\n", f.UncompressedSize64, method, f.CompressedSize64, ratio(f.UncompressedSize64,
				f.CompressedSize64), when, f.CRC32, f.Name)
		} else {
			out.Printf("%9d  %s   %s\n", f.UncompressedSize64, when, f.Name)
		}
		total += f.UncompressedSize64
		packed += f.CompressedSize64
		files++
	}
	unit := "files"
	if files == 1 {
		unit = "file"
	}
	if verbose {
		out.Printf("--------          -------  ---                            -------\n%8d         %8d %3d%%                            %d %s\n",
			total, packed, ratio(total, packed), files, unit)
	} else if !quiet {
		out.Printf("---------                     -------\n%9d                     %d %s\n", total, files, unit)
	}
	return 0
}

// tested takes what is unpacked to be tested, and no more of one file than could be unpacked.
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

func copyZip(p *program.Process, f *zip.File, w io.Writer) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, &charger{p: p, r: r, n: gasPerPacked})
	return err
}

func unzipOne(p *program.Process, f *zip.File, dir string, isDir, flat, overwrite, never, quiet bool) int {
	name := path.Clean(strings.TrimLeft(f.Name, "/"))
	if flat {
		if isDir {
			return 0
		}
		name = path.Base(name)
	}
	if !gnu.SafeName(f.Name) && !flat || name == ".." || strings.HasPrefix(name, "../") {
		p.Stderrf("warning:  skipped \"../\" path component(s) in %s\n", f.Name)
		return 1
	}
	at := p.At()
	s := &packer{p: p, at: at}
	if dir != "" {
		for i := range dir + "/" {
			if (dir + "/")[i] == '/' && i > 0 {
				_ = p.FS.Mkdir(at, dir[:i], 0o777&^p.Umask)
			}
		}
		node, err := p.FS.Lookup(at, dir, true)
		if err != nil || node.Kind() != vfs.Directory {
			p.Stderrf("checkdir:  cannot create extraction directory: %s\n", dir)
			return 2
		}
		s.at = vfs.At{Dir: node}
	}
	shown := name
	if dir != "" {
		shown = gnu.Join(dir, name)
	}
	fail := func(err error) int {
		p.Charge(0)
		p.Stderrf("error:  cannot create %s\n        %s\n", shown, program.Message(err))
		return 50
	}
	if err := s.parents(name); err != nil {
		return fail(err)
	}
	out := p.Out()
	if isDir {
		if err := p.FS.Mkdir(s.at, name, 0o777&^p.Umask); err == nil && !quiet {
			out.Printf("   creating: %s/\n", shown)
		} else if err != nil && !errors.Is(err, vfs.EEXIST) {
			return fail(err)
		}
		return 0
	}
	if f.Mode()&fs.ModeSymlink != 0 {
		var b bytes.Buffer
		if err := copyZip(p, f, &limited{&b, vfs.MaxPath}); err != nil {
			return fail(vfs.EINVAL)
		}
		_ = p.FS.Unlink(s.at, name)
		if err := p.FS.Symlink(b.String(), s.at, name); err != nil {
			return fail(err)
		}
		if !quiet {
			out.Printf("    linking: %s -> %s \n", shown, b.String())
		}
		return 0
	}
	if _, err := p.FS.Stat(s.at, name, false); err == nil {
		if never {
			return 0
		}
		if !overwrite {
			p.Stderrf("replace %s? [y]es, [n]o, [A]ll, [N]one, [r]ename:  NULL\n(EOF or read error, treating as \"[N]one\" ...)\n", shown)
			return 1
		}
		if err := p.FS.Unlink(s.at, name); err != nil {
			return fail(err)
		}
	}
	if !quiet {
		verb := "  inflating"
		if f.Method == zip.Store {
			verb = " extracting"
		}
		out.Printf("%s: %-22s  \n", verb, shown)
	}
	h, err := p.FS.Open(s.at, name, vfs.Write|vfs.Create|vfs.Exclusive, 0o600)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = h.Close() }()
	w := p.Writer(h)
	if err := copyZip(p, f, w); err != nil {
		p.Charge(0)
		p.Stderrf("%s:  bad CRC or data: %s\n", shown, err.Error())
		return 2
	}
	w.Flush()
	mode := uint32(f.Mode().Perm())
	if mode == 0 {
		mode = 0o666
	}
	_ = h.Node().Chmod(mode &^ p.Umask)
	_ = h.Node().Utimes(f.Modified, f.Modified)
	return 0
}
