package coreutils

import (
	"encoding/base32"
	"errors"
	"io"
	"strings"
	"time"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// lookup returns what a path leads to.
func lookup(p *program.Process, path string, follow bool) (*vfs.Node, error) {
	n, err := p.FS.Lookup(p.At(), path, follow)
	p.Check(err)
	return n, err
}

func isDir(p *program.Process, path string) bool {
	n, err := lookup(p, path, true)
	return err == nil && n.Kind() == vfs.Directory
}

// try does an operation of the file system and tells what was wrong.
func try(p *program.Process, err error, format string, args ...any) bool {
	if err == nil {
		return true
	}
	p.Check(err)
	p.Errorf(format+": %s", append(args, program.Message(err))...)
	return false
}

func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// base returns the last element of a path.
func base(path string) string {
	trimmed := strings.TrimRight(path, "/")
	if trimmed == "" {
		if path == "" {
			return ""
		}
		return "/"
	}
	return trimmed[strings.LastIndexByte(trimmed, '/')+1:]
}

// dir returns what stands before the last element of a path.
func dir(path string) string {
	trimmed := strings.TrimRight(path, "/")
	i := strings.LastIndexByte(trimmed, '/')
	switch {
	case trimmed == "" && path != "":
		return "/"
	case i < 0:
		return "."
	}
	if d := strings.TrimRight(trimmed[:i], "/"); d != "" {
		return d
	}
	return "/"
}

func mkdir(p *program.Process) int {
	opts, names := p.Options(1, "m:pvZ", "mode m", "parents p", "verbose v")
	mode, parents, verbose := "", false, false
	for _, o := range opts {
		switch o.Name {
		case "m":
			mode = o.Value
		case "p":
			parents = true
		case "v":
			verbose = true
		}
	}
	if len(names) == 0 {
		usage(p, 1, "missing operand")
	}
	perm := 0o777 &^ p.Umask
	if mode != "" {
		m, ok := program.Mode(mode, 0o777, p.Umask, true)
		if !ok {
			p.Errorf("invalid mode ‘%s’", mode)
			return 1
		}
		perm = m
	}
	status := 0
	for _, name := range names {
		if parents {
			if !mkdirAll(p, name, perm, verbose) {
				status = 1
			}
			continue
		}
		if !try(p, p.FS.Mkdir(p.At(), name, perm), "cannot create directory ‘%s’", name) {
			status = 1
		} else if verbose {
			p.Out().Printf("%s: created directory %s\n", p.Name(), quoteName(name))
		}
	}
	return status
}

// mkdirAll makes a folder and those on the way to it.
func mkdirAll(p *program.Process, name string, perm uint32, verbose bool) bool {
	for i := 1; i <= len(name); i++ {
		if i < len(name) && (name[i] != '/' || name[i-1] == '/') {
			continue
		}
		part := name[:i]
		if strings.Trim(part, "/") == "" {
			continue
		}
		last := strings.Trim(name[i:], "/") == ""
		mode := 0o777&^p.Umask | 0o300
		if last {
			mode = perm
		}
		err := p.FS.Mkdir(p.At(), part, mode)
		if errors.Is(err, vfs.EEXIST) || errors.Is(err, vfs.EROFS) {
			if isDir(p, part) {
				continue
			}
			if !last {
				err = vfs.ENOTDIR
			}
		}
		if !try(p, err, "cannot create directory ‘%s’", part) {
			return false
		}
		if verbose {
			p.Out().Printf("%s: created directory %s\n", p.Name(), quoteName(part))
		}
		if last {
			break
		}
	}
	return true
}

func rmdir(p *program.Process) int {
	opts, names := p.Options(1, "pv", "parents p", "verbose v", "ignore-fail-on-non-empty")
	parents, verbose, ignore := false, false, false
	for _, o := range opts {
		switch o.Name {
		case "p":
			parents = true
		case "v":
			verbose = true
		default:
			ignore = true
		}
	}
	if len(names) == 0 {
		usage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		for {
			if verbose {
				p.Out().Printf("%s: removing directory, %s\n", p.Name(), quoteName(name))
			}
			err := p.FS.Rmdir(p.At(), name)
			if ignore && errors.Is(err, vfs.ENOTEMPTY) {
				break
			}
			if !try(p, err, "failed to remove %s", quoteName(name)) {
				status = 1
				break
			}
			if name = dir(name); !parents || name == "." || name == "/" {
				break
			}
		}
	}
	return status
}

func unlink(p *program.Process) int {
	_, names := p.Options(1, "")
	if len(names) != 1 {
		usage(p, 1, "missing operand")
	}
	if !try(p, p.FS.Unlink(p.At(), names[0]), "cannot unlink %s", quoteName(names[0])) {
		return 1
	}
	return 0
}

func rm(p *program.Process) int {
	opts, names := p.Options(1, "dfiIrRv", "dir d", "force f", "recursive r", "verbose v", "interactive=?", "one-file-system", "no-preserve-root", "preserve-root=?")
	force, recursive, verbose, folders := false, false, false, false
	for _, o := range opts {
		switch o.Name {
		case "d":
			folders = true
		case "f":
			force = true
		case "i", "I":
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("option -%s asks questions that nobody answers in a nano space", o.Name)
			return 1
		case "r", "R":
			recursive = true
		case "v":
			verbose = true
		}
	}
	if len(names) == 0 {
		if force {
			return 0
		}
		usage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		if b := base(name); b == "." || b == ".." {
			p.Errorf("refusing to remove '.' or '..' directory: skipping %s", quoteName(name))
			status = 1
			continue
		}
		if recursive && strings.Trim(name, "/") == "" {
			p.Errorf("it is dangerous to operate recursively on '/'")
			p.Errorf("use --no-preserve-root to override this failsafe")
			status = 1
			continue
		}
		n, err := lookup(p, strings.TrimRight(name, "/"), false)
		if err != nil {
			if !force || !errors.Is(err, vfs.ENOENT) && !errors.Is(err, vfs.ENOTDIR) {
				try(p, err, "cannot remove %s", quoteName(name))
				status = 1
			}
			continue
		}
		if !remove(p, name, n, recursive, folders, verbose) {
			status = 1
		}
	}
	return status
}

// remove removes something, with what is in it where recursive says so.
func remove(p *program.Process, name string, n *vfs.Node, recursive, folders, verbose bool) bool {
	p.Charge(50)
	if n.Kind() != vfs.Directory {
		if !try(p, p.FS.Unlink(p.At(), name), "cannot remove %s", quoteName(name)) {
			return false
		}
		if verbose {
			p.Out().Printf("removed %s\n", quoteName(name))
		}
		return true
	}
	if !recursive && !folders {
		p.Errorf("cannot remove %s: Is a directory", quoteName(name))
		return false
	}
	ok := true
	if recursive {
		entries, err := n.List()
		if !try(p, err, "cannot remove %s", quoteName(name)) {
			return false
		}
		for _, e := range entries {
			ok = remove(p, join(name, e.Name), e.Node, true, false, verbose) && ok
		}
	}
	if !ok {
		return false
	}
	if !try(p, p.FS.Rmdir(p.At(), name), "cannot remove %s", quoteName(name)) {
		return false
	}
	if verbose {
		p.Out().Printf("removed directory %s\n", quoteName(name))
	}
	return true
}

// copier is one cp, or one mv between mounts.
type copier struct {
	p                                          *program.Process
	recursive, force, keepTimes, keepMode      bool
	links                                      bool // copied as such
	noClobber, update, verbose, hard, symbolic bool
	status                                     int
}

func cp(p *program.Process) int {
	opts, names := p.Options(1, "abdfHilLnPprRst:TuvxS:", "archive a", "force f", "dereference L", "no-dereference P", "no-clobber n", "preserve=?", "recursive r", "symbolic-link s",
		"target-directory t", "no-target-directory T", "update=?", "verbose v", "link l", "interactive i", "parents", "reflink=?", "sparse=", "remove-destination", "backup=?",
		"no-preserve=", "strip-trailing-slashes", "attributes-only", "one-file-system x")
	c := copier{p: p}
	target, noTarget, parents, follow := "", false, false, false
	for _, o := range opts {
		switch o.Name {
		case "a":
			c.recursive, c.links, c.keepTimes, c.keepMode = true, true, true, true
		case "d", "P":
			c.links = true
		case "f", "remove-destination":
			c.force = true
		case "L":
			follow = true
		case "l":
			c.hard = true
		case "n":
			c.noClobber = true
		case "p", "preserve":
			c.keepTimes, c.keepMode = true, true
		case "r", "R":
			c.recursive = true
		case "s":
			c.symbolic = true
		case "t":
			target = o.Value
		case "T":
			noTarget = true
		case "u", "update":
			c.update = true
		case "v":
			c.verbose = true
		case "parents":
			parents = true
		case "i", "b", "backup", "S", "attributes-only":
			p.Lack(program.LackOption, "-"+o.Name)
			usage(p, 1, "option -%s is not supported in a nano space", o.Name)
		}
	}
	if c.recursive && !follow {
		c.links = true
	}
	names, target = operands(p, names, target, noTarget)
	for _, name := range names {
		to := target
		if !noTarget && isDir(p, target) {
			if parents {
				if d := dir(name); d != "." {
					mkdirAll(p, join(target, d), 0o777&^p.Umask, false)
				}
				to = join(target, name)
			} else {
				to = join(target, base(name))
			}
		}
		c.copy(name, to, 0)
	}
	return c.status
}

// operands splits the operands of cp, mv and ln into what is meant and where to.
func operands(p *program.Process, names []string, target string, noTarget bool) (from []string, to string) {
	switch {
	case len(names) == 0:
		usage(p, 1, "missing file operand")
	case target != "":
		if !isDir(p, target) {
			p.Errorf("target directory %s: %s", quoteName(target), absence(p, target))
			p.Exit(1)
		}
		return names, target
	case len(names) == 1:
		usage(p, 1, "missing destination file operand after %s", quoteName(names[0]))
	case noTarget && len(names) > 2:
		usage(p, 1, "extra operand %s", quoteName(names[2]))
	}
	to = names[len(names)-1]
	if len(names) > 2 && !isDir(p, to) {
		p.Errorf("target %s: %s", quoteName(to), absence(p, to))
		p.Exit(1)
	}
	return names[:len(names)-1], to
}

func absence(p *program.Process, path string) string {
	if _, err := lookup(p, path, true); err != nil {
		return program.Message(err)
	}
	return vfs.ENOTDIR.Error()
}

func (c *copier) fail(err error, format string, args ...any) {
	try(c.p, err, format, args...)
	c.status = 1
}

// copy copies one thing to a path.
func (c *copier) copy(from, to string, depth int) {
	p := c.p
	p.Charge(100)
	n, err := lookup(p, from, !c.links)
	if err != nil {
		c.fail(err, "cannot stat %s", quoteName(from))
		return
	}
	info := n.Info()
	if info.IsDir() && !c.recursive {
		p.Errorf("-r not specified; omitting directory %s", quoteName(from))
		c.status = 1
		return
	}
	old, err := lookup(p, to, !c.links || !info.IsDir())
	if err != nil && !errors.Is(err, vfs.ENOENT) {
		c.fail(err, "cannot stat %s", quoteName(to))
		return
	}
	if err == nil {
		switch {
		case old == n:
			p.Errorf("%s and %s are the same file", quoteName(from), quoteName(to))
			c.status = 1
			return
		case c.noClobber && !info.IsDir():
			return
		case c.update && !info.IsDir() && !info.Modified.After(old.Info().Modified):
			return
		case info.IsDir() && old.Kind() != vfs.Directory:
			p.Errorf("cannot overwrite non-directory %s with directory %s", quoteName(to), quoteName(from))
			c.status = 1
			return
		case !info.IsDir() && old.Kind() == vfs.Directory:
			p.Errorf("cannot overwrite directory %s with non-directory", quoteName(to))
			c.status = 1
			return
		}
	} else {
		old = nil
	}
	if c.verbose && (!info.IsDir() || old == nil) {
		p.Out().Printf("%s -> %s\n", quoteName(from), quoteName(to))
	}
	switch {
	case info.IsDir():
		c.folder(from, to, n, old, depth)
		return
	case c.symbolic:
		if err := p.FS.Symlink(from, p.At(), to); err != nil {
			c.fail(err, "cannot create symbolic link %s to %s", quoteName(to), quoteName(from))
		}
		return
	case c.hard:
		if err := p.FS.Link(p.At(), from, false, p.At(), to); err != nil {
			c.fail(err, "cannot create hard link %s to %s", quoteName(to), quoteName(from))
		}
		return
	case info.Kind == vfs.Symlink:
		if old != nil {
			_ = p.FS.Unlink(p.At(), to)
		}
		if err := p.FS.Symlink(n.Target(), p.At(), to); err != nil {
			c.fail(err, "cannot create symbolic link %s", quoteName(to))
		}
		return
	}
	c.file(from, to, n, old)
}

func (c *copier) file(from, to string, n, old *vfs.Node) {
	p := c.p
	info := n.Info()
	in, err := p.FS.OpenNode(n, vfs.Read)
	if err != nil {
		c.fail(err, "cannot open %s for reading", quoteName(from))
		return
	}
	defer func() { _ = in.Close() }()
	perm := info.Mode & 0o777
	if !c.keepMode {
		perm &^= p.Umask
	}
	flags := vfs.Write | vfs.Create | vfs.Truncate
	out, err := p.FS.Open(p.At(), to, flags, perm)
	if err != nil && c.force {
		_ = p.FS.Unlink(p.At(), to)
		out, err = p.FS.Open(p.At(), to, flags, perm)
	}
	if err != nil {
		if strings.HasSuffix(to, "/") && errors.Is(err, vfs.EISDIR) {
			err = vfs.ENOTDIR
		}
		c.fail(err, "cannot create regular file %s", quoteName(to))
		return
	}
	defer func() { _ = out.Close() }()
	if err := c.bytes(in, out); err != nil {
		c.fail(err, "error copying %s to %s", quoteName(from), quoteName(to))
		return
	}
	c.attributes(to, n)
	_ = old
}

func (c *copier) bytes(in, out *vfs.Handle) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if _, werr := out.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// attributes gives a copy what is kept of the original.
func (c *copier) attributes(to string, n *vfs.Node) {
	info := n.Info()
	if c.keepMode {
		_ = c.p.FS.Chmod(c.p.At(), to, info.Mode, true)
	}
	if c.keepTimes {
		_ = c.p.FS.Utimes(c.p.At(), to, true, info.Accessed, info.Modified)
	}
}

func (c *copier) folder(from, to string, n, old *vfs.Node, depth int) {
	p := c.p
	entries, err := n.List()
	if err != nil {
		c.fail(err, "cannot access %s", quoteName(from))
		return
	}
	if old == nil {
		if err := p.FS.Mkdir(p.At(), to, n.Info().Mode&^p.Umask|0o300); err != nil {
			c.fail(err, "cannot create directory %s", quoteName(to))
			return
		}
		if old, err = lookup(p, to, true); err != nil {
			return
		}
	}
	for d := old; ; {
		if d == n {
			p.Errorf("cannot copy a directory, %s, into itself, %s", quoteName(from), quoteName(to))
			c.status = 1
			return
		}
		up, err := p.FS.Lookup(vfs.At{Dir: d}, "..", true)
		if err != nil || up == d {
			break
		}
		d = up
	}
	for _, e := range entries {
		c.copy(join(from, e.Name), join(to, e.Name), depth+1)
	}
	c.attributes(to, n)
}

func mv(p *program.Process) int {
	opts, names := p.Options(1, "bfint:TuvS:", "force f", "interactive i", "no-clobber n", "target-directory t", "no-target-directory T", "update=?", "verbose v", "backup=?",
		"strip-trailing-slashes")
	c := copier{p: p, recursive: true, links: true, keepTimes: true, keepMode: true, force: true}
	target, noTarget := "", false
	for _, o := range opts {
		switch o.Name {
		case "n":
			c.noClobber = true
		case "t":
			target = o.Value
		case "T":
			noTarget = true
		case "u", "update":
			c.update = true
		case "v":
			c.verbose = true
		case "i", "b", "backup", "S":
			p.Lack(program.LackOption, "-"+o.Name)
			usage(p, 1, "option -%s is not supported in a nano space", o.Name)
		}
	}
	names, target = operands(p, names, target, noTarget)
	for _, name := range names {
		to := target
		if !noTarget && isDir(p, target) {
			to = join(target, base(name))
		}
		c.move(name, to)
	}
	return c.status
}

func (c *copier) move(from, to string) {
	p := c.p
	n, err := lookup(p, from, false)
	if err != nil {
		c.fail(err, "cannot stat %s", quoteName(from))
		return
	}
	if old, err := lookup(p, to, false); err == nil {
		switch {
		case old == n:
			p.Errorf("%s and %s are the same file", quoteName(from), quoteName(to))
			c.status = 1
			return
		case c.noClobber:
			return
		case c.update && !n.Info().Modified.After(old.Info().Modified):
			return
		case n.Kind() == vfs.Directory && old.Kind() != vfs.Directory:
			p.Errorf("cannot overwrite non-directory %s with directory %s", quoteName(to), quoteName(from))
			c.status = 1
			return
		case n.Kind() != vfs.Directory && old.Kind() == vfs.Directory:
			p.Errorf("cannot overwrite directory %s with non-directory", quoteName(to))
			c.status = 1
			return
		}
	}
	err = p.FS.Rename(p.At(), from, p.At(), to)
	switch {
	case errors.Is(err, vfs.EXDEV):
		verbose := c.verbose
		c.verbose = false
		status := c.status
		c.status = 0
		c.copy(from, to, 0)
		if c.status == 0 {
			if !remove(p, from, n, true, false, false) {
				c.status = 1
			}
		}
		c.verbose, c.status = verbose, max(c.status, status)
	case errors.Is(err, vfs.EINVAL):
		p.Errorf("cannot move %s to a subdirectory of itself, %s", quoteName(from), quoteName(to))
		c.status = 1
		return
	case err != nil:
		c.fail(err, "cannot move %s to %s", quoteName(from), quoteName(to))
		return
	}
	if c.verbose {
		p.Out().Printf("renamed %s -> %s\n", quoteName(from), quoteName(to))
	}
}

func ln(p *program.Process) int {
	opts, names := p.Options(1, "sfnvt:TrbiLPS:", "symbolic s", "force f", "no-dereference n", "verbose v", "target-directory t", "no-target-directory T", "relative r", "logical L", "physical P")
	symbolic, force, noFollow, verbose, relative, target, noTarget := false, false, false, false, false, "", false
	for _, o := range opts {
		switch o.Name {
		case "s":
			symbolic = true
		case "f":
			force = true
		case "n":
			noFollow = true
		case "v":
			verbose = true
		case "r":
			relative = true
		case "t":
			target = o.Value
		case "T":
			noTarget = true
		case "b", "i", "S":
			p.Lack(program.LackOption, "-"+o.Name)
			usage(p, 1, "option -%s is not supported in a nano space", o.Name)
		}
	}
	if len(names) == 1 && target == "" && !noTarget {
		names = append(names, ".")
	}
	if len(names) == 0 {
		usage(p, 1, "missing file operand")
	}
	names, target = operands(p, names, target, noTarget)
	status := 0
	for _, name := range names {
		to := target
		if n, err := lookup(p, target, !noFollow); !noTarget && err == nil && n.Kind() == vfs.Directory {
			to = join(target, base(name))
		}
		source := name
		if !symbolic {
			n, err := lookup(p, name, false)
			if err != nil {
				try(p, err, "failed to access %s", quoteName(name))
				status = 1
				continue
			}
			if n.Kind() == vfs.Directory {
				p.Errorf("%s: hard link not allowed for directory", name)
				status = 1
				continue
			}
		} else if relative {
			source = relativePath(physical(p, name), physical(p, dir(to)))
		}
		if force {
			if old, err := lookup(p, to, false); err == nil && old.Kind() != vfs.Directory {
				if n, err := lookup(p, name, false); !symbolic && err == nil && n == old {
					p.Errorf("%s and %s are the same file", quoteName(name), quoteName(to))
					status = 1
					continue
				}
				_ = p.FS.Unlink(p.At(), to)
			}
		}
		var err error
		if symbolic {
			err = p.FS.Symlink(source, p.At(), to)
			if !try(p, err, "failed to create symbolic link %s", quoteName(to)) {
				status = 1
				continue
			}
		} else {
			err = p.FS.Link(p.At(), source, false, p.At(), to)
			if errors.Is(err, vfs.EEXIST) {
				try(p, err, "failed to create hard link %s", quoteName(to))
				status = 1
				continue
			}
			if !try(p, err, "failed to create hard link %s => %s", quoteName(to), quoteName(source)) {
				status = 1
				continue
			}
		}
		if verbose {
			arrow := "->"
			if !symbolic {
				arrow = "=>"
			}
			p.Out().Printf("%s %s %s\n", quoteName(to), arrow, quoteName(source))
		}
	}
	return status
}

// relativePath returns how one absolute path is reached from a folder.
func relativePath(path, from string) string {
	a, b := strings.Split(strings.Trim(path, "/"), "/"), strings.Split(strings.Trim(from, "/"), "/")
	if from == "/" {
		b = nil
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	parts := make([]string, 0, len(a)+len(b))
	for range len(b) - i {
		parts = append(parts, "..")
	}
	if parts = append(parts, a[i:]...); len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, "/")
}

func touch(p *program.Process) int {
	opts, names := p.Options(1, "acd:fhmr:t:", "no-create c", "date d", "no-dereference h", "reference r", "time=")
	at := p.Now()
	modified, access, create, follow := true, true, true, true
	only := ""
	var accessed time.Time
	for _, o := range opts {
		switch o.Name {
		case "a":
			only += "a"
		case "m":
			only += "m"
		case "time":
			if o.Value == "modify" || o.Value == "mtime" {
				only += "m"
			} else {
				only += "a"
			}
		case "c":
			create = false
		case "h":
			follow = false
		case "d":
			t, ok := ParseDate(o.Value, p.Now().UTC())
			if !ok {
				p.Errorf("invalid date format ‘%s’", o.Value)
				return 1
			}
			at = t
		case "t":
			t, ok := stamp(o.Value, p.Now().UTC())
			if !ok {
				p.Errorf("invalid date format ‘%s’", o.Value)
				return 1
			}
			at = t
		case "r":
			n, err := lookup(p, o.Value, true)
			if !try(p, err, "failed to get attributes of %s", quoteName(o.Value)) {
				return 1
			}
			at, accessed = n.Info().Modified, n.Info().Accessed
		}
	}
	if only != "" {
		access, modified = strings.Contains(only, "a"), strings.Contains(only, "m")
	}
	if len(names) == 0 {
		usage(p, 1, "missing file operand")
	}
	if accessed.IsZero() {
		accessed = at
	}
	status := 0
	for _, name := range names {
		n, err := lookup(p, name, follow)
		if errors.Is(err, vfs.ENOENT) {
			if !create {
				continue
			}
			var h *vfs.Handle
			if h, err = p.FS.Open(p.At(), name, vfs.Write|vfs.Create, 0o666&^p.Umask); err == nil {
				n = h.Node()
				_ = h.Close()
			}
		}
		if !try(p, err, "cannot touch %s", quoteName(name)) {
			status = 1
			continue
		}
		a, m := accessed, at
		if !access {
			a = time.Time{}
		}
		if !modified {
			m = time.Time{}
		}
		if n != nil && !try(p, n.Utimes(a, m), "setting times of %s", quoteName(name)) {
			status = 1
		}
	}
	return status
}

func chmod(p *program.Process) int {
	// A mode like -x is no option.
	args := []string{p.Args[0]}
	mode := ""
	for _, a := range p.Args[1:] {
		if mode == "" && len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "rwxXst,+=-ugoa01234567") == "" {
			mode = a
			continue
		}
		args = append(args, a)
	}
	p.Args = args
	opts, names := p.Options(1, "cfRv", "changes c", "silent f", "quiet f", "recursive R", "verbose v", "reference=", "preserve-root", "no-preserve-root")
	changes, silent, recursive, verbose, reference := false, false, false, false, ""
	for _, o := range opts {
		switch o.Name {
		case "c":
			changes = true
		case "f":
			silent = true
		case "R":
			recursive = true
		case "v":
			verbose = true
		case "reference":
			reference = o.Value
		}
	}
	exact := uint32(0)
	if reference != "" {
		n, err := lookup(p, reference, true)
		if !try(p, err, "failed to get attributes of %s", quoteName(reference)) {
			return 1
		}
		exact = n.Info().Mode
	} else if mode == "" {
		if len(names) == 0 {
			usage(p, 1, "missing operand")
		}
		mode, names = names[0], names[1:]
	}
	if _, ok := program.Mode(mode, 0, 0, false); reference == "" && !ok {
		usage(p, 1, "invalid mode: ‘%s’", mode)
	}
	if len(names) == 0 {
		usage(p, 1, "missing operand after ‘%s’", mode)
	}
	status := 0
	var change func(name string, n *vfs.Node)
	change = func(name string, n *vfs.Node) {
		p.Charge(50)
		old := n.Info().Mode
		m := exact
		if reference == "" {
			m, _ = program.Mode(mode, old, p.Umask, n.Kind() == vfs.Directory)
		}
		if err := n.Chmod(m); err != nil {
			p.Check(err)
			if !silent {
				try(p, err, "changing permissions of %s", quoteName(name))
			}
			status = 1
			return
		}
		switch {
		case (verbose || changes) && m != old:
			p.Out().Printf("mode of %s changed from %04o (%s) to %04o (%s)\n", quoteName(name), old, permissions(old), m, permissions(m))
		case verbose:
			p.Out().Printf("mode of %s retained as %04o (%s)\n", quoteName(name), m, permissions(m))
		}
		if recursive && n.Kind() == vfs.Directory {
			entries, err := n.List()
			if !try(p, err, "cannot read directory %s", quoteName(name)) {
				status = 1
				return
			}
			for _, e := range entries {
				if e.Node.Kind() != vfs.Symlink {
					change(join(name, e.Name), e.Node)
				}
			}
		}
	}
	for _, name := range names {
		n, err := lookup(p, name, true)
		if err != nil {
			if !silent {
				try(p, err, "cannot access %s", quoteName(name))
			}
			status = 1
			continue
		}
		change(name, n)
	}
	return status
}

// chown knows one user only: what gives the files to somebody else is refused.
func chown(p *program.Process) int {
	_, names := p.Options(1, "cfhRvHLP", "changes c", "quiet f", "silent f", "recursive R", "verbose v", "no-dereference h", "reference=", "from=")
	if len(names) < 2 {
		usage(p, 1, "missing operand")
	}
	switch strings.Trim(names[0], ":.0123456789") {
	case "", "root", "root:root", "root.root":
	default:
		p.Errorf("invalid user: ‘%s’", names[0])
		return 1
	}
	status := 0
	for _, name := range names[1:] {
		if _, err := lookup(p, name, true); !try(p, err, "cannot access %s", quoteName(name)) {
			status = 1
		}
	}
	if strings.ContainsAny(names[0], "123456789") {
		p.Lack(program.LackFeature, "owners of files")
		p.Errorf("changing ownership of %s: Operation not permitted", quoteName(names[1]))
		return 1
	}
	return status
}

func readlink(p *program.Process) int {
	opts, names := p.Options(1, "efmnqsvz", "canonicalize f", "canonicalize-existing e", "canonicalize-missing m", "no-newline n", "quiet q", "silent s", "verbose v", "zero z")
	mode, newline, end, verbose := byte(0), true, "\n", false
	for _, o := range opts {
		switch o.Name {
		case "e", "f", "m":
			mode = o.Name[0]
		case "n":
			newline = false
		case "z":
			end = "\x00"
		case "v":
			verbose = true
		}
	}
	if len(names) == 0 {
		usage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		var s string
		var err error
		if mode != 0 {
			s, err = canonical(p, name, mode)
		} else {
			s, err = p.FS.Readlink(p.At(), name)
			p.Check(err)
		}
		if err != nil {
			if verbose {
				try(p, err, "%s", name)
			}
			status = 1
			continue
		}
		_, _ = p.Out().WriteString(s)
		if newline || len(names) > 1 {
			_, _ = p.Out().WriteString(end)
		}
	}
	return status
}

// canonical resolves all links of a path. mode is 'e' where everything has to be there, 'f' where the last element need not, 'm' where nothing has to.
func canonical(p *program.Process, path string, mode byte) (string, error) {
	if path == "" {
		return "", vfs.ENOENT
	}
	at := physicalCwd(p)
	if path[0] == '/' {
		at = "/"
	}
	rest := path
	links := 0
	missing := false
	for rest != "" {
		p.Charge(20)
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = dir(at)
			continue
		}
		full := join(at, name)
		if missing {
			at = full
			continue
		}
		n, err := lookup(p, full, false)
		last := strings.Trim(rest, "/") == ""
		switch {
		case errors.Is(err, vfs.ENOENT) && (mode == 'm' || mode == 'f' && last):
			missing = true
			at = full
			continue
		case errors.Is(err, vfs.ENOTDIR) && mode == 'm':
			missing = true
			at = full
			continue
		case err != nil:
			return "", err
		case n.Kind() == vfs.Symlink:
			if links++; links > vfs.MaxSymlinks {
				return "", vfs.ELOOP
			}
			target := n.Target()
			if rest != "" {
				target += "/" + rest
			}
			rest = target
			if strings.HasPrefix(target, "/") {
				at = "/"
			}
			continue
		case !last && n.Kind() != vfs.Directory && mode != 'm':
			return "", vfs.ENOTDIR
		}
		at = full
	}
	return at, nil
}

func physicalCwd(p *program.Process) string {
	path, err := p.Cwd.Path()
	if err != nil {
		return "/"
	}
	return path
}

func physical(p *program.Process, path string) string {
	s, err := canonical(p, path, 'm')
	if err != nil {
		return path
	}
	return s
}

func realpath(p *program.Process) int {
	opts, names := p.Options(1, "eLmPqsz", "canonicalize-existing e", "canonicalize-missing m", "quiet q", "strip s", "no-symlinks s", "zero z", "relative-to=", "relative-base=")
	mode, quiet, end, strip, relative := byte('f'), false, "\n", false, ""
	for _, o := range opts {
		switch o.Name {
		case "e", "m":
			mode = o.Name[0]
		case "q":
			quiet = true
		case "s", "L":
			strip = o.Name == "s"
		case "z":
			end = "\x00"
		case "relative-to":
			relative = o.Value
		}
	}
	if len(names) == 0 {
		usage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		s, err := canonical(p, name, mode)
		if strip && err == nil {
			s = name
			if !strings.HasPrefix(s, "/") {
				s = join(physicalCwd(p), s)
			}
			s = clean(s)
		}
		if err != nil {
			if !quiet {
				try(p, err, "%s", name)
			}
			status = 1
			continue
		}
		if relative != "" {
			s = relativePath(s, physical(p, relative))
		}
		_, _ = p.Out().WriteString(s + end)
	}
	return status
}

func clean(path string) string {
	var parts []string
	for _, e := range strings.Split(path, "/") {
		switch e {
		case "", ".":
		case "..":
			parts = parts[:max(len(parts)-1, 0)]
		default:
			parts = append(parts, e)
		}
	}
	return "/" + strings.Join(parts, "/")
}

func basename(p *program.Process) int {
	opts, names := p.Options(1, "+as:z", "multiple a", "suffix s", "zero z")
	multiple, suffix, end := false, "", "\n"
	for _, o := range opts {
		switch o.Name {
		case "a":
			multiple = true
		case "s":
			multiple, suffix = true, o.Value
		case "z":
			end = "\x00"
		}
	}
	switch {
	case len(names) == 0:
		usage(p, 1, "missing operand")
	case !multiple && len(names) > 2:
		usage(p, 1, "extra operand ‘%s’", names[2])
	case !multiple && len(names) == 2:
		names, suffix = names[:1], names[1]
	}
	for _, name := range names {
		b := base(name)
		if b != suffix {
			b = strings.TrimSuffix(b, suffix)
		}
		_, _ = p.Out().WriteString(b + end)
	}
	return 0
}

func dirname(p *program.Process) int {
	opts, names := p.Options(1, "z", "zero z")
	end := "\n"
	if len(opts) > 0 {
		end = "\x00"
	}
	if len(names) == 0 {
		usage(p, 1, "missing operand")
	}
	for _, name := range names {
		_, _ = p.Out().WriteString(dir(name) + end)
	}
	return 0
}

func mktemp(p *program.Process) int {
	opts, names := p.Options(1, "dp:qtu", "directory d", "quiet q", "dry-run u", "tmpdir=?", "suffix=")
	folder, quiet, dry, where, suffix, useDir := false, false, false, "", "", false
	for _, o := range opts {
		switch o.Name {
		case "d":
			folder = true
		case "q":
			quiet = true
		case "u":
			dry = true
		case "p", "tmpdir":
			where, useDir = o.Value, true
		case "t":
			useDir = true
		case "suffix":
			suffix = o.Value
		}
	}
	template := "tmp.XXXXXXXXXX"
	switch len(names) {
	case 0:
		useDir = true
	case 1:
		template = names[0]
	default:
		usage(p, 1, "too many templates")
	}
	if where == "" && useDir {
		if where = p.Getenv("TMPDIR"); where == "" {
			where = "/tmp"
		}
	}
	if suffix == "" {
		if i := strings.LastIndexByte(template, 'X'); i >= 0 && i+1 < len(template) {
			template, suffix = template[:i+1], template[i+1:]
		}
	}
	head := strings.TrimRight(template, "X")
	count := len(template) - len(head)
	if count < 3 {
		if !quiet {
			p.Errorf("too few X's in template ‘%s’", template+suffix)
		}
		return 1
	}
	if useDir {
		head = join(where, head)
	}
	for range 100 {
		random := make([]byte, count)
		p.Account.Entropy(random)
		name := head + base32.NewEncoding("abcdefghijkmnpqrstuvwxyzABCDEFGH").EncodeToString(random)[:count] + suffix
		var err error
		switch {
		case dry:
			if _, lerr := lookup(p, name, false); lerr == nil {
				err = vfs.EEXIST
			}
		case folder:
			err = p.FS.Mkdir(p.At(), name, 0o700)
		default:
			var h *vfs.Handle
			if h, err = p.FS.Open(p.At(), name, vfs.Write|vfs.Create|vfs.Exclusive, 0o600); err == nil {
				_ = h.Close()
			}
		}
		if errors.Is(err, vfs.EEXIST) {
			continue
		}
		if err != nil {
			p.Check(err)
			if !quiet {
				kind := "file"
				if folder {
					kind = "directory"
				}
				p.Errorf("failed to create %s via template ‘%s’: %s", kind, head+strings.Repeat("X", count)+suffix, program.Message(err))
			}
			return 1
		}
		_, _ = p.Out().WriteString(name + "\n")
		return 0
	}
	p.Errorf("failed to create file via template ‘%s’: File exists", template)
	return 1
}

func pwd(p *program.Process) int {
	opts, _ := p.Options(1, "LP", "logical L", "physical P")
	path := physicalCwd(p)
	for _, o := range opts {
		if logical := p.Getenv("PWD"); o.Name == "L" && logical != "" {
			if n, err := lookup(p, logical, true); err == nil && n == p.Cwd {
				path = logical
			}
		}
	}
	_, _ = p.Out().WriteString(path + "\n")
	return 0
}
