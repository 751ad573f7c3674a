// Package snapshots keeps earlier states of a space's files, by content hash, and restores them.
package snapshots

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/freespace"
	"agentbox/internal/kernel/vault"
)

// The bounds of the snapshots of one space.
const (
	// MaxKept is how many snapshots are kept; of more, the oldest go.
	MaxKept = 1_000
	// keptAfter is how many are left when some go, so that it is not due again at once.
	keptAfter = 900
	// Share is how many times its disk limit the snapshots of a space may take; of more, the oldest go.
	Share = 2
)

// The files beside the packs.
const (
	keptFile      = "kept"      // a line for each snapshot, the oldest first
	rewindingFile = "rewinding" // the snapshot to which the files are on their way
)

// Folders are where things of a space lie: all on one file system, and only Files in the reach of its code.
type Folders struct {
	Files   string
	Staging string
	Kept    string // packs and lists
	Trash   string // folders that were moved away; "" is a folder in Kept
}

// Past holds the earlier states of one space's files. Any goroutine may call every method; calls wait for each other.
type Past struct {
	folders Folders
	uid     int
	disk    int64 // limit of the space's files, 0 for none
	keys    vault.Keys
	entropy io.Reader

	mu     sync.Mutex
	closed bool
	packs  *packs // nil until it is needed
	kept   []space.Snapshot
	now    *node  // the files as they were when they were last looked at
	listed int64  // lines in the list on disk
	watch  *watch // of the folders in now, nil for none: then code may have changed any of them
	looked int    // entries that the last look has looked at

	dirt dirt
}

// dirt is the set of folders that may have changed since the last snapshot. Nothing else is read again: Disturb is called before code runs,
// and Touch names each write from outside.
type dirt struct {
	mu      sync.Mutex
	all     bool
	blind   bool            // code may have changed files that it had opened before the last scan
	folders map[string]bool // and those above them
}

// Disturb says that code is about to run among the files, so the next scan must read all of them.
func (p *Past) Disturb() {
	p.dirt.mu.Lock()
	defer p.dirt.mu.Unlock()
	p.dirt.all = true
}

// Distrust says that code runs among the files, and may have mapped some of them: writes through a mapping leave no note. All files must be
// looked at again, whatever the watch of the folders says.
func (p *Past) Distrust() {
	p.dirt.mu.Lock()
	defer p.dirt.mu.Unlock()
	p.dirt.all, p.dirt.blind = true, true
}

// Touch says that something in a folder is about to change.
func (p *Past) Touch(rel string) {
	p.dirt.mu.Lock()
	defer p.dirt.mu.Unlock()
	if p.dirt.folders == nil {
		p.dirt.folders = map[string]bool{}
	}
	mark(p.dirt.folders, rel)
}

// mark marks a folder and those above it.
func mark(folders map[string]bool, rel string) {
	for {
		folders[rel] = true
		if rel == "." {
			return
		}
		rel, _ = beneath.Split(rel)
	}
}

// take returns the folders to read again, whether code has run, and whether it may have left no note. It marks them as read.
func (d *dirt) take() (folders map[string]bool, all, blind bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, blind, folders = d.all, d.blind, d.folders
	d.all, d.blind, d.folders = false, false, nil
	if folders == nil {
		folders = map[string]bool{}
	}
	return folders, all, blind
}

// due returns the folders that must be scanned, nil for all of them.
func (p *Past) due() map[string]bool {
	folders, all, blind := p.dirt.take()
	if !all {
		return folders
	}
	if blind {
		p.unwatch()
	}
	if p.now == nil || p.watch == nil {
		return nil
	}
	touched, ok := p.watch.touched()
	if !ok {
		p.unwatch()
		return nil
	}
	maps.Copy(folders, touched)
	return folders
}

// unwatch ends the watch. From then on, each scan after code has run reads all files.
func (p *Past) unwatch() {
	if p.watch != nil {
		p.watch.close()
		p.watch = nil
	}
}

// New returns the past of a space. It opens nothing yet.
func New(f Folders, uid int, disk int64, keys vault.Keys, entropy io.Reader) *Past {
	return &Past{folders: f, uid: uid, disk: disk, keys: keys, entropy: entropy}
}

// load reads the kept snapshots, and finishes a rewind that an earlier daemon had decided and prepared but not finished.
func (p *Past) load(ctx context.Context) error {
	if p.closed {
		return fault.New(fault.NotFound, "space_files_missing", "the space was removed")
	}
	if p.packs != nil {
		return nil
	}
	if err := os.Mkdir(p.folders.Kept, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return refusal(err)
	}
	packs, err := openPacks(ctx, p.folders.Kept, p.keys, false)
	if err != nil {
		return refusal(err)
	}
	p.packs, p.now = packs, nil
	p.unwatch()
	if err := p.readKept(); err != nil {
		p.packs = nil
		return refusal(err)
	}
	if err := p.rewinding().settle(ctx); err != nil {
		p.packs = nil
		return err
	}
	return nil
}

// readKept reads the list. A line that was not finished, or whose content a power cut took, does not count.
func (p *Past) readKept() error {
	p.kept, p.listed = nil, 0
	file, err := os.Open(filepath.Join(p.folders.Kept, keptFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		p.listed++
		var s space.Snapshot
		var root string
		if n, err := fmt.Sscanf(lines.Text(), "%s %d %d %d .", &root, &s.Files, &s.Bytes, &s.Omitted); err != nil || n != 4 {
			continue
		}
		if s.Root, err = event.ParseDigest(root); err == nil && p.packs.has(s.Root) {
			p.place(s)
		}
	}
	whole := p.packs.whole(p.kept)
	if len(whole) == len(p.kept) {
		return nil
	}
	p.kept = whole
	if p.packs.looks {
		return nil
	}
	return p.writeKept()
}

// place puts a snapshot at the end of those that are kept.
func (p *Past) place(s space.Snapshot) {
	p.kept = slices.DeleteFunc(p.kept, func(k space.Snapshot) bool { return k.Root == s.Root })
	p.kept = append(p.kept, s)
}

// note keeps a snapshot and writes that down.
func (p *Past) note(s space.Snapshot) error {
	if n := len(p.kept); n > 0 && p.kept[n-1].Root == s.Root {
		p.kept[n-1] = s
		return nil
	}
	p.place(s)
	if p.listed++; p.listed > 4*MaxKept {
		return p.writeKept()
	}
	file, err := os.OpenFile(filepath.Join(p.folders.Kept, keptFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, line(s))
	return errors.Join(err, file.Close())
}

func line(s space.Snapshot) string {
	return fmt.Sprintf("%s %d %d %d .\n", s.Root, s.Files, s.Bytes, s.Omitted)
}

// writeKept writes the list anew.
func (p *Past) writeKept() error {
	var b strings.Builder
	for _, s := range p.kept {
		b.WriteString(line(s))
	}
	p.listed = int64(len(p.kept))
	return p.durably(keptFile, b.String())
}

// durably replaces a file in one step that no power cut undoes.
func (p *Past) durably(name, text string) error {
	path := filepath.Join(p.folders.Kept, name)
	file, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	return beneath.SyncPath(p.folders.Kept)
}

// Keep records the present files and returns their snapshot. The same files always have the same hash.
func (p *Past) Keep(ctx context.Context) (space.Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return space.Snapshot{}, err
	}
	defer p.packs.rest()
	return p.keep(ctx)
}

func (p *Past) keep(ctx context.Context) (space.Snapshot, error) {
	if err := p.look(ctx, nil, nil); err != nil {
		return space.Snapshot{}, err
	}
	s := p.now.snapshot()
	if err := p.note(s); err != nil {
		return s, refusal(err)
	}
	return s, refusal(p.gather())
}

// look brings p.now up to date and stores what is new; with only set it looks at no other folders. Known says what was just written, by
// inode.
func (p *Past) look(ctx context.Context, only map[string]bool, known map[uint64]event.Digest) error {
	if only == nil {
		only = p.due()
	}
	err := p.lookAt(ctx, only, known)
	if err != nil {
		p.unwatch()
		p.Disturb() // nobody knows how much of it was seen
	}
	return err
}

func (p *Past) lookAt(ctx context.Context, only map[string]bool, known map[uint64]event.Digest) error {
	root, err := beneath.Root(p.folders.Files)
	if err != nil {
		return err
	}
	defer root.Close()
	now, err := p.tick()
	if err != nil {
		return refusal(err)
	}
	if p.watch != nil && !p.watch.of(root) {
		p.unwatch()
		only = nil
	}
	if only == nil {
		p.unwatch()
		if p.now != nil && p.now.sum.entries >= watchFrom {
			p.watch = newWatch(root)
		}
	}
	w := p.packs.writer(p.bound(1))
	s := &scan{ctx: ctx, root: root, uid: uint32(p.owner()), w: w, now: now, bytes: p.bound(1), left: MaxEntries, only: only, known: known}
	if only == nil {
		s.watch = p.watch
	}
	n, err := s.folder(root, ".", ".", beneath.Stat{Mode: beneath.FolderMode}, 1, p.now)
	if err == nil {
		err = w.done()
	}
	if err != nil {
		if errors.Is(err, errLimit) {
			err = tooLarge("its content and its folders have more than %d bytes", p.bound(1))
		}
		return refusal(errors.Join(err, w.drop()))
	}
	p.now, p.looked = n, s.looked
	if p.watch == nil || !s.linked && (only != nil || s.watch != nil) {
		return nil
	}
	// A file of two names is changed by either, and the watch tells only of one.
	p.unwatch()
	if only != nil {
		return p.lookAt(ctx, nil, known)
	}
	return nil
}

// bound returns so many times the disk limit.
func (p *Past) bound(times int64) int64 {
	if p.disk <= 0 || p.disk > 1<<50 {
		return 1 << 50
	}
	return times * p.disk
}

// tick returns the time of the file system's clock, which the times of changes use.
func (p *Past) tick() (int64, error) {
	now, err := beneath.Tick(p.folders.Kept)
	return now.Nano(), err
}

// Kept returns the snapshots that are kept, the oldest first.
func (p *Past) Kept(ctx context.Context) ([]space.Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	defer p.packs.rest()
	return slices.Clone(p.kept), nil
}

// Usage returns how many bytes the snapshots take on disk.
func (p *Past) Usage(ctx context.Context) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return 0, err
	}
	defer p.packs.rest()
	return p.packs.bytes, nil
}

// find returns a snapshot that is kept.
func (p *Past) find(root event.Digest) (space.Snapshot, error) {
	i := slices.IndexFunc(p.kept, func(s space.Snapshot) bool { return s.Root == root })
	if i < 0 {
		return space.Snapshot{}, fault.New(fault.NotFound, space.ErrSnapshotNotFound.Code,
			"the space keeps no snapshot %s; it keeps the last %d, and of those as many as fit into %d bytes", root, MaxKept, p.bound(Share)).
			With("agentbox space snapshots lists those that are kept")
	}
	return p.kept[i], nil
}

// Diff returns what differs between two snapshots that are kept, at most limit entries, in the order of the paths of each folder.
func (p *Past) Diff(ctx context.Context, from, to event.Digest, limit int, name func(string) string) ([]space.Difference, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	defer p.packs.rest()
	for _, root := range []event.Digest{from, to} {
		if _, err := p.find(root); err != nil {
			return nil, err
		}
	}
	c := comparison{packs: p.packs, limit: limit, name: name, found: []space.Difference{}}
	if err := c.folders(".", from, to); err != nil {
		return nil, refusal(err)
	}
	return c.found, nil
}

// Sync makes the snapshots durable and removes the folders that rewinds have moved away. A snapshot at the same time does not wait.
func (p *Past) Sync(ctx context.Context) error {
	p.mu.Lock()
	if p.packs == nil {
		p.mu.Unlock()
		return nil
	}
	fresh := p.packs.unsynced()
	p.mu.Unlock()
	if err := syncAll(fresh); err != nil {
		return refusal(err)
	}
	if len(fresh) > 0 {
		p.mu.Lock()
		var err error
		if p.packs != nil {
			err = p.packs.synced(fresh)
		}
		p.mu.Unlock()
		if err != nil {
			return refusal(err)
		}
	}
	return p.clear(ctx)
}

// clear empties the trash. It is opened before the lock goes, for its path may mean something else when the past is closed.
func (p *Past) clear(ctx context.Context) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	trash, err := beneath.At(p.trash())
	p.mu.Unlock()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return refusal(err)
	}
	defer trash.Close()
	return beneath.EmptyDir(ctx, trash, p.entropy)
}

// owner is the user that owns the files.
func (p *Past) owner() int {
	if p.uid == 0 {
		return os.Geteuid()
	}
	return p.uid
}

func (p *Past) trash() string {
	if p.folders.Trash != "" {
		return p.folders.Trash
	}
	return filepath.Join(p.folders.Kept, "trash")
}

// Close waits for the users of the past, and refuses later ones.
func (p *Past) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.packs, p.now = true, nil, nil
	p.unwatch()
}

// refusal turns a file system's error into a fault.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return freespace.Refused(err, "; the files of the space stay as they are")
	}
	if errors.Is(err, fs.ErrNotExist) { // somebody else removed them: a daemon keeps its open files
		return fault.Wrap(err, space.ErrSnapshotDamaged.Kind, space.ErrSnapshotDamaged.Code, "the snapshots of the space are gone from the disk").
			With("put the folder of the space back from a backup and start the daemon again; agentbox audit verify says what is missing")
	}
	return fault.Wrap(err, fault.Internal, "snapshot_error", "the snapshots of the space cannot be accessed")
}
