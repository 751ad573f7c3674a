package coreutils

import (
	"errors"
	"io"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// copier is one cp, or one mv between mounts.
type copier struct {
	p                                          *program.Process
	recursive, force, keepTimes, keepMode      bool
	links                                      bool // copied as such
	noClobber, update, verbose, hard, symbolic bool
	status                                     int
}

func cp(p *program.Process) int {
	opts, names := p.Options(1, "abdfHilLnPprRst:TuvxS:", "archive a", "force f", "dereference L", "no-dereference P", "no-clobber n",
		"preserve=?", "recursive r", "symbolic-link s",
		"target-directory t", "no-target-directory T", "update=?", "verbose v", "link l", "interactive i", "parents", "reflink=?", "sparse=",
		"remove-destination", "backup=?",
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
			gnu.FailUsage(p, 1, "option -%s is not supported in a nano space", o.Name)
		}
	}
	if c.recursive && !follow {
		c.links = true
	}
	names, target = operands(p, names, target, noTarget)
	for _, name := range names {
		to := target
		if !noTarget && gnu.IsDir(p, target) {
			if parents {
				if d := gnu.Dir(name); d != "." {
					mkdirAll(p, gnu.Join(target, d), 0o777&^p.Umask, false)
				}
				to = gnu.Join(target, name)
			} else {
				to = gnu.Join(target, gnu.LastPart(name))
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
		gnu.FailUsage(p, 1, "missing file operand")
	case target != "":
		if !gnu.IsDir(p, target) {
			p.Errorf("target directory %s: %s", gnu.QuoteName(target), absence(p, target))
			p.Exit(1)
		}
		return names, target
	case len(names) == 1:
		gnu.FailUsage(p, 1, "missing destination file operand after %s", gnu.QuoteName(names[0]))
	case noTarget && len(names) > 2:
		gnu.FailUsage(p, 1, "extra operand %s", gnu.QuoteName(names[2]))
	}
	to = names[len(names)-1]
	if len(names) > 2 && !gnu.IsDir(p, to) {
		p.Errorf("target %s: %s", gnu.QuoteName(to), absence(p, to))
		p.Exit(1)
	}
	return names[:len(names)-1], to
}

func absence(p *program.Process, path string) string {
	if _, err := gnu.Lookup(p, path, true); err != nil {
		return program.Message(err)
	}
	return vfs.ENOTDIR.Error()
}

func (c *copier) fail(err error, format string, args ...any) {
	gnu.Try(c.p, err, format, args...)
	c.status = 1
}

// copy copies one thing to a path.
func (c *copier) copy(from, to string, depth int) {
	p := c.p
	p.Charge(100)
	n, err := gnu.Lookup(p, from, !c.links)
	if err != nil {
		c.fail(err, "cannot stat %s", gnu.QuoteName(from))
		return
	}
	info := n.Info()
	if info.IsDir() && !c.recursive {
		p.Errorf("-r not specified; omitting directory %s", gnu.QuoteName(from))
		c.status = 1
		return
	}
	old, err := gnu.Lookup(p, to, !c.links || !info.IsDir())
	if err != nil && !errors.Is(err, vfs.ENOENT) {
		c.fail(err, "cannot stat %s", gnu.QuoteName(to))
		return
	}
	if err == nil {
		switch {
		case old == n:
			p.Errorf("%s and %s are the same file", gnu.QuoteName(from), gnu.QuoteName(to))
			c.status = 1
			return
		case c.noClobber && !info.IsDir():
			return
		case c.update && !info.IsDir() && !info.Modified.After(old.Info().Modified):
			return
		case info.IsDir() && old.Kind() != vfs.Directory:
			p.Errorf("cannot overwrite non-directory %s with directory %s", gnu.QuoteName(to), gnu.QuoteName(from))
			c.status = 1
			return
		case !info.IsDir() && old.Kind() == vfs.Directory:
			p.Errorf("cannot overwrite directory %s with non-directory", gnu.QuoteName(to))
			c.status = 1
			return
		}
	} else {
		old = nil
	}
	if c.verbose && (!info.IsDir() || old == nil) {
		p.Out().Printf("%s -> %s\n", gnu.QuoteName(from), gnu.QuoteName(to))
	}
	switch {
	case info.IsDir():
		c.folder(from, to, n, old, depth)
		return
	case c.symbolic:
		if err := p.FS.Symlink(from, p.At(), to); err != nil {
			c.fail(err, "cannot create symbolic link %s to %s", gnu.QuoteName(to), gnu.QuoteName(from))
		}
		return
	case c.hard:
		if err := p.FS.Link(p.At(), from, false, p.At(), to); err != nil {
			c.fail(err, "cannot create hard link %s to %s", gnu.QuoteName(to), gnu.QuoteName(from))
		}
		return
	case info.Kind == vfs.Symlink:
		if old != nil {
			_ = p.FS.Unlink(p.At(), to)
		}
		if err := p.FS.Symlink(n.Target(), p.At(), to); err != nil {
			c.fail(err, "cannot create symbolic link %s", gnu.QuoteName(to))
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
		c.fail(err, "cannot open %s for reading", gnu.QuoteName(from))
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
		c.fail(err, "cannot create regular file %s", gnu.QuoteName(to))
		return
	}
	defer func() { _ = out.Close() }()
	if err := c.bytes(in, out); err != nil {
		c.fail(err, "error copying %s to %s", gnu.QuoteName(from), gnu.QuoteName(to))
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
		c.fail(err, "cannot access %s", gnu.QuoteName(from))
		return
	}
	if old == nil {
		if err := p.FS.Mkdir(p.At(), to, n.Info().Mode&^p.Umask|0o300); err != nil {
			c.fail(err, "cannot create directory %s", gnu.QuoteName(to))
			return
		}
		if old, err = gnu.Lookup(p, to, true); err != nil {
			return
		}
	}
	for d := old; ; {
		if d == n {
			p.Errorf("cannot copy a directory, %s, into itself, %s", gnu.QuoteName(from), gnu.QuoteName(to))
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
		c.copy(gnu.Join(from, e.Name), gnu.Join(to, e.Name), depth+1)
	}
	c.attributes(to, n)
}

func mv(p *program.Process) int {
	opts, names := p.Options(1, "bfint:TuvS:", "force f", "interactive i", "no-clobber n", "target-directory t", "no-target-directory T",
		"update=?", "verbose v", "backup=?",
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
			gnu.FailUsage(p, 1, "option -%s is not supported in a nano space", o.Name)
		}
	}
	names, target = operands(p, names, target, noTarget)
	for _, name := range names {
		to := target
		if !noTarget && gnu.IsDir(p, target) {
			to = gnu.Join(target, gnu.LastPart(name))
		}
		c.move(name, to)
	}
	return c.status
}

func (c *copier) move(from, to string) {
	p := c.p
	n, err := gnu.Lookup(p, from, false)
	if err != nil {
		c.fail(err, "cannot stat %s", gnu.QuoteName(from))
		return
	}
	if old, err := gnu.Lookup(p, to, false); err == nil {
		switch {
		case old == n:
			p.Errorf("%s and %s are the same file", gnu.QuoteName(from), gnu.QuoteName(to))
			c.status = 1
			return
		case c.noClobber:
			return
		case c.update && !n.Info().Modified.After(old.Info().Modified):
			return
		case n.Kind() == vfs.Directory && old.Kind() != vfs.Directory:
			p.Errorf("cannot overwrite non-directory %s with directory %s", gnu.QuoteName(to), gnu.QuoteName(from))
			c.status = 1
			return
		case n.Kind() != vfs.Directory && old.Kind() == vfs.Directory:
			p.Errorf("cannot overwrite directory %s with non-directory", gnu.QuoteName(to))
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
		p.Errorf("cannot move %s to a subdirectory of itself, %s", gnu.QuoteName(from), gnu.QuoteName(to))
		c.status = 1
		return
	case err != nil:
		c.fail(err, "cannot move %s to %s", gnu.QuoteName(from), gnu.QuoteName(to))
		return
	}
	if c.verbose {
		p.Out().Printf("renamed %s -> %s\n", gnu.QuoteName(from), gnu.QuoteName(to))
	}
}
