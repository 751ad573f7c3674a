package sqlite_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/ncruces/go-sqlite3/vfs"

	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
)

// slowDisk is the operating system's file layer; while it is held, a sync of the write-ahead log says that it has come and waits for leave.
type slowDisk struct {
	vfs.VFSFilename
	held  chan bool // one value: whether syncs wait
	comes chan struct{}
	leave chan error
}

func (d *slowDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, out, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil || flags&vfs.OPEN_WAL == 0 {
		return file, out, err
	}
	return &slowFile{file, d}, out, nil
}

type slowFile struct {
	vfs.File
	disk *slowDisk
}

func (f *slowFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *slowFile) Sync(flags vfs.SyncFlag) error {
	held := <-f.disk.held
	f.disk.held <- held
	if held {
		f.disk.comes <- struct{}{}
		if err := <-f.disk.leave; err != nil {
			return err
		}
	}
	return f.File.Sync(flags)
}

func (d *slowDisk) hold(held bool) {
	<-d.held
	d.held <- held
}

// openSlow opens a log of notes with one event on a disk that is then held.
func openSlow(t *testing.T) (*sqlite.Journal, *slowDisk) {
	t.Helper()
	d := &slowDisk{VFSFilename: vfs.Find("").(vfs.VFSFilename), held: make(chan bool, 1), comes: make(chan struct{}, 8),
		leave: make(chan error)}
	d.held <- false
	vfs.Register("slow-"+t.Name(), d)
	t.Cleanup(func() { vfs.Unregister("slow-" + t.Name()) })
	log, _ := openNotes(t, "slow-"+t.Name())
	if _, err := log.Append(t.Context(), note("first", "0")); err != nil {
		t.Fatal(err)
	}
	d.hold(true)
	return log, d
}

// started runs a call beside the test and gives its error.
func started(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// silent fails if any of the calls has ended.
func silent(t *testing.T, when string, calls map[string]<-chan error) {
	t.Helper()
	synctest.Wait()
	for name, done := range calls {
		select {
		case err := <-done:
			t.Errorf("%s: %s ended (%v) before the disk had what it rests on", when, name, err)
		default:
		}
	}
}

// Until the disk has a commit nobody hears of it: the append is not answered, the head does not move, and who reads what it changed waits.
// Meanwhile the next commit is written. One sync that comes after both answers for both.
func TestNobodyHearsOfWhatTheDiskDoesNotHave(t *testing.T) {
	synctest.Test(t, nobodyHears)
}

func nobodyHears(t *testing.T) {
	log, disk := openSlow(t)
	appendOne := func(key string) <-chan error {
		return started(func() error {
			_, err := log.Append(t.Context(), note(key, "1"))
			return err
		})
	}
	calls := map[string]<-chan error{"the append": appendOne("second")}
	<-disk.comes
	calls["a read of the document"] = started(func() error {
		if _, err := log.Document(t.Context(), journaltest.Workspace, "notes", "second"); !errors.Is(err, projection.ErrNotFound) {
			return fmt.Errorf("asked before the disk had the document: %w", err)
		}
		return nil
	})
	calls["a read of events"] = started(func() error {
		_, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: 1, Limit: 9})
		return err
	})
	calls["the wait for the head"] = started(func() error { return log.Wait(t.Context(), journaltest.Workspace, 1) })
	calls["the next append"] = appendOne("third")
	silent(t, "one sync", calls)
	if head, err := log.Head(t.Context(), journaltest.Workspace); head != 1 || err != nil {
		t.Errorf("the head is %d, %v", head, err)
	}
	disk.hold(false)
	disk.leave <- nil
	for name, done := range calls {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if head, err := log.Head(t.Context(), journaltest.Workspace); head != 3 || err != nil {
		t.Errorf("the head is %d, %v", head, err)
	}
}

// A sync that fails after its commit could be seen shuts the log: the append has failed, and who has read what it wrote gets no answer.
func TestSyncFailsBehindReaders(t *testing.T) {
	synctest.Test(t, syncFails)
}

func syncFails(t *testing.T) {
	log, disk := openSlow(t)
	appended := started(func() error {
		_, err := log.Append(t.Context(), note("second", "1"))
		return err
	})
	<-disk.comes
	read := started(func() error {
		_, err := log.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: 1, Limit: 9})
		return err
	})
	synctest.Wait()
	disk.hold(false)
	disk.leave <- errors.New("the disk is gone")
	for name, done := range map[string]<-chan error{"the append": appended, "the read": read} {
		if err := <-done; !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, journal.ErrClosed)
		}
	}
	if head, err := log.Head(t.Context(), journaltest.Workspace); head != 1 || err != nil {
		t.Errorf("the head is %d, %v", head, err)
	}
}
