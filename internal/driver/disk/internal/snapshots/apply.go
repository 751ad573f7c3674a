package snapshots

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/kernel/vault"
)

// maker makes files and folders out of content, all of them in a folder that code of the space does not see.
type maker struct {
	ctx     context.Context
	packs   *packs
	uid     int // owner; 0 leaves it to the daemon's user
	entropy io.Reader
	made    map[uint64]event.Digest // by inode: content that was written
}

func byName(a, b entry) int { return strings.Compare(a.name, b.name) }

// make makes an entry under a name that is free.
func (m *maker) make(dir *beneath.Folder, name string, e entry) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	switch e.kind {
	case isFolder:
		return m.folder(dir, name, e)
	case isLink:
		if err := beneath.Symlink(e.target, dir, name); err != nil || m.uid == 0 {
			return err
		}
		return beneath.Lchown(dir, name, m.uid, m.uid)
	}
	file, err := beneath.Open(dir, name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := m.packs.copyTo(m.ctx, file, e); errors.Is(err, vault.ErrForgotten) {
		return forgotten(err, e.name)
	} else if err != nil {
		return err
	}
	var st beneath.Stat
	if err := beneath.Fstat(file, &st); err != nil {
		return err
	}
	m.made[st.Ino] = e.digest
	return errors.Join(m.own(file), beneath.Fchmod(file, e.mode))
}

// folder makes a folder with everything in it.
func (m *maker) folder(parent *beneath.Folder, name string, e entry) error {
	if err := beneath.Mkdir(parent, name); err != nil {
		return err
	}
	dir, err := beneath.Dir(parent, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := m.fill(dir, e.digest); err != nil {
		return err
	}
	return errors.Join(m.own(dir), beneath.Fchmod(dir, e.mode))
}

// fill fills an empty folder.
func (m *maker) fill(dir *beneath.Folder, root event.Digest) error {
	entries, err := m.packs.folder(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := m.make(dir, e.name, e); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) own(f beneath.Handle) error {
	if m.uid == 0 {
		return nil
	}
	return beneath.Fchown(f, m.uid)
}

// step is one change of the live tree. Its new entry lies ready under a name in the staging folder.
type step struct {
	in     string // the folder in which it happens
	name   string
	staged string // "" removes
	chmod  bool   // only the mode changes
	mode   uint32
	now    presence
	folder bool // the new entry is a folder
}

// presence is the present entry of a name.
type presence int

const (
	nothing presence = iota
	aLeaf
	aFolder
)

// plan finds the steps from the present files to a target, and makes the new files for them.
type plan struct {
	maker
	staging *beneath.Folder
	steps   []step
	only    map[string]bool // the folders that change, and those above them
}

// between plans the changes of the folder rel from its present state to the target.
func (p *plan) between(rel string, now *node, target event.Digest) error {
	if now.digest == target && now.sum.omitted == 0 {
		return nil
	}
	want, err := p.packs.folder(target)
	if err != nil {
		return err
	}
	begin := len(p.steps)
	for name, is := range now.names() {
		if _, ok := find(want, name); !ok {
			p.steps = append(p.steps, step{in: rel, name: name, now: is})
		}
	}
	var inner []entry
	for _, e := range want {
		if _, ok := now.folders[e.name]; ok && e.kind == isFolder {
			inner = append(inner, e)
		}
		if err := p.entry(rel, now, e); err != nil {
			return err
		}
	}
	if len(p.steps) > begin {
		mark(p.only, rel)
	}
	for _, e := range inner {
		if err := p.between(beneath.Join(rel, e.name), now.folders[e.name], e.digest); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) entry(rel string, now *node, e entry) error {
	if folder, ok := now.folders[e.name]; ok && e.kind == isFolder {
		if folder.mode != e.mode {
			p.steps = append(p.steps, step{in: rel, name: e.name, chmod: true, mode: e.mode})
		}
		return nil
	}
	if l, ok := now.leaves[e.name]; ok && l.is(e) {
		if e.kind == isFile && l.mode&modeBits != e.mode {
			p.steps = append(p.steps, step{in: rel, name: e.name, chmod: true, mode: e.mode})
		}
		return nil
	}
	staged, err := beneath.RandomName(p.entropy)
	if err != nil {
		return err
	}
	if err := p.make(p.staging, staged, e); err != nil {
		return err
	}
	p.steps = append(p.steps, step{in: rel, name: e.name, staged: staged, now: now.is(e.name), folder: e.kind == isFolder})
	return nil
}

// is reports whether a leaf has an entry's content.
func (l leaf) is(e entry) bool {
	if l.mode&beneath.TypeBits == beneath.TypeLink {
		return e.kind == isLink && l.target == e.target
	}
	return e.kind == isFile && l.digest == e.digest && l.size == e.size
}

// names returns everything in a folder.
func (n *node) names() map[string]presence {
	all := make(map[string]presence, len(n.leaves)+len(n.folders)+len(n.special))
	for name := range n.leaves {
		all[name] = aLeaf
	}
	for _, name := range n.special {
		all[name] = aLeaf
	}
	for name := range n.folders {
		all[name] = aFolder
	}
	return all
}

// is describes the entry of a name in a folder.
func (n *node) is(name string) presence {
	if _, ok := n.leaves[name]; ok || slices.Contains(n.special, name) {
		return aLeaf
	}
	if _, ok := n.folders[name]; ok {
		return aFolder
	}
	return nothing
}

// apply does the steps below root. Removed and replaced folders go to trash, a folder on the same file system.
func (p *plan) apply(root, trash *beneath.Folder) error {
	for i := 0; i < len(p.steps); {
		j := i + 1
		for j < len(p.steps) && p.steps[j].in == p.steps[i].in {
			j++
		}
		if err := p.within(root, trash, p.steps[i:j]); err != nil {
			return err
		}
		i = j
	}
	return nil
}

// within does the steps of one folder. A caller that is not root needs the right to write into it.
func (p *plan) within(root, trash *beneath.Folder, steps []step) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	rel := steps[0].in
	dir, err := beneath.Dir(root, rel)
	if err != nil {
		return beneath.Refusal(err, rel)
	}
	defer dir.Close()
	var st beneath.Stat
	if err := beneath.Fstat(dir, &st); err != nil {
		return beneath.Refusal(err, rel)
	}
	const owner = 0o700
	locked := st.Mode&owner != owner && os.Geteuid() != 0
	if locked {
		if err := beneath.Fchmod(dir, st.Mode&modeBits|owner); err != nil {
			return beneath.Refusal(err, rel)
		}
	}
	for _, s := range steps {
		if err := p.do(dir, trash, s); err != nil {
			return beneath.Refusal(err, beneath.Join(rel, s.name))
		}
	}
	if locked {
		return beneath.Refusal(beneath.Fchmod(dir, st.Mode&modeBits), rel)
	}
	return nil
}

func (p *plan) do(dir, trash *beneath.Folder, s step) error {
	if s.chmod {
		return beneath.Chmod(dir, s.name, s.mode)
	}
	switch {
	case s.now == aFolder:
		if err := p.away(dir, trash, s.name); err != nil {
			return err
		}
	case s.now == aLeaf && (s.staged == "" || s.folder):
		if err := beneath.Unlink(dir, s.name); err != nil {
			return err
		}
	}
	if s.staged == "" {
		return nil
	}
	return beneath.Rename(p.staging, s.staged, dir, s.name)
}

// away moves a folder out of the tree in one step, whatever lies in it.
func (p *plan) away(dir, trash *beneath.Folder, name string) error {
	gone, err := beneath.RandomName(p.entropy)
	if err != nil {
		return err
	}
	return beneath.Move(dir, name, trash, gone)
}
