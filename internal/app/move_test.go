package app_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/redaction"
)

// folded returns every document of the default workspace but those that the daemon makes of itself, by its name and key.
func folded(t *testing.T, a *app.App) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, def := range app.Definitions() {
		q := projection.Query{Workspace: id.DefaultWorkspace, Name: def.Name, Limit: projection.MaxDocuments}
		for {
			docs, err := a.Log.Documents(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range docs {
				q.After = d.Key
				all[def.Name+" "+d.Key] = fmt.Sprintf("%d %d %s", d.Version, d.Seq, d.Body)
			}
			if len(docs) < q.Limit {
				break
			}
		}
	}
	return all
}

// TestAWorkspaceWithRedactedEventsMoves redacts events, one of them halfway, and moves the workspace: no redacted data are in the
// file, documents are the same there, the halfway redaction is finished there, and every proof holds.
func TestAWorkspaceWithRedactedEventsMoves(t *testing.T) {
	ctx, ws := t.Context(), id.DefaultWorkspace
	dir, there, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "ws.tar.gz")
	a := opened(t, dir)
	confided := confide(t, a, 50)
	if err := a.Signer.Step(ctx); err != nil {
		t.Fatal(err)
	}
	before, err := a.Prover.Evidence(ctx, ws, confided[20].ID)
	if err != nil {
		t.Fatal(err)
	}
	origin := event.Origin{Principal: a.Owner}
	for _, e := range confided[:49] {
		if _, err := a.Redaction.Redact(ctx, origin, ws, redaction.Request{Event: e.ID, Reason: "a mistake"}); err != nil {
			t.Fatal(err)
		}
	}
	was := folded(t, a)
	head, err := a.Log.Head(ctx, ws)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Signer.Step(ctx); err != nil {
		t.Fatal(err)
	}
	clean := filepath.Join(t.TempDir(), "clean.tar.gz") // while one is left, which holds the text
	if _, err := app.ExportWorkspace(ctx, app.Default(dir), ws, clean); err != nil {
		t.Fatal(err)
	}
	left, err := redaction.Remains(confided[49])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{event.RedactionOf(origin, confided[49], "a mistake",
		left)}}); err != nil {
		t.Fatal(err)
	}
	if err := a.Signer.Step(ctx); err != nil {
		t.Fatal(err)
	}
	public := a.Prover.PublicKey()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wrote, err := app.ExportWorkspace(ctx, app.Default(dir), ws, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file     string
		redacted int
		holds    int
	}{{clean, 49, 1}, {file, 50, 1}} {
		if found := unpacked(t, c.file); len(found) > c.holds {
			t.Errorf("the text of redacted events is in %v", found)
		}
		to := filepath.Join(there, filepath.Base(c.file))
		took, ended, err := app.ImportWorkspace(ctx, app.Default(to), c.file, string(public))
		if err != nil || ended != 10 || c.file == file && took != wrote {
			t.Fatalf("took %+v with %d spaces, %v; want %+v", took, ended, err, wrote)
		}
		audits, err := app.Verify(ctx, app.Default(to))
		if err != nil || len(audits) != 1 || !audits[0].Log.OK || audits[0].Log.Redacted != 49 || !audits[0].Documents.OK {
			t.Fatalf("verify: %+v, %v", audits, err)
		}
		b := opened(t, to) // which finishes what was recorded
		if c.redacted == 50 {
			if found := holders(t, to); len(found) > 0 {
				t.Errorf("the text is in %v", found)
			}
		}
		report, documents, err := audit.Audit(ctx, b.Log, b.Log, app.Definitions(), ws)
		if err != nil || !report.OK || report.Redacted != c.redacted || !documents.OK {
			t.Errorf("verify: %+v, %+v, %v", report, documents, err)
		}
		if err := b.Signer.Step(ctx); err != nil {
			t.Fatal(err)
		}
		if evidence, err := b.Prover.Evidence(ctx, ws, confided[20].ID); err != nil || evidence.Header != before.Header || evidence.Data != nil {
			t.Errorf("a redacted event there: %+v, %v", evidence, err)
		}
		if c.file == clean {
			same(t, was, b, head)
		}
		confide(t, b, 5)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := before.Check(public); err != nil {
		t.Errorf("the proof from before: %v", err)
	}
}

// same holds documents against those that were folded elsewhere from the log up to a place. All are there, and documents that have not
// changed since are the same.
func same(t *testing.T, was map[string]string, b *app.App, head uint64) {
	t.Helper()
	is := folded(t, b)
	later, err := b.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, From: head + 1, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]bool{}
	for _, e := range later {
		for _, def := range app.Definitions() {
			for _, key := range def.Keys(e) {
				changed[def.Name+" "+key] = true
			}
		}
	}
	compared := 0
	for key, want := range was {
		if changed[key] {
			continue
		}
		compared++
		if diff := cmp.Diff(want, is[key]); diff != "" {
			t.Errorf("%s: -was +is\n%s", key, diff)
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
