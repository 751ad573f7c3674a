// Package app is the roof.
package app

import (
	"os"

	"broken/internal/driver/disk"
	"broken/internal/service/runner"
)

// New wires.
func New() *runner.Runner {
	return &runner.Runner{
		Files: &disk.Disk{},
		Hook:  func(name string) error { return os.Remove(name) },
		Out:   disk.Sink{},
	}
}
