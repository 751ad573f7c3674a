//go:build !linux || portable

package beneath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// Folder is an open folder, on systems that cannot open a whole path safely against links. It walks a path one name at a time. For each
// name it reads the entry, opens it through os.Root, which never leaves its folder, and compares the two. So a link that replaces a
// name in between leads nowhere.
type Folder struct {
	*os.File
	root *os.Root
}

// Stat describes a file in the system's terms. Unknown fields are zero.
type Stat struct {
	Dev, Ino, Nlink uint64
	Mode            uint32 // type and permission bits, as POSIX numbers them
	Uid, Gid        uint32
	Size, Blocks    int64 // Blocks are of 512 bytes
	Mtim, Ctim      Time
}

// Time is when something happened to a file.
type Time struct{ Sec, Nsec int64 }

// Unix returns the seconds and the nanoseconds.
func (t Time) Unix() (sec, nsec int64) { return t.Sec, t.Nsec }

// Nano returns nanoseconds since 1970.
func (t Time) Nano() int64 { return t.Sec*1e9 + t.Nsec }

// Close implements io.Closer.
func (f *Folder) Close() error { return errors.Join(f.File.Close(), f.root.Close()) }

// hold makes a folder of a root, which it closes after an error.
func hold(root *os.Root, err error) (*Folder, error) {
	if err != nil {
		return nil, plain(err)
	}
	names, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(plain(err), root.Close())
	}
	return &Folder{names, root}, nil
}

// Root opens a folder by its path on the host, which the daemon alone controls.
func Root(dir string) (*Folder, error) {
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	var f *Folder
	if err == nil {
		f, err = hold(os.OpenRoot(dir))
	}
	if err == nil {
		if is, failed := f.root.Stat("."); failed != nil || !os.SameFile(info, is) {
			err = errors.Join(syscall.ELOOP, failed, f.Close())
		}
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "space_files_missing", "the space's files are not on this host")
	}
	return f, nil
}

// At opens a folder by a path on the host in which links are followed.
func At(path string) (*Folder, error) { return hold(os.OpenRoot(path)) }

// Dir opens the folder rel below dir for reading; "." is dir itself.
func Dir(dir *Folder, rel string) (*Folder, error) {
	at, err := hold(dir.root.OpenRoot("."))
	if err != nil {
		return nil, err
	}
	if rel == "" {
		return nil, Closed(at, syscall.ENOENT)
	}
	for name := range strings.SplitSeq(rel, "/") {
		if name == "" || name == "." {
			continue
		}
		next, err := at.enter(name)
		if failed := at.Close(); err != nil || failed != nil {
			return nil, errors.Join(err, failed)
		}
		at = next
	}
	return at, nil
}

// attempts is how often something is opened again that became something else between the look at it and its opening.
const attempts = 8

// enter opens a folder that lies in another and is neither a link nor of another file system.
func (f *Folder) enter(name string) (*Folder, error) {
	var here Stat
	if err := Fstat(f, &here); err != nil {
		return nil, err
	}
	for range attempts {
		info, st, err := f.look(name)
		if err != nil {
			return nil, err
		}
		switch {
		case st.Mode&TypeBits == TypeLink:
			return nil, syscall.ELOOP
		case st.Mode&TypeBits != TypeFolder:
			return nil, syscall.ENOTDIR
		case st.Dev != here.Dev:
			return nil, syscall.EXDEV
		}
		inner, err := hold(f.root.OpenRoot(name))
		if errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		is, err := inner.root.Stat(".")
		if err == nil && os.SameFile(info, is) {
			return inner, nil
		}
		if err = errors.Join(err, inner.Close()); err != nil {
			return nil, err
		}
	}
	return nil, syscall.ELOOP // a link keeps taking its place
}

// look describes a name.
func (f *Folder) look(name string) (os.FileInfo, Stat, error) {
	if err := f.proper(name); err != nil {
		return nil, Stat{}, err
	}
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, Stat{}, plain(err)
	}
	return info, described(f, name, info), nil
}

// proper refuses a text that is not a name in a folder.
func (f *Folder) proper(name string) error {
	switch {
	case name == "..":
		return syscall.EXDEV
	case strings.ContainsRune(name, '/'), strings.ContainsRune(name, 0):
		return syscall.EINVAL
	case !filepath.IsLocal(name) || os.PathSeparator != '/' && strings.ContainsAny(name, `\:<>"|?*`):
		return fault.New(fault.Invalid, space.ErrInvalidPath.Code, "%+q cannot be a name on this system", name).With("use another name")
	}
	return nil
}

// last opens the folder in which the end of a path lies.
func last(dir *Folder, rel string) (*Folder, string, error) {
	folder, name := Split(rel)
	in, err := Dir(dir, folder)
	if err != nil {
		return nil, "", err
	}
	if err := in.proper(name); err != nil {
		return nil, "", Closed(in, err)
	}
	return in, name, nil
}

// Open opens the file rel below dir. A file that is to be made must not be there.
func Open(dir *Folder, rel string, flags int) (*os.File, error) {
	in, name, err := last(dir, rel)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if flags&os.O_CREATE != 0 {
		return made(in.root.OpenFile(name, flags|os.O_EXCL, 0o600))
	}
	f, _, err := in.regular(name, flags&^os.O_TRUNC)
	if err == nil && flags&os.O_TRUNC != 0 {
		if err := f.Truncate(0); err != nil {
			return nil, Closed(f, plain(err))
		}
	}
	return f, err
}

func made(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, plain(err)
	}
	return f, nil
}

// Regular opens the regular file rel below dir for reading and describes it. It looks before it opens, so that a device or a pipe
// is refused without having been opened.
func Regular(dir *Folder, rel string) (*os.File, Stat, error) {
	in, name, err := last(dir, rel)
	if err != nil {
		return nil, Stat{}, err
	}
	defer in.Close()
	return in.regular(name, os.O_RDONLY)
}

func (f *Folder) regular(name string, flags int) (*os.File, Stat, error) {
	if name == "." {
		return nil, Stat{}, syscall.EISDIR
	}
	for range attempts {
		info, st, err := f.look(name)
		if err != nil {
			return nil, st, err
		}
		switch st.Mode & TypeBits {
		case TypeFile:
		case TypeFolder:
			return nil, st, syscall.EISDIR
		case TypeLink:
			return nil, st, syscall.ELOOP
		default:
			return nil, st, space.ErrNotAFile
		}
		file, err := made(f.root.OpenFile(name, flags|noWait, 0))
		if err != nil {
			return nil, st, err
		}
		is, err := file.Stat()
		if err == nil && os.SameFile(info, is) {
			if err = Fstat(file, &st); err == nil {
				return file, st, nil
			}
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, st, err
		}
	}
	return nil, Stat{}, fault.New(space.ErrFileChanged.Kind, space.ErrFileChanged.Code,
		"%+q is replaced again and again; try again when the program that does it has ended", name)
}

// Lstat describes name in dir without following it.
func Lstat(dir *Folder, name string) (Stat, error) {
	_, st, err := dir.look(name)
	return st, err
}

// Fstat describes an open file or folder.
func Fstat(f Handle, st *Stat) error {
	info, err := f.Stat()
	if err != nil {
		return plain(err)
	}
	*st = opened(f, info)
	return nil
}

// Readlink returns the text of the symbolic link name in dir.
func Readlink(dir *Folder, name string) (string, error) {
	if err := dir.proper(name); err != nil {
		return "", err
	}
	text, err := dir.root.Readlink(name)
	return filepath.ToSlash(text), plain(err)
}

// Symlink makes a symbolic link with a text.
func Symlink(text string, dir *Folder, name string) error {
	return dir.named(name, func() error { return dir.root.Symlink(filepath.FromSlash(text), name) })
}

// named does something to a name in a folder.
func (f *Folder) named(name string, do func() error) error {
	if err := f.proper(name); err != nil {
		return err
	}
	return plain(do())
}

// Link gives the file target below root a second name in dir.
func Link(root *Folder, target string, dir *Folder, name string) error {
	in, old, err := last(root, target)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, st, err := in.look(old); err != nil {
		return err
	} else if st.Mode&TypeBits == TypeLink {
		return syscall.ELOOP
	}
	return dir.named(name, func() error { return link(in, old, dir, name) })
}

// Mkdir makes a folder that only the daemon's user may enter.
func Mkdir(dir *Folder, name string) error {
	return dir.named(name, func() error { return dir.root.Mkdir(name, 0o700) })
}

// Unlink removes an entry that is not a folder. For a folder it fails with syscall.EISDIR.
func Unlink(dir *Folder, name string) error {
	return dir.named(name, func() error { return unlink(dir, name) })
}

// Rmdir removes an empty folder.
func Rmdir(dir *Folder, name string) error {
	_, st, err := dir.look(name)
	if err == nil && st.Mode&TypeBits != TypeFolder {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return err
	}
	return plain(dir.root.Remove(name))
}

// Rename moves a file or folder; a file that has the name already gives way.
func Rename(from *Folder, old string, to *Folder, name string) error {
	return from.named(old, func() error { return to.named(name, func() error { return rename(from, old, to, name) }) })
}

// Move moves a file or folder to a name that must be free: syscall.EEXIST if it is not.
func Move(from *Folder, old string, to *Folder, name string) error {
	return from.named(old, func() error { return to.named(name, func() error { return move(from, old, to, name) }) })
}

// RenameNew moves a file to a name that must be free: syscall.EEXIST if it is not.
func RenameNew(from *Folder, old string, to *Folder, name string) error {
	err := from.named(old, func() error { return to.named(name, func() error { return link(from, old, to, name) }) })
	switch {
	case err == nil:
		return Unlink(from, old)
	case errors.Is(err, syscall.EEXIST), errors.Is(err, syscall.ENOENT):
		return err
	}
	return Move(from, old, to, name) // a file system without hard links
}

// Fchmod sets the permission bits of an open file or folder, as far as the system has them.
func Fchmod(f Handle, mode uint32) error { return fchmod(f, mode) }

// Chmod sets the permission bits of an entry that is not a link.
func Chmod(dir *Folder, name string, mode uint32) error {
	_, st, err := dir.look(name)
	if err == nil && st.Mode&TypeBits == TypeLink {
		err = syscall.ELOOP
	}
	if err != nil {
		return err
	}
	return chmod(dir, name, mode)
}

// permit gives a folder permission bits with which its owner may do everything.
func permit(dir *Folder, name string) error {
	_, st, err := dir.look(name)
	if err == nil && st.Mode&TypeBits != TypeFolder {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return err
	}
	return chmod(dir, name, 0o700)
}

// Fchown gives an open file or folder to a user, and to the group of the same number, where the system numbers its users.
func Fchown(f Handle, uid int) error { return fchown(f, uid) }

// Lchown gives an entry to a user and a group, where the system numbers them. It does not follow links.
func Lchown(dir *Folder, name string, uid, gid int) error {
	return dir.named(name, func() error { return lchown(dir, name, uid, gid) })
}

// createNew makes a file that only the daemon's user may read, under a name that is free.
func createNew(dir *Folder, name string) (*os.File, error) {
	if err := dir.proper(name); err != nil {
		return nil, err
	}
	return made(dir.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

// SyncDir makes the names in a folder durable, where the system has a way to.
func SyncDir(dir *Folder) error {
	if err := syncNames(dir.File); err != nil {
		return fmt.Errorf("make a folder durable: %w", err)
	}
	return nil
}

// SyncData makes the content of a file durable.
func SyncData(f *os.File) error { return f.Sync() }

// SyncFS makes everything below a folder durable.
func SyncFS(dir *Folder) error {
	names, err := dir.root.Open(".")
	if err != nil {
		return plain(err)
	}
	defer names.Close()
	entries, err := names.ReadDir(-1)
	if err != nil {
		return plain(err)
	}
	for _, e := range entries {
		switch {
		case e.IsDir():
			var inner *Folder
			if inner, err = dir.enter(e.Name()); err == nil {
				err = errors.Join(SyncFS(inner), inner.Close())
			}
		case e.Type().IsRegular():
			var file *os.File
			if file, _, err = dir.regular(e.Name(), ForSync); err == nil {
				err = errors.Join(file.Sync(), file.Close())
			}
		}
		if err != nil && !Vanished(err) {
			return err
		}
	}
	return SyncDir(dir)
}
