package coreutils

import (
	"errors"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

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
		gnu.FailUsage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		for {
			if verbose {
				p.Out().Printf("%s: removing directory, %s\n", p.Name(), gnu.QuoteName(name))
			}
			err := p.FS.Rmdir(p.At(), name)
			if ignore && errors.Is(err, vfs.ENOTEMPTY) {
				break
			}
			if !gnu.Try(p, err, "failed to remove %s", gnu.QuoteName(name)) {
				status = 1
				break
			}
			if name = gnu.Dir(name); !parents || name == "." || name == "/" {
				break
			}
		}
	}
	return status
}

func unlink(p *program.Process) int {
	_, names := p.Options(1, "")
	if len(names) != 1 {
		gnu.FailUsage(p, 1, "missing operand")
	}
	if !gnu.Try(p, p.FS.Unlink(p.At(), names[0]), "cannot unlink %s", gnu.QuoteName(names[0])) {
		return 1
	}
	return 0
}

func rm(p *program.Process) int {
	opts, names := p.Options(1, "dfiIrRv", "dir d", "force f", "recursive r", "verbose v", "interactive=?", "one-file-system",
		"no-preserve-root", "preserve-root=?")
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
		gnu.FailUsage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		if b := gnu.LastPart(name); recursive && (b == "." || b == "..") {
			p.Errorf("refusing to remove '.' or '..' directory: skipping %s", gnu.QuoteName(name))
			status = 1
			continue
		}
		if recursive && strings.Trim(name, "/") == "" {
			p.Errorf("it is dangerous to operate recursively on '/'")
			p.Errorf("use --no-preserve-root to override this failsafe")
			status = 1
			continue
		}
		n, err := gnu.Lookup(p, strings.TrimRight(name, "/"), false)
		if err != nil {
			if !force || !errors.Is(err, vfs.ENOENT) && !errors.Is(err, vfs.ENOTDIR) {
				gnu.Try(p, err, "cannot remove %s", gnu.QuoteName(name))
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
		if !gnu.Try(p, p.FS.Unlink(p.At(), name), "cannot remove %s", gnu.QuoteName(name)) {
			return false
		}
		if verbose {
			p.Out().Printf("removed %s\n", gnu.QuoteName(name))
		}
		return true
	}
	if !recursive && !folders {
		p.Errorf("cannot remove %s: Is a directory", gnu.QuoteName(name))
		return false
	}
	ok := true
	if recursive {
		entries, err := n.List()
		if !gnu.Try(p, err, "cannot remove %s", gnu.QuoteName(name)) {
			return false
		}
		for _, e := range entries {
			ok = remove(p, gnu.Join(name, e.Name), e.Node, true, false, verbose) && ok
		}
	}
	if !ok {
		return false
	}
	if !gnu.Try(p, p.FS.Rmdir(p.At(), name), "cannot remove %s", gnu.QuoteName(name)) {
		return false
	}
	if verbose {
		p.Out().Printf("removed directory %s\n", gnu.QuoteName(name))
	}
	return true
}
