package sqlite

import (
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/vault"
)

// file is the database file of the log: how a connection to it is opened, the form of its tables, and the keys that seal what is in it.
type file struct {
	committer *committer
	options   Options
	readOnly  bool
	seals     vault.Sealer
	lock      *sqlite3.Conn
}

// connectUnwritable opens a log that lies on a medium which nobody can write, so that it does not change either. It returns an error if a
// killed daemon has left events in the write-ahead log, because they cannot be read without writing.
func (fl *file) connectUnwritable() (*sqlite3.Conn, error) {
	if left, err := os.Stat(fl.options.Path + "-wal"); err == nil && left.Size() > 0 {
		return nil, fault.New(fault.Conflict, "log_unwritable",
			"the log was not closed, and its disk cannot be written; copy the data directory to another disk and look at the copy")
	}
	return fl.connect(sqlite3.OPEN_READONLY, "immutable=1")
}

// connect opens one connection to the log, with further parameters of SQLite's URI.
func (fl *file) connect(flags sqlite3.OpenFlag, more ...string) (*sqlite3.Conn, error) {
	name := "file:" + (&url.URL{Path: fl.options.Path}).EscapedPath()
	name += "?modeof=" + url.QueryEscape(fl.options.Path) + "&vfs=" + url.QueryEscape(layer(fl.options.VFS))
	name = strings.Join(append([]string{name}, more...), "&")
	conn, err := sqlite3.OpenFlags(name, flags|sqlite3.OPEN_URI|sqlite3.OPEN_EXRESCODE)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return conn, nil
}

// writer opens the committer's connection.
func (fl *file) writer() (*sqlite3.Conn, error) {
	conn, err := fl.connect(sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE)
	if err != nil {
		return nil, err
	}
	if err := newEnough(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := settle(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	fl.committer.wal.hook(conn)
	if err := conn.BusyTimeout(busyTimeout); err != nil {
		return nil, errors.Join(fmt.Errorf("set the time to wait for a lock: %w", err), conn.Close())
	}
	return conn, nil
}

// reader opens a connection that cannot write.
func (fl *file) reader() (*connection, error) {
	conn, err := fl.connect(sqlite3.OPEN_READONLY)
	if err != nil {
		return nil, err
	}
	if err := conn.Exec(`PRAGMA query_only = ON; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -` +
		strconv.Itoa(readerCachePgs)); err != nil {
		return nil, errors.Join(fmt.Errorf("open the log for reading: %w", err), conn.Close())
	}
	return newConnection(conn, &fl.seals), nil
}

// lockFile holds a lock in a file of its own until it is closed; the operating system lets go of it when the process ends, however it does.
func lockFile(path string) (*sqlite3.Conn, error) {
	lock, err := sqlite3.OpenFlags("file:"+(&url.URL{Path: path}).EscapedPath(), sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the log: %w", err)
	}
	err = lock.Exec(`PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE`)
	if err == nil {
		return lock, nil
	}
	if errors.Is(err, sqlite3.BUSY) {
		err = ErrInUse
	} else {
		err = fmt.Errorf("lock the log: %w", err)
	}
	return nil, errors.Join(err, lock.Close())
}
