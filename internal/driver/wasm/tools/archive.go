package tools

import (
	"archive/tar"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"sort"
	"strconv"
	"strings"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
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
}

// dirTime is a folder whose time and mode are set when everything is in it.
type dirTime struct {
	name string
	h    *tar.Header
}

func tarCommand(p *program.Process) int {
	s := &packer{p: p, at: p.At(), seen: map[*vfs.Node]string{}, matched: map[string]bool{}}
	if len(p.Args) > 1 && p.Args[1] != "" && p.Args[1][0] != '-' { // the old form: tar czf x
		letters := p.Args[1]
		rest := p.Args[2:]
		args := []string{p.Args[0]}
		for _, c := range letters {
			args = append(args, "-"+string(c))
			if strings.ContainsRune("fCXTbL", c) && len(rest) > 0 {
				args = append(args, rest[0])
				rest = rest[1:]
			}
		}
		args = append(args, rest...)
		p.Args = args
	}
	// -C stands among the operands: it is for those behind it.
	var folders []string
	var args []string
	for i := 0; i < len(p.Args); i++ {
		a := p.Args[i]
		switch {
		case (a == "-C" || a == "--directory") && i+1 < len(p.Args):
			args = append(args, "\x00C"+strconv.Itoa(len(folders)))
			folders = append(folders, p.Args[i+1])
			i++
		case strings.HasPrefix(a, "--directory="), strings.HasPrefix(a, "-C") && len(a) > 2:
			args = append(args, "\x00C"+strconv.Itoa(len(folders)))
			folders = append(folders, strings.TrimPrefix(strings.TrimPrefix(a, "--directory="), "-C"))
		default:
			args = append(args, a)
		}
	}
	p.Args = args
	opts, operands := p.Options(2, "cxtruf:vzjJZOkpPhmT:X:awC:b:Ss", "create c", "extract x", "get x", "list t", "append r", "update u", "file= f", "verbose v", "gzip z", "gunzip z",
		"bzip2 j", "xz J", "zstd", "to-stdout O", "keep-old-files k", "preserve-permissions p", "same-permissions p", "absolute-names P", "dereference h", "touch m", "files-from= T",
		"exclude-from= X", "auto-compress a", "strip-components=", "strip=", "exclude=", "transform=", "owner=", "group=", "numeric-owner", "sort=", "mtime=", "no-same-owner",
		"no-same-permissions", "wildcards", "no-recursion", "overwrite", "format=", "null", "exclude-vcs", "warning=", "same-owner", "mode=", "totals", "one-file-system", "anchored",
		"no-anchored", "no-wildcards", "skip-old-files", "use-compress-program= I")
	file, mode, packing := "-", "", byte(0)
	auto := false
	absolute := false
	var names []string
	for _, o := range opts {
		switch o.Name {
		case "c", "x", "t":
			mode = o.Name
		case "r", "u", "j", "J", "zstd", "transform", "I":
			if (o.Name == "j") && mode != "c" {
				packing = 'j'
				break
			}
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option %s is not supported here: only plain archives and gzip are", o.Name)
			return 2
		case "f":
			file = o.Value
		case "v":
			s.verbose++
		case "z":
			packing = 'z'
		case "O":
			s.toStdout = true
		case "k", "skip-old-files":
			s.keep = true
		case "h":
			s.follow = true
		case "m":
			s.noTime = true
		case "a":
			auto = true
		case "P":
			absolute = true
		case "wildcards":
			s.wildcard = true
		case "T", "X":
			b, err := whole(p, o.Value)
			if err != nil {
				p.Errorf("%s: Cannot open: %s", o.Value, program.Message(err))
				return 2
			}
			for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
				if o.Name == "X" {
					s.exclude = append(s.exclude, line)
				} else {
					names = append(names, line)
				}
			}
		case "strip-components", "strip":
			s.strip = count(p, 2, o.Value, "Invalid number of elements")
		case "exclude":
			s.exclude = append(s.exclude, o.Value)
		case "exclude-vcs":
			s.exclude = append(s.exclude, ".git", ".svn", ".hg", "CVS", ".gitignore", ".gitattributes")
		}
	}
	operands = append(operands, names...)
	_ = absolute // paths that leave are refused always
	if mode == "" {
		p.Errorf("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
		p.Stderrf("Try 'tar --help' or 'tar --usage' for more information.\n")
		return 2
	}
	if auto && (strings.HasSuffix(file, ".gz") || strings.HasSuffix(file, ".tgz")) {
		packing = 'z'
	}
	s.mode = mode
	s.out, s.messages = p.Out(), p.Out()
	if file == "-" && mode == "c" || s.toStdout {
		s.messages = p.Writer(p.Stderr)
	}
	var err error
	if mode == "c" {
		err = s.create(file, packing, operands, folders)
	} else {
		err = s.read(file, packing, mode, operands, folders)
	}
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
		if glob(x, name, false) {
			return true
		}
		for i := 0; i < len(name); i++ { // not anchored: it may match behind any slash
			if name[i] == '/' && glob(x, name[i+1:], false) {
				return true
			}
		}
		if glob(x+"/*", name, false) {
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
	if file != "-" {
		h, o, err := create(s.p, file)
		if err != nil {
			return errors.New(file + ": Cannot open: " + program.Message(err))
		}
		defer o.Flush()
		archive, w = h, o
	}
	if packing == 'z' {
		z := gzip.NewWriter(&charger{p: s.p, w: w, n: gasPerPacked})
		defer func() { _ = z.Close() }()
		w = &charger{p: s.p, w: z, n: gasPerPacked}
	}
	t := tar.NewWriter(w)
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
	_, err := w.Write(make([]byte, 0))
	return err
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
	mode := symbols(kind, uint32(h.Mode))
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
	return mode + " " + owner + " " + strings.Repeat(" ", pad-len(sizeText)) + sizeText + " " + h.ModTime.UTC().Format("2006-01-02 15:04") + " " + name
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
		r = &charger{p: s.p, r: bzip2.NewReader(r), n: 5 * gasPerPacked}
	case n == 3 && head[0] == 0xfd && head[1] == '7':
		s.p.Lack(program.LackFeature, "xz")
		return errors.New("archives packed by xz are not supported here")
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
	for _, n := range names {
		if !s.matched[n] {
			s.messages.Flush()
			s.p.Errorf("%s: Not found in archive", n)
			s.code = 2
		}
	}
	return nil
}

func (s *packer) selected(name string, names []string) bool {
	if len(names) == 0 {
		return true
	}
	name = strings.TrimSuffix(name, "/")
	for _, n := range names {
		if name == n || strings.HasPrefix(name, n+"/") || s.wildcard && glob(n, name, false) {
			s.matched[n] = true
			return true
		}
	}
	return false
}

// extract writes a member to its place. What would leave the folder, by its name or through a link, is refused.
func (s *packer) extract(r io.Reader, h *tar.Header) error {
	name := h.Name
	if strings.HasPrefix(name, "/") {
		if !s.told {
			s.p.Errorf("Removing leading `/' from member names")
			s.told = true
		}
		name = strings.TrimLeft(name, "/")
	}
	if !safe(name) {
		s.messages.Flush()
		s.p.Errorf("%s: Member name contains '..'", h.Name)
		s.code = 2
		return nil
	}
	name = path.Clean(name)
	for range s.strip {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return nil
		}
		name = rest
	}
	if s.toStdout {
		if h.Typeflag == tar.TypeReg {
			if _, err := io.Copy(s.out, r); err != nil {
				return errors.New("Unexpected EOF in archive")
			}
		}
		return nil
	}
	if s.verbose > 0 {
		s.messages.WriteString(s.line(h) + "\n")
	}
	fail := func(err error) error {
		s.p.Charge(0)
		s.messages.Flush()
		s.p.Errorf("%s: Cannot open: %s", name, program.Message(err))
		s.code = 2
		return nil
	}
	if err := s.parents(name); err != nil {
		return fail(err)
	}
	fs := s.p.FS
	mode := uint32(h.Mode) & 0o777 &^ s.p.Umask
	switch h.Typeflag {
	case tar.TypeDir:
		if err := fs.Mkdir(s.at, name, 0o700); err != nil && !errors.Is(err, vfs.EEXIST) {
			return fail(err)
		}
		s.dirs = append(s.dirs, dirTime{name, h})
		return nil
	case tar.TypeSymlink:
		_ = fs.Unlink(s.at, name)
		if err := fs.Symlink(h.Linkname, s.at, name); err != nil {
			return fail(err)
		}
		if !s.noTime {
			_ = fs.Utimes(s.at, name, false, h.ModTime, h.ModTime)
		}
		return nil
	case tar.TypeLink:
		if !safe(h.Linkname) {
			s.p.Errorf("%s: Member name contains '..'", h.Linkname)
			s.code = 2
			return nil
		}
		_ = fs.Unlink(s.at, name)
		if err := s.through(h.Linkname); err != nil {
			return fail(err)
		}
		if err := fs.Link(s.at, h.Linkname, false, s.at, name); err != nil {
			return fail(err)
		}
		return nil
	case tar.TypeReg:
	default:
		return nil
	}
	if s.keep {
		if _, err := fs.Stat(s.at, name, false); err == nil {
			s.p.Errorf("%s: Cannot open: %s", name, vfs.EEXIST.Error())
			s.code = 2
			return nil
		}
	}
	if err := fs.Unlink(s.at, name); err != nil && !errors.Is(err, vfs.ENOENT) {
		return fail(err)
	}
	f, err := fs.Open(s.at, name, vfs.Write|vfs.Create|vfs.Exclusive, 0o600)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }()
	if err := s.copy(f, r, name); err != nil {
		return err
	}
	_ = f.Node().Chmod(mode)
	if !s.noTime {
		_ = f.Node().Utimes(h.ModTime, h.ModTime)
	}
	return nil
}

// copy writes a member's bytes.
func (s *packer) copy(f *vfs.Handle, r io.Reader, name string) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := f.Write(buf[:n]); werr != nil {
				s.p.Charge(0)
				return errors.New(name + ": Cannot write: " + program.Message(werr))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("Unexpected EOF in archive")
		}
	}
}

// parents makes the folders above a name, and refuses to go through a link.
func (s *packer) parents(name string) error {
	for i := range name {
		if name[i] != '/' {
			continue
		}
		dir := name[:i]
		info, err := s.p.FS.Stat(s.at, dir, false)
		switch {
		case errors.Is(err, vfs.ENOENT):
			if err := s.p.FS.Mkdir(s.at, dir, 0o777&^s.p.Umask); err != nil {
				return err
			}
		case err != nil:
			return err
		case info.Kind != vfs.Directory:
			return vfs.ENOTDIR
		}
	}
	return nil
}

// through refuses a path that goes through a link.
func (s *packer) through(name string) error {
	for i := range name {
		if name[i] == '/' {
			if info, err := s.p.FS.Stat(s.at, name[:i], false); err != nil || info.Kind != vfs.Directory {
				return vfs.ENOTDIR
			}
		}
	}
	return nil
}

// gzipCommand is gzip, gunzip and zcat.
func gzipCommand(p *program.Process) int {
	called := base(p.Name())
	p.Args[0] = "gzip" // that is what its messages call it
	opts, operands := p.Options(1, "cdfhklLnNqrS:tv123456789", "stdout c", "to-stdout c", "decompress d", "uncompress d", "force f", "keep k", "list l", "no-name n", "name N", "quiet q",
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
		if !packOne(p, name, suffix, level, unpack, stdout || name == "-", keep || stdout, force, test, list) {
			code = 1
		}
	}
	return code
}

func packOne(p *program.Process, name, suffix string, level int, unpack, stdout, keep, force, test, list bool) bool {
	fail := func(format string, args ...any) bool {
		p.Charge(0)
		p.Errorf(format, args...)
		return false
	}
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
				fail("%s: unknown suffix -- ignored", name)
				return false
			}
		}
		if info, err = p.FS.Stat(p.At(), name, true); err != nil {
			return fail("%s: %s", name, program.Message(err))
		}
		if info.IsDir() {
			return fail("%s is a directory -- ignored", name)
		}
		if !unpack && strings.HasSuffix(name, suffix) && !stdout {
			return fail("%s already has %s suffix -- unchanged", name, suffix)
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
			return fail("%s already exists;\tnot overwritten", to)
		}
		var err error
		if out, w, err = create(p, to); err != nil {
			return fail("%s: %s", to, program.Message(err))
		}
	}
	shown := name
	if shown == "-" {
		shown = "stdin"
	}
	if unpack {
		z, err := gzip.NewReader(in)
		if err != nil {
			if out != nil {
				_ = p.Close(out)
				_ = p.FS.Unlink(p.At(), to)
			}
			p.Stderrf("\n")
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				return fail("%s: unexpected end of file", shown)
			}
			return fail("%s: not in gzip format", shown)
		}
		var n int64
		var target io.Writer = w
		if test || list {
			target = io.Discard
		}
		n, err = io.Copy(target, &charger{p: p, r: z, n: gasPerPacked})
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
			z.Name = base(name)
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
	return true
}
