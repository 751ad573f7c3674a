package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/host"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// directoryVersion is the form of a data directory; one of a later form is refused.
const directoryVersion = 1

// storePostgres is a note's word for a log in a database of PostgreSQL.
const storePostgres = "postgres"

// maxNote is the most that a small file of the data directory may have.
const maxNote = 1 << 20

// note is directory.json: a data directory's statement about its log. With it the daemon recognises another log, or an older state of its
// log. The daemon writes it shortly after the log and never before, so that it never claims too much.
type note struct {
	Version int                     `json:"version"`
	Store   string                  `json:"store,omitempty"`       // where the log lies: postgres, or "" for log.db beside it
	First   id.Event                `json:"first_event,omitempty"` // of the default workspace: names the log
	Heads   map[id.Workspace]uint64 `json:"heads,omitempty"`       // places that the log has reached
	Signed  []id.Workspace          `json:"signed,omitempty"`      // those of which there is a checkpoint
}

// directory watches over the files of a data directory: before the log is opened, once it is, and while the daemon runs.
type directory struct {
	path   string
	proofs string // the folder of the checkpoints, which other daemons may share
	store  string // as in note
	note   note
	used   bool                   // something is there that belongs to a log
	files  map[string]os.FileInfo // that have to stay in their places while the daemon runs
}

// lookAt refuses a data directory that would be broken by going on with it. It changes nothing.
func lookAt(c Config) (*directory, error) {
	path := c.DataDir
	d := &directory{path: path, proofs: c.shared(proofsDir)}
	if c.inDatabase() {
		d.store = storePostgres
	}
	sizes := map[string]int64{}
	for _, name := range []string{datadir.LockFile, logFile, logFile + "-wal", logFile + "-shm", logFile + ".lock", logFile + ".lock-journal",
		keyFile, stateFile, noteFile} {
		info, err := datadir.Regular(filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		if info != nil {
			sizes[name] = info.Size()
		}
	}
	if err := d.read(); err != nil {
		return nil, err
	}
	left := ""
	for _, name := range []string{noteFile, keyFile} { // log.db-wal says nothing: one is left where the very first start was cut short
		if sizes[name] > 0 {
			left = name
		}
	}
	for _, pattern := range []string{filepath.Join(framesDir, "*"), filepath.Join(blobsDir, "*", "*"), filepath.Join(spacesDir, "spc_*")} {
		found, err := anything(path, strings.Split(pattern, string(filepath.Separator)))
		if err != nil {
			return nil, err
		}
		if found {
			left = filepath.Dir(pattern)
		}
	}
	d.used = left != ""
	switch {
	case d.store == "" && d.note.Store != "":
		return nil, fault.New(fault.Conflict, "store_changed", "the log of %s lies in a database",
			path).With("name it with --store or AGENTBOX_STORE")
	case d.store != "" && (sizes[logFile] > 0 || d.note.First != "" && d.note.Store == ""):
		return nil, fault.New(fault.Conflict, "store_changed", "the log of %s lies in it, and not in a database", path).
			With("start it without --store; to go on in a database, export its workspaces and import them into another data directory with --store")
	case d.store == "" && d.used && sizes[logFile] == 0:
		return nil, d.missing(left)
	}
	return d, nil
}

// anything reports whether something lies below a folder whose path matches the parts of a pattern. It stops at the first: there may be
// very many.
func anything(dir string, parts []string) (bool, error) {
	if len(parts) == 0 {
		return true, nil
	}
	if !strings.ContainsAny(parts[0], "*") {
		return anything(filepath.Join(dir, parts[0]), parts[1:])
	}
	folder, err := os.Open(dir)
	if err != nil {
		return false, nil //nolint:nilerr // what is not there, or cannot be read, is not found, as by filepath.Glob
	}
	defer func() { _ = folder.Close() }() // it was only read
	for {
		names, err := folder.Readdirnames(64)
		for _, name := range names {
			if matches, err := filepath.Match(parts[0], name); err != nil || !matches {
				if err != nil {
					return false, err
				}
				continue
			}
			if found, err := anything(filepath.Join(dir, name), parts[1:]); found || err != nil {
				return found, err
			}
		}
		if err != nil {
			return false, nil //nolint:nilerr // the end of the folder, or what cannot be read
		}
	}
}

// missing refuses to begin a new log beside the files of another one. The start removes files that the log does not know, and that would be
// all of them.
func (d *directory) missing(left string) error {
	return fault.New(fault.Unavailable, "log_missing", "%s is missing or empty, but what belongs to it is there (%s)", filepath.Join(d.path,
		logFile), left).
		With("put log.db and log.db-wal back from where they are now or from a backup, or name another data directory; to give up what is " +
			"here, move it away as a whole")
}

// read reads the note. One that a power cut has emptied says nothing.
func (d *directory) read() error {
	path := filepath.Join(d.path, noteFile)
	raw, err := readSmall(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(raw) == 0 {
		return nil
	}
	if errors.Is(err, os.ErrPermission) {
		return fault.Wrap(err, fault.Denied, "data_forbidden", "the data directory %s is not yours to read", d.path).
			With("run this as the user who runs the daemon, or name another directory with --data")
	}
	if err == nil {
		err = json.Unmarshal(raw, &d.note)
	}
	if err != nil || d.note.Version < 1 {
		return fault.Wrap(err, fault.Invalid, "data_invalid", "%s cannot be read, so it is unknown whether the log beside it is complete", path).
			With("put it back; where the log is known to be whole, move it away and it is made anew")
	}
	if d.note.Version > directoryVersion {
		return fault.New(fault.Conflict, "data_too_new", "a newer version of Agentbox wrote %s (its form is %d, this program's %d)", d.path,
			d.note.Version, directoryVersion).
			With("use that version, or name another directory with --data")
	}
	return nil
}

// unsealed says why the keys that are here do not open the log: it may be another one than the keys, and everything else here, belong to.
func (d *directory) unsealed(ctx context.Context, c Config, err error) error {
	look, failed := lookAtStore(ctx, c)
	if failed != nil {
		return err
	}
	if other := d.hold(ctx, look, look); other != nil {
		err = other
	}
	return errors.Join(err, look.Close())
}

// unopened says why the log could not be opened, where the driver only knows what the disk answered.
func (d *directory) unopened(err error) error {
	switch {
	case d.store != "" && errors.Is(err, postgres.ErrEmpty):
		return d.rolledBack("the database holds no log, and it had reached event %d", d.note.Heads[id.DefaultWorkspace])
	case d.store != "":
		if f, ok := errors.AsType[*fault.Error](err); ok && errors.Is(f, journal.ErrClosed) && errors.Unwrap(f) != nil {
			// The start tries it once; only a daemon that works goes on trying.
			return fault.Wrap(errors.Unwrap(f), fault.Unavailable, "log_unreadable", "the database of the log cannot be opened").
				With("see that PostgreSQL runs, has room, and lets this daemon in; then start it again")
		}
		return err
	case errors.Is(err, sqlite.ErrEmpty):
		return d.rolledBack("%s holds no events, and had reached %d", filepath.Join(d.path, logFile), d.note.Heads[id.DefaultWorkspace])
	case fault.CodeOf(err) != "" && fault.KindOf(err) != fault.Internal:
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "log_unreadable", "the log in %s cannot be opened", d.path).
		With("see that its disk is well, has room and can be written; if log.db is damaged, put it and log.db-wal back from a backup")
}

// hold compares the log, now open, with what the directory says of it, and begins to watch its files.
func (d *directory) hold(ctx context.Context, log journal.Journal, docs projection.Reader) error {
	first, err := log.Read(ctx, journal.Query{Workspace: id.DefaultWorkspace, Limit: 1})
	if err != nil {
		return err
	}
	if d.note.First != "" && len(first) > 0 && first[0].ID != d.note.First && d.store != "" {
		return fault.New(fault.Conflict, "log_replaced", "the database holds another log than the one to which %s belongs", d.path).
			With("name the right one with --store, or another data directory with --data")
	}
	if d.note.First != "" && len(first) > 0 && first[0].ID != d.note.First {
		return fault.New(fault.Conflict, "log_replaced", "%s is another log than the one to which this directory belongs", filepath.Join(d.path,
			logFile)).
			With("put the right one back; to go on with this one, move " + filepath.Join(d.path, noteFile) + " away")
	}
	for ws, head := range d.note.Heads {
		now, err := log.Head(ctx, ws)
		if err != nil {
			return err
		}
		if now < head {
			return d.rolledBack("the log ends at event %d of %s, and had reached %d", now, ws, head)
		}
	}
	if err := d.strangers(ctx, log, docs); err != nil {
		return err
	}
	d.files = map[string]os.FileInfo{}
	watched := []string{"", datadir.LockFile}
	if d.store == "" {
		watched = append(watched, logFile, logFile+"-wal")
	}
	for _, name := range watched {
		info, err := os.Lstat(filepath.Join(d.path, name))
		if err != nil && name != datadir.LockFile {
			return datadir.Unwritable(err, d.path)
		}
		if err == nil {
			d.files[name] = info
		}
	}
	return nil
}

// strangers refuses folders of spaces that the log does not know. The daemon records a space before it makes the folder, so the log has
// lost events. Without a note, as after a restore of a backup, the folders are the rest of a crash, and the daemon removes them.
func (d *directory) strangers(ctx context.Context, log journal.Journal, docs projection.Reader) error {
	if d.note.First == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(d.path, spacesDir, "spc_*"))
	if err != nil {
		return err
	}
	workspaces, err := log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, dir := range found {
		known := false
		for _, ws := range workspaces {
			_, err := docs.Document(ctx, ws, space.Projection, filepath.Base(dir))
			if err != nil && fault.KindOf(err) != fault.NotFound {
				return err
			}
			known = known || err == nil
		}
		if !known {
			return d.rolledBack("the files of space %s are there, and the log does not know it: it has lost events", filepath.Base(dir))
		}
	}
	return nil
}

// rolledBack refuses a log that has lost events.
func (d *directory) rolledBack(format string, args ...any) error {
	if d.store != "" {
		return fault.New(fault.Conflict, "log_rolled_back", format, args...).
			With("put the database back as it was last; to go on with what is there, and without what was recorded since, move " +
				filepath.Join(d.path, noteFile) + " away")
	}
	return fault.New(fault.Conflict, "log_rolled_back", format, args...).
		With("put log.db and log.db-wal back, both of the same time; to go on with what is there, and without what was recorded since, move " +
			filepath.Join(d.path, noteFile) + " away")
}

// step finds out whether the files of the log are still in their places, and writes down how far it has come.
func (d *directory) step(ctx context.Context, log journal.Journal) error {
	for name, was := range d.files {
		now, err := os.Lstat(filepath.Join(d.path, name))
		if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(was, now) {
			return fault.New(fault.Unavailable, "log_moved",
				"%s was removed, moved or replaced while the daemon used it; it stops, because new records could be lost",
				filepath.Join(d.path, name)).With("put it back, then start the daemon again")
		}
	}
	n := note{Version: directoryVersion, Store: d.store, First: d.note.First, Heads: map[id.Workspace]uint64{}}
	if n.First == "" {
		first, err := log.Read(ctx, journal.Query{Workspace: id.DefaultWorkspace, Limit: 1})
		if err != nil || len(first) == 0 {
			return err
		}
		n.First = first[0].ID
	}
	workspaces, err := log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if n.Heads[ws], err = log.Head(ctx, ws); err != nil {
			return err
		}
		if d.signed(ws) {
			n.Signed = append(n.Signed, ws)
		}
	}
	if maps.Equal(n.Heads, d.note.Heads) && slices.Equal(n.Signed, d.note.Signed) {
		return nil
	}
	if err := d.write(noteFile, n); err != nil {
		return err
	}
	d.note = n
	return nil
}

// signed reports whether there is a checkpoint of a workspace.
func (d *directory) signed(ws id.Workspace) bool {
	_, err := os.Stat(filepath.Join(d.proofs, string(ws), "checkpoint"))
	return err == nil
}

// unsign removes the checkpoints that are gone from the note, because an operator gave them up. The rest stays, because the log may have
// lost events. A directory without a note gets none.
func (d *directory) unsign() error {
	if err := d.read(); err != nil || d.note.Version == 0 {
		return err
	}
	n := d.note
	n.Signed = slices.DeleteFunc(slices.Clone(n.Signed), func(ws id.Workspace) bool { return !d.signed(ws) })
	if len(n.Signed) == len(d.note.Signed) {
		return nil
	}
	if err := d.write(noteFile, n); err != nil {
		return err
	}
	d.note = n
	return nil
}

// write writes a small file in one step, so that nobody reads half of it.
func (d *directory) write(name string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return d.put(name, append(raw, '\n'))
}

func (d *directory) put(name string, raw []byte) error {
	temp := filepath.Join(d.path, name+".new")
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return datadir.Unwritable(err, d.path)
	}
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return datadir.Unwritable(err, d.path)
	}
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Close()); err != nil {
		return datadir.Unwritable(err, d.path)
	}
	if err := os.Rename(temp, filepath.Join(d.path, name)); err != nil {
		return datadir.Unwritable(err, d.path)
	}
	return nil
}

// readSmall reads an ordinary file of the data directory, and waits for nothing.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|host.NoFollow|host.Prompt, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxNote))
}
