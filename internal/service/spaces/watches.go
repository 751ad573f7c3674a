package spaces

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// The bounds of watches of files.
const (
	MaxWatches          = 16          // watched folders of one space, those that wait for a reader to come back among them
	MaxWorkspaceWatches = 64          // the same of one workspace
	MaxWatchReaders     = 32          // readers of one watched folder
	WatchQueue          = 4096        // events of one watched folder that are kept for its readers
	WatchLinger         = time.Minute // how long a watch goes on without a reader
)

// Further kinds of events of a watch.
const (
	WatchOverflow = "overflow" // changes were lost: list the folder anew
	WatchEnded    = "ended"    // the watch is over; Reason says why
)

// Watches tell callers what becomes of the files of spaces. Readers of the same folder share a watch of the driver. Each passes the gate by
// itself, and hears only of files that it may read.
type Watches struct {
	files  *Files
	clock  event.Clock
	logger *slog.Logger
	cursor atomic.Uint64 // the last that was given away

	mu     sync.Mutex // guards the fields below
	all    map[watchKey]*watchFeed
	closed bool
	work   sync.WaitGroup
}

// watchKey names a watched folder.
type watchKey struct {
	workspace id.Workspace
	space     id.Space
	path      string
	recursive bool
}

// Told is one thing that a reader of a watch hears.
type Told struct {
	space.WatchEvent
	Cursor uint64
	Reason string // of overflow and ended: a stable code
}

// watchFeed is a watch of the driver with the last events that it told. The cursors of all feeds come from one counter, which begins with
// the time of the daemon's start. So a cursor is a moment: it means the same for every feed, and a cursor of an earlier daemon is
// recognised.
type watchFeed struct {
	key   watchKey
	watch space.Watch
	end   context.CancelFunc

	mu      sync.Mutex // guards the fields below
	queue   []Told     // the last of them, at most WatchQueue
	floor   uint64     // everything that came after this cursor is in the queue
	news    chan struct{}
	ended   string // why the watch is over; "" while it is not
	readers int
	left    time.Time // when the last reader went
}

func newWatches(files *Files, clock event.Clock, logger *slog.Logger) *Watches {
	w := &Watches{files: files, clock: clock, logger: logger, all: map[watchKey]*watchFeed{}}
	w.cursor.Store(uint64(clock.Now().UnixMicro()))
	return w
}

// WatchReader hears what becomes of the files of a folder. One goroutine uses it, and closes it.
type WatchReader struct {
	watches *Watches
	feed    *watchFeed
	origin  event.Origin
	at      uint64
	waiting []Told
}

// Open begins to watch a folder of a space, or goes on after a cursor. "." is the space's top. The first that a reader hears is overflow
// if it is not known what happened after the cursor. Opening passes the gate as listing the folder does.
func (w *Watches) Open(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string, recursive bool,
	after *uint64) (*WatchReader, error) {
	path, err := space.CleanPath(path)
	if err != nil {
		return nil, err
	}
	key := watchKey{ws, s, path, recursive}
	var feed *watchFeed
	err = w.files.lookAs(ctx, origin, ws, s, space.FileRead{Action: policy.FileList, Path: path, Watch: true},
		func(files space.Files, p policy.Permit) (err error) {
			feed, err = w.join(ctx, key, files, p)
			return err
		})
	if err != nil {
		if feed != nil {
			w.leave(feed)
		}
		return nil, err
	}
	r := &WatchReader{watches: w, feed: feed, origin: origin}
	feed.mu.Lock()
	defer feed.mu.Unlock()
	switch now := w.cursor.Load(); {
	case after == nil:
		r.at = now
	case *after > now: // of a clock that was set back, or of nobody
		r.at = 0
	default:
		r.at = *after
	}
	return r, nil
}

// join returns the feed of a folder with one reader more.
func (w *Watches) join(ctx context.Context, key watchKey, files space.Files, p policy.Permit) (*watchFeed, error) {
	if feed, err := w.attach(key, nil); feed != nil || err != nil {
		if err == nil {
			if err = feed.watch.Join(p); err != nil {
				w.leave(feed)
				feed = nil
			}
		}
		return feed, err
	}
	made, err := files.Watch(ctx, p, key.recursive)
	if err != nil {
		return nil, err
	}
	feed, err := w.attach(key, made)
	if err != nil || feed.watch != made { // another reader was faster
		err = errors.Join(err, made.Close())
	}
	return feed, err
}

// attach returns the feed of a folder with one reader more; with made, a new one of it if there is none. It returns nil if there is none.
func (w *Watches) attach(key watchKey, made space.Watch) (*watchFeed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, fault.New(fault.Unavailable, "daemon_stopping", "the daemon stops; watch again when it is back")
	}
	if feed := w.all[key]; feed != nil {
		entered, err := feed.enter()
		if err != nil {
			return nil, err
		}
		if entered {
			return feed, nil
		}
		w.drop(feed)
	}
	if err := w.room(key); err != nil || made == nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	feed := &watchFeed{key: key, watch: made, end: end, news: make(chan struct{}), floor: w.cursor.Load(), readers: 1}
	w.all[key] = feed
	w.work.Go(func() { w.follow(ctx, feed) })
	return feed, nil
}

// room makes room for one more watch: one that nobody reads ends for it. The lock is held.
func (w *Watches) room(key watchKey) error {
	most := map[string]int{"space": MaxWatches, "workspace": MaxWorkspaceWatches}
	for _, of := range []string{"space", "workspace"} {
		var idle *watchFeed
		count := 0
		for other, feed := range w.all {
			if other.workspace != key.workspace || of == "space" && other.space != key.space {
				continue
			}
			count++
			if at, ok := feed.idle(); ok && (idle == nil || at.Before(idle.left)) {
				idle = feed
			}
		}
		if count < most[of] {
			continue
		}
		if idle == nil {
			return fault.New(fault.Exhausted, "too_many_watches", "at most %d folders of one %s are watched at a time; close a watch, or watch a "+
				"folder above recursively", most[of], of)
		}
		w.drop(idle)
	}
	return nil
}

// drop ends a feed. The lock is held.
func (w *Watches) drop(feed *watchFeed) {
	if w.all[feed.key] == feed {
		delete(w.all, feed.key)
	}
	feed.end()
}

// follow fills the queue of a feed until it ends.
func (w *Watches) follow(ctx context.Context, feed *watchFeed) {
	for {
		told, err := feed.watch.Next(ctx)
		if err != nil {
			reason := fault.CodeOf(err)
			if ctx.Err() == nil && reason == "" {
				reason = "watch_failed"
				w.logger.Error("the watch of a folder broke", slog.String("code", "watch_failed"),
					slog.String("space_id", string(feed.key.space)), slog.String("cause", err.Error()))
			}
			if ctx.Err() != nil {
				reason = "watch_closed"
			}
			feed.over(reason)
			if err := feed.watch.Close(); err != nil {
				w.logger.Error("the watch of a folder was not closed", slog.String("code", "watch_not_closed"),
					slog.String("space_id", string(feed.key.space)), slog.String("cause", err.Error()))
			}
			return
		}
		feed.add(&w.cursor, told)
	}
}

// leave takes a reader from a feed, which goes on for a while so that the reader can come back.
func (w *Watches) leave(feed *watchFeed) {
	feed.mu.Lock()
	feed.readers--
	last := feed.readers == 0
	feed.left = w.clock.Now()
	left := feed.left
	feed.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !last || w.closed || w.all[feed.key] != feed {
		return
	}
	over, release := w.clock.NewTimer(WatchLinger)
	w.work.Go(func() {
		defer release()
		feed.wait(over)
		w.mu.Lock()
		defer w.mu.Unlock()
		if at, idle := feed.idle(); idle && at.Equal(left) {
			w.drop(feed)
		}
	})
}

// Close ends every watch and waits for it.
func (w *Watches) Close() {
	w.mu.Lock()
	w.closed = true
	for _, feed := range w.all {
		w.drop(feed)
	}
	w.mu.Unlock()
	w.work.Wait()
}

// enter adds a reader; false if the feed is over.
func (f *watchFeed) enter() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended != "" {
		return false, nil
	}
	if f.readers >= MaxWatchReaders {
		return false, fault.New(fault.Exhausted, "too_many_watches", "at most %d readers watch one folder of a space; close one of them",
			MaxWatchReaders)
	}
	f.readers++
	return true, nil
}

// idle reports since when nobody reads the feed.
func (f *watchFeed) idle() (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left, f.readers == 0
}

// wait returns when a timer is over, or when the feed is.
func (f *watchFeed) wait(over <-chan time.Time) {
	for {
		f.mu.Lock()
		news, ended := f.news, f.ended != ""
		f.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-over:
			return
		case <-news:
		}
	}
}

// over says that the watch has ended.
func (f *watchFeed) over(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = reason
	close(f.news)
	f.news = make(chan struct{})
}

// add appends events to the queue.
func (f *watchFeed) add(cursor *atomic.Uint64, told []space.WatchEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range told {
		f.queue = append(f.queue, Told{WatchEvent: e, Cursor: cursor.Add(1)})
	}
	if more := len(f.queue) - WatchQueue; more > 0 {
		f.floor = f.queue[more-1].Cursor
		f.queue = slices.Delete(f.queue, 0, more)
	}
	close(f.news)
	f.news = make(chan struct{})
}

// Polls returns how long the watch waits between two looks at the files; 0 where it hears of changes at once.
func (r *WatchReader) Polls() time.Duration { return r.feed.watch.Polls() }

// Cursor returns how far the reader has come.
func (r *WatchReader) Cursor() uint64 { return r.at }

// Close ends the reader. The watch goes on for WatchLinger, so that another reader can go on after the cursor.
func (r *WatchReader) Close() { r.watches.leave(r.feed) }

// Next waits for the reader's next change. After ended nothing more comes.
func (r *WatchReader) Next(ctx context.Context) (Told, error) {
	for {
		if len(r.waiting) > 0 {
			next := r.waiting[0]
			r.waiting = r.waiting[1:]
			return next, nil
		}
		if err := r.fetch(ctx); err != nil {
			return Told{}, err
		}
	}
}

// fetched is how many events a reader takes at once.
const fetched = 256

// fetch takes events from the feed, and leaves out those that the reader may not hear. It waits if there are none.
func (r *WatchReader) fetch(ctx context.Context) error {
	f := r.feed
	f.mu.Lock()
	if r.at < f.floor {
		r.at = r.watches.cursor.Load()
		f.mu.Unlock()
		r.waiting = []Told{{WatchEvent: space.WatchEvent{Kind: WatchOverflow}, Cursor: r.at, Reason: "events_lost"}}
		return nil
	}
	from, _ := slices.BinarySearchFunc(f.queue, r.at+1, func(t Told, c uint64) int {
		switch {
		case t.Cursor < c:
			return -1
		case t.Cursor > c:
			return 1
		}
		return 0
	})
	some := slices.Clone(f.queue[from:min(len(f.queue), from+fetched)])
	ended, news := f.ended, f.news
	f.mu.Unlock()
	if len(some) == 0 && ended != "" {
		r.waiting = []Told{{WatchEvent: space.WatchEvent{Kind: WatchEnded}, Cursor: r.at, Reason: ended}}
		return nil
	}
	if len(some) == 0 {
		select {
		case <-news:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	r.at = some[len(some)-1].Cursor
	var err error
	r.waiting, err = r.watches.may(ctx, r.origin, f.key, some)
	return err
}

// may leaves out what a caller may not hear: of files that it may not read, and of names that the space's policy withholds from code. It
// does not matter who made them.
func (w *Watches) may(ctx context.Context, origin event.Origin, key watchKey, told []Told) ([]Told, error) {
	doc, err := w.files.catalog.alive(ctx, key.workspace, key.space)
	if errors.Is(err, ErrDestroyed) {
		return nil, nil // its end comes next
	}
	if err != nil {
		return nil, err
	}
	rules, err := w.files.withheld.rules(ctx, doc)
	if err != nil {
		return nil, err
	}
	kept := told[:0]
	for _, t := range told {
		typ := policy.FileRead
		if t.Type == "directory" {
			typ = policy.FileList
		}
		hidden := func(path string) bool {
			if _, held := rules.Match(path); held {
				return true
			}
			ruling, err := w.files.gate.Judge(ctx, policy.Action{Type: typ, Workspace: key.workspace, Room: doc.Room, Principal: origin.Principal,
				Token: origin.Token, Space: key.space, Path: path, Bundle: doc.Bundle})
			return err != nil || !ruling.Decision.Allowed()
		}
		e, ok := t.Without(hidden)
		if ok {
			t.WatchEvent = e
			kept = append(kept, t)
		}
	}
	return kept, nil
}
