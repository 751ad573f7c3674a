//go:build !linux || portable

package overlay

import (
	"errors"
	"os"

	"agentbox/internal/driver/disk/internal/beneath"
)

// errNoOverlay says why spaces share no files here. A fork copies its files instead.
var errNoOverlay = errors.New("spaces share files by the overlay file system of Linux, which this system does not have; forks copy instead")

// Mount makes no overlay here.
func Mount(Layers) (*os.File, error) { return nil, errNoOverlay }

// View makes no overlay here.
func View(Layers) (*beneath.Folder, error) { return nil, errNoOverlay }

// Probe says that there are no overlays here.
func Probe(string) error { return errNoOverlay }

func owner(path string) (int, error) {
	_, err := os.Lstat(path)
	return 0, err
}
