package bench

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/bench/yardstick"
	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
)

// BenchmarkAppend measures durable appends, one event each, by writers that wait for their acknowledgement: ours with a decision, a ruling
// that is begun, envelope, checks, salted chain, indexes and projections, beside the bare committer. The events tell the life of runs:
// every writer is an agent's run in a room and a space under the standard policy, and each of its events is the intent to create a file; it
// changes the document of the run by its data, and that of a step, eight events long, by its envelope.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("writers=%d/ours", writers), func(b *testing.B) {
			log := openLog(b)
			g, agent, bundle := openHouse(b, log)
			drive(b, writers, func(int) func() error {
				next := runOf(agent)
				place := makeSpace(b, log, bundle)
				return func() error {
					batch := next()
					ruling, err := g.Judge(b.Context(), createFile(batch.Drafts[0], place))
					if err != nil {
						return err
					}
					_, _, err = g.Begin(b.Context(), ruling, "", batch)
					return err
				}
			})
		})
		b.Run(fmt.Sprintf("writers=%d/ours-without-gate", writers), func(b *testing.B) {
			log := openLog(b)
			drive(b, writers, func(int) func() error {
				next := runOf(user)
				return func() error {
					_, err := log.Append(b.Context(), next())
					return err
				}
			})
		})
		b.Run(fmt.Sprintf("writers=%d/yardstick", writers), func(b *testing.B) {
			// The daemon's spare processor only costs a single goroutine that writes; the yardstick runs as suits it best.
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
			store, err := yardstick.OpenSQLite(filepath.Join(b.TempDir(), "bare.db"))
			must(b, err)
			b.Cleanup(func() { must(b, store.Close()) })
			body := make([]byte, 512)
			drive(b, writers, func(w int) func() error {
				answer := make(chan error, 1)
				return func() error { return store.Append(int64(w), body, answer) }
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

// definitions are those of the daemon, but for the documents of runs and steps, which here follow from the events of a writer.
func definitions() []projection.Definition {
	own := []projection.Definition{
		projection.Define("runs", 1, func(e event.Event) []string { return some(string(e.Run)) },
			func(doc runDoc, _ string, e event.Event) (runDoc, error) {
				op, err := event.Decode[operation](e)
				return runDoc{op.Status, doc.Operations + 1, doc.Bytes + len(op.Output), op.Operation, e.Room, e.OccurredAt}, err
			},
			func(doc runDoc) []projection.Index {
				return []projection.Index{{Name: "status", Value: doc.Status}, {Name: "room", Value: string(doc.Room)}}
			}),
		projection.Define("steps", 1, func(e event.Event) []string { return some(string(e.Step)) },
			func(doc stepDoc, _ string, e event.Event) (stepDoc, error) {
				if doc.Events == 0 {
					doc.Run, doc.Started = e.Run, e.OccurredAt
				}
				doc.Status, doc.Events, doc.Ended = e.Type, doc.Events+1, e.OccurredAt
				return doc, nil
			},
			func(doc stepDoc) []projection.Index { return []projection.Index{{Name: "run", Value: string(doc.Run)}} }),
	}
	daemons := slices.DeleteFunc(app.Definitions(), func(d projection.Definition) bool {
		return slices.ContainsFunc(own, func(o projection.Definition) bool { return o.Name == d.Name })
	})
	return append(daemons, own...)
}

func some(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}

// openHouse returns a gate over the log, as the daemon has it, with an agent and the standard policy.
func openHouse(b *testing.B, log store) (*gate.Gate, id.Principal, policy.Bundle) {
	b.Helper()
	g, err := gate.New(gate.Parts{Log: log, Docs: log, Evaluator: cedar.New(), Clock: wall{}, IDs: ids})
	must(b, err)
	people := identity.New(identity.Parts{Log: log, Docs: log, Gate: g, Clock: wall{}, IDs: ids, Entropy: rand.Reader})
	owner, err := people.Owner(b.Context(), workspace, "owner")
	must(b, err)
	agent, err := people.Agent(b.Context(), event.Origin{Principal: owner}, workspace, "worker")
	must(b, err)
	bundle, err := g.Bundles.Pin(b.Context(), event.Origin{Principal: owner}, workspace, "standard", nil)
	must(b, err)
	return g, agent, bundle
}

// makeSpace records a space under the bundle; nothing is started.
func makeSpace(b *testing.B, log journal.Journal, bundle policy.Bundle) id.Space {
	b.Helper()
	made := space.Created{Space: id.New[id.Space](ids), Name: "bench", Tier: "namespace", Policy: bundle.Name, Bundle: bundle.Hash}
	draft := event.New(space.EventCreated, event.Origin{Principal: user}, workspace, "", made).About(space.EntityType, string(made.Space))
	_, err := log.Append(b.Context(), event.Batch{Workspace: workspace, Drafts: []event.Draft{draft}})
	must(b, err)
	return made.Space
}

// createFile is the action that the event records the intent of.
func createFile(d event.Draft, place id.Space) policy.Action {
	return policy.Action{
		Type: policy.FileCreate, Workspace: workspace, Principal: d.Principal, Space: place, Room: d.Room, Run: d.Run, Step: d.Step,
		Operation: "op-1", Path: "src/report.md", Size: 512, Content: event.DigestOf(d.Data),
	}
}

// runOf returns the events of one run of a principal, one batch after another.
func runOf(who id.Principal) func() event.Batch {
	room, run := id.New[id.Room](ids), id.New[id.Run](ids)
	origin := event.Origin{Principal: who, Correlation: id.New[id.Correlation](ids)}
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
		Path: filepath.Join(tb.TempDir(), "log.db"), Definitions: definitions(), Clock: clock{}, IDs: ids, Entropy: rand.Reader, Keys: keysIn(tb,
			tb.TempDir()),
	})
	must(tb, err)
	tb.Cleanup(func() { must(tb, log.Close()) })
	return log
}

// keysIn are keys of a folder, under which a daemon seals.
func keysIn(tb testing.TB, dir string) *keyring.Keyring {
	tb.Helper()
	keys, err := keyring.Open(dir, rand.Reader)
	must(tb, err)
	return keys
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// cpuTime is what this process has used of the processors so far. A share of it per event tells more than a rate on a machine with
// neighbours.
func cpuTime(b testing.TB) time.Duration {
	b.Helper()
	var used unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// drive lets writers append one event after another, b.N in all, and reports the rate, the processors' time of each, and how long one
// acknowledgement took.
func drive(b *testing.B, writers int, appender func(w int) func() error) {
	b.Helper()
	driveEvents(b, b.N, writers, appender)
}

// driveEvents does the same with a given number of events.
func driveEvents(b *testing.B, events, writers int, appender func(w int) func() error) {
	b.Helper()
	took := make([][]time.Duration, writers)
	appenders := make([]func() error, writers)
	for w := range writers {
		appenders[w] = appender(w)
	}
	var wg sync.WaitGroup
	before := cpuTime(b)
	b.ResetTimer()
	for w, appendOne := range appenders {
		n := events / writers
		if w < events%writers {
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
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1000/float64(events), "cpu-us/event")
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) == 0 {
		return
	}
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(milliseconds(all[len(all)/2]), "p50-ms")
	b.ReportMetric(milliseconds(all[len(all)*99/100]), "p99-ms")
}
