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

// The folders of the withheld files of a space. They lie in its home, beside the folder that code sees, belong to the daemon's user, and
// are mounted, loaded or listed in no tier.
const (
	withheldFolder  = "withheld"
	withheldFiles   = withheldFolder + "/files"
	withheldStaging = withheldFolder + "/staging"
	withheldRules   = "rules.json"
)

// heldRules is the disk's record of the policy under which files are withheld.
type heldRules struct {
	policy.Withhold
	Suspect  []event.Digest `json:"suspect_snapshots,omitempty"` // they may hold files that a later policy withholds
	Also     []string       `json:"also,omitempty"`              // paths at which a file lay that had a withheld name as well
	AlsoRaw  [][]byte       `json:"also_bytes,omitempty"`        // on the disk: those of Also that are no text, which JSON would change
	Sweeping bool           `json:"sweeping,omitempty"`          // the view is being swept; the daemon goes on with it before code runs

	Contexts bool           `json:"ends_contexts,omitempty"`    // the sweep that is under way removes the interpreter contexts
	Spared   []event.Digest `json:"spared_snapshots,omitempty"` // the suspect ones whose contexts may stay: nothing else is withheld since
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

// method is the Method of an action on these files.
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

// refusal is beneath.Refusal for a request for a file that code would see. It says so if the file is withheld.
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
	return fault.Wrap(err, space.ErrWithheld.Kind, space.ErrWithheld.Code, "%+q was brought in by a person and is withheld from code%s", p,
		rule).
		With("Ask a person for the one value that is needed, as a variable of the space's environment, or make a file of your own from a " +
			"template.")
}

// KeepAside implements space.Store.
func (s *Spaces) KeepAside(ctx context.Context, sp id.Space, uid int, limits space.Limits, w policy.Withhold, other bool) (space.Swept,
	error) {
	f, err := s.files(sp, uid, limits)
	if err != nil {
		return space.Swept{}, err
	}
	f.tree.Lock()
	defer f.tree.Unlock()
	kept, err := f.past.Kept(ctx)
	if err != nil {
		return space.Swept{}, err
	}
	return f.sweepUnder(ctx, w, kept, other)
}

// sweepUnder sweeps the view under a policy, from which on snapshots are suspect. Where it withholds other files than before, the
// interpreter contexts end.
func (f *Files) sweepUnder(ctx context.Context, w policy.Withhold, kept []space.Snapshot, other bool) (space.Swept, error) {
	home := f.at.home
	rules, err := readRules(home)
	if err != nil {
		return space.Swept{}, err
	}
	if w.IsZero() {
		if rules.IsZero() {
			return space.Swept{}, nil
		}
		rules.Withhold = w // withheld files stay aside
		return space.Swept{}, writeRules(home, rules)
	}
	rules.Withhold, rules.Sweeping, rules.Contexts = w, true, other || rules.Contexts
	if other {
		rules.Spared = nil
	}
	for _, s := range kept {
		if slices.Contains(rules.Suspect, s.Root) {
			continue
		}
		rules.Suspect = append(rules.Suspect, s.Root)
		if !other {
			rules.Spared = append(rules.Spared, s.Root)
		}
	}
	found, err := f.matching(ctx, rules) // if an entry is unreadable, nothing is changed
	if err != nil {
		return space.Swept{}, err
	}
	if err := errors.Join(makeAside(home, w), writeRules(home, rules)); err != nil {
		return space.Swept{}, err
	}
	f.at.sweep(true)
	return f.move(ctx, rules, found)
}

// sweep moves the files that the rules withhold out of the view, and records that this is done. No code runs meanwhile.
func (f *Files) sweep(ctx context.Context, rules heldRules) (space.Swept, error) {
	ctx = context.WithoutCancel(ctx)
	found, err := f.matching(ctx, rules)
	if err != nil {
		return space.Swept{}, err
	}
	return f.move(ctx, rules, found)
}

// move is the part of sweep that changes something.
func (f *Files) move(ctx context.Context, rules heldRules, found []match) (swept space.Swept, err error) {
	ctx = context.WithoutCancel(ctx)
	root, err := f.at.open(filesFolder)
	if err != nil {
		return swept, err
	}
	defer root.Close()
	aside := f.aside(rules.Withhold)
	to, err := f.at.open(withheldFiles)
	if err != nil {
		return swept, err
	}
	defer to.Close()
	staging, err := f.at.open(withheldStaging)
	if err != nil {
		return swept, err
	}
	defer staging.Close()
	for i, one := range slices.Backward(found) { // what lies in a folder goes before it
		last := i == 0 || path.Dir(found[i-1].path) != path.Dir(one.path)
		file := one.st.Mode&beneath.TypeBits == beneath.TypeFile
		if file && !rules.holds(one.path) && rules.ends(one) {
			if err := end(root, one, last); err != nil {
				return swept, beneath.Refusal(err, one.path)
			}
			swept.Contexts++
			continue
		}
		if err := aside.moveEntry(ctx, root, to, staging, one, last); err != nil {
			return swept, beneath.Refusal(err, one.path)
		}
		if file {
			swept.Withheld = append(swept.Withheld, one.path)
			if !rules.holds(one.path) {
				rules.Also = append(rules.Also, one.path)
			}
		}
	}
	f.past.Disturb()
	f.forget()
	rules.Sweeping, rules.Contexts = false, false
	if err := writeRules(f.at.home, rules); err != nil {
		return swept, err
	}
	f.at.sweep(false)
	slices.Sort(swept.Withheld)
	return swept, nil
}

// ends reports whether an entry is an interpreter context that ends, or a link in whose place the folder of contexts would be. They are
// not moved aside, for they are memory and no files that somebody brought. On some hosts capital letters name the same file.
func (r heldRules) ends(one match) bool {
	if !r.Contexts {
		return false
	}
	name := strings.ToLower(one.path)
	switch one.st.Mode & beneath.TypeBits {
	case beneath.TypeFile:
		_, ok := space.ContextOf(space.Entry{Path: strings.TrimSuffix(name, space.ContextUnfinished), Type: "file"})
		return ok
	case beneath.TypeLink:
		return name == space.ContextFolder || name == path.Dir(space.ContextFolder)
	}
	return false
}

// end removes a file of an interpreter context. After the last of a folder the folder is made durable.
func end(view *beneath.Folder, one match, last bool) error {
	folder, name := beneath.Split(one.path)
	dir, err := beneath.Dir(view, folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := beneath.Unlink(dir, name); err != nil || !last {
		return err
	}
	return beneath.SyncDir(dir)
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
		return beneath.WalkAll(ctx, root, ".", beneath.MaxDepth, snapshots.MaxEntries, func(_ *beneath.Folder, rel, _ string,
			st beneath.Stat) error {
			visit(rel, st)
			return nil
		})
	}
	var found []match
	err = see(func(rel string, st beneath.Stat) {
		held := rules.holds(rel)
		if !held && !rules.ends(match{rel, st}) {
			return
		}
		found = append(found, match{rel, st})
		if held && st.Nlink > 1 && st.Mode&beneath.TypeBits == beneath.TypeFile {
			inodes[st.Ino] = true
		}
	})
	if err == nil && len(inodes) > 0 { // another look for their other names
		found = nil
		err = see(func(rel string, st beneath.Stat) {
			if rules.holds(rel) || rules.ends(match{rel, st}) || inodes[st.Ino] && st.Mode&beneath.TypeBits == beneath.TypeFile {
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

// moveEntry moves one entry of the view, by copying it: the two may lie on different file systems. A withheld file that has the path
// already keeps it, and the new one gets a number behind its name. After the last of a folder the folder is made durable.
func (f *Files) moveEntry(ctx context.Context, view, to, staging *beneath.Folder, one match, last bool) error {
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
	default: // the target of a link is judged by its own name
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
	rules.Sweeping, rules.Contexts = true, !slices.Contains(rules.Spared, to)
	if err := writeRules(f.at.home, rules); err != nil {
		return space.Snapshot{}, space.Snapshot{}, err
	}
	f.at.sweep(true)
	from, reached, err := f.past.Rewind(ctx, to)
	swept, failed := f.sweep(ctx, rules)
	if err = errors.Join(err, failed); err != nil || len(swept.Withheld)+swept.Contexts == 0 {
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
