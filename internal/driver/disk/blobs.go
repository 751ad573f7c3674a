package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/freespace"
	"agentbox/internal/driver/disk/internal/seal"
	"agentbox/internal/host"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/vault"
)

// smallBlob is the size up to which content is verified and served from memory.
const smallBlob = 1 << 20

// Blobs is a blob.Store in a folder: `<dir>/ab/cdef....sealed` by the digits of the hash. Content that an earlier version stored lies there
// without the suffix, as it is, and is read all the same.
type Blobs struct {
	dir     string
	keys    vault.Keys
	entropy io.Reader
	holds   blob.Holds
	staging string // folder of content that is being stored
	shared  bool   // other daemons store content there too
}

// A sealed content is a file: its mark, the name of its key, the length of the content, and the content in sealed chunks.
const (
	sealedSuffix = ".sealed"
	sealedMark   = "agentbox sealed 1\n"
	sealedHead   = len(sealedMark) + seal.KeyBytes + 8
)

var _ blob.Store = (*Blobs)(nil)

// OpenBlobs opens the folder, makes it if needed, and removes what an earlier daemon left half written. It seals new content under keys.
// Names of temporary files are drawn from entropy, which must be safe for concurrent use.
func OpenBlobs(ctx context.Context, dir string, keys vault.Keys, entropy io.Reader) (*Blobs, error) {
	return openBlobs(ctx, &Blobs{dir: dir, keys: keys, entropy: entropy, staging: filepath.Join(dir, stagingFolder)})
}

// OpenSharedBlobs is OpenBlobs for a folder that several daemons have open, each under a name of its own. The sweep of one daemon keeps
// content that another has just stored.
func OpenSharedBlobs(ctx context.Context, dir, name string, keys vault.Keys, entropy io.Reader) (*Blobs, error) {
	return openBlobs(ctx, &Blobs{dir: dir, keys: keys, entropy: entropy, staging: filepath.Join(dir, stagingFolder+"-"+name), shared: true})
}

func openBlobs(ctx context.Context, b *Blobs) (*Blobs, error) {
	dir := b.dir
	if err := os.MkdirAll(b.staging, 0o700); err != nil {
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
	if err := beneath.Empty(ctx, b.staging, b.entropy); err != nil {
		return nil, err
	}
	return b, nil
}

// LookAtBlobs returns the stored content of a folder for reading, beside a daemon or without one; nothing can be put into it.
func LookAtBlobs(dir string, keys vault.Keys) *Blobs { return &Blobs{dir: dir, keys: keys} }

// Put stores content. Content that is there already is written again, which mends it should the disk have changed it.
func (b *Blobs) Put(ctx context.Context, r io.Reader, max int64) (blob.Ref, error) {
	// Its hash names its key, so that it must be known before anything is written that lasts.
	content, ref, err := b.measured(ctx, r, max)
	if err != nil {
		return blob.Ref{}, err
	}
	defer content.Close()
	key, c, err := seal.Fresh(b.keys, ref.Digest, ref.Size)
	if err != nil {
		return blob.Ref{}, err
	}
	staging, err := beneath.At(b.staging)
	if err != nil {
		return blob.Ref{}, stored(err)
	}
	defer staging.Close()
	file, name, err := beneath.CreateTemp(staging, b.entropy)
	if err != nil {
		return blob.Ref{}, stored(err)
	}
	_, err = file.Write(binary.BigEndian.AppendUint64(key.Append([]byte(sealedMark)), uint64(ref.Size)))
	if err == nil {
		var digest event.Digest
		if _, digest, err = c.Copy(file, beneath.ContextReader(ctx, content)); err == nil && digest != ref.Digest {
			err = fmt.Errorf("the content changed while it was stored")
		}
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = b.place(staging, name, ref.Digest)
	}
	if err != nil {
		return blob.Ref{}, stored(errors.Join(err, beneath.Unlink(staging, name)))
	}
	return ref, nil
}

// measured returns content that can be read once more, with its hash and its size.
func (b *Blobs) measured(ctx context.Context, r io.Reader, max int64) (io.ReadCloser, blob.Ref, error) {
	if err := ctx.Err(); err != nil {
		return nil, blob.Ref{}, err
	}
	if whole, ok := r.(*bytes.Reader); ok && int64(whole.Len()) <= max {
		begin := int64(whole.Len())
		n, digest, err := beneath.CopyHashed(ctx, io.Discard, whole, begin)
		if err == nil {
			_, err = whole.Seek(-n, io.SeekCurrent)
		}
		return io.NopCloser(whole), blob.Ref{Digest: digest, Size: n}, err
	}
	return b.Spool(ctx, r, max)
}

// place gives finished content the name of its hash, durably.
func (b *Blobs) place(staging *beneath.Folder, name string, d event.Digest) error {
	folder, last := b.path(d)
	dir, err := beneath.At(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	free, err := b.lock(host.Shared)
	if err != nil {
		return err
	}
	defer free()
	b.holds.Put(d)
	if err := beneath.Rename(staging, name, dir, last+sealedSuffix); err != nil {
		return err
	}
	// Content that an earlier version stored is replaced by a copy that can be forgotten.
	if err := beneath.Unlink(dir, last); err != nil && !errors.Is(err, syscall.ENOENT) {
		return err
	}
	return beneath.SyncDir(dir)
}

// Open reads the whole content once and checks it against its hash before it returns it. A mismatch is a fault content_corrupt. So no
// reader gets a byte that was not stored, wherever the reader starts. Forgotten content is vault.ErrForgotten.
func (b *Blobs) Open(ctx context.Context, d event.Digest) (io.ReadSeekCloser, error) {
	content, err := b.find(d)
	if err != nil {
		return nil, err
	}
	small := content.Size() <= smallBlob
	var copied bytes.Buffer
	to := io.Discard
	if small {
		copied.Grow(int(content.Size()))
		to = &copied
	}
	n, got, err := beneath.CopyHashed(ctx, to, content, content.Size())
	if seal.Broken(err) || err == nil && (got != d || n != content.Size()) {
		return nil, beneath.Closed(content, corrupt(d))
	}
	if err != nil {
		return nil, beneath.Closed(content, stored(err))
	}
	if small {
		return contentReader{bytes.NewReader(copied.Bytes())}, content.Close()
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return nil, beneath.Closed(content, stored(err))
	}
	return content, nil
}

// kept is stored content that nobody has looked at yet.
type kept struct {
	*io.SectionReader
	io.Closer
}

// find opens stored content, sealed or as an earlier version stored it.
func (b *Blobs) find(d event.Digest) (*kept, error) {
	folder, name := b.path(d)
	file, err := os.OpenFile(filepath.Join(folder, name+sealedSuffix), os.O_RDONLY|beneath.NoFollow, 0)
	sealed := err == nil
	if errors.Is(err, os.ErrNotExist) {
		file, err = os.OpenFile(filepath.Join(folder, name), os.O_RDONLY|beneath.NoFollow, 0)
	}
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
	if !sealed {
		return &kept{io.NewSectionReader(file, 0, info.Size()), file}, nil
	}
	head := make([]byte, sealedHead)
	if _, err := io.ReadFull(file, head); err != nil || string(head[:len(sealedMark)]) != sealedMark {
		return nil, beneath.Closed(file, corrupt(d))
	}
	size := int64(binary.BigEndian.Uint64(head[sealedHead-8:]))
	if size < 0 || size > info.Size() || int64(sealedHead)+seal.Sealed(size) != info.Size() {
		return nil, beneath.Closed(file, corrupt(d))
	}
	c, err := seal.Open(b.keys, seal.ParseKey(head[len(sealedMark):]), d, size)
	if err != nil {
		return nil, beneath.Closed(file, err)
	}
	return &kept{io.NewSectionReader(c.Reader(file, int64(sealedHead)), 0, size), file}, nil
}

func corrupt(d event.Digest) error {
	return fault.New(fault.Internal, "content_corrupt", "the stored content %s does not match its hash; the disk changed it", d)
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
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return freespace.Refused(err, "")
	}
	return fault.Wrap(err, fault.Internal, "content_error", "the stored content cannot be accessed")
}

// contentReader is content in memory.
type contentReader struct{ *bytes.Reader }

// Close does nothing.
func (contentReader) Close() error { return nil }
