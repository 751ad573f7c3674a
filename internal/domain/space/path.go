package space

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
)

// The bounds of a path inside a space.
const (
	MaxPathRunes     = 255 // characters of the whole path as it was sent
	MaxNameBytes     = 255 // bytes of one name in it, the limit of Linux file systems
	maxShownPathRune = 80  // of a refused path in the error
)

// CleanPath is the one place that checks paths. It returns the path relative to the space's files, with single slashes and without "." and
// trailing slashes; "." names the root folder of the files. It refuses a path with the code invalid_path in these cases:
//   - it is empty, absolute, not UTF-8, or longer than MaxPathRunes characters;
//   - it holds a ".." name, a control character, a backslash, or a name longer than MaxNameBytes.
//
// Code inside a space may make names that are refused here. They are listed, but only commands can reach them.
func CleanPath(p string) (string, error) {
	switch {
	case p == "":
		return "", invalidPath("the path is empty; name a file relative to the space's files")
	case !utf8.ValidString(p):
		return "", invalidPath("the path is not UTF-8 text")
	case utf8.RuneCountInString(p) > MaxPathRunes:
		return "", invalidPath("the path has %d characters; at most %d are taken", utf8.RuneCountInString(p), MaxPathRunes)
	case strings.ContainsRune(p, 0):
		return "", invalidPath("the path %s holds a NUL byte", shown(p))
	case strings.ContainsFunc(p, unicode.IsControl):
		return "", invalidPath("the path %s holds a control character", shown(p))
	case strings.Contains(p, `\`):
		return "", invalidPath("the path %s holds a backslash; separate names with /", shown(p))
	case p[0] == '/':
		return "", invalidPath("the path %s is absolute; name it relative to the space's files", shown(p))
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == ".." {
			return "", invalidPath("the path %s holds .. as a name; a path never goes up", shown(p))
		}
		if len(name) > MaxNameBytes {
			return "", invalidPath("a name in the path has %d bytes; at most %d are taken", len(name), MaxNameBytes)
		}
	}
	return path.Clean(p), nil
}

// CleanFilePath is CleanPath for the path of a file: it also refuses the root folder of the files.
func CleanFilePath(p string) (string, error) {
	clean, err := CleanPath(p)
	if err == nil && clean == "." {
		return "", invalidPath("the path %s names the space's folder; name a file in it", shown(p))
	}
	return clean, err
}

func invalidPath(format string, args ...any) error {
	return fault.New(fault.Invalid, "invalid_path", format, args...)
}
