// Package seed fills the folder of a new space from an archive or from a folder of the host, within bounds.
package seed

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// The bounds of a seed, besides the limits of its space.
const (
	MaxSeedEntries  = 50_000 // files, folders and links, those included that only their contents imply
	MaxSeedRatio    = 200    // bytes that come out of an archive for one that is in it, beyond
	FreeSeedBytes   = 8 << 20
	maxSeedPath     = 4095
	maxSeedNesting  = 128
	maxSeedIndex    = 8 << 20 // bytes of a zip file's directory
	maxSeedLinkText = 4095
)

// Fill fills the folder root of a new space, in which no code runs yet, with the seed of a permit: an archive by its hash, or a folder
// below one of sources. All of it belongs to uid (0: the daemon's user), except withheld files: those go aside and belong to the
// daemon's. After an error the folder holds the entries that were made before it.
func Fill(
	ctx context.Context, root *beneath.Folder, aside Aside, uid int, limits space.Limits, from space.Seed, archive event.Digest,
	sources []string,
) (space.Sown, error) {
	s := &sower{ctx: ctx, root: root, uid: uid, limits: limits, apart: &apart{Aside: aside, also: map[string]bool{},
		first: map[string]string{}, names: map[string][]string{}}}
	defer s.apart.close()
	if from.Archive != nil {
		if err := s.archive(from.Archive, archive); err != nil {
			return s.sown(), err
		}
	}
	if from.Folder != "" {
		if err := s.folder(from.Folder, sources); err != nil {
			return s.sown(), err
		}
	}
	return s.sown(), s.taken(beneath.SyncFS(root))
}

// sower fills the folder of a new space, in which no code runs yet.
type sower struct {
	ctx    context.Context
	root   *beneath.Folder
	uid    int
	limits space.Limits

	entries int
	files   int
	bytes   int64
	apart   *apart
	source  func() int64 // bytes of the archive that were read so far; nil where there is none
}

// folder copies a folder of the host that lies below one of the permitted ones, no link followed on the way. Relative links that stay
// inside it are copied as links; other links, special files, and what other file systems are mounted in it are left out.
func (s *sower) folder(path string, permitted []string) error {
	source, rel, ok := below(path, permitted)
	if !ok {
		return fault.New(fault.Denied, "seed_not_permitted", "spaces may not start from %+q", path).
			With("start from an archive, or have the operator permit the folder in the configuration")
	}
	top, err := beneath.At(source) // the operator chose this path, so links in it are followed
	if err != nil {
		return fault.Wrap(err, fault.NotFound, "seed_not_found", "the folder %+q cannot be opened", path)
	}
	defer top.Close()
	from, err := beneath.Dir(top, rel)
	if err != nil {
		return fault.Wrap(err, fault.NotFound, "seed_not_found", "the folder %+q cannot be opened; it must be a folder, reached through no link",
			path)
	}
	defer from.Close()
	if err := s.scan(from); err != nil {
		return s.taken(err)
	}
	return s.taken(beneath.Walk(s.ctx, from, ".", beneath.MaxDepth, MaxSeedEntries+1, s.copy))
}

// below returns the permitted folder in which a path lies, and the way from there.
func below(path string, permitted []string) (source, rel string, ok bool) {
	if !filepath.IsAbs(path) {
		return "", "", false
	}
	for _, source := range permitted {
		if rel, err := filepath.Rel(source, path); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return source, filepath.ToSlash(rel), true
		}
	}
	return "", "", false
}

// copy is the visit that copies an entry of a host folder.
func (s *sower) copy(dir *beneath.Folder, rel, name string, st beneath.Stat) error {
	switch st.Mode & beneath.TypeBits {
	case beneath.TypeFolder:
		return s.mkdir(rel)
	case beneath.TypeLink:
		target, err := beneath.Readlink(dir, name)
		if err != nil || !beneath.StaysInside(rel, target) {
			return nil
		}
		return s.symlink(rel, target)
	case beneath.TypeFile:
		file, st, err := beneath.Regular(dir, name)
		if beneath.Vanished(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close()
		if s.apart.inodes[[2]uint64{uint64(st.Dev), st.Ino}] {
			s.apart.also[rel] = true
		}
		return s.file(rel, st.Mode&beneath.ExecBits != 0, st.Size, file)
	}
	return nil
}

// taken turns the error of filling a folder into a fault.
func (s *sower) taken(err error) error {
	if err == nil || s.ctx.Err() != nil {
		return errors.Join(err, s.ctx.Err())
	}
	return beneath.Refusal(err, ".")
}

// enter counts an entry.
func (s *sower) enter() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.entries++; s.entries > MaxSeedEntries {
		return tooLarge("it holds more than %d files, folders and links", MaxSeedEntries)
	}
	if n := space.MaxFiles(s.limits.DiskBytes); s.limits.DiskBytes > 0 && int64(s.entries) > n {
		return s.tooMany(n)
	}
	return nil
}

// tooMany refuses a seed of more entries than the space may hold.
func (s *sower) tooMany(most int64) error {
	return tooLarge("it holds more than %d files, folders and links, and the space may hold no more with a disk limit of %d bytes", most,
		s.limits.DiskBytes).
		With("leave files out, such as node_modules, or give the space a larger disk limit: one file for each 4096 bytes")
}

// mkdir makes a folder, and those on the way to it.
func (s *sower) mkdir(path string) error {
	if s.held(path) {
		return s.aside(func() error { return s.mkdir(path) })
	}
	dir, err := s.dir(path)
	if err != nil {
		return err
	}
	return dir.Close()
}

// dir opens a folder and makes the missing parts of its path.
func (s *sower) dir(path string) (*beneath.Folder, error) {
	dir, err := beneath.Dir(s.root, path)
	if !errors.Is(err, syscall.ENOENT) {
		return dir, err
	}
	if dir, err = beneath.Dir(s.root, "."); err != nil {
		return nil, err
	}
	for _, name := range strings.Split(path, "/") {
		inner, err := beneath.Dir(dir, name)
		if errors.Is(err, syscall.ENOENT) {
			inner, err = s.makeDir(dir, name)
		}
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = inner
	}
	return dir, nil
}

// makeDir makes one folder and opens it.
func (s *sower) makeDir(parent *beneath.Folder, name string) (*beneath.Folder, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	if err := beneath.Mkdir(parent, name); err != nil {
		return nil, err
	}
	dir, err := beneath.Dir(parent, name)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(beneath.Fchmod(dir, beneath.FolderMode), s.own(dir)); err != nil {
		return nil, beneath.Closed(dir, err)
	}
	return dir, nil
}

// file makes a file of size bytes; a reader that yields more or fewer is refused.
func (s *sower) file(path string, executable bool, size int64, content io.Reader) error {
	if s.held(path) {
		return s.aside(func() error { return s.file(path, executable, size, content) })
	}
	if err := s.enter(); err != nil {
		return err
	}
	if size < 0 || s.limits.FileBytes > 0 && size > s.limits.FileBytes {
		return tooLarge("%+q has %d bytes; a file of the space takes at most %d", path, size, s.limits.FileBytes)
	}
	if err := s.room(size); err != nil {
		return err
	}
	folder, name := beneath.Split(path)
	dir, err := s.dir(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	file, err := beneath.Open(dir, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := io.Copy(meter{s, file}, io.LimitReader(beneath.ContextReader(s.ctx, content), size+1))
	if err != nil {
		return err
	}
	if n != size {
		return fault.New(fault.Invalid, space.ErrArchiveInvalid.Code, "%+q does not hold the %d bytes that it claims", path, size)
	}
	mode := uint32(beneath.FileMode)
	if executable {
		mode |= beneath.ExecBits
	}
	s.files++
	return errors.Join(s.own(file), beneath.Fchmod(file, mode))
}

// symlink makes a symbolic link.
func (s *sower) symlink(path, target string) error {
	if s.held(path) {
		return s.aside(func() error { return s.symlink(path, target) })
	}
	if err := s.enter(); err != nil {
		return err
	}
	folder, name := beneath.Split(path)
	dir, err := s.dir(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := beneath.Symlink(target, dir, name); err != nil {
		return err
	}
	if s.uid == 0 {
		return nil
	}
	return beneath.Lchown(dir, name, s.uid, s.uid)
}

// link gives a file that was made before a second name.
func (s *sower) link(path, target string) error {
	if s.holdsLink(path, target) {
		if err := s.moveAside(target); err != nil {
			return err
		}
		s.apart.also[path] = true
		return s.aside(func() error { return s.link(path, target) })
	}
	s.apart.join(path, target)
	if err := s.enter(); err != nil {
		return err
	}
	folder, name := beneath.Split(path)
	dir, err := s.dir(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	if s.apart.inside {
		s.files++ // every withheld name is reported
	}
	return beneath.Link(s.root, target, dir, name)
}

func (s *sower) own(made beneath.Handle) error {
	if s.uid == 0 {
		return nil
	}
	return beneath.Fchown(made, s.uid)
}

// room refuses size more bytes beyond the space's disk limit.
func (s *sower) room(size int64) error {
	if s.limits.DiskBytes > 0 && s.bytes+size > s.limits.DiskBytes {
		return tooLarge("it holds at least %d bytes; the space's disk limit is %d", s.bytes+size, s.limits.DiskBytes)
	}
	return nil
}

// meter writes and counts. It refuses to go on when far more has come out of an archive than was in it.
type meter struct {
	s *sower
	w io.Writer
}

// Write writes what still has room.
func (m meter) Write(p []byte) (int, error) {
	s := m.s
	if err := s.room(int64(len(p))); err != nil {
		return 0, err
	}
	s.bytes += int64(len(p))
	if s.source != nil && s.bytes > FreeSeedBytes && s.bytes/MaxSeedRatio > s.source() {
		return 0, tooLarge("it unpacks to more than %d times its size", MaxSeedRatio)
	}
	return m.w.Write(p)
}

func tooLarge(format string, args ...any) *fault.Error {
	return fault.New(fault.Exhausted, space.ErrArchiveTooLarge.Code, "the space cannot start from this: "+format, args...)
}
