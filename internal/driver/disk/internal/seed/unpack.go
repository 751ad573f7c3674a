package seed

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// archive unpacks a zip, tar or tar.gz file whose bytes have the given hash. It reads the file twice, so that it unpacks the content that
// the permit decided on.
func (s *sower) archive(from io.ReadSeeker, want event.Digest) error {
	size, err := from.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = from.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fault.Wrap(err, fault.Internal, "content_error", "the archive cannot be read where it is kept")
	}
	n, got, err := beneath.CopyHashed(s.ctx, io.Discard, from, size)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "content_error", "the archive cannot be read where it is kept")
	}
	if n != size || got != want {
		return policy.ErrPermitMismatch
	}
	return s.taken(s.unpack(&seekerAt{r: from, size: size}))
}

// unpack recognises an archive by its first bytes.
func (s *sower) unpack(from *seekerAt) error {
	head := make([]byte, 512)
	n, err := from.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	switch all := io.NewSectionReader(from, 0, from.size); {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return s.zip(from)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		read := &counter{r: all}
		unpacked, err := gzip.NewReader(bufio.NewReader(read))
		if err != nil {
			return malformed(err)
		}
		s.source = func() int64 { return read.n }
		return s.tar(unpacked)
	case len(head) == 512:
		read := &counter{r: all}
		s.source = func() int64 { return read.n }
		return s.tar(bufio.NewReader(read))
	}
	return malformed(nil)
}

func (s *sower) tar(from io.Reader) error {
	archive := tar.NewReader(from)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name, err := entryPath(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = s.mkdir(name)
		case tar.TypeReg, tar.TypeGNUSparse:
			err = s.file(name, h.Mode&beneath.ExecBits != 0, h.Size, archive)
		case tar.TypeSymlink:
			err = s.archiveLink(name, h.Linkname)
		case tar.TypeLink:
			var target string
			if target, err = entryPath(h.Linkname); err == nil {
				err = s.link(name, target)
			}
		default:
			return fault.New(fault.Invalid, space.ErrArchiveInvalid.Code,
				"the archive holds %+q, a device, a pipe or something else that is not a file", h.Name)
		}
		if err != nil {
			return misfit(err, h.Name)
		}
	}
}

func (s *sower) zip(from *seekerAt) error {
	// Reading a zip file's directory takes memory by its true length, so that length is bounded.
	from.budget = maxSeedIndex
	archive, err := zip.NewReader(from, from.size)
	if err != nil {
		return malformed(err)
	}
	from.budget = -1
	if len(archive.File) > MaxSeedEntries {
		return tooLarge("it holds %d entries; at most %d are taken", len(archive.File), MaxSeedEntries)
	}
	if n := space.MaxFiles(s.limits.DiskBytes); s.limits.DiskBytes > 0 && int64(len(archive.File)) > n {
		return s.tooMany(n)
	}
	var total uint64
	for _, f := range archive.File {
		total += min(f.UncompressedSize64, 1<<40) // what claims more is refused all the same, and the sum cannot overflow
	}
	if err := s.room(int64(total)); err != nil {
		return err
	}
	if total > FreeSeedBytes && total/MaxSeedRatio > uint64(from.size) {
		return tooLarge("it unpacks to more than %d times its size", MaxSeedRatio)
	}
	s.source = func() int64 { return from.size }
	for _, f := range archive.File {
		if err := s.zipped(f); err != nil {
			return misfit(err, f.Name)
		}
	}
	return nil
}

func (s *sower) zipped(f *zip.File) error {
	name, err := entryPath(f.Name)
	if err != nil {
		return err
	}
	if f.Flags&1 != 0 {
		return fault.New(fault.Invalid, space.ErrArchiveInvalid.Code, "the archive holds %+q encrypted", f.Name)
	}
	mode := f.Mode()
	if mode.IsDir() {
		return s.mkdir(name)
	}
	if mode.Type()&^fs.ModeSymlink != 0 {
		return fault.New(fault.Invalid, space.ErrArchiveInvalid.Code,
			"the archive holds %+q, a device, a pipe or something else that is not a file", f.Name)
	}
	content, err := f.Open()
	if err != nil {
		return malformed(err)
	}
	defer content.Close()
	if mode.Type() == fs.ModeSymlink {
		target, err := io.ReadAll(io.LimitReader(content, maxSeedLinkText+1))
		if err != nil {
			return malformed(err)
		}
		return s.archiveLink(name, string(target))
	}
	return s.file(name, mode&beneath.ExecBits != 0, int64(f.UncompressedSize64), content)
}

// archiveLink makes a symbolic link that an archive holds.
func (s *sower) archiveLink(name, target string) error {
	if len(target) > maxSeedLinkText || !beneath.StaysInside(name, target) {
		return fault.New(fault.Invalid, space.ErrArchiveInvalid.Code, "the archive holds a link %+q that points outside, to %+.100q", name,
			target)
	}
	return s.symlink(name, target)
}

// entryPath judges the name of an archive's entry. It may be longer than the paths of operations are, but not otherwise freer.
func entryPath(name string) (string, error) {
	clean := path.Clean(name)
	refused := name == "" || len(name) > maxSeedPath || !beneath.Portable(name) || name[0] == '/' || strings.Count(clean,
		"/") >= maxSeedNesting
	for part := range strings.SplitSeq(name, "/") {
		refused = refused || part == ".." || len(part) > space.MaxNameBytes
	}
	if refused {
		return "", fault.New(fault.Invalid, space.ErrArchiveInvalid.Code,
			"the archive holds the name %+.100q; names are relative, in UTF-8, and never go up", name)
	}
	return clean, nil
}

// misfit turns an error about an entry into a refusal of its archive.
func misfit(err error, name string) error {
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return err
	}
	for _, e := range [...]error{syscall.EEXIST, syscall.EISDIR, syscall.ENOTDIR, syscall.ELOOP, syscall.ENOENT, syscall.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return fault.Wrap(err, fault.Invalid, space.ErrArchiveInvalid.Code, "the archive's entry %+.100q clashes with another one", name)
		}
	}
	for _, e := range [...]error{zip.ErrFormat, zip.ErrChecksum, zip.ErrAlgorithm, tar.ErrHeader, gzip.ErrHeader, gzip.ErrChecksum,
		io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return malformed(err)
		}
	}
	if _, ok := errors.AsType[flate.CorruptInputError](err); ok {
		return malformed(err)
	}
	return err
}

func malformed(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Wrap(err, fault.Invalid, space.ErrArchiveInvalid.Code, "the archive cannot be read; send a whole zip, tar or tar.gz file")
}

// counter counts the bytes that are read through it.
type counter struct {
	r io.Reader
	n int64
}

// Read reads and counts.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// seekerAt reads at places of a file that can only seek. It serves one reader at a time.
type seekerAt struct {
	r      io.ReadSeeker
	size   int64
	budget int64 // how many bytes may still be read; negative is any number
}

// ReadAt reads at a place.
func (s *seekerAt) ReadAt(p []byte, at int64) (int, error) {
	if s.budget > 0 {
		if s.budget -= int64(len(p)); s.budget <= 0 {
			return 0, tooLarge("its directory is longer than %d bytes", maxSeedIndex)
		}
	}
	if _, err := s.r.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
