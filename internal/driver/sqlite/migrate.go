package sqlite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// migrate brings the tables to this program's version, in one transaction.
func (fl *file) migrate(conn *sqlite3.Conn) error {
	version, err := schemaOf(conn)
	if err != nil {
		return err
	}
	if version == schemaVersion {
		return nil
	}
	if version == 0 {
		if fl.options.Existing {
			return ErrEmpty
		}
		script := fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;\nCOMMIT;", schema, applicationID,
			schemaVersion)
		if err := conn.Exec(script); err != nil {
			return fmt.Errorf("make the tables of the log: %w", err)
		}
		return nil
	}
	if version == 1 {
		if err := fl.sealAll(conn); err != nil {
			return fmt.Errorf("seal the log of an earlier version: %w", err)
		}
	}
	if version < 3 {
		if err := conn.Exec(toVersion3); err != nil {
			return errors.Join(fmt.Errorf("add to the tables of an earlier version: %w", err), undo(conn))
		}
	}
	if err := fl.postMore(conn, version); err != nil {
		return errors.Join(fmt.Errorf("add to the postings of an earlier version: %w", err), undo(conn))
	}
	return nil
}

func undo(conn *sqlite3.Conn) error {
	if conn.GetAutocommit() {
		return nil
	}
	return conn.Exec(`ROLLBACK`)
}

// toVersion3 notes that the tables of version 2 do not lag behind the events.
const toVersion3 = `BEGIN IMMEDIATE;
ALTER TABLE workspaces ADD COLUMN flushed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workspaces ADD COLUMN last BLOB NOT NULL DEFAULT x'';
UPDATE workspaces SET flushed = head, last = ` + lastOfVersion2 + `;
PRAGMA user_version = 3;
COMMIT`

// lastOfVersion2 is the event_hash of the last event of a workspace, as its record has it; a missing one stays missing.
const lastOfVersion2 = `coalesce((SELECT substr(record, -40, 32) FROM events WHERE place = (workspaces.no << 40) + workspaces.head), x'')`

// laidOver makes the tables of each version look like those of the next version.
var laidOver = map[int]string{
	1: asOfVersion1,
	2: `CREATE TEMP VIEW workspaces AS SELECT no, name, head, 0 AS indexed, head AS flushed, ` + lastOfVersion2 +
		` AS last FROM main.workspaces`,
	// version 3 lacks some postings
	3: `CREATE TEMP VIEW IF NOT EXISTS workspaces AS SELECT no, name, head, 0 AS indexed, flushed, last FROM main.workspaces`,
	4: `CREATE TEMP VIEW IF NOT EXISTS workspaces AS SELECT no, name, head, 0 AS indexed, flushed, last FROM main.workspaces`, // version 4 too
}

// postedAtOnce is how many events postMore reads into memory at once.
const postedAtOnce = 16 << 10

// postMore writes the postings that versions 3 and 4 lack: those of steps, threads and causes.
func (fl *file) postMore(conn *sqlite3.Conn, version int) error {
	missing := int64(postedStep)
	if version == 4 {
		missing = postedCausation
	}
	if err := conn.Exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	posted := map[int64]int64{}
	rows, err := fl.committer.w.rows(`SELECT no, indexed FROM workspaces`)
	if err != nil {
		return err
	}
	for rows.Step() {
		posted[rows.ColumnInt64(0)] = rows.ColumnInt64(1)
	}
	if err := finish(rows); err != nil {
		return err
	}
	for no, indexed := range posted {
		for first := int64(1); first <= indexed; first += postedAtOnce {
			from, to := placeOf(no, uint64(first)), placeOf(no, uint64(min(indexed, first+postedAtOnce-1)))
			events, err := fl.committer.w.located(from, to)
			if err != nil {
				return err
			}
			postings, err := gather(events, from, to)
			if err != nil {
				return err
			}
			if err := fl.committer.w.post(slices.DeleteFunc(postings, func(p *posting) bool { return p.kind < missing })); err != nil {
				return err
			}
		}
	}
	return conn.Exec(`PRAGMA user_version = 5; COMMIT`)
}

// asOfVersion1 lays the tables of version 2 over a log of version 1, in which no body is sealed.
const asOfVersion1 = `
CREATE TEMP VIEW bodies AS SELECT place, body, NULL AS generation FROM main.bodies;
CREATE TEMP TABLE redactions (place INTEGER PRIMARY KEY, by INTEGER NOT NULL, done INTEGER NOT NULL);`

// toVersion2 makes the tables of version 2 from those of version 1, without the contents of the bodies.
const toVersion2 = `
DROP TRIGGER bodies_no_update;
DROP TRIGGER bodies_no_delete;
ALTER TABLE bodies ADD COLUMN generation INTEGER;
CREATE TABLE redactions (
  place INTEGER PRIMARY KEY,
  by    INTEGER NOT NULL,
  done  INTEGER NOT NULL
) STRICT;
CREATE INDEX redactions_open ON redactions (place) WHERE done < 2;`

// theTriggers are the triggers of version 2 that version 1 lacks.
const theTriggers = `
CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies WHEN NOT EXISTS (SELECT 1 FROM redactions WHERE place = OLD.place)
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER redactions_no_update BEFORE UPDATE ON redactions WHEN NEW.place <> OLD.place OR NEW.by <> OLD.by OR NEW.done < OLD.done
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER redactions_no_delete BEFORE DELETE ON redactions BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;`

// sealAll seals every body of a log of version 1. It clears the unused pages of the file first, because that version left contents of
// documents in them. The pages that it overwrites afterwards leave nothing.
func (fl *file) sealAll(conn *sqlite3.Conn) (err error) {
	if err := conn.Exec(`VACUUM; BEGIN IMMEDIATE;` + toVersion2); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, undo(conn))
		}
	}()
	names := map[int64]id.Workspace{}
	workspaces, err := fl.committer.w.rows(`SELECT no, name FROM workspaces`)
	if err != nil {
		return err
	}
	for workspaces.Step() {
		names[workspaces.ColumnInt64(0)] = id.Workspace(workspaces.ColumnText(1))
	}
	if err := finish(workspaces); err != nil {
		return err
	}
	for last := int64(0); fl.seals.Keys != nil; {
		rows, err := fl.committer.w.rows(`SELECT place, body FROM bodies WHERE place > ? ORDER BY place LIMIT 1000`, last)
		if err != nil {
			return err
		}
		type plain struct {
			place int64
			event event.Event
		}
		var found []plain
		for rows.Step() {
			last = rows.ColumnInt64(0)
			p := plain{place: last}
			p.event.Workspace, p.event.Seq = names[last>>seqBits], uint64(last)&maxSeq
			if salt, data, ok := journal.SplitBody(rows.ColumnBlob(1, nil)); ok {
				p.event.Chain.Salt, p.event.Data, p.event.Chain.Commitment = salt, data, journal.Commit(salt, data)
			}
			found = append(found, p)
		}
		if err := finish(rows); err != nil {
			return err
		}
		if len(found) == 0 {
			break
		}
		for i := range found {
			p := &found[i]
			if p.event.Workspace == "" || p.event.Chain.Salt == nil {
				continue // it is damaged, and stays so
			}
			body, generation, err := seal(&fl.seals, nil, &p.event)
			if err != nil {
				return err
			}
			if err := fl.committer.w.exec(`UPDATE bodies SET body = ?, generation = ? WHERE place = ?`, body, int64(generation),
				p.place); err != nil {
				return err
			}
		}
	}
	if err := conn.Exec(theTriggers + "PRAGMA user_version = 2; COMMIT"); err != nil {
		return err
	}
	_, _, err = conn.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	return err
}
