package toolbox

import (
	"archive/tar"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
	"agentbox/internal/userland/zstandard"
)

// gasPerPacked is what a byte costs that is packed or unpacked.
const gasPerPacked = 20

// packer is a tar that runs.
type packer struct {
	p        *program.Process
	out      *program.Output
	messages *program.Output // where names go
	at       vfs.At
	verbose  int
	strip    int
	exclude  []string
	toStdout bool
	keep     bool
	noTime   bool
	code     int
	seen     map[*vfs.Node]string
	follow   bool
	matched  map[string]bool
	wildcard bool
	told     bool
	mode     string
	dirs     []dirTime
	newest   map[string]time.Time // of the members that an archive has, for -u
}

// dirTime is a folder whose time and mode are set when everything is in it.
type dirTime struct {
	name string
	h    *tar.Header
}

// tarOptions are the options of tar that no member needs.
type tarOptions struct {
	mode    string // c, x, t, r, u or delete
	file    string
	packing byte // z for gzip, Z for zstd, j for bzip2, J for xz, 0 for none
	auto    bool // the name of the archive tells the packing
	names   []string
}

func tarCommand(p *program.Process) int {
	s := &packer{p: p, at: p.At(), seen: map[*vfs.Node]string{}, matched: map[string]bool{}}
	p.Args = dashed(p.Args)
	args, folders := tarFolders(p.Args)
	p.Args = args
	opts, operands := p.Options(2, "cxtruf:vzjJZOkpPhmT:X:awC:b:Ss", "create c", "extract x", "get x", "list t", "append r", "update u",
		"file= f", "verbose v", "gzip z", "gunzip z",
		"bzip2 j", "xz J", "zstd", "to-stdout O", "keep-old-files k", "preserve-permissions p", "same-permissions p", "absolute-names P",
		"dereference h", "touch m", "files-from= T",
		"exclude-from= X", "auto-compress a", "strip-components=", "strip=", "exclude=", "transform=", "owner=", "group=", "numeric-owner",
		"sort=", "mtime=", "no-same-owner",
		"no-same-permissions", "wildcards", "no-recursion", "overwrite", "format=", "null", "exclude-vcs", "warning=", "same-owner", "mode=",
		"totals", "one-file-system", "anchored",
		"no-anchored", "no-wildcards", "skip-old-files", "use-compress-program= I", "delete")
	t := &tarOptions{file: "-"}
	for _, o := range opts {
		if !s.option(t, o) {
			return 2
		}
	}
	operands = append(operands, t.names...)
	if t.mode == "" {
		p.Errorf("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
		p.Stderrf("Try 'tar --help' or 'tar --usage' for more information.\n")
		return 2
	}
	if (t.packing == 'j' || t.packing == 'J') && t.mode != "x" && t.mode != "t" { // it reads these, and writes none
		p.Lack(program.LackOption, "-"+string(t.packing))
		p.Errorf("the option %c is not supported here: only plain archives and gzip are", t.packing)
		return 2
	}
	if t.auto && (strings.HasSuffix(t.file, ".gz") || strings.HasSuffix(t.file, ".tgz")) {
		t.packing = 'z'
	}
	s.mode = t.mode
	s.out, s.messages = p.Out(), p.Out()
	if t.file == "-" && t.mode == "c" || s.toStdout {
		s.messages = p.Writer(p.Stderr)
	}
	err := s.run(t, operands, folders)
	s.messages.Flush()
	if err != nil {
		p.Charge(0)
		p.Errorf("%s", err.Error())
		p.Errorf("Error is not recoverable: exiting now")
		return 2
	}
	if s.code != 0 {
		p.Errorf("Exiting with failure status due to previous errors")
	}
	return s.code
}

// dashed writes the old form (tar czf x) as the new one (tar -c -z -f x).
func dashed(args []string) []string {
	if len(args) < 2 || args[1] == "" || args[1][0] == '-' {
		return args
	}
	rest := args[2:]
	out := []string{args[0]}
	for _, c := range args[1] {
		out = append(out, "-"+string(c))
		if strings.ContainsRune("fCXTbL", c) && len(rest) > 0 {
			out = append(out, rest[0])
			rest = rest[1:]
		}
	}
	return append(out, rest...)
}

// tarFolders takes each -C out of the arguments and puts a mark in its place. It stands among the operands: it is for those behind it.
func tarFolders(args []string) (rest, folders []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case (a == "-C" || a == "--directory") && i+1 < len(args):
			i++
			a = args[i]
		case strings.HasPrefix(a, "--directory="):
			a = strings.TrimPrefix(a, "--directory=")
		case strings.HasPrefix(a, "-C") && len(a) > 2:
			a = a[2:]
		default:
			rest = append(rest, a)
			continue
		}
		rest = append(rest, "\x00C"+strconv.Itoa(len(folders)))
		folders = append(folders, a)
	}
	return rest, folders
}

// option follows one option. It returns false after a message when the option cannot be followed.
func (s *packer) option(t *tarOptions, o program.Option) bool {
	p := s.p
	switch o.Name {
	case "c", "x", "t", "r", "u", "delete":
		if t.mode != "" && t.mode != o.Name {
			p.Errorf("You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option")
			p.Stderrf("Try 'tar --help' or 'tar --usage' for more information.\n")
			return false
		}
		t.mode = o.Name
	case "zstd":
		t.packing = 'Z'
	case "j", "J", "transform", "I":
		if (o.Name == "j" || o.Name == "J") && t.mode != "c" {
			t.packing = o.Name[0]
			break
		}
		p.Lack(program.LackOption, "-"+o.Name)
		p.Errorf("the option %s is not supported here: only plain archives and gzip are", o.Name)
		return false
	case "f":
		t.file = o.Value
	case "v":
		s.verbose++
	case "z":
		t.packing = 'z'
	case "O":
		s.toStdout = true
	case "k", "skip-old-files":
		s.keep = true
	case "h":
		s.follow = true
	case "m":
		s.noTime = true
	case "a":
		t.auto = true
	case "wildcards":
		s.wildcard = true
	case "T", "X":
		b, err := gnu.ReadWhole(p, o.Value)
		if err != nil {
			p.Errorf("%s: Cannot open: %s", o.Value, program.Message(err))
			return false
		}
		lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if o.Name == "X" {
			s.exclude = append(s.exclude, lines...)
		} else {
			t.names = append(t.names, lines...)
		}
	case "strip-components", "strip":
		s.strip = gnu.ParseCount(p, 2, o.Value, "Invalid number of elements")
	case "exclude":
		s.exclude = append(s.exclude, o.Value)
	case "exclude-vcs":
		s.exclude = append(s.exclude, ".git", ".svn", ".hg", "CVS", ".gitignore", ".gitattributes")
	}
	return true // -P is one of the others: paths that leave are refused always
}

// run writes, changes or reads the archive.
func (s *packer) run(t *tarOptions, operands, folders []string) error {
	switch t.mode {
	case "c", "r", "u":
		return s.create(t.file, t.packing, operands, folders)
	case "delete":
		var names []string
		for _, o := range operands {
			if !s.chdir(o, folders) {
				names = append(names, strings.TrimSuffix(o, "/"))
			}
		}
		return s.delete(t.file, t.packing, names)
	}
	return s.read(t.file, t.packing, t.mode, operands, folders)
}

// chdir follows an operand that stands for -C, and reports whether it was one.
func (s *packer) chdir(operand string, folders []string) bool {
	index, ok := strings.CutPrefix(operand, "\x00C")
	if !ok {
		return false
	}
	i, _ := strconv.Atoi(index)
	dir, err := s.p.FS.Lookup(s.at, folders[i], true)
	if err != nil || dir.Kind() != vfs.Directory {
		if err == nil {
			err = vfs.ENOTDIR
		}
		s.messages.Flush()
		s.p.Errorf("%s: Cannot open: %s", folders[i], program.Message(err))
		s.p.Errorf("Error is not recoverable: exiting now")
		s.p.Exit(2)
	}
	s.at = vfs.At{Dir: dir}
	return true
}

func (s *packer) excluded(name string) bool {
	name = strings.TrimSuffix(name, "/")
	for _, x := range s.exclude {
		x = strings.TrimSuffix(x, "/")
		if gnu.Glob(x, name, false) {
			return true
		}
		for i := 0; i < len(name); i++ { // not anchored: it may match behind any slash
			if name[i] == '/' && gnu.Glob(x, name[i+1:], false) {
				return true
			}
		}
		if gnu.Glob(x+"/*", name, false) {
			return true
		}
	}
	return false
}

func (s *packer) create(file string, packing byte, operands, folders []string) error {
	any := false
	for _, o := range operands {
		any = any || !strings.HasPrefix(o, "\x00C")
	}
	if !any {
		s.p.Errorf("Cowardly refusing to create an empty archive")
		s.p.Stderrf("Try 'tar --help' or 'tar --usage' for more information.\n")
		s.p.Exit(2)
	}
	var w io.Writer = s.p.Out()
	var archive *vfs.Handle
	start := int64(0)
	if s.mode != "c" {
		h, err := s.openArchive(file, packing, vfs.Create)
		if err != nil {
			return err
		}
		if start, err = s.behind(file, h); err != nil {
			return err
		}
		if _, err = h.Seek(start, io.SeekStart); err != nil {
			return errors.New(file + ": Cannot seek: " + program.Message(err))
		}
		o := s.p.Writer(h)
		defer o.Flush()
		archive, w = h, o
	} else if file != "-" {
		h, o, err := gnu.Create(s.p, file)
		if err != nil {
			return errors.New(file + ": Cannot open: " + program.Message(err))
		}
		defer o.Flush()
		archive, w = h, o
	}
	if packing == 'Z' {
		z, err := zstandard.Writer(s.p, w)
		if err != nil {
			return err
		}
		defer func() { _ = z.Close() }()
		w = z
	}
	if packing == 'z' {
		z := gzip.NewWriter(&charger{p: s.p, w: w, n: gasPerPacked})
		defer func() { _ = z.Close() }()
		w = &charger{p: s.p, w: z, n: gasPerPacked}
	}
	written := &counting{w: w, n: start}
	t := tar.NewWriter(written)
	for _, o := range operands {
		if s.chdir(o, folders) {
			continue
		}
		node, err := s.p.FS.Lookup(s.at, o, s.follow)
		if err != nil {
			s.p.Charge(0)
			s.p.Errorf("%s: Cannot stat: %s", o, program.Message(err))
			s.code = 2
			continue
		}
		name := o
		if strings.HasPrefix(name, "/") {
			if !s.told {
				s.p.Errorf("Removing leading `/' from member names")
				s.told = true
			}
			name = strings.TrimLeft(name, "/")
		}
		if name == "" {
			name = "./"
		}
		if err := s.add(t, name, node, archive, 0); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	if rest := written.n % tarRecord; rest > 0 {
		if _, err := w.Write(make([]byte, tarRecord-rest)); err != nil {
			return err
		}
	}
	return nil
}

func (s *packer) add(t *tar.Writer, name string, node *vfs.Node, archive *vfs.Handle, depth int) error {
	if s.excluded(name) {
		return nil
	}
	if archive != nil && node == archive.Node() {
		s.p.Errorf("%s: file is the archive; not dumped", name)
		return nil
	}
	i := node.Info()
	h := &tar.Header{Name: name, Mode: int64(i.Mode), ModTime: i.Modified.Truncate(1e9), Uname: "root", Gname: "root", Format: tar.FormatGNU}
	switch i.Kind {
	case vfs.Directory:
		h.Typeflag = tar.TypeDir
		h.Name = strings.TrimRight(name, "/") + "/"
	case vfs.Symlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, node.Target()
	case vfs.Regular:
		h.Typeflag, h.Size = tar.TypeReg, i.Size
		if i.Links > 1 {
			if first, ok := s.seen[node]; ok {
				h.Typeflag, h.Size, h.Linkname = tar.TypeLink, 0, first
			} else {
				s.seen[node] = name
			}
		}
	default:
		return nil
	}
	if had, ok := s.newest[strings.TrimSuffix(h.Name, "/")]; ok && !h.ModTime.After(had) && h.Typeflag != tar.TypeDir {
		return nil
	}
	if s.verbose > 0 {
		s.messages.WriteString(s.line(h) + "\n")
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeReg {
		f, err := s.p.FS.OpenNode(node, vfs.Read)
		if err != nil {
			s.p.Errorf("%s: Cannot open: %s", name, program.Message(err))
			s.code = 2
			return nil
		}
		defer func() { _ = f.Close() }()
		if _, err := io.Copy(t, f); err != nil {
			return err
		}
		return nil
	}
	if h.Typeflag != tar.TypeDir || depth > vfs.MaxDepth {
		return nil
	}
	entries, err := node.List()
	if err != nil {
		s.p.Errorf("%s: Cannot open: %s", name, program.Message(err))
		s.code = 2
		return nil
	}
	for _, e := range entries {
		child := e.Node
		if s.follow && child.Kind() == vfs.Symlink {
			if n, err := s.p.FS.Lookup(vfs.At{Dir: node}, e.Name, true); err == nil {
				child = n
			}
		}
		if err := s.add(t, h.Name+e.Name, child, archive, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// line is a member as it is listed.
func (s *packer) line(h *tar.Header) string {
	name := h.Name
	if s.verbose < 2 && (s.verbose == 0 || s.mode != "t") {
		return name
	}
	kind := map[byte]vfs.Kind{tar.TypeDir: vfs.Directory, tar.TypeSymlink: vfs.Symlink}[h.Typeflag]
	if kind == 0 {
		kind = vfs.Regular
	}
	mode := gnu.Symbols(kind, uint32(h.Mode))
	switch h.Typeflag {
	case tar.TypeLink:
		mode = "h" + mode[1:]
		name += " link to " + h.Linkname
	case tar.TypeSymlink:
		name += " -> " + h.Linkname
	}
	owner := h.Uname + "/" + h.Gname
	if h.Uname == "" {
		owner = strconv.Itoa(h.Uid) + "/" + strconv.Itoa(h.Gid)
	}
	sizeText := strconv.FormatInt(h.Size, 10)
	pad := max(19-len(owner)-1, len(sizeText))
	return mode + " " + owner + " " + strings.Repeat(" ", pad-len(sizeText)) + sizeText + " " + h.ModTime.UTC().Format("2006-01-02 15:04") +
		" " + name
}

func (s *packer) read(file string, packing byte, mode string, operands, folders []string) error {
	h := s.p.Stdin
	if file != "-" {
		var err error
		if h, err = s.p.Open(file, vfs.Read); err != nil {
			return errors.New(file + ": Cannot open: " + program.Message(err))
		}
	}
	in := s.p.Reader(h)
	head := make([]byte, 3)
	n, _ := io.ReadFull(in, head)
	var xz *unxz
	var r io.Reader = io.MultiReader(strings.NewReader(string(head[:n])), in)
	switch {
	case n >= 2 && head[0] == 0x1f && head[1] == 0x8b:
		z, err := gzip.NewReader(r)
		if err != nil {
			return errors.New("This does not look like a tar archive")
		}
		r = &charger{p: s.p, r: z, n: gasPerPacked}
	case packing == 'z':
		s.p.Stderrf("\ngzip: stdin: not in gzip format\n")
		s.p.Errorf("Child returned status 1")
		s.p.Errorf("Error is not recoverable: exiting now")
		s.p.Exit(2)
	case string(head[:n]) == "BZh":
		s.p.Charge(9 * gasPerBlock)
		s.p.Hold(bzip2Bytes)
		r = &charger{p: s.p, r: bzip2.NewReader(r), n: 5 * gasPerPacked}
	case string(head[:n]) == zstandard.Magic:
		z, err := zstandard.Reader(s.p, r)
		if err != nil {
			return errors.New("This does not look like a tar archive")
		}
		defer func() { _ = z.Close() }()
		r = z
	case string(head[:n]) == xzMagic[:3]:
		xz = newUnxz(s.p, r)
		defer func() { _ = xz.Close() }()
		r = xz
	}
	var names []string
	for _, o := range operands {
		if !s.chdir(o, folders) {
			names = append(names, strings.TrimSuffix(o, "/"))
		}
	}
	t := tar.NewReader(r)
	members := 0
	for {
		s.p.Charge(500)
		m, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.p.Charge(0)
			if xz != nil && xz.failed != nil {
				return fmt.Errorf("xz: %w", xz.failed)
			}
			if members == 0 {
				s.p.Errorf("This does not look like a tar archive")
				s.code = 2
				return nil
			}
			return errors.New("Unexpected EOF in archive")
		}
		members++
		if !s.selected(m.Name, names) || s.excluded(m.Name) {
			continue
		}
		if mode == "t" {
			s.messages.WriteString(s.line(m) + "\n")
			continue
		}
		if err := s.extract(t, m); err != nil {
			return err
		}
	}
	sort.SliceStable(s.dirs, func(i, j int) bool { return len(s.dirs[i].name) > len(s.dirs[j].name) })
	for _, d := range s.dirs {
		_ = s.p.FS.Chmod(s.at, d.name, uint32(d.h.Mode)&0o777&^s.p.Umask, false)
		if !s.noTime {
			_ = s.p.FS.Utimes(s.at, d.name, false, d.h.ModTime, d.h.ModTime)
		}
	}
	s.missing(names)
	return nil
}

func (s *packer) selected(name string, names []string) bool {
	if len(names) == 0 {
		return true
	}
	name = strings.TrimSuffix(name, "/")
	for _, n := range names {
		if name == n || strings.HasPrefix(name, n+"/") || s.wildcard && gnu.Glob(n, name, false) {
			s.matched[n] = true
			return true
		}
	}
	return false
}
