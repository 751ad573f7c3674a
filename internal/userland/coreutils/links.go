package coreutils

import (
	"errors"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

func ln(p *program.Process) int {
	opts, names := p.Options(1, "sfnvt:TrbiLPS:", "symbolic s", "force f", "no-dereference n", "verbose v", "target-directory t",
		"no-target-directory T", "relative r", "logical L", "physical P")
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
			gnu.FailUsage(p, 1, "option -%s is not supported in a nano space", o.Name)
		}
	}
	if len(names) == 1 && target == "" && !noTarget {
		names = append(names, ".")
	}
	if len(names) == 0 {
		gnu.FailUsage(p, 1, "missing file operand")
	}
	names, target = operands(p, names, target, noTarget)
	status := 0
	for _, name := range names {
		to := target
		if n, err := gnu.Lookup(p, target, !noFollow); !noTarget && err == nil && n.Kind() == vfs.Directory {
			to = gnu.Join(target, gnu.LastPart(name))
		}
		source := name
		if !symbolic {
			n, err := gnu.Lookup(p, name, false)
			if err != nil {
				gnu.Try(p, err, "failed to access %s", gnu.QuoteName(name))
				status = 1
				continue
			}
			if n.Kind() == vfs.Directory {
				p.Errorf("%s: hard link not allowed for directory", name)
				status = 1
				continue
			}
		} else if relative {
			source = relativePath(physical(p, name), physical(p, gnu.Dir(to)))
		}
		if force {
			if old, err := gnu.Lookup(p, to, false); err == nil && old.Kind() != vfs.Directory {
				if n, err := gnu.Lookup(p, name, false); !symbolic && err == nil && n == old {
					p.Errorf("%s and %s are the same file", gnu.QuoteName(name), gnu.QuoteName(to))
					status = 1
					continue
				}
				_ = p.FS.Unlink(p.At(), to)
			}
		}
		var err error
		if symbolic {
			err = p.FS.Symlink(source, p.At(), to)
			if !gnu.Try(p, err, "failed to create symbolic link %s", gnu.QuoteName(to)) {
				status = 1
				continue
			}
		} else {
			err = p.FS.Link(p.At(), source, false, p.At(), to)
			if errors.Is(err, vfs.EEXIST) {
				gnu.Try(p, err, "failed to create hard link %s", gnu.QuoteName(to))
				status = 1
				continue
			}
			if !gnu.Try(p, err, "failed to create hard link %s => %s", gnu.QuoteName(to), gnu.QuoteName(source)) {
				status = 1
				continue
			}
		}
		if verbose {
			arrow := "->"
			if !symbolic {
				arrow = "=>"
			}
			p.Out().Printf("%s %s %s\n", gnu.QuoteName(to), arrow, gnu.QuoteName(source))
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

func readlink(p *program.Process) int {
	opts, names := p.Options(1, "efmnqsvz", "canonicalize f", "canonicalize-existing e", "canonicalize-missing m", "no-newline n", "quiet q",
		"silent s", "verbose v", "zero z")
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
		gnu.FailUsage(p, 1, "missing operand")
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
				gnu.Try(p, err, "%s", name)
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

// canonical resolves all links of a path. mode is 'e' where everything has to be there, 'f' where the last element need not, 'm' where
// nothing has to.
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
			at = gnu.Dir(at)
			continue
		}
		full := gnu.Join(at, name)
		if missing {
			at = full
			continue
		}
		n, err := gnu.Lookup(p, full, false)
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
	opts, names := p.Options(1, "eLmPqsz", "canonicalize-existing e", "canonicalize-missing m", "quiet q", "strip s", "no-symlinks s",
		"zero z", "relative-to=", "relative-base=")
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
		gnu.FailUsage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		s, err := canonical(p, name, mode)
		if strip && err == nil {
			s = name
			if !strings.HasPrefix(s, "/") {
				s = gnu.Join(physicalCwd(p), s)
			}
			s = clean(s)
		}
		if err != nil {
			if !quiet {
				gnu.Try(p, err, "%s", name)
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

// link is ln of one name onto another.
func link(p *program.Process) int {
	_, names := p.Options(1, "")
	switch {
	case len(names) == 0:
		gnu.FailUsage(p, 1, "missing operand")
	case len(names) == 1:
		gnu.FailUsage(p, 1, "missing operand after ‘%s’", names[0])
	case len(names) > 2:
		gnu.FailUsage(p, 1, "extra operand ‘%s’", names[2])
	}
	p.Args = []string{p.Args[0], "-T", "--", names[0], names[1]}
	return ln(p)
}
