package beneath

import (
	"context"
	"errors"
	"io"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// The bounds of a walk through folders that hostile code may have made.
const (
	// MaxDepth is how deep folders may be nested for their size to be known. A deeper folder cannot be measured, so it counts as a breach.
	MaxDepth = 1024
	// anchorBytes is the length of a relative path from which on a new descriptor is held: well below what the kernel takes in one call.
	anchorBytes = 2048
	// batch is how many names are read from a folder at a time.
	batch = 1024
)

// Usage counts a tree of files.
type Usage struct {
	Bytes  int64 // blocks on disk; a hole in a file costs nothing, a file of one byte costs a block, a file with two names counts once
	Inodes int64 // files, folders and everything else, the tree's own folder included
}

// Measure returns the usage of the tree at a host folder, as far as it can see it while code changes it. Of code that moves folders
// about during the measurement it may miss or double some. It stops with ErrTreeTooDeep at a folder nested deeper than MaxDepth.
func Measure(ctx context.Context, dir string) (Usage, error) {
	root, err := Root(dir)
	if err != nil {
		return Usage{}, err
	}
	defer root.Close()
	var st Stat
	if err := Fstat(root, &st); err != nil {
		return Usage{}, Refusal(err, ".")
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
func (m *measurer) folder(ctx context.Context, anchor *Folder, rel string, depth int) error {
	dir, err := Dir(anchor, rel)
	if err != nil {
		return passing(err)
	}
	folders, err := m.entries(ctx, dir)
	if err != nil || len(folders) == 0 {
		return errors.Join(err, dir.Close())
	}
	if depth >= MaxDepth {
		return Closed(dir, fault.New(fault.Exhausted, space.ErrTreeTooDeep.Code, "folders are nested more than %d deep; they cannot be measured",
			MaxDepth))
	}
	if len(rel) > anchorBytes {
		defer dir.Close()
		anchor, rel = dir, "."
	} else {
		dir.Close()
	}
	for _, name := range folders {
		if err := m.folder(ctx, anchor, Join(rel, name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// entries adds what lies in a folder and returns the names of the folders in it.
func (m *measurer) entries(ctx context.Context, dir *Folder) ([]string, error) {
	var folders []string
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			st, err := Lstat(dir, name)
			if err != nil {
				continue // gone meanwhile
			}
			if st.Mode&TypeBits == TypeFolder {
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

func (m *measurer) first(st Stat) bool {
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
	if Vanished(err) {
		return nil
	}
	return Refusal(err, ".")
}

// Join appends a name to a relative path.
func Join(rel, name string) string {
	if rel == "." {
		return name
	}
	return rel + "/" + name
}
