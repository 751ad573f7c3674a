package app

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/telemetry"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/rules"
	"agentbox/internal/surface/httpapi/wire"
)

// observer tells the metrics what the server tells.
type observer struct{ *telemetry.Metrics }

// Answered implements wire.Observer.
func (o observer) Answered(a wire.Answered) {
	o.Metrics.Answered(telemetry.Request{Route: a.Pattern, Status: a.Status, Took: a.Took})
}

// presetNames are the names of the bundles that come with the program.
func presetNames() (map[event.Digest]string, error) {
	names := map[event.Digest]string{}
	for _, name := range rules.Names() {
		bundle, err := rules.Resolve(name, nil)
		if err != nil {
			return nil, err
		}
		names[bundle.Hash] = name
	}
	return names, nil
}

// look finds out what the metrics show as a state.
func (a *App) look(ctx context.Context) (telemetry.State, error) {
	s, err := a.lookUp(ctx)
	if err != nil {
		a.logger.Error("look up the state for the metrics", "code", "metrics_state_unknown", "error", err)
	}
	return s, err
}

func (a *App) lookUp(ctx context.Context) (telemetry.State, error) {
	s := telemetry.State{Spaces: map[telemetry.SpaceState]int{}, Data: a.sizes.all(a.path(logFile + "-wal"))}
	workspaces, err := a.Log.Workspaces(ctx)
	if err != nil {
		return s, err
	}
	for _, ws := range workspaces {
		head, err := a.Log.Head(ctx, ws)
		if err != nil {
			return s, err
		}
		s.Head += head
		for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
			open, err := a.Gate.Approvals(ctx, ws, gate.Filter{Status: status, Limit: 1000})
			if err != nil {
				return s, err
			}
			s.Waiting += len(open)
			for _, q := range open {
				if s.Oldest.IsZero() || q.RequestedAt.Before(s.Oldest) {
					s.Oldest = q.RequestedAt
				}
			}
		}
		thrown, err := a.Gate.KillSwitch(ctx, ws)
		if err != nil {
			return s, err
		}
		if thrown.On {
			s.Thrown++
		}
		living, err := projection.List[space.Space](ctx, a.Log, projection.Query{
			Workspace: ws, Name: space.Projection, Index: projection.Index{Name: "living", Value: "true"}, Limit: 1000,
		})
		if err != nil {
			return s, err
		}
		for _, sp := range living {
			s.Spaces[telemetry.InSpace(sp.Tier, string(sp.Status))]++
		}
	}
	return s, nil
}

// sizesPeriod is how often the data directory is measured: it is walked, file by file.
const sizesPeriod = time.Minute

// measureData measures the parts of the data directory until ctx ends.
func (a *App) measureData(ctx context.Context) error {
	every(a.clock, ctx.Done(), sizesPeriod, func(time.Time) {
		found := map[string]int64{}
		for part, name := range map[string]string{"log": logFile, "blobs": blobsDir, "live": framesDir, "spaces": spacesDir, "proofs": proofsDir} {
			found[part] = bytesBelow(ctx, a.path(name))
		}
		a.sizes.set(found)
	})
	return nil
}

// bytesBelow is what the files below a path hold. What vanishes meanwhile does not count.
func bytesBelow(ctx context.Context, path string) (sum int64) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ctx.Err()
		}
		if info, err := entry.Info(); err == nil {
			sum += info.Size()
		}
		return ctx.Err()
	}) // the error is that of ctx: the daemon stops
	return sum
}

// sizes are what the parts of the data directory were found to hold, in bytes.
type sizes struct {
	mu    sync.Mutex
	parts map[string]int64
}

// set keeps what was measured.
func (s *sizes) set(found map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = found
}

// all returns what was measured last, and of the write-ahead log what it has now.
func (s *sizes) all(wal string) map[string]int64 {
	s.mu.Lock()
	found := maps.Clone(s.parts)
	s.mu.Unlock()
	if found == nil {
		found = map[string]int64{}
	}
	if info, err := os.Stat(wal); err == nil {
		found["wal"] = info.Size()
	}
	return found
}
