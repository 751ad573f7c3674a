package vfs

import "strings"

// At is from where a path is followed: a folder and, where code may not leave it, the folder that bounds it.
type At struct {
	Dir     *Node
	Beneath *Node // nil for the root; nothing outside of it is reached, and the path may not be absolute
}

// place is where a path leads: the folder, the name in it, and what is there.
type place struct {
	dir   *Node
	name  string // "" where the path ends in ., .. or the root
	node  *Node  // nil where there is nothing
	up    bool   // the path ends in ..
	slash bool   // the path ends in a slash: it means a folder
}

// end says what a walk does with a link at the end of a path.
type end uint8

const (
	follow  end = iota + 1 // go where it points
	stay                   // it is the link that is meant, unless a slash stands behind it
	nameful                // it is the name that is meant, to be made, moved or removed; a slash only says that it is a folder's
)

func ending(followed bool) end {
	if followed {
		return follow
	}
	return stay
}

// walk follows a path. Something missing at the end is not an error.
func (f *FS) walk(at At, path string, last end) (place, error) {
	links := 0
	return f.step(at, path, last, &links)
}

func (f *FS) step(at At, path string, end end, links *int) (place, error) {
	switch {
	case path == "":
		return place{}, ENOENT
	case len(path) >= MaxPath:
		return place{}, ENAMETOOLONG
	case strings.IndexByte(path, 0) >= 0:
		return place{}, EINVAL
	}
	dir := at.Dir
	if path[0] == '/' {
		if at.Beneath != nil {
			return place{}, EPERM
		}
		dir = f.root
	}
	if dir.kind != Directory {
		return place{}, ENOTDIR
	}
	p := place{dir: dir, node: dir, slash: strings.HasSuffix(path, "/")}
	rest := strings.TrimLeft(path, "/")
	for rest != "" {
		if err := f.account.Charge(gasPerStep); err != nil {
			return place{}, err
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		rest = strings.TrimLeft(rest, "/")
		last := rest == ""
		if p.node == nil {
			return place{}, ENOENT
		}
		if p.node.kind != Directory {
			return place{}, ENOTDIR
		}
		if err := f.load(p.node); err != nil {
			return place{}, err
		}
		if p.node.mode&0o100 == 0 {
			return place{}, EACCES
		}
		p.up = false
		switch name {
		case ".":
			p.dir, p.name = p.node, ""
			continue
		case "..":
			if p.node == at.Beneath {
				return place{}, EPERM
			}
			p.dir, p.name, p.node, p.up = p.node.parent, "", p.node.parent, true
			continue
		}
		if len(name) > MaxName {
			return place{}, ENAMETOOLONG
		}
		p.dir, p.name = p.node, name
		p.node = nil
		if e := p.dir.entries[name]; e != nil {
			p.node = e.node
		}
		if p.node != nil && p.node.kind == Symlink && (!last || end == follow || end == stay && p.slash) {
			if *links++; *links > MaxSymlinks {
				return place{}, ELOOP
			}
			from := At{Dir: p.dir, Beneath: at.Beneath}
			if strings.HasPrefix(p.node.target, "/") && at.Beneath == f.root {
				from.Beneath = nil // the bound is everything
			}
			target, err := f.step(from, p.node.target, follow, links)
			if err != nil {
				return place{}, err
			}
			if last {
				target.slash = target.slash || p.slash
				p = target
				break
			}
			p.dir, p.name, p.node = target.dir, target.name, target.node
		}
	}
	if p.slash && p.node != nil && p.node.kind != Directory && end != nameful {
		return place{}, ENOTDIR
	}
	return p, nil
}

// find is walk to something that has to be there.
func (f *FS) find(at At, path string, last end) (place, error) {
	p, err := f.walk(at, path, last)
	if err == nil && p.node == nil {
		err = ENOENT
	}
	return p, err
}

// Lookup returns what a path leads to.
func (f *FS) Lookup(at At, path string, followed bool) (*Node, error) {
	if err := f.charge(0); err != nil {
		return nil, err
	}
	p, err := f.find(at, path, ending(followed))
	return p.node, err
}

// Stat tells about what a path leads to.
func (f *FS) Stat(at At, path string, follow bool) (Info, error) {
	n, err := f.Lookup(at, path, follow)
	if err != nil {
		return Info{}, err
	}
	return n.Info(), nil
}

// Path returns the absolute path of a folder, or ENOENT for one that was removed.
func (n *Node) Path() (string, error) {
	if n.kind != Directory {
		return "", ENOTDIR
	}
	if n == n.fs.root {
		return "/", nil
	}
	var names []string
	for d := n; d != n.fs.root; d = d.parent {
		if d.removed {
			return "", ENOENT
		}
		names = append(names, d.label)
	}
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteString("/" + names[i])
	}
	return b.String(), nil
}

// depth returns how many folders lie above a folder up to the root of its mount.
func (n *Node) depth() int {
	d := 0
	for ; n.parent != n && (n.mount == nil || n.mount.root != n); n = n.parent {
		d++
	}
	return d
}

// split returns the elements of a path.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
