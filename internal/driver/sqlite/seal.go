package sqlite

import (
	"errors"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// A body is AES-256-GCM over the salt and the data, under the key of the leaf `seq` in its workspace's tree of keys. The nonce is the
// beginning of the commitment, a hash of salt and data: a place that is written a second time, because a commit failed or a power cut took
// it, has the same key and another salt, so that no nonce is ever used for two texts. It also ties the body to its event.

// treeOf names the tree of keys for the bodies of a workspace.
func treeOf(ws id.Workspace) string { return "events/" + string(ws) }

// seal appends the body of an event to dst, and tells the generation that sealed it; 0 for none.
func seal(s *vault.Sealer, dst []byte, e *event.Event) ([]byte, vault.Generation, error) {
	from := len(dst)
	return s.Seal(journal.AppendBody(dst, e), from, treeOf(e.Workspace), e.Seq, e.Chain.Commitment[:vault.NonceBytes])
}

// fill gives an event the data of its row in bodies: the body in one column, the generation in the next.
func (c *connection) fill(e *event.Event, row *sqlite3.Stmt, column int) error {
	damaged := func(detail string) error {
		return &journal.Damage{Workspace: e.Workspace, Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, ID: e.ID, Detail: detail}
	}
	place := row.ColumnInt64(0)
	body := row.ColumnBlob(column, nil) // a copy, which the caller may keep
	if row.ColumnType(column) == sqlite3.NULL {
		remains, found, err := c.remains(e.Workspace, place)
		if err != nil || !found {
			return errors.Join(err, damaged("its data are missing"))
		}
		e.Withhold(event.Forgotten, remains)
		return nil
	}
	if row.ColumnType(column+1) != sqlite3.NULL {
		opened, err := c.seals.Open(treeOf(e.Workspace), vault.Generation(row.ColumnInt64(column+1)), e.Seq,
			e.Chain.Commitment[:vault.NonceBytes], body)
		switch {
		case errors.Is(err, vault.ErrForgotten):
			remains, recorded, err := c.remains(e.Workspace, place)
			if e.Withhold(event.Destroyed, remains); recorded {
				e.Withheld = event.Forgotten
			}
			return err
		case errors.Is(err, vault.ErrMissing):
			e.Withhold(event.Sealed, nil)
			return nil
		case errors.Is(err, vault.ErrTampered):
			return damaged("its data are not those that were sealed for it")
		case err != nil:
			return err
		}
		body = opened
	}
	salt, data, ok := journal.SplitBody(body)
	if !ok {
		return damaged("its data are missing")
	}
	e.Chain.Salt, e.Data = salt, data
	return nil
}

// remains returns the data that the redaction of the event at a place has left; false where none is recorded.
func (c *connection) remains(ws id.Workspace, place int64) ([]byte, bool, error) {
	by := int64(0)
	if found, err := c.one(func(s *sqlite3.Stmt) { by = s.ColumnInt64(0) }, `SELECT by FROM redactions WHERE place = ?`, place); err != nil ||
		!found {
		return nil, false, err
	}
	var record event.Event
	var bad error
	found, err := c.one(func(s *sqlite3.Stmt) { bad = c.scanEvent(s, ws, &record) }, `SELECT `+eventColumns+` FROM events e`+eventTables+
		` WHERE e.place = ?`, by)
	if err := errors.Join(err, bad); err != nil || !found || record.Type != event.RedactedType {
		return nil, false, err
	}
	if record.Withheld != "" {
		return nil, true, nil
	}
	redacted, err := event.Decode[event.Redacted](record)
	return redacted.Remains, err == nil, err
}

// holdsKeys refuses a log whose keys are not here: its decisions would be unknown.
func (fl *file) holdsKeys() error {
	names := map[int64]id.Workspace{}
	rows, err := fl.committer.w.rows(`SELECT no, name FROM workspaces`)
	if err != nil {
		return err
	}
	for rows.Step() {
		names[rows.ColumnInt64(0)] = id.Workspace(rows.ColumnText(1))
	}
	if err := finish(rows); err != nil {
		return err
	}
	for no, ws := range names {
		var missing error
		_, err := fl.committer.w.one(func(s *sqlite3.Stmt) {
			if fl.seals.Keys == nil {
				missing = vault.ErrMissing
			} else if _, err := fl.seals.Keys.Key(treeOf(ws), vault.Generation(s.ColumnInt64(1)), uint64(s.ColumnInt64(0))&maxSeq); errors.Is(err,
				vault.ErrMissing) {
				missing = err
			}
		}, `SELECT place, generation FROM bodies WHERE generation IS NOT NULL AND place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1`,
			placeOf(no, 1), placeOf(no, maxSeq))
		if err := errors.Join(err, missing); err != nil {
			return err
		}
	}
	return nil
}
