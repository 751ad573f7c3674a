package app

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/telemetry"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/gate/rules"
	"agentbox/internal/surface/httpapi/wire"
)

// observer passes the server's reports to the metrics and the tracer.
type observer struct {
	*telemetry.Metrics
	tracer *telemetry.Tracer
}

// Begun implements wire.Observer.
func (o observer) Begun(t wire.Trace) bool {
	o.Metrics.Begun()
	return !t.Foreign && o.tracer.Sampled(t.ID, t.Span)
}

// Answered implements wire.Observer.
func (o observer) Answered(a wire.Answered) {
	r := telemetry.Request{Route: a.Pattern, Status: a.Status, Took: a.Took}
	o.Metrics.Answered(r)
	o.tracer.Served(telemetry.Served{
		Traceparent: a.Trace.Parent(), Parent: a.Trace.Above, Request: r, Began: a.Began, Ended: a.Began.Add(a.Took), ID: string(a.Request),
		Principal: a.Caller,
	})
}

// traces makes the tracer, where the configuration or the standard variables name a collector.
func (a *App) traces(ctx context.Context) error {
	if a.Config.Traces == "" && !tracesWanted(os.Getenv) {
		return nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		a.logger.Warn("tell traces to the collector", "code", "traces_not_told", "error", err)
	}))
	tracer, err := telemetry.OpenTracer(ctx, a.Config.Traces, Version, a.Log, wire.Traceparent)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "config_invalid", "traces cannot be told: %v", err)
	}
	a.tracer = tracer
	a.closers = append(a.closers, tracer.Close)
	return nil
}

// tracesWanted reports whether the variables of OpenTelemetry name a collector, or say that there is one in the usual place.
func tracesWanted(env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch exporter := env("OTEL_TRACES_EXPORTER"); exporter {
	case "":
		return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	default:
		return exporter == "otlp"
	}
}

// presetNames returns the names of the bundles that come with the program. They are written out when the first decision is counted.
func presetNames() func() map[event.Digest]string {
	return sync.OnceValue(func() map[event.Digest]string {
		names := map[event.Digest]string{}
		for _, name := range rules.Names() {
			if bundle, err := rules.Resolve(name, nil); err == nil { // a preset that cannot be read is refused where somebody asks for it
				names[bundle.Hash] = name
			}
		}
		return names
	})
}

// look measures the gauges.
func (up *upkeep) look(ctx context.Context) (telemetry.State, error) {
	s, err := up.lookUp(ctx)
	if err != nil {
		up.app.logger.Error("look up the state for the metrics", "code", "metrics_state_unknown", "error", err)
	}
	return s, err
}

func (up *upkeep) lookUp(ctx context.Context) (telemetry.State, error) {
	s := telemetry.State{Spaces: map[telemetry.SpaceState]int{}, Data: up.sizes.all(up.app.path(logFile + "-wal"))}
	workspaces, err := up.app.Log.Workspaces(ctx)
	if err != nil {
		return s, err
	}
	for _, ws := range workspaces {
		head, err := up.app.Log.Head(ctx, ws)
		if err != nil {
			return s, err
		}
		s.Head += head
		for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
			open, err := up.app.Gate.Approvals.List(ctx, ws, approvals.Filter{Status: status, Limit: 1000})
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
		thrown, err := up.app.Gate.KillSwitch.State(ctx, ws)
		if err != nil {
			return s, err
		}
		if thrown.On {
			s.Thrown++
		}
		living, err := projection.List[space.Space](ctx, up.app.Log, projection.Query{
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
func (up *upkeep) measureData(ctx context.Context) error {
	every(up.app.clock, ctx.Done(), sizesPeriod, func(time.Time) {
		found := map[string]int64{}
		for part, name := range map[string]string{"log": logFile, "live": framesDir, "spaces": spacesDir} {
			found[part] = bytesBelow(ctx, up.app.path(name))
		}
		found["proofs"] = bytesBelow(ctx, up.app.Config.shared(proofsDir))
		found["blobs"] = bytesBelow(ctx, up.app.Config.blobs())
		up.sizes.set(found)
	})
	return nil
}

// bytesBelow returns the size of the files below a path. Files that vanish meanwhile do not count.
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

// sizes are the measured sizes of the parts of the data directory, in bytes.
type sizes struct {
	mu    sync.Mutex
	parts map[string]int64
}

// set keeps the measured sizes.
func (s *sizes) set(found map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = found
}

// all returns the last measured sizes, and the present size of the write-ahead log.
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
