package disk

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/snapshots"
)

// The folders of the withheld files of a space. They lie in its home, beside the folder that code sees, belong to the daemon's user, and are
// mounted, loaded or listed in no tier.
const (
	withheldFolder  = "withheld"
	withheldFiles   = withheldFolder + "/files"
	withheldStaging = withheldFolder + "/staging"
	withheldRules   = "rules.json"
)

// heldRules is what the disk remembers of the policy under which files are withheld.
type heldRules struct {
	policy.Withhold
	Suspect  []event.Digest `json:"suspect_snapshots,omitempty"` // they may hold files that a later policy withholds
	Also     []string       `json:"also,omitempty"`              // paths at which a file lay that had a withheld name as well
	AlsoRaw  [][]byte       `json:"also_bytes,omitempty"`        // on the disk: those of Also that are no text, which JSON would change
	Sweeping bool           `json:"sweeping,omitempty"`          // the view is being swept; the daemon goes on with it before code runs
}

// Aside implements space.Store.
func (s *Spaces) Aside(sp id.Space, uid int, limits space.Limits, w policy.Withhold) (space.Files, error) {
	f, err := s.files(sp, uid, limits)
	if err != nil {
		return nil, err
	}
	return f.aside(w), nil
}

// aside returns the withheld files of the same space. They are counted with those that code sees.
func (f *Files) aside(w policy.Withhold) *Files {
	return &Files{space: f.space, at: f.at, limits: f.limits, entropy: f.entropy, withheld: &w, account: f}
}

// folders returns where the files lie and where a new one is written first.
func (f *Files) folders() (files, staging string) {
	if f.withheld != nil {
		return withheldFiles, withheldStaging
	}
	return filesFolder, stagingFolder
}

// method is what the Method of an action on these files says.
func (f *Files) method() string {
	if f.withheld != nil {
		return space.MethodWithheld
	}
	return ""
}

// Withholds implements space.Store.
func (s *Spaces) Withholds(sp id.Space, uid int, limits space.Limits, path string) bool {
	f, err := s.files(sp, uid, limits)
	return err == nil && f.withholds(path)
}

// withholds reports whether a path is one of the withheld files.
func (f *Files) withholds(p string) bool {
	if _, err := os.Lstat(f.at.path(withheldFiles)); err != nil {
		return false
	}
	root, err := f.at.open(withheldFiles)
	if err != nil {
		return false
	}
	defer root.Close()
	if p == "." {
		return true
	}
	folder, name := beneath.Split(p)
	dir, err := beneath.Dir(root, folder)
	if err != nil {
		return false
	}
	defer dir.Close()
	_, err = beneath.Lstat(dir, name)
	return err == nil
}

// makeAside makes the folders of withheld files, where they are missing.
func makeAside(home string, w policy.Withhold) error {
	dir := filepath.Join(home, withheldFolder)
	if _, err := os.Lstat(filepath.Join(dir, withheldRules)); err == nil {
		return nil
	}
	for _, name := range []string{dir, filepath.Join(home, withheldFiles), filepath.Join(home, withheldStaging)} {
		if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return beneath.Refusal(err, ".")
		}
	}
	return writeRules(home, heldRules{Withhold: w})
}

// writeRules replaces the rules of a space durably.
func writeRules(home string, r heldRules) error {
	r.AlsoRaw = nil
	r.Also = slices.DeleteFunc(slices.Clone(r.Also), func(path string) bool {
		if utf8.ValidString(path) {
			return false
		}
		r.AlsoRaw = append(r.AlsoRaw, []byte(path))
		return true
	})
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	dir := filepath.Join(home, withheldFolder)
	temp, err := os.CreateTemp(dir, ".rules-*")
	if err != nil {
		return beneath.Refusal(err, ".")
	}
	_, err = temp.Write(raw)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), filepath.Join(dir, withheldRules))
	}
	return beneath.Refusal(errors.Join(err, beneath.SyncPath(dir), beneath.SyncPath(home)), ".")
}

// readRules returns the rules of a space; zero where nothing was ever withheld.
func readRules(home string) (r heldRules, err error) {
	raw, err := os.ReadFile(filepath.Join(home, withheldFolder, withheldRules))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, fault.Wrap(err, fault.Internal, "space_damaged", "what is withheld in %s cannot be read", filepath.Base(home))
	}
	for _, path := range r.AlsoRaw {
		r.Also = append(r.Also, string(path))
	}
	r.AlsoRaw = nil
	return r, nil
}

// refusal is beneath.Refusal for who asked for a file that code would see. Of one that is not there but is withheld it says so.
func (f *Files) refusal(err error, p string) error {
	if f.withheld != nil || !errors.Is(err, syscall.ENOENT) && !errors.Is(err, space.ErrFileNotFound) {
		return beneath.Refusal(err, p)
	}
	if !f.withholds(p) {
		return beneath.Refusal(err, p)
	}
	rules, failed := readRules(f.at.home)
	if failed != nil {
		return failed
	}
	rule, ok := rules.Match(p)
	if ok {
		rule = " by the rule " + strconv.Quote(rule)
	}
	return fault.Wrap(err, space.ErrWithheld.Kind, space.ErrWithheld.Code, "%+q was brought in by a person and is withheld from code%s", p, rule).
		With("Ask a person for the one value that is needed, as a variable of the space's environment, or make a file of your own from a template.")
}

// KeepAside implements space.Store.
func (s *Spaces) KeepAside(ctx context.Context, sp id.Space, uid int, limits space.Limits, w policy.Withhold) ([]string, error) {
	f, err := s.files(sp, uid, limits)
	if err != nil {
		return nil, err
	}
	f.tree.Lock()
	defer f.tree.Unlock()
	kept, err := f.past.Kept(ctx)
	if err != nil {
		return nil, err
	}
	return f.sweepUnder(ctx, w, kept)
}

// sweepUnder sweeps the view under a policy, from which on snapshots are suspect.
func (f *Files) sweepUnder(ctx context.Context, w policy.Withhold, kept []space.Snapshot) ([]string, error) {
	home := f.at.home
	rules, err := readRules(home)
	if err != nil {
		return nil, err
	}
	if w.IsZero() {
		if rules.IsZero() {
			return nil, nil
		}
		rules.Withhold = w // what is aside stays there
		return nil, writeRules(home, rules)
	}
	rules.Withhold, rules.Sweeping = w, true
	for _, s := range kept {
		if !slices.Contains(rules.Suspect, s.Root) {
			rules.Suspect = append(rules.Suspect, s.Root)
		}
	}
	found, err := f.matching(ctx, rules) // where not all can be looked at, nothing is changed
	if err != nil {
		return nil, err
	}
	if err := errors.Join(makeAside(home, w), writeRules(home, rules)); err != nil {
		return nil, err
	}
	f.at.sweep(true)
	return f.move(ctx, rules, found)
}

// sweep moves what the rules withhold from the view to the withheld files, and says that this is done. No code runs meanwhile.
func (f *Files) sweep(ctx context.Context, rules heldRules) ([]string, error) {
	ctx = context.WithoutCancel(ctx)
	found, err := f.matching(ctx, rules)
	if err != nil {
		return nil, err
	}
	return f.move(ctx, rules, found)
}

// move is the part of sweep that changes something.
func (f *Files) move(ctx context.Context, rules heldRules, found []match) ([]string, error) {
	ctx = context.WithoutCancel(ctx)
	root, err := f.at.open(filesFolder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	aside := f.aside(rules.Withhold)
	to, err := f.at.open(withheldFiles)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	staging, err := f.at.open(withheldStaging)
	if err != nil {
		return nil, err
	}
	defer staging.Close()
	var moved []string
	for i, one := range slices.Backward(found) { // what lies in a folder goes before it
		last := i == 0 || path.Dir(found[i-1].path) != path.Dir(one.path)
		if err := aside.take(ctx, root, to, staging, one, last); err != nil {
			return moved, beneath.Refusal(err, one.path)
		}
		if one.st.Mode&beneath.TypeBits == beneath.TypeFile {
			moved = append(moved, one.path)
			if !rules.holds(one.path) {
				rules.Also = append(rules.Also, one.path)
			}
		}
	}
	f.past.Disturb()
	f.forget()
	rules.Sweeping = false
	if err := writeRules(f.at.home, rules); err != nil {
		return moved, err
	}
	f.at.sweep(false)
	slices.Sort(moved)
	return moved, nil
}

// holds reports whether what lies at a path is withheld.
func (r heldRules) holds(path string) bool {
	_, match := r.Match(path)
	return match || slices.Contains(r.Also, path)
}

// match is an entry of the view that is withheld.
type match struct {
	path string
	st   beneath.Stat
}

// matching returns the entries that a policy withholds, and the other names of the files among them. It looks at all of the view or returns
// an error.
func (f *Files) matching(ctx context.Context, rules heldRules) ([]match, error) {
	root, err := f.at.open(filesFolder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	inodes := map[uint64]bool{}
	see := func(visit func(rel string, st beneath.Stat)) error {
		return beneath.WalkAll(ctx, root, ".", beneath.MaxDepth, snapshots.MaxEntries, func(_ *beneath.Folder, rel, _ string, st beneath.Stat) error {
			visit(rel, st)
			return nil
		})
	}
	var found []match
	err = see(func(rel string, st beneath.Stat) {
		if !rules.holds(rel) {
			return
		}
		found = append(found, match{rel, st})
		if st.Nlink > 1 && st.Mode&beneath.TypeBits == beneath.TypeFile {
			inodes[st.Ino] = true
		}
	})
	if err == nil && len(inodes) > 0 { // another look for their other names
		found = nil
		err = see(func(rel string, st beneath.Stat) {
			if rules.holds(rel) || inodes[st.Ino] && st.Mode&beneath.TypeBits == beneath.TypeFile {
				found = append(found, match{rel, st})
			}
		})
	}
	if err == nil {
		return found, nil
	}
	if failed, ok := errors.AsType[*fault.Error](err); ok {
		return nil, failed.With("Nothing was withheld that was not before. Remove that folder, rewind the space, or destroy it.")
	}
	return nil, beneath.Refusal(err, ".")
}

// take moves one entry of the view, by copying it: the two may lie on different file systems. A withheld file that has the path already keeps
// it, and the new one gets a number behind its name. After the last of a folder the folder is made durable.
func (f *Files) take(ctx context.Context, view, to, staging *beneath.Folder, one match, last bool) error {
	folder, name := beneath.Split(one.path)
	from, err := beneath.Dir(view, folder)
	if err != nil {
		return err
	}
	defer from.Close()
	switch one.st.Mode & beneath.TypeBits {
	case beneath.TypeFolder:
		err = beneath.Rmdir(from, name)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
			err = nil // something in it is excepted
		}
	case beneath.TypeFile:
		file, st, failed := beneath.Regular(from, name)
		if failed != nil {
			return failed
		}
		defer file.Close()
		if failed := f.copied(ctx, to, staging, one.path, file, st); failed != nil {
			return failed
		}
		err = beneath.Unlink(from, name)
	default: // what a link leads to is judged by its own name
		err = beneath.Unlink(from, name)
	}
	if err != nil || !last {
		return err
	}
	return beneath.SyncDir(from)
}

// copied makes a withheld file with the content of another.
func (f *Files) copied(ctx context.Context, to, staging *beneath.Folder, p string, content io.Reader, st beneath.Stat) error {
	folder, name := beneath.Split(p)
	dir, err := f.makeFolders(to, staging, folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	file, temp, err := beneath.CreateTemp(staging, f.entropy)
	if err != nil {
		return err
	}
	s := &staged{dir: staging, file: file, name: temp}
	defer s.discard()
	if _, err = io.Copy(file, beneath.ContextReader(ctx, content)); err == nil {
		err = errors.Join(beneath.Fchmod(file, beneath.FileMode|st.Mode&beneath.ExecBits), file.Sync())
	}
	for n := 0; err == nil; n++ {
		free := name
		if n > 0 {
			free = name + "~" + strconv.Itoa(n)
		}
		if err = beneath.RenameNew(staging, temp, dir, free); err == nil {
			s.name = ""
			return beneath.SyncDir(dir)
		}
		if errors.Is(err, syscall.EEXIST) && n < attempts {
			err = nil
		}
	}
	return err
}

// finish ends a sweep that the daemon's end interrupted. No code of the space has run since.
func (f *Files) finish(ctx context.Context) error {
	f.tree.Lock()
	defer f.tree.Unlock()
	if !f.at.sweeps() {
		return nil
	}
	rules, err := readRules(f.at.home)
	if err != nil {
		return err
	}
	if _, err := f.past.Keep(ctx); err != nil { // it ends a rewind that was interrupted as well
		return err
	}
	_, err = f.sweep(ctx, rules)
	return err
}

// carryAside gives a fork what is withheld in the other space, as it is now.
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
	aside, n := f.aside(rules.Withhold), 0
	err = beneath.Walk(ctx, source, ".", beneath.MaxDepth, snapshots.MaxEntries, func(dir *beneath.Folder, rel, name string, st beneath.Stat) error {
		if st.Mode&beneath.TypeBits != beneath.TypeFile {
			return nil
		}
		file, st, err := beneath.Regular(dir, name)
		if beneath.Vanished(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close()
		done, err := f.reserve(ctx, st.Size)
		if err != nil {
			return err
		}
		defer done()
		n++
		return aside.copied(ctx, to, staging, rel, file, st)
	})
	return n, beneath.Refusal(err, ".")
}

// suspects reports whether a snapshot may hold files that are withheld by now.
func suspects(home string, root event.Digest) (heldRules, bool, error) {
	rules, err := readRules(home)
	return rules, err == nil && !rules.IsZero() && slices.Contains(rules.Suspect, root), err
}

// rewind is Past.Rewind, after which nothing is in the view that a later policy withholds. The tree is locked.
func (f *Files) rewind(ctx context.Context, to event.Digest) (space.Snapshot, space.Snapshot, error) {
	rules, suspect, err := suspects(f.at.home, to)
	if err != nil {
		return space.Snapshot{}, space.Snapshot{}, err
	}
	if !suspect {
		return f.past.Rewind(ctx, to)
	}
	rules.Sweeping = true
	if err := writeRules(f.at.home, rules); err != nil {
		return space.Snapshot{}, space.Snapshot{}, err
	}
	f.at.sweep(true)
	from, reached, err := f.past.Rewind(ctx, to)
	moved, failed := f.sweep(ctx, rules)
	if err = errors.Join(err, failed); err != nil || len(moved) == 0 {
		return from, reached, err
	}
	reached, err = f.past.Keep(context.WithoutCancel(ctx))
	return from, reached, err
}

// sweep remembers whether the view is being swept.
func (p *place) sweep(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeping = on
}

// sweeps reports whether a sweep was not finished.
func (p *place) sweeps() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sweeping
}

// isWithheld reports whether one of the names of place.at is of the withheld files, which lie in the home whatever the others lie in.
func isWithheld(name string) bool { return strings.HasPrefix(name, withheldFolder+"/") }
