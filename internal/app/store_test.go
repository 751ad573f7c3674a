package app_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit/pgtest"
)

// inDatabase is the configuration of a daemon whose log lies in a database.
func inDatabase(dir, address, shared string) app.Config {
	c := app.Default(dir)
	c.Listen, c.Store, c.Shared = "127.0.0.1:0", address, shared
	return c
}

// served is a daemon that was told to run.
type served struct {
	ready chan app.State
	ended chan error
	stop  context.CancelFunc
}

// up runs a daemon as the command does, until it is stopped or the test ends.
func up(t *testing.T, c app.Config) *served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &served{ready: make(chan app.State, 1), ended: make(chan error, 1), stop: stop}
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.ended <- app.Up(ctx, c, app.Clock{}, slog.New(slog.NewTextHandler(t.Output(), nil)), func(st app.State) { s.ready <- st })
	}()
	t.Cleanup(func() {
		stop()
		<-over
	})
	return s
}

func (s *served) wait(t *testing.T) app.State {
	t.Helper()
	select {
	case st := <-s.ready:
		return st
	case err := <-s.ended:
		t.Fatalf("the daemon ended: %v", err)
	case <-t.Context().Done():
	}
	return app.State{}
}

// A daemon works on a database as on a file, and what it has recorded is proven from there.
func TestLogInADatabase(t *testing.T) {
	address := pgtest.Start(t).Database()
	c := inDatabase(t.TempDir(), address, "")
	a, err := app.Open(t.Context(), c, app.Clock{}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() { ended <- a.Run(ctx, func(app.State) { close(ready) }) }()
	<-ready
	origin := event.Origin{Principal: a.Owner}
	s, err := a.Spaces.Creation.Create(t.Context(), origin, spaces.Request{Workspace: id.DefaultWorkspace, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := run.ParseMessage(
		[]byte(`{"protocolVersion":"1.0","operations":[{"type":"createFile","path":"a.txt","content":"one\n"},{"type":"shell","command":"wc -l ` +
			`< a.txt"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := a.Runs.Start(within, origin, runs.Request{Workspace: id.DefaultWorkspace, Space: s.ID, Message: m})
	if err == nil {
		r, err = a.Runs.History.Wait(within, id.DefaultWorkspace, r.ID)
	}
	if err != nil || r.Status != run.Succeeded {
		t.Fatalf("the run is %+v, %v", r, err)
	}
	audits, err := app.Verify(t.Context(), c) // beside the daemon
	if err != nil || len(audits) != 1 || !audits[0].OK() {
		t.Errorf("beside the daemon: %+v, %v", audits, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	audits, err = app.Verify(t.Context(), c)
	if err != nil || len(audits) != 1 || !audits[0].OK() || audits[0].Documents.Documents == 0 {
		t.Errorf("without a daemon: %+v, %v", audits, err)
	}
	// Commands for a log in a file are refused, and the error says what to do.
	if _, err := app.Backup(t.Context(), c, filepath.Join(t.TempDir(), "b"), false, nil); fault.CodeOf(err) != "store_unsupported" ||
		!strings.Contains(suggestion(err), "pg_dump") {
		t.Errorf("a backup: %v, want store_unsupported", err)
	}
	if _, _, err := app.Restore(t.Context(), c, "b", "", nil); fault.CodeOf(err) != "store_unsupported" {
		t.Errorf("a restore: %v, want store_unsupported", err)
	}
	// A workspace moves out of it, and into a file.
	moved := filepath.Join(t.TempDir(), "ws.tar.gz")
	if _, err := app.ExportWorkspace(t.Context(), c, id.DefaultWorkspace, moved); err != nil {
		t.Fatal(err)
	}
	file := app.Default(t.TempDir())
	if _, _, err := app.ImportWorkspace(t.Context(), file, moved, ""); err != nil {
		t.Fatal(err)
	}
	if audits, err := app.Verify(t.Context(), file); err != nil || len(audits) != 1 || !audits[0].OK() {
		t.Errorf("where it was moved to: %+v, %v", audits, err)
	}
	// Without the address, or with one where there was none, the directory is not taken for another's.
	without := c
	without.Store = ""
	for name, wrong := range map[string]app.Config{"without its database": without, "a file's with a database": inDatabase(file.DataDir,
		address, "")} {
		if a, err := app.Open(t.Context(), wrong, app.Clock{}, slog.New(slog.DiscardHandler)); fault.CodeOf(err) != "store_changed" {
			t.Errorf("%s: %v, want store_changed", name, err)
			_ = a.Close()
		}
	}
	if _, err := app.Verify(t.Context(), without); fault.CodeOf(err) != "store_changed" {
		t.Errorf("verified without its database: %v, want store_changed", err)
	}
	if _, err := app.Backup(t.Context(), without, filepath.Join(t.TempDir(), "b.tar.gz"), false, nil); fault.CodeOf(err) != "store_changed" {
		t.Errorf("kept without its database: %v, want store_changed", err)
	}
	// Another log in its place is noticed.
	if _, err := app.Open(t.Context(), inDatabase(c.DataDir, pgtest.Start(t).Database(), ""), app.Clock{},
		slog.New(slog.DiscardHandler)); fault.CodeOf(err) != "log_rolled_back" {
		t.Errorf("an empty database in its place: %v, want log_rolled_back", err)
	}
}

func suggestion(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Suggestion
	}
	return ""
}

// A daemon that has a database alone keeps from it who would work on it with others. It is found to have other keys when its turn comes;
// once keys and contents are where both can reach them, the two work together, and what the first one was is what both are.
func TestFromOneDaemonToSeveral(t *testing.T) {
	server := pgtest.Start(t)
	address, shared := server.Database(), filepath.Join(t.TempDir(), "shared")
	first, second := inDatabase(t.TempDir(), address, ""), inDatabase(t.TempDir(), address, shared)
	a := up(t, first)
	a.wait(t)
	signed, err := app.PublicKey(first)
	if err != nil {
		t.Fatal(err)
	}
	b := up(t, second)
	awaits(t, second.DataDir)
	select {
	case st := <-b.ready:
		t.Fatalf("one has the database alone, and another one works on it: %+v", st)
	default:
	}
	// The server ends and comes back: the first one goes on, for nobody has begun a reign.
	server.Restart()
	a.stop()
	if err := <-a.ended; err != nil {
		t.Error(err)
	}
	if err := <-b.ended; fault.CodeOf(err) != "keys_foreign" || !strings.Contains(suggestion(err), "--shared") {
		t.Errorf("with other keys: %v, want keys_foreign", err)
	}
	for _, name := range []string{"keys", "blobs"} {
		if err := os.RemoveAll(filepath.Join(shared, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(first.DataDir, name), filepath.Join(shared, name)); err != nil {
			t.Fatal(err)
		}
	}
	first.Shared = shared
	a, b = up(t, first), nil
	a.wait(t)
	b = up(t, second)
	b.wait(t)
	if key, err := app.PublicKey(second); err != nil || key != signed {
		t.Errorf("both sign with %s, %v, and the first one signed with %s", key, err, signed)
	}
	a.stop()
	if err := <-a.ended; err != nil {
		t.Error(err)
	}
	b.stop()
	if err := <-b.ended; err != nil {
		t.Error(err)
	}
	audits, err := app.Verify(t.Context(), second)
	if err != nil || len(audits) != 1 || !audits[0].OK() {
		t.Errorf("after all: %+v, %v", audits, err)
	}
}

// awaits waits until daemon.json says that the daemon waits for the database.
func awaits(t *testing.T, dir string) {
	t.Helper()
	for t.Context().Err() == nil {
		if raw, err := os.ReadFile(filepath.Join(dir, "daemon.json")); err == nil && strings.Contains(string(raw), "waits for the database") {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

// The files of a space stay on the machine that made them. Another member knows the space, leaves it alone, and works all the same; so
// does who comes back to it.
func TestSpacesElsewhere(t *testing.T) {
	address, shared := pgtest.Start(t).Database(), filepath.Join(t.TempDir(), "shared")
	open := func(dir string) *app.App {
		t.Helper()
		a, err := app.Open(t.Context(), inDatabase(dir, address, shared), app.Clock{}, slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	mine, theirs := t.TempDir(), t.TempDir()
	a := open(mine)
	s, err := a.Spaces.Creation.Create(t.Context(), event.Origin{Principal: a.Owner}, spaces.Request{Workspace: id.DefaultWorkspace,
		Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	b := open(theirs) // while the first one works
	if doc, _, err := projection.Load[space.Space](t.Context(), b.Log, id.DefaultWorkspace, space.Projection, string(s.ID)); err != nil ||
		doc.Status == space.Destroyed {
		t.Errorf("the space is %+v, %v", doc, err)
	}
	if _, err := b.Spaces.Living.Keep(t.Context(), s); !errors.Is(err, space.ErrFilesMissing) {
		t.Errorf("its files: %v, want %v", err, space.ErrFilesMissing)
	}
	if err := b.Spaces.Ending.Step(t.Context(), time.Now().Add(365*24*time.Hour)); err != nil {
		t.Errorf("its time is over, elsewhere: %v", err)
	}
	if err := b.GC.Step(t.Context(), id.DefaultWorkspace, b.Owner); err != nil {
		t.Errorf("a sweep: %v", err)
	}
	first, err := b.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Types: []string{space.EventCreated}, Limit: 1})
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	if left, err := b.GC.ForgetContent(t.Context(), first); err != nil {
		t.Errorf("to forget content: %+v, %v", left, err)
	}
	if entries, err := filepath.Glob(filepath.Join(theirs, "spaces", "spc_*")); err != nil || len(entries) != 0 {
		t.Errorf("it has made %v, %v", entries, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a = open(mine) // and again, while the other one works
	if _, err := a.Spaces.Living.Keep(t.Context(), s); err != nil {
		t.Errorf("back where the files are: %v", err)
	}
	if doc, err := a.Spaces.Catalog.Space(t.Context(), id.DefaultWorkspace, s.ID); err != nil || doc.Status != space.Ready {
		t.Errorf("the space is %+v, %v", doc, err)
	}
	for _, one := range []*app.App{a, b} {
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
