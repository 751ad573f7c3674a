package postgres_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/testkit/pgtest"
)

// database is a connection for what no daemon does.
func database(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err == nil {
		_, err = conn.Exec(t.Context(), `SET search_path = agentbox`)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// The log is append-only for programs that reach the database, and changes in spite of that are found.
func TestAppendOnly(t *testing.T) {
	address, keys := pgtest.Start(t).Database(), memory.NewKeys(rand.Reader)
	j := daemon(t, address, keys)
	keyed := journaltest.InRoom(journaltest.Room, "one").About("note", "n").In("run_1", "step_1")
	keyed.IdempotencyKey, keyed.Thread = "key", "th_1"
	r, err := j.Append(t.Context(), journaltest.Batch(keyed, journaltest.Draft("two").About("note", "n"), journaltest.Draft("three")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), journaltest.Batch(event.RedactionOf(event.Origin{Principal: journaltest.User}, r.Events[1], "told to",
		nil))); err != nil {
		t.Fatal(err)
	}
	db := database(t, address)
	for _, sql := range []string{
		`UPDATE events SET type = 'a.b'`, `DELETE FROM events`, `TRUNCATE events`, `UPDATE bodies SET body = ''`,
		`DELETE FROM bodies WHERE seq = 1`, `DELETE FROM bodies`, `TRUNCATE bodies`,
		`UPDATE redactions SET seq = 1`, `UPDATE redactions SET by_seq = 1`, `UPDATE redactions SET done = -1`, `DELETE FROM redactions`,
		`TRUNCATE redactions`,
		`SET session_replication_role = replica; DELETE FROM events`, `SET session_replication_role = replica; DELETE FROM bodies WHERE seq = 1`,
	} {
		if _, err := db.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want that it is refused", sql, err)
		}
	}
	if found, err := j.Misfiled(t.Context(), journaltest.Workspace, 10); err != nil || len(found) != 0 {
		t.Errorf("nothing was changed: %+v, %v", found, err)
	}
	// Who owns the database can put the triggers aside.
	for _, sql := range []string{
		`ALTER TABLE events DISABLE TRIGGER ALL`,
		`UPDATE events SET stream = (SELECT no FROM streams WHERE type = 'workspace') , stream_seq = 99 WHERE seq = 1`,
		`UPDATE events SET step = 'step_2' WHERE seq = 1`, `DELETE FROM event_keys`,
		`INSERT INTO event_keys SELECT no, unnest(ARRAY['forged', 'another']), unnest(ARRAY[2, 3]) FROM workspaces`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	found, err := j.Misfiled(t.Context(), journaltest.Workspace, 10)
	if err != nil || len(found) != 5 || found[0].Seq != 1 || !found[0].Stream || !found[1].Stream || found[2].Stream || found[3].Seq != 2 ||
		found[3].Stream {
		t.Errorf("misfiled are %+v, %v", found, err)
	}
	if found, err := j.Misfiled(t.Context(), journaltest.Workspace, 1); err != nil || len(found) != 1 {
		t.Errorf("one of them: %+v, %v", found, err)
	}
	for _, sql := range []string{`UPDATE events SET record = set_byte(record, length(record) - 1, get_byte(record, length(record) - 1) # 1) ` +
		`WHERE seq = 3`} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	_, err = j.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, From: 3})
	if damage, ok := errors.AsType[*journal.Damage](err); !ok || damage.Seq != 3 {
		t.Errorf("a changed record: %v", err)
	}
	for _, sql := range []string{`ALTER TABLE bodies DISABLE TRIGGER ALL`,
		`UPDATE bodies SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE seq = 1`} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	_, err = j.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, Limit: 1})
	if damage, ok := errors.AsType[*journal.Damage](err); !ok || damage.Seq != 1 {
		t.Errorf("a changed body: %v", err)
	}
}

// After a redaction has returned, nobody can find the text, even with every file of the server and the keys: neither in dead rows nor in
// the write-ahead log. Before the redaction, the keys are needed and are enough.
func TestRedactionLeavesNothingReadable(t *testing.T) {
	const secret = "a text that is to be forgotten"
	server := pgtest.Start(t)
	address, dir := server.Database(), filepath.Join(t.TempDir(), "keys")
	keys, err := keyring.Open(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	j := daemon(t, address, keys)
	r, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft(secret).About("note", "n"), journaltest.Draft("open").About("note",
		"n")))
	if err != nil {
		t.Fatal(err)
	}
	// A copy of the database as it was, with the keys of then and of now.
	dump := server.Dump(address)
	before := filepath.Join(t.TempDir(), "before")
	if err := keyring.Copy(dir, before); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), journaltest.Batch(event.RedactionOf(event.Origin{Principal: journaltest.User}, r.Events[0], "told to",
		nil))); err != nil {
		t.Fatal(err)
	}
	if err := j.Redact(t.Context(), journaltest.Workspace, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	holds(t, server.Files(), secret)
	if strings.Contains(string(dump), secret) || strings.Contains(string(dump), hex.EncodeToString([]byte(secret))) {
		t.Error("a dump holds the text")
	}
	// A document of a copy that is older than the keys is refused, and says what to do; without its documents the copy is folded anew.
	copied := server.Database()
	server.Load(copied, dump)
	of := func(dir string) (*postgres.Journal, error) {
		k, err := keyring.Open(dir, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return postgres.Open(t.Context(), optionsAt(copied, k))
	}
	old, err := of(before)
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := old.Document(t.Context(), journaltest.Workspace, "notes", "n"); err != nil || !strings.Contains(string(doc.Body), secret) {
		t.Errorf("with the keys of then: %s, %v", doc.Body, err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	late, err := of(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Document(t.Context(), journaltest.Workspace, "notes", "n"); fault.CodeOf(err) != "documents_stale" {
		t.Errorf("with the keys of now: %v, want documents_stale", err)
	}
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := database(t, copied).Exec(t.Context(), `DELETE FROM documents; DELETE FROM entries; DELETE FROM projections`); err != nil {
		t.Fatal(err)
	}
	if late, err = of(dir); err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if doc, err := late.Document(t.Context(), journaltest.Workspace, "notes", "n"); err != nil || strings.Contains(string(doc.Body), secret) ||
		doc.Version != 2 {
		t.Errorf("folded anew: %+v, %s, %v", doc, doc.Body, err)
	}
	if e, err := late.Get(t.Context(), journaltest.Workspace, r.Events[0].ID); err != nil || e.Withheld != event.Destroyed {
		t.Errorf("the event is %+v, %v", e, err)
	}
}

// holds looks for a text in every file below a folder.
func holds(t *testing.T, dir, text string) {
	t.Helper()
	files := 0
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if files++; bytes.Contains(raw, []byte(text)) {
			t.Errorf("%s holds the text", path)
		}
		return err
	}); err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// A log in which there is more than there should be is refused, and so is one that is not there.
func TestOpenRefuses(t *testing.T) {
	server := pgtest.Start(t)
	address, keys := server.Database(), memory.NewKeys(rand.Reader)
	existing := optionsAt(address, keys)
	existing.Existing = true
	if _, err := postgres.Open(t.Context(), existing); !errors.Is(err, postgres.ErrEmpty) {
		t.Errorf("a database without a log that should have one: %v, want %v", err, postgres.ErrEmpty)
	}
	if _, err := postgres.OpenReadOnly(t.Context(), optionsAt(address, keys)); !errors.Is(err, postgres.ErrEmpty) {
		t.Errorf("to look at: %v, want %v", err, postgres.ErrEmpty)
	}
	for _, wrong := range []string{"postgres://%zz", "host='", "postgres://localhost:port/x"} {
		if _, err := postgres.Open(t.Context(), optionsAt(wrong, keys)); !errors.Is(err, postgres.ErrAddress) {
			t.Errorf("%s: %v, want %v", wrong, err, postgres.ErrAddress)
		}
	}
	if _, err := postgres.Open(t.Context(), optionsAt("postgres://secret:word@127.0.0.1:1/x", keys)); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("nobody listens: %v, want %v", err, journal.ErrClosed)
	}
	j := daemon(t, address, keys)
	if _, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("x"))); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), optionsAt(address, memory.NewKeys(rand.Reader))); !errors.Is(err, postgres.ErrForeignKeys) {
		t.Errorf("other keys: %v, want %v", err, postgres.ErrForeignKeys)
	}
	if _, err := postgres.Open(t.Context(), optionsAt(address, nil)); err == nil {
		t.Error("it opened without keys")
	}
	look, err := postgres.OpenReadOnly(t.Context(), optionsAt(address, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	if _, err := look.Append(t.Context(), journaltest.Batch(journaltest.Draft("x"))); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("who looks appends: %v, want %v", err, journal.ErrClosed)
	}
	if e, err := look.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace}); err != nil || len(e) != 1 ||
		e[0].Withheld != event.Sealed {
		t.Errorf("who looks without keys sees %+v, %v", e, err)
	}
	if _, err := database(t, address).Exec(t.Context(),
		`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)`); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), optionsAt(address, keys)); !errors.Is(err, postgres.ErrNewer) {
		t.Errorf("a newer log: %v, want %v", err, postgres.ErrNewer)
	}
	unsafe := pgtest.Start(t, "fsync=off")
	if _, err := postgres.Open(t.Context(), optionsAt(unsafe.Database(), keys)); fault.CodeOf(err) != "log_not_durable" {
		t.Errorf("a server that does not sync: %v, want log_not_durable", err)
	}
	lazy := pgtest.Start(t, "synchronous_commit=off")
	if err := daemon(t, lazy.Database(), keys).Writable(); err != nil {
		t.Errorf("a server that commits late is told not to: %v", err)
	}
}

// Code in the schema that is not the log's is found by a verification, and refused when the log is opened.
func TestForeignCode(t *testing.T) {
	server := pgtest.Start(t)
	for name, c := range map[string]struct{ sql, want string }{
		"nothing": {``, ""},
		"a trigger": {`CREATE TRIGGER mine BEFORE INSERT ON bodies EXECUTE FUNCTION append_only()`,
			"the trigger bodies.mine is not the log's"},
		"a function": {`CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'`, "the function mine is not the log's"},
		"a function replaced": {`CREATE OR REPLACE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$`,
			"the function append_only is defined in another way than the log's"},
		"a trigger disabled": {`ALTER TABLE events DISABLE TRIGGER append_only`,
			"the trigger events.append_only is defined in another way than the log's"},
		"a trigger dropped": {`DROP TRIGGER append_only ON events`, "the trigger events.append_only of the log is missing"},
		"a trigger that guards less": {`DROP TRIGGER append_only ON events; CREATE TRIGGER append_only BEFORE DELETE ON events EXECUTE ` +
			`FUNCTION append_only()`,
			"the trigger events.append_only is defined in another way than the log's"},
		"a rule": {`CREATE RULE mine AS ON INSERT TO bodies DO ALSO NOTHING`, "the rule bodies.mine is not the log's"},
		"a view": {`CREATE VIEW mine AS SELECT 1 AS x`, "the view mine is not the log's"},
	} {
		t.Run(name, func(t *testing.T) {
			address, keys := server.Database(), memory.NewKeys(rand.Reader)
			if err := daemon(t, address, keys).Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := database(t, address).Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			look, err := postgres.OpenReadOnly(t.Context(), postgres.Options{Address: address, Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			said, err := look.Foreign(t.Context())
			if err := errors.Join(err, look.Close()); err != nil || strings.Join(said, "; ") != c.want {
				t.Errorf("got %q, %v, want %q", said, err, c.want)
			}
			again, err := postgres.Open(t.Context(), postgres.Options{Address: address, Keys: keys, Existing: true})
			if err == nil {
				err = again.Close()
			}
			if want := "log_schema_changed"; c.want != "" && fault.CodeOf(err) != want || c.want == "" && fault.CodeOf(err) == want {
				t.Errorf("opened: %v", err)
			}
		})
	}
}
