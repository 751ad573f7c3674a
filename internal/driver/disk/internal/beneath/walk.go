package beneath

import (
	"container/heap"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// Visit receives an entry of a walk: the open folder it lies in, its path from the walk's root, its name, and what it is.
type Visit func(dir *Folder, rel, name string, st Stat) error

// Walk visits the entries below the folder rel in the order of the paths, byte by byte, down to depth folders. It reads at most the first
// limit names of each folder. It keeps the folders on its path open, and at most limit names of each in memory. It opens a folder by its
// name in its parent, so that the cost grows with the entries and not with their depth. It skips a folder that is gone or changed when it
// comes to it, except the first.
func Walk(ctx context.Context, root *Folder, rel string, depth, limit int, see Visit) error {
	return walk(ctx, root, rel, rel, depth, limit, false, see)
}

// WalkAll visits what Walk does, in a tree that nobody changes meanwhile, and leaves nothing out: a folder nested deeper than depth, one
// with more than limit names, and an unreadable entry is an error. A caller that searches for files to remove needs that.
func WalkAll(ctx context.Context, root *Folder, rel string, depth, limit int, see Visit) error {
	return walk(ctx, root, rel, rel, depth, limit, true, see)
}

// walk goes through the folder name in another one; rel is its path from the walk's root.
func walk(ctx context.Context, in *Folder, name, rel string, depth, limit int, all bool, see Visit) error {
	if depth <= 0 {
		return fault.New(fault.Exhausted, space.ErrTreeTooDeep.Code,
			"folders are nested too deep to look at all of them, below %.100s", strconv.QuoteToASCII(rel))
	}
	dir, err := Dir(in, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	most := limit
	if all {
		most++
	}
	names, err := firstNames(ctx, dir, most)
	if err != nil {
		return err
	}
	if len(names) > limit {
		return fault.New(fault.Exhausted, space.ErrFolderTooLarge.Code,
			"the folder %.100s holds more than %d entries, too many to look at all of them", strconv.QuoteToASCII(rel), limit)
	}
	// A folder has two steps: it is visited in the order of its name, and its entries in the order of the name with a slash. Other names
	// may come between the two.
	type step struct{ key, name string }
	steps := make([]step, 0, len(names))
	stats := make(map[string]Stat, len(names))
	for _, name := range names {
		st, err := Lstat(dir, name)
		if err != nil && all {
			return err
		}
		if err != nil {
			continue
		}
		stats[name] = st
		steps = append(steps, step{name, name})
		if st.Mode&TypeBits == TypeFolder && (all || depth > 1) {
			steps = append(steps, step{name + "/", name})
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return strings.Compare(a.key, b.key) })
	for _, s := range steps {
		path := Join(rel, s.name)
		if s.key == s.name {
			if err := see(dir, path, s.name, stats[s.name]); err != nil {
				return err
			}
			continue
		}
		if err := walk(ctx, dir, s.name, path, depth-1, limit, all, see); err != nil && (all || !Vanished(err)) {
			return err
		}
	}
	return nil
}

// Vanished reports whether a folder went away, or became something else, after its name was read.
func Vanished(err error) bool {
	for _, e := range [...]error{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EXDEV, syscall.ESTALE, syscall.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// firstNames returns the limit smallest names in a folder, in no order, and holds no more than that in memory.
func firstNames(ctx context.Context, dir *Folder, limit int) ([]string, error) {
	var first names
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		got, err := dir.Readdirnames(batch)
		for _, name := range got {
			if len(first) < limit {
				heap.Push(&first, name)
			} else if name < first[0] {
				first[0] = name
				heap.Fix(&first, 0)
			}
		}
		if errors.Is(err, io.EOF) {
			return first, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// names is a heap with the largest on top.
type names []string

func (n names) Len() int           { return len(n) }
func (n names) Less(i, j int) bool { return n[i] > n[j] }
func (n names) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *names) Push(x any)        { *n = append(*n, x.(string)) }
func (n *names) Pop() any {
	last := (*n)[len(*n)-1]
	*n = (*n)[:len(*n)-1]
	return last
}

// Portable reports whether a path means the same on every system that may unpack it.
func Portable(p string) bool {
	return utf8.ValidString(p) && !strings.Contains(p, `\`) && !strings.ContainsFunc(p, unicode.IsControl)
}

// StaysInside reports whether a symbolic link at the path p, relative to a folder, points to a place in that folder, whatever other links
// of that kind it leads through. For that, a target may go up at its beginning only: after another link, going up starts elsewhere.
func StaysInside(p, target string) bool {
	if target == "" || target[0] == '/' || !Portable(target) {
		return false
	}
	depth, down := strings.Count(p, "/"), false
	for name := range strings.SplitSeq(target, "/") {
		switch name {
		case "", ".":
		case "..":
			if depth--; depth < 0 || down {
				return false
			}
		default:
			down = true
		}
	}
	return true
}
