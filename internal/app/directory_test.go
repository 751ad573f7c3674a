package app_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/spaces"
)

func open(dir string) (*app.App, error) {
	c := app.Default(dir)
	c.Listen = "127.0.0.1:0"
	return app.Open(context.Background(), c, app.Clock{}, slog.New(slog.DiscardHandler))
}

// serve opens and serves a directory; the function ends the daemon and returns what it ended with.
func serve(t *testing.T, dir string) (*app.App, func() error) {
	t.Helper()
	a, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() { ended <- a.Run(ctx, func(app.State) { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	return a, func() error {
		stop()
		return <-ended
	}
}

// busy makes a space in it, and a run that waits for a person.
func busy(t *testing.T, a *app.App) {
	t.Helper()
	operates(t, a, `{"type":"createFile","path":"a","content":"kept"},{"type":"shell","command":"rm -rf a"}`)
}

// operates executes operations in a space of their own.
func operates(t *testing.T, a *app.App, operations string) {
	t.Helper()
	origin := event.Origin{Principal: a.Owner}
	s, err := a.Spaces.Creation.Create(t.Context(), origin, spaces.Request{Workspace: id.DefaultWorkspace})
	if err != nil {
		t.Fatal(err)
	}
	m, err := run.ParseMessage([]byte(`{"protocolVersion":"1.0","operations":[` + operations + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := a.Runs.Start(t.Context(), origin, runs.Request{Workspace: id.DefaultWorkspace, Space: s.ID, Message: m})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = a.Runs.History.Wait(t.Context(), id.DefaultWorkspace, doc.ID); err != nil {
		t.Fatal(err)
	}
}

// died returns a copy of what a daemon has left that died while it was busy. Somebody read the log meanwhile, so that nothing of what was
// recorded has moved from the write-ahead log into the database.
func died(t *testing.T, live string, a *app.App) string {
	t.Helper()
	reader, err := sqlite.OpenReadOnly(t.Context(), sqlite.Options{
		Path: filepath.Join(live, "log.db"), Definitions: app.Definitions(), Clock: app.Clock{}, IDs: id.NewSource(app.Clock{}.Now, rand.Reader),
		Entropy: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}()
	busy(t, a)
	return copied(t, live)
}

// copied copies a data directory with its modes and owners.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return to
}

// files counts what is kept in the spaces of a directory.
func files(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "spaces", "spc_*", "files", "a"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestTheFilesOfTheLogAreGone starts daemons on what a daemon has left that was stopped, and on what one has left that died, with every
// combination of the log's files gone. A start works, with everything there, or is refused and changes nothing.
func TestTheFilesOfTheLogAreGone(t *testing.T) {
	live := t.TempDir()
	a, stop := serve(t, live)
	died := died(t, live, a)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// The missing parts, and whether the log needs them: the write-ahead log holds events until a daemon that stops moves them.
	parts := []struct {
		name       string
		died, stop string
	}{
		{"log.db", "log_missing", "log_missing"}, {"log.db-wal", "log_rolled_back", ""}, {"log.db-shm", "", ""},
		{"lock log.db.lock log.db.lock-journal daemon.json", "", ""},
	}
	for _, image := range []struct{ name, dir string }{{"died", died}, {"stopped", live}} {
		for gone := range 1 << len(parts) {
			want, names := "", []string{}
			for i, p := range parts {
				if gone&(1<<i) == 0 {
					continue
				}
				names = append(names, strings.Fields(p.name)...)
				if why := map[string]string{"died": p.died, "stopped": p.stop}[image.name]; why != "" && want != "log_missing" {
					want = why
				}
			}
			t.Run(image.name+" without "+strings.Join(names, " "), func(t *testing.T) {
				dir := copied(t, image.dir)
				for _, name := range names {
					if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
						t.Fatal(err)
					}
				}
				a, err := open(dir)
				if fault.CodeOf(err) != want {
					t.Errorf("got %v, want %q", err, want)
				}
				if err == nil {
					runs, err := a.Runs.History.List(t.Context(), id.DefaultWorkspace, history.Filter{Status: run.AwaitingApproval}, "", 10)
					if err != nil || len(runs) != 1 {
						t.Errorf("got %d runs that wait (%v), want 1", len(runs), err)
					}
					if err := a.Close(); err != nil {
						t.Error(err)
					}
				}
				if n := files(t, dir); n != 1 {
					t.Errorf("%d files of spaces are left, want 1", n)
				}
			})
		}
	}
	t.Run("died without log.db-wal and directory.json", func(t *testing.T) {
		dir := copied(t, died)
		if err := errors.Join(os.Remove(filepath.Join(dir, "log.db-wal")), os.Remove(filepath.Join(dir, "directory.json"))); err != nil {
			t.Fatal(err)
		}
		if _, err := open(dir); fault.CodeOf(err) != "log_rolled_back" || files(t, dir) != 1 {
			t.Errorf("got %v and %d files of spaces, want log_rolled_back and 1", err, files(t, dir))
		}
	})
	t.Run("an older log", func(t *testing.T) {
		dir := copied(t, live)
		a, stop := serve(t, dir)
		busy(t, a)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"log.db", "log.db-wal", "log.db-shm"} {
			_ = os.Remove(filepath.Join(dir, name)) // some are not there
		}
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(live, "log.db"), dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for range 2 {
			if _, err := open(dir); fault.CodeOf(err) != "log_rolled_back" {
				t.Errorf("got %v, want log_rolled_back", err)
			}
		}
		if err := os.Remove(filepath.Join(dir, "directory.json")); err != nil {
			t.Fatal(err)
		}
		if n := files(t, dir); n != 2 {
			t.Errorf("%d files of spaces are left, want 2", n)
		}
		if _, err := open(dir); fault.CodeOf(err) != "log_rolled_back" { // the checkpoint knows it too
			t.Errorf("without the note: got %v, want log_rolled_back", err)
		}
		if _, err := app.Abandon(t.Context(), app.Default(dir), "the disk was lost"); err != nil { // somebody has decided so
			t.Fatal(err)
		}
		a, err := open(dir)
		if err != nil {
			t.Fatalf("with the checkpoint abandoned: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if n := files(t, dir); n != 1 {
			t.Errorf("%d files of spaces are left, want that of the older log", n)
		}
	})
	t.Run("another log", func(t *testing.T) {
		dir, other := copied(t, live), t.TempDir()
		_, stop := serve(t, other)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(other, "log.db"), dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if _, err := open(dir); fault.CodeOf(err) != "log_replaced" {
			t.Errorf("got %v, want log_replaced", err)
		}
	})
	for _, size := range []int64{0, 1, 50, 4096, 4097, 20_000} {
		t.Run(fmt.Sprintf("the log cut to %d bytes", size), func(t *testing.T) {
			dir := copied(t, live)
			if err := os.Truncate(filepath.Join(dir, "log.db"), size); err != nil {
				t.Fatal(err)
			}
			a, err := open(dir)
			if err == nil {
				t.Errorf("it was opened: %v", a.Close())
			} else if fault.CodeOf(err) == "" {
				t.Errorf("got %v, want a fault that says what to do", err)
			}
			if n := files(t, dir); n != 1 {
				t.Errorf("%d files of spaces are left, want 1", n)
			}
		})
	}
}

// TestTheFilesOfTheLogAreTakenAway takes them from under a daemon that runs: it stops and says why, and no second daemon can begin beside
// it.
func TestTheFilesOfTheLogAreTakenAway(t *testing.T) {
	for _, gone := range []string{"log.db", "log.db-wal", "log.db log.db-wal log.db-shm", "lock log.db.lock", "."} {
		t.Run(gone, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			a, err := open(dir)
			if err != nil {
				t.Fatal(err)
			}
			busyDaemon := make(chan struct{})
			ended := make(chan error, 1)
			go func() { ended <- a.Run(context.Background(), func(app.State) { close(busyDaemon) }) }()
			<-busyDaemon
			busy(t, a)
			for _, name := range strings.Fields(gone) {
				if err := os.Rename(filepath.Join(dir, name), filepath.Join(filepath.Dir(dir), "moved-"+filepath.Base(filepath.Join(dir,
					name)))); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			if gone != "." {
				if _, err := open(dir); err == nil || fault.CodeOf(err) != "data_in_use" && fault.CodeOf(err) != "log_missing" {
					t.Errorf("a second daemon: got %v, want data_in_use", err)
				}
			}
			if err := <-ended; fault.CodeOf(err) != "log_moved" {
				t.Errorf("the daemon ended with %v, want log_moved", err)
			}
		})
	}
}

// TestADirectoryThatCannotBeUsed is about everything else that can lie in the way of a start.
func TestADirectoryThatCannotBeUsed(t *testing.T) {
	made := t.TempDir()
	a, stop := serve(t, made)
	busy(t, a)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	type trouble struct {
		name string
		make func(dir string) error
		code string // "" for a start that works
	}
	key := func(dir string) string { return filepath.Join(dir, "owner.key") }
	troubles := []trouble{
		{"the key is missing", func(dir string) error { return os.Remove(key(dir)) }, ""},
		{"the key is empty", func(dir string) error { return os.Truncate(key(dir), 0) }, ""},
		{"the key is another's", func(dir string) error { return os.WriteFile(key(dir), []byte("abx_other\n"), 0o600) }, ""},
		{"the key can be read by others", func(dir string) error { return os.Chmod(key(dir), 0o644) }, "key_exposed"},
		{"the key is a link", func(dir string) error {
			return replaced(key(dir), func() error { return os.Symlink(filepath.Join(made, "owner.key"), key(dir)) })
		}, "data_invalid"},
		{"a newer form", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "directory.json"), []byte(`{"version":2}`), 0o600)
		}, "data_too_new"},
		{"a note that cannot be read", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "directory.json"), []byte(`{"version":`), 0o600)
		}, "data_invalid"},
		{"a note that a power cut has emptied", func(dir string) error { return os.Truncate(filepath.Join(dir, "directory.json"), 0) }, ""},
		{"a file instead of the directory", func(dir string) error {
			return replaced(dir, func() error { return os.WriteFile(dir, nil, 0o600) })
		}, "data_unwritable"},
	}
	for _, name := range []string{"owner.key", "log.db", "log.db-wal", "log.db-shm", "log.db.lock", "lock", "directory.json", "daemon.json"} {
		troubles = append(troubles,
			trouble{name + " is a folder", func(dir string) error {
				return replaced(filepath.Join(dir, name), func() error { return os.Mkdir(filepath.Join(dir, name), 0o700) })
			}, "data_invalid"},
			trouble{name + " is a pipe", func(dir string) error {
				return replaced(filepath.Join(dir, name), func() error { return unix.Mkfifo(filepath.Join(dir, name), 0o600) })
			}, "data_invalid"})
	}
	for _, c := range troubles {
		t.Run(c.name, func(t *testing.T) {
			dir := copied(t, made)
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the first start does not mend or break anything for the second
				a, err := open(dir)
				if fault.CodeOf(err) != c.code {
					t.Fatalf("got %v, want %q", err, c.code)
				}
				if err != nil {
					continue
				}
				raw, err := os.ReadFile(key(dir))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.Identity.Authenticate(t.Context(), strings.TrimSpace(string(raw))); err != nil {
					t.Errorf("the owner's key is none: %v", err)
				}
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("two daemons", func(t *testing.T) {
		dir := copied(t, made)
		_, stop := serve(t, dir)
		if _, err := open(dir); fault.CodeOf(err) != "data_in_use" {
			t.Errorf("got %v, want data_in_use", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("the port is in use", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c := app.Default(copied(t, made))
		c.Listen = l.Addr().String()
		a, err := app.Open(t.Context(), c, app.Clock{}, slog.New(slog.DiscardHandler))
		if err == nil {
			err = a.Run(t.Context(), nil)
		}
		if fault.CodeOf(err) != "address_in_use" {
			t.Errorf("got %v, want address_in_use", err)
		}
	})
	if os.Geteuid() != 0 {
		return // what follows needs mounts of its own
	}
	mounted := func(t *testing.T, options string) string {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
			t.Skipf("this host mounts nothing: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		return dir
	}
	t.Run("a read-only disk", func(t *testing.T) {
		dir := mounted(t, "")
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", made+"/.", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := open(dir); fault.CodeOf(err) != "data_unwritable" {
			t.Errorf("got %v, want data_unwritable", err)
		}
	})
	for _, fill := range []string{"new", "used"} {
		t.Run("a full disk, "+fill, func(t *testing.T) {
			dir := mounted(t, "size=8m")
			if fill == "used" {
				if out, err := exec.CommandContext(t.Context(), "cp", "-a", made+"/.", dir).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			full, err := os.Create(filepath.Join(dir, "full"))
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = full.Write(make([]byte, 1<<10))
			}
			_ = full.Close()
			if _, err := open(dir); fault.KindOf(err) != fault.Unavailable || fault.CodeOf(err) == "" {
				t.Errorf("got %v, want a fault that says that the disk is full", err)
			} else {
				t.Log(err)
			}
			if err := os.Remove(full.Name()); err != nil {
				t.Fatal(err)
			}
			a, err := open(dir)
			if err != nil {
				t.Fatalf("with room again: %v", err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// replaced removes what lies under a path and makes something else there.
func replaced(path string, make func() error) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return make()
}

// TestTheNoteFollowsTheLog reads what a stopped daemon has written about its log.
func TestTheNoteFollowsTheLog(t *testing.T) {
	dir := t.TempDir()
	a, stop := serve(t, dir)
	busy(t, a)
	head, err := a.Log.Head(t.Context(), id.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "directory.json"))
	if err != nil {
		t.Fatal(err)
	}
	var note struct {
		Version int               `json:"version"`
		First   id.Event          `json:"first_event"`
		Heads   map[string]uint64 `json:"heads"`
	}
	if err := json.Unmarshal(raw, &note); err != nil {
		t.Fatal(err)
	}
	if note.Version != 1 || note.First == "" || note.Heads[string(id.DefaultWorkspace)] < head {
		t.Errorf("got %+v, want the head %d at least", note, head)
	}
}

// TestALogThatWasRefusedCanBePutBack is about the write-ahead log that somebody took away and brings back: the refused starts in between
// have written nothing that it would not fit to.
func TestALogThatWasRefusedCanBePutBack(t *testing.T) {
	live := t.TempDir()
	a, stop := serve(t, live)
	dir := died(t, live, a)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	wal, away := filepath.Join(dir, "log.db-wal"), filepath.Join(t.TempDir(), "wal")
	if err := os.Rename(wal, away); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := open(dir); fault.CodeOf(err) != "log_rolled_back" {
			t.Fatalf("got %v, want log_rolled_back", err)
		}
	}
	if err := os.Rename(away, wal); err != nil {
		t.Fatal(err)
	}
	a, stop = serve(t, dir)
	busy(t, a)
	if err := stop(); err != nil {
		t.Error(err)
	}
	c := app.Default(dir)
	audits, err := app.Verify(t.Context(), c)
	if err != nil || len(audits) != 1 || !audits[0].Log.OK || !audits[0].Documents.OK {
		t.Errorf("the log is not whole: %+v, %v", audits, err)
	}
}
