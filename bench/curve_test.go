package bench

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
	"agentbox/internal/testkit/pgtest"
)

var (
	curveTo    = flag.Uint64("curve", 0, "events up to which TestTheCurve fills the log")
	curveStore = flag.String("curve-store", "sqlite", "where the log of TestTheCurve is kept: sqlite or postgres")
	curveOut   = flag.String("curve-out", "", "where TestTheCurve writes its points, as .json and as .svg")
)

// curvePlaces are the sizes of the log at which it is measured.
var curvePlaces = []uint64{0, 1_000, 10_000, 100_000, 1_000_000, 5_000_000}

// The measurements at each place. Each is repeated, and the median counts.
const (
	curveTimes   = 5
	curveWriters = 64
	curveAppends = 10_000 // by all writers, one event each; at most as many as lead to the next place
	curveReads   = 400    // of the last hundred events
	curvePage    = 50     // messages of a room, as many as the API shows at a time
	curveTails   = 100    // events that a follower waits for, one at a time
)

// point is what was measured at one size.
type point struct {
	Events  uint64  `json:"events"`
	Rate    float64 `json:"events_per_second"` // of 64 writers, each event committed when it is acknowledged
	CPU     float64 `json:"cpu_us_per_event"`  // of the processors, for the same; with neighbours on the machine it tells more than the rate
	P50     float64 `json:"append_p50_ms"`
	Read    float64 `json:"read_last_100_p50_ms"`
	Page    float64 `json:"page_of_a_room_p50_ms"`     // the newest 50 messages of a thread, in which one of ten events is
	Stream  float64 `json:"stream_of_a_room_p50_ms"`   // the last 50 events of the stream of its room
	Tail    float64 `json:"append_to_follower_p50_ms"` // of one writer: the commit, the notice and the read
	PerByte float64 `json:"bytes_per_event"`           // of all files, once the log has been closed; 0 where it went on
}

// TestTheCurve measures appends and reads of the tail and of a room while the log grows, through the journal as the daemon has it: hash
// chains, indexes, documents, and a signer that grows the Merkle tree and signs a checkpoint every second meanwhile. Up to ten thousand
// events every try has a log of its own, made to that size; the larger sizes are measured one after the other in one log. `make
// bench-curve` goes to five million.
func TestTheCurve(t *testing.T) {
	var points []point
	for i, place := range curvePlaces {
		if place > *curveTo {
			break
		}
		next := uint64(curveAppends)
		if i+1 < len(curvePlaces) {
			next = min(next, curvePlaces[i+1]-place)
		}
		if place > 10_000 {
			continue
		}
		var tries []point
		for range curveTimes {
			c := openCurve(t)
			c.fill(t, place)
			tries = append(tries, c.measure(t, next))
			c.close(t)
		}
		points = append(points, middle(tries))
		say(t, points[len(points)-1])
	}
	if *curveTo > 10_000 {
		points = append(points, largeCurve(t)...)
	}
	fmt.Printf("\n%12s %12s %12s %10s %14s %10s %10s %16s %12s\n", "events", "events/s", "cpu us/event", "p50 ms", "last 100 ms", "page ms",
		"stream ms", "to follower ms", "bytes/event")
	for _, p := range points {
		fmt.Printf("%12d %12.0f %12.1f %10.2f %14.3f %10.3f %10.3f %16.3f %12.0f\n", p.Events, p.Rate, p.CPU, p.P50, p.Read, p.Page, p.Stream,
			p.Tail, p.PerByte)
		if p.Rate <= 0 || p.Read <= 0 || p.Page <= 0 || p.Stream <= 0 || p.Tail <= 0 {
			t.Errorf("at %d events something was not measured: %+v", p.Events, p)
		}
	}
	if *curveOut == "" {
		return
	}
	raw, err := json.MarshalIndent(points, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{".json": append(raw, '\n'), ".svg": drawCurve(points)} {
		if err := os.WriteFile(*curveOut+name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// largeCurve measures at the sizes that one log grows to.
func largeCurve(t *testing.T) (points []point) {
	c := openCurve(t)
	for _, place := range curvePlaces {
		if place <= 10_000 || place > *curveTo {
			continue
		}
		c.fill(t, place)
		var tries []point
		for range curveTimes {
			tries = append(tries, c.measure(t, curveAppends))
		}
		points = append(points, middle(tries))
		points[len(points)-1].Events = place
		say(t, points[len(points)-1])
	}
	if len(points) == 0 {
		c.close(t)
		return nil
	}
	head := c.head(t)
	c.close(t)
	if c.folder {
		size := sizeOf(t, c.dir)
		fmt.Printf("  the files of %d events have %.0f MB\n", head, float64(size)/1e6)
		points[len(points)-1].PerByte = float64(size) / float64(head)
	}
	return points
}

func say(t *testing.T, p point) {
	t.Helper()
	fmt.Printf("  at %d: %.0f events/s of %.1f us, p50 %.2f ms; last 100 in %.3f ms; page of a room in %.3f ms, of its stream in %.3f ms; "+
		"follower after %.3f ms\n",
		p.Events, p.Rate, p.CPU, p.P50, p.Read, p.Page, p.Stream, p.Tail)
}

// curve is a log that grows.
type curve struct {
	dir    string
	log    closingStore
	folder bool // all of it lies in dir
	talk   talk
	signer *audit.Signer
	stop   context.CancelFunc
	ended  sync.WaitGroup
	next   func() event.Batch
	filled uint64
}

func openCurve(t *testing.T) *curve {
	t.Helper()
	c := &curve{dir: t.TempDir(), next: runOf(user)}
	c.open(t)
	key, _, err := merkle.NewKey(rand.Reader)
	must(t, err)
	c.signer, err = audit.NewSigner(c.log, trees.Open(filepath.Join(c.dir, "proofs"), clock{}), key)
	must(t, err)
	must(t, c.signer.Recover(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	c.ended.Go(func() {
		turn := time.NewTicker(time.Second)
		defer turn.Stop()
		for {
			select {
			case <-turn.C:
				if err := c.signer.Step(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return c
}

// closingStore is what both stores are.
type closingStore interface {
	store
	Close() error
}

// open opens an empty log where it is to be kept.
func (c *curve) open(t *testing.T) {
	t.Helper()
	folds := definitions()
	var err error
	switch *curveStore {
	case "sqlite":
		c.folder = true
		c.log, err = sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(c.dir, "log.db"), Definitions: folds, Clock: clock{}, IDs: ids,
			Entropy: rand.Reader})
	case "postgres":
		c.log, err = postgres.Open(t.Context(), postgres.Options{
			Address: pgtest.StartOnDisk(t).Database(), Definitions: folds, Clock: clock{}, IDs: ids, Entropy: rand.Reader, Alone: true,
		})
	default:
		t.Fatalf("-curve-store %s: there are sqlite and postgres", *curveStore)
	}
	must(t, err)
	c.talk = talk{id.New[id.Room](ids), id.New[id.Thread](ids)}
	batch := event.Batch{Workspace: workspace}
	for range curvePage {
		batch.Drafts = append(batch.Drafts, c.talk.message())
	}
	_, err = c.log.Append(t.Context(), batch)
	must(t, err)
}

// talk is a thread of a room that gets longer as the log does.
type talk struct {
	room   id.Room
	thread id.Thread
}

func (k talk) message() event.Draft {
	said := room.MessageCreated{Message: id.New[id.Message](ids), Thread: k.thread, SenderType: id.User, Sender: string(user),
		Content: "Weighed, counted, and found to be enough.", Lang: "en"}
	origin := event.Origin{Principal: user, Correlation: id.New[id.Correlation](ids)}
	draft := event.New(room.EventMessageCreated, origin, workspace, k.room, said).About(room.MessageEntity, string(said.Message))
	draft.Thread = k.thread
	return draft
}

// pages reads pages of the room as the API does: of the thread's messages, and of the room's stream.
func (c *curve) pages(t *testing.T) (page, stream float64) {
	t.Helper()
	var pages, streams []time.Duration
	for range curveReads {
		began := time.Now()
		docs, err := c.log.Documents(t.Context(), projection.Query{
			Workspace: workspace, Name: room.MessageProjection, Index: projection.Index{Name: room.IndexThread, Value: string(c.talk.thread)},
			Newest: true, Limit: curvePage,
		})
		must(t, err)
		pages = append(pages, time.Since(began))
		began = time.Now()
		events, err := c.log.Read(t.Context(), journal.Query{Workspace: workspace, Stream: event.RoomStream(workspace, c.talk.room), Last: true,
			Limit: curvePage})
		must(t, err)
		streams = append(streams, time.Since(began))
		if len(docs) != curvePage || len(events) != curvePage {
			t.Fatalf("a page has %d messages and %d events, want %d of each", len(docs), len(events), curvePage)
		}
	}
	return half(pages), half(streams)
}

func (c *curve) close(t *testing.T) {
	t.Helper()
	c.stop()
	c.ended.Wait()
	must(t, c.signer.Step(context.WithoutCancel(t.Context())))
	must(t, c.log.Close())
}

func (c *curve) head(t *testing.T) uint64 {
	t.Helper()
	head, err := c.log.Head(t.Context(), workspace)
	must(t, err)
	return head
}

// fill appends up to a size, a thousand events in a batch, fifty of each run, and says now and then how far it has come.
func (c *curve) fill(t *testing.T, to uint64) {
	t.Helper()
	start, from, said := time.Now(), c.head(t), time.Now()
	for head := from; head < to; {
		batch := event.Batch{Workspace: workspace}
		for uint64(len(batch.Drafts)) < min(to-head, journal.MaxBatch) {
			if c.filled%50 == 0 {
				c.next = runOf(user)
			}
			if c.filled++; c.filled%10 == 0 {
				batch.Drafts = append(batch.Drafts, c.talk.message())
				continue
			}
			batch.Drafts = append(batch.Drafts, c.next().Drafts...)
		}
		got, err := c.log.Append(t.Context(), batch)
		must(t, err)
		head = got.Events[len(got.Events)-1].Seq
		if time.Since(said) > 10*time.Second || head == to && to > 10_000 {
			said = time.Now()
			fmt.Printf("  filled to %d of %d, %.0f events/s, %.0f MB\n", head, to, float64(head-from)/time.Since(start).Seconds(),
				float64(sizeOf(t, c.dir))/1e6)
		}
	}
}

// measure appends events and reads the tail.
func (c *curve) measure(t *testing.T, appends uint64) point {
	t.Helper()
	p := point{Events: c.head(t)}
	took := make([][]time.Duration, curveWriters)
	var writing sync.WaitGroup
	start, used := time.Now(), cpuTime(t)
	for w := range curveWriters {
		next := runOf(user)
		writing.Go(func() {
			for n := uint64(w); n < appends; n += curveWriters {
				began := time.Now()
				if _, err := c.log.Append(t.Context(), next()); err != nil {
					t.Error(err)
					return
				}
				took[w] = append(took[w], time.Since(began))
			}
		})
	}
	writing.Wait()
	p.Rate = float64(appends) / time.Since(start).Seconds()
	p.CPU = float64((cpuTime(t) - used).Nanoseconds()) / 1000 / float64(appends)
	p.P50 = half(slices.Concat(took...))
	var reads, tails []time.Duration
	for range curveReads {
		began := time.Now()
		_, err := c.log.Read(t.Context(), journal.Query{Workspace: workspace, Last: true, Limit: 100})
		must(t, err)
		reads = append(reads, time.Since(began))
	}
	p.Read = half(reads)
	p.Page, p.Stream = c.pages(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	came := make(chan time.Time)
	from := c.head(t) + 1 // asked before the first append, or the tail misses it when the goroutine starts late
	go func() {
		defer close(came)
		for _, err := range journal.Tail(ctx, c.log, journal.Query{Workspace: workspace, From: from}) {
			if err != nil {
				return
			}
			select {
			case came <- time.Now():
			case <-ctx.Done():
				return
			}
		}
	}()
	for range curveTails {
		batch := c.next()
		began := time.Now()
		_, err := c.log.Append(t.Context(), batch)
		must(t, err)
		tails = append(tails, (<-came).Sub(began))
	}
	p.Tail = half(tails)
	return p
}

// half is the median in milliseconds.
func half(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Nanoseconds()) / 1e6
}

// middle is the median of every figure; Events are those of the first.
func middle(tries []point) point {
	of := func(figure func(point) float64) float64 {
		var all []float64
		for _, p := range tries {
			all = append(all, figure(p))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return point{
		Events: tries[0].Events, Rate: of(func(p point) float64 { return p.Rate }), CPU: of(func(p point) float64 { return p.CPU }),
		P50:  of(func(p point) float64 { return p.P50 }),
		Read: of(func(p point) float64 { return p.Read }), Page: of(func(p point) float64 { return p.Page }), Stream: of(func(p point) float64 {
			return p.Stream
		}),
		Tail: of(func(p point) float64 { return p.Tail }),
	}
}

// sizeOf is what the files below a folder have, in bytes.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return size
}
