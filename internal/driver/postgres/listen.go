package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// listener hears how far the workspaces have come.
type listener struct {
	db       *database
	reign    *reign
	together *Members
	heads    journal.Heads
}

// lookPeriod is how long the heads are not checked without a notification: a connection may be dead without a sign.
const lookPeriod = 10 * time.Second

// listen hears how far the workspaces have come, from every daemon of the database, until the journal is closed. Who hears first and looks
// then misses nothing; so a connection that was lost costs time and no event.
func (li *listener) listen() {
	for wait := 10 * time.Millisecond; li.db.ctx.Err() == nil; wait = min(2*wait, time.Second) {
		heard, err := li.hear()
		if heard {
			wait = 10 * time.Millisecond
		}
		_ = li.db.trouble(err) // it notes the error; the next append or read returns it
		select {
		case <-time.After(wait):
		case <-li.db.ctx.Done():
		}
	}
}

// hear listens on one connection until that is lost. It reports whether it was able to.
func (li *listener) hear() (heard bool, err error) {
	conn, err := pgx.ConnectConfig(li.db.ctx, li.db.reads.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(li.db.ctx))) }()
	if _, err := conn.Exec(li.db.ctx, `LISTEN `+channel); err != nil {
		return false, err
	}
	for {
		// The listener may have missed a redaction too, so it destroys the redacted data here as well.
		if err := li.told(); err != nil {
			return heard, err
		}
		if !li.db.options.Alone {
			if err := li.lookAround(li.db.ctx, conn); err != nil {
				return heard, err
			}
		} else if err := conn.Ping(li.db.ctx); err != nil {
			return heard, err
		}
		heard = true
		if err := li.reign.mend(li.db.ctx); err != nil {
			return heard, err
		}
		if err := li.follow(conn); err != nil {
			return heard, err
		}
	}
}

// follow takes notifications until none comes for a while.
func (li *listener) follow(conn *pgx.Conn) error {
	for {
		ctx, cancel := context.WithTimeout(li.db.ctx, lookPeriod)
		told, err := conn.WaitForNotification(ctx)
		quiet := ctx.Err() != nil && li.db.ctx.Err() == nil
		cancel()
		if err != nil && quiet {
			return nil
		}
		if err != nil {
			return err
		}
		ws, place, _ := strings.Cut(told.Payload, " ")
		if place == redacted {
			if err := li.told(); err != nil {
				return err
			}
			continue
		}
		head, err := strconv.ParseUint(place, 10, 64)
		if err == nil && !li.db.options.Alone {
			li.heads.Advance(id.Workspace(ws), head)
		}
	}
}

// redacted is sent instead of a head when keys were destroyed.
const redacted = "redacted"

// Refresher is a key store that several processes share: it can drop what another of them has destroyed.
type Refresher interface {
	// Refresh reads the keys anew.
	Refresh() error
}

// told is called when keys may have been destroyed. A member drops them beside the listening, for it has more to do than that.
func (li *listener) told() error {
	if li.together.no == 0 {
		return li.refresh()
	}
	select {
	case li.together.drops <- struct{}{}:
	default:
	}
	return nil
}

// refresh drops the keys that another daemon has destroyed.
func (li *listener) refresh() error {
	if r, ok := li.db.options.Keys.(Refresher); ok {
		return r.Refresh()
	}
	return nil
}

// lookAround finds out how far every workspace has come. If this daemon has the database alone, that happens once, when it opens the
// database: from then on a lane tells it, after it has laid on the shelf what it has changed, so that nobody hears of an event and then
// reads an older document.
func (li *listener) lookAround(ctx context.Context, conn querier) error {
	heads := map[id.Workspace]uint64{}
	rows, err := conn.Query(ctx, `SELECT name, head FROM workspaces`)
	if err != nil {
		return err
	}
	var name string
	var head uint64
	if _, err := pgx.ForEachRow(rows, []any{&name, &head}, func() error {
		heads[id.Workspace(name)] = head
		return nil
	}); err != nil {
		return err
	}
	for ws, head := range heads {
		li.heads.Advance(ws, head)
	}
	return nil
}

// settled returns when this daemon knows of an event that was read: a commit is seen in the database a moment before its documents are on
// the shelf. If others append too, each reader of a document proves that it is current.
func (li *listener) settled(ctx context.Context, ws id.Workspace, seq uint64) error {
	if !li.db.options.Alone || seq == 0 {
		return nil
	}
	return li.heads.Wait(ctx, ws, seq-1)
}
