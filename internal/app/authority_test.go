package app_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/service/audit"
)

// stopped makes a data directory with an owner and a kill switch that is on, and stops its daemon.
func stopped(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	a, stop := serve(t, dir)
	if _, err := a.Gate.KillSwitch.Throw(t.Context(), event.Origin{Principal: a.Owner}, id.DefaultWorkspace, "a test"); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// behind changes a log that nobody has open.
func behind(t *testing.T, dir, sql string) {
	t.Helper()
	conn, err := sqlite3.Open(filepath.Join(dir, "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec(sql); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// reopen says with which code a daemon refuses to start, "" where it starts.
func reopen(t *testing.T, dir string) string {
	t.Helper()
	a, err := app.Open(t.Context(), app.Default(dir), app.Clock{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return codeOrText(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	return ""
}

func codeOrText(err error) string {
	if code := fault.CodeOf(err); code != "" {
		return code
	}
	return err.Error()
}

const (
	bodiesFree = `DROP TRIGGER bodies_no_update; DROP TRIGGER bodies_no_delete; `
	bodiesHeld = `; CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies WHEN NOT EXISTS (SELECT 1 FROM redactions WHERE place = OLD.place)
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;`
	ofProjection = `projection = (SELECT no FROM projections WHERE name = '%s')`
)

// Who changes who may do what past the log is found by a verification and refused at the start; who hides an event from the verification
// too.
func TestForgedAuthority(t *testing.T) {
	of := func(name string) string { return fmt.Sprintf(ofProjection, name) }
	for name, c := range map[string]struct {
		sql    string
		finds  []string // kinds; none where the verification finds nothing
		starts string   // code of the refusal
	}{
		"nothing": {`SELECT 1`, nil, ""},
		"a role": {`UPDATE documents SET body = CAST(replace(CAST(body AS TEXT), '"overlord"', '"viewer"') AS BLOB) WHERE ` + of("principals"),
			[]string{audit.DocumentMismatch}, "authority_changed"},
		"a role, and one number in bodies": {
			bodiesFree + `UPDATE documents SET body = CAST(replace(CAST(body AS TEXT), '"overlord"', '"viewer"') AS BLOB) WHERE ` +
				of("principals") +
				`; UPDATE bodies SET generation = generation + 1 WHERE place = (SELECT max(place) FROM bodies)` + bodiesHeld,
			[]string{audit.KeyMissing}, "keys_missing",
		},
		"a role, and one number in the first body": {
			bodiesFree + `UPDATE documents SET body = CAST(replace(CAST(body AS TEXT), '"overlord"', '"viewer"') AS BLOB) WHERE ` +
				of("principals") +
				`; UPDATE bodies SET generation = generation + 1 WHERE place = (SELECT min(place) FROM bodies)` + bodiesHeld,
			[]string{audit.KeyMissing}, "authority_changed",
		},
		"the kill switch dropped": {`DELETE FROM documents WHERE ` + of("kill_switches"), []string{audit.DocumentMissing}, "authority_changed"},
		"a key added": {
			`INSERT INTO documents (projection, workspace, key, version, seq, body) SELECT projection, workspace, 'key_forged', version, seq, ` +
				`body FROM documents WHERE ` + of("api_keys"),
			[]string{audit.DocumentUnfounded}, "authority_changed",
		},
		"a trigger": {`CREATE TRIGGER mine AFTER INSERT ON events BEGIN SELECT 1; END`, []string{audit.SchemaMismatch},
			"log_schema_changed"},
		"a view":                 {`CREATE VIEW mine AS SELECT 1 AS x`, []string{audit.SchemaMismatch}, "log_schema_changed"},
		"an index":               {`CREATE INDEX mine ON events (type)`, nil, ""},
		"an index of some":       {`CREATE INDEX mine ON events (type) WHERE type > 1`, []string{audit.SchemaMismatch}, "log_schema_changed"},
		"an index that refuses":  {`CREATE UNIQUE INDEX mine ON events (place, type)`, []string{audit.SchemaMismatch}, "log_schema_changed"},
		"an index that computes": {`CREATE INDEX mine ON events (abs(type))`, []string{audit.SchemaMismatch}, "log_schema_changed"},
		"a table":                {`CREATE TABLE mine (x)`, []string{audit.SchemaMismatch}, "log_schema_changed"},
		"a column":               {`ALTER TABLE bodies ADD COLUMN mine INTEGER`, []string{audit.SchemaMismatch}, "log_schema_changed"},
		"a trigger that goes":    {`DROP TRIGGER events_no_update`, []string{audit.SchemaMismatch}, "log_schema_changed"},
		"a trigger that guards less": {`DROP TRIGGER events_no_update; CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT 1; ` +
			`END`,
			[]string{audit.SchemaMismatch}, "log_schema_changed"},
		"statistics": {`ANALYZE`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := stopped(t)
			behind(t, dir, c.sql)
			audits, err := app.Verify(t.Context(), app.Default(dir))
			if err != nil || len(audits) != 1 {
				t.Fatalf("got %+v, %v", audits, err)
			}
			kinds := map[string]bool{}
			for _, f := range audits[0].Findings() {
				kinds[f.Kind] = true
			}
			for _, kind := range c.finds {
				if !kinds[kind] {
					t.Errorf("verify found %v, want %s", audits[0].Findings(), kind)
				}
			}
			if len(c.finds) == 0 && !(audits[0].OK() && len(audits[0].Unchecked()) == 0) || len(c.finds) > 0 && audits[0].OK() {
				t.Errorf("verify found %+v, unchecked %q", audits[0].Findings(), audits[0].Unchecked())
			}
			if got := reopen(t, dir); got != c.starts {
				t.Errorf("the start answers %q, want %q", got, c.starts)
			}
		})
	}
}

// A log that cannot be checked is never called intact.
func TestWhatIsUncheckedIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		ok     bool // nothing is found
		says   string
	}{
		"the keys of all events": {func(t *testing.T, dir string) {
			for _, file := range glob(t, dir, "keys", "events+*") {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}, true, "the data of"},
		"projections of another version": {func(t *testing.T, dir string) {
			behind(t, dir, `UPDATE projections SET version = version + 1`)
		}, true, "were made by another version"},
		"the last checkpoint gone": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "proofs", "ws_dev", "checkpoint")); err != nil {
				t.Fatal(err)
			}
		}, true, "there is none of this workspace"},
		"everything gone that signs and was signed": {func(t *testing.T, dir string) {
			for _, file := range []string{"proofs", "signing.key", "signing.pub"} {
				if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
			}
		}, true, "there is none of this workspace"},
		"the log cut, and what signed it gone": {func(t *testing.T, dir string) {
			for _, file := range []string{filepath.Join(dir, "proofs"), filepath.Join(dir, "signing.key"), filepath.Join(dir, "signing.pub")} {
				if err := os.RemoveAll(file); err != nil {
					t.Fatal(err)
				}
			}
			behind(t, dir, `DROP TRIGGER events_no_delete; `+bodiesFree+`
				DELETE FROM bodies WHERE place = (SELECT max(place) FROM events);
				UPDATE workspaces SET head = head - 1;
				UPDATE streams SET head = head - 1 WHERE no = (SELECT stream FROM events ORDER BY place DESC LIMIT 1);
				DELETE FROM events WHERE place = (SELECT max(place) FROM events);
				CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END`+bodiesHeld)
		}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := stopped(t)
			c.change(t, dir)
			audits, err := app.Verify(t.Context(), app.Default(dir))
			if err != nil || len(audits) != 1 {
				t.Fatalf("got %+v, %v", audits, err)
			}
			if audits[0].OK() != c.ok || c.says != "" && !strings.Contains(strings.Join(audits[0].Unchecked(), "\n"), c.says) {
				t.Errorf("found %+v, unchecked %q, want %v and %q", audits[0].Findings(), audits[0].Unchecked(), c.ok, c.says)
			}
		})
	}
}

func glob(t *testing.T, parts ...string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(parts...))
	if err != nil || len(found) == 0 {
		t.Fatalf("%v: %v, %v", parts, found, err)
	}
	return found
}
