package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/overlay"
	"agentbox/internal/driver/disk/internal/seed"
	"agentbox/internal/driver/disk/internal/snapshots"
	"agentbox/internal/kernel/vault"
)

// The folders of one space.
const (
	filesFolder   = overlay.Files   // the files that the space sees, owned by its user
	stagingFolder = overlay.Staging // files that are being written for it; on the same file system, out of its sight
	keptFolder    = "snapshots"     // what its files were
	trashFolder   = ".trash"        // of all spaces: folders that are being removed
	frozenFolder  = overlay.Frozen
)

// Spaces are the folders of all spaces of a daemon. Code of a space sees `<dir>/<space>/files` and nothing beside it. Only the daemon's
// user may enter the folder.
type Spaces struct {
	dir     string
	keys    vault.Keys
	entropy io.Reader
	sources []string

	shared sync.RWMutex // held for reading while a space is laid over a frozen tree, for writing while something is taken out of one

	mu     sync.Mutex // guards the fields below
	open   map[id.Space]*Files
	pasts  map[id.Space]*snapshots.Past
	places map[id.Space]*place
	over   map[id.Space]overlay.Below
	trees  map[id.Space]*snapshots.Tree // the contents of frozen trees that were read
	able   *bool                        // whether this host can do that; nil until it was tried
}

var _ space.Store = (*Spaces)(nil)

// OpenSpaces opens the folder of all spaces, makes it if needed, and removes what an earlier daemon left half removed or half written.
// Snapshots are sealed under keys. Names of temporary files are drawn from entropy, which must be safe for concurrent use. Spaces may be
// seeded from host folders only below one of sources, absolute paths that the operator chose.
func OpenSpaces(ctx context.Context, dir string, keys vault.Keys, entropy io.Reader, sources ...string) (*Spaces, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the folder of the spaces must be an absolute path")
	}
	for _, p := range sources {
		if !filepath.IsAbs(p) {
			return nil, fault.New(fault.Invalid, "invalid_config", "a folder that spaces may start from must be an absolute path")
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, trashFolder), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the spaces: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("close the folder of the spaces to others: %w", err)
	}
	if err := beneath.SyncPath(filepath.Dir(dir)); err != nil {
		return nil, fmt.Errorf("make the folder of the spaces durable: %w", err)
	}
	s := &Spaces{
		dir: dir, keys: keys, entropy: entropy, sources: sources, open: map[id.Space]*Files{}, pasts: map[id.Space]*snapshots.Past{},
		places: map[id.Space]*place{}, over: map[id.Space]overlay.Below{}, trees: map[id.Space]*snapshots.Tree{},
	}
	found, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, sp := range found {
		if err := s.recover(ctx, sp); err != nil {
			return nil, err
		}
	}
	if err := s.discardTrees(); err != nil {
		return nil, err
	}
	return s, beneath.Empty(ctx, filepath.Join(dir, trashFolder), entropy)
}

// Create makes the folders of a space.create or space.fork permit's space, durably, and fills the files from the seed. The permit names the
// seed: a folder or a space is its target, and an archive or a snapshot has its hash. All of it belongs to uid (0: the
// daemon's user). A space that has folders already is a fault space_exists.
func (s *Spaces) Create(ctx context.Context, p policy.Permit, uid int, limits space.Limits, from space.Seed) (space.Sown, error) {
	if err := ctx.Err(); err != nil {
		return space.Sown{}, err
	}
	a, err := p.Redeem(policy.SpaceCreate, policy.SpaceFork)
	if err != nil {
		return space.Sown{}, err
	}
	if !decided(a, from) {
		return space.Sown{}, policy.ErrPermitMismatch
	}
	home, err := s.home(a.Space)
	if err != nil {
		return space.Sown{}, err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return space.Sown{}, fault.New(fault.Conflict, "space_exists", "the space %s has files already", a.Space)
		}
		return space.Sown{}, beneath.Refusal(err, string(a.Space))
	}
	files, err := s.fill(ctx, home, uid, limits, from, a)
	if err != nil {
		// Not with ctx: its end may be why.
		return space.Sown{}, errors.Join(err, s.Remove(context.WithoutCancel(ctx), a.Space))
	}
	return files, nil
}

// decided reports whether a seed is the one that an action names.
func decided(a policy.Action, from space.Seed) bool {
	from.Withhold, from.Strict = nil, false // the policy is that of the action
	if a.Type == policy.SpaceFork {
		return from == space.Seed{Space: id.Space(a.Target), Snapshot: a.Content} && from.Space != "" && !a.Content.IsZero()
	}
	return from.Space == "" && from.Snapshot.IsZero() && a.Target == from.Folder && a.Content.IsZero() == (from.Archive == nil)
}

func (s *Spaces) fill(ctx context.Context, home string, uid int, limits space.Limits, from space.Seed, a policy.Action) (space.Sown,
	error) {
	if from.Space != "" {
		s.shared.RLock()
		defer s.shared.RUnlock()
		if err := s.join(home, a.Space, uid, from.Space); err != nil {
			return space.Sown{}, err
		}
		if tree, ok := s.below(a.Space); ok {
			return s.fork(ctx, a.Space, uid, limits, from, tree)
		}
	}
	files := filepath.Join(home, filesFolder)
	err := errors.Join(os.Mkdir(filepath.Join(home, stagingFolder), 0o700), os.Mkdir(files, 0o700), os.Chmod(files, beneath.FolderMode))
	if err == nil && uid != 0 {
		err = os.Lchown(files, uid, uid)
	}
	if err = errors.Join(err, beneath.SyncPath(home), beneath.SyncPath(s.dir)); err != nil {
		return space.Sown{}, beneath.Refusal(err, ".")
	}
	switch {
	case from.Folder == "" && from.Archive == nil && from.Space == "":
		return space.Sown{}, nil
	case from.Space != "":
		return s.fork(ctx, a.Space, uid, limits, from, overlay.Below{})
	}
	root, err := beneath.Root(files)
	if err != nil {
		return space.Sown{}, err
	}
	defer root.Close()
	aside := seed.Aside{}
	if from.Withhold != nil {
		aside.Held = func(path string) bool { _, held := from.Withhold.Match(path); return held }
		aside.Open = func() (*beneath.Folder, error) {
			if err := makeAside(home, *from.Withhold); err != nil {
				return nil, err
			}
			return beneath.Root(filepath.Join(home, withheldFiles))
		}
	}
	return seed.Fill(ctx, root, aside, uid, limits, from, a.Content, s.sources)
}

// Open returns the files of a space and their folder, for the tier that mounts it. New files belong to uid (0: the daemon's user). While
// these arguments stay the same, Open returns the same Files each time, so that all writers share one account of the disk. After Share the
// folder is another one.
func (s *Spaces) Open(sp id.Space, uid int, limits space.Limits) (space.Files, string, error) {
	f, err := s.files(sp, uid, limits)
	if err != nil {
		return nil, "", err
	}
	if f.at.sweeps() {
		if err := f.finish(context.Background()); err != nil {
			return nil, "", err
		}
	}
	return f, f.at.path(filesFolder), nil
}

func (s *Spaces) files(sp id.Space, uid int, limits space.Limits) (*Files, error) {
	home, err := s.home(sp)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.place(sp, home)
	if err != nil {
		return nil, err
	}
	f := s.open[sp]
	if f == nil || f.uid != uid || f.limits != limits {
		f = &Files{
			space: sp, at: p, uid: uid, limits: limits, entropy: s.entropy, past: s.past(sp, p, uid, limits),
		}
		s.open[sp] = f
	}
	return f, nil
}

// List returns the spaces that have folders here, so that those which nobody keeps any more can be removed.
func (s *Spaces) List(ctx context.Context) ([]id.Space, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("read the folder of the spaces: %w", err)
	}
	var found []id.Space
	for _, e := range entries {
		if sp, err := id.Parse[id.Space](e.Name()); err == nil && e.IsDir() {
			found = append(found, sp)
		}
	}
	return found, nil
}

// Remove removes the folders of a space, whatever was made in them; no code may run in it any more. The space is gone in one step; should
// the daemon end before everything is deleted, the next OpenSpaces goes on. A space that is not there is no error.
func (s *Spaces) Remove(ctx context.Context, sp id.Space) error {
	home, err := s.home(sp)
	if err != nil {
		return err
	}
	tree, last := s.leave(sp)
	name, err := beneath.RandomName(s.entropy)
	if err != nil {
		return err
	}
	gone := filepath.Join(s.dir, trashFolder, name)
	if err := os.Rename(home, gone); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return beneath.Refusal(err, string(sp))
	}
	if err := errors.Join(beneath.SyncPath(s.dir), beneath.SyncPath(filepath.Join(s.dir, trashFolder))); err != nil {
		return err
	}
	if err := s.empty(ctx, gone); err != nil || !last {
		return err
	}
	if gone, err = s.discard(tree); err != nil || gone == "" {
		return err
	}
	return s.empty(ctx, gone)
}

// empty removes a folder of the trash.
func (s *Spaces) empty(ctx context.Context, gone string) error {
	if err := beneath.Empty(ctx, gone, s.entropy); err != nil {
		return err
	}
	return os.Remove(gone)
}

// home returns the folder of a space. Only a well-formed identifier becomes part of a path.
func (s *Spaces) home(sp id.Space) (string, error) {
	if _, err := id.Parse[id.Space](string(sp)); err != nil {
		return "", fault.Wrap(err, fault.Invalid, "invalid_id", "that is not a space")
	}
	return filepath.Join(s.dir, string(sp)), nil
}
