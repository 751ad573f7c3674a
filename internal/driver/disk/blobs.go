package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/kernel/blob"
)

// smallBlob is the size up to which content is verified and served from memory.
const smallBlob = 1 << 20

// Blobs is a blob.Store in a folder: `<dir>/ab/cdef...` by the digits of the hash.
type Blobs struct {
	dir     string
	entropy io.Reader
	holds   blob.Holds
}

var _ blob.Store = (*Blobs)(nil)

// OpenBlobs opens the folder, makes it if needed, and removes what an earlier daemon left half written. Names of temporary files are drawn
// from entropy, which must be safe for concurrent use.
func OpenBlobs(ctx context.Context, dir string, entropy io.Reader) (*Blobs, error) {
	if err := os.MkdirAll(filepath.Join(dir, stagingFolder), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of stored content: %w", err)
	}
	// Each folder is there, durably, before anything is put into it: two who put at the same time need not wait for each other's.
	for n := range 256 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("%02x", n)), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("make the folders of stored content: %w", err)
		}
	}
	if err := errors.Join(beneath.SyncPath(dir), beneath.SyncPath(filepath.Dir(dir))); err != nil {
		return nil, fmt.Errorf("make the folders of stored content durable: %w", err)
	}
	if err := beneath.Empty(ctx, filepath.Join(dir, stagingFolder), entropy); err != nil {
		return nil, err
	}
	return &Blobs{dir: dir, entropy: entropy}, nil
}

// LookAtBlobs returns the stored content of a folder for reading, beside a daemon or without one; nothing can be put into it.
func LookAtBlobs(dir string) *Blobs { return &Blobs{dir: dir} }

// Put stores content. Content that is there already is written again, which mends it should the disk have changed it.
func (b *Blobs) Put(ctx context.Context, r io.Reader, max int64) (blob.Ref, error) {
	staging, err := os.Open(filepath.Join(b.dir, stagingFolder))
	if err != nil {
		return blob.Ref{}, stored(err)
	}
	defer staging.Close()
	file, name, err := beneath.CreateTemp(staging, b.entropy)
	if err != nil {
		return blob.Ref{}, stored(err)
	}
	n, digest, err := beneath.CopyHashed(ctx, file, r, max)
	if err == nil && n > max {
		err = tooLarge(max)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = b.place(staging, name, digest)
	}
	if err != nil {
		return blob.Ref{}, stored(errors.Join(err, unix.Unlinkat(int(staging.Fd()), name, 0)))
	}
	return blob.Ref{Digest: digest, Size: n}, nil
}

// place gives finished content the name of its hash, durably.
func (b *Blobs) place(staging *os.File, name string, d event.Digest) error {
	folder, last := b.path(d)
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	b.holds.Put(d)
	if err := unix.Renameat(int(staging.Fd()), name, int(dir.Fd()), last); err != nil {
		return err
	}
	return beneath.SyncDir(dir)
}

// Open returns content after it was read once and found to be what its hash says; anything else is a fault content_corrupt, so that no
// reader, wherever he starts, gets a byte that was not stored.
func (b *Blobs) Open(ctx context.Context, d event.Digest) (io.ReadSeekCloser, error) {
	folder, name := b.path(d)
	file, err := os.OpenFile(filepath.Join(folder, name), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, stored(err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, beneath.Closed(file, stored(err))
	}
	small := info.Size() <= smallBlob
	var copied bytes.Buffer
	to := io.Discard
	if small {
		copied.Grow(int(info.Size()))
		to = &copied
	}
	n, got, err := beneath.CopyHashed(ctx, to, file, info.Size())
	if err != nil {
		return nil, beneath.Closed(file, stored(err))
	}
	if got != d || n != info.Size() {
		return nil, beneath.Closed(file, fault.New(fault.Internal, "content_corrupt", "the stored content %s is not what was stored; the disk changed it", d))
	}
	if small {
		return contentReader{bytes.NewReader(copied.Bytes())}, file.Close()
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, beneath.Closed(file, stored(err))
	}
	return file, nil
}

// path returns where content of a hash lies: its folder and its name there.
func (b *Blobs) path(d event.Digest) (folder, name string) {
	digits := d.Hex()
	return filepath.Join(b.dir, digits[:2]), digits[2:]
}

// stored turns a file system's error into a fault.
func stored(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fault.Wrap(err, fault.Unavailable, "disk_full", "the host's disk is full")
	}
	return fault.Wrap(err, fault.Internal, "content_error", "the stored content cannot be accessed")
}

// contentReader is content in memory.
type contentReader struct{ *bytes.Reader }

// Close does nothing.
func (contentReader) Close() error { return nil }
