// Package platter is a disk that remembers everything that was asked of it, and shows what it may hold after a kill or a power cut at any
// moment.
package platter

import (
	"iter"
	"path"
	"slices"
	"sync"
)

// Disk is a record of calls on the files of one folder, in the order in which they happened. Paths are relative, with slashes. The
// effect of a call on a file is durable only after a later Sync of that file, and for names after a later SyncFolder of their folder.
type Disk struct {
	mu    sync.Mutex // guards the fields below
	start Files
	steps []step
}

// Load returns a disk that holds files, durably.
func Load(files Files) *Disk { return &Disk{start: files} }

type kind int

const (
	makeFile kind = iota
	makeFolder
	write
	truncate
	syncFile
	syncFolder
	rename
	link
	remove
	mark
)

type step struct {
	kind kind
	path string
	to   string
	at   int64 // offset of a write, size of a truncation
	text []byte
	mark any
}

func (d *Disk) add(s step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps = append(d.steps, s)
}

// Make records that a file was made; one that is there stays as it is.
func (d *Disk) Make(path string) { d.add(step{kind: makeFile, path: path}) }

// MakeFolder records that a folder was made.
func (d *Disk) MakeFolder(path string) { d.add(step{kind: makeFolder, path: path}) }

// Write records a write; the bytes are copied.
func (d *Disk) Write(path string, at int64, p []byte) {
	d.add(step{kind: write, path: path, at: at, text: slices.Clone(p)})
}

// Truncate records that a file got a size, smaller or larger.
func (d *Disk) Truncate(path string, size int64) {
	d.add(step{kind: truncate, path: path, at: size})
}

// Sync records that the content of a file is durable.
func (d *Disk) Sync(path string) { d.add(step{kind: syncFile, path: path}) }

// SyncFolder records that the names in a folder are durable; "." is the top.
func (d *Disk) SyncFolder(path string) { d.add(step{kind: syncFolder, path: path}) }

// Rename records that a file got another name and replaced the file of that name.
func (d *Disk) Rename(from, to string) { d.add(step{kind: rename, path: from, to: to}) }

// Link records that a file got another name beside the one it has.
func (d *Disk) Link(from, to string) { d.add(step{kind: link, path: from, to: to}) }

// Remove records that a file or an empty folder was removed.
func (d *Disk) Remove(path string) { d.add(step{kind: remove, path: path}) }

// Mark records something of the caller's, such as the acknowledged appends.
func (d *Disk) Mark(m any) { d.add(step{kind: mark, mark: m}) }

// Len returns how many steps were recorded.
func (d *Disk) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.steps)
}

// Moments yields every moment: the one before the first step and the one after each. A moment is valid until the next one is asked for.
func (d *Disk) Moments() iter.Seq[*Moment] {
	d.mu.Lock()
	steps := slices.Clone(d.steps)
	d.mu.Unlock()
	return func(yield func(*Moment) bool) {
		m := &Moment{held: map[string]*node{}, safe: map[string]*node{}, waiting: map[string][]entry{}}
		for name, content := range d.start {
			n := &node{folder: content == nil, held: slices.Clone(content), safe: slices.Clone(content)}
			m.held[name], m.safe[name] = n, n
		}
		if !yield(m) {
			return
		}
		for i, s := range steps {
			m.At, m.last = i+1, s
			m.apply(s)
			if !yield(m) {
				return
			}
		}
	}
}

// Moment is the state of a disk between two steps.
type Moment struct {
	At    int   // number of steps until now
	Marks []any // recorded until now

	last    step
	held    map[string]*node   // as programs see it
	safe    map[string]*node   // the names that are durable
	waiting map[string][]entry // changes of names by folder, not durable yet
}

// node is a file, or a folder.
type node struct {
	folder bool
	held   []byte   // as programs see it
	safe   []byte   // what was synced
	since  []change // what came after that
}

// change is a write, or a truncation where text is nil.
type change struct {
	at   int64
	text []byte
}

// entry is a change of names within one folder, which happens wholly or not at all.
type entry struct {
	gone string // name that is removed; "" for none
	name string // name that is given; "" for none
	node *node
}

func (m *Moment) apply(s step) {
	n := m.held[s.path]
	switch s.kind {
	case mark:
		m.Marks = append(m.Marks, s.mark)
	case makeFile, makeFolder:
		if n == nil {
			n = &node{folder: s.kind == makeFolder}
			m.held[s.path] = n
			m.wait(s.path, entry{name: s.path, node: n})
		}
	case write, truncate:
		if n == nil {
			return // a file without a name any more: nobody will ever read it
		}
		c := change{s.at, s.text}
		n.held = c.on(n.held)
		n.since = append(n.since, c)
	case syncFile:
		if n != nil {
			n.safe, n.since = slices.Clone(n.held), nil
		}
	case syncFolder:
		for _, e := range m.waiting[s.path] {
			e.on(m.safe)
		}
		delete(m.waiting, s.path)
	case rename:
		if n == nil {
			return
		}
		delete(m.held, s.path)
		m.held[s.to] = n
		if path.Dir(s.path) == path.Dir(s.to) {
			m.wait(s.to, entry{gone: s.path, name: s.to, node: n})
			return
		}
		m.wait(s.to, entry{name: s.to, node: n})
		m.wait(s.path, entry{gone: s.path})
	case link:
		if n != nil {
			m.held[s.to] = n
			m.wait(s.to, entry{name: s.to, node: n})
		}
	case remove:
		delete(m.held, s.path)
		m.wait(s.path, entry{gone: s.path})
	}
}

func (m *Moment) wait(name string, e entry) {
	folder := path.Dir(name)
	m.waiting[folder] = append(m.waiting[folder], e)
}

// on returns a content after the change.
func (c change) on(content []byte) []byte {
	if c.text == nil {
		return resized(content, c.at)
	}
	if end := c.at + int64(len(c.text)); int64(len(content)) < end {
		content = resized(content, end)
	}
	copy(content[c.at:], c.text)
	return content
}

func resized(content []byte, size int64) []byte {
	if int64(len(content)) >= size {
		return content[:size]
	}
	had := len(content)
	content = slices.Grow(content, int(size)-had)[:size]
	clear(content[had:])
	return content
}

// on makes the change to a set of names.
func (e entry) on(names map[string]*node) {
	if e.gone != "" {
		delete(names, e.gone)
	}
	if e.name != "" {
		names[e.name] = e.node
	}
}
