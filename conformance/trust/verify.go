package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
)

const (
	fastEnough = 100_000 // events per second that a verification has to reach
	longEnough = 100_000 // events from which on its speed says anything: below, the start of the program is what is measured
)

// verify checks P-Verify. It only reads the live log, and changes copies of the log of a daemon of its own.
func (x *examiner) verify(ctx context.Context, r *result) error {
	if err := x.liveLog(ctx, r); err != nil {
		return err
	}
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	for n := range 6 {
		if _, err := d.run(ctx, space, 20, operation{"type": "message", "id": "m", "content": fmt.Sprint("message ", n)},
			shell("s", "echo done")); err != nil {
			return err
		}
	}
	if _, err := d.must(ctx, "POST", "/v1/spaces", map[string]any{"name": "keyed", "best_effort": true}, "Idempotency-Key",
		"trust"); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	return x.tampered(ctx, r, d.data)
}

// liveLog verifies the installation's log with nothing but its files and its public key.
func (x *examiner) liveLog(ctx context.Context, r *result) error {
	t := r.try("the installation's own log is intact, by its files and its public key, while the daemon works")
	a, err := x.live.get(ctx, "/v1/audit/key")
	if err != nil {
		return err
	}
	began := time.Now()
	found, err := x.audited(ctx, x.data, "--public-key", a.text("public_key"))
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	t.tried(int(found.Checked))
	t.want(found.Valid, "it is not: %+v", found.Findings)
	rate := float64(found.Checked) / took
	t.note("%d events in %.2f s, %.0f a second", found.Checked, took, rate)
	if found.Checked < longEnough {
		t.note("%d events in %.2f s; a log of fewer than %d says nothing about the speed", found.Checked, took, longEnough)
	} else if rate < fastEnough {
		t.fail("%.0f events a second are fewer than %d", rate, fastEnough)
	}
	return nil
}

// tampering is a way to change a log behind the daemon's back.
type tampering struct {
	what string
	do   func(db *database, place int64) error // changes the event at a place, or what belongs to it
}

// flipped changes one bit in the middle of a value.
func flipped(table, column string) func(*database, int64) error {
	return func(db *database, place int64) error {
		raw, err := db.blob(fmt.Sprintf(`SELECT %s FROM %s WHERE place = ?`, column, table), place)
		if err != nil {
			return err
		}
		raw[len(raw)/2] ^= 1
		return db.changed(fmt.Sprintf(`UPDATE %s SET %s = ? WHERE place = ?`, table, column), raw, place)
	}
}

// sql changes the event at a place by one statement.
func sql(statement string) func(*database, int64) error {
	return func(db *database, place int64) error { return db.changed(statement, place) }
}

func tamperings() []tampering {
	return []tampering{
		{what: "a bit of the envelope", do: flipped("events", "record")},
		{what: "a bit of the data", do: flipped("bodies", "body")},
		{what: "the event dropped", do: func(db *database, place int64) error {
			return errors.Join(db.changed(`DELETE FROM events WHERE place = ?`, place), db.changed(`DELETE FROM bodies WHERE place = ?`, place))
		}},
		{what: "the data dropped", do: sql(`DELETE FROM bodies WHERE place = ?`)},
		{what: "changed places with the next", do: func(db *database, place int64) error {
			var all error
			for _, table := range []string{"events", "bodies"} {
				for _, step := range [][2]int64{{place, -1}, {place + 1, place}, {-1, place + 1}} {
					all = errors.Join(all, db.changed(fmt.Sprintf(`UPDATE %s SET place = ? WHERE place = ?`, table), step[1], step[0]))
				}
			}
			return all
		}},
		{what: "another type", do: sql(`UPDATE events SET type = type % (SELECT max(no) FROM types) + 1 WHERE place = ?`)},
		{what: "another id", do: sql(`UPDATE events SET id = CAST(substr(id, 1, 15) || 'x' AS BLOB) WHERE place = ?`)},
		{what: "another correlation", do: sql(`UPDATE events SET correlation = correlation || 'X' WHERE place = ?`)},
		{what: "another run", do: sql(`UPDATE events SET run = 'run_00000000000000000000000000' WHERE place = ?`)},
		{what: "another stream", do: sql(`UPDATE events SET stream = stream % (SELECT max(no) FROM streams) + 1 WHERE place = ?`)},
		{what: "another place in its stream", do: sql(`UPDATE events SET stream_seq = stream_seq + 1000 WHERE place = ?`)},
	}
}

// tampered changes copies of a log, one at a time, and checks the verification of each.
func (x *examiner) tampered(ctx context.Context, r *result, data string) error {
	whole := r.try("a copy of the log is intact with the public key alone, without the daemon")
	raw, err := os.ReadFile(filepath.Join(data, "signing.pub"))
	if err != nil {
		return err
	}
	key := filepath.Join(filepath.Dir(data), "agentbox.pub")
	if err := os.WriteFile(key, raw, 0o600); err != nil {
		return err
	}
	plain, err := x.verifiable(data)
	if err != nil {
		return err
	}
	found, err := x.audited(ctx, plain, "--public-key", key)
	if err != nil {
		return err
	}
	whole.tried(int(found.Checked))
	whole.want(found.Valid, "it is not: %+v", found.Findings)

	t := r.try("an event that was changed, dropped, moved or filed elsewhere is found, and is the first that is named")
	chance := x.chance(5)
	for _, w := range tamperings() {
		for range x.tries {
			seq := 2 + chance.Uint64N(found.Checked-3)
			copied, err := x.verifiable(data)
			if err != nil {
				return err
			}
			if err := changed(copied, func(db *database) error {
				top, err := db.number(`SELECT max(place) FROM events`)
				if err != nil {
					return err
				}
				return w.do(db, top-int64(found.Checked)+int64(seq))
			}); err != nil {
				return fmt.Errorf("%s: %w", w.what, err)
			}
			after, err := x.audited(ctx, copied, "--public-key", key)
			if err != nil {
				return err
			}
			t.tried(1)
			t.want(!after.Valid && after.first() == seq, "event %d, %s: valid %v, the first that is named is %d", seq, w.what, after.Valid,
				after.first())
			if err := os.RemoveAll(filepath.Dir(copied)); err != nil {
				return err
			}
		}
	}
	t.note("%d kinds of change, at random places of %d events", len(tamperings()), found.Checked)
	return x.cutOff(ctx, r, data, key, found.Checked)
}

// cutOff cuts off ends of the log, and changes the log's table of requests.
func (x *examiner) cutOff(ctx context.Context, r *result, data, key string, events uint64) error {
	t := r.try("a log whose end was cut off is found, and the first event that is missing is named")
	for _, lost := range []uint64{1, 2, 7} {
		copied, err := x.verifiable(data)
		if err != nil {
			return err
		}
		if err := changed(copied, func(db *database) error {
			top, err := db.number(`SELECT max(place) FROM events`)
			if err != nil {
				return err
			}
			first := top - int64(lost) + 1
			return errors.Join(db.changed(`DELETE FROM events WHERE place >= ?`, first), db.changed(`DELETE FROM bodies WHERE place >= ?`, first),
				db.changed(fmt.Sprintf(`UPDATE workspaces SET head = head - %d, indexed = min(indexed, head - %d) WHERE no > ?`, lost, lost), int64(0)))
		}); err != nil {
			return err
		}
		after, err := x.audited(ctx, copied, "--public-key", key)
		if err != nil {
			return err
		}
		t.tried(1)
		t.want(!after.Valid && after.first() == events-lost+1, "%d events cut off: valid %v, the first that is named is %d and should be %d",
			lost, after.Valid, after.first(), events-lost+1)
	}
	keys := r.try("a key by which repeats are known that was changed, dropped or added is found")
	for _, statement := range []string{
		`UPDATE event_keys SET seq = seq + 1`, `UPDATE event_keys SET key = key || 'x'`, `DELETE FROM event_keys`,
		`INSERT INTO event_keys (workspace, key, seq) SELECT workspace, 'made up', 3 FROM event_keys LIMIT 1`,
	} {
		copied, err := x.verifiable(data)
		if err != nil {
			return err
		}
		if err := changed(copied, func(db *database) error { return db.changed(statement) }); err != nil {
			return err
		}
		after, err := x.audited(ctx, copied, "--public-key", key)
		if err != nil {
			return err
		}
		keys.tried(1)
		keys.want(!after.Valid && after.first() > 0, "%s: valid %v, first %d", statement, after.Valid, after.first())
	}
	return nil
}

// changed opens a log, changes it, and closes it.
func changed(data string, change func(db *database) error) error {
	db, err := open(data)
	if err != nil {
		return err
	}
	return errors.Join(change(db), db.close())
}

// verifiable copies the files of a data directory that a verification reads, without its secrets. A write-ahead log is moved into the
// database first.
func (x *examiner) verifiable(data string) (string, error) {
	copied, err := x.copied(data)
	if err != nil {
		return "", err
	}
	for _, secret := range []string{"signing.key", "owner.key", "spaces"} {
		if err := os.RemoveAll(filepath.Join(copied, secret)); err != nil {
			return "", err
		}
	}
	conn, err := sqlite3.Open(filepath.Join(copied, "log.db"))
	if err != nil {
		return "", err
	}
	return copied, errors.Join(conn.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`), conn.Close())
}
