// Package workdir reads a folder of the host as the source of a virtual file system and applies to it what an execution has changed.
//
// Code decides what lies in the folder and which paths a change has, and other processes may change the folder meanwhile. So every path
// is followed name by name from an open folder, no link is ever followed, nothing but regular files is opened, and what is written is
// written elsewhere and then renamed.
package workdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentbox/internal/userland/vfs"
)

// MaxEntries and MaxListing are how many names a folder may hold that is listed, and how many bytes they and what links point to take:
// the daemon holds all of them at once, for code that it does not trust.
const (
	MaxEntries = 1 << 18
	MaxListing = 64 << 20
)

// Folder is a folder of the host, open. It is not safe for concurrent use.
type Folder struct {
	root   *os.Root
	path   string
	device uint64
	bytes  int64 // that fit
	files  int64
	most   int // of a listing, in bytes
	names  int // of a listing

	dir  *os.Root // the folder that was used last
	at   string   // where it is; "" for none
	read *os.File // the file that was read last
	from string
}

var _ vfs.Source = (*Folder)(nil)

// Open opens a folder into which bytes and files more fit.
func Open(path string, bytes, files int64) (*Folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the folder of an execution: %w", err)
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the folder of an execution: %w", err), root.Close())
	}
	return &Folder{root: root, path: path, device: device(info), bytes: bytes, files: files, most: MaxListing, names: MaxEntries}, nil
}

// Close closes the folder.
func (f *Folder) Close() error {
	f.forget()
	return f.root.Close()
}

// forget closes the folders that are open for the sake of speed.
func (f *Folder) forget() {
	if f.dir != nil && f.dir != f.root {
		_ = f.dir.Close()
	}
	if f.read != nil {
		_ = f.read.Close()
	}
	f.dir, f.at, f.read, f.from = nil, "", nil, ""
}

// Room returns how many bytes and files more fit.
func (f *Folder) Room() (bytes, files int64, err error) { return f.bytes, f.files, nil }

// List returns the entries of a folder and follows no link. It leaves out entries that disappear meanwhile.
func (f *Folder) List(dir string) ([]vfs.Found, error) { return f.list(dir, 1024, f.names) }

// Few returns the entries of the folder itself, if there are no more than most.
func (f *Folder) Few(most int) (found []vfs.Found, ok bool) {
	found, err := f.list(".", most+1, most)
	return found, err == nil
}

// list reads a folder in parts. More entries than most are ENOMEM.
func (f *Folder) list(dir string, part, most int) ([]vfs.Found, error) {
	r, err := f.folder(dir)
	if err != nil {
		return nil, errno(err)
	}
	list, err := r.Open(".")
	if err != nil {
		return nil, errno(err)
	}
	defer list.Close()
	var all []vfs.Found
	bytes := 0
	for {
		names, err := list.Readdirnames(part)
		if len(names) == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				return all, nil
			}
			return nil, errno(err)
		}
		if len(all)+len(names) > most {
			return nil, vfs.ENOMEM
		}
		for _, name := range names {
			found, err := f.found(r, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, errno(err)
			}
			if bytes += len(found.Name) + len(found.Target); bytes > f.most {
				return nil, vfs.ENOMEM
			}
			all = append(all, found)
		}
	}
}

func (f *Folder) found(r *os.Root, name string) (vfs.Found, error) {
	info, err := r.Lstat(name)
	if err != nil {
		return vfs.Found{}, err
	}
	x := vfs.Found{Name: name, Kind: vfs.Other, Mode: uint32(info.Mode().Perm()), Modified: info.ModTime()}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		x.Kind = vfs.Symlink
		if x.Target, err = r.Readlink(name); err != nil {
			return vfs.Found{}, err
		}
	case device(info) != f.device: // something is mounted there: its entries are not the folder's
	case info.IsDir():
		x.Kind = vfs.Directory
	case info.Mode().IsRegular():
		x.Kind, x.Size = vfs.Regular, info.Size()
		if id, links := inode(info); links > 1 {
			x.Same, x.Links = id, links
		}
	}
	return x, nil
}

// Read reads a regular file at an offset.
func (f *Folder) Read(path string, p []byte, off int64) (int, error) {
	if f.from != path || f.read == nil {
		if f.read != nil {
			_ = f.read.Close()
			f.read, f.from = nil, ""
		}
		file, err := f.open(path)
		if err != nil {
			return 0, errno(err)
		}
		f.read, f.from = file, path
	}
	n, err := f.read.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errno(err)
	}
	return n, err
}

// open opens a regular file: nothing else, for opening a device may do something and opening a pipe may wait.
func (f *Folder) open(path string) (*os.File, error) {
	r, name, err := f.parent(path)
	if err != nil {
		return nil, err
	}
	want, err := r.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !want.Mode().IsRegular() || device(want) != f.device {
		return nil, vfs.EIO
	}
	file, err := r.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if got, err := file.Stat(); err != nil || !os.SameFile(want, got) {
		return nil, errors.Join(vfs.EIO, err, file.Close()) // it was exchanged
	}
	return file, nil
}

// parent opens the folder in which a path lies.
func (f *Folder) parent(path string) (*os.Root, string, error) {
	dir, name := ".", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	if !valid(name) || strings.HasPrefix(path, "./") {
		return nil, "", vfs.EINVAL
	}
	r, err := f.folder(dir)
	return r, name, err
}

// folder opens a folder, name by name. The result is valid until the next call.
func (f *Folder) folder(path string) (*os.Root, error) {
	if path == "." {
		return f.root, nil
	}
	if path == "" || path[len(path)-1] == '/' {
		return nil, vfs.EINVAL
	}
	if f.at == path {
		return f.dir, nil
	}
	r, rest := f.root, path
	if f.at != "" && strings.HasPrefix(path, f.at+"/") {
		r, rest = f.dir, path[len(f.at)+1:]
	} else {
		f.leave()
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next, err := f.enter(r, name)
		if r != f.root {
			_ = r.Close()
		}
		if err != nil {
			f.dir, f.at = nil, ""
			return nil, err
		}
		r = next
	}
	f.dir, f.at = r, path
	return r, nil
}

// leave closes the folder that was used last: it may not be where it was.
func (f *Folder) leave() {
	if f.dir != nil {
		_ = f.dir.Close()
	}
	f.dir, f.at = nil, ""
}

// enter opens a folder in another one, if it is a folder and no link to one.
func (f *Folder) enter(r *os.Root, name string) (*os.Root, error) {
	if !valid(name) {
		return nil, vfs.EINVAL
	}
	want, err := r.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !want.IsDir() || device(want) != f.device {
		return nil, vfs.ENOTDIR
	}
	next, err := r.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if got, err := next.Stat("."); err != nil || !os.SameFile(want, got) {
		return nil, errors.Join(vfs.ENOTDIR, err, next.Close()) // it was exchanged
	}
	return next, nil
}

// valid reports whether something is one name in a folder, on this operating system.
func valid(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= vfs.MaxName && !strings.ContainsAny(name, "/\x00") &&
		(filepath.Separator == '/' || filepath.IsLocal(name) && !strings.ContainsAny(name, `\:`))
}

// errno translates an error of the host for the virtual file system.
func errno(err error) error {
	if e, ok := errors.AsType[vfs.Errno](err); ok {
		return e
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return vfs.ENOENT
	case errors.Is(err, fs.ErrPermission):
		return vfs.EACCES
	}
	return vfs.EIO
}
