package disk

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// carried is how many names a folder of withheld files may have for a fork: as many as there are. Who looks for what must not be lost
// passes over nothing.
const carried = 1<<31 - 2

// carryAside gives a fork what is withheld in the other space, as it is now: all of it, or the fork is not made. A person may change what
// is withheld meanwhile; then it looks again, and what it has copied by then stays.
func (f *Files) carryAside(ctx context.Context, from string) (int, error) {
	rules, err := readRules(from)
	source, failed := beneath.Root(filepath.Join(from, withheldFiles))
	if errors.Is(failed, space.ErrFileNotFound) || errors.Is(failed, syscall.ENOENT) {
		return 0, err
	}
	if err = errors.Join(err, failed); err != nil {
		return 0, err
	}
	defer source.Close()
	if err := makeAside(f.at.home, rules.Withhold); err != nil {
		return 0, err
	}
	if err := writeRules(f.at.home, heldRules{Withhold: rules.Withhold, Also: rules.Also}); err != nil {
		return 0, err
	}
	to, err := f.at.open(withheldFiles)
	if err != nil {
		return 0, err
	}
	defer to.Close()
	staging, err := f.at.open(withheldStaging)
	if err != nil {
		return 0, err
	}
	defer staging.Close()
	c := carrier{f: f, aside: f.aside(rules.Withhold), to: to, staging: staging, done: map[string]bool{}}
	for range attempts {
		if err = beneath.WalkAll(ctx, source, ".", beneath.MaxDepth, carried, c.copying(ctx)); err == nil || !beneath.Vanished(err) {
			break
		}
	}
	return c.files, beneath.Refusal(err, ".")
}

// carrier copies the withheld files of one space to a fork of it.
type carrier struct {
	f, aside    *Files // of the fork
	to, staging *beneath.Folder
	done        map[string]bool // paths that were copied
	files       int
}

// copying is the visit that copies an entry.
func (c *carrier) copying(ctx context.Context) beneath.Visit {
	return func(dir *beneath.Folder, rel, name string, st beneath.Stat) error {
		if c.done[rel] {
			return nil
		}
		var err error
		switch st.Mode & beneath.TypeBits {
		case beneath.TypeFile:
			err = c.file(ctx, dir, rel, name)
		case beneath.TypeFolder:
			made, failed := c.aside.makeFolders(c.to, c.staging, rel)
			if failed == nil {
				failed = made.Close()
			}
			err = failed
		case beneath.TypeLink:
			err = c.link(dir, rel, name)
		}
		c.done[rel] = err == nil
		return err
	}
}

func (c *carrier) file(ctx context.Context, dir *beneath.Folder, rel, name string) error {
	file, st, err := beneath.Regular(dir, name)
	if err != nil {
		return err
	}
	defer file.Close()
	done, err := c.f.reserve(ctx, st.Size)
	if err != nil {
		return err
	}
	defer done()
	c.files++
	return c.aside.copied(ctx, c.to, c.staging, rel, file, st)
}

// link copies a symbolic link, as it stands there: nothing follows it.
func (c *carrier) link(dir *beneath.Folder, rel, name string) error {
	target, err := beneath.Readlink(dir, name)
	if err != nil {
		return err
	}
	folder, last := beneath.Split(rel)
	in, err := c.aside.makeFolders(c.to, c.staging, folder)
	if err != nil {
		return err
	}
	defer in.Close()
	return errors.Join(beneath.Symlink(target, in, last), beneath.SyncDir(in))
}
