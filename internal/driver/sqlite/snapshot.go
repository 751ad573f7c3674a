package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/fault"
)

// ErrOlder means that the log was written by an earlier version; version 1 did not seal its bodies.
var ErrOlder = fault.New(fault.Conflict, "log_too_old", "the log was written by an earlier version of Agentbox").
	With("start the daemon once with this version, then make the backup")

// copied are the tables of a copy, in the order in which their rows are read. The documents are not among them, nor what finds them: they
// are folded from the log, and hold in the clear what the log holds sealed.
var copied = []string{"workspaces", "streams", "types", "events", "postings", "bodies", "batches", "event_keys", "redactions"}

// Snapshot writes the log of one moment into a new file, beside a daemon or without one. The copy has the sealed records and no
// documents: opening it with its keys folds them anew.
func Snapshot(ctx context.Context, o Options, target string) error {
	j := newJournal(o, nil)
	conn, err := j.file.connect(sqlite3.OPEN_READWRITE) // a log without a daemon may have to be put in order before it can be read
	if err != nil {
		return err
	}
	conn.SetInterrupt(ctx)
	if err = snapshot(conn, target); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("copy the log: %w", err)
	}
	return nil
}

func snapshot(conn *sqlite3.Conn, target string) (err error) {
	if _, err := conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return err
	}
	switch version, err := schemaOf(conn); {
	case err != nil:
		return err
	case version == 0:
		return ErrForeign
	case version < schemaVersion:
		return ErrOlder
	}
	if err := emptyLog(target); err != nil {
		return err
	}
	attach, _, err := conn.Prepare(`ATTACH ? AS copy`)
	if err != nil {
		return err
	}
	if err = attach.BindText(1, target); err == nil {
		err = attach.Exec()
	}
	if err := errors.Join(err, attach.Close()); err != nil {
		return err
	}
	// Nobody knows of the copy before it is whole, so that it needs no journal of its own; one transaction reads one moment of the log.
	script := []string{`PRAGMA copy.journal_mode = OFF`, `PRAGMA copy.synchronous = OFF`, `BEGIN`}
	for _, table := range copied {
		script = append(script, `INSERT INTO copy.`+table+` SELECT * FROM main.`+table)
	}
	script = append(script, `COMMIT`, `DETACH copy`)
	return conn.Exec(strings.Join(script, "; "))
}

// emptyLog makes a log without events.
func emptyLog(path string) error {
	j := newJournal(Options{Path: path}, nil)
	conn, err := j.file.connect(sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE)
	if err != nil {
		return err
	}
	return errors.Join(j.file.migrate(conn), conn.Close())
}
