package coreutils

import (
	"errors"
	"strings"
	"time"

	"agentbox/internal/userland/dates"
	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

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
		gnu.FailUsage(p, 1, "missing operand")
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
		if !gnu.Try(p, p.FS.Mkdir(p.At(), name, perm), "cannot create directory ‘%s’", name) {
			status = 1
		} else if verbose {
			p.Out().Printf("%s: created directory %s\n", p.Name(), gnu.QuoteName(name))
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
			if gnu.IsDir(p, part) {
				continue
			}
			if !last && errors.Is(err, vfs.EEXIST) {
				err = vfs.ENOTDIR
			}
		}
		if !gnu.Try(p, err, "cannot create directory ‘%s’", part) {
			return false
		}
		if verbose {
			p.Out().Printf("%s: created directory %s\n", p.Name(), gnu.QuoteName(part))
		}
		if last {
			break
		}
	}
	return true
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
			t, ok := dates.ParseDate(o.Value, p.Now().In(p.Zone()))
			if !ok {
				p.Errorf("invalid date format ‘%s’", o.Value)
				return 1
			}
			at = t
		case "t":
			t, ok := stamp(o.Value, p.Now().In(p.Zone()))
			if !ok {
				p.Errorf("invalid date format ‘%s’", o.Value)
				return 1
			}
			at = t
		case "r":
			n, err := gnu.Lookup(p, o.Value, true)
			if !gnu.Try(p, err, "failed to get attributes of %s", gnu.QuoteName(o.Value)) {
				return 1
			}
			at, accessed = n.Info().Modified, n.Info().Accessed
		}
	}
	if only != "" {
		access, modified = strings.Contains(only, "a"), strings.Contains(only, "m")
	}
	if len(names) == 0 {
		gnu.FailUsage(p, 1, "missing file operand")
	}
	if accessed.IsZero() {
		accessed = at
	}
	status := 0
	for _, name := range names {
		n, err := gnu.Lookup(p, name, follow)
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
		if !gnu.Try(p, err, "cannot touch %s", gnu.QuoteName(name)) {
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
		if n != nil && !gnu.Try(p, n.Utimes(a, m), "setting times of %s", gnu.QuoteName(name)) {
			status = 1
		}
	}
	return status
}

func chmod(p *program.Process) int {
	// A mode like -x is not an option.
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
	opts, names := p.Options(1, "cfRv", "changes c", "silent f", "quiet f", "recursive R", "verbose v", "reference=", "preserve-root",
		"no-preserve-root")
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
		n, err := gnu.Lookup(p, reference, true)
		if !gnu.Try(p, err, "failed to get attributes of %s", gnu.QuoteName(reference)) {
			return 1
		}
		exact = n.Info().Mode
	} else if mode == "" {
		if len(names) == 0 {
			gnu.FailUsage(p, 1, "missing operand")
		}
		mode, names = names[0], names[1:]
	}
	if _, ok := program.Mode(mode, 0, 0, false); reference == "" && !ok {
		gnu.FailUsage(p, 1, "invalid mode: ‘%s’", mode)
	}
	if len(names) == 0 {
		gnu.FailUsage(p, 1, "missing operand after ‘%s’", mode)
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
				gnu.Try(p, err, "changing permissions of %s", gnu.QuoteName(name))
			}
			status = 1
			return
		}
		switch {
		case (verbose || changes) && m != old:
			p.Out().Printf("mode of %s changed from %04o (%s) to %04o (%s)\n", gnu.QuoteName(name), old, permissions(old), m, permissions(m))
		case verbose:
			p.Out().Printf("mode of %s retained as %04o (%s)\n", gnu.QuoteName(name), m, permissions(m))
		}
		if recursive && n.Kind() == vfs.Directory {
			entries, err := n.List()
			if !gnu.Try(p, err, "cannot read directory %s", gnu.QuoteName(name)) {
				status = 1
				return
			}
			for _, e := range entries {
				if e.Node.Kind() != vfs.Symlink {
					change(gnu.Join(name, e.Name), e.Node)
				}
			}
		}
	}
	for _, name := range names {
		n, err := gnu.Lookup(p, name, true)
		if err != nil {
			if !silent {
				gnu.Try(p, err, "cannot access %s", gnu.QuoteName(name))
			}
			status = 1
			continue
		}
		change(name, n)
	}
	return status
}

// chown knows one user only, and refuses to give files to another one.
func chown(p *program.Process) int {
	_, names := p.Options(1, "cfhRvHLP", "changes c", "quiet f", "silent f", "recursive R", "verbose v", "no-dereference h", "reference=",
		"from=")
	if len(names) < 2 {
		gnu.FailUsage(p, 1, "missing operand")
	}
	switch strings.Trim(names[0], ":.0123456789") {
	case "", "root", "root:root", "root.root":
	default:
		p.Errorf("invalid user: ‘%s’", names[0])
		return 1
	}
	status := 0
	for _, name := range names[1:] {
		if _, err := gnu.Lookup(p, name, true); !gnu.Try(p, err, "cannot access %s", gnu.QuoteName(name)) {
			status = 1
		}
	}
	if strings.ContainsAny(names[0], "123456789") {
		p.Lack(program.LackFeature, "owners of files")
		p.Errorf("changing ownership of %s: Operation not permitted", gnu.QuoteName(names[1]))
		return 1
	}
	return status
}
