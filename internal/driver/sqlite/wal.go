package sqlite

import (
	"errors"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// When what the write-ahead log holds is moved into the database file.
const (
	walTidy  = 64                    // pages from which on it is worth it, once nothing was appended for walQuiet
	walQuiet = 50 * time.Millisecond //
	walSoft  = 8_000                 // pages after which it is done although appends wait, beside them
	walHard  = 16_384                // pages after which the log is to begin anew
	walRest  = 2_000                 // pages that the committer then moves itself, while no reader holds any back
	walMost  = 2 * walHard           // pages after which it waits for the checkpointer and moves the rest
	walCap   = 64 << 20              // bytes to which the file is cut when it begins anew
)

// walState is the committer's view of the write-ahead log.
type walState struct {
	pages  int // in the log
	moved  int // of them into the database, by the last checkpoint
	moving bool
}

// checkpointer moves pages into the database on a connection of its own, beside the committer, which would else keep every append waiting.
type checkpointer struct {
	conn  *sqlite3.Conn
	ask   chan struct{}  // by the committer, which asks once and waits for the answer; closed with the journal
	tells chan moveReply // holds one
}

type moveReply struct {
	moved int // pages of the log that are in the database now
	busy  bool
	err   error
}

func (cm *committer) openMover() (err error) {
	cm.checkpointer.ask, cm.checkpointer.tells = make(chan struct{}, 1), make(chan moveReply, 1)
	if cm.checkpointer.conn, err = cm.file.connect(sqlite3.OPEN_READWRITE); err != nil {
		return err
	}
	return settle(cm.checkpointer.conn)
}

// move works until the journal is closed.
func (cm *committer) move() {
	for range cm.checkpointer.ask {
		cm.checkpointer.tells <- passive(cm.checkpointer.conn)
	}
}

// passive moves the pages that no reader holds back.
func passive(conn *sqlite3.Conn) moveReply {
	_, moved, err := conn.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	if errors.Is(err, sqlite3.BUSY) {
		// Another connection moves pages, or holds some back. The log is as durable as before.
		return moveReply{busy: true}
	}
	return moveReply{moved: moved, err: err}
}

func (s *walState) hook(conn *sqlite3.Conn) {
	conn.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		s.pages = pages
		return nil
	})
}

// waiting returns how many pages are not moved yet.
func (s *walState) waiting() int {
	if s.pages < s.moved {
		s.moved = 0 // the log has begun anew since
	}
	return s.pages - s.moved
}

// afterGroup keeps the log short while appends come without a pause.
func (s *walState) afterGroup(c *committer) {
	s.hear(c)
	if s.moving && s.pages >= walMost {
		s.moving = false
		s.checkpointed(c, <-c.checkpointer.tells)
	}
	switch {
	case s.moving:
	case s.pages >= walMost, s.pages >= walHard && s.waiting() <= walRest:
		s.checkpoint(c, true)
	case s.waiting() >= walSoft, s.pages >= walHard:
		s.moving = true
		c.checkpointer.ask <- struct{}{}
	}
}

// checkpoint moves pages into the database, those that no reader holds back. When all are moved the next commit begins the log anew, unless
// somebody reads it then. A reader outside of this process is never waited for: the log grows until it is gone.
func (s *walState) checkpoint(c *committer, readersOut bool) {
	s.hear(c)
	if c.health.failed.Load() != nil || s.moving {
		return
	}
	if readersOut {
		c.views.reads.Lock()
		defer c.views.reads.Unlock()
	}
	s.checkpointed(c, passive(c.w.conn))
}

// hear takes the checkpointer's answer if there is one.
func (s *walState) hear(c *committer) {
	select {
	case r := <-c.checkpointer.tells:
		s.moving = false
		s.checkpointed(c, r)
	default:
	}
}

// checkpointed notes the result of a checkpoint. Pages that readers hold back are retried after as many pages again, not after every
// commit.
func (s *walState) checkpointed(c *committer, r moveReply) {
	switch {
	case r.err != nil:
		_ = c.health.fail(r.err)
	case r.busy:
		s.moved = s.pages
	default:
		s.moved = max(r.moved, s.pages-walSoft/2)
	}
}
