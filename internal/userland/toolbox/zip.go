package toolbox

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// readerAt reads a file at offsets, as archives need it.
type readerAt struct{ h *vfs.Handle }

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.h.ReadAt(p, off) }

// unzipper is an unzip that runs.
type unzipper struct {
	p                                                          *program.Process
	file, dir                                                  string
	names, exclude                                             []string
	list, test, stdout, quiet, overwrite, never, flat, verbose bool
}

// unzip unpacks and lists archives.
func unzip(p *program.Process) int {
	u := &unzipper{p: p}
	if !u.parse(p.Args[1:]) {
		return 10
	}
	z, code := u.open()
	if z == nil {
		return code
	}
	out := p.Out()
	p.Hold(len(z.File) * 256)
	if !u.quiet && !u.stdout {
		out.Printf("Archive:  %s\n", u.file)
	}
	if u.list {
		return listZip(p, z, u.wanted, u.quiet, u.verbose)
	}
	matched := 0
	for _, f := range z.File {
		p.Charge(500)
		if !u.wanted(f.Name) {
			continue
		}
		matched++
		c, goOn := u.one(f)
		if !goOn {
			return c
		}
		if c != 0 {
			code = c
		}
	}
	if u.test && !u.quiet && code == 0 {
		out.Printf("No errors detected in compressed data of %s.\n", u.file)
	}
	if matched == 0 && len(u.names) > 0 {
		for _, n := range u.names {
			p.Stderrf("caution: filename not matched:  %s\n", n)
		}
		return 11
	}
	return code
}

// parse reads the arguments. It returns false after a message when they cannot be followed.
func (u *unzipper) parse(args []string) bool {
	excluding := false
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "-d" && len(args) > 0:
			u.dir = args[0]
			args = args[1:]
			excluding = false
		case a == "-x":
			excluding = true
		case len(a) > 1 && a[0] == '-' && !excluding:
			for _, c := range a[1:] {
				if !u.letter(c) {
					return false
				}
			}
		case excluding:
			u.exclude = append(u.exclude, a)
		case u.file == "":
			u.file = a
		default:
			u.names = append(u.names, a)
		}
	}
	if u.file == "" {
		u.p.Stderrf("Usage: unzip [-opts] file[.zip] [list] [-x xlist] [-d exdir]\n")
		return false
	}
	return true
}

// letter follows one option.
func (u *unzipper) letter(c rune) bool {
	switch c {
	case 'l':
		u.list = true
	case 'v':
		u.list, u.verbose = true, true
	case 't':
		u.test = true
	case 'p', 'c':
		u.stdout = true
	case 'q':
		u.quiet = true
	case 'o':
		u.overwrite = true
	case 'n':
		u.never = true
	case 'j':
		u.flat = true
	case 'a', 'u', 'f', 'C', 'L', 'X', 'K', 'b', 'D', 'U', 'M':
	case 'Z':
		u.p.Lack(program.LackOption, "-Z")
		u.p.Errorf("the option -Z is not supported here: use -l")
		return false
	default:
		u.p.Lack(program.LackOption, "-"+string(c))
		u.p.Errorf("unknown option -%c", c)
		return false
	}
	return true
}

// open reads the archive's list of members. It returns nil and the code to end with when there is none.
func (u *unzipper) open() (*zip.Reader, int) {
	p := u.p
	h, err := p.Open(u.file, vfs.Read)
	if errors.Is(err, vfs.ENOENT) {
		if h, err = p.Open(u.file+".zip", vfs.Read); err == nil {
			u.file += ".zip"
		}
	}
	if err != nil {
		p.Stderrf("unzip:  cannot find or open %s, %s.zip or %s.ZIP.\n", u.file, u.file, u.file)
		return nil, 9
	}
	p.Charge(int(h.Info().Size / 8))
	z, err := zip.NewReader(readerAt{h}, h.Info().Size)
	if err != nil {
		p.Charge(0)
		if !u.quiet {
			p.Out().Printf("Archive:  %s\n", u.file)
		}
		p.Stderrf("  End-of-central-directory signature not found.  Either this file is not\n  a zipfile, or it constitutes one disk of a " +
			"multi-part archive.\n")
		p.Stderrf("unzip:  cannot find zipfile directory in one of %s or\n        %s.zip, and cannot find %s.ZIP, period.\n", u.file, u.file,
			u.file)
		return nil, 9
	}
	return z, 0
}

// wanted reports whether the operands name a member.
func (u *unzipper) wanted(name string) bool {
	match := func(x string) bool { return gnu.Glob(x, name, false) }
	if slices.ContainsFunc(u.exclude, match) {
		return false
	}
	return len(u.names) == 0 || slices.ContainsFunc(u.names, match)
}

// one tests, prints or unpacks a member. It returns false when nothing more may be unpacked.
func (u *unzipper) one(f *zip.File) (code int, goOn bool) {
	p := u.p
	isDir := strings.HasSuffix(f.Name, "/")
	if !u.stdout && !u.test {
		return unzipOne(p, f, u.dir, isDir, u.flat, u.overwrite, u.never, u.quiet), true
	}
	if isDir {
		return 0, true
	}
	w := io.Writer(p.Out())
	if u.test {
		w = &tested{p: p}
	}
	err := copyZip(p, f, w)
	if errors.Is(err, vfs.EFBIG) { // as where it is unpacked
		p.Errorf("%s: %s", f.Name, program.Message(err))
		return 1, false
	}
	if u.test && !u.quiet {
		result := "OK"
		if err != nil {
			result = "bad CRC or data"
		}
		p.Out().Printf("    testing: %-22s   %s\n", f.Name, result)
	}
	if err != nil {
		p.Charge(0)
		return 2, true
	}
	return 0, true
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
