package bench

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/projection"
)

// BenchmarkAppend measures durable appends, one event each, by writers that wait for their acknowledgement: ours with envelope, checks,
// salted chain, indexes and two projections, beside the bare committer. What is written tells the life of runs: every writer is a run in
// a room, whose document each event changes by its data, and every event changes the document of a step, eight events long, by its envelope.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("writers=%d/ours", writers), func(b *testing.B) {
			log := openLog(b)
			drive(b, writers, func(w int) func() error {
				next := runOf(w)
				return func() error {
					_, err := log.Append(b.Context(), next())
					return err
				}
			})
		})
		b.Run(fmt.Sprintf("writers=%d/yardstick", writers), func(b *testing.B) {
			store := openBare(b)
			body := make([]byte, 512)
			drive(b, writers, func(w int) func() error {
				answer := make(chan error, 1)
				return func() error { return store.append(int64(w), body, answer) }
			})
		})
	}
}

const workspace id.Workspace = "ws_bench"

var (
	ids  = id.NewSource(time.Now, rand.Reader)
	user = id.NewPrincipal(ids, id.User)
)

// operation is the data of an event, 512 bytes as JSON.
type operation struct {
	Operation string `json:"operation_id"`
	Status    string `json:"status"`
	Exit      int    `json:"exit_code"`
	Output    string `json:"output"`
}

type runDoc struct {
	Status     string    `json:"status"`
	Operations int       `json:"operations"`
	Bytes      int       `json:"bytes"`
	Last       string    `json:"last_operation_id"`
	Room       id.Room   `json:"room_id"`
	Updated    time.Time `json:"updated_at"`
}

type stepDoc struct {
	Run     id.Run    `json:"run_id"`
	Status  string    `json:"status"`
	Events  int       `json:"events"`
	Started time.Time `json:"started_at"`
	Ended   time.Time `json:"ended_at"`
}

func definitions() []projection.Definition {
	return []projection.Definition{
		projection.Define("runs", 1, func(e event.Event) []string { return []string{string(e.Run)} },
			func(doc runDoc, _ string, e event.Event) (runDoc, error) {
				op, err := event.Decode[operation](e)
				return runDoc{op.Status, doc.Operations + 1, doc.Bytes + len(op.Output), op.Operation, e.Room, e.OccurredAt}, err
			},
			func(doc runDoc) []projection.Index {
				return []projection.Index{{Name: "status", Value: doc.Status}, {Name: "room", Value: string(doc.Room)}}
			}),
		projection.Define("steps", 1, func(e event.Event) []string { return []string{string(e.Step)} },
			func(doc stepDoc, _ string, e event.Event) (stepDoc, error) {
				if doc.Events == 0 {
					doc.Run, doc.Started = e.Run, e.OccurredAt
				}
				doc.Status, doc.Events, doc.Ended = e.Type, doc.Events+1, e.OccurredAt
				return doc, nil
			},
			func(doc stepDoc) []projection.Index { return []projection.Index{{Name: "run", Value: string(doc.Run)}} }),
	}
}

// runOf returns the events of one run, one batch after another.
func runOf(w int) func() event.Batch {
	room, run := id.New[id.Room](ids), id.New[id.Run](ids)
	origin := event.Origin{Principal: user, Correlation: id.New[id.Correlation](ids)}
	step := id.New[id.Step](ids)
	output := strings.Repeat("o", 512-len(`{"operation_id":"op-000000","status":"running","exit_code":0,"output":""}`))
	n := 0
	return func() event.Batch {
		if n++; n%8 == 0 {
			step = id.New[id.Step](ids)
		}
		data := operation{Operation: fmt.Sprintf("op-%06d", n), Status: "running", Output: output}
		draft := event.New("tool.succeeded", origin, workspace, room, data).In(run, step).About("step", string(step))
		return event.Batch{Workspace: workspace, Drafts: []event.Draft{draft}}
	}
}

func openLog(tb testing.TB) *sqlite.Journal {
	tb.Helper()
	log, err := sqlite.Open(tb.Context(), sqlite.Options{
		Path: filepath.Join(tb.TempDir(), "log.db"), Definitions: definitions(), Clock: clock{}, IDs: ids, Entropy: rand.Reader,
	})
	must(tb, err)
	tb.Cleanup(func() { must(tb, log.Close()) })
	return log
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// drive lets writers append one event after another, b.N in all, and reports the rate and how long one acknowledgement took.
func drive(b *testing.B, writers int, appender func(w int) func() error) {
	b.Helper()
	took := make([][]time.Duration, writers)
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		appendOne := appender(w)
		n := b.N / writers
		if w < b.N%writers {
			n++
		}
		took[w] = make([]time.Duration, 0, n)
		wg.Go(func() {
			for range n {
				start := time.Now()
				if err := appendOne(); err != nil {
					b.Error(err)
					return
				}
				took[w] = append(took[w], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) == 0 {
		return
	}
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(milliseconds(all[len(all)/2]), "p50-ms")
	b.ReportMetric(milliseconds(all[len(all)*99/100]), "p99-ms")
}
