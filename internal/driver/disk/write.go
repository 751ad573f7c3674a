package disk

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path"
	"strings"
	"syscall"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// Bounds of a write.
const (
	// MaxEditBytes is the largest file that is edited, before and after, where the action names no smaller bound.
	MaxEditBytes = 100 << 20
	// attempts is how often an operation is repeated while code in the space keeps changing the file.
	attempts = 8
)

// Write makes the file of a file.create permit. Its content goes to a file in the staging folder first, which the space does not see, is
// checked against the size and the hash that were decided on, made durable, and takes its name in one step. A file that is replaced
// leaves its executable bits to the new one, unless the permit says which mode that has.
func (f *Files) Write(ctx context.Context, p policy.Permit, content io.Reader) (space.Entry, error) {
	if err := f.at.enter(); err != nil {
		return space.Entry{}, err
	}
	defer f.at.leave()
	a, root, err := f.begin(ctx, p, policy.FileCreate)
	if err != nil {
		return space.Entry{}, err
	}
	defer root.Close()
	if max := f.largest(a.MaxBytes, math.MaxInt64-1); a.Size < 0 || a.Size > max {
		return space.Entry{}, fault.New(fault.Exhausted, space.ErrFileTooLarge.Code,
			"the content for %+q has %d bytes; at most %d may be written", a.Path, a.Size, max)
	}
	if err := space.CheckFileMode(a.Mode); err != nil {
		return space.Entry{}, err
	}
	mode, err := f.replaces(root, a.Path, a.Overwrite)
	if err != nil {
		return space.Entry{}, beneath.Refusal(err, a.Path)
	}
	switch a.Mode {
	case space.ModePlain:
		mode = beneath.FileMode
	case space.ModeExecutable:
		mode = beneath.FileMode | beneath.ExecBits
	}
	_, folder := f.folders()
	staging, err := f.at.open(folder)
	if err != nil {
		return space.Entry{}, err
	}
	defer staging.Close()
	done, err := f.reserve(ctx, a.Size)
	if err != nil {
		return space.Entry{}, err
	}
	defer done()
	s, err := f.stage(ctx, staging, content, a.Size, a.Content, mode)
	if err != nil {
		return space.Entry{}, beneath.Refusal(err, a.Path)
	}
	defer s.discard()
	return f.place(ctx, root, s, a.Path, a.Overwrite)
}

// Edit applies the edits of a file.edit permit. If code in the space changes the file at the same moment, Edit reads it again. It returns
// file_changed if that does not stop. The permission bits stay.
func (f *Files) Edit(ctx context.Context, p policy.Permit, edits []space.Edit) (space.Entry, error) {
	if err := f.at.enter(); err != nil {
		return space.Entry{}, err
	}
	defer f.at.leave()
	a, root, err := f.begin(ctx, p, policy.FileEdit)
	if err != nil {
		return space.Entry{}, err
	}
	defer root.Close()
	if digest, err := space.EditsDigest(edits); err != nil {
		return space.Entry{}, err
	} else if digest != a.Content {
		return space.Entry{}, policy.ErrPermitMismatch
	}
	_, folder := f.folders()
	staging, err := f.at.open(folder)
	if err != nil {
		return space.Entry{}, err
	}
	defer staging.Close()
	for range attempts {
		entry, err := f.edit(ctx, root, staging, a, edits)
		if !errors.Is(err, space.ErrFileChanged) {
			return entry, err
		}
	}
	return space.Entry{}, fault.New(fault.Conflict, space.ErrFileChanged.Code,
		"%+q keeps changing while it is edited; try again when the program that writes it has ended", a.Path)
}

func (f *Files) edit(ctx context.Context, root, staging *beneath.Folder, a policy.Action, edits []space.Edit) (space.Entry, error) {
	file, before, err := beneath.Regular(root, a.Path)
	if err != nil {
		return space.Entry{}, f.refusal(err, a.Path)
	}
	defer file.Close()
	limit := f.largest(a.MaxBytes, MaxEditBytes)
	tooLarge := func(size int64) error {
		return fault.New(fault.Exhausted, space.ErrFileTooLarge.Code, "%+q has %d bytes; at most %d may be edited", a.Path, size, limit)
	}
	if before.Size > limit {
		return space.Entry{}, tooLarge(before.Size)
	}
	raw := make([]byte, before.Size)
	if _, err := io.ReadFull(file, raw); err != nil {
		return space.Entry{}, fault.Wrap(err, fault.Conflict, space.ErrFileChanged.Code, "%+q became shorter while it was read", a.Path)
	}
	text, err := space.ApplyEdits(a.Path, string(raw), edits, limit)
	if err != nil {
		return space.Entry{}, err
	}
	done, err := f.reserve(ctx, int64(len(text))-before.Blocks*512)
	if err != nil {
		return space.Entry{}, err
	}
	defer done()
	s, err := f.stage(ctx, staging, strings.NewReader(text), int64(len(text)), event.DigestOf([]byte(text)), before.Mode&0o777)
	if err != nil {
		return space.Entry{}, beneath.Refusal(err, a.Path)
	}
	defer s.discard()
	s.expect = &before
	return f.place(ctx, root, s, a.Path, true)
}

// largest returns the most bytes that a file may have: by the action and by the space's limits, where they say so, and never more than max.
func (f *Files) largest(permitted, max int64) int64 {
	for _, bound := range [...]int64{permitted, f.limits.FileBytes} {
		if bound > 0 {
			max = min(max, bound)
		}
	}
	return max
}

// replaces returns the mode for a new file at the path, after a look at the present file. If that file changes later, the last step
// notices.
func (f *Files) replaces(root *beneath.Folder, p string, overwrite bool) (uint32, error) {
	folder, name := beneath.Split(p)
	dir, err := beneath.Dir(root, folder)
	if errors.Is(err, syscall.ENOENT) {
		return beneath.FileMode, nil
	}
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	st, err := beneath.Lstat(dir, name)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return beneath.FileMode, nil
	case err != nil:
		return 0, err
	case st.Mode&beneath.TypeBits == beneath.TypeFolder:
		return 0, syscall.EISDIR
	case !overwrite:
		return 0, syscall.EEXIST
	case st.Mode&beneath.TypeBits == beneath.TypeLink:
		return 0, syscall.ELOOP
	case st.Mode&beneath.TypeBits != beneath.TypeFile:
		return 0, space.ErrNotAFile
	}
	return beneath.FileMode | st.Mode&beneath.ExecBits, nil
}

// staged is a finished file that has no name in the space yet.
type staged struct {
	dir    *beneath.Folder
	file   *os.File
	name   string        // in dir; empty once it has been moved away
	expect *beneath.Stat // the file that it must replace, if that matters
}

// discard closes the file and, unless it was placed, removes it. If that fails, the next start of the daemon removes it.
func (s *staged) discard() {
	_ = s.file.Close()
	if s.name != "" {
		_ = beneath.Unlink(s.dir, s.name)
	}
}

// stage writes content to a file in the staging folder, checks it, gives it its mode and owner, and makes it durable.
func (f *Files) stage(ctx context.Context, staging *beneath.Folder, content io.Reader, size int64, want event.Digest, mode uint32) (*staged,
	error) {
	file, name, err := beneath.CreateTemp(staging, f.entropy)
	if err != nil {
		return nil, err
	}
	s := &staged{dir: staging, file: file, name: name}
	n, got, err := beneath.CopyHashed(ctx, file, content, size)
	if err == nil && (n != size || got != want) {
		err = policy.ErrPermitMismatch
	}
	if err == nil {
		err = f.own(file)
	}
	if err == nil {
		err = beneath.Fchmod(file, mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// place moves a staged file to its path and makes the name durable. Folders that are missing on the way are made.
func (f *Files) place(ctx context.Context, root *beneath.Folder, s *staged, p string, overwrite bool) (space.Entry, error) {
	var err error
	for range attempts {
		if err = ctx.Err(); err != nil {
			return space.Entry{}, err
		}
		if err = f.placeOnce(root, s, p, overwrite); !errors.Is(err, syscall.ENOENT) {
			break // else a folder was removed between two steps; make it again
		}
	}
	if err != nil {
		return space.Entry{}, beneath.Refusal(err, p)
	}
	var st beneath.Stat
	if err := beneath.Fstat(s.file, &st); err != nil {
		return space.Entry{}, beneath.Refusal(err, p)
	}
	return f.entryOf(p, st), nil
}

func (f *Files) placeOnce(root *beneath.Folder, s *staged, p string, overwrite bool) error {
	f.tree.RLock()
	defer f.tree.RUnlock()
	folder, name := beneath.Split(p)
	f.touch(folder)
	dir, err := f.makeFolders(root, s.dir, folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	if s.expect != nil {
		now, err := beneath.Lstat(dir, name)
		if err != nil {
			return err
		}
		if now.Ino != s.expect.Ino || now.Size != s.expect.Size || now.Mtim != s.expect.Mtim || now.Ctim != s.expect.Ctim {
			return space.ErrFileChanged
		}
	}
	if overwrite {
		err = beneath.Rename(s.dir, s.name, dir, name)
	} else {
		err = beneath.RenameNew(s.dir, s.name, dir, name)
	}
	if err != nil {
		return err
	}
	s.name = ""
	return beneath.SyncDir(dir)
}

// makeFolders opens the folder p below root and makes the missing parts of its path.
func (f *Files) makeFolders(root, staging *beneath.Folder, p string) (*beneath.Folder, error) {
	dir, err := beneath.Dir(root, p)
	if !errors.Is(err, syscall.ENOENT) {
		return dir, err
	}
	parent, err := f.makeFolders(root, staging, path.Dir(p))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := f.makeFolder(staging, parent, path.Base(p)); err != nil {
		return nil, err
	}
	return beneath.Dir(parent, path.Base(p))
}

// makeFolder makes one folder. It gets its owner and mode in the staging folder and is moved into place complete, so that nothing which
// code in the space can reach is ever given to another owner.
func (f *Files) makeFolder(staging, parent *beneath.Folder, name string) error {
	temp, err := beneath.RandomName(f.entropy)
	if err != nil {
		return err
	}
	if err := beneath.Mkdir(staging, temp); err != nil {
		return err
	}
	made, err := beneath.Dir(staging, temp)
	if err == nil {
		err = f.own(made)
		if err == nil {
			err = beneath.Fchmod(made, beneath.FolderMode)
		}
		made.Close()
	}
	if err == nil {
		err = beneath.Move(staging, temp, parent, name)
	}
	if err != nil {
		if gone := beneath.Rmdir(staging, temp); !errors.Is(err, syscall.EEXIST) {
			return errors.Join(err, gone)
		}
		return nil // code in the space was faster
	}
	return beneath.SyncDir(parent)
}

// own gives an open file or folder to the space's user.
func (f *Files) own(opened beneath.Handle) error {
	if f.uid == 0 {
		return nil
	}
	return beneath.Fchown(opened, f.uid)
}
