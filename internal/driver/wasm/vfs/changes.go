package vfs

import (
	"slices"
	"strings"
	"time"
)

// Op is one kind of change.
type Op uint8

// The changes of a mount, in the order in which they are applied: what is gone is removed and what has moved is taken away, the deepest first; then
// everything is put where it belongs, from the top; then modes and times are set.
const (
	Remove    Op = iota + 1 // Path is no name of a file any more
	RemoveDir               // Path is no folder any more; it is empty by now
	Take                    // what is at Path moves; it waits in Slot
	Put                     // what waits in Slot belongs at Path
	MakeDir                 // Path is a new folder
	WriteFile               // Path is a file with Content, and nothing else; a file that is there keeps its other names where Keep says so
	MakeLink                // Path is a new symbolic link to Target
	Link                    // Path is a new name of the file at Target
	SetMode                 // Path has Mode
	SetTime                 // Path has Modified
)

// Change is one step from the files as they were at the source to those that an execution has left.
type Change struct {
	Op       Op
	Path     string // relative, with slashes; of Remove, RemoveDir and Take as it was before the first change, else as it is in the end
	Slot     int
	Mode     uint32
	Modified time.Time
	Target   string
	Keep     bool
	Content  []byte // of WriteFile; valid as long as the file system is
	Size     int64  // of WriteFile; what Content lacks is zero
}

// Changes returns what has become different in the mount at a path, in the order in which it has to be applied; two that begin with the same files and do
// the same return the same.
func (f *FS) Changes(path string) ([]Change, error) {
	for _, m := range f.mounts {
		if m.path == path {
			d := difference{mount: m, slots: map[*entry]int{}, first: map[*Node]string{}, had: map[*Node]bool{}}
			return d.changes(), nil
		}
	}
	return nil, ENOENT
}

// difference is one comparison of a mount with its source.
type difference struct {
	mount *mount
	away  []Change // Remove, RemoveDir, Take
	put   []Change
	links []Change
	late  []Change
	slots map[*entry]int   // of what is taken
	first map[*Node]string // of its names the one through which a file is written
	had   map[*Node]bool   // it had that name at the source
}

func (d *difference) changes() []Change {
	for _, g := range d.mount.gone {
		op := Remove
		if g.dir {
			op = RemoveDir
		}
		d.away = append(d.away, Change{Op: op, Path: g.origin})
	}
	d.taken(d.mount.root)
	slices.SortStableFunc(d.away, func(a, b Change) int { return deepestFirst(a.Path, b.Path) })
	for i := range d.away {
		if d.away[i].Op == Take {
			d.away[i].Slot = i + 1
		}
	}
	slots := map[string]int{}
	for _, c := range d.away {
		slots[c.Path] = c.Slot
	}
	for e := range d.slots {
		d.slots[e] = slots[e.origin]
	}
	if d.mount.root.dirtyMode {
		d.late = append(d.late, Change{Op: SetMode, Path: ".", Mode: d.mount.root.mode})
	}
	d.visit(d.mount.root, ".", func(e *entry, at string) { d.name(e, at) })
	d.visit(d.mount.root, ".", func(e *entry, at string) { d.entry(e, at) })
	slices.SortStableFunc(d.late, func(a, b Change) int {
		if a.Op != b.Op {
			return int(a.Op) - int(b.Op)
		}
		return deepestFirst(a.Path, b.Path)
	})
	return slices.Concat(d.away, d.put, d.links, d.late)
}

// taken finds what moves: what is not below the folder, and under the name, of its origin.
func (d *difference) taken(dir *Node) {
	if !dir.loaded {
		return
	}
	for _, name := range dir.names() {
		e := dir.entries[name]
		if e.old && (dir.source == "" || e.origin != join(dir.source, name)) {
			d.slots[e] = 0
			d.away = append(d.away, Change{Op: Take, Path: e.origin})
		}
		if e.node.kind == Directory {
			d.taken(e.node)
		}
	}
}

// visit calls do for every loaded name from the top, in order.
func (d *difference) visit(dir *Node, path string, do func(e *entry, at string)) {
	if !dir.loaded {
		return
	}
	for _, name := range dir.names() {
		e := dir.entries[name]
		at := join(path, name)
		do(e, at)
		if e.node.kind == Directory {
			d.visit(e.node, at, do)
		}
	}
}

// name chooses, of the names of a file, the one through which it is written: the first that it had, else the first.
func (d *difference) name(e *entry, at string) {
	if _, named := d.first[e.node]; !named || e.old && !d.had[e.node] {
		d.first[e.node] = at
		d.had[e.node] = e.old
	}
}

// entry says what has to be done so that a name is what it is.
func (d *difference) entry(e *entry, at string) {
	n := e.node
	if slot := d.slots[e]; slot > 0 {
		d.put = append(d.put, Change{Op: Put, Path: at, Slot: slot})
	}
	fresh := !e.old
	if n.kind != Directory && d.first[n] != at {
		if fresh {
			d.links = append(d.links, Change{Op: Link, Path: at, Target: d.first[n]})
		}
		return
	}
	switch {
	case n.kind == Directory && fresh:
		d.put = append(d.put, Change{Op: MakeDir, Path: at, Mode: n.mode})
	case n.kind == Symlink && fresh:
		d.put = append(d.put, Change{Op: MakeLink, Path: at, Target: n.target})
	case n.kind == Regular && (fresh || n.dirtyContent):
		d.put = append(d.put, Change{Op: WriteFile, Path: at, Mode: n.mode, Content: n.content.data[:min(n.content.size, int64(len(n.content.data)))], Size: n.content.size, Keep: e.old && n.linked})
	}
	if n.dirtyMode && !fresh {
		d.late = append(d.late, Change{Op: SetMode, Path: at, Mode: n.mode})
	}
	if n.kind != Symlink && (n.dirtyTimes || fresh || n.dirtyContent) {
		d.late = append(d.late, Change{Op: SetTime, Path: at, Modified: n.modified})
	}
}

// deepestFirst orders paths so that what is in a folder comes before the folder.
func deepestFirst(a, b string) int {
	if da, db := strings.Count(a, "/"), strings.Count(b, "/"); da != db {
		return db - da
	}
	return strings.Compare(a, b)
}
