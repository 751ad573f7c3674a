package disk

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/snapshots"
)

// Files are the files of one space, seen from outside while code runs inside. They hold nothing open between calls. They never follow a
// symbolic link, in any part of a path: the file of the decision is the file that they use. A hard link is an ordinary
// file. Code inside sees its files as a separate mount, so it cannot link to anything outside. Replacing a file makes a new one, so even a
// hard link by the host's owner is never written through.
type Files struct {
	space   id.Space
	at      *place // nothing in the way to it is under the space's control
	uid     int    // owner of new files; 0 for the daemon's user
	limits  space.Limits
	entropy io.Reader

	withheld *policy.Withhold // where these are the files that are kept from code; then account is the space's other Files
	account  *Files

	past *snapshots.Past // nil of withheld files, which no snapshot holds
	tree sync.RWMutex    // held for reading while something changes, for writing while a snapshot is made or returned to

	mu      sync.Mutex    // guards the fields below
	used    beneath.Usage // the last measured size, and the bytes written since
	known   bool          // used was measured
	stale   int64         // writes since then
	fresh   int64         // bytes of those writes
	pending int64         // bytes of writes that are under way
}

// Read opens the file of a file.read permit. The reader ends at the file's size at this moment, even if the file grows.
func (f *Files) Read(ctx context.Context, p policy.Permit) (space.File, error) {
	a, root, err := f.begin(ctx, p, policy.FileRead)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, st, err := beneath.Regular(root, a.Path)
	if err != nil {
		return nil, f.refusal(err, a.Path)
	}
	if a.MaxBytes > 0 && st.Size > a.MaxBytes {
		return nil, beneath.Closed(file, fault.New(fault.Exhausted, space.ErrFileTooLarge.Code,
			"%+q has %d bytes; at most %d may be read", a.Path, st.Size, a.MaxBytes))
	}
	return &reader{SectionReader: io.NewSectionReader(file, 0, st.Size), file: file, entry: f.entryOf(a.Path, st)}, nil
}

// Delete removes the file or symbolic link of a file.delete permit, durably.
func (f *Files) Delete(ctx context.Context, p policy.Permit) error {
	if err := f.at.enter(); err != nil {
		return err
	}
	defer f.at.leave()
	a, root, err := f.begin(ctx, p, policy.FileDelete)
	if err != nil {
		return err
	}
	defer root.Close()
	folder, name := beneath.Split(a.Path)
	dir, err := beneath.Dir(root, folder)
	if err != nil {
		return f.refusal(err, a.Path)
	}
	defer dir.Close()
	st, err := beneath.Lstat(dir, name)
	if err != nil {
		return f.refusal(err, a.Path)
	}
	switch st.Mode & beneath.TypeBits {
	case beneath.TypeFile, beneath.TypeLink:
	case beneath.TypeFolder:
		return beneath.Refusal(syscall.EISDIR, a.Path)
	default:
		return beneath.Refusal(space.ErrNotAFile, a.Path)
	}
	f.tree.RLock()
	defer f.tree.RUnlock()
	f.touch(folder)
	// Without AT_REMOVEDIR the kernel removes no directory, should one have taken the name meanwhile.
	if err := beneath.Unlink(dir, name); err != nil {
		return beneath.Refusal(err, a.Path)
	}
	f.forget()
	return beneath.SyncDir(dir)
}

// begin redeems a permit for one of the space's files and opens the folder that they lie in.
func (f *Files) begin(ctx context.Context, p policy.Permit, kind string) (policy.Action, *beneath.Folder, error) {
	if err := ctx.Err(); err != nil {
		return policy.Action{}, nil, err
	}
	a, err := p.Redeem(kind)
	if err != nil {
		return policy.Action{}, nil, err
	}
	if a.Space != f.space || a.Method != f.method() {
		return policy.Action{}, nil, policy.ErrPermitMismatch
	}
	clean := space.CleanFilePath
	if kind == policy.FileList || kind == policy.FileArchive {
		clean = space.CleanPath
	}
	// The path must be in its clean form, so that the daemon touches the file that it decided on, showed and recorded.
	if path, err := clean(a.Path); err != nil {
		return policy.Action{}, nil, err
	} else if path != a.Path {
		return policy.Action{}, nil, fault.New(fault.Invalid, space.ErrInvalidPath.Code, "the path %+q is not in its clean form %+q", a.Path,
			path)
	}
	files, _ := f.folders()
	if f.withheld != nil {
		if kind == policy.FileCreate {
			err = makeAside(f.at.home, *f.withheld)
		} else if _, err = os.Lstat(f.at.path(files)); err != nil {
			err = beneath.Refusal(err, a.Path)
		}
		if err != nil {
			return policy.Action{}, nil, err
		}
	}
	root, err := f.at.open(files)
	return a, root, err
}

// touch says that something changed in a folder.
func (f *Files) touch(folder string) {
	if f.past != nil {
		f.past.Touch(folder)
	}
}

// entryOf describes a file from the kernel's description.
func (f *Files) entryOf(path string, st beneath.Stat) space.Entry {
	e := space.Entry{
		Withheld: f.withheld != nil,
		Path:     path, Type: "other", Size: st.Size, Mode: fmt.Sprintf("%04o", st.Mode&0o7777),
		Modified: time.Unix(int64(st.Mtim.Sec), int64(st.Mtim.Nsec)).UTC(),
	}
	switch st.Mode & beneath.TypeBits {
	case beneath.TypeFile:
		e.Type = "file"
	case beneath.TypeFolder:
		e.Type, e.Size = "directory", 0
	case beneath.TypeLink:
		e.Type = "symlink"
	}
	return e
}

// reader is an open file, cut off at the size it had when it was opened.
type reader struct {
	*io.SectionReader
	file  *os.File
	entry space.Entry
}

// Read reads on. A file that became shorter meanwhile is a fault, not an early end.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.SectionReader.Read(p)
	if err != nil {
		at, _ := r.Seek(0, io.SeekCurrent)
		if at < r.entry.Size {
			return n, fault.Wrap(err, fault.Conflict, space.ErrFileChanged.Code, "%+q became shorter while it was read; read it again", r.entry.Path)
		}
	}
	return n, err
}

// Entry describes the file as it was when it was opened.
func (r *reader) Entry() space.Entry { return r.entry }

// Close releases the file.
func (r *reader) Close() error { return r.file.Close() }
