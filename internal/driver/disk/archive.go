package disk

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// The bounds of an archive that is made.
const (
	MaxArchiveEntries = 100_000
	MaxArchiveBytes   = 1 << 30 // of content, where the action names no smaller bound
)

// Archive writes a folder as a zip file, in the order of the paths. It stores a symbolic link if the link points to a place inside the
// folder. It leaves out other links, special files, and names that another system could read as a path (with a backslash, a control
// character, or not UTF-8). It also leaves out what may refuses. The archive's comment says how many entries are missing. All of them count
// towards the bounds.
//
// It checks the bounds before the first byte. If code in the space adds more during the call, the archive ends without its directory, so
// that no reader takes it for complete. Files that change meanwhile are stored as they were read.
func (f *Files) Archive(ctx context.Context, p policy.Permit, w io.Writer, may func(path string) bool) error {
	a, root, err := f.begin(ctx, p, policy.FileArchive)
	if err != nil {
		return err
	}
	defer root.Close()
	z := &zipper{ctx: ctx, folder: a.Path, bytes: MaxArchiveBytes, may: may}
	if a.MaxBytes > 0 {
		z.bytes = min(z.bytes, a.MaxBytes)
	}
	if err := z.walk(root, z.count); err != nil {
		return beneath.Refusal(err, a.Path)
	}
	if z.used > z.bytes {
		return fault.New(fault.Exhausted, space.ErrArchiveTooLarge.Code, "%+q holds %d bytes; an archive takes at most %d", a.Path, z.used,
			z.bytes)
	}
	z.used, z.entries, z.left = 0, 0, 0
	z.zip = zip.NewWriter(w)
	if err := z.walk(root, z.add); err != nil {
		return beneath.Refusal(err, a.Path)
	}
	if z.left > 0 {
		if err := z.zip.SetComment(
			fmt.Sprintf("left out: %d links that point outside, special files, unportable names or files that policy keeps from being read",
				z.left)); err != nil {
			return beneath.Refusal(err, a.Path)
		}
	}
	if err := z.zip.Close(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "archive_not_sent", "the archive could not be sent to its end")
	}
	return nil
}

// zipper is an unfinished archive.
type zipper struct {
	ctx     context.Context
	folder  string
	zip     *zip.Writer
	may     func(path string) bool
	bytes   int64 // the most
	used    int64
	entries int
	left    int // left out
}

func (z *zipper) walk(root *beneath.Folder, see beneath.Visit) error {
	return beneath.Walk(z.ctx, root, z.folder, beneath.MaxDepth, MaxArchiveEntries+1, see)
}

// count is the visit that judges the bounds.
func (z *zipper) count(_ *beneath.Folder, _, _ string, st beneath.Stat) error {
	if st.Mode&beneath.TypeBits == beneath.TypeFile {
		z.used += st.Size
	}
	return z.enter()
}

// enter counts an entry.
func (z *zipper) enter() error {
	if err := z.ctx.Err(); err != nil {
		return err
	}
	if z.entries++; z.entries > MaxArchiveEntries {
		return fault.New(fault.Exhausted, space.ErrArchiveTooLarge.Code, "%+q holds more than %d entries, the most that an archive takes",
			z.folder, MaxArchiveEntries)
	}
	return nil
}

// add is the visit that writes an entry.
func (z *zipper) add(dir *beneath.Folder, rel, name string, st beneath.Stat) error {
	if err := z.enter(); err != nil {
		return err
	}
	inside := rel
	if z.folder != "." {
		inside = strings.TrimPrefix(rel, z.folder+"/")
	}
	header := &zip.FileHeader{Name: inside, Modified: time.Unix(int64(st.Mtim.Sec), 0).UTC()}
	if !beneath.Portable(inside) || z.may != nil && !z.may(rel) {
		z.left++
		return nil
	}
	switch st.Mode & beneath.TypeBits {
	case beneath.TypeFolder:
		header.Name += "/"
		header.SetMode(fs.ModeDir | fs.FileMode(st.Mode&0o777))
		_, err := z.zip.CreateHeader(header)
		return err
	case beneath.TypeLink:
		target, err := beneath.Readlink(dir, name)
		if err != nil || !beneath.StaysInside(inside, target) {
			z.left++
			return nil
		}
		header.SetMode(fs.ModeSymlink | 0o777)
		w, err := z.zip.CreateHeader(header)
		if err == nil {
			_, err = io.WriteString(w, target)
		}
		return err
	case beneath.TypeFile:
		return z.file(dir, name, header)
	}
	z.left++
	return nil
}

func (z *zipper) file(dir *beneath.Folder, name string, header *zip.FileHeader) error {
	file, st, err := beneath.Regular(dir, name)
	if err != nil {
		z.left++ // it went away, or became something else, or may not be read
		return nil
	}
	defer file.Close()
	header.Method = zip.Deflate
	header.SetMode(fs.FileMode(st.Mode & 0o777))
	w, err := z.zip.CreateHeader(header)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(beneath.ContextReader(z.ctx, file), z.bytes-z.used+1))
	if z.used += n; err == nil && z.used > z.bytes {
		err = fault.New(fault.Exhausted, space.ErrArchiveTooLarge.Code, "%+q grew beyond %d bytes while it was archived", z.folder, z.bytes)
	}
	return err
}
