package app_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/runs/history"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit/platter"
)

// unpack puts an old data directory into a folder of the test's own.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	for in := tar.NewReader(packed); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(to, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// verified proves the log of a data directory.
func verified(t *testing.T, dir string) {
	t.Helper()
	audits, err := app.Verify(t.Context(), app.Default(dir))
	if err != nil || len(audits) != 1 || !audits[0].Log.OK || !audits[0].Documents.OK {
		t.Errorf("verify: %+v, %v", audits, err)
	}
}

// The data directory of each earlier version is opened with everything that is in it, goes on, and proves itself before and after.
func TestUpgrade(t *testing.T) {
	archives, err := filepath.Glob("testdata/data-*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("there is no old data directory; %v", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			dir := unpack(t, archive)
			verified(t, dir)
			a, err := app.Open(t.Context(), app.Default(dir), app.Clock{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			holdsWhatItHeld(t, a)
			knowsItsCauses(t, a)
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			verified(t, dir)
		})
	}
}

// holdsWhatItHeld looks at what scripts/old-data has left in every old data directory.
func holdsWhatItHeld(t *testing.T, a *app.App) {
	t.Helper()
	ctx, ws := t.Context(), id.DefaultWorkspace
	runs, err := a.Runs.History.List(ctx, ws, history.Filter{}, "", 10)
	if err != nil || len(runs) != 3 {
		t.Fatalf("%d runs, %v, want 3", len(runs), err)
	}
	waits, report := runs[0], runs[2] // newest first
	if waits.Status != run.AwaitingApproval || runs[1].Status != run.Succeeded || report.Status != run.Succeeded {
		t.Errorf("the runs are %s, %s and %s", waits.Status, runs[1].Status, report.Status)
	}
	results, err := a.Runs.History.Events(ctx, report)
	if err != nil || len(results.Events) != 6 {
		t.Fatalf("%d results, %v, want 6", len(results.Events), err)
	}
	if long := results.Events[3].Stdout; long == nil || *long != strings.Repeat("x", 100_000) {
		t.Error("the long result that lies apart is not what it was")
	}
	if no := results.Events[5]; no.Type != run.ResPolicyDenied {
		t.Errorf("the refusal is %+v", no)
	}
	open, err := a.Gate.Approvals.List(ctx, ws, approvals.Filter{Status: policy.Pending})
	if err != nil || len(open) != 1 || open[0].Run != waits.ID {
		t.Fatalf("%d open questions, %v, want that of %s", len(open), err, waits.ID)
	}
	owner := event.Origin{Principal: a.Owner}
	if _, err := a.Gate.Approvals.Decide(ctx, owner, ws, open[0].ID, policy.Answer{Decision: policy.Refuse}); err != nil &&
		fault.CodeOf(err) != "approval_expired" {
		t.Errorf("answer the old question: %v", err)
	}
	file, err := a.Spaces.Files.Read(ctx, owner, ws, report.Space, "report.md", spaces.Any)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if text, err := io.ReadAll(file); err != nil || string(text) != "only line\n" {
		t.Errorf("the old file holds %q, %v", text, err)
	}
}

// knowsItsCauses looks for each event of a log by the cause that it names, also those that were recorded before there was an index of
// causes, and has what goes on follow from what was there.
func knowsItsCauses(t *testing.T, a *app.App) {
	t.Helper()
	if _, err := a.Gate.KillSwitch.Throw(t.Context(), event.Origin{Principal: a.Owner}, id.DefaultWorkspace, "after the upgrade"); err != nil {
		t.Fatal(err)
	}
	all, err := a.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1]
	lifted := slices.IndexFunc(all, func(e event.Event) bool { return e.Type == policy.KillSwitchLiftedType })
	if last.Type != policy.KillSwitchThrownType || lifted < 0 || last.Causation != all[lifted].ID ||
		last.Correlation != all[lifted].Correlation {
		t.Errorf("the kill switch is thrown by %+v, which does not follow from when it was lifted", last.Header)
	}
	for _, e := range all {
		if e.Causation == "" {
			continue
		}
		found, err := a.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Causation: e.Causation, Limit: journal.MaxRead})
		if err != nil || !slices.ContainsFunc(found, func(f event.Event) bool { return f.ID == e.ID }) {
			t.Errorf("%d %s is not found by its cause: %d events are, %v", e.Seq, e.Type, len(found), err)
		}
	}
}

// A data directory that a newer version has written is refused, with a word about what to do, and left as it is.
func TestNewerDataIsRefused(t *testing.T) {
	dir := unpack(t, "testdata/data-1.tar.gz")
	conn, err := sqlite3.Open(filepath.Join(dir, "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Exec(`PRAGMA user_version = 1000`), conn.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := platter.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a, err := app.Open(t.Context(), app.Default(dir), app.Clock{}, slog.New(slog.DiscardHandler))
		if err == nil || a != nil || fault.CodeOf(err) != "log_too_new" || !strings.Contains(err.Error(),
			"a newer version of Agentbox wrote this log; use that version") {
			t.Fatalf("open: %v, want log_too_new", err)
		}
	}
	if _, err := app.Verify(t.Context(), app.Default(dir)); fault.CodeOf(err) != "log_too_new" {
		t.Errorf("verify: %v, want log_too_new", err)
	}
	after, err := platter.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range before {
		if got, ok := after[name]; !ok || string(got) != string(content) {
			t.Errorf("the refusal has changed %s", name)
		}
	}
}
