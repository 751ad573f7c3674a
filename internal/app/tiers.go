package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano"
	"agentbox/internal/driver/telemetry"
	"agentbox/internal/service/spaces"
)

// tiers returns the tiers that this build knows, from the weakest to the strongest. One that cannot be prepared on this host is left out;
// doctor says why.
//
// | tier      | isolation                                  | Linux | macOS | Windows |
// |-----------|--------------------------------------------|-------|-------|---------|
// | nano      | metered WASM, no system of its own         | yes   | yes   | yes     |
// | namespace | namespaces, seccomp, cgroups of the kernel | yes   | no    | no      |
func (a *App) tiers() ([]space.Tier, error) {
	var found []space.Tier
	wrap := func(t space.Tier) { found = append(found, telemetry.WrapTier(t, a.clock, a.metrics, a.tracer)) }
	if a.Config.Light != nil {
		wrap(a.Config.Light)
	}
	if len(a.Config.Worker) > 0 {
		tier, err := openNano(a.Config, a.clock, a.logger)
		if err != nil {
			return nil, err
		}
		a.closers = append(a.closers, tier.Close)
		a.nano = tier
		wrap(tier)
	}
	tier, err := openNamespace(a.Config, a.clock, func(s id.Space, phase string, ended time.Time, took time.Duration) {
		a.metrics.Started(namespaceName, phase, took)
		a.tracer.Phase(s, phase, ended, took)
	})
	if err != nil {
		a.logger.Warn("no spaces of namespaces on this host", "code", "tier_unavailable", "tier", namespaceName, "error", err)
		return found, nil
	}
	a.closers = append(a.closers, tier.Close)
	wrap(tier)
	return found, nil
}

// trial is the first try of the tiers, which begins as soon as there are tiers: it starts a process, and waits for it, beside the rest of
// the start.
type trial struct {
	done  chan struct{}
	ended time.Time // set, with err, before done is closed
	err   error
}

// tryFirst begins the first try. It ends before the tiers are closed.
func (a *App) tryFirst(tiers []space.Tier) {
	ctx, stop := context.WithCancel(context.Background())
	t := &trial{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.err = spaces.Try(ctx, tiers)
		t.ended = a.clock.Now()
	}()
	a.first.Store(t)
	a.closers = slices.Insert(a.closers, 0, func() error {
		stop()
		<-t.done
		return nil
	})
}

// tryTiers reports whether some tier works: once what the first try has found, if that is not too long ago, then what another one finds.
func (a *App) tryTiers(ctx context.Context) error {
	if t := a.first.Swap(nil); t != nil {
		select {
		case <-t.done:
			if a.clock.Now().Sub(t.ended) < tiersAge {
				return t.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return a.Spaces.Tiers.Try(ctx)
}

// Worker makes this process a worker of the nano tier. It obeys the daemon that started it until that ends.
func Worker(ctx context.Context, args []string) error {
	return nano.Worker(ctx, args, os.Stdin, os.Stdout, func() { os.Exit(1) })
}

func openNano(c Config, clock event.Clock, logger *slog.Logger) (*nano.Tier, error) {
	return nano.New(nano.Options{
		Command: c.Worker, Cache: nanoCache(c), Workers: runtime.NumCPU(), Scratch: filepath.Join(c.DataDir, nanoDir), Entropy: rand.Reader,
		Clock: clock, Logger: logger,
	})
}

// nanoCache is the folder for compiled interpreters, one for all daemons of a user, because compiling takes seconds. Its files are
// executed, so it is closed to other users, like the program itself.
func nanoCache(c Config) string {
	if cache := cacheDir(); cache != "" {
		return filepath.Join(cache, "wasm")
	}
	return filepath.Join(c.DataDir, nanoCacheDir)
}

// cacheDir is where parts lie that were fetched or made once for all daemons of a user, "" where there is none.
func cacheDir() string {
	if cache, err := filepath.Abs(os.Getenv("AGENTBOX_CACHE")); err == nil && os.Getenv("AGENTBOX_CACHE") != "" {
		return cache
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".cache", "agentbox")
}

// rootFS finds the root of the spaces: the one that is configured, else the newest that `make rootfs` made, else the host's own programs.
func rootFS(c Config) string {
	if c.RootFS != "" {
		return c.RootFS
	}
	cache := cacheDir()
	if cache == "" {
		return hostRoot
	}
	found, _ := filepath.Glob(filepath.Join(cache, "rootfs-*"))
	made := map[string]int64{}
	var roots []string
	for _, dir := range found {
		mark, err := os.Stat(filepath.Join(dir, "agentbox-rootfs"))
		if err == nil && !strings.HasSuffix(dir, ".new") {
			made[dir] = mark.ModTime().UnixNano()
			roots = append(roots, dir)
		}
	}
	if len(roots) == 0 {
		return hostRoot
	}
	sort.Slice(roots, func(i, j int) bool { return made[roots[i]] > made[roots[j]] })
	return roots[0]
}

// probed is a tier that doctor can try.
type probed interface {
	space.Tier
	Probe(context.Context) space.Report
	Close() error
}

// Doctor tries the promises of the tiers on this host. It needs no daemon and disturbs none.
func Doctor(ctx context.Context, c Config, logger *slog.Logger) []space.Report {
	var reports []space.Report
	if len(c.Worker) > 0 {
		reports = append(reports, doctorNano(ctx, c, logger))
	}
	tier, err := openNamespace(c, Clock{}, nil)
	if err != nil {
		return append(reports, space.Report{Tier: namespaceName, Checks: []space.Check{{Name: "prepare", Detail: err.Error()}}})
	}
	defer func() { _ = tier.Close() }()
	return append(reports, tier.Probe(ctx))
}

// doctorNano tries the nano tier with a folder of its own: the daemon's may be in use.
func doctorNano(ctx context.Context, c Config, logger *slog.Logger) space.Report {
	failed := func(err error) space.Report {
		return space.Report{Tier: nano.Name, Checks: []space.Check{{Name: "prepare", Detail: err.Error()}}}
	}
	dir, err := os.MkdirTemp("", "agentbox-doctor-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c.DataDir = dir
	tier, err := openNano(c, Clock{}, logger)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = tier.Close() }()
	return tier.Probe(ctx)
}
