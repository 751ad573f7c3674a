package bench

import (
	"crypto/rand"
	"path/filepath"
	"testing"
	"time"

	cedarlib "github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/workspaces"
)

// lines are command lines of growing size.
var lines = []struct{ name, command string }{
	{"one", "ls -la"},
	{"pipeline", `grep -v '^#' data.csv | cut -d, -f2 | sort -n | uniq -c | head -20 > counts.txt`},
	{"script", `set -e; mkdir -p out; for f in *.csv; do n=$(wc -l < "$f"); if [ "$n" -gt 10 ]; then python3 report.py "$f" > ` +
		`"out/report.md"; fi; done; find out -name '*.md' -exec cat {} + | tee all.md`},
}

// BenchmarkGate measures a decision with the standard policy, everything included: the principal's document, the kill switch, the parsing
// of the command line, every part of it asked about, the canonical bytes and their hash. The yardstick is one bare evaluation of the same
// policy set by the Cedar library, with the request ready made.
func BenchmarkGate(b *testing.B) {
	for _, l := range lines {
		b.Run("line="+l.name+"/ours", func(b *testing.B) {
			g, action := openGate(b, inMemory)
			judge(b, g, action, l.command)
		})
		b.Run("line="+l.name+"/yardstick", bareCedar)
	}
}

// BenchmarkGateOnDisk is the same with the documents in SQLite, as the daemon has them.
func BenchmarkGateOnDisk(b *testing.B) {
	for _, l := range lines {
		b.Run("line="+l.name+"/ours", func(b *testing.B) {
			g, action := openGate(b, onDisk)
			judge(b, g, action, l.command)
		})
		b.Run("line="+l.name+"/yardstick", bareCedar)
	}
}

// store is a log with its documents.
type store interface {
	journal.Journal
	projection.Reader
}

func inMemory(b *testing.B) store {
	b.Helper()
	log, err := memory.NewJournal(append(append(gate.Definitions(), rooms.Definitions()...), spaces.Definition(), workspaces.Definition()),
		wall{}, ids, rand.Reader)
	must(b, err)
	return log
}

func onDisk(b *testing.B) store {
	b.Helper()
	log, err := sqlite.Open(b.Context(), sqlite.Options{
		Path: filepath.Join(b.TempDir(), "log.db"), Definitions: append(append(gate.Definitions(), rooms.Definitions()...), spaces.Definition(),
			workspaces.Definition()), Clock: wall{}, IDs: ids, Entropy: rand.Reader,
	})
	must(b, err)
	b.Cleanup(func() { must(b, log.Close()) })
	return log
}

func openGate(b *testing.B, open func(*testing.B) store) (*gate.Gate, policy.Action) {
	b.Helper()
	g, agent, bundle := openHouse(b, open(b))
	return g, policy.Action{
		Type: policy.ShellExec, Workspace: workspace, Principal: agent, Space: id.New[id.Space](ids), Run: id.New[id.Run](ids),
		Step:      id.New[id.Step](ids),
		Operation: "op-1", TimeoutMS: 30_000, Bundle: bundle.Hash,
	}
}

func judge(b *testing.B, g *gate.Gate, a policy.Action, command string) {
	b.Helper()
	a.Command, a.Argv = command, []string{"/bin/bash", "-c", command}
	b.ReportAllocs()
	for b.Loop() {
		r, err := g.Judge(b.Context(), a)
		if err != nil || r.Decision.Outcome != policy.Allow {
			b.Fatalf("%+v, %v", r.Decision, err)
		}
	}
}

// bareCedar evaluates the standard policy once for one simple command.
func bareCedar(b *testing.B) {
	g, action := openGate(b, inMemory)
	bundle, err := g.Bundles.Bundle(b.Context(), workspace, action.Bundle)
	must(b, err)
	set, err := cedarlib.NewPolicySetFromBytes("standard", []byte(bundle.Cedar))
	must(b, err)
	texts := func(list ...string) types.Set {
		var values []types.Value
		for _, text := range list {
			values = append(values, types.String(text))
		}
		return types.NewSet(values...)
	}
	request := cedarlib.Request{
		Principal: types.NewEntityUID("Agent", types.String(action.Principal)), Action: types.NewEntityUID("Action", policy.ShellExec),
		Resource: types.NewEntityUID("Space", types.String(action.Space)),
		Context: types.NewRecord(types.RecordMap{
			"workspace": types.String(workspace), "role": types.String(""), "path": types.String(""), "size_bytes": types.Long(0),
			"max_bytes": types.Long(0), "overwrite": types.False, "command": types.String("ls"), "args": texts("-la"),
			"line":   types.String("ls -la"),
			"traits": texts(), "timeout_ms": types.Long(30_000), "tool": types.String(""), "method": types.String(""), "target": types.String(""),
		}),
	}
	b.ReportAllocs()
	for b.Loop() {
		if decision, _ := cedarlib.Authorize(set, nil, request); decision != cedarlib.Allow {
			b.Fatal("refused")
		}
	}
}

// wall is the real clock.
type wall struct{}

func (wall) Now() time.Time { return time.Now() }

func (wall) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}
