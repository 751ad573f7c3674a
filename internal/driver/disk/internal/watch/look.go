package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// looking is one look at a tree.
type looking struct {
	*Tree
	*found
	all  bool // everywhere, and not only where something was found
	anew bool // the files lie elsewhere: their numbers mean nothing, and every folder's notes begin again

	seen []sight
	told []space.WatchEvent
}

// sight is the entry at a place and its remembered state.
type sight struct {
	place
	was   *node // nil if nothing is remembered
	is    mark
	there bool
	wrote bool // its content was written, whatever its mark says
}

// gone reports whether the remembered entry lies there no more.
func (s sight) gone(anew bool) bool { return s.was != nil && (!s.there || !s.same(anew)) }

func (s sight) same(anew bool) bool {
	if anew {
		return s.was.is.kind == s.is.kind
	}
	return !s.was.dead && s.was.is.same(s.is)
}

// lists is how many scans of a changing tree follow one another at most. The next round reports later changes.
const lists = 4

// compare reports how an entry differs from its remembered state, and remembers the new state.
func (l *looking) compare(ctx context.Context) error {
	top, err := l.open()
	if err != nil {
		return err
	}
	defer top.Close()
	dir, err := l.openTop(top)
	if err != nil {
		return err
	}
	if dir == nil {
		l.removeAll()
		return space.ErrWatchedGone
	}
	defer dir.Close()
	for range lists {
		l.seen = nil
		var later map[place]bool
		if l.all {
			err = l.every(ctx, l.root, dir, depthOf(l.at))
		} else {
			later = l.some(dir)
		}
		if err != nil {
			return err
		}
		moved, err := l.settle(ctx, dir)
		l.later = later
		if err != nil || !moved {
			return err
		}
		l.anew, l.found = false, &found{written: later}
	}
	return nil
}

// openTop opens the watched folder; nil where it is another one now, or none.
func (l *looking) openTop(top *beneath.Folder) (*beneath.Folder, error) {
	var st beneath.Stat
	var dir *beneath.Folder
	var err error
	if l.shaken || l.anew {
		dir, st, err = l.reach(top)
	} else if dir, err = beneath.Dir(top, l.at); err == nil {
		if err = beneath.Fstat(dir, &st); err != nil {
			dir.Close()
		}
	}
	if err != nil && (beneath.Vanished(err) || errors.Is(err, syscall.EACCES)) {
		return nil, nil
	}
	if err != nil {
		return nil, beneath.Refusal(err, l.at)
	}
	if is := markOf(st); l.anew {
		l.root.is = is
	} else if !l.root.is.same(is) {
		dir.Close()
		return nil, nil
	}
	return dir, nil
}

// removeAll tells that everything is gone, and forgets it.
func (l *looking) removeAll() {
	for _, name := range sorted(l.root.in) {
		l.forget(l.root.in[name], l.removed)
	}
	if l.at != "." {
		l.tell(space.WatchRemoved, l.root)
	}
}

// some looks at the places where something happened. It returns those in folders that lie elsewhere by now: the notes of the folders above
// say where.
func (l *looking) some(dir *beneath.Folder) (later map[place]bool) {
	byFolder, later := map[*node][]string{}, map[place]bool{}
	for p := range l.written {
		if p.in.in != nil && l.known(p.in) {
			byFolder[p.in] = append(byFolder[p.in], p.name)
		}
	}
	for n, names := range byFolder {
		if l.inFolder(n, dir, names) {
			continue
		}
		for _, name := range names {
			at := place{n, name}
			later[at] = l.written[at]
		}
	}
	return later
}

// inFolder looks at names in a folder. It returns false where the folder does not lie where it is remembered.
func (l *looking) inFolder(n *node, dir *beneath.Folder, names []string) bool {
	sub, err := beneath.Dir(dir, l.below(n))
	if err != nil {
		return false
	}
	defer sub.Close()
	var st beneath.Stat
	if beneath.Fstat(sub, &st) != nil || st.Ino != n.is.ino {
		return false
	}
	for _, name := range names {
		l.sight(n, sub, name)
	}
	return true
}

// sight looks at one place.
func (l *looking) sight(n *node, dir *beneath.Folder, name string) sight {
	at := place{n, name}
	s := sight{place: at, was: n.in[name], wrote: l.written[at]}
	if st, err := beneath.Lstat(dir, name); err == nil {
		s.is, s.there = markOf(st), true
	}
	if s.was != nil || s.there {
		l.seen = append(l.seen, s)
	}
	return s
}

// every looks at everything below a folder.
func (l *looking) every(ctx context.Context, n *node, dir *beneath.Folder, depth int) error {
	if depth > space.MaxWatchDepth {
		return space.ErrWatchLarge
	}
	l.note(n, dir) // of a folder that has notes already they go on
	left := map[string]bool{}
	for name := range n.in {
		left[name] = true
	}
	visit := func(name string) error {
		delete(left, name)
		s := l.sight(n, dir, name)
		if len(l.seen) > 2*space.MaxWatchEntries {
			return space.ErrWatchLarge
		}
		if s.was == nil || s.was.in == nil || !s.there || !s.same(l.anew) {
			return nil
		}
		sub, err := beneath.Dir(dir, name)
		if err != nil {
			return nil //nolint:nilerr // it is gone again, which the next look tells
		}
		defer sub.Close()
		return l.every(ctx, s.was, sub, depth+1)
	}
	if err := names(ctx, dir, visit); err != nil {
		return err
	}
	for name := range left {
		l.sight(n, dir, name)
	}
	return nil
}

// settle makes what is remembered what was seen, and tells the difference. It returns whether a folder was renamed, in which more may
// differ.
func (l *looking) settle(ctx context.Context, dir *beneath.Folder) (moved bool, err error) {
	slices.SortFunc(l.seen, func(a, b sight) int {
		return cmp.Or(cmp.Compare(l.below(a.in), l.below(b.in)), cmp.Compare(a.name, b.name))
	})
	renames := l.renames()
	for _, s := range l.seen {
		if !s.gone(l.anew) || renames.leaves[s.was] || s.there && l.replaced(s, renames) || !l.known(s.was) {
			continue
		}
		l.forget(s.was, l.removed)
	}
	for _, s := range l.seen {
		source, ok := renames.arrives[s.place]
		if !ok || !l.known(s.in) || !l.known(source) || inside(s.in, source) {
			continue
		}
		if there := s.in.in[s.name]; there != nil && there != source {
			tell := l.removed
			if !there.is.folder() {
				tell = nil // another entry was renamed to it
			}
			l.forget(there, tell)
		}
		l.rename(source, s)
		moved = moved || source.in != nil
	}
	for _, s := range l.seen {
		if !s.there || !l.known(s.in) {
			continue
		}
		if err := l.arrived(ctx, dir, s); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// replaced reports whether another file took the place of a remembered one, which is a change of it.
func (l *looking) replaced(s sight, r moves) bool {
	_, arrives := r.arrives[s.place]
	return s.was.is.kind == s.is.kind && !s.is.folder() && !arrives || arrives
}

// inside reports whether a node is another one or lies below it.
func inside(n, other *node) bool {
	for ; n != nil; n = n.up {
		if n == other {
			return true
		}
	}
	return false
}

// moves are the renames of a look.
type moves struct {
	leaves  map[*node]bool
	arrives map[place]*node
}

// renames finds what went from one place to another. Without notes of the kernel only what is otherwise unchanged counts, for a new file
// may get the number of one that is gone.
func (l *looking) renames() moves {
	m := moves{map[*node]bool{}, map[place]*node{}}
	gone := map[uint64]sight{}
	for _, s := range l.seen {
		if s.gone(l.anew) && s.was.is.ino != 0 {
			gone[s.was.is.ino] = s
		}
	}
	for _, s := range l.seen {
		source, ok := gone[s.is.ino]
		if l.anew || !ok || !s.there || !source.was.is.same(s.is) || m.leaves[source.was] {
			continue
		}
		noted := l.from[source.place] && l.to[s.place]
		still := l.all && source.was.is.modified == s.is.modified && (s.is.folder() || source.was.is.size == s.is.size)
		if !noted && !still {
			continue
		}
		m.leaves[source.was], m.arrives[s.place] = true, source.was
	}
	// When two entries swap names, neither rename can come first. So both are reported as changes of their paths.
	for _, s := range l.seen {
		source, ok := m.arrives[s.place]
		if there := s.in.in[s.name]; ok && there != nil && m.leaves[there] {
			delete(m.arrives, s.place)
			delete(m.leaves, source)
		}
	}
	return m
}

// rename moves a node to where it was seen.
func (l *looking) rename(n *node, s sight) {
	from := l.path(n)
	delete(n.up.in, n.name)
	n.up, n.name = s.in, s.name
	s.in.in[s.name] = n
	kind, size := s.is.word()
	l.told = append(l.told, space.WatchEvent{Kind: space.WatchRenamed, Path: l.path(n), From: from, Type: kind, Size: size})
}

// arrived remembers the entry that was seen at a place, if it is new or differs.
func (l *looking) arrived(ctx context.Context, dir *beneath.Folder, s sight) error {
	n := s.in.in[s.name]
	if n != nil && n.is.kind != s.is.kind {
		l.forget(n, l.removed) // what lies there now came while another one was about to be renamed to it
		n = nil
	}
	if n == nil {
		in, err := beneath.Dir(dir, l.below(s.in))
		if err != nil {
			return nil //nolint:nilerr // it moved or is gone, which the next look tells
		}
		defer in.Close()
		return l.add(ctx, s.in, in, s.name, s.is, depthOf(l.path(s.in)), l.created)
	}
	was := n.is
	n.is = s.is
	other := was.modified != s.is.modified || was.size != s.is.size || !l.anew && was.ino != s.is.ino
	switch {
	case s.is.folder() && (n.dead || was.ino != s.is.ino) && !l.anew: // another folder took its place
		n.is = was
		l.forget(n, l.removed)
		return l.arrived(ctx, dir, s)
	case !s.is.folder() && (other || s.wrote):
		l.tell(space.WatchChanged, n)
	case was.mode != s.is.mode:
		l.tell(space.WatchChanged, n)
		l.told[len(l.told)-1].Attributes = true
	}
	return nil
}

func (l *looking) created(n *node) { l.tell(space.WatchCreated, n) }
func (l *looking) removed(n *node) { l.tell(space.WatchRemoved, n) }

func (l *looking) tell(kind string, n *node) {
	word, size := n.is.word()
	if kind == space.WatchRemoved {
		size = 0
	}
	l.told = append(l.told, space.WatchEvent{Kind: kind, Path: l.path(n), Type: word, Size: size})
}
