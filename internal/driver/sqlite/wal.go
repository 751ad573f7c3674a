package sqlite

import (
	"errors"
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
	pages int // in the log
	moved int // of them into the database, by the last checkpoint
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
func (s *walState) afterGroup(j *Journal) {
	if s.waiting() >= walSoft {
		s.checkpoint(j, s.pages >= walHard)
	}
}

// checkpoint moves pages into the database, those that no reader holds back. When all are moved the next commit begins the log anew, unless
// somebody reads it then. A reader outside of this process is never waited for: the log grows until it is gone.
func (s *walState) checkpoint(j *Journal, readersOut bool) {
	if j.failed.Load() != nil {
		return
	}
	if readersOut {
		j.reads.Lock()
		defer j.reads.Unlock()
	}
	_, moved, err := j.w.conn.WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
	if errors.Is(err, sqlite3.BUSY) {
		// Somebody else moves pages, or holds some back. What is there is as durable as before; it is tried again after as many pages.
		s.moved = s.pages
		return
	}
	if err != nil {
		_ = j.fail(err)
		return
	}
	s.moved = max(moved, s.pages-walSoft/2) // what readers hold back is tried again soon, not after every commit
}
