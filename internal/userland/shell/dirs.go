package shell

import (
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/vfs"
)

// startFolder sets PWD when a shell begins. It keeps the inherited value if that leads to the folder.
func startFolder(sh *shell) {
	if pwd := sh.str("PWD"); strings.HasPrefix(pwd, "/") {
		if n, err := sh.w.fs.Lookup(vfs.At{Dir: sh.w.fs.Root()}, pwd, true); err == nil && n == sh.cwd && cleanPath(pwd) == pwd {
			return
		}
	}
	path, err := sh.cwd.Path()
	if err != nil {
		path = "/"
	}
	sh.set("PWD", path)
	sh.vars["PWD"].exported = true
}

// pwd returns the folder's path as it was reached.
func pwd(sh *shell) string {
	if s, ok := sh.get("PWD"); ok {
		return s
	}
	path, err := sh.cwd.Path()
	if err != nil {
		return "/"
	}
	return path
}

// cleanPath resolves . and .. by the text.
func cleanPath(path string) string {
	var parts []string
	for p := range strings.SplitSeq(path, "/") {
		switch p {
		case "", ".":
		case "..":
			if len(parts) > 0 {
				parts = parts[:len(parts)-1]
			}
		default:
			parts = append(parts, p)
		}
	}
	return "/" + strings.Join(parts, "/")
}

// chdir goes to a folder.
func chdir(sh *shell, path string, physical bool) error {
	logical := path
	if !strings.HasPrefix(path, "/") {
		logical = strings.TrimSuffix(pwd(sh), "/") + "/" + path
	}
	target := path
	if !physical {
		logical = cleanPath(logical)
		target = logical
		// Every folder on the way that .. leaves has to be there.
		if strings.Contains(path, "..") {
			if _, err := sh.w.fs.Lookup(sh.at(), path, true); err != nil {
				return err
			}
		}
	}
	if path == "" {
		return nil
	}
	n, err := sh.w.fs.Lookup(sh.at(), target, true)
	if err != nil {
		return err
	}
	if n.Kind() != vfs.Directory {
		return vfs.ENOTDIR
	}
	if n.Info().Mode&0o100 == 0 {
		return vfs.EACCES
	}
	if physical {
		if p, err := n.Path(); err == nil {
			logical = p
		}
	}
	old := pwd(sh)
	sh.cwd = n
	sh.set("OLDPWD", old)
	sh.set("PWD", logical)
	sh.mine("OLDPWD").exported, sh.mine("PWD").exported = true, true
	return nil
}

func biCd(sh *shell, args []string) int {
	physical := sh.on[optPhysical]
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		if args[i] == "--" {
			i++
			break
		}
		switch strings.Trim(args[i][1:], "LPe@") {
		case "":
			physical = strings.HasSuffix(args[i], "P")
		default:
			sh.complain("cd", "%s: invalid option", args[i])
			sh.stderr("cd: usage: cd [-L|[-P [-e]] [-@]] [dir]\n")
			return 2
		}
	}
	args = args[i:]
	show := false
	path := ""
	switch {
	case len(args) > 1:
		sh.complain("cd", "too many arguments")
		return 1
	case len(args) == 0:
		home, ok := sh.get("HOME")
		if !ok {
			sh.complain("cd", "HOME not set")
			return 1
		}
		path = home
	case args[0] == "-":
		old, ok := sh.get("OLDPWD")
		if !ok {
			sh.complain("cd", "OLDPWD not set")
			return 1
		}
		path, show = old, true
	default:
		path = args[0]
		if cdpath, ok := sh.get("CDPATH"); ok && path != "" && path[0] != '/' && path[0] != '.' {
			for dir := range strings.SplitSeq(cdpath, ":") {
				full := strings.TrimSuffix(orDot(dir), "/") + "/" + path
				if n, err := sh.w.fs.Lookup(sh.at(), full, true); err == nil && n.Kind() == vfs.Directory {
					path, show = full, dir != "" && dir != "."
					break
				}
			}
		}
	}
	if err := chdir(sh, path, physical); err != nil {
		sh.w.stop(err)
		sh.complain("cd", "%s: %s", path, err)
		return 1
	}
	if show {
		return sh.stdout("cd", pwd(sh)+"\n")
	}
	return 0
}

func biPwd(sh *shell, args []string) int {
	physical := sh.on[optPhysical]
	for _, a := range args[1:] {
		switch a {
		case "-P":
			physical = true
		case "-L":
			physical = false
		default:
			if strings.HasPrefix(a, "-") && len(a) > 1 {
				sh.complain("pwd", "%s: invalid option", a)
				sh.stderr("pwd: usage: pwd [-LP]\n")
				return 2
			}
		}
	}
	path := pwd(sh)
	if physical {
		p, err := sh.cwd.Path()
		if err != nil {
			sh.complain("pwd", "error retrieving current directory: getcwd: cannot access parent directories: %s", err)
			return 1
		}
		path = p
	}
	return sh.stdout("pwd", path+"\n")
}

// dirStack is a call of pushd, popd or dirs.
type dirStack struct {
	sh    *shell
	name  string // of the command
	args  []string
	quiet bool     // -n: the folder stays
	stack []string // the folders, the current one first
}

// at returns which folder +n or -n names.
func (s *dirStack) at(arg string) (int, bool) {
	n, err := strconv.Atoi(arg[1:])
	if err != nil || (arg[0] != '+' && arg[0] != '-') {
		return 0, false
	}
	if arg[0] == '-' {
		n = len(s.stack) - 1 - n
	}
	return n, true
}

// fail writes an error and returns the status of it.
func (s *dirStack) fail(format string, a ...any) int {
	if len(s.sh.dirs) == 0 && strings.HasSuffix(format, "index out of range") {
		format, a = "directory stack empty", nil
	}
	s.sh.complain(s.name, format, a...)
	return 1
}

// biDirs is pushd, popd and dirs.
func biDirs(sh *shell, args []string) int {
	s := &dirStack{sh: sh, name: args[0], args: args[1:], stack: append([]string{pwd(sh)}, sh.dirs...)}
	if s.name != "dirs" && len(s.args) > 0 && s.args[0] == "-n" {
		s.quiet, s.args = true, s.args[1:]
	}
	show := true
	status := 0
	switch s.name {
	case "pushd":
		status, show = s.push()
	case "popd":
		status, show = s.pop()
	case "dirs":
		return s.list()
	}
	if !show {
		return status
	}
	stack := append([]string{pwd(sh)}, sh.dirs...)
	for i := range stack {
		stack[i] = shortHome(sh, stack[i], false)
	}
	return sh.stdout(s.name, strings.Join(stack, " ")+"\n")
}

// push is pushd. It returns the status, and whether the stack is shown.
func (s *dirStack) push() (status int, show bool) {
	switch {
	case len(s.args) == 0:
		if len(s.sh.dirs) == 0 {
			return s.fail("no other directory"), false
		}
		top := s.sh.dirs[0]
		if err := chdir(s.sh, top, false); err != nil {
			return s.fail("%s: %s", top, err), false
		}
		s.sh.dirs = append([]string{s.stack[0]}, s.sh.dirs[1:]...)
	case len(s.args[0]) > 1 && (s.args[0][0] == '+' || s.args[0][0] == '-'):
		n, ok := s.at(s.args[0])
		if !ok || n < 0 || n >= len(s.stack) {
			return s.fail("%s: directory stack index out of range", s.args[0]), false
		}
		if s.quiet {
			return 0, false
		}
		s.stack = slices.Concat(s.stack[n:], s.stack[:n])
		if err := chdir(s.sh, s.stack[0], false); err != nil {
			return s.fail("%s: %s", s.stack[0], err), false
		}
		s.sh.dirs = s.stack[1:]
	case s.quiet:
		s.sh.dirs = append([]string{s.args[0]}, s.sh.dirs...)
	default:
		if err := chdir(s.sh, s.args[0], false); err != nil {
			return s.fail("%s: %s", s.args[0], err), false
		}
		s.sh.dirs = append([]string{s.stack[0]}, s.sh.dirs...)
	}
	return 0, true
}

// pop is popd. It returns the status, and whether the stack is shown.
func (s *dirStack) pop() (status int, show bool) {
	if len(s.sh.dirs) == 0 {
		return s.fail("directory stack empty"), false
	}
	n := 0
	if len(s.args) > 0 {
		var ok bool
		if n, ok = s.at(s.args[0]); !ok || n < 0 || n >= len(s.stack) {
			return s.fail("%s: directory stack index out of range", s.args[0]), false
		}
	}
	if n == 0 && !s.quiet {
		if err := chdir(s.sh, s.sh.dirs[0], false); err != nil {
			return s.fail("%s: %s", s.sh.dirs[0], err), false
		}
		s.sh.dirs = slices.Clone(s.sh.dirs[1:])
	} else {
		n = max(n, 1)
		s.sh.dirs = slices.Delete(slices.Clone(s.sh.dirs), n-1, n)
	}
	return 0, true
}

// list is dirs.
func (s *dirStack) list() int {
	lines, full, numbered := false, false, false
	for _, a := range s.args {
		switch a {
		case "-c":
			s.sh.dirs = nil
			return 0
		case "-p":
			lines = true
		case "-l":
			full = true
		case "-v":
			lines, numbered = true, true
		default:
			n, ok := s.at(a)
			if !ok || n < 0 || n >= len(s.stack) {
				return s.fail("%s: directory stack index out of range", strings.TrimLeft(a, "+-"))
			}
			return s.sh.stdout(s.name, shortHome(s.sh, s.stack[n], full)+"\n")
		}
	}
	var b strings.Builder
	for i, d := range s.stack {
		d = shortHome(s.sh, d, full)
		switch {
		case numbered:
			b.WriteString(" " + strconv.Itoa(i) + "  " + d + "\n")
		case lines:
			b.WriteString(d + "\n")
		case i > 0:
			b.WriteString(" " + d)
		default:
			b.WriteString(d)
		}
	}
	if !lines {
		b.WriteString("\n")
	}
	return s.sh.stdout(s.name, b.String())
}

func shortHome(sh *shell, path string, full bool) string {
	home := sh.str("HOME")
	if !full && home != "" && home != "/" && (path == home || strings.HasPrefix(path, home+"/")) {
		return "~" + path[len(home):]
	}
	return path
}
