package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/fault"
)

// object is a table, an index, a trigger or a view of the database.
type object struct{ kind, name string }

// ownObjects returns the objects that this program makes, each with its definition.
func ownObjects() (map[object]string, error) {
	conn, err := sqlite3.Open(":memory:")
	if err != nil {
		return nil, err
	}
	if err := conn.Exec(schema); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	own, err := objectsOf(conn)
	return own, errors.Join(err, conn.Close())
}

// objectsOf reads the objects of a database with their definitions. The definition of a table is what its columns are, for a table that a
// migration has changed has another text than a new one. SQLite's own tables, which a person makes with ANALYZE, run no code and are left
// out.
func objectsOf(conn *sqlite3.Conn) (map[object]string, error) {
	found := map[object]string{}
	rows, _, err := conn.Prepare(`SELECT s.type, s.name, s.tbl_name, coalesce(s.sql, ''),
		coalesce((SELECT group_concat(c.name || ' ' || c.type || ' ' || c."notnull" || c.pk || c.hidden,
			', ') FROM pragma_table_xinfo(s.name) c), '')
		FROM main.sqlite_schema s WHERE s.name NOT LIKE 'sqlite_stat%'`)
	if err != nil {
		return nil, err
	}
	for rows.Step() {
		o := object{rows.ColumnText(0), rows.ColumnText(1)}
		switch o.kind {
		case "table":
			found[o] = rows.ColumnText(4)
			if strings.Contains(strings.ToUpper(rows.ColumnText(3)), "VIRTUAL") { // a column that is computed, or a table that is code
				found[o] += " virtual"
			}
		default:
			found[o] = "on " + rows.ColumnText(2) + ": " + strings.Join(strings.Fields(rows.ColumnText(3)), " ")
		}
	}
	return found, errors.Join(rows.Err(), rows.Close())
}

// foreign returns what of the database's objects is not as this program makes it, in order, each as a sentence.
func foreign(conn *sqlite3.Conn) ([]string, error) {
	own, err := ownObjects()
	if err != nil {
		return nil, fmt.Errorf("read the log's own schema: %w", err)
	}
	there, err := objectsOf(conn)
	if err != nil {
		return nil, fmt.Errorf("read the schema of the log: %w", err)
	}
	var said []string
	for o, definition := range there {
		switch want, known := own[o]; {
		case !known && o.kind == "index" && plainIndex(conn, o.name):
			// It changes nothing but the time that queries take.
		case !known:
			said = append(said, fmt.Sprintf("the %s %q is not the log's", o.kind, o.name))
		case want != definition:
			said = append(said, fmt.Sprintf("the %s %q is defined in another way than the log's", o.kind, o.name))
		}
	}
	for o := range maps.Keys(own) {
		if _, ok := there[o]; !ok {
			said = append(said, fmt.Sprintf("the %s %q of the log is missing", o.kind, o.name))
		}
	}
	slices.Sort(said)
	return said, nil
}

// plainIndex reports whether an index is over columns alone, of all rows, and refuses none: such an index runs no code and changes no
// answer.
func plainIndex(conn *sqlite3.Conn, name string) bool {
	rows, _, err := conn.Prepare(`SELECT count(*) FROM main.sqlite_schema s, pragma_index_list(s.tbl_name) l
		WHERE s.type = 'index' AND s.name = ?1 AND l.name = ?1 AND l."unique" = 0 AND l.partial = 0
		AND NOT EXISTS (SELECT 1 FROM pragma_index_info(?1) c WHERE c.cid = -2)`)
	if err != nil {
		return false
	}
	plain := rows.BindText(1, name) == nil && rows.Step() && rows.ColumnInt(0) == 1
	return rows.Close() == nil && plain
}

// ownSchema refuses a database that has other objects than the log's: a trigger would run in every commit.
func ownSchema(conn *sqlite3.Conn) error {
	said, err := foreign(conn)
	if err != nil || len(said) == 0 {
		return err
	}
	return fault.New(fault.Conflict, "log_schema_changed", "somebody changed the schema of the log: %s", strings.Join(said[:min(len(said), 5)],
		"; ")).
		With("keep a copy, run `agentbox audit verify`, and put log.db and log.db-wal back from a backup")
}

// Foreign returns the database's tables, indexes, triggers and views that differ from the program's own, each as a sentence. In a log of an
// earlier version, which the next daemon upgrades, it checks only objects that can run code.
func (j *Journal) Foreign(ctx context.Context) (said []string, err error) {
	err = j.views.reading(ctx, func(r *connection) error {
		version, err := schemaOf(r.conn)
		if err != nil {
			return err
		}
		if said, err = foreign(r.conn); err != nil || version == schemaVersion {
			return err
		}
		said = slices.DeleteFunc(said, func(s string) bool {
			return strings.HasSuffix(s, "is missing") || !strings.HasPrefix(s, "the trigger ") && !strings.HasPrefix(s, "the view ")
		})
		return nil
	})
	return said, err
}
