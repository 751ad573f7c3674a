package sqlite_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
)

// faults is the operating system's file layer until it is armed; then one kind of call fails, from the nth on, as on a disk that is full
// or broken.
type faults struct {
	vfs.VFSFilename
	armed atomic.Bool
	left  atomic.Int64
	call  string // write or sync, of the write-ahead log, or open, of any file
	err   error
}

func (f *faults) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if err := f.strike("open"); err != nil {
		return nil, flags, err
	}
	file, out, err := f.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, out, err
	}
	return &faultyFile{File: file, faults: f, log: flags&vfs.OPEN_WAL != 0}, out, nil
}

func (f *faults) strike(call string) error {
	if f.armed.Load() && call == f.call && f.left.Add(-1) < 0 {
		return f.err
	}
	return nil
}

type faultyFile struct {
	vfs.File
	faults *faults
	log    bool
}

func (f *faultyFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if f.log {
		if err := f.faults.strike("write"); err != nil {
			return 0, err
		}
	}
	return f.File.WriteAt(p, off)
}

func (f *faultyFile) Sync(flags vfs.SyncFlag) error {
	if f.log {
		if err := f.faults.strike("sync"); err != nil {
			return err
		}
	}
	return f.File.Sync(flags)
}

// A disk that fills up or breaks shuts the log: every append that was acknowledged is there afterwards, and none was acknowledged that is
// not.
func TestDiskFails(t *testing.T) {
	for _, c := range []struct {
		call  string
		after int64
		err   error
	}{
		{"write", 0, sqlite3.FULL}, {"write", 1, sqlite3.FULL}, {"write", 7, sqlite3.IOERR_WRITE}, {"write", 60, sqlite3.FULL}, {"write", 233,
			sqlite3.IOERR_WRITE},
		{"sync", 0, sqlite3.IOERR_FSYNC}, {"sync", 1, sqlite3.IOERR_FSYNC}, {"sync", 9, sqlite3.IOERR_FSYNC},
	} {
		t.Run(fmt.Sprintf("%s %d %v", c.call, c.after, c.err), func(t *testing.T) {
			f := &faults{VFSFilename: vfs.Find("").(vfs.VFSFilename), call: c.call, err: c.err}
			f.left.Store(c.after)
			vfs.Register("faulty", f)
			defer vfs.Unregister("faulty")
			setup := journaltest.NewSetup(journaltest.Notes(1), journaltest.Rooms(1))
			path := filepath.Join(t.TempDir(), "log.db")
			options := sqlite.Options{Path: path, Definitions: setup.Definitions, Clock: setup.Clock, IDs: setup.IDs, Entropy: setup.Entropy,
				VFS: "faulty"}
			log, err := sqlite.Open(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			waiting := make(chan error, 1)
			go func() { waiting <- log.Wait(t.Context(), journaltest.Workspace, 1<<40) }()
			acknowledged := storm(t, log, func() { f.armed.Store(true) })
			if err := <-waiting; !errors.Is(err, journal.ErrClosed) {
				t.Errorf("who waits got %v, want %v", err, journal.ErrClosed)
			}
			if err := log.Rebuild(t.Context(), "notes"); !errors.Is(err, journal.ErrClosed) {
				t.Errorf("rebuild after the failure: %v, want %v", err, journal.ErrClosed)
			}
			if err := log.Mend(t.Context()); err == nil || log.Writable() == nil {
				t.Errorf("mended on a disk that does not work: %v", err)
			}
			f.armed.Store(false) // the disk works again, but what lies on it is not known
			if _, err := log.Append(t.Context(), journaltest.Batch(journaltest.Draft("late"))); !errors.Is(err, journal.ErrClosed) {
				t.Errorf("append after the failure: %v, want %v", err, journal.ErrClosed)
			}
			if err := log.Close(); err != nil {
				t.Error(err)
			}
			options.VFS = ""
			if log, err = sqlite.Open(t.Context(), options); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := log.Close(); err != nil {
					t.Error(err)
				}
			}()
			checkAll(t, log, acknowledged)
		})
	}
}

// A reader that cannot be opened, for the process has as many files open as it may, is refused for a moment; the log goes on.
func TestNothingCanBeOpened(t *testing.T) {
	for _, after := range []int64{0, 1} { // the database, its write-ahead log
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			f := &faults{VFSFilename: vfs.Find("").(vfs.VFSFilename), call: "open", err: sqlite3.CANTOPEN}
			f.left.Store(after)
			vfs.Register("starved", f)
			defer vfs.Unregister("starved")
			log, _ := openNotes(t, "starved")
			if _, err := log.Append(t.Context(), note("first", "0")); err != nil {
				t.Fatal(err)
			}
			f.armed.Store(true)
			query := journal.Query{Workspace: journaltest.Workspace}
			if _, err := log.Read(t.Context(), query); fault.KindOf(err) != fault.Unavailable || fault.CodeOf(err) != "log_not_opened" {
				t.Errorf("got %v, want log_not_opened", err)
			}
			if _, err := log.Append(t.Context(), note("second", "0")); err != nil {
				t.Errorf("append, for which nothing has to be opened: %v", err)
			}
			f.armed.Store(false)
			if events, err := log.Read(t.Context(), query); err != nil || len(events) != 2 {
				t.Errorf("got %d events, %v, want 2", len(events), err)
			}
		})
	}
}

// A log that a full disk has shut is opened again when there is room: all that was acknowledged is there, nothing else is, and it goes
// on. So it does each time, wherever in a commit the disk was full; where the disk forgot what it was told to keep, it does not.
func TestMend(t *testing.T) {
	f := &faults{VFSFilename: vfs.Find("").(vfs.VFSFilename), call: "write", err: sqlite3.FULL}
	vfs.Register("mended", f)
	defer vfs.Unregister("mended")
	setup := journaltest.NewSetup(journaltest.Notes(1), journaltest.Rooms(1))
	options := sqlite.Options{Path: filepath.Join(t.TempDir(), "log.db"), Definitions: setup.Definitions, Clock: setup.Clock, IDs: setup.IDs,
		Entropy: setup.Entropy, VFS: "mended"}
	log, err := sqlite.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[id.Event]uint64{}
	checked := func() {
		t.Helper()
		head, err := log.Head(t.Context(), journaltest.Workspace)
		if err != nil || head != uint64(len(acknowledged)) {
			t.Fatalf("the log ends at %d (%v), and %d events were acknowledged", head, err, len(acknowledged))
		}
		for from := uint64(1); from <= head; from += journal.MaxRead {
			events, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: from, Limit: journal.MaxRead})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if acknowledged[e.ID] != e.Seq {
					t.Fatalf("event %d was not acknowledged there", e.Seq)
				}
			}
		}
	}
	for round := range 12 {
		f.left.Store(int64(round * round))
		maps.Copy(acknowledged, storm(t, log, func() { f.armed.Store(true) }))
		if err := log.Mend(t.Context()); err == nil {
			t.Fatalf("round %d: mended on a full disk", round)
		}
		checked()
		f.armed.Store(false)
		waits := make(chan error, 1)
		if err := log.Mend(t.Context()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := log.Writable(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		checked()
		after := uint64(len(acknowledged))
		go func() { waits <- log.Wait(t.Context(), journaltest.Workspace, after) }()
		receipt, err := log.Append(t.Context(), journaltest.Batch(journaltest.InRoom(journaltest.Room, "after").About("note", "n1")))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		acknowledged[receipt.Events[0].ID] = receipt.Events[0].Seq
		if err := <-waits; err != nil {
			t.Errorf("round %d: who waits got %v", round, err)
		}
	}
	f.call, f.err = "sync", sqlite3.IOERR_FSYNC
	f.left.Store(3)
	maps.Copy(acknowledged, storm(t, log, func() { f.armed.Store(true) }))
	f.armed.Store(false)
	if err := log.Mend(t.Context()); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("mended what the disk may have forgotten: %v", err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := log.Mend(t.Context()); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("mended a log that was closed: %v", err)
	}
	options.VFS = ""
	if log, err = sqlite.Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	checkAll(t, log, acknowledged)
}

// storm lets 16 writers append until the log refuses, and returns what was acknowledged. The function midway is called when each has
// appended a little.
func storm(t *testing.T, log journal.Journal, midway func()) map[id.Event]uint64 {
	t.Helper()
	var mu sync.Mutex
	var wg, begun sync.WaitGroup
	acknowledged := map[id.Event]uint64{}
	begun.Add(16)
	for w := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				if i == 3 {
					begun.Done()
				}
				receipt, err := log.Append(t.Context(), journaltest.Batch(journaltest.InRoom(journaltest.Room, strings.Repeat("x",
					i%50*10)).About("note", fmt.Sprint("n", w%5))))
				if err != nil {
					if !errors.Is(err, journal.ErrClosed) {
						t.Errorf("append: %v, want %v", err, journal.ErrClosed)
					}
					return
				}
				mu.Lock()
				acknowledged[receipt.Events[0].ID] = receipt.Events[0].Seq
				mu.Unlock()
			}
		})
	}
	begun.Wait()
	midway()
	wg.Wait()
	return acknowledged
}

// checkAll holds a reopened log against what was acknowledged, its chains and its documents.
func checkAll(t *testing.T, log *sqlite.Journal, acknowledged map[id.Event]uint64) {
	t.Helper()
	for e, seq := range acknowledged {
		if got, err := log.Get(t.Context(), journaltest.Workspace, e); err != nil || got.Seq != seq {
			t.Fatalf("acknowledged event %s at %d: got %d, %v", e, seq, got.Seq, err)
		}
	}
	if err := journaltest.CheckChains(t.Context(), log, journaltest.Workspace); err != nil {
		t.Error(err)
	}
	before := journaltest.Documents(t, log, "notes", "rooms")
	for _, name := range []string{"notes", "rooms"} {
		if err := log.Rebuild(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if after := journaltest.Documents(t, log, "notes", "rooms"); after != before {
		t.Errorf("documents after a rebuild\n got %s\nwant %s", after, before)
	}
	if _, err := log.Append(t.Context(), event.Batch{Workspace: journaltest.Workspace,
		Drafts: []event.Draft{journaltest.Draft("on")}}); err != nil {
		t.Errorf("the log does not go on: %v", err)
	}
}
