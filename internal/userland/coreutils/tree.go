package coreutils

import (
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// treeCommand shows folders with what is in them.
type treeCommand struct {
	p                             *program.Process
	all, onlyFolders, paths       bool
	sizes, classify, plain, count bool
	depth                         int
	folders, files                int
	only, ignore                  []string
}

func tree(p *program.Process) int {
	opts, names := p.Options(1, "adfiL:P:I:sFCnN", "dirsfirst", "noreport", "charset=")
	t := &treeCommand{p: p, depth: vfs.MaxDepth, count: true}
	for _, o := range opts {
		switch o.Name {
		case "a":
			t.all = true
		case "d":
			t.onlyFolders = true
		case "f":
			t.paths = true
		case "i":
			t.plain = true
		case "s":
			t.sizes = true
		case "F":
			t.classify = true
		case "noreport":
			t.count = false
		case "P":
			t.only = append(t.only, strings.Split(o.Value, "|")...)
		case "I":
			t.ignore = append(t.ignore, strings.Split(o.Value, "|")...)
		case "L":
			n, err := strconv.Atoi(o.Value)
			if err != nil || n < 1 {
				p.Errorf("Invalid level, must be greater than 0.")
				return 1
			}
			t.depth = n
		}
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	status := 0
	for _, name := range names {
		n, err := gnu.Lookup(p, name, true)
		if err != nil || n.Kind() != vfs.Directory {
			p.Out().WriteString(name + "  [error opening dir]\n")
			status = 2
			continue
		}
		if p.Out().WriteString(name); t.classify && !strings.HasSuffix(name, "/") {
			_ = p.Out().WriteByte('/')
		}
		_ = p.Out().WriteByte('\n')
		t.folders++
		t.folder(name, "", 1)
	}
	if t.count {
		t.report()
	}
	return status
}

func (t *treeCommand) report() {
	noun := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return strconv.Itoa(n) + " " + many
	}
	text := "\n" + noun(t.folders, "directory", "directories")
	if !t.onlyFolders {
		text += ", " + noun(t.files, "file", "files")
	}
	t.p.Out().WriteString(text + "\n")
}

// shows reports whether an entry is shown.
func (t *treeCommand) shows(name string, folder bool) bool {
	if !t.all && strings.HasPrefix(name, ".") || t.onlyFolders && !folder {
		return false
	}
	fits := func(pattern string) bool { return matchName(pattern, name) }
	if slices.ContainsFunc(t.ignore, fits) {
		return false
	}
	return folder || t.only == nil || slices.ContainsFunc(t.only, fits)
}

// matchName matches a name with * and ?.
func matchName(pattern, name string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == name[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// folder shows what is in a folder.
func (t *treeCommand) folder(path, lead string, depth int) {
	entries, err := t.p.FS.List(t.p.At(), path)
	t.p.Check(err)
	if err != nil || depth > t.depth {
		return
	}
	t.p.Charge(len(entries) * 100)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e vfs.Entry) bool { return !t.shows(e.Name, e.Node.Kind() == vfs.Directory) })
	slices.SortFunc(entries, func(a, b vfs.Entry) int { return strings.Compare(a.Name, b.Name) })
	for i, e := range entries {
		branch, below := "├── ", "│\u00a0\u00a0 "
		if i == len(entries)-1 {
			branch, below = "└── ", "    "
		}
		if t.plain {
			branch, below = "", ""
		}
		t.entry(e, gnu.Join(path, e.Name), lead+branch)
		if e.Node.Kind() == vfs.Directory {
			t.folder(gnu.Join(path, e.Name), lead+below, depth+1)
		}
	}
}

// entry shows one name.
func (t *treeCommand) entry(e vfs.Entry, path, lead string) {
	t.p.Charge(200)
	name := e.Name
	if t.paths {
		name = path
	}
	info := e.Node.Info()
	if t.sizes {
		lead += "[" + strings.Repeat(" ", max(0, 11-len(strconv.FormatInt(info.Size, 10)))) + strconv.FormatInt(info.Size, 10) + "]  "
	}
	switch e.Node.Kind() {
	case vfs.Directory:
		t.folders++
		if t.classify {
			name += "/"
		}
	case vfs.Symlink:
		t.files++
		name += " -> " + e.Node.Target()
	default:
		if t.files++; t.classify && info.Mode&0o111 != 0 {
			name += "*"
		}
	}
	t.p.Out().WriteString(lead + name + "\n")
}
