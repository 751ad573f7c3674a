package snapshots

import (
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// comparison collects what differs between two snapshots.
type comparison struct {
	packs *packs
	found []space.Difference
	limit int
	name  func(string) string // writes a path as JSON can carry it
}

// folders compares two folders; a zero hash is one that is not there.
func (c *comparison) folders(rel string, from, to event.Digest) error {
	if from == to {
		return nil
	}
	var before, after []entry
	var err error
	if !from.IsZero() {
		if before, err = c.packs.folder(from); err != nil {
			return err
		}
	}
	if !to.IsZero() {
		if after, err = c.packs.folder(to); err != nil {
			return err
		}
	}
	for i, j := 0, 0; (i < len(before) || j < len(after)) && len(c.found) < c.limit; {
		var was, is *entry
		if j == len(after) || i < len(before) && before[i].name <= after[j].name {
			was = &before[i]
		}
		if i == len(before) || j < len(after) && after[j].name <= before[i].name {
			is = &after[j]
		}
		if was != nil {
			i++
		}
		if is != nil {
			j++
		}
		if err := c.entries(rel, was, is); err != nil {
			return err
		}
	}
	return nil
}

// entries compares what stands under one name; nil is nothing.
func (c *comparison) entries(rel string, was, is *entry) error {
	var from, to event.Digest
	if was != nil && was.kind == isFolder {
		from = was.digest
	}
	if is != nil && is.kind == isFolder {
		to = is.digest
	}
	d := space.Difference{Change: space.Modified, Before: version(was), After: version(is)}
	switch {
	case was == nil:
		d.Path, d.Change = c.name(beneath.Join(rel, is.name)), space.Added
	case is == nil:
		d.Path, d.Change = c.name(beneath.Join(rel, was.name)), space.Removed
	default:
		d.Path = c.name(beneath.Join(rel, is.name))
		if was.kind == isFolder && is.kind == isFolder && was.mode == is.mode || *was == *is {
			d.Change = "" // what differs lies in it
		}
	}
	if d.Change != "" && len(c.found) < c.limit {
		c.found = append(c.found, d)
	}
	if from.IsZero() && to.IsZero() {
		return nil
	}
	name := was
	if name == nil {
		name = is
	}
	return c.folders(beneath.Join(rel, name.name), from, to)
}

// version describes an entry for people and programs.
func version(e *entry) *space.Version {
	if e == nil {
		return nil
	}
	v := &space.Version{Type: string(e.kind)}
	switch e.kind {
	case isFile:
		v.Mode, v.Size, v.Digest = fmt.Sprintf("%04o", e.mode), e.size, e.digest
	case isFolder:
		v.Type, v.Mode = "directory", fmt.Sprintf("%04o", e.mode)
	default:
		v.Type, v.Target = "symlink", e.target
	}
	return v
}
