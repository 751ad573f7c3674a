package disk

import (
	"context"
	"os"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// reserve sees to it that size more bytes fit into the quota, and returns a function to be called when they are written or given up.
// A tree is measured anew when that costs little against what was written since: at once while it is small, and in any case after 16 MiB.
// In between, this does not see writes of programs in the space; the watcher of their tier does.
func (f *Files) reserve(ctx context.Context, size int64) (func(), error) {
	if f.account != nil {
		return f.account.reserve(ctx, size)
	}
	if f.limits.DiskBytes <= 0 || size <= 0 {
		return f.forget, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known || f.stale*64 >= f.used.Inodes || f.fresh+size > 16<<20 || f.used.Bytes+size > f.limits.DiskBytes {
		used, err := f.measure(ctx)
		if err != nil {
			return nil, err
		}
		f.used, f.known, f.stale, f.fresh = used, true, 0, 0
		f.used.Bytes += f.pending
	}
	if f.used.Bytes+size > f.limits.DiskBytes {
		return nil, fault.New(fault.Exhausted, space.ErrQuota.Code,
			"the space's files occupy %d bytes; %d more would exceed its disk limit of %d", f.used.Bytes, size, f.limits.DiskBytes).
			With("delete files that are no longer needed, or ask for a space with a larger disk_bytes")
	}
	f.used.Bytes += size
	f.used.Inodes++
	f.fresh += size
	f.stale++
	f.pending += size
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.pending -= size
	}, nil
}

// forget has the tree measured anew before the next write.
func (f *Files) forget() {
	if f.account != nil {
		f.account.forget()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = false
}

// measure returns the usage of the space's files, with the withheld ones.
func (f *Files) measure(ctx context.Context) (beneath.Usage, error) {
	used, err := beneath.Measure(ctx, f.at.path(filesFolder))
	if err != nil {
		return used, err
	}
	if _, err := os.Lstat(f.at.path(withheldFiles)); err != nil {
		return used, nil //nolint:nilerr // nothing is withheld
	}
	aside, err := beneath.Measure(ctx, f.at.path(withheldFiles))
	return beneath.Usage{Bytes: used.Bytes + aside.Bytes, Inodes: used.Inodes + aside.Inodes}, err
}
