package telemetry_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/driver/telemetry"
	"agentbox/internal/kernel/journal"
)

// running is the machine's clock.
type running struct{}

func (running) Now() time.Time { return time.Now() }

func (running) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// BenchmarkAppend appends a result, as operations have it, to a log on the disk, bare and counted. The bare one is the yardstick.
func BenchmarkAppend(b *testing.B) {
	m := telemetry.NewMetrics("")
	for _, c := range []struct {
		name      string
		committed func(int, time.Duration)
		wrap      func(journal.Journal) journal.Journal
	}{
		{"bare", nil, func(j journal.Journal) journal.Journal { return j }},
		{"counted", m.Committed, func(j journal.Journal) journal.Journal { return telemetry.WrapJournal(j, nil, running{}, m, nil, nil) }},
	} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", c.name, callers), func(b *testing.B) {
				log, err := sqlite.Open(b.Context(), sqlite.Options{
					Path: filepath.Join(b.TempDir(), "log.db"), Clock: running{}, IDs: id.NewSource(time.Now, rand.Reader), Entropy: rand.Reader,
					Committed: c.committed,
				})
				if err != nil {
					b.Fatal(err)
				}
				defer func() {
					if err := log.Close(); err != nil {
						b.Error(err)
					}
				}()
				to := c.wrap(log)
				batch := event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{
					event.New(run.EventSucceeded, event.Origin{Principal: "usr_01M80CJKDBRXBKTJ07K3WS8FXW"}, id.DefaultWorkspace, "",
						run.Ended{Tool: run.OpShell, Kind: run.OpShell, Operation: "op-1"}),
				}}
				b.SetParallelism(callers)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := to.Append(context.Background(), batch); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// BenchmarkOverhead is what the wrappers add where that which they wrap takes no time at all.
func BenchmarkOverhead(b *testing.B) {
	m := telemetry.NewMetrics("")
	b.Run("append", func(b *testing.B) {
		j := telemetry.WrapJournal(taken{}, nil, running{}, m, nil, nil)
		batch := event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{
			event.New(run.EventSucceeded, event.Origin{Principal: "usr_01M80CJKDBRXBKTJ07K3WS8FXW"}, id.DefaultWorkspace, "",
				run.Ended{Tool: run.OpShell, Kind: run.OpShell}),
		}}
		for b.Loop() {
			if _, err := j.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("judge", func(b *testing.B) {
		g := telemetry.WrapGate(decided{decision: policy.Decision{Outcome: policy.Allow, ReasonCode: policy.ReasonDefaultAllow}}, running{}, m,
			nil, nil)
		for b.Loop() {
			if _, err := g.Judge(b.Context(), policy.Action{Workspace: id.DefaultWorkspace}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
