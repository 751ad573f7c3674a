package shell

import (
	"slices"
	"strings"

	"agentbox/internal/userland/vfs"
)

// hasGlob reports whether a pattern has a special character that is not escaped.
func hasGlob(sh *shell, p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if strings.IndexByte(p[i:], ']') > 0 {
				return true
			}
		case '@', '+', '!':
			if sh.shopts["extglob"] && i+1 < len(p) && p[i+1] == '(' {
				return true
			}
		}
	}
	return false
}

// expandGlob returns the paths that a pattern matches, in order.
func expandGlob(sh *shell, pat string) []string {
	matches := []string{""}
	rest := pat
	if strings.HasPrefix(rest, "/") {
		trimmed := strings.TrimLeft(rest, "/")
		matches[0] = rest[:len(rest)-len(trimmed)]
		rest = trimmed
	}
	for rest != "" && len(matches) > 0 {
		part, after, more := cutSlash(rest)
		slashes := ""
		if more {
			trimmed := strings.TrimLeft(after, "/")
			slashes = "/" + after[:len(after)-len(trimmed)]
			if after = trimmed; after == "" {
				slashes = "/"
			}
		}
		matches = globPart(sh, matches, part, slashes, after == "")
		rest = after
	}
	slices.Sort(matches)
	return withoutIgnored(sh, matches)
}

// withoutIgnored leaves out what the patterns of GLOBIGNORE match, and then . and .. too.
func withoutIgnored(sh *shell, matches []string) []string {
	if sh.ignore == "" {
		return matches
	}
	patterns := ignorePatterns(sh.ignore)
	return slices.DeleteFunc(matches, func(path string) bool {
		if base := lastElement(path); base == "." || base == ".." {
			return true
		}
		return slices.ContainsFunc(patterns, func(p string) bool { return sh.match(p, path, sh.shopts["nocaseglob"]) })
	})
}

// ignorePatterns splits the value of GLOBIGNORE at its colons, except those in brackets and behind a backslash.
func ignorePatterns(s string) []string {
	var list []string
	begin := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			if end := bracketEnd(s[i:]); end > 0 {
				i += end
			}
		case ':':
			list = append(list, s[begin:i])
			begin = i + 1
		}
	}
	return append(list, s[begin:])
}

// bracketEnd returns where the bracket expression with which s begins ends, 0 where it does not.
func bracketEnd(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for ; i < len(s) && s[i] != ']'; i++ {
		if s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0 {
			if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end >= 0 {
				i += end + 3
			}
		}
	}
	if i >= len(s) {
		return 0
	}
	return i
}

// cutSlash cuts at the first slash that is not within an extended operator.
func cutSlash(p string) (part, rest string, more bool) {
	depth := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '(':
			if i > 0 && strings.IndexByte("?*+@!", p[i-1]) >= 0 || depth > 0 {
				depth++
			}
		case ')':
			depth = max(depth-1, 0)
		case '/':
			if depth == 0 {
				return p[:i], p[i+1:], true
			}
		}
	}
	return p, "", false
}

func globPart(sh *shell, dirs []string, part, slashes string, last bool) []string {
	var found []string
	folders := slashes != "" // what matches has to be one
	if lit, ok := plain(part); ok {
		for _, d := range dirs {
			path := d + lit
			n, err := sh.w.fs.Lookup(sh.at(), orDot(path), !last || folders)
			sh.w.stop(err)
			if err == nil && (!folders || n.Kind() == vfs.Directory) {
				found = append(found, path+slashes)
			}
		}
		return found
	}
	if part == "**" && sh.shopts["globstar"] {
		for _, d := range dirs {
			if last && !folders {
				if d != "" {
					found = append(found, d)
				}
			} else if d != "" || !last {
				found = append(found, d)
			}
			found = globAll(sh, found, d, last && !folders)
		}
		return found
	}
	m := matcher{sh: sh, fold: sh.shopts["nocaseglob"]}
	dot := strings.HasPrefix(part, ".") || strings.HasPrefix(part, `\.`)
	for _, d := range dirs {
		entries, err := sh.w.fs.List(sh.at(), orDot(d))
		sh.w.stop(err)
		if err != nil {
			continue
		}
		if dot && !sh.shopts["globskipdots"] {
			for _, name := range []string{".", ".."} {
				if m.match(part, name) {
					found = append(found, d+name+slashes)
				}
			}
		}
		for _, e := range entries {
			if e.Name[0] == '.' && !dot && !sh.shopts["dotglob"] {
				continue
			}
			if !m.match(part, e.Name) {
				continue
			}
			if folders && !isFolder(sh, e.Node, d+e.Name) {
				continue
			}
			found = append(found, d+e.Name+slashes)
		}
	}
	sh.charge(m.steps + 10*len(found))
	return found
}

func isFolder(sh *shell, n *vfs.Node, path string) bool {
	if n.Kind() == vfs.Symlink {
		target, err := sh.w.fs.Lookup(sh.at(), path, true)
		sh.w.stop(err)
		return err == nil && target.Kind() == vfs.Directory
	}
	return n.Kind() == vfs.Directory
}

// globAll finds everything below a folder, without following links.
func globAll(sh *shell, found []string, dir string, files bool) []string {
	entries, err := sh.w.fs.List(sh.at(), orDot(dir))
	sh.w.stop(err)
	if err != nil {
		return found
	}
	for _, e := range entries {
		if e.Name[0] == '.' && !sh.shopts["dotglob"] {
			continue
		}
		path := dir + e.Name
		if e.Node.Kind() == vfs.Directory {
			if files {
				found = append(found, path)
			} else {
				found = append(found, path+"/")
			}
			found = globAll(sh, found, path+"/", files)
		} else if files {
			found = append(found, path)
		}
	}
	return found
}

func orDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func (sh *shell) at() vfs.At { return vfs.At{Dir: sh.cwd} }
