package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/host"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// Marks of a database file: that it is a log of Agentbox, and the version of its tables.
const (
	applicationID = 0x41676278 // "Agbx"
	schemaVersion = 5
)

// oldestSQLite is the first release without the WAL-reset bug, which could lose committed transactions.
const oldestSQLite = "3.51.3"

// busyTimeout is how long a commit waits for another program that has the file locked, such as a shell of SQLite.
const busyTimeout = 5 * time.Second

const (
	readers        = 4        // connections that read at the same time, beside the planner's
	writerCachePgs = 16 << 10 // KiB of pages that the committer keeps
	readerCachePgs = 4 << 10  // KiB of pages that each reader keeps
)

// The refusals of Open.
var (
	// ErrInUse means that another process has the log open.
	ErrInUse = fault.New(fault.Conflict, "log_in_use", "another daemon has this data directory open; stop it first, or use another one")
	// ErrNewer means that a newer Agentbox wrote the log.
	ErrNewer = fault.New(fault.Conflict, "log_too_new",
		"a newer version of Agentbox wrote this log; use that version, or restore a backup made with this one")
	// ErrEmpty means that the file holds no log, although there has to be one.
	ErrEmpty = fault.New(fault.Conflict, "log_empty", "the file holds no log, although there was one")
	// ErrForeign means that the file is some other program's database.
	ErrForeign = fault.New(fault.Invalid, "log_foreign", "the file is not a log of Agentbox")
)

//go:embed schema.sql
var schema string

// Options say what to open.
type Options struct {
	Path        string                  // of the database file; others of the same name and a suffix lie beside it
	Definitions []projection.Definition // of the documents
	Clock       event.Clock
	IDs         *id.Source
	Entropy     io.Reader  // of the salts
	Existing    bool       // there has to be a log already: an empty file is ErrEmpty and stays as it is
	Keys        vault.Keys // bodies are sealed under them; nil leaves bodies as they are, and cannot open sealed ones
	VFS         string     // name of a registered SQLite VFS; empty for the operating system's files

	Committed func(batches int, took time.Duration) // the syncer calls it after each durable commit and waits for it; may be nil
}

// Open opens the log for writing, makes it where there is none, rebuilds the documents whose definition has a new version, and takes the
// lock that keeps a second daemon out.
func Open(ctx context.Context, o Options) (*Journal, error) {
	set, err := projection.NewSet(o.Definitions)
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(o.Path + ".lock")
	if err != nil {
		return nil, err
	}
	j := newJournal(o, set)
	j.file.lock = lock
	if err := j.open(ctx); err != nil {
		return nil, errors.Join(err, j.release())
	}
	j.planning.working.Go(j.planning.run)
	j.planning.working.Go(j.committer.run)
	j.planning.working.Go(j.syncer.run)
	j.committer.moving.Go(j.committer.move)
	return j, nil
}

// OpenReadOnly opens a log to look at, beside a daemon or without one. It appends nothing, waits for nothing, and leaves the database as
// it is.
func OpenReadOnly(ctx context.Context, o Options) (*Journal, error) {
	set, err := projection.NewSet(o.Definitions)
	if err != nil {
		return nil, err
	}
	j := newJournal(o, set)
	j.file.readOnly, j.views.shelf.off = true, true // another process may write what would be kept
	if err := j.openReadOnly(ctx); err != nil {
		return nil, errors.Join(err, j.release())
	}
	return j, nil
}

func (j *Journal) open(ctx context.Context) error {
	// The write-ahead log gets the mode of this file; what events hold is nobody else's business.
	file, err := os.OpenFile(j.file.options.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	conn, err := j.file.writer()
	if err != nil {
		return err
	}
	j.committer.w = newConnection(conn, &j.file.seals)
	if err := j.file.migrate(conn); err != nil {
		return err
	}
	if err := ownSchema(conn); err != nil {
		return err
	}
	if err := j.committer.countUnindexed(); err != nil {
		return err
	}
	if err := j.file.holdsKeys(); err != nil {
		return err
	}
	if j.planning.ledger.r, err = j.file.reader(); err != nil {
		return err
	}
	if err := j.folds.open(ctx); err != nil {
		return err
	}
	if err := j.planning.ledger.load(ctx, j.planning.ledger.r); err != nil {
		return err
	}
	j.views.watch.load(j.planning.ledger.tenants)
	if err := j.syncer.durable.open(conn); err != nil {
		return err
	}
	return j.committer.openMover()
}

func (j *Journal) openReadOnly(ctx context.Context) error {
	conn, err := j.file.connect(sqlite3.OPEN_READWRITE)
	if host.ReadOnly(err) {
		conn, err = j.file.connectUnwritable()
	}
	if err != nil {
		return err
	}
	j.committer.w = newConnection(conn, &j.file.seals)
	if _, err := conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return fmt.Errorf("keep the log as it is: %w", err)
	}
	version, err := schemaOf(conn)
	if err != nil {
		return err
	}
	if version == 0 {
		return ErrForeign
	}
	// An older one is read as if it had the tables of today, which are laid over it for this connection only.
	for ; version < schemaVersion; version++ {
		if err := conn.Exec(laidOver[version]); err != nil {
			return fmt.Errorf("open the log for reading: %w", err)
		}
	}
	if err := conn.Exec(`PRAGMA query_only = ON`); err != nil {
		return fmt.Errorf("open the log for reading: %w", err)
	}
	// One snapshot serves all reads, so that the log of a working daemon does not look torn.
	if err := conn.Exec(`BEGIN; SELECT count(*) FROM workspaces`); err != nil {
		return fmt.Errorf("open the log for reading: %w", err)
	}
	if err := j.planning.ledger.load(ctx, j.committer.w); err != nil {
		return err
	}
	j.views.watch.load(j.planning.ledger.tenants)
	j.views.pool = make(chan *connection, 1)
	j.views.pool <- j.committer.w
	return nil
}

// newEnough refuses a SQLite that is known to lose transactions.
func newEnough(conn *sqlite3.Conn) error {
	version, err := pragma(conn, `SELECT sqlite_version()`)
	if err != nil {
		return err
	}
	if older(version, oldestSQLite) {
		return fault.New(fault.Internal, "sqlite_too_old", "SQLite %s can lose committed data; %s or newer is needed", version, oldestSQLite)
	}
	return nil
}

// older compares two versions of numbers with dots between.
func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		var x, y int
		if i < len(as) {
			x, _ = strconv.Atoi(as[i])
		}
		if i < len(bs) {
			y, _ = strconv.Atoi(bs[i])
		}
		if x != y {
			return x < y
		}
	}
	return false
}

// settle sets what durability rests on and reads it back, for SQLite ignores a pragma that it cannot fulfil.
func settle(conn *sqlite3.Conn) error {
	for _, p := range []struct{ name, set, want string }{
		{"journal_mode", "WAL", "wal"},
		{"synchronous", "FULL", "2"},
		{"mmap_size", "0", "0"},
		{"wal_autocheckpoint", "0", "0"},
		{"recursive_triggers", "ON", "1"}, // else REPLACE deletes rows without asking the triggers
		{"trusted_schema", "OFF", "0"},
		{"secure_delete", "ON", "1"}, // redacted parts of a document must not lie in the file's gaps
		{"cache_size", "-" + strconv.Itoa(writerCachePgs), "-" + strconv.Itoa(writerCachePgs)},
		{"journal_size_limit", strconv.Itoa(walCap), strconv.Itoa(walCap)},
	} {
		if err := conn.Exec("PRAGMA " + p.name + " = " + p.set); err != nil {
			return fmt.Errorf("set %s: %w", p.name, err)
		}
		got, err := pragma(conn, "PRAGMA "+p.name)
		if err != nil {
			return err
		}
		if got != p.want && !(p.name == "mmap_size" && got == "") {
			return fault.New(fault.Internal, "log_not_durable", "the log cannot be kept safely here: %s is %s and has to be %s", p.name, got, p.want)
		}
	}
	return nil
}

// schemaOf returns the version of the tables, 0 for an empty file, and refuses a file that is not ours or newer than this program.
func schemaOf(conn *sqlite3.Conn) (int, error) {
	var found [3]int
	for i, sql := range []string{`PRAGMA application_id`, `PRAGMA user_version`, `SELECT count(*) FROM sqlite_schema`} {
		text, err := pragma(conn, sql)
		if err != nil {
			return 0, err
		}
		if found[i], err = strconv.Atoi(text); err != nil {
			return 0, fmt.Errorf("%s: %w", sql, err)
		}
	}
	app, version, tables := found[0], found[1], found[2]
	switch {
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != applicationID || version < 1:
		return 0, ErrForeign
	case version > schemaVersion:
		return 0, ErrNewer
	}
	return version, nil
}

// pragma returns the first column of the first row as text, "" where there is no row.
func pragma(conn *sqlite3.Conn, sql string) (text string, err error) {
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		if errors.Is(err, sqlite3.NOTADB) {
			return "", ErrForeign
		}
		return "", fmt.Errorf("%s: %w", sql, err)
	}
	if stmt.Step() {
		text = stmt.ColumnText(0)
	}
	if err := errors.Join(stmt.Err(), stmt.Close()); err != nil {
		if errors.Is(err, sqlite3.NOTADB) {
			return "", ErrForeign
		}
		return "", fmt.Errorf("%s: %w", sql, err)
	}
	return text, nil
}

var (
	_ journal.Journal    = (*Journal)(nil)
	_ projection.Indexed = (*Journal)(nil)
)
