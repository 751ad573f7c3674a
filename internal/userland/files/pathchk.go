package files

import (
	"errors"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Longest names of files, in bytes: on every POSIX system, and here.
const (
	posixNameMax, nameMax = 14, 255
	posixPathMax, pathMax = 256, 4096
)

// portable are the characters that names of files may have on every POSIX system.
const portable = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/"

// pathchk tells which names cannot be those of files.
func pathchk(p *program.Process) int {
	opts, operands := p.Options(1, "+pP", "portability")
	basic, extra := false, false
	for _, o := range opts {
		basic = basic || o.Name != "P"
		extra = extra || o.Name != "p"
	}
	if len(operands) == 0 {
		return gnu.WrongUsage(p, "missing operand")
	}
	code := 0
	for _, name := range operands {
		p.Charge(200 + len(name)*4)
		if complaint := checkPath(p, name, basic, extra); complaint != "" {
			p.Errorf("%s", complaint)
			code = 1
		}
	}
	return code
}

// checkPath returns what is wrong with a name, "" for nothing.
func checkPath(p *program.Process, name string, basic, extra bool) string {
	exists := false
	switch {
	case extra && (strings.HasPrefix(name, "-") || strings.Contains(name, "/-")):
		return "leading '-' in a component of file name " + gnu.Apostrophes(name)
	case (basic || extra) && name == "":
		return "empty file name"
	case basic:
		if i := strings.IndexFunc(name, func(c rune) bool { return !strings.ContainsRune(portable, c) }); i >= 0 {
			_, n := utf8.DecodeRuneInString(name[i:])
			return "nonportable character " + gnu.Quote(name[i:i+n]) + " in file name " + gnu.Apostrophes(name)
		}
	default:
		_, err := p.FS.Stat(p.At(), name, false)
		if exists = err == nil; !exists && (!errors.Is(err, vfs.ENOENT) || name == "") {
			return gnu.BareOrQuoted(name) + ": " + program.Message(err)
		}
	}
	longest, path := nameMax, pathMax
	if basic {
		longest, path = posixNameMax, posixPathMax
	}
	if exists {
		return ""
	}
	if len(name) >= path {
		return gnu.TooLong(path-1, len(name)) + "file name " + gnu.Apostrophes(name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > longest {
			return gnu.TooLong(longest, len(part)) + "file name component " + gnu.Quote(part)
		}
	}
	return ""
}
