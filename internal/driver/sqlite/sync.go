package sqlite

import (
	"context"
	"fmt"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"agentbox/internal/kernel/journal"
)

// syncer waits until the disk has the written commits, then answers.
type syncer struct {
	committer *committer
	file      *file
	health    *health
	views     *views
	durable   durability
}

// durability knows which commits the disk has. A commit gets its number when it was handed to the operating system, before any reader can
// see it. The syncer waits for the disk while the committer writes the next one. No answer depends on a commit that the disk does not have:
// both appends and reads wait for it.
type durability struct {
	mu      sync.Mutex    // guards all below
	written uint64        // the last commit that was handed over
	synced  uint64        // the last one that the disk has
	waiting int           // batches that are written and not yet synced
	grown   chan struct{} // closed and replaced when synced moves or nothing more will; nil while nobody waits
	sent    uint64        // the last one whose group is on its way to the syncer
	ended   bool          // no group will follow those that are on their way
	lost    bool          // a sync has failed: the disk may lack later writes
	file    *logFile      // the committer's
	flags   vfs.SyncFlag  // of the sync that is owed
}

// open takes the committer's write-ahead log.
func (d *durability) open(conn *sqlite3.Conn) error {
	found, err := conn.FileControl("", sqlite3.FCNTL_JOURNAL_POINTER)
	if err != nil {
		return fmt.Errorf("find the write-ahead log: %w", err)
	}
	d.file, _ = found.(*logFile) // another layer's file syncs with the commit
	return nil
}

// later runs a COMMIT whose sync is left for the syncer.
func (d *durability) later(commit func() error) error {
	if d.file == nil {
		return commit()
	}
	d.file.owed = d.owe
	defer func() { d.file.owed = nil }()
	return commit()
}

func (d *durability) owe(flags vfs.SyncFlag) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written++
	d.flags = flags
}

// handed notes a group that was written.
func (d *durability) handed(g *group) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g.commit, d.sent = d.written, d.written
	d.waiting += len(g.batches)
}

// end says that a write has failed: later batches get no group.
func (d *durability) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.grown != nil {
		close(d.grown)
		d.grown = nil
	}
}

// worthIt returns nil when a group of so many batches is to be written now: when the disk has all before it, or when it is as large as what
// the disk is busy with. Else it returns what is closed when the disk is done. Written at once every group would be small, and the work
// that each costs as a group is half of the work there is.
func (d *durability) worthIt(batches int) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if batches >= d.waiting || d.lost {
		return nil
	}
	return d.moving()
}

// moving returns a channel that closes when the disk has more, or never will. The caller holds the lock.
func (d *durability) moving() <-chan struct{} {
	if d.grown == nil {
		d.grown = make(chan struct{})
	}
	return d.grown
}

// sync makes durable what was written, up to the last of the groups. Once the disk has it, and before anybody hears so, show is called.
func (d *durability) sync(groups []*group, show func()) error {
	var target uint64
	batches := 0
	for _, g := range groups {
		target = max(target, g.commit)
		batches += len(g.batches)
	}
	d.mu.Lock()
	flags, lost := d.flags, d.lost
	owed := target > d.synced
	d.mu.Unlock()
	if lost {
		return journal.ErrClosed
	}
	var err error
	if owed {
		err = d.file.File.Sync(flags)
	}
	if err == nil {
		show()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.synced = max(d.synced, target)
		d.waiting -= batches
	}
	d.lost = err != nil
	if d.grown != nil {
		close(d.grown)
		d.grown = nil
	}
	return err
}

// wait returns when the disk has everything that could be seen at the time of the call.
func (d *durability) wait(ctx context.Context) error {
	d.mu.Lock()
	target := d.written
	for d.synced < target && !d.lost && !(d.ended && target > d.sent) {
		grown := d.moving()
		d.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
		d.mu.Lock()
	}
	defer d.mu.Unlock()
	if d.synced < target {
		return journal.ErrClosed
	}
	return nil
}

// run is the loop after a commit: it waits for the disk, once for all groups that are there, and then answers their callers.
func (sy *syncer) run() {
	soon()
	var groups []*group
	for g := range sy.committer.written {
		groups = append(groups[:0], g)
		for more := true; more; {
			select {
			case g, more = <-sy.committer.written:
				if more {
					groups = append(groups, g)
				}
			default:
				more = false
			}
		}
		err := sy.durable.sync(groups, func() {
			for _, g := range groups {
				sy.views.shelf.lay(g)
				sy.views.recent.lay(g)
			}
		})
		if err != nil {
			err = sy.health.fail(err)
			sy.views.unshelve(false)
		}
		for _, g := range groups {
			sy.tell(g, err)
		}
	}
}

// tell answers the callers that wait for a group.
func (sy *syncer) tell(g *group, err error) {
	if g.done != nil {
		close(g.done)
		return
	}
	if err == nil && len(g.batches) > 0 && !g.began.IsZero() {
		sy.file.options.Committed(len(g.batches), sy.file.options.Clock.Now().Sub(g.began))
	}
	if err == nil {
		for _, t := range g.tenants {
			sy.views.watch.set(t.name, t.no, t.head)
		}
	}
	answer(g.requests, err)
}
