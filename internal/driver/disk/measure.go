package disk

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// The bounds of a walk through folders that hostile code may have made.
const (
	// MaxDepth is how deep folders may be nested for their size to be known. What lies deeper cannot be measured, so it counts as a breach.
	MaxDepth = 1024
	// anchorBytes is the length of a relative path from which on a new descriptor is held: well below what the kernel takes in one call.
	anchorBytes = 2048
	// batch is how many names are read from a folder at a time.
	batch = 1024
)

// Usage is what a tree of files occupies.
type Usage struct {
	Bytes  int64 // blocks on disk; a hole in a file costs nothing, a file of one byte costs a block, a file with two names counts once
	Inodes int64 // files, folders and everything else, the tree's own folder included
}

// Measure returns what the tree at a host folder occupies, as far as it can be seen while code changes it. Of code that moves folders
// about during the measurement it may miss or double some. It stops with ErrTreeTooDeep at a folder nested deeper than MaxDepth.
func Measure(ctx context.Context, dir string) (Usage, error) {
	root, err := openRoot(dir)
	if err != nil {
		return Usage{}, err
	}
	defer root.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return Usage{}, refusal(err, ".")
	}
	m := measurer{used: Usage{Bytes: st.Blocks * 512, Inodes: 1}}
	if err := m.folder(ctx, root, ".", 1); err != nil {
		return m.used, err
	}
	return m.used, nil
}

type measurer struct {
	used Usage
	seen map[[2]uint64]struct{} // files with several names
}

// folder adds what lies below rel, which is below anchor and nested depth deep.
func (m *measurer) folder(ctx context.Context, anchor *os.File, rel string, depth int) error {
	dir, err := openDir(anchor, rel)
	if err != nil {
		return passing(err)
	}
	folders, err := m.entries(ctx, dir)
	if err != nil || len(folders) == 0 {
		return errors.Join(err, dir.Close())
	}
	if depth >= MaxDepth {
		return closed(dir, fault.New(fault.Exhausted, space.ErrTreeTooDeep.Code, "folders are nested more than %d deep; they cannot be measured", MaxDepth))
	}
	if len(rel) > anchorBytes {
		defer dir.Close()
		anchor, rel = dir, "."
	} else {
		dir.Close()
	}
	for _, name := range folders {
		if err := m.folder(ctx, anchor, join(rel, name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// entries adds what lies in a folder and returns the names of the folders in it.
func (m *measurer) entries(ctx context.Context, dir *os.File) ([]string, error) {
	var folders []string
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			st, err := lstat(dir, name)
			if err != nil {
				continue // gone meanwhile
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				folders = append(folders, name)
			} else if st.Nlink > 1 && !m.first(st) {
				continue
			}
			m.used.Bytes += st.Blocks * 512
			m.used.Inodes++
		}
		if errors.Is(err, io.EOF) {
			return folders, nil
		}
		if err != nil {
			return folders, passing(err)
		}
	}
}

func (m *measurer) first(st unix.Stat_t) bool {
	if m.seen == nil {
		m.seen = map[[2]uint64]struct{}{}
	}
	key := [2]uint64{uint64(st.Dev), st.Ino}
	_, known := m.seen[key]
	m.seen[key] = struct{}{}
	return !known
}

// passing drops the errors of a folder that went away, or became something else, after its name was read.
func passing(err error) error {
	for _, e := range [...]error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.ESTALE} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return refusal(err, ".")
}

// join appends a name to a relative path.
func join(rel, name string) string {
	if rel == "." {
		return name
	}
	return rel + "/" + name
}

// reserve sees to it that size more bytes fit into the quota, and returns a function to be called when they are written or given up.
// A tree is measured anew when that costs little against what was written since: at once while it is small, and in any case after 16 MiB.
// In between, what programs in the space write is not seen here; the watcher of their tier sees it.
func (f *Files) reserve(ctx context.Context, size int64) (func(), error) {
	if f.limits.DiskBytes <= 0 || size <= 0 {
		return f.forget, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known || f.stale*64 >= f.used.Inodes || f.fresh+size > 16<<20 || f.used.Bytes+size > f.limits.DiskBytes {
		used, err := Measure(ctx, f.dir)
		if err != nil {
			return nil, err
		}
		f.used, f.known, f.stale, f.fresh = used, true, 0, 0
		f.used.Bytes += f.pending
	}
	if f.used.Bytes+size > f.limits.DiskBytes {
		return nil, fault.New(fault.Exhausted, space.ErrQuota.Code, "the space's files occupy %d bytes; %d more would exceed its disk limit of %d", f.used.Bytes, size, f.limits.DiskBytes).
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
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = false
}
