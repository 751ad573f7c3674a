package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"

	"agentbox/internal/testkit/platter"
)

// recorder is the operating system's file layer, which tells a disk of everything that is asked of it. It stands below this package's own
// layer, so it sees what reaches the files. Memory that connections share is not a file and is not recorded.
type recorder struct {
	vfs.VFSFilename
	disk *platter.Disk
	lies bool // syncs are not recorded, as on a disk that says it has synced and has not
}

// recording registers a recorder for the length of a test and returns its name.
func recording(t *testing.T, disk *platter.Disk, lies bool) string {
	t.Helper()
	name := "recorder-" + t.Name() + filepath.Base(t.TempDir())
	vfs.Register(name, recorder{vfs.Find("").(vfs.VFSFilename), disk, lies})
	t.Cleanup(func() { vfs.Unregister(name) })
	return name
}

// OpenFilename implements vfs.VFSFilename.
func (r recorder) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, out, err := r.VFSFilename.OpenFilename(name, flags)
	if err != nil || name == nil {
		return file, out, err
	}
	f := &recordedFile{File: file, disk: r.disk, name: filepath.Base(name.String()), synced: func() {}}
	if flags&vfs.OPEN_CREATE != 0 {
		r.disk.Make(f.name)
	}
	if !r.lies {
		f.synced = func() { r.disk.Sync(f.name) }
		if flags&vfs.OPEN_CREATE != 0 && flags&(vfs.OPEN_WAL|vfs.OPEN_MAIN_JOURNAL) != 0 {
			named := sync.OnceFunc(func() { r.disk.SyncFolder(".") })
			f.synced = func() {
				r.disk.Sync(f.name)
				named()
			}
		}
	}
	return f, out, nil
}

// Delete implements vfs.VFS.
func (r recorder) Delete(name string, syncDir bool) error {
	if err := r.VFSFilename.Delete(name, syncDir); err != nil {
		return err
	}
	r.disk.Remove(filepath.Base(name))
	if syncDir {
		r.disk.SyncFolder(".")
	}
	return nil
}

type recordedFile struct {
	vfs.File
	disk   *platter.Disk
	name   string
	synced func()
}

func (f *recordedFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *recordedFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	f.disk.Write(f.name, at, p[:n])
	return n, err
}

func (f *recordedFile) Truncate(size int64) error {
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	f.disk.Truncate(f.name, size)
	return nil
}

func (f *recordedFile) Sync(flags vfs.SyncFlag) error {
	f.synced() // what is written beside this call is not durable by it
	return f.File.Sync(flags)
}
