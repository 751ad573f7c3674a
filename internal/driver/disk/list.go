package disk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

const (
	// listDepth is how deep a recursive list goes: what lies deeper than this has no path of at most space.MaxPathRunes characters.
	listDepth = (space.MaxPathRunes + 1) / 2
	// maxList is the largest number of entries in one list, whatever limit the caller sets.
	maxList = 100_000
)

// List returns entries of a directory in the order of their paths, byte by byte. Links are listed, not followed. An entry that comes or
// goes during the call may be in the list or not. Bytes of a name that are not UTF-8 are written as \xNN.
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
	err = beneath.Walk(ctx, root, a.Path, depth, limit, func(dir *beneath.Folder, rel, name string, st beneath.Stat) error {
		e := f.entryOf(printable(rel), st)
		if e.Type == "symlink" {
			target, err := beneath.Readlink(dir, name)
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
		return nil, beneath.Refusal(err, a.Path)
	}
	return entries, nil
}

// errEnough ends a walk early.
var errEnough = errors.New("enough entries")

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
