package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
)

// Members is this daemon as one of several that work on the database together.
type Members struct {
	db       *database
	folds    *folds
	listener *listener
	reign    *reign
	shelf    *shelf
	no       int64         // this member's number; 0 for none
	drops    chan struct{} // holds a token while a member has yet to drop destroyed data
}

var _ node.Members = (*Members)(nil)

// Members work on one database together. Each has a row, and holds an advisory lock of its own while it lives, so no clock decides who
// lives. One member holds another lock and is the leader. Only the leader does the work that one member alone may do.

// Membership says who a member is.
type Membership struct {
	Node    id.Node
	Address string // where the others reach it, as in http://127.0.0.1:7433
	// Dropped is called after keys were destroyed, before this member reports to the others that it has dropped them. It removes copies that
	// were read with these keys and are kept elsewhere. It may be nil.
	Dropped func(ctx context.Context) error
}

// The advisory locks of members: each has its own in the class, by its number.
const (
	memberLock = 0x4167627a
	leaderLock = 0x4167627b
)

// errNodeInUse means that another daemon lives under the same node.
var errNodeInUse = fault.New(fault.Conflict, "node_in_use",
	"another daemon works on the database under the same node: its data directory is a copy of this one's, or the other way round").
	With("give each daemon a data directory of its own, which it has made itself")

// joinTime is how long a member waits for its own lock, which its lost connection may hold still.
const joinTime = "10s"

// join makes this daemon a member. It holds the shared lock, so that no daemon has the database exclusively.
func (t *Members) join(ctx context.Context) error {
	m := t.db.options.Member
	err := pgx.BeginFunc(ctx, t.db.writes, func(tx pgx.Tx) error {
		var together bool
		if err := tx.QueryRow(ctx, `SELECT together, reign FROM log`).Scan(&together, &t.reign.no); err != nil {
			return err
		}
		if !together {
			if _, err := tx.Exec(ctx, `LOCK TABLE projections IN EXCLUSIVE MODE`); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, `UPDATE log SET reign = reign + 1, together = true RETURNING reign`).Scan(&t.reign.no); err != nil {
				return err
			}
		}
		err := tx.QueryRow(ctx, `INSERT INTO members (node, address, since, destroyed) SELECT $1, $2, $3, destroyed FROM log
			ON CONFLICT (node) DO UPDATE SET address = excluded.address, since = excluded.since, destroyed = excluded.destroyed, epoch =
			members.epoch + 1 WHERE NOT members.removed
			RETURNING no`, string(m.Node), m.Address, t.db.options.Clock.Now().UnixMicro()).Scan(&t.no)
		if errors.Is(err, pgx.ErrNoRows) {
			return node.ErrRemoved
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = t.reign.lockConn.Exec(ctx, `SET lock_timeout = '`+joinTime+`'`)
	if err == nil {
		_, err = t.reign.lockConn.Exec(ctx, `SELECT pg_advisory_lock($1, $2)`, memberLock, int32(t.no))
	}
	if codeOf(err) == "55P03" {
		return errNodeInUse
	}
	if err == nil {
		_, err = t.reign.lockConn.Exec(ctx, `SET lock_timeout = 0`)
	}
	return err
}

// Number is this member's number among all that there ever were, from 1; 0 for who is none.
func (t *Members) Number() int { return int(t.no) }

// Advertise says where the others reach this member from now on.
func (t *Members) Advertise(ctx context.Context, address string) error {
	_, err := t.db.writes.Exec(ctx, `UPDATE members SET address = $2 WHERE no = $1`, t.no, address)
	return t.db.trouble(err)
}

// memberColumns are those of node.Member.
const memberColumns = `m.node, m.address, m.since, m.epoch, m.leads, m.removed, EXISTS (SELECT 1 FROM pg_locks l WHERE l.locktype =
	'advisory' AND l.granted AND l.objsubid = 2
	AND l.classid = 1097294458 AND l.objid = m.no::oid AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))`

// Members returns everybody who works on the database together with others, and who has, in the order in which they joined first.
func (t *Members) Members(ctx context.Context) (found []node.Member, err error) {
	err = t.db.reading(ctx, func(db querier) error {
		found = nil
		rows, err := db.Query(ctx, `SELECT `+memberColumns+` FROM members m ORDER BY m.no`)
		if err != nil {
			return err
		}
		var m node.Member
		var since int64
		_, err = pgx.ForEachRow(rows, []any{&m.Node, &m.Address, &since, &m.Epoch, &m.Leads, &m.Removed, &m.Alive}, func() error {
			m.Since = time.UnixMicro(since).UTC()
			m.Leads = m.Leads && m.Alive
			found = append(found, m)
			return nil
		})
		return err
	})
	return found, err
}

// Remove removes a member that does not live. From then on its writes are rejected, even if it lives after all and was cut off. A repeat
// changes nothing.
func (t *Members) Remove(ctx context.Context, n id.Node) error {
	return t.folds.alone(ctx, func(tx pgx.Tx) error {
		// Wait for running writes, as at the beginning of a reign.
		if _, err := tx.Exec(ctx, `LOCK TABLE projections IN EXCLUSIVE MODE`); err != nil {
			return err
		}
		if err := t.folds.enter(ctx, tx); err != nil {
			return err
		}
		var m node.Member
		var since int64
		err := tx.QueryRow(ctx, `SELECT `+memberColumns+` FROM members m WHERE m.node = $1`, string(n)).Scan(&m.Node, &m.Address, &since,
			&m.Epoch, &m.Leads, &m.Removed, &m.Alive)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return node.ErrNone
		case err != nil:
			return err
		case m.Alive:
			return node.ErrAlive
		}
		_, err = tx.Exec(ctx, `UPDATE members SET removed = true, leads = false WHERE node = $1`, string(n))
		return err
	})
}

// Lead calls lead whenever this member is the leader, until ctx ends. The context of lead ends with the leadership, which ends with the
// connection that holds the lock. The next leader may have begun by then, so work that two must never do at once needs another protection
// as well. It returns the error of lead.
func (t *Members) Lead(ctx context.Context, lead func(ctx context.Context) error) error {
	for ctx.Err() == nil {
		led, err := t.leadOnce(ctx, lead)
		if led && err != nil && ctx.Err() == nil {
			return err
		}
		_ = t.db.trouble(err)
		select {
		case <-time.After(reignPeriod):
		case <-ctx.Done():
		}
	}
	return nil
}

func (t *Members) leadOnce(ctx context.Context, lead func(ctx context.Context) error) (led bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, t.db.reads.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, leaderLock); err != nil {
		return false, err
	}
	for _, sql := range []string{`UPDATE members SET leads = false WHERE leads AND no <> $1`,
		`UPDATE members SET leads = true WHERE no = $1`} {
		if _, err := conn.Exec(ctx, sql, t.no); err != nil {
			return false, err
		}
	}
	during, over := context.WithCancel(ctx)
	defer over()
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		_, _ = conn.WaitForNotification(during) // which comes never; it ends with the connection, or with the leadership
		over()
	}()
	err = lead(during)
	over()
	<-lost
	return true, err
}

// Exclusive waits until nobody in any daemon of the database holds the name, and holds it until the caller releases it.
func (t *Members) Exclusive(ctx context.Context, name string) (release func(), err error) {
	conn, err := pgx.ConnectConfig(ctx, t.db.reads.Config().ConnConfig)
	if err != nil {
		return nil, t.db.trouble(err)
	}
	if _, err = conn.Exec(ctx, `SET lock_timeout = '`+joinTime+`'`); err == nil {
		_, err = conn.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended($1, $2))`, name, openingLock)
	}
	if err == nil {
		return func() { _ = conn.Close(context.WithoutCancel(ctx)) }, nil
	}
	_ = conn.Close(context.WithoutCancel(ctx))
	if codeOf(err) == "55P03" {
		return nil, fault.New(fault.Unavailable, "busy", "another daemon of the database is doing the same and takes long; ask again in a moment")
	}
	return nil, t.db.trouble(err)
}

// Timeouts of a redaction.
const (
	dropTime  = 10 * time.Second      // for every member to say that it has dropped the destroyed data
	dropPause = 20 * time.Millisecond // between two looks
)

// drop drops the destroyed contents each time that this member gets notice, and confirms it.
func (t *Members) drop() {
	for {
		select {
		case <-t.drops:
		case <-t.db.ctx.Done():
			return
		}
		for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
			err := t.dropOnce(t.db.ctx)
			if t.db.trouble(err) == nil {
				break
			}
			select {
			case <-time.After(wait):
			case <-t.db.ctx.Done():
				return
			}
		}
	}
}

func (t *Members) dropOnce(ctx context.Context) error {
	var destroyed, was int64
	// Read it first: a later destruction is reported again.
	if err := t.db.reads.QueryRow(ctx, `SELECT l.destroyed, m.destroyed FROM log l, members m WHERE m.no = $1`, t.no).Scan(&destroyed,
		&was); err != nil {
		return err
	}
	if err := t.listener.refresh(); err != nil || destroyed == was {
		return err
	}
	t.shelf.clear()
	if t.db.options.Member.Dropped != nil {
		if err := t.db.options.Member.Dropped(ctx); err != nil {
			return err
		}
	}
	_, err := t.db.writes.Exec(ctx, `UPDATE members SET destroyed = greatest(destroyed, $2) WHERE no = $1`, t.no, destroyed)
	return err
}

// dropped waits until every living member has dropped the destroyed data.
func (t *Members) dropped(ctx context.Context, destroyed int64) error {
	for begun := t.db.options.Clock.Now(); ; {
		var late []string
		err := t.db.reading(ctx, func(db querier) error {
			rows, err := db.Query(ctx, `SELECT node FROM (SELECT m.destroyed, `+memberColumns+
				` AS alive FROM members m) m WHERE alive AND NOT removed AND destroyed < $1 ORDER BY node`, destroyed)
			if err == nil {
				late, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			return err
		})
		if err != nil || len(late) == 0 {
			return err
		}
		if t.db.options.Clock.Now().Sub(begun) >= dropTime {
			return fault.New(fault.Unavailable, "redaction_open",
				"the data are gone from the disk, but the redaction is not done: %s has not said that it has dropped the keys from memory",
				strings.Join(late, ", ")).
				With("it is finished by itself once that daemon goes on, or has ended; see with agentbox node list what became of it")
		}
		select {
		case <-time.After(dropPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
