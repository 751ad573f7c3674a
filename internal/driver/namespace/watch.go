//go:build linux

package namespace

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/space"
)

// The disk watcher. No common file system bounds a folder. So while commands run, the watcher reads the free space of the whole file system
// every tick, which costs a microsecond. It walks the folder when so much space has gone that the space may be over its bound, and from
// time to time in any case. A command may overshoot by its writes in a tick and one walk. Each walk includes files without a name that
// processes hold (hidden.go). A busy host makes a walk slow, but does not slow what a command writes in the same degree: so the pauses
// between walks have a bound.
const (
	tick     = 10 * time.Millisecond
	audit    = time.Second // a walk is due after so long in any case
	breather = 8           // a walk is followed by so many times its own duration without one, but at most by breath
	breath   = 2 * time.Second
	patience = time.Second  // how long something may hold files that nobody can measure (unseen.go)
	recheck  = patience / 4 // how soon the watcher looks again
	slack    = 1 << 20      // what a space that is over its bound already may still grow by: file systems settle their accounts late
)

// watcher watches the files of one space while commands run.
type watcher struct {
	dir   string
	bytes int64 // the bounds
	files int64

	mu      sync.Mutex
	next    int
	running map[int]func(bound string) // what to do to each command when a bound is hit
	cancel  context.CancelFunc
	stopped chan struct{}

	seen survey // of the goroutine that watches; there is one at a time
	eye  *eye   // its own too
}

// survey is the result of the last walk, and the free space of the file system then.
type survey struct {
	bytes, files         int64
	depth                int
	freeBytes, freeFiles int64
	due, rest            time.Time            // when the next walk is needed in any case, and when it is allowed
	unseen               map[string]time.Time // since when something could not be measured
}

func newWatcher(dir string, bytes int64, e *eye) *watcher {
	return &watcher{dir: dir, bytes: bytes, files: space.MaxFiles(bytes), eye: e, running: map[int]func(string){}}
}

// join watches on behalf of one command until the returned function is called.
func (w *watcher) join(overrun func(bound string)) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	key := w.next
	w.running[key] = overrun
	if len(w.running) == 1 {
		before := w.stopped
		var ctx context.Context
		ctx, w.cancel = context.WithCancel(context.Background())
		w.stopped = make(chan struct{})
		go w.run(ctx, before, w.stopped)
	}
	return func() { w.leave(key) }
}

func (w *watcher) leave(key int) {
	w.mu.Lock()
	delete(w.running, key)
	idle := len(w.running) == 0
	stopped := w.stopped
	if idle {
		w.cancel()
	}
	w.mu.Unlock()
	if idle {
		<-stopped
	}
}

// run looks at every tick. A space that is over its bounds already may go on, so that it can delete something, but may not grow.
func (w *watcher) run(ctx context.Context, before <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	if before != nil {
		<-before
	}
	defer w.eye.drop(nil)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	s := &w.seen
	if now := time.Now(); now.After(s.due) || s.grown(w.dir, w.bytes, w.files) {
		if err := w.walk(ctx, now); err != nil {
			return
		}
	}
	bytes, files, depth := w.bytes, w.files, max(deepest, s.depth)
	if s.bytes > bytes || s.files > files {
		bytes, files = max(bytes, s.bytes+slack), max(files, s.files)
	}
	for {
		if now := time.Now(); now.After(s.due) || now.After(s.rest) && s.grown(w.dir, bytes, files) {
			if err := w.walk(ctx, now); err != nil {
				return
			}
			if s.bytes > bytes || s.files > files || s.overdue(now) {
				w.overrun("disk_bytes")
			}
			if s.depth > depth {
				w.overrun("folder_depth")
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// grown reports whether so much of the file system has gone since the survey that the space may be over these bounds.
func (s *survey) grown(dir string, bytes, files int64) bool {
	freeBytes, freeFiles := free(dir)
	return s.bytes+s.freeBytes-freeBytes > bytes || s.files+s.freeFiles-freeFiles > files
}

// walk makes a survey. A tree that cannot be measured, such as deep folders that move, is over every bound.
func (w *watcher) walk(ctx context.Context, now time.Time) error {
	s := &w.seen
	s.freeBytes, s.freeFiles = free(w.dir)
	// Files without a name come first: one that loses its name in between is found next time, and none is counted twice.
	held, err := look(ctx, w.eye)
	t := tally{}
	if err == nil {
		t, err = measure(ctx, w.dir, &held)
	}
	s.bytes, s.files, s.depth = t.bytes+held.bytes, t.files+int64(len(held.found)), t.depth
	s.note(held.unseen, now)
	if err != nil {
		if ctx.Err() == nil {
			w.overrun("folder_depth")
		}
		s.due = time.Time{}
		return err
	}
	s.plan(now, time.Since(now))
	w.eye.drop(held.mapped)
	return nil
}

// plan says when the next walk is allowed and when it is needed in any case, after one that began at now and took so long.
func (s *survey) plan(now time.Time, took time.Duration) {
	pause, soon := min(breather*took, breath), audit
	if len(s.unseen) > 0 {
		soon = recheck
	}
	end := now.Add(took)
	s.rest, s.due = end.Add(pause), end.Add(max(soon, 2*pause))
}

// note remembers since when each thing is unseen, and forgets things that are seen again.
func (s *survey) note(unseen map[string]bool, now time.Time) {
	before := s.unseen
	s.unseen = nil
	for key := range unseen {
		if s.unseen == nil {
			s.unseen = map[string]time.Time{}
		}
		s.unseen[key] = now
		if since, ok := before[key]; ok {
			s.unseen[key] = since
		}
	}
}

// overdue reports whether something has been unseen for longer than it may be.
func (s *survey) overdue(now time.Time) bool {
	for _, since := range s.unseen {
		if now.Sub(since) >= patience {
			return true
		}
	}
	return false
}

// overrun ends every command that runs.
func (w *watcher) overrun(bound string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.running {
		f(bound)
	}
}

// free returns the free space of the file system of dir.
func free(dir string) (bytes, files int64) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, 0
	}
	return int64(st.Bfree) * st.Frsize, int64(st.Ffree)
}

// measure adds up what the files below dir take on disk and how many they are. Programs in the space change them meanwhile and may be
// hostile: folders are opened one below the other, links are not followed, and nothing but their sizes is read.
// Files that a look has found are left out, and those that are mapped are kept for a blind eye; held may be nil.
func measure(ctx context.Context, dir string, held *hidden) (tally, error) {
	t := tally{buf: make([]byte, 32<<10)}
	if held != nil {
		t.counted, t.wanted, t.eye = held.found, held.mapped, held.eye
	}
	fd, err := openFolder(unix.AT_FDCWD, dir)
	if err == nil {
		err = t.near(ctx, fd, 0)
	}
	return t, err
}

const folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW

// openFolder opens a folder so that reading it leaves its time of access alone, where the daemon may do that. Else each walk would write to
// the disk, and would wait for the journal of the file system. A busy disk lets a writer of the journal wait for half a minute and more,
// and so long the bound would not hold.
func openFolder(at int, name string) (int, error) {
	fd, err := unix.Openat(at, name, folderFlags|unix.O_NOATIME, 0)
	if err == unix.EPERM { // a folder of another user
		fd, err = unix.Openat(at, name, folderFlags, 0)
	}
	return fd, err
}

// deepest is how many folders a command may nest; a space whose folders are deeper already may keep them, and delete them. So many are
// measured with a descriptor each, and what lies deeper with one.
const deepest = space.MaxFolderDepth

// errRestless says that deep folders were moved while they were measured, so their place is not known any more.
var errRestless = errors.New("folders that are nested too deep to be held open were moved while they were measured")

// tally is the result of a measurement.
type tally struct {
	bytes, files int64
	depth        int // of the deepest folder
	buf          []byte
	counted      map[inode]bool // files that were found before
	wanted       map[inode]bool // files of which the eye keeps a reference
	eye          *eye
}

// near adds what is below a folder that is so deep, and closes it.
func (t *tally) near(ctx context.Context, fd, depth int) error {
	defer func() { _ = unix.Close(fd) }()
	folders, err := t.entries(ctx, fd)
	if err != nil {
		return err
	}
	for _, name := range folders {
		below, err := openFolder(fd, name)
		if err != nil {
			continue // gone meanwhile
		}
		t.depth = max(t.depth, depth+1)
		if depth+1 < deepest {
			err = t.near(ctx, below, depth+1)
		} else {
			err = t.far(ctx, below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// far adds what is below a folder, however deep, and closes it. It goes back up by the folder's own word for what is above, and believes it
// only where that is the folder that it came from: nobody leads it out of the space by moving folders.
func (t *tally) far(ctx context.Context, fd int) error {
	type level struct {
		dev, ino uint64
		folders  []string // that were not looked at yet
	}
	var above []level
	defer func() { _ = unix.Close(fd) }()
	enter := func() error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		folders, err := t.entries(ctx, fd)
		above = append(above, level{st.Dev, st.Ino, folders})
		t.depth = max(t.depth, deepest-1+len(above))
		return err
	}
	if err := enter(); err != nil {
		return err
	}
	for {
		at := &above[len(above)-1]
		if len(at.folders) > 0 {
			name := at.folders[0]
			at.folders = at.folders[1:]
			below, err := openFolder(fd, name)
			if err != nil {
				continue // gone meanwhile
			}
			_ = unix.Close(fd)
			fd = below
			if err := enter(); err != nil {
				return err
			}
			continue
		}
		if above = above[:len(above)-1]; len(above) == 0 {
			return nil
		}
		up, err := openFolder(fd, "..")
		if err != nil {
			return errRestless
		}
		_ = unix.Close(fd)
		fd = up
		var st unix.Stat_t
		if parent := above[len(above)-1]; unix.Fstat(fd, &st) != nil || st.Dev != parent.dev || st.Ino != parent.ino {
			return errRestless
		}
	}
}

// entries adds what lies in a folder itself, and returns the names of its folders.
func (t *tally) entries(ctx context.Context, fd int) (folders []string, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := unix.ReadDirent(fd, t.buf)
		if err != nil || n == 0 {
			return folders, nil //nolint:nilerr // gone meanwhile, or all read
		}
		var names []string
		_, _, names = unix.ParseDirent(t.buf[:n], -1, nil)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			key := inode{st.Dev, st.Ino}
			if t.counted[key] {
				continue
			}
			if _, ok := t.wanted[key]; ok {
				t.eye.keep(key, fd, name, unix.O_NOFOLLOW)
			}
			t.files++
			t.bytes += st.Blocks * 512
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				folders = append(folders, name)
			}
		}
	}
}
