package spaces

import (
	"testing"

	"agentbox/internal/domain/space"
)

// TestTheQueueOfAWatch holds that a reader within the bound hears everything, and one behind it hears that something is lost.
func TestTheQueueOfAWatch(t *testing.T) {
	for _, c := range []struct {
		events, queued int
		lost           bool
	}{{WatchQueue - 1, WatchQueue - 1, false}, {WatchQueue, WatchQueue, false}, {WatchQueue + 1, WatchQueue, true}} {
		w := &Watches{}
		w.cursor.Store(7)
		f := &watchFeed{news: make(chan struct{}), floor: 7}
		f.add(&w.cursor, make([]space.WatchEvent, c.events))
		r := &WatchReader{watches: w, feed: f, at: 7}
		if len(f.queue) != c.queued || (r.at < f.floor) != c.lost {
			t.Errorf("%d events: %d are kept, floor %d", c.events, len(f.queue), f.floor)
		}
		if !c.lost {
			continue
		}
		if told, err := r.Next(t.Context()); err != nil || told.Kind != WatchOverflow || told.Cursor != w.cursor.Load() {
			t.Errorf("%d events: %+v, %v", c.events, told, err)
		}
		r.at = f.floor
		if from := f.queue[0].Cursor; from != r.at+1 {
			t.Errorf("after the floor %d comes %d", r.at, from)
		}
	}
}
