package app_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/audit"
)

// TestABackupOfABusyDaemon keeps a data directory again and again while events are appended: each backup holds every event that was
// acknowledged before it began, its log proves itself, and it continues the checkpoint that was kept with it, which is never newer.
func TestABackupOfABusyDaemon(t *testing.T) {
	dir := t.TempDir()
	a := start(t, dir)
	origin := event.Origin{Principal: a.Owner}
	var acknowledged atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		stopped <- func() error {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return nil
				default:
				}
				receipt, err := a.Log.Append(t.Context(), event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{
					event.New("note.written", origin, id.DefaultWorkspace, "", map[string]string{"text": fmt.Sprint("note ", n)}),
				}})
				if err != nil {
					return err
				}
				acknowledged.Store(receipt.Events[0].Seq)
				if err := a.Signer.Step(t.Context()); err != nil {
					return err
				}
			}
		}()
	}()
	for n := range 5 {
		before := acknowledged.Load()
		file, to := filepath.Join(t.TempDir(), "b.tar.gz"), filepath.Join(t.TempDir(), "again")
		if _, err := app.Backup(t.Context(), app.Default(dir), file, false, nil); err != nil {
			t.Fatal(err)
		}
		_, audits, err := app.Restore(t.Context(), app.Default(to), file, filepath.Join(dir, "keys"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(audits) != 1 || audits[0].Log.Head < before || !audits[0].Log.OK || !audits[0].Documents.OK {
			t.Errorf("backup %d: got %+v, want at least %d events", n, audits, before)
		}
		if held := audits[0].Log.Held; before > 0 && (len(held) != 1 || !held[0].OK) {
			t.Errorf("backup %d: held against %+v", n, held)
		}
		if n < 4 {
			continue
		}
		close(stop)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		again := start(t, to) // and a daemon goes on with it
		if _, err := again.Log.Append(t.Context(), event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{
			event.New("note.written", event.Origin{Principal: again.Owner}, id.DefaultWorkspace, "", struct{}{}),
		}}); err != nil {
			t.Fatal(err)
		}
		report, err := audit.Verify(t.Context(), again.Log, id.DefaultWorkspace)
		if err != nil || !report.OK || report.Head <= audits[0].Log.Head {
			t.Errorf("after the restore: got %+v, %v", report, err)
		}
	}
}

// TestABackupNeedsALogAndARestoreAnEmptyPlace tries both where they cannot be done.
func TestABackupNeedsALogAndARestoreAnEmptyPlace(t *testing.T) {
	empty := t.TempDir()
	if _, err := app.Backup(t.Context(), app.Default(empty), filepath.Join(t.TempDir(), "b"), false,
		nil); fault.CodeOf(err) != "log_not_found" {
		t.Errorf("a backup of nothing: got %v", err)
	}
	dir := t.TempDir()
	a := start(t, dir)
	file := filepath.Join(dir, "inside.tar.gz") // in the directory itself: it does not hold itself
	if _, err := app.Backup(t.Context(), app.Default(dir), file, true, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := app.Restore(t.Context(), app.Default(dir), file, "", nil); fault.CodeOf(err) != "data_directory_in_use" {
		t.Errorf("a restore over a daemon: got %v", err)
	}
	sum, _, err := app.Restore(t.Context(), app.Default(empty), file, "", nil)
	if err != nil || !sum.Keys {
		t.Errorf("a restore into an empty folder: got %+v, %v", sum, err)
	}
	if _, err := a.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace}); err != nil {
		t.Error(err)
	}
}
