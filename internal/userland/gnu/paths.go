package gnu

import (
	"strings"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Lookup returns what a path leads to.
func Lookup(p *program.Process, path string, follow bool) (*vfs.Node, error) {
	n, err := p.FS.Lookup(p.At(), path, follow)
	p.Check(err)
	return n, err
}

// IsDir reports whether a path leads to a folder.
func IsDir(p *program.Process, path string) bool {
	n, err := Lookup(p, path, true)
	return err == nil && n.Kind() == vfs.Directory
}

// Try reports whether an operation succeeded. It writes the error to stderr after the formatted text.
func Try(p *program.Process, err error, format string, args ...any) bool {
	if err == nil {
		return true
	}
	p.Check(err)
	p.Errorf(format+": %s", append(args, program.Message(err))...)
	return false
}

// LastPart returns the last element of a path.
func LastPart(path string) string {
	trimmed := strings.TrimRight(path, "/")
	if trimmed == "" {
		if path == "" {
			return ""
		}
		return "/"
	}
	return trimmed[strings.LastIndexByte(trimmed, '/')+1:]
}

// Dir returns what stands before the last element of a path.
func Dir(path string) string {
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
