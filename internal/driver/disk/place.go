package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/driver/disk/internal/overlay"
	"agentbox/internal/driver/disk/internal/snapshots"
)

// place is where the files of one space lie, and beside them what is about to become one of them: in folders of the space's own or, where
// it shares files with others, in an overlay over a frozen tree. The overlay hangs on a descriptor of this process and on nothing else.
type place struct {
	home string

	still sync.RWMutex // held for reading while something is changed from outside, for writing while the files move or are given up

	mu    sync.Mutex // guards the fields below
	mount *os.File   // nil where there is none
	gone  bool       // the space was removed

	sweeping bool // files are on their way out of what code sees

	watches watches // has a lock of its own
}

// path returns the path of one of the folders. Files below a mount exist only while the mount has a user.
func (p *place) path(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at(name)
}

// at is path for a caller that holds the lock.
func (p *place) at(name string) string {
	if p.mount == nil || isWithheld(name) {
		return filepath.Join(p.home, name)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", p.mount.Fd(), name)
}

// folders are those of a past. The lock is held.
func (p *place) folders() snapshots.Folders {
	f := snapshots.Folders{Files: p.at(filesFolder), Staging: p.at(stagingFolder), Kept: filepath.Join(p.home, keptFolder)}
	if p.mount != nil {
		f.Trash = p.at(overlay.Moved)
	}
	return f
}

// open opens one of the folders.
func (p *place) open(name string) (*beneath.Folder, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return nil, removed(p.home)
	}
	return beneath.Root(p.at(name))
}

// top gives the folder of the files the mode that it has in a new space. A snapshot does not keep that mode.
func (p *place) top() error {
	dir, err := p.open(filesFolder)
	if err != nil {
		return err
	}
	defer dir.Close()
	var st beneath.Stat
	if err := beneath.Fstat(dir, &st); err != nil || st.Mode&0o7777 == beneath.FolderMode {
		return beneath.Refusal(err, ".")
	}
	return beneath.Refusal(beneath.Fchmod(dir, beneath.FolderMode), ".")
}

// enter keeps the files where they are until leave is called, which it must be unless there is an error.
func (p *place) enter() error {
	p.still.RLock()
	p.mu.Lock()
	gone := p.gone
	p.mu.Unlock()
	if gone {
		p.leave()
		return removed(p.home)
	}
	return nil
}

// leave ends the use that enter began.
func (p *place) leave() {
	p.still.RUnlock()
	p.retire()
}

// end says that the space was removed. Its mount ends as soon as nobody stays.
func (p *place) end() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.moved()
	p.retire()
}

// retire closes the mount of a removed space. If a user remains, the last one to leave closes it.
func (p *place) retire() {
	p.mu.Lock()
	over := p.gone && p.mount != nil
	p.mu.Unlock()
	if !over || !p.still.TryLock() {
		return
	}
	defer p.still.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mount != nil {
		p.mount.Close()
		p.mount = nil
	}
}

func removed(home string) error {
	return fault.New(space.ErrFilesMissing.Kind, space.ErrFilesMissing.Code, "the files of %s are not on this host", filepath.Base(home))
}
