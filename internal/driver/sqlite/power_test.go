package sqlite_test

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"

	"agentbox/internal/domain/id"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal/journaltest"
)

// platter is a file layer that knows what of each file was synced, which is all that a power cut is sure to leave.
type platter struct {
	vfs.VFSFilename

	mu     sync.Mutex // guards synced
	synced map[string][]byte
}

func (p *platter) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	file, out, err := p.VFSFilename.OpenFilename(name, flags)
	if err != nil || name == nil {
		return file, out, err
	}
	return &platterFile{File: file, platter: p, name: filepath.Base(name.String())}, out, nil
}

// Delete implements vfs.VFS; it counts as durable at once, as it is where SQLite asks for the folder to be synced.
func (p *platter) Delete(name string, syncDir bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.synced, filepath.Base(name))
	return p.VFSFilename.Delete(name, syncDir)
}

type platterFile struct {
	vfs.File
	platter *platter
	name    string
}

func (f *platterFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *platterFile) Sync(flags vfs.SyncFlag) error {
	if err := f.File.Sync(flags); err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.NewSectionReader(f.File, 0, size))
	if err != nil {
		return err
	}
	f.platter.mu.Lock()
	defer f.platter.mu.Unlock()
	f.platter.synced[f.name] = content
	return nil
}

// Whenever the power fails, what was acknowledged until then was synced: it is in the log that the synced bytes alone make.
func TestPowerCut(t *testing.T) {
	p := &platter{VFSFilename: vfs.Find("").(vfs.VFSFilename), synced: map[string][]byte{}}
	vfs.Register("platter", p)
	defer vfs.Unregister("platter")
	o := options(filepath.Join(t.TempDir(), "log.db"), journaltest.Notes(1), journaltest.Rooms(1))
	o.VFS = "platter"
	log, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acknowledged := map[id.Event]uint64{}
	var wg sync.WaitGroup
	cuts := make(chan func() (map[string][]byte, map[id.Event]uint64))
	for w := range 4 {
		wg.Go(func() {
			for i := range 60 {
				receipt, err := log.Append(t.Context(), journaltest.Batch(journaltest.InRoom(journaltest.Room, "x").About("note", fmt.Sprint("n", w))))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acknowledged[receipt.Events[0].ID] = receipt.Events[0].Seq
				mu.Unlock()
				if i%12 == w {
					// The power fails now: first what was acknowledged is looked at, then what is on the platter.
					cuts <- func() (map[string][]byte, map[id.Event]uint64) {
						mu.Lock()
						until := maps.Clone(acknowledged)
						mu.Unlock()
						p.mu.Lock()
						defer p.mu.Unlock()
						return maps.Clone(p.synced), until
					}
				}
			}
		})
	}
	go func() {
		wg.Wait()
		close(cuts)
	}()
	n := 0
	for cut := range cuts {
		files, until := cut()
		dir := t.TempDir()
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		after, err := sqlite.Open(t.Context(), options(filepath.Join(dir, "log.db"), journaltest.Notes(1), journaltest.Rooms(1)))
		if err != nil {
			t.Fatal(err)
		}
		checkAll(t, after, until)
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 20 {
		t.Errorf("%d cuts, want 20", n)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}
