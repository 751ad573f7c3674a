package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// The folders of one space.
const (
	filesFolder   = "files"   // what the space sees, owned by its user
	stagingFolder = "staging" // what is about to become one of its files; on the same file system, out of its sight
	trashFolder   = ".trash"  // of all spaces: what is being removed
)

// Spaces are the folders of all spaces of a daemon: `<dir>/<space>/files` and beside it what the space does not see. The folder itself is
// closed to every user but the daemon's.
type Spaces struct {
	dir     string
	entropy io.Reader
	sources []string

	mu   sync.Mutex // guards open
	open map[id.Space]*Files
}

// OpenSpaces opens the folder of all spaces, makes it if needed, and removes what an earlier daemon left half removed or half written.
// Names of temporary files are drawn from entropy, which must be safe for concurrent use. Spaces may be seeded from host folders only
// below one of sources, absolute paths that the operator chose.
func OpenSpaces(ctx context.Context, dir string, entropy io.Reader, sources ...string) (*Spaces, error) {
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
	s := &Spaces{dir: dir, entropy: entropy, sources: sources, open: map[id.Space]*Files{}}
	found, err := s.Known()
	if err != nil {
		return nil, err
	}
	for _, sp := range found {
		if err := emptyPath(ctx, filepath.Join(dir, string(sp), stagingFolder), entropy); err != nil {
			return nil, err
		}
	}
	return s, emptyPath(ctx, filepath.Join(dir, trashFolder), entropy)
}

// Create makes the folders of a space, with files that belong to uid (0: the daemon's user), durably. A space that has folders already
// is a fault space_exists.
func (s *Spaces) Create(sp id.Space, uid int) error {
	home, err := s.home(sp)
	if err != nil {
		return err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return fault.New(fault.Conflict, "space_exists", "the space %s has files already", sp)
		}
		return refusal(err, string(sp))
	}
	for _, folder := range [...]struct {
		name string
		mode os.FileMode
	}{{stagingFolder, 0o700}, {filesFolder, folderMode}} {
		path := filepath.Join(home, folder.name)
		err = errors.Join(err, os.Mkdir(path, 0o700), os.Chmod(path, folder.mode))
	}
	if uid != 0 {
		err = errors.Join(err, os.Lchown(filepath.Join(home, filesFolder), uid, uid))
	}
	err = errors.Join(err, syncPath(home), syncPath(s.dir))
	if err != nil {
		return refusal(errors.Join(err, os.RemoveAll(home)), string(sp))
	}
	return nil
}

// Dir returns the host folder of a space's files, for the tier that mounts it.
func (s *Spaces) Dir(sp id.Space) (string, error) {
	home, err := s.home(sp)
	return filepath.Join(home, filesFolder), err
}

// Files returns the files of a space. What is made belongs to uid (0: the daemon's user); quota bounds the bytes on disk (0: no bound).
// As long as these stay the same, a space's Files are the same each time, so that all its writers share one account of the quota.
func (s *Spaces) Files(sp id.Space, uid int, quota int64) (*Files, error) {
	home, err := s.home(sp)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(home, filesFolder)); err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "space_files_missing", "the files of %s are not on this host", sp)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.open[sp]
	if f == nil || f.uid != uid || f.quota != quota {
		f = &Files{
			space: sp, dir: filepath.Join(home, filesFolder), staging: filepath.Join(home, stagingFolder),
			uid: uid, quota: quota, entropy: s.entropy,
		}
		s.open[sp] = f
	}
	return f, nil
}

// Measure returns what the files of a space occupy.
func (s *Spaces) Measure(ctx context.Context, sp id.Space) (Usage, error) {
	dir, err := s.Dir(sp)
	if err != nil {
		return Usage{}, err
	}
	return Measure(ctx, dir)
}

// Known returns the spaces that have folders here, so that those which nobody keeps any more can be removed.
func (s *Spaces) Known() ([]id.Space, error) {
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
	s.mu.Lock()
	delete(s.open, sp)
	s.mu.Unlock()
	name, err := randomName(s.entropy)
	if err != nil {
		return err
	}
	gone := filepath.Join(s.dir, trashFolder, name)
	if err := os.Rename(home, gone); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return refusal(err, string(sp))
	}
	if err := errors.Join(syncPath(s.dir), syncPath(filepath.Join(s.dir, trashFolder))); err != nil {
		return err
	}
	if err := emptyPath(ctx, gone, s.entropy); err != nil {
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

// emptyPath removes everything in a folder of the daemon's own; one that is not there is empty.
func emptyPath(ctx context.Context, path string, entropy io.Reader) error {
	top, err := os.Open(path)
	if err != nil {
		return ignoring(err, os.ErrNotExist)
	}
	defer top.Close()
	return empty(ctx, top, entropy)
}

// empty removes everything in a folder, however deep and wide it is, in constant memory and with three descriptors: a folder in a folder
// is first moved up to the top under a random name, so that there is never a second level to go down to. It follows no link, crosses no
// mount, and changes nothing but what it removes.
func empty(ctx context.Context, top *os.File, entropy io.Reader) error {
	for {
		names, err := someNames(top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := emptyOne(ctx, top, name, entropy); err != nil {
				return fmt.Errorf("remove the files of a space: %w", err)
			}
		}
	}
}

// emptyOne removes one entry of top after moving the folders in it up.
func emptyOne(ctx context.Context, top *os.File, name string, entropy io.Reader) error {
	err := unix.Unlinkat(int(top.Fd()), name, 0)
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return ignoring(err, unix.ENOENT)
	}
	dir, err := openForRemoval(top, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := someNames(dir)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return unix.Unlinkat(int(top.Fd()), name, unix.AT_REMOVEDIR)
		}
		for _, inner := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := unix.Unlinkat(int(dir.Fd()), inner, 0)
			if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
				err = moveUp(dir, inner, top, entropy)
			}
			if err := ignoring(err, unix.ENOENT); err != nil {
				return err
			}
		}
	}
}

// openForRemoval opens a folder, also one whose permission bits keep its owner out.
func openForRemoval(in *os.File, name string) (*os.File, error) {
	path, err := openBeneath(in, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer path.Close()
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", path.Fd()), 0o700); err != nil {
		return nil, err
	}
	return openDir(in, name)
}

// moveUp moves a folder to the top. Who is not root must be allowed to write into a folder to give it another parent.
func moveUp(dir *os.File, name string, top *os.File, entropy io.Reader) error {
	opened, err := openForRemoval(dir, name)
	if err != nil {
		return err
	}
	opened.Close()
	unique, err := randomName(entropy)
	if err != nil {
		return err
	}
	return unix.Renameat2(int(dir.Fd()), name, int(top.Fd()), unique, unix.RENAME_NOREPLACE)
}

// someNames returns up to batch names from the beginning of a folder.
func someNames(dir *os.File) ([]string, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(batch)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func ignoring(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}

// syncPath makes the names in a folder durable.
func syncPath(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return syncDir(dir)
}
