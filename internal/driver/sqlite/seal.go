package sqlite

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"sync"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// A body is AES-256-GCM over the salt and the data, under the key of the leaf `seq` in its workspace's tree of keys. The nonce is the
// beginning of the commitment, a hash of salt and data: a place that is written a second time, because a commit failed or a power cut took
// it, has the same key and another salt, so that no nonce is ever used for two texts. It also ties the body to its event.
const nonceBytes = 12

// treeOf names the tree of keys for the bodies of a workspace.
func treeOf(ws id.Workspace) string { return "events/" + string(ws) }

// sealer seals and opens bodies. Without keys it writes them as they are, and cannot open what is sealed.
type sealer struct {
	keys vault.Keys

	mu          sync.Mutex // guards generations
	generations map[id.Workspace]vault.Generation
}

// errTampered means that a body is not the one that was sealed for its event.
var errTampered = errors.New("the body is not the one that was sealed")

func aead(key [vault.KeyBytes]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// generation returns that under which new bodies of a workspace are sealed, 0 for none.
func (s *sealer) generation(ws id.Workspace) (vault.Generation, error) {
	if s.keys == nil {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.generations[ws]; g != 0 {
		return g, nil
	}
	g, err := s.keys.Plant(treeOf(ws))
	if err != nil {
		return 0, err
	}
	if s.generations == nil {
		s.generations = map[id.Workspace]vault.Generation{}
	}
	s.generations[ws] = g
	return g, nil
}

// seal appends the body of an event to dst, and tells the generation that sealed it; 0 for none.
func (s *sealer) seal(dst []byte, e *event.Event) ([]byte, vault.Generation, error) {
	g, err := s.generation(e.Workspace)
	if err != nil {
		return dst, 0, err
	}
	from := len(dst)
	dst = bodyOf(dst, e)
	if g == 0 {
		return dst, 0, nil
	}
	key, err := s.keys.Key(treeOf(e.Workspace), g, e.Seq)
	if err != nil {
		return dst, 0, err
	}
	cipher, err := aead(key)
	if err != nil {
		return dst, 0, err
	}
	return append(dst[:from], cipher.Seal(dst[from:from], e.Chain.Commitment[:nonceBytes], dst[from:], nil)...), g, nil
}

// open returns the salt and the data of a sealed body, in the bytes that it is given. The error is vault.ErrForgotten, vault.ErrMissing or
// errTampered.
func (s *sealer) open(ws id.Workspace, seq uint64, commitment event.Digest, g vault.Generation, body []byte) ([]byte, error) {
	if s.keys == nil {
		return nil, vault.ErrMissing
	}
	key, err := s.keys.Key(treeOf(ws), g, seq)
	if err != nil {
		return nil, err
	}
	cipher, err := aead(key)
	if err != nil {
		return nil, err
	}
	if body, err = cipher.Open(body[:0], commitment[:nonceBytes], body, nil); err != nil {
		return nil, errTampered
	}
	return body, nil
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
		opened, err := c.seals.open(e.Workspace, e.Seq, e.Chain.Commitment, vault.Generation(row.ColumnInt64(column+1)), body)
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
		case errors.Is(err, errTampered):
			return damaged("its data are not those that were sealed for it")
		case err != nil:
			return err
		}
		body = opened
	}
	salt, data, ok := splitBody(body)
	if !ok {
		return damaged("its data are missing")
	}
	e.Chain.Salt, e.Data = salt, data
	return nil
}

// remains returns what the redaction of the event at a place has left of its data; false where none is recorded.
func (c *connection) remains(ws id.Workspace, place int64) ([]byte, bool, error) {
	by := int64(0)
	if found, err := c.one(func(s *sqlite3.Stmt) { by = s.ColumnInt64(0) }, `SELECT by FROM redactions WHERE place = ?`, place); err != nil || !found {
		return nil, false, err
	}
	var record event.Event
	var bad error
	found, err := c.one(func(s *sqlite3.Stmt) { bad = c.scanEvent(s, ws, &record) }, `SELECT `+eventColumns+` FROM events e`+eventTables+` WHERE e.place = ?`, by)
	if err := errors.Join(err, bad); err != nil || !found || record.Type != event.RedactedType {
		return nil, false, err
	}
	if record.Withheld != "" {
		return nil, true, nil
	}
	redacted, err := event.Decode[event.Redacted](record)
	return redacted.Remains, err == nil, err
}

// holdsKeys refuses a log whose keys are not here: what was decided in it would be unknown.
func (j *Journal) holdsKeys() error {
	names := map[int64]id.Workspace{}
	rows, err := j.w.rows(`SELECT no, name FROM workspaces`)
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
		_, err := j.w.one(func(s *sqlite3.Stmt) {
			if j.seals.keys == nil {
				missing = vault.ErrMissing
			} else if _, err := j.seals.keys.Key(treeOf(ws), vault.Generation(s.ColumnInt64(1)), uint64(s.ColumnInt64(0))&maxSeq); errors.Is(err, vault.ErrMissing) {
				missing = err
			}
		}, `SELECT place, generation FROM bodies WHERE generation IS NOT NULL AND place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1`, placeOf(no, 1), placeOf(no, maxSeq))
		if err := errors.Join(err, missing); err != nil {
			return err
		}
	}
	return nil
}
