package app

import (
	"context"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/telemetry"
)

// tiers returns the tiers that this build knows, from the weakest to the strongest. One that cannot be prepared on this host is left out;
// doctor says why.
//
// | tier      | isolation                                  | Linux | macOS | Windows |
// |-----------|--------------------------------------------|-------|-------|---------|
// | namespace | namespaces, seccomp, cgroups of the kernel | yes   | no    | no      |
func (a *App) tiers() ([]space.Tier, error) {
	tier, err := openNamespace(a.Config, a.clock, func(s id.Space, phase string, took time.Duration) {
		a.metrics.Started(namespaceName, phase, took)
		a.tracer.Phase(s, phase, a.clock.Now(), took)
	})
	if err != nil {
		a.logger.Warn("no spaces on this host", "code", "tier_unavailable", "tier", namespaceName, "error", err)
		return nil, nil
	}
	a.closers = append(a.closers, tier.Close)
	return []space.Tier{telemetry.WrapTier(tier, a.clock, a.metrics, a.tracer)}, nil
}

// rootFS finds the root of the spaces: the one that is configured, else the newest that `make rootfs` made, else the host's own programs.
func rootFS(c Config) string {
	if c.RootFS != "" {
		return c.RootFS
	}
	cache := os.Getenv("AGENTBOX_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return hostRoot
		}
		cache = filepath.Join(home, ".cache", "agentbox")
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

// Doctor tries on this host what the tiers promise. It needs no daemon and disturbs none.
func Doctor(ctx context.Context, c Config) []space.Report {
	tier, err := openNamespace(c, Clock{}, nil)
	if err != nil {
		return []space.Report{{Tier: namespaceName, Checks: []space.Check{{Name: "prepare", Detail: err.Error()}}}}
	}
	defer func() { _ = tier.Close() }()
	return []space.Report{tier.Probe(ctx)}
}
