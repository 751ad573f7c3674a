package sqlite

import (
	"time"

	"github.com/ncruces/go-sqlite3"
)

// When the committer moves what the write-ahead log holds into the database file.
const (
	walTidy  = 64                    // pages from which on it is worth it, once nothing was appended for walQuiet
	walQuiet = 50 * time.Millisecond //
	walSoft  = 8_000                 // pages after which it does so although appends wait
	walHard  = 16_384                // pages after which it first lets every reader finish, so that the log can begin anew
	walCap   = 64 << 20              // bytes to which the file is cut when it begins anew
)

// walState is what the committer knows of the write-ahead log.
type walState struct {
	pages int // in the log, not yet all in the database
	moved int // pages at the last checkpoint; fewer since means that the log began anew
}

func (s *walState) hook(conn *sqlite3.Conn) {
	conn.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		s.pages = pages
		return nil
	})
}

// afterGroup keeps the log short while appends come without a pause.
func (s *walState) afterGroup(j *Journal) {
	if s.pages < s.moved {
		s.moved = 0
	}
	switch {
	case s.pages >= walHard:
		s.checkpoint(j, true)
	case s.pages-s.moved >= walSoft:
		s.checkpoint(j, false)
	}
}

// checkpoint moves pages into the database. Wherever readers hold some back and readersOut is false, it moves what it can.
func (s *walState) checkpoint(j *Journal, readersOut bool) {
	if j.failed.Load() != nil {
		return
	}
	mode := sqlite3.CHECKPOINT_PASSIVE
	if readersOut {
		j.reads.Lock()
		defer j.reads.Unlock()
		mode = sqlite3.CHECKPOINT_RESTART
	}
	logged, moved, err := j.w.conn.WALCheckpoint("main", mode)
	if err != nil {
		_ = j.fail(err)
		return
	}
	s.moved = moved
	if moved == logged {
		s.pages, s.moved = 0, 0 // the next commit begins the log anew
	}
}
