// Package backup keeps a data directory as one file, and makes a data directory from it again.
//
// The file is a compressed tar archive that stock tools can list and unpack. It begins with a header, holds the log as a snapshot of one
// moment and every other file behind it, and ends with a manifest: the hash of each entry. If hostile code changes a file meanwhile, the
// files of spaces, is read without following anything.
package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/disk/internal/beneath"
)

// Version is the version of the format that is written and read here.
const Version = 1

// The names of the first and the last entry, and the folder of the others.
const (
	headerName   = "agentbox-backup.json"
	manifestName = "agentbox-manifest.jsonl"
	dataFolder   = "data"
)

// spacesFolder is the folder of the spaces, in the data directory.
const spacesFolder = "spaces"

// Header is the first entry.
type Header struct {
	Version int       `json:"backup_version"`
	Made    time.Time `json:"made_at"`
	Program string    `json:"agentbox"` // its version
	Keys    bool      `json:"keys"`     // whether keys are inside
}

// Entry is a line of the manifest: a file, a folder or a symbolic link.
type Entry struct {
	Path   string       `json:"path"` // below the data directory
	Type   string       `json:"type"` // file, folder or link
	Mode   uint32       `json:"mode,omitempty"`
	UID    int          `json:"uid"`
	GID    int          `json:"gid"`
	Size   int64        `json:"size,omitempty"`
	Digest event.Digest `json:"sha256,omitzero"`
	Target string       `json:"target,omitempty"` // of a link
}

// The types of entry.
const (
	typeFile   = "file"
	typeFolder = "folder"
	typeLink   = "link"
)

// Summary counts the content of a backup.
type Summary struct {
	Header
	Files   int   `json:"files"`
	Bytes   int64 `json:"size_bytes"` // of the files, before compression
	Skipped int   `json:"skipped"`    // pipes, sockets and devices in spaces, which have no content
	Changed int   `json:"changed"`    // files of spaces that were written to while they were read
}

// Options choose the content of a backup.
type Options struct {
	Header   Header
	Replace  map[string]string // path below the directory to the file on this host that is kept in its place
	Leave    func(path string) bool
	Progress func(Summary) // after every file; nil for nobody
}

// writer writes one backup.
type writer struct {
	Options
	dir      string // the data directory
	ctx      context.Context
	tar      *tar.Writer
	manifest []Entry
	sum      Summary
}

// Write writes the backup of a data directory.
func Write(ctx context.Context, out io.Writer, dir string, o Options) (Summary, error) {
	o.Header.Version = Version
	compress, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return Summary{}, err
	}
	w := &writer{Options: o, dir: dir, ctx: ctx, tar: tar.NewWriter(compress), sum: Summary{Header: o.Header}}
	top, err := beneath.Root(dir)
	if err != nil {
		return w.sum, err
	}
	defer top.Close()
	if err := w.document(headerName, o.Header); err != nil {
		return w.sum, err
	}
	if err := w.folder(top, ""); err != nil {
		return w.sum, err
	}
	var lines strings.Builder
	for _, e := range w.manifest {
		raw, err := json.Marshal(e)
		if err != nil {
			return w.sum, err
		}
		lines.Write(append(raw, '\n'))
	}
	if err := w.text(manifestName, lines.String()); err != nil {
		return w.sum, err
	}
	return w.sum, errors.Join(w.tar.Close(), compress.Close())
}

func (w *writer) document(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.text(name, string(raw)+"\n")
}

func (w *writer) text(name, text string) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(text)), ModTime: w.Header.Made})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w.tar, text)
	return err
}

// folder writes the entries of a folder, in the order of names.
func (w *writer) folder(dir *beneath.Folder, at string) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return beneath.Refusal(err, at)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		below := path.Join(at, name)
		if w.Leave != nil && w.Leave(below) || shared(below) {
			continue
		}
		if file, ok := w.Replace[below]; ok {
			if err := w.instead(file, below); err != nil {
				return err
			}
			continue
		}
		if err := w.entry(dir, name, below); errors.Is(err, syscall.ENOENT) {
			continue // it went away meanwhile
		} else if err != nil {
			return beneath.Refusal(err, below)
		}
	}
	return nil
}

// entry writes one thing that is in a folder.
func (w *writer) entry(dir *beneath.Folder, name, below string) error {
	st, err := beneath.Lstat(dir, name)
	if err != nil {
		return err
	}
	e := Entry{Path: below, Mode: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid)}
	switch st.Mode & beneath.TypeBits {
	case beneath.TypeFile:
		file, st, err := beneath.Regular(dir, name)
		if err != nil {
			return err
		}
		defer file.Close()
		e.Type, e.Size = typeFile, st.Size
		return w.file(e, file, st.Mtim)
	case beneath.TypeFolder:
		e.Type = typeFolder
		sub, err := beneath.Dir(dir, name)
		if err != nil {
			return err
		}
		defer sub.Close()
		if err := w.header(e, st.Mtim); err != nil {
			return err
		}
		if path.Dir(below) == spacesFolder {
			return w.space(sub, below)
		}
		return w.folder(sub, below)
	case beneath.TypeLink:
		e.Type = typeLink
		if e.Target, err = beneath.Readlink(dir, name); err != nil {
			return err
		}
		return w.header(e, st.Mtim)
	}
	w.sum.Skipped++
	return nil
}

// instead writes a file of this host in the place of another.
func (w *writer) instead(name, below string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	var st beneath.Stat
	if err := beneath.Fstat(file, &st); err != nil {
		return err
	}
	return w.file(Entry{Path: below, Type: typeFile, Mode: 0o600, UID: int(st.Uid), GID: int(st.Gid), Size: st.Size}, file, st.Mtim)
}

func (w *writer) header(e Entry, mtime beneath.Time) error {
	h := &tar.Header{
		Name: path.Join(dataFolder, e.Path), Mode: int64(e.Mode), Uid: e.UID, Gid: e.GID, Size: e.Size, Linkname: e.Target,
		ModTime: time.Unix(mtime.Unix()), Format: tar.FormatPAX,
	}
	switch e.Type {
	case typeFolder:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case typeLink:
		h.Typeflag = tar.TypeSymlink
	default:
		h.Typeflag = tar.TypeReg
		return w.tar.WriteHeader(h) // its line in the manifest follows its content
	}
	w.manifest = append(w.manifest, e)
	return w.tar.WriteHeader(h)
}

// file writes a file with the size that it had when it was opened: later growth is left out, and lost bytes become zeros.
func (w *writer) file(e Entry, content io.Reader, mtime beneath.Time) error {
	if err := w.header(e, mtime); err != nil {
		return err
	}
	sum := sha256.New()
	both := io.MultiWriter(w.tar, sum)
	n, err := io.Copy(both, io.LimitReader(reader{w.ctx, content}, e.Size))
	if err != nil {
		return err
	}
	if n < e.Size {
		w.sum.Changed++
		if _, err := io.CopyN(both, zeros{}, e.Size-n); err != nil {
			return err
		}
	}
	e.Digest = digest(sum)
	w.manifest = append(w.manifest, e)
	w.sum.Files++
	w.sum.Bytes += e.Size
	if w.Progress != nil {
		w.Progress(w.sum)
	}
	return nil
}

func digest(sum hash.Hash) event.Digest {
	var d event.Digest
	copy(d[:], sum.Sum(nil))
	return d
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// zeros never ends.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func damaged(format string, args ...any) error {
	return fault.New(fault.Invalid, "backup_invalid", "the backup cannot be used: "+format, args...)
}

// open reads the beginning of a backup. The first reader it returns is the one below the archive.
func open(in io.Reader) (io.Reader, *tar.Reader, Header, error) {
	var h Header
	uncompressed, err := gzip.NewReader(bufio.NewReaderSize(in, 1<<20))
	if err != nil {
		return nil, nil, h, damaged("it is not a compressed archive")
	}
	archive := tar.NewReader(uncompressed)
	first, err := archive.Next()
	if err != nil || first.Name != headerName || first.Size > 1<<20 {
		return nil, nil, h, damaged("it does not begin with %s", headerName)
	}
	if err := json.NewDecoder(archive).Decode(&h); err != nil {
		return nil, nil, h, damaged("its header cannot be read")
	}
	if h.Version != Version {
		return nil, nil, h, fault.New(fault.Invalid, "backup_version", "the backup has version %d, and version %d is read here", h.Version,
			Version).
			With("restore it with the version of agentbox that made it, " + h.Program)
	}
	return uncompressed, archive, h, nil
}
