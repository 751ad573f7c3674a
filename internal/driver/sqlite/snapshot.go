package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Snapshot writes the log of one moment into a new file, beside a daemon or without one. The copy holds what the log holds and nothing
// else: no byte of what was deleted.
func Snapshot(ctx context.Context, o Options, target string) error {
	j := newJournal(o, nil)
	conn, err := j.connect(sqlite3.OPEN_READWRITE) // a log without a daemon may have to be put in order before it can be read
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

func snapshot(conn *sqlite3.Conn, target string) error {
	if _, err := conn.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return err
	}
	if version, err := schemaOf(conn); err != nil {
		return err
	} else if version == 0 {
		return ErrForeign
	}
	s, _, err := conn.Prepare(`VACUUM INTO ?`)
	if err != nil {
		return err
	}
	if err = s.BindText(1, target); err == nil {
		err = s.Exec()
	}
	return errors.Join(err, s.Close())
}
