// Package watch reports the changes of a folder's entries while hostile code may change them at any moment.
//
// A Tree remembers every entry. Notes of the kernel say where to look. The Tree compares the entry on the disk with the remembered one, and
// reports the difference. So lost notes, a poll and a new scan all end in the same events: they lead from the old state to the new.
package watch

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// rest is the shortest time between two scans. It bounds the events of a program that writes without a pause.
const rest = 5 * time.Millisecond

// mark is the remembered state of an entry.
type mark struct {
	kind, mode uint32
	ino        uint64
	size       int64
	modified   int64 // nanoseconds since 1970
}

func markOf(st beneath.Stat) mark {
	m := mark{kind: st.Mode & beneath.TypeBits, mode: st.Mode & 0o7777, ino: st.Ino, size: st.Size, modified: st.Mtim.Nano()}
	return m
}

func (m mark) folder() bool { return m.kind == beneath.TypeFolder }

// same reports whether two marks are of the same file, by its number. Systems without numbers tell them apart by what they are.
func (m mark) same(o mark) bool { return m.kind == o.kind && m.ino == o.ino }

// word is the type of an entry, and its size if that is one of content.
func (m mark) word() (kind string, size int64) {
	switch m.kind {
	case beneath.TypeFile:
		return "file", m.size
	case beneath.TypeFolder:
		return "directory", 0
	case beneath.TypeLink:
		return "symlink", m.size
	}
	return "other", 0
}

// node is an entry that is remembered. A folder whose entries are remembered as well has a map of them.
type node struct {
	name string
	up   *node // nil for the root, and for forgotten entries
	is   mark
	in   map[string]*node
	note int32 // the number of the folder's notes; 0 for none
	dead bool  // its notes have ended: it was removed, and another entry may have its number now
}

// Tree is a watch of one folder. Make it with New.
type Tree struct {
	open      func() (*beneath.Folder, error) // the space's files, wherever they lie now
	at        string
	recursive bool

	root    *node
	entries int
	hints   *hints // nil if the host has no notifications; then a full scan runs every space.WatchPoll
	looked  bool   // a look has just ended
	over    error  // why the watch has ended

	later map[place]bool // where something happened, in folders that were on their way elsewhere at the last look

	moved  atomic.Bool   // the files lie elsewhere now
	signal chan struct{} // ends a pause
	mu     sync.Mutex    // held during a scan and by Close
	waker  atomic.Pointer[hints]
	closed atomic.Bool
}

// New returns a watch of the folder at, with all below it if recursive, that has not begun. With poll set it uses no notes of the kernel.
func New(open func() (*beneath.Folder, error), at string, recursive, poll bool) *Tree {
	t := &Tree{open: open, at: at, recursive: recursive, signal: make(chan struct{}, 1)}
	if !poll {
		t.take(newHints())
	}
	return t
}

// Begin looks at everything once. From then on Next tells what becomes of it. After an error the watch is closed.
func (t *Tree) Begin(ctx context.Context) error {
	err := t.begin(ctx)
	if err != nil {
		err = errors.Join(beneath.Refusal(err, t.at), t.Close())
	}
	return err
}

func (t *Tree) begin(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	top, err := t.open()
	if err != nil {
		return err
	}
	defer top.Close()
	dir, st, err := t.reach(top)
	if err != nil {
		return err
	}
	defer dir.Close()
	t.root = &node{name: t.at, is: markOf(st)}
	return t.learn(ctx, t.root, dir, depthOf(t.at), nil)
}

// take uses other hints from now on; nil for none.
func (t *Tree) take(h *hints) {
	if t.hints != nil {
		t.hints.close()
	}
	t.hints = h
	t.waker.Store(h)
}

// Polls returns how long the watch waits between two looks; 0 where the kernel notes changes.
func (t *Tree) Polls() time.Duration {
	if t.waker.Load() == nil {
		return space.WatchPoll
	}
	return 0
}

// Moved says that the files of the space lie elsewhere now, or nowhere. It may be called from any goroutine.
func (t *Tree) Moved() {
	t.moved.Store(true)
	t.wake()
}

func (t *Tree) wake() {
	select {
	case t.signal <- struct{}{}:
	default:
	}
	if h := t.waker.Load(); h != nil {
		h.wake()
	}
}

// Close ends the watch, and a Next that waits.
func (t *Tree) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	t.wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take(nil)
	t.root = nil
	return nil
}

// Next waits for events and returns them.
func (t *Tree) Next(ctx context.Context) ([]space.WatchEvent, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if t.closed.Load() {
			return nil, io.ErrClosedPipe
		}
		if t.over != nil {
			return nil, t.over
		}
		if t.looked && t.hints != nil {
			if err := t.pause(ctx, rest); err != nil {
				return nil, err
			}
		}
		if err := t.wait(ctx); err != nil {
			return nil, err
		}
		if t.closed.Load() {
			continue
		}
		t.looked = true
		told, err := t.look(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if t.over = err; len(told) > 0 {
			return told, nil
		}
	}
}

// wait returns when there may be something to see.
func (t *Tree) wait(ctx context.Context) error {
	if t.moved.Load() || t.closed.Load() {
		return ctx.Err()
	}
	if t.hints == nil {
		return t.pause(ctx, space.WatchPoll)
	}
	return t.hints.wait(ctx)
}

// pause waits, or less where something else ends it.
func (t *Tree) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.signal:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// look compares the remembered entries with those on the disk, at the places of the notes or everywhere.
func (t *Tree) look(ctx context.Context) ([]space.WatchEvent, error) {
	l := &looking{Tree: t, found: &found{}}
	switch {
	case t.moved.Swap(false):
		l.all, l.anew = true, true
		if t.hints != nil {
			t.take(newHints())
		}
	case t.hints == nil:
		l.all = true
	default:
		var lost bool
		l.found, lost = t.hints.take()
		for at, wrote := range t.later {
			l.written[at] = l.written[at] || wrote
		}
		if l.all = lost; lost {
			l.shaken = true
		}
	}
	err := l.compare(ctx)
	return l.told, err
}

// reach opens the watched folder below the space's files, and begins to note what happens to the folders on the way to it.
func (t *Tree) reach(top *beneath.Folder) (*beneath.Folder, beneath.Stat, error) {
	var st beneath.Stat
	if t.hints != nil && t.at != "." {
		for folder, _ := beneath.Split(t.at); ; folder, _ = beneath.Split(folder) {
			dir, err := beneath.Dir(top, folder)
			if err != nil {
				return nil, st, err
			}
			if !t.hints.above(dir) {
				t.take(nil)
			}
			dir.Close()
			if folder == "." || t.hints == nil {
				break
			}
		}
	}
	dir, err := beneath.Dir(top, t.at)
	if err == nil {
		if err = beneath.Fstat(dir, &st); err != nil {
			dir.Close()
		}
	}
	return dir, st, err
}

// learn remembers what lies in a folder that was not known. Depth is that of the folder in the space. If tell is not nil, it is called for
// each entry.
func (t *Tree) learn(ctx context.Context, n *node, dir *beneath.Folder, depth int, tell func(*node)) error {
	if depth > space.MaxWatchDepth {
		return space.ErrWatchLarge
	}
	t.note(n, dir)
	n.in = map[string]*node{}
	return names(ctx, dir, func(name string) error {
		st, err := beneath.Lstat(dir, name)
		if err != nil {
			return nil //nolint:nilerr // it is gone again
		}
		return t.add(ctx, n, dir, name, markOf(st), depth, tell)
	})
}

// add remembers an entry of a folder, and its contents.
func (t *Tree) add(ctx context.Context, in *node, dir *beneath.Folder, name string, is mark, depth int, tell func(*node)) error {
	if t.entries++; t.entries > space.MaxWatchEntries {
		return space.ErrWatchLarge
	}
	made := &node{name: name, up: in, is: is}
	in.in[name] = made
	if tell != nil {
		tell(made)
	}
	if !t.recursive || !is.folder() {
		return nil
	}
	sub, err := beneath.Dir(dir, name)
	if err != nil {
		made.in = map[string]*node{} // gone, or closed even to the daemon: its folder's notes tell what becomes of it
		return nil
	}
	defer sub.Close()
	return t.learn(ctx, made, sub, depth+1, tell)
}

// note starts the notes about a folder. If the host has no notes left, the watch polls from then on.
func (t *Tree) note(n *node, dir *beneath.Folder) {
	if t.hints != nil && !t.hints.add(n, dir) {
		t.take(nil)
	}
}

// forget removes a node and all below it from memory. If tell is not nil, it is called for each, deeper nodes first.
func (t *Tree) forget(n *node, tell func(*node)) {
	for _, name := range sorted(n.in) {
		t.forget(n.in[name], tell)
	}
	if tell != nil {
		tell(n)
	}
	if t.hints != nil {
		t.hints.drop(n)
	}
	if n.up != nil {
		delete(n.up.in, n.name)
		n.up = nil
	}
	t.entries--
}

// known reports whether a node is still part of the tree.
func (t *Tree) known(n *node) bool {
	for ; n.up != nil; n = n.up {
	}
	return n == t.root
}

// path returns the path of a node below the space's files.
func (t *Tree) path(n *node) string {
	if n == t.root {
		return t.at
	}
	return beneath.Join(t.at, t.below(n))
}

// below returns the path of a node below the watched folder.
func (t *Tree) below(n *node) string {
	var names []string
	for ; n.up != nil; n = n.up {
		names = append(names, n.name)
	}
	if len(names) == 0 {
		return "."
	}
	slices.Reverse(names)
	return path.Join(names...)
}

// depthOf is how deep a folder lies in the space.
func depthOf(at string) int {
	if at == "." {
		return 0
	}
	return 1 + strings.Count(at, "/")
}

func sorted(in map[string]*node) []string {
	names := make([]string, 0, len(in))
	for name := range in {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// batch is how many names of a folder are read at once.
const batch = 1024

// names calls see for the names of a folder, in their order within each batch.
func names(ctx context.Context, dir *beneath.Folder, see func(string) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		some, err := dir.Readdirnames(batch)
		slices.Sort(some)
		for _, name := range some {
			if err := see(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
