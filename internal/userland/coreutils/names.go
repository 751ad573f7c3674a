package coreutils

import (
	"encoding/base32"
	"errors"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

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
		gnu.FailUsage(p, 1, "missing operand")
	case !multiple && len(names) > 2:
		gnu.FailUsage(p, 1, "extra operand ‘%s’", names[2])
	case !multiple && len(names) == 2:
		names, suffix = names[:1], names[1]
	}
	for _, name := range names {
		b := gnu.LastPart(name)
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
		gnu.FailUsage(p, 1, "missing operand")
	}
	for _, name := range names {
		_, _ = p.Out().WriteString(gnu.Dir(name) + end)
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
		gnu.FailUsage(p, 1, "too many templates")
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
		head = gnu.Join(where, head)
	}
	for range 100 {
		random := make([]byte, count)
		p.Account.Entropy(random)
		name := head + base32.NewEncoding("abcdefghijkmnpqrstuvwxyzABCDEFGH").EncodeToString(random)[:count] + suffix
		var err error
		switch {
		case dry:
			if _, lerr := gnu.Lookup(p, name, false); lerr == nil {
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
			if n, err := gnu.Lookup(p, logical, true); err == nil && n == p.Cwd {
				path = logical
			}
		}
	}
	_, _ = p.Out().WriteString(path + "\n")
	return 0
}
