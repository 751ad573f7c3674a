package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/overlay"
	"agentbox/internal/driver/disk/internal/snapshots"
)

// Share prepares the files of a space for forks: the present files become a frozen tree, and from then on the space lies over it, as each
// fork does. Share does nothing if the host cannot do that, while something writes to the files, or if the space shares them already. It
// calls halt before anything moves.
//
// The tree is the old folder of the files under another name, so the cost does not depend on their amount.
func (s *Spaces) Share(ctx context.Context, sp id.Space, uid int, limits space.Limits, halt func() error) error {
	s.shared.RLock()
	defer s.shared.RUnlock()
	f, err := s.files(sp, uid, limits)
	if err != nil {
		return err
	}
	if _, shares := s.below(sp); shares || !s.shares() || !f.at.still.TryLock() {
		return nil
	}
	defer f.at.still.Unlock()
	tree, moved, err := f.past.Share(ctx, func() (snapshots.Folders, error) {
		if err := halt(); err != nil {
			return snapshots.Folders{}, err
		}
		return s.freeze(f.at, sp, uid)
	})
	if err != nil || !moved {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trees[sp], s.over[sp] = tree, overlay.Below{Tree: sp, User: uid}
	return nil
}

// shares reports whether this host and the file system of the spaces can do it, and tries it when it is first asked.
func (s *Spaces) shares() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.able == nil {
		able := Sharing(s.dir) == nil
		s.able = &able
	}
	return *s.able
}

// probeFolder is how the folders begin in which something is tried.
const probeFolder = ".probe-"

// Sharing tries whether spaces whose folders lie in dir, or would, can share files there, in a folder that it makes and removes. The
// error names the missing part.
func Sharing(dir string) error {
	for {
		probe, err := os.MkdirTemp(dir, probeFolder)
		if err == nil {
			return errors.Join(overlay.Probe(probe), os.RemoveAll(probe))
		}
		if above := filepath.Dir(dir); errors.Is(err, os.ErrNotExist) && above != dir {
			dir = above
			continue
		}
		return err
	}
}

// freeze makes the files of a space a frozen tree and lays the space over it. They move in one step, after the link that says where they
// will be: if it and the files both exist, the change did not end.
func (s *Spaces) freeze(p *place, sp id.Space, uid int) (snapshots.Folders, error) {
	tree := filepath.Join(s.dir, frozenFolder, string(sp))
	from, to := filepath.Join(p.home, filesFolder), filepath.Join(tree, filesFolder)
	// In the eyes of another user the daemon's own is nobody, so that not even the kernel goes through what is closed to others. The folder of
	// all trees is closed.
	err := errors.Join(os.MkdirAll(filepath.Dir(tree), 0o700), os.MkdirAll(tree, 0o755), os.Chmod(tree, 0o755), overlay.Lay(p.home,
		overlay.Below{Tree: sp, User: uid}))
	for _, dir := range []string{s.dir, filepath.Dir(tree), p.home} {
		err = errors.Join(err, beneath.SyncPath(dir))
	}
	p.mu.Lock() // who looks waits
	defer p.mu.Unlock()
	if err == nil {
		err = os.Rename(from, to)
	}
	if err != nil {
		return snapshots.Folders{}, errors.Join(beneath.Refusal(err, "."), overlay.Unlay(p.home))
	}
	mount, err := s.mount(p.home, overlay.Below{Tree: sp, User: uid})
	if err == nil {
		if err = errors.Join(beneath.SyncPath(tree), beneath.SyncPath(p.home)); err != nil {
			mount.Close()
		}
	}
	if err != nil {
		return snapshots.Folders{}, errors.Join(err, os.Rename(to, from), beneath.SyncPath(p.home), overlay.Unlay(p.home))
	}
	p.mount = mount
	p.moved()
	return p.folders(), nil
}

// mount makes the overlay of a space.
func (s *Spaces) mount(home string, over overlay.Below) (*os.File, error) {
	l, err := over.Layers(home)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{stagingFolder, overlay.Moved} {
		if err := os.Mkdir(filepath.Join(l.Upper, name), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, beneath.Refusal(err, ".")
		}
	}
	mount, err := overlay.Mount(l)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "space_files_unreachable",
			"the files of %s lie over others, and this host cannot show them so", filepath.Base(home)).
			With("run the daemon as root, on the kernel that it ran on or a newer one; agentbox doctor says what is missing")
	}
	return mount, nil
}

// below returns the tree that a space lies over; false where its files are its own.
func (s *Spaces) below(sp id.Space) (overlay.Below, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	over, ok := s.over[sp]
	return over, ok
}

// join lays a new space over the tree of another, if that one shares its files.
func (s *Spaces) join(home string, made id.Space, uid int, from id.Space) error {
	s.mu.Lock()
	over, ok := s.over[from]
	if over.User = uid; ok {
		s.over[made] = over
	}
	s.mu.Unlock()
	if !ok {
		return nil
	}
	if err := errors.Join(overlay.Lay(home, over), beneath.SyncPath(home), beneath.SyncPath(s.dir)); err != nil {
		return beneath.Refusal(err, ".")
	}
	return nil
}

// place returns where the files of a space lie. The lock is held.
func (s *Spaces) place(sp id.Space, home string) (*place, error) {
	over, shares := s.over[sp]
	if p := s.places[sp]; p != nil {
		return p, nil
	}
	rules, err := readRules(home)
	if err != nil {
		return nil, err
	}
	p := &place{home: home, sweeping: rules.Sweeping}
	if !shares {
		if _, err := os.Lstat(filepath.Join(home, filesFolder)); err != nil {
			return nil, fault.Wrap(err, space.ErrFilesMissing.Kind, space.ErrFilesMissing.Code, "the files of %s are not on this host", sp)
		}
	} else {
		if p.mount, err = s.mount(home, over); err != nil {
			return nil, err
		}
	}
	s.places[sp] = p
	return p, nil
}

// leave removes a space from the records of shared files. It returns the tree that it lay over, and whether it was the last one.
func (s *Spaces) leave(sp id.Space) (tree id.Space, last bool) {
	s.mu.Lock()
	p, past := s.places[sp], s.pasts[sp]
	over, shared := s.over[sp]
	delete(s.open, sp)
	delete(s.pasts, sp)
	delete(s.places, sp)
	delete(s.over, sp)
	last = shared
	for _, other := range s.over {
		last = last && other.Tree != over.Tree
	}
	if last {
		delete(s.trees, over.Tree)
	}
	s.mu.Unlock()
	if shared && past != nil {
		past.Close()
	}
	if p != nil {
		p.end()
	}
	return over.Tree, last
}

// Close gives up what shows the files of spaces that share them. Nothing of the store is used afterwards.
func (s *Spaces) Close() error {
	s.mu.Lock()
	places, pasts := slices.Collect(maps.Values(s.places)), slices.Collect(maps.Values(s.pasts))
	s.mu.Unlock()
	for _, past := range pasts {
		past.Close()
	}
	for _, p := range places {
		p.end()
	}
	return nil
}

// tree returns the content of a frozen tree.
func (s *Spaces) tree(ctx context.Context, name id.Space) (*snapshots.Tree, error) {
	s.mu.Lock()
	known := s.trees[name]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	found, err := snapshots.Look(ctx, filepath.Join(s.dir, frozenFolder, string(name), filesFolder))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trees[name] = found
	return found, nil
}

// recover puts in order what an earlier daemon left of a space that it was freezing or writing to.
func (s *Spaces) recover(ctx context.Context, sp id.Space) error {
	home := filepath.Join(s.dir, string(sp))
	if _, err := os.Lstat(filepath.Join(home, withheldStaging)); err == nil {
		if err := beneath.Empty(ctx, filepath.Join(home, withheldStaging), s.entropy); err != nil {
			return err
		}
	}
	staging := filepath.Join(home, stagingFolder)
	if _, err := os.Lstat(filepath.Join(home, filesFolder)); err == nil { // if they were about to move, they did not
		return errors.Join(overlay.Unlay(home), beneath.Empty(ctx, staging, s.entropy))
	}
	over, shares, err := overlay.Find(home)
	if err != nil {
		return err
	}
	if shares {
		s.over[sp] = over
		staging = filepath.Join(home, overlay.Upper, stagingFolder)
	}
	return beneath.Empty(ctx, staging, s.entropy)
}

// discardTrees moves the frozen trees to the trash that no space lies over, and removes what was left of trying.
func (s *Spaces) discardTrees() error {
	probes, err := filepath.Glob(filepath.Join(s.dir, probeFolder+"*"))
	for _, probe := range probes {
		err = errors.Join(err, os.RemoveAll(probe))
	}
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, over := range s.over {
		used[string(over.Tree)] = true
	}
	found, err := os.ReadDir(filepath.Join(s.dir, frozenFolder))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range found {
		if used[e.Name()] {
			continue
		}
		if _, err := s.discard(id.Space(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// discard moves a frozen tree to the trash and returns where it lies there; "" where it is gone already.
func (s *Spaces) discard(tree id.Space) (string, error) {
	name, err := beneath.RandomName(s.entropy)
	if err != nil {
		return "", err
	}
	gone := filepath.Join(s.dir, trashFolder, name)
	err = os.Rename(filepath.Join(s.dir, frozenFolder, string(tree)), gone)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return gone, errors.Join(err, beneath.SyncPath(filepath.Join(s.dir, frozenFolder)), beneath.SyncPath(filepath.Join(s.dir, trashFolder)))
}

// purge removes contents from the frozen tree below a space. Every space that shows such a file first gets a copy of its own, because the
// files of living spaces belong to their owners. If the daemon ended in the middle of a tree, purge reads the tree again.
func (s *Spaces) purge(ctx context.Context, sp id.Space, contents map[event.Digest]bool) error {
	s.shared.Lock()
	defer s.shared.Unlock()
	over, shares := s.below(sp)
	if !shares {
		return nil
	}
	tree, err := s.tree(ctx, over.Tree)
	if err != nil {
		return err
	}
	bearing := tree.Bearing(contents)
	if len(bearing) == 0 {
		return nil
	}
	s.mu.Lock()
	var above []*place
	for other, its := range s.over {
		if its.Tree != over.Tree {
			continue
		}
		p, failed := s.place(other, filepath.Join(s.dir, string(other)))
		above, err = append(above, p), errors.Join(err, failed)
	}
	delete(s.trees, over.Tree)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, p := range above {
		if err := p.own(ctx, bearing); err != nil {
			return err
		}
	}
	root, err := beneath.Root(filepath.Join(s.dir, frozenFolder, string(over.Tree), filesFolder))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, paths := range bearing {
		for _, path := range paths {
			if err := scrap(root, path); err != nil {
				return fault.Wrap(err, fault.Internal, "file_error", "a redacted file could not be taken out of the tree that %s lies over", sp)
			}
		}
	}
	return nil
}

// own has a space keep those of some files, by their inodes, that it still shares. To open one for writing is enough: the kernel then makes
// its copy, durably. It looks at all of the space or returns an error, for what it passed over would be lost to the space. Code may run
// meanwhile: of a folder that goes away under the look it looks again.
func (p *place) own(ctx context.Context, inodes map[uint64][]string) error {
	root, err := p.open(filesFolder)
	if err != nil {
		return nil //nolint:nilerr // the space was removed
	}
	defer root.Close()
	for range attempts {
		err = beneath.WalkAll(ctx, root, ".", beneath.MaxDepth, snapshots.MaxEntries, func(dir *beneath.Folder, rel, name string,
			st beneath.Stat) error {
			if st.Mode&beneath.TypeBits != beneath.TypeFile || inodes[st.Ino] == nil {
				return nil
			}
			file, err := beneath.Open(dir, name, os.O_WRONLY)
			if err != nil {
				return beneath.Refusal(err, rel)
			}
			return file.Close()
		})
		if err == nil || !beneath.Vanished(err) {
			break
		}
	}
	if failed, ok := errors.AsType[*fault.Error](err); ok {
		return failed.With("Nothing was taken out of the files that spaces share. Remove that folder from " + filepath.Base(p.home) +
			", or destroy the space.")
	}
	return beneath.Refusal(err, ".")
}

// scrap empties and removes a file. Emptying it frees its bytes at once, even if a process has it open.
func scrap(root *beneath.Folder, path string) error {
	folder, name := beneath.Split(path)
	dir, err := beneath.Dir(root, folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	file, err := beneath.Open(dir, name, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("empty it: %w", err)
	}
	return errors.Join(file.Sync(), file.Close(), beneath.Unlink(dir, name), beneath.SyncDir(dir))
}
