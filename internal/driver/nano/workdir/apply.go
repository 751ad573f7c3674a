package workdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"agentbox/internal/userland/vfs"
)

// maxComplaints is how many changes that failed an error names.
const maxComplaints = 10

// Owner is the owner of new files, if the operating system knows owners.
type Owner struct{ UID, GID int }

// Apply makes the changes in the folder, in their order. Each file is written as a whole or not at all.
//
// Unfinished files are in a folder of their own in staging, which has to be on the same file system and should be hidden from code. With ""
// they are in the folder itself. A change may fail because the folder was changed meanwhile or the host refuses it. It does not hinder the
// others, and the error names it.
func (f *Folder) Apply(changes []vfs.Change, staging string, owner *Owner) error {
	if len(changes) == 0 {
		return nil
	}
	s, err := f.Stage(staging, owner)
	if err != nil {
		return err
	}
	return s.Apply(changes)
}

// Stage holds entries that are on their way into a folder. The caller applies or closes it.
type Stage struct{ a *applier }

// Stage makes room in staging, as Apply does, for content that comes before it is known what else changes.
func (f *Folder) Stage(staging string, owner *Owner) (*Stage, error) {
	a := &applier{folder: f, owner: owner, slots: map[int]string{}}
	if err := a.stage(staging); err != nil {
		return nil, fmt.Errorf("make room for what changes: %w", err)
	}
	return &Stage{a}, nil
}

// Hold writes the content of a file while it comes, and returns the name by which a change has it.
func (s *Stage) Hold(content io.Reader) (held string, err error) {
	s.a.held++
	held = "h" + strconv.Itoa(s.a.held)
	file, err := s.a.place.root.OpenFile(held, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return held, err
	}
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, s.a.place.root.Remove(held)) // what is there of it would be taken for the whole
	}
	return held, err
}

// Close removes the stage and its content.
func (s *Stage) Close() error { return s.a.close() }

// Apply makes the changes, as Folder.Apply does, and closes the stage.
func (s *Stage) Apply(changes []vfs.Change) error {
	a := s.a
	a.folder.forget()
	defer a.folder.forget()
	var failed []error
	for i, c := range changes {
		if c.Op == vfs.WriteFile && c.Keep && a.names == nil {
			if err := a.find(changes[i:]); err != nil {
				failed = append(failed, err)
			}
		}
		if err := a.apply(c); err != nil {
			if failed = append(failed, fmt.Errorf("%s %q: %w", verb(c.Op), c.Path, err)); len(failed) > maxComplaints {
				failed = failed[:maxComplaints]
			}
		}
	}
	return errors.Join(append(failed, a.close())...)
}

var verbs = [...]string{
	vfs.Remove: "remove", vfs.RemoveDir: "remove folder", vfs.Take: "move", vfs.Put: "move to", vfs.MakeDir: "make folder",
	vfs.WriteFile: "write",
	vfs.MakeLink:  "make link", vfs.Link: "make name", vfs.SetTime: "set time of", vfs.SetMode: "set mode of",
}

// verb says what a change does; that of a worker that was taken over may be none.
func verb(op vfs.Op) string {
	if int(op) < len(verbs) && verbs[op] != "" {
		return verbs[op]
	}
	return "change"
}

type applier struct {
	folder *Folder
	owner  *Owner
	place  location // the folder of files in transit; its name is empty
	base   *os.Root // where the place itself lies
	slots  map[int]string
	names  map[uint64][]string // of files that keep their other names
	count  int
	held   int
}

// location is a name in an open folder. path is where that folder is, from the folder of the execution.
type location struct {
	root *os.Root
	path string
	name string
}

// stage makes a folder for files in transit.
func (a *applier) stage(staging string) error {
	a.base = a.folder.root
	if staging != "" && canMoveBetween {
		base, err := os.OpenRoot(staging)
		if err != nil {
			return err
		}
		info, err := base.Stat(".")
		if err == nil && device(info) != a.folder.device {
			err = errors.New("the staging folder has to be on the file system of the execution's folder")
		}
		if err != nil {
			return errors.Join(err, base.Close())
		}
		a.base = base
	}
	for tried := range maxStages { // one that a crash has left behind is not touched: files that were moved may lie in it
		a.place.path = stageName(tried)
		err := a.base.Mkdir(a.place.path, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil { // it is the space's own, so that code of another tier can remove what a crash leaves of it
			err = a.own(a.base, a.place.path)
		}
		if err == nil {
			a.place.root, err = a.base.OpenRoot(a.place.path)
		}
		return err
	}
	return fmt.Errorf("%s and the like are there already: remove them", stageName(0))
}

// maxStages is how many names stage tries.
const maxStages = 48

// stageName is the name that is tried after so many: code that takes names beforehand cannot make many be tried.
func stageName(tried int) string {
	return ".agentbox-apply-" + strconv.FormatUint(1<<tried-1, 10)
}

// close puts back the taken entries that have no new place, and removes the stage.
func (a *applier) close() error {
	var failed []error
	for _, slot := range slices.Sorted(maps.Keys(a.slots)) {
		path := a.slots[slot]
		if err := a.move(a.waiting(slot), path); err != nil {
			failed = append(failed, fmt.Errorf("put back %q, which waits in %q: %w", path, a.place.path, err))
		}
	}
	failed = append(failed, a.place.root.Close())
	if len(failed) == 1 {
		failed = append(failed, a.base.RemoveAll(a.place.path))
	}
	if a.base != a.folder.root {
		failed = append(failed, a.base.Close())
	}
	return errors.Join(failed...)
}

func (a *applier) apply(c vfs.Change) error {
	if c.Path == "." {
		switch c.Op {
		case vfs.SetMode:
			return a.folder.root.Chmod(".", fs.FileMode(c.Mode&0o777))
		case vfs.SetTime:
			return a.folder.root.Chtimes(".", c.Modified, c.Modified)
		}
		return vfs.EINVAL
	}
	switch c.Op {
	case vfs.WriteFile:
		return a.write(c)
	case vfs.Put:
		if _, waits := a.slots[c.Slot]; !waits {
			return vfs.ENOENT
		}
		defer a.folder.leave()
		err := a.move(a.waiting(c.Slot), c.Path)
		if err == nil {
			delete(a.slots, c.Slot)
		}
		return err
	}
	r, name, err := a.folder.parent(c.Path)
	if (c.Op == vfs.Remove || c.Op == vfs.RemoveDir) && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	switch c.Op {
	case vfs.Remove, vfs.RemoveDir:
		info, err := r.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && info.IsDir() != (c.Op == vfs.RemoveDir) {
			return vfs.EBUSY
		}
		if c.Op == vfs.RemoveDir {
			a.folder.leave()
			if r, name, err = a.folder.parent(c.Path); err != nil {
				return err
			}
		}
		return r.Remove(name)
	case vfs.Take:
		to := a.waiting(c.Slot)
		if err := rename(a.folder.root, location{r, dirOf(c.Path), name}, to); err != nil {
			return err
		}
		a.slots[c.Slot] = c.Path
		a.folder.leave()
		return nil
	case vfs.MakeDir:
		return a.mkdir(r, name, fs.FileMode(c.Mode&0o777|0o700))
	case vfs.MakeLink:
		if err := r.Symlink(c.Target, name); err != nil {
			return err
		}
		return a.own(r, name)
	case vfs.Link:
		return a.link(c)
	case vfs.SetMode, vfs.SetTime:
		info, err := r.Lstat(name)
		switch {
		case err != nil:
			return err
		case !info.IsDir() && !info.Mode().IsRegular():
			return vfs.EBUSY // it is not the file that was meant
		case c.Op == vfs.SetMode:
			return r.Chmod(name, fs.FileMode(c.Mode&0o777))
		}
		return r.Chtimes(name, c.Modified, c.Modified)
	}
	return vfs.EINVAL
}

func (a *applier) mkdir(r *os.Root, name string, mode fs.FileMode) error {
	err := r.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) {
		if info, e := r.Lstat(name); e == nil && info.IsDir() {
			return nil // somebody else has made it
		}
	}
	if err != nil {
		return err
	}
	if err := a.own(r, name); err != nil {
		return err
	}
	return r.Chmod(name, mode) // under any umask
}

// write makes a file where nobody sees it and moves it to its name, or to all the names that it has in the folder.
func (a *applier) write(c vfs.Change) error {
	a.count++
	name := "f" + strconv.Itoa(a.count)
	if err := a.fill(name, c); err != nil {
		return errors.Join(err, a.place.root.RemoveAll(name))
	}
	paths := []string{c.Path}
	if c.Keep {
		r, last, err := a.folder.parent(c.Path)
		if err != nil {
			return err
		}
		info, err := r.Lstat(last)
		if err != nil {
			return err
		}
		if id, links := inode(info); links > 1 && len(a.names[id]) > 0 {
			paths = a.names[id]
		}
	}
	for i, path := range paths {
		from := name
		if i < len(paths)-1 {
			from = name + "." + strconv.Itoa(i)
			if err := a.place.root.Link(name, from); err != nil {
				return err
			}
		}
		if err := a.move(location{a.place.root, a.place.path, from}, path); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) fill(name string, c vfs.Change) (err error) {
	flags := os.O_WRONLY
	if c.Held == "" {
		flags |= os.O_CREATE | os.O_EXCL
	} else if err := a.place.root.Rename(c.Held, name); err != nil {
		return err
	}
	file, err := a.place.root.OpenFile(name, flags, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	length := int64(0)
	for _, p := range c.Content {
		if _, err := file.Write(p); err != nil {
			return err
		}
		length += int64(len(p))
	}
	if c.Held != "" || c.Size > length { // the missing part of the content is zero
		if err := file.Truncate(c.Size); err != nil {
			return err
		}
	}
	if err := a.own(a.place.root, name); err != nil {
		return err
	}
	if err := a.place.root.Chtimes(name, c.Modified, c.Modified); err != nil {
		return err
	}
	return a.place.root.Chmod(name, fs.FileMode(c.Mode&0o777))
}

// find looks for all the names, in the folder, of the files that are to keep them. Names outside of the folder are not files of the
// space: they keep the old content.
func (a *applier) find(changes []vfs.Change) error {
	a.names = map[uint64][]string{}
	for _, c := range changes {
		if c.Op != vfs.WriteFile || !c.Keep {
			break
		}
		if r, name, err := a.folder.parent(c.Path); err == nil {
			if info, err := r.Lstat(name); err == nil && info.Mode().IsRegular() {
				id, _ := inode(info)
				a.names[id] = nil
			}
		}
	}
	return a.search(".")
}

func (a *applier) search(dir string) error {
	all, err := a.folder.List(dir)
	if err != nil {
		return err
	}
	for _, x := range all {
		path := x.Name
		if dir != "." {
			path = dir + "/" + x.Name
		}
		switch {
		case dir == "." && x.Name == a.place.path && a.base == a.folder.root: // the stage
		case x.Kind == vfs.Directory:
			if err := a.search(path); err != nil {
				return err
			}
		case x.Same != 0:
			if names, wanted := a.names[x.Same]; wanted {
				a.names[x.Same] = append(names, path)
			}
		}
	}
	return nil
}

func (a *applier) waiting(slot int) location {
	return location{a.place.root, a.place.path, "s" + strconv.Itoa(slot)}
}

func (a *applier) move(from location, path string) error {
	r, name, err := a.folder.parent(path)
	if err != nil {
		return err
	}
	return rename(a.folder.root, from, location{r, dirOf(path), name})
}

func (a *applier) link(c vfs.Change) error {
	r, name, err := a.folder.parent(c.Target)
	if err != nil {
		return err
	}
	from := location{r, dirOf(c.Target), name}
	if dirOf(c.Path) != dirOf(c.Target) { // two folders at once
		if from.root, err = a.folder.reopen(from.path); err != nil {
			return err
		}
		defer func() { _ = from.root.Close() }()
	}
	to, name, err := a.folder.parent(c.Path)
	if err != nil {
		return err
	}
	return link(a.folder.root, from, location{to, dirOf(c.Path), name})
}

// reopen opens a folder for the caller, who closes it.
func (f *Folder) reopen(path string) (*os.Root, error) {
	if path == "." {
		return f.root.OpenRoot(".")
	}
	r, err := f.folder(path)
	if err != nil {
		return nil, err
	}
	return r.OpenRoot(".")
}

func (a *applier) own(r *os.Root, name string) error {
	if a.owner == nil || !hasOwners {
		return nil
	}
	return r.Lchown(name, a.owner.UID, a.owner.GID)
}

func dirOf(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "."
}
