package vfs

import (
	"slices"
	"strings"
	"time"
)

// Op is one kind of change.
type Op uint8

// The changes of a mount, in the order in which the receiver applies them. First it writes files that keep other names, at their old
// places. Then it removes and takes away files, the deepest first. Then it puts everything at its place, from the top. Last it sets times
// and modes, the deepest first.
const (
	Remove    Op = iota + 1 // Path is no longer a name of a file
	RemoveDir               // Path is no longer a folder; it is empty by now
	Take                    // the file at Path moves into Slot
	Put                     // the content of Slot moves to Path
	MakeDir                 // Path is a new folder, to be filled: it has Mode, with which its owner can do everything
	WriteFile               // Path is a file with Content, Mode and Modified; with Keep its other names are so as well
	MakeLink                // Path is a new symbolic link to Target
	Link                    // Path is a new name of the file at Target
	SetTime                 // Path has Modified
	SetMode                 // Path has Mode
)

// Change is one step from the files at the source to the files that an execution has left.
type Change struct {
	Op Op
	// relative, with slashes; of Remove, RemoveDir, Take and WriteFile with Keep as it was before the first change, else as it is in the
	// end
	Path     string
	Slot     int
	Mode     uint32
	Modified time.Time
	Target   string
	Keep     bool
	Content  [][]byte // of WriteFile, in pieces; valid as long as the file system is
	Held     string   // of WriteFile: used instead of Content if the receiver already has the content
	Size     int64    // of WriteFile; what Content lacks is zero
}

// Changes returns the changes in the mount at a path, in the order in which they must be applied. Two executions that begin with the same
// files and do the same return the same changes.
func (f *FS) Changes(path string) ([]Change, error) {
	for _, m := range f.mounts {
		if m.path == path {
			d := difference{mount: m, slots: map[string]int{}, first: map[*Node]string{}, had: map[*Node]bool{}, moved: map[*Node]string{}}
			return d.changes(), nil
		}
	}
	return nil, ENOENT
}

// difference is one comparison of a mount with its source.
type difference struct {
	mount *mount
	keep  []Change // WriteFile with Keep
	away  []Change // Remove, RemoveDir, Take
	put   []Change
	links []Change
	late  []Change
	slots map[string]int   // of what is taken, by where it was
	first map[*Node]string // of its names the one through which a file is written
	had   map[*Node]bool   // it had that name at the source
	moved map[*Node]string // a name that it had, of a file that has none of those left
}

func (d *difference) changes() []Change {
	root := d.mount.root
	d.visit(root, ".", d.name)
	for _, g := range d.mount.gone {
		_, named := d.first[g.node]
		_, moved := d.moved[g.node]
		switch {
		case g.node.kind == Directory:
			d.away = append(d.away, Change{Op: RemoveDir, Path: g.origin})
		case named && !d.had[g.node] && !moved:
			d.moved[g.node] = g.origin
			d.away = append(d.away, Change{Op: Take, Path: g.origin})
		default:
			d.away = append(d.away, Change{Op: Remove, Path: g.origin})
			if !named && g.node.unseen > 0 && g.node.dirtyContent { // it lives on under a name that was not looked at
				d.write(g.node, g.origin, true)
			}
		}
	}
	d.taken(root)
	slices.SortStableFunc(d.away, func(a, b Change) int { return deepestFirst(a.Path, b.Path) })
	for i := range d.away {
		if d.away[i].Op == Take {
			d.away[i].Slot = i + 1
			d.slots[d.away[i].Path] = i + 1
		}
	}
	if root.dirtyMode {
		d.late = append(d.late, Change{Op: SetMode, Path: ".", Mode: root.mode})
	}
	d.visit(root, ".", d.entry)
	slices.SortStableFunc(d.late, func(a, b Change) int {
		if order := deepestFirst(a.Path, b.Path); order != 0 {
			return order
		}
		return int(a.Op) - int(b.Op)
	})
	return slices.Concat(d.keep, d.away, d.put, d.links, d.late)
}

// taken finds the moved files: those whose folder or name differs from their origin.
func (d *difference) taken(dir *Node) {
	if !dir.loaded {
		return
	}
	for _, name := range dir.names() {
		e := dir.entries[name]
		if e.node.mount != d.mount {
			continue
		}
		if e.moved(dir, name) {
			d.away = append(d.away, Change{Op: Take, Path: e.origin})
		}
		if e.node.kind == Directory {
			d.taken(e.node)
		}
	}
}

// moved reports whether a name in a folder was not the name of this file at the source.
func (e *entry) moved(dir *Node, name string) bool {
	return e.old && (dir.source == "" || e.origin != join(dir.source, name))
}

// visit calls do for every loaded name from the top, in order.
func (d *difference) visit(dir *Node, path string, do func(dir *Node, e *entry, at string)) {
	if !dir.loaded {
		return
	}
	for _, name := range dir.names() {
		e := dir.entries[name]
		if e.node.mount != d.mount {
			continue
		}
		at := join(path, name)
		do(dir, e, at)
		if e.node.kind == Directory {
			d.visit(e.node, at, do)
		}
	}
}

// name chooses the name through which a file is written: the first one that the file had at the source, else its first name.
func (d *difference) name(_ *Node, e *entry, at string) {
	if _, named := d.first[e.node]; !named || e.old && !d.had[e.node] {
		d.first[e.node] = at
		d.had[e.node] = e.old
	}
}

// entry adds the changes for one name.
func (d *difference) entry(dir *Node, e *entry, at string) {
	n := e.node
	origin, old := e.origin, e.old
	if old && e.moved(dir, at[strings.LastIndexByte(at, '/')+1:]) {
		d.put = append(d.put, Change{Op: Put, Path: at, Slot: d.slots[origin]})
	}
	if n.kind != Directory && d.first[n] != at {
		if !old {
			d.links = append(d.links, Change{Op: Link, Path: at, Target: d.first[n]})
		}
		return
	}
	if moved, was := d.moved[n]; was {
		origin, old = moved, true
		d.put = append(d.put, Change{Op: Put, Path: at, Slot: d.slots[origin]})
	}
	written := false
	switch {
	case n.kind == Directory && !old:
		d.put = append(d.put, Change{Op: MakeDir, Path: at, Mode: n.mode | 0o700})
	case n.kind == Symlink && !old:
		d.put = append(d.put, Change{Op: MakeLink, Path: at, Target: n.target})
	case n.kind == Regular && n.dirtyContent && old && n.linked:
		d.write(n, origin, true)
		written = true
	case n.kind == Regular && (n.dirtyContent || !old):
		d.write(n, at, false)
		written = true
	}
	if written || n.kind == Symlink || n.kind == Other {
		return
	}
	if n.dirtyTimes || !old {
		d.late = append(d.late, Change{Op: SetTime, Path: at, Modified: n.modified})
	}
	if n.dirtyMode || !old && n.mode|0o700 != n.mode {
		d.late = append(d.late, Change{Op: SetMode, Path: at, Mode: n.mode})
	}
}

// write sets the content of a change to that of a file.
func (d *difference) write(n *Node, path string, keep bool) {
	c := Change{Op: WriteFile, Path: path, Mode: n.mode, Modified: n.modified, Size: n.content.size, Keep: keep}
	c.Content = n.content.pieces
	if keep {
		d.keep = append(d.keep, c)
	} else {
		d.put = append(d.put, c)
	}
}

// deepestFirst orders paths so that the contents of a folder come before the folder.
func deepestFirst(a, b string) int {
	if da, db := depth(a), depth(b); da != db {
		return db - da
	}
	return strings.Compare(a, b)
}

func depth(path string) int {
	if path == "." {
		return -1
	}
	return strings.Count(path, "/")
}
