//go:build !linux

package app

import (
	"runtime"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

const (
	namespaceName = "namespace"
	hostRoot      = "host"
)

// openNamespace says why there is no such tier here.
func openNamespace(Config, event.Clock, func(id.Space, string, time.Time, time.Duration)) (probed, error) {
	return nil, fault.New(fault.Unavailable, "tier_unavailable",
		"spaces of the tier namespace are made of parts of the Linux kernel, which %s does not have", runtime.GOOS).
		With("run the daemon on Linux, or in a Linux virtual machine on this host, and reach it with --url")
}
