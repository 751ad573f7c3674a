package query_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/query"
)

// counted counts the reads of a log.
type counted struct {
	journal.Journal
	reads atomic.Int64
}

func (c *counted) Read(ctx context.Context, q journal.Query) ([]event.Event, error) {
	c.reads.Add(1)
	return c.Journal.Read(ctx, q)
}

// grown is a log that grows in a test.
type grown struct {
	t *testing.T
	*counted
	n int
}

func newGrown(t *testing.T) *grown {
	t.Helper()
	log, err := memory.NewJournal(nil, clock{}, id.NewSource(clock{}.Now, rand.Reader), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &grown{t: t, counted: &counted{Journal: log}}
}

// grow records events of so many bytes; every third lies in the room, every second is about a space, every fifth is odd.
func (g *grown) grow(events, bytes int) {
	g.t.Helper()
	for range events {
		g.n++
		in, typ, about := id.Room(""), "thing.counted", "spc_1"
		if g.n%3 == 0 {
			in = room
		}
		if g.n%5 == 0 {
			typ = "thing.odd"
		}
		if g.n%2 == 0 {
			about = "spc_2"
		}
		data := map[string]any{"n": g.n, "text": strings.Repeat("x", bytes)}
		draft := event.New(typ, event.Origin{Principal: who, Correlation: "cor_1"}, ws, in, data).About("space", about)
		if _, err := g.Append(g.t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
			g.t.Fatal(err)
		}
	}
}

// queries is one of every kind.
var queries = []query.Query{
	{}, {From: 7}, {From: 330}, {From: 5, Before: 400}, {Types: []string{"thing.odd"}}, {Space: "spc_2"}, {Correlation: "cor_other"},
	{Stream: event.RoomStream(ws, room)}, {Stream: event.RoomStream(ws, room), From: 20, Types: []string{"thing.odd"}},
}

// TestEveryoneGetsWhatHeSelectsOnce lets many follow while the log grows, and compares with what a read finds when it has grown.
func TestEveryoneGetsWhatHeSelectsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newGrown(t)
		log.grow(120, 10)
		r := query.New(log)
		ctx, cancel := context.WithCancel(t.Context())
		got := make([][]uint64, 5*len(queries))
		var following sync.WaitGroup
		for i := range got {
			following.Go(func() {
				for item, err := range r.Follow(ctx, ws, queries[i%len(queries)]) {
					if errors.Is(err, context.Canceled) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					got[i] = append(got[i], item.Seq)
				}
			})
		}
		for range 20 {
			log.grow(20, 10)
			synctest.Wait()
		}
		cancel()
		following.Wait()
		for i := range got {
			q := queries[i%len(queries)]
			jq := journal.Query{Workspace: ws, From: q.From, Before: q.Before, Stream: q.Stream, Correlation: q.Correlation, Types: q.Types,
				Limit: journal.MaxRead}
			if q.Space != "" {
				jq.EntityType, jq.EntityID = "space", string(q.Space)
			}
			events, err := log.Journal.Read(t.Context(), jq)
			if err != nil {
				t.Fatal(err)
			}
			var want []uint64
			for _, e := range events {
				want = append(want, e.Seq)
			}
			if !slices.Equal(got[i], want) {
				t.Errorf("%+v: got %d, want %d", q, got[i], want)
			}
		}
	})
}

// TestWhatComesIsReadOnceForAll counts the reads that a thousand followers cause.
func TestWhatComesIsReadOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const followers, events = 1_000, 30
		log := newGrown(t)
		r := query.New(log)
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		var came atomic.Int64
		texts := make([][]byte, followers)
		for i := range followers {
			following.Go(func() {
				for item, err := range r.Follow(ctx, ws, query.Query{}) {
					if err != nil {
						return
					}
					came.Add(1)
					if texts[i], err = item.JSON(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		synctest.Wait()
		before := log.reads.Load()
		for range events {
			log.grow(1, 10)
			synctest.Wait()
		}
		if reads := log.reads.Load() - before; reads != events {
			t.Errorf("%d reads for %d events, want one for each", reads, events)
		}
		cancel()
		following.Wait()
		if came.Load() != followers*events {
			t.Errorf("%d came, want %d", came.Load(), followers*events)
		}
		for _, text := range texts {
			if &text[0] != &texts[0][0] || !bytes.Contains(text, []byte(`"n":30`)) {
				t.Fatalf("one of the followers has bytes of his own: %s", text)
			}
		}
	})
}

// TestWhoIsSlowReadsTheLog holds a follower up until more has come than is kept, by number and by size.
func TestWhoIsSlowReadsTheLog(t *testing.T) {
	for _, c := range []struct{ events, bytes int }{{300, 10}, {256, 10}, {257, 10}, {12, 1 << 20}, {2, 5 << 20}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := newGrown(t)
				r := query.New(log)
				ctx, cancel := context.WithCancel(t.Context())
				held := make(chan struct{})
				got := make([][]uint64, 2)
				var following sync.WaitGroup
				for i := range got {
					following.Go(func() {
						for item, err := range r.Follow(ctx, ws, query.Query{}) {
							if err != nil {
								return
							}
							if got[i] = append(got[i], item.Seq); i == 1 {
								<-held
							}
						}
					})
				}
				synctest.Wait()
				for range c.events {
					log.grow(1, c.bytes)
					synctest.Wait()
				}
				close(held)
				synctest.Wait()
				log.grow(1, 10)
				synctest.Wait()
				cancel()
				following.Wait()
				for i := range got {
					if len(got[i]) != c.events+1 || !slices.IsSorted(got[i]) || got[i][c.events] != uint64(c.events+1) {
						t.Errorf("follower %d got %d", i, got[i])
					}
				}
			})
		})
	}
}

func TestWhoFollowsBeginsAtAPlace(t *testing.T) {
	for _, err := range filled(t).Follow(t.Context(), ws, query.Query{Last: true}) {
		if fault.CodeOf(err) != "query_invalid" {
			t.Errorf("got %v", err)
		}
	}
}
