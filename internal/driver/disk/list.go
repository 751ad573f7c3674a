package disk

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

const (
	// listDepth is how deep a recursive list goes: what lies deeper than this has no path of at most space.MaxPathRunes characters.
	listDepth = (space.MaxPathRunes + 1) / 2
	// maxList is the most entries of one list, whatever limit is asked for.
	maxList = 100_000
)

// List returns entries of a directory in the order of their paths, byte by byte. Links are listed, not followed. What comes or goes
// during the call may be in the list or not. Bytes of a name that are not UTF-8 are written as \xNN.
func (f *Files) List(ctx context.Context, p policy.Permit, recursive bool, limit int) ([]space.Entry, error) {
	a, root, err := f.begin(ctx, p, policy.FileList)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if limit <= 0 || limit > maxList {
		limit = maxList
	}
	depth := 1
	if recursive {
		depth = listDepth
	}
	entries := []space.Entry{}
	err = walk(ctx, root, a.Path, depth, limit, func(dir *os.File, rel, name string, st unix.Stat_t) error {
		e := entryOf(printable(rel), st)
		if e.Type == "symlink" {
			target, err := readlink(dir, name)
			if err != nil {
				return nil // gone meanwhile
			}
			e.Target = printable(target)
		}
		if entries = append(entries, e); len(entries) == limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, refusal(err, a.Path)
	}
	return entries, nil
}

// errEnough ends a walk early.
var errEnough = errors.New("enough entries")

// visit receives an entry of a walk: the open folder it lies in, its path from the walk's root, its name, and what it is.
type visit func(dir *os.File, rel, name string, st unix.Stat_t) error

// walk visits what lies below the folder rel in the order of the paths, byte by byte, down to depth folders, looking at no more than the
// first limit names of each folder. It holds one folder open at a time and no more than limit names of each in memory. A folder that is
// gone or changed when its turn comes is passed over, except the first.
func walk(ctx context.Context, root *os.File, rel string, depth, limit int, see visit) error {
	dir, err := openDir(root, rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := firstNames(ctx, dir, limit)
	if err != nil {
		return err
	}
	// The entry of a folder sorts by its name; what lies in it by the name with a slash. Other names may come between the two.
	type turn struct{ key, name string }
	turns := make([]turn, 0, len(names))
	stats := make(map[string]unix.Stat_t, len(names))
	for _, name := range names {
		st, err := lstat(dir, name)
		if err != nil {
			continue
		}
		stats[name] = st
		turns = append(turns, turn{name, name})
		if st.Mode&unix.S_IFMT == unix.S_IFDIR && depth > 1 {
			turns = append(turns, turn{name + "/", name})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return strings.Compare(a.key, b.key) })
	for _, t := range turns {
		path := join(rel, t.name)
		if t.key == t.name {
			if err := see(dir, path, t.name, stats[t.name]); err != nil {
				return err
			}
			continue
		}
		if err := walk(ctx, root, path, depth-1, limit, see); err != nil && !vanished(err) {
			return err
		}
	}
	return nil
}

// vanished reports whether a folder went away, or became something else, after its name was read.
func vanished(err error) bool {
	for _, e := range [...]error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.ESTALE, unix.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// firstNames returns the limit smallest names in a folder, in no order, and holds no more than that in memory.
func firstNames(ctx context.Context, dir *os.File, limit int) ([]string, error) {
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

// printable returns a name as JSON can carry it.
func printable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[0])
		} else {
			b.WriteString(name[:size])
		}
		name = name[size:]
	}
	return b.String()
}
