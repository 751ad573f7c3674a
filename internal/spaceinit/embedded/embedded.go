// Package embedded holds the init's program, which the build puts here before it builds the daemon.
package embedded

import (
	"embed"
	"errors"
	"io/fs"

	"agentbox/internal/domain/fault"
)

// program holds README.md and, after `make build`, the program agentbox-init.
//
//go:embed program
var program embed.FS

// Program returns the init's program, or a fault that says how to build it.
func Program() ([]byte, error) {
	b, err := program.ReadFile("program/agentbox-init")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unavailable, "init_missing",
			"this build of agentbox holds no init for its spaces; build it with `make build`")
	}
	return b, err
}
