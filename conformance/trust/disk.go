package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

// database is the log of a data directory in the hands of an attacker with a shell of SQLite. No daemon may run on it.
type database struct {
	conn *sqlite3.Conn
	back []string // restores what open removed: a forger leaves no trace in the schema
}

// open opens the log and removes the guards that keep it append-only, until close.
func open(data string) (*database, error) {
	conn, err := sqlite3.Open(filepath.Join(data, "log.db"))
	if err != nil {
		return nil, err
	}
	db := &database{conn: conn}
	var triggers []string
	err = db.rows(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`, func(s *sqlite3.Stmt) {
		triggers, db.back = append(triggers, s.ColumnText(0)), append(db.back, s.ColumnText(1))
	})
	for _, name := range triggers {
		err = errors.Join(err, db.exec(`DROP TRIGGER "`+name+`"`))
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return db, nil
}

func (db *database) close() error {
	var err error
	for _, sql := range db.back {
		err = errors.Join(err, db.exec(sql))
	}
	return errors.Join(err, db.conn.Close())
}

func (db *database) exec(sql string) error { return db.conn.Exec(sql) }

// rows yields the rows of a query; an argument is a number, a text or bytes.
func (db *database) rows(sql string, each func(*sqlite3.Stmt), args ...any) error {
	s, _, err := db.conn.Prepare(sql)
	if err != nil {
		return err
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			err = errors.Join(err, s.BindInt64(i+1, v))
		case string:
			err = errors.Join(err, s.BindText(i+1, v))
		case []byte:
			err = errors.Join(err, s.BindBlob(i+1, v))
		default:
			err = errors.Join(err, fmt.Errorf("an argument is a %T", arg))
		}
	}
	for err == nil && s.Step() {
		if each != nil {
			each(s)
		}
	}
	return errors.Join(err, s.Close())
}

// changed runs a statement that has to change something.
func (db *database) changed(sql string, args ...any) error {
	if err := db.rows(sql, nil, args...); err != nil {
		return err
	}
	if db.conn.Changes() == 0 {
		return fmt.Errorf("nothing was changed by %s %v", sql, args)
	}
	return nil
}

// blob reads one value.
func (db *database) blob(sql string, args ...any) (raw []byte, err error) {
	err = db.rows(sql, func(s *sqlite3.Stmt) { raw = s.ColumnBlob(0, nil) }, args...)
	if err == nil && raw == nil {
		err = fmt.Errorf("nothing is found by %s %v", sql, args)
	}
	return raw, err
}

// number reads one number.
func (db *database) number(sql string, args ...any) (n int64, err error) {
	err = db.rows(sql, func(s *sqlite3.Stmt) { n = s.ColumnInt64(0) }, args...)
	return n, err
}

// document changes a document of a projection.
func (db *database) document(projection, key string, change func(doc map[string]any)) error {
	const where = ` WHERE key = ? AND projection = (SELECT no FROM projections WHERE name = ?)`
	raw, err := db.blob(`SELECT body FROM documents`+where, key, projection)
	if err != nil {
		return err
	}
	doc, err := decoded(raw)
	if err != nil {
		return err
	}
	change(doc)
	changed, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	if string(changed) == string(raw) {
		return fmt.Errorf("the document %s of %s was not changed", key, projection)
	}
	return db.changed(`UPDATE documents SET body = ?`+where, changed, key, projection)
}
