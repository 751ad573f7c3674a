package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"agentbox/internal/host"
)

// gatheredBytes is the most of the write-ahead log that is held back before it is written.
const gatheredBytes = 1 << 20

// gathering is a file layer that writes the write-ahead log in few large pieces. SQLite writes it page by page, two calls each; nobody may
// read what it writes before it has called Sync, which with synchronous=FULL it does before every commit shows. So what lies between is
// held back and written at once. Other files, and everything else about this one, are those of the layer below.
type gathering struct{ vfs.VFSFilename }

// layer registers the file layer over another one, the operating system's where the name is empty, and returns its name.
func layer(over string) string {
	below, ok := vfs.Find(over).(vfs.VFSFilename)
	if !ok {
		return over
	}
	name := "agentbox-" + over
	vfs.Register(name, gathering{below})
	return name
}

// OpenFilename implements vfs.VFSFilename.
func (g gathering) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, out, err := g.VFSFilename.OpenFilename(name, flags)
	if err != nil || flags&vfs.OPEN_WAL == 0 {
		return file, out, err
	}
	opened := &logFile{File: file}
	if flags&vfs.OPEN_CREATE != 0 {
		opened.folder = filepath.Dir(name.String())
	}
	return opened, out, nil
}

// logFile is a write-ahead log whose newest bytes, from at on, may still be held back.
type logFile struct {
	vfs.File
	at     int64
	held   []byte
	owed   func(vfs.SyncFlag) // told of the Sync of a commit, which is left for later, and of its flags; nil where none is
	folder string             // whose names are to be made durable with the first Sync; the layer below forgets that
}

func (f *logFile) flush() error {
	if len(f.held) == 0 {
		return nil
	}
	_, err := f.File.WriteAt(f.held, f.at)
	f.held = f.held[:0]
	return asWrite(err)
}

// asWrite marks an error as one of writing, for it may come up in a Sync, whose errors mean something else: after those nobody knows what
// the disk has.
func asWrite(err error) error {
	var failed *os.PathError
	switch {
	case host.Full(err):
		return vfs.SystemError(err, sqlite3.FULL)
	case errors.As(err, &failed):
		return vfs.SystemError(err, sqlite3.IOERR_WRITE)
	}
	return err
}

// WriteAt implements io.WriterAt.
func (f *logFile) WriteAt(p []byte, off int64) (int, error) {
	if len(f.held) > 0 && (off != f.at+int64(len(f.held)) || len(f.held)+len(p) > gatheredBytes) {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	if len(f.held) == 0 {
		f.at = off
	}
	f.held = append(f.held, p...)
	return len(p), nil
}

// ReadAt implements io.ReaderAt.
func (f *logFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// Sync implements vfs.File. The first page of the log, and its name, are never left for later, since they are needed to read the rest.
func (f *logFile) Sync(flags vfs.SyncFlag) error {
	begins := f.at == 0 || f.folder != ""
	if err := f.flush(); err != nil {
		return err
	}
	if f.owed != nil && !begins {
		f.owed(flags)
		return nil
	}
	if err := f.File.Sync(flags); err != nil {
		return err
	}
	if f.folder != "" {
		if err := syncFolder(f.folder); err != nil {
			return err
		}
		f.folder = ""
	}
	if f.owed != nil {
		f.owed(flags) // its changes are reported after it all the same
	}
	return nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("make the names of the log durable: %w", err)
	}
	return errors.Join(host.SyncNames(folder), folder.Close())
}

// Size implements vfs.File.
func (f *logFile) Size() (int64, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.File.Size()
}

// Truncate implements vfs.File.
func (f *logFile) Truncate(size int64) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Close implements io.Closer. Held-back writes were never synced: they are part of a transaction that did not end.
func (f *logFile) Close() error { return f.File.Close() }
