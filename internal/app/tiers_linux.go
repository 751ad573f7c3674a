package app

import (
	"path/filepath"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/namespace"
	"agentbox/internal/spaceinit/embedded"
)

const (
	namespaceName = namespace.Name
	hostRoot      = namespace.HostRoot
)

func openNamespace(c Config, clock event.Clock, phase func(id.Space, string, time.Time, time.Duration)) (probed, error) {
	program, err := embedded.Program()
	if err != nil {
		return nil, err
	}
	digest := event.DigestOf([]byte(c.DataDir))
	tier, err := namespace.New(namespace.Options{
		Program: program, Root: rootFS(c), Owner: "d" + digest.Hex()[:12], Clock: clock, Phase: phase,
		Sharing: func() error { return disk.Sharing(filepath.Join(c.DataDir, spacesDir)) },
	})
	if err != nil {
		return nil, err
	}
	return tier, nil
}
