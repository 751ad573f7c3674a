package backup

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/disk/internal/beneath"
)

// restorer makes the files of one backup.
type restorer struct {
	ctx     context.Context
	top     *beneath.Folder
	root    bool // owners can be set
	entries []Entry
	sum     Summary
	tell    func(Summary)
}

// Restore makes the files of a backup below a folder that is there and empty, and holds each against the manifest. After an error
// the folder is of no use.
func Restore(ctx context.Context, in io.Reader, dir string, progress func(Summary)) (Summary, error) {
	all, archive, header, err := open(in)
	if err != nil {
		return Summary{}, err
	}
	top, err := beneath.Root(dir)
	if err != nil {
		return Summary{}, err
	}
	defer top.Close()
	r := &restorer{ctx: ctx, top: top, root: os.Geteuid() == 0, sum: Summary{Header: header}, tell: progress}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return r.sum, damaged("its manifest is missing; it was cut off")
		}
		if err != nil {
			return r.sum, damaged("%s", err)
		}
		if h.Name == manifestName {
			if err := r.compare(archive); err != nil {
				return r.sum, err
			}
			if _, err := archive.Next(); !errors.Is(err, io.EOF) {
				return r.sum, damaged("there is more behind its manifest, or it was cut off")
			}
			if _, err := io.Copy(io.Discard, all); err != nil { // its own sum stands at its end
				return r.sum, damaged("%s", err)
			}
			return r.sum, r.finish()
		}
		if err := r.entry(h, archive); err != nil {
			return r.sum, err
		}
	}
}

// entry makes one file, folder or link.
func (r *restorer) entry(h *tar.Header, content io.Reader) error {
	below, ok := strings.CutPrefix(strings.TrimSuffix(h.Name, "/"), dataFolder+"/")
	if !ok || below != path.Clean(below) || !filepath.IsLocal(below) || strings.ContainsRune(below, 0) {
		return damaged("it holds %+q, which is not a path below a data directory", h.Name)
	}
	if !r.root && h.Uid != os.Geteuid() {
		return fault.New(fault.Denied, "backup_of_root",
			"the backup was made by a daemon that gives each space a host user of its own (%s belongs to user %d)", below, h.Uid).
			With("restore it as root")
	}
	e := Entry{Path: below, Mode: uint32(h.Mode) & 0o7777, UID: h.Uid, GID: h.Gid}
	folder, name := beneath.Split(below)
	dir, err := beneath.Dir(r.top, folder)
	if err != nil {
		return damaged("%+q is not in a folder of the backup: %s", below, err)
	}
	defer dir.Close()
	switch h.Typeflag {
	case tar.TypeDir:
		e.Type = typeFolder
		err = beneath.Mkdir(dir, name) // its own mode when it is full
	case tar.TypeSymlink:
		e.Type, e.Target = typeLink, h.Linkname
		err = beneath.Symlink(h.Linkname, dir, name)
	case tar.TypeReg:
		e.Type, e.Size = typeFile, h.Size
		err = r.file(dir, name, &e, content)
	default:
		return damaged("%+q is neither a file nor a folder nor a link", below)
	}
	if err != nil {
		return written(err, below)
	}
	r.entries = append(r.entries, e)
	return nil
}

// written says why a file could not be made.
func written(err error, below string) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.EEXIST) {
		return damaged("%+q stands in it twice", below)
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "restore_failed", "%+q could not be written", below).With("see that the disk has room")
}

func (r *restorer) file(dir *beneath.Folder, name string, e *Entry, content io.Reader) error {
	f, err := beneath.Open(dir, name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	sum := sha256.New()
	from := source{Reader: reader{r.ctx, content}}
	n, err := io.Copy(io.MultiWriter(f, sum), &from)
	if from.err != nil && r.ctx.Err() == nil || err == nil && n != e.Size {
		err = damaged("%+q is cut off or cannot be read", e.Path)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	e.Digest = digest(sum)
	r.sum.Files++
	r.sum.Bytes += n
	if r.tell != nil {
		r.tell(r.sum)
	}
	return nil
}

// source remembers why it could not be read, for an error of a copy may be of either side.
type source struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// compare compares the restored files with the manifest.
func (r *restorer) compare(manifest io.Reader) error {
	lines := json.NewDecoder(bufio.NewReader(manifest))
	for _, is := range r.entries {
		var want Entry
		if err := lines.Decode(&want); err != nil {
			return damaged("its manifest ends before %+q", is.Path)
		}
		if is != want {
			return damaged("%+q is not what was kept (the manifest has %+q)", is.Path, want.Path)
		}
	}
	if lines.More() {
		return damaged("entries of its manifest are missing")
	}
	return nil
}

// finish sets owners and modes, from the leaves up, and waits until everything is on the disk.
func (r *restorer) finish() error {
	for i := len(r.entries) - 1; i >= 0; i-- {
		e := r.entries[i]
		if err := r.settle(e); err != nil {
			return written(err, e.Path)
		}
	}
	return beneath.SyncFS(r.top)
}

func (r *restorer) settle(e Entry) error {
	folder, name := beneath.Split(e.Path)
	dir, err := beneath.Dir(r.top, folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	if r.root {
		if err := beneath.Lchown(dir, name, e.UID, e.GID); err != nil {
			return err
		}
	}
	if e.Type == typeLink {
		return nil
	}
	return beneath.Chmod(dir, name, e.Mode) // no link: it was made here as a file or folder
}
