package app_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/redaction"
)

// secret is what is to be forgotten.
const secret = "MARZIPAN"

// opened is a daemon that is opened and does nothing by itself.
func opened(t *testing.T, dir string) *app.App {
	t.Helper()
	a, err := app.Open(t.Context(), app.Default(dir), app.Clock{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// confide appends n events that hold the secret: reads of files, and spaces, whose documents hold it too, each written several times.
func confide(t *testing.T, a *app.App, n int) []event.Event {
	t.Helper()
	origin, ws := event.Origin{Principal: a.Owner}, id.DefaultWorkspace
	var all []event.Event
	for len(all) < n {
		var drafts []event.Draft
		for i := range min(100, n-len(all)) {
			s := id.Space(fmt.Sprintf("spc_%026d", (len(all)+i)/5))
			text := fmt.Sprintf("%s-%d", secret, len(all)+i)
			var draft event.Draft
			switch i % 5 {
			case 0:
				draft = event.New(space.EventCreated, origin, ws, "", space.Created{Space: s, Name: text, Env: map[string]string{"PASSWORD": text},
					ExpiresAt: time.Now().Add(time.Hour)})
			case 1, 2:
				draft = event.New(space.EventUpdated, origin, ws, "", space.Updated{Space: s, Description: &text})
			default:
				draft = event.New(space.EventFileRead, origin, ws, "", space.FileRead{Space: s, Path: text})
			}
			drafts = append(drafts, draft.About(space.EntityType, string(s)))
		}
		receipt, err := a.Log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: drafts})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, receipt.Events...)
	}
	return all
}

// settle has the documents written down; else that is done when the log has been quiet for a moment.
func settle(t *testing.T, a *app.App) {
	t.Helper()
	if err := a.Log.Rebuild(t.Context(), space.Projection); err != nil {
		t.Fatal(err)
	}
}

// holders lists the files below a folder that hold the secret.
func holders(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(secret)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// unpacked lists the entries of a backup that hold the secret.
func unpacked(t *testing.T, file string) (found []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(packed); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(secret)) {
			found = append(found, h.Name)
		}
	}
}

// TestThreat29RedactionIsNoWayToRewriteHistory redacts a thousand events: the text is in no file any more, not in a backup that was made
// before either; the log verifies, and every proof from before holds.
func TestThreat29RedactionIsNoWayToRewriteHistory(t *testing.T) {
	ctx, ws := t.Context(), id.DefaultWorkspace
	dir := t.TempDir()
	a := opened(t, dir)
	confided := confide(t, a, 1_000)
	if err := a.Signer.Step(ctx); err != nil {
		t.Fatal(err)
	}
	settle(t, a)
	if len(holders(t, dir)) == 0 {
		t.Fatal("the documents hold nothing: the test would find nothing either")
	}
	before, err := a.Prover.Evidence(ctx, ws, confided[500].ID)
	if err != nil {
		t.Fatal(err)
	}
	var export bytes.Buffer
	if _, err := a.Prover.Export(ctx, ws, audit.Selection{}, &export); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "before.tar.gz")
	if _, err := app.Backup(ctx, app.Default(dir), backup, false, nil); err != nil {
		t.Fatal(err)
	}
	if found := unpacked(t, backup); len(found) > 0 {
		t.Errorf("the backup holds the text in %v", found)
	}
	stolen := filepath.Join(t.TempDir(), "keys") // a copy of the keys from before
	if err := os.CopyFS(stolen, os.DirFS(filepath.Join(dir, "keys"))); err != nil {
		t.Fatal(err)
	}
	chmod(t, stolen)

	// One by one as a person does it, and the rest as a program would.
	origin := event.Origin{Principal: a.Owner}
	for _, e := range confided[:3] {
		if _, err := a.Redaction.Redact(ctx, origin, ws, redaction.Request{Event: e.ID, Reason: "it was a mistake"}); err != nil {
			t.Fatal(err)
		}
	}
	var drafts []event.Draft
	var seqs []uint64
	for _, e := range confided[3:] {
		left, err := redaction.Remains(e)
		if err != nil {
			t.Fatal(err)
		}
		drafts, seqs = append(drafts, event.RedactionOf(origin, e, "all of it", left)), append(seqs, e.Seq)
	}
	if _, err := a.Log.Append(ctx, event.Batch{Workspace: ws, Drafts: drafts}); err != nil {
		t.Fatal(err)
	}
	if err := a.Log.Redact(ctx, ws, seqs); err != nil {
		t.Fatal(err)
	}
	if found := holders(t, dir); len(found) > 0 {
		t.Errorf("the text is still in %v", found)
	}

	report, documents, err := audit.Audit(ctx, a.Log, a.Log, app.Definitions(), ws)
	if err != nil || !report.OK || report.Redacted != 1_000 || report.Sealed != 0 || !documents.OK || documents.Unchecked {
		t.Errorf("verify: %+v, %+v, %v", report, documents, err)
	}
	for name, check := range map[string]func() error{
		"the proof from before": func() error { _, err := before.Check(a.Prover.PublicKey()); return err },
		"the export from before": func() error {
			checked, err := audit.Check(bytes.NewReader(export.Bytes()), a.Prover.PublicKey())
			if !checked.Complete {
				err = errors.Join(err, errors.New("it is not complete"))
			}
			return err
		},
		"a proof of today": func() error {
			evidence, err := a.Prover.Evidence(ctx, ws, confided[500].ID)
			if err == nil && (evidence.Header != before.Header || evidence.Data != nil || evidence.Salt != nil) {
				err = fmt.Errorf("it is %+v", evidence)
			}
			if err == nil {
				_, err = evidence.Check(a.Prover.PublicKey())
			}
			return err
		},
		"an export of today": func() error {
			var out bytes.Buffer
			if err := a.Signer.Step(ctx); err != nil {
				return err
			}
			if _, err := a.Prover.Export(ctx, ws, audit.Selection{}, &out); err != nil {
				return err
			}
			if bytes.Contains(out.Bytes(), []byte(secret)) {
				return errors.New("it holds the text")
			}
			_, err := audit.Check(&out, a.Prover.PublicKey())
			return err
		},
		"a consistency with before": func() error {
			proof, err := a.Prover.Consistency(ctx, ws, confided[999].Seq)
			if err != nil {
				return err
			}
			return proof.Check(a.Prover.PublicKey())
		},
	} {
		if err := check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}

	t.Run("a backup from before with the keys of today", func(t *testing.T) {
		to := filepath.Join(t.TempDir(), "again")
		_, audits, err := app.Restore(ctx, app.Default(to), backup, filepath.Join(dir, "keys"), nil)
		if err != nil || len(audits) != 1 || !audits[0].Log.OK || audits[0].Log.Sealed != 1_000 || !audits[0].Documents.OK {
			t.Fatalf("restore: %+v, %v", audits, err)
		}
		if found := holders(t, to); len(found) > 0 {
			t.Errorf("the text is in %v", found)
		}
		again := opened(t, to)
		if e, err := again.Log.Get(ctx, ws, confided[7].ID); err != nil || e.Withheld != event.Destroyed || string(e.Data) != "{}" {
			t.Errorf("an event redacted since: %+v, %v", e, err)
		}
		confide(t, again, 10) // it goes on
		if report, err := audit.Verify(ctx, again.Log, ws); err != nil || !report.OK {
			t.Errorf("it goes on: %+v, %v", report, err)
		}
	})
	t.Run("a backup without keys", func(t *testing.T) {
		to := filepath.Join(t.TempDir(), "again")
		_, audits, err := app.Restore(ctx, app.Default(to), backup, "", nil)
		if err != nil || len(audits) != 1 || !audits[0].Log.OK || audits[0].Log.Sealed != audits[0].Log.Checked ||
			!audits[0].Documents.Unchecked {
			t.Fatalf("restore: %+v, %v", audits, err)
		}
		if held := audits[0].Log.Held; len(held) != 1 || !held[0].OK {
			t.Errorf("it is held against %+v", held)
		}
		if _, err := app.Open(ctx, app.Default(to), app.Clock{}, slog.New(slog.DiscardHandler)); fault.CodeOf(err) != "keys_missing" {
			t.Errorf("a daemon without keys: %v, want keys_missing", err)
		}
		p, err := app.OpenProofs(app.Default(to), "")
		if err != nil {
			t.Fatal(err)
		}
		if evidence, err := p.Evidence(ctx, ws, confided[9].ID, 0); err != nil || evidence.Data != nil || evidence.Header == "" {
			t.Errorf("a header without keys: %+v, %v", evidence, err)
		}
		if _, err := app.BringKeys(ctx, app.Default(to), filepath.Join(t.TempDir(), "none")); fault.CodeOf(err) != "keys_missing" {
			t.Errorf("keys that are not there: %v, want keys_missing", err)
		}
		// Brought later, the keys of then open what they sealed: a copy of the keys can open data that were redacted since.
		audits, err = app.BringKeys(ctx, app.Default(to), stolen)
		if err != nil || len(audits) != 1 || !audits[0].Log.OK || audits[0].Log.Sealed != 0 || audits[0].Documents.Documents == 0 {
			t.Fatalf("bring the keys: %+v, %v", audits, err)
		}
		again := opened(t, to)
		if e, err := again.Log.Get(ctx, ws, confided[7].ID); err != nil || !bytes.Contains(e.Data, []byte(secret)) {
			t.Errorf("an event with the keys of then: %+v, %v", e, err)
		}
	})
}

// tamper changes a log behind the daemon's back.
func tamper(t *testing.T, path, script string) {
	t.Helper()
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Exec(script), conn.Close()); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A redaction that was recorded before the daemon ended is finished by the next one, whatever of it was done.
func TestARecordedRedactionIsFinishedAtTheNextStart(t *testing.T) {
	ctx, ws := t.Context(), id.DefaultWorkspace
	for name, and := range map[string]func(t *testing.T, a *app.App, e event.Event){
		"recorded": func(*testing.T, *app.App, event.Event) {},
		"its key destroyed": func(t *testing.T, a *app.App, e event.Event) {
			if err := a.Keys().Forget("events/"+string(ws), e.Seq); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := opened(t, dir)
			confided := confide(t, a, 10)
			for _, e := range confided {
				left, err := redaction.Remains(e)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.Log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{event.RedactionOf(event.Origin{Principal: a.Owner}, e,
					"all", left)}}); err != nil {
					t.Fatal(err)
				}
				and(t, a, e)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			if len(holders(t, dir)) == 0 {
				t.Fatal("nothing is left to be done")
			}
			a = opened(t, dir)
			if found := holders(t, dir); len(found) > 0 {
				t.Errorf("the text is still in %v", found)
			}
			report, documents, err := audit.Audit(ctx, a.Log, a.Log, app.Definitions(), ws)
			if err != nil || !report.OK || report.Redacted != len(confided) || !documents.OK {
				t.Errorf("verify: %+v, %+v, %v", report, documents, err)
			}
		})
	}
}

// Data that are gone without a word are no redaction, and a record that is nowhere in the log is none either.
func TestThreat29DataThatAreGoneWithoutAWordAreFound(t *testing.T) {
	ctx := t.Context()
	for name, change := range map[string]string{
		"the data are gone": `DROP TRIGGER bodies_no_delete; DELETE FROM bodies WHERE place & 0xffff = %d`,
		"and something else is said to have redacted them": `INSERT INTO redactions SELECT place, place - 1, 2 FROM bodies WHERE place & ` +
			`0xffff = %[1]d; DELETE FROM bodies WHERE place & 0xffff = %[1]d`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := opened(t, dir)
			confided := confide(t, a, 10)
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			change := fmt.Sprintf(change, confided[3].Seq)
			tamper(t, filepath.Join(dir, "log.db"), change)
			audits, err := app.Verify(ctx, app.Default(dir))
			if err != nil || len(audits) != 1 || audits[0].Log.OK || audits[0].Log.Findings[0].Seq != confided[3].Seq {
				t.Errorf("verify: %+v, %v", audits, err)
			}
		})
	}
}

// The daemon that goes on is not asked to wait for a program that looks at its log, and clears what that held back once it is gone.
func TestARedactionBesideAReaderIsFinishedLater(t *testing.T) {
	ctx, ws := t.Context(), id.DefaultWorkspace
	dir := t.TempDir()
	a := opened(t, dir)
	confided := confide(t, a, 5)
	p, err := app.OpenProofs(app.Default(dir), "")
	if err != nil {
		t.Fatal(err)
	}
	look, err := p.Log(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range confided {
		_, err := a.Redaction.Redact(ctx, event.Origin{Principal: a.Owner}, ws, redaction.Request{Event: e.ID, Reason: "all"})
		if err != nil && fault.CodeOf(err) != "log_held" {
			t.Fatal(err)
		}
	}
	if open, err := a.Log.Unfinished(ctx, ws); err != nil || len(open) == 0 {
		t.Errorf("unfinished beside a reader: %v, %v", open, err)
	}
	if e, err := a.Log.Get(ctx, ws, confided[0].ID); err != nil || e.Withheld != event.Forgotten {
		t.Errorf("the event: %+v, %v", e, err)
	}
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Redaction.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if found := holders(t, dir); len(found) > 0 {
		t.Errorf("the text is still in %v", found)
	}
	if open, err := a.Log.Unfinished(ctx, ws); err != nil || len(open) != 0 {
		t.Errorf("unfinished: %v, %v", open, err)
	}
}
