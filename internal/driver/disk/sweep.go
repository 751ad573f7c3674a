package disk

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/seal"
	"agentbox/internal/host"
	"agentbox/internal/kernel/blob"
)

// Forget implements blob.Store. The keys go first: after a crash nobody can read the remaining files.
func (b *Blobs) Forget(ctx context.Context, contents ...event.Digest) error {
	if err := seal.Forget(b.keys, contents...); err != nil {
		return err
	}
	for _, d := range contents {
		folder, name := b.path(d)
		for _, suffix := range []string{"", sealedSuffix} {
			if err := os.Remove(filepath.Join(folder, name+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return stored(err)
			}
		}
	}
	return ctx.Err()
}

// Hold implements blob.Store.
func (b *Blobs) Hold() func() { return b.holds.Hold() }

// Survey implements blob.Store.
func (b *Blobs) Survey(ctx context.Context, mark blob.Mark) (content.Freed, error) {
	return b.sweep(ctx, mark, func(string) error { return nil })
}

// Sweep implements blob.Store. The bytes are those on the disk.
func (b *Blobs) Sweep(ctx context.Context, p policy.Permit, mark blob.Mark) (content.Freed, error) {
	if _, err := p.Redeem(policy.ContentSweep); err != nil {
		return content.Freed{}, err
	}
	return b.sweep(ctx, mark, os.Remove)
}

// sweep first lists the stored contents and then asks for the named ones. So it does not touch content that gets its name in between.
func (b *Blobs) sweep(ctx context.Context, mark blob.Mark, remove func(path string) error) (content.Freed, error) {
	free, end := b.holds.Sweep()
	defer end()
	var swept content.Freed
	found, err := b.all(ctx)
	if err != nil {
		return swept, stored(err)
	}
	young, err := b.young()
	if err != nil {
		return swept, stored(err)
	}
	if err := mark(ctx, func(d event.Digest) {
		if size, ok := found[d]; ok {
			swept.Count(false, size)
			delete(found, d)
		}
	}); err != nil {
		return content.Freed{}, err
	}
	for d, size := range found {
		if err := ctx.Err(); err != nil {
			return swept, err
		}
		folder, name := b.path(d)
		freed, err := free(d, func() error {
			unlock, err := b.lock(host.Exclusive)
			if err != nil {
				return err
			}
			defer unlock()
			if young(d) {
				return errYoung
			}
			for _, suffix := range []string{"", sealedSuffix} {
				if err := remove(filepath.Join(folder, name+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
			}
			return nil
		})
		if errors.Is(err, errYoung) {
			freed, err = false, nil
		}
		if err != nil {
			return swept, stored(err)
		}
		swept.Count(freed, size)
	}
	return swept, nil
}

// all returns the stored contents, with the bytes that each takes. It leaves out files whose name is not a hash, and those stay.
func (b *Blobs) all(ctx context.Context) (map[event.Digest]int64, error) {
	found := map[event.Digest]int64{}
	folders, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !folder.IsDir() || folder.Name() == stagingFolder {
			continue
		}
		names, err := os.ReadDir(filepath.Join(b.dir, folder.Name()))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			d, err := event.ParseDigest("sha256:" + folder.Name() + strings.TrimSuffix(name.Name(), sealedSuffix))
			if err != nil || len(folder.Name()) != 2 || !name.Type().IsRegular() {
				continue
			}
			if info, err := name.Info(); err == nil {
				found[d] += info.Size()
			}
		}
	}
	return found, nil
}

// Spool takes content whose hash and size are not known yet, at most max bytes of it, and gives it back with both. It has no name on the
// disk, so that nothing is left of it when it is closed or the daemon ends.
func (b *Blobs) Spool(ctx context.Context, r io.Reader, max int64) (_ io.ReadSeekCloser, _ blob.Ref, err error) {
	staging, err := beneath.At(b.staging)
	if err != nil {
		return nil, blob.Ref{}, stored(err)
	}
	defer staging.Close()
	file, name, err := beneath.CreateTemp(staging, b.entropy)
	if err != nil {
		return nil, blob.Ref{}, stored(err)
	}
	if err := beneath.Unlink(staging, name); err != nil {
		return nil, blob.Ref{}, beneath.Closed(file, stored(err))
	}
	n, digest, err := beneath.CopyHashed(ctx, file, r, max)
	if err == nil && n > max {
		err = tooLarge(max)
	}
	if err != nil {
		return nil, blob.Ref{}, beneath.Closed(file, stored(err))
	}
	return &kept{io.NewSectionReader(file, 0, n), file}, blob.Ref{Digest: digest, Size: n}, nil
}

func tooLarge(max int64) error {
	return fault.New(fault.Exhausted, blob.ErrTooLarge.Code, "the content has more than the %d bytes that are permitted", max)
}
