package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/snapshots"
	"agentbox/internal/kernel/vault"
)

// Shelves gives read access to the snapshots of all spaces.
type Shelves struct {
	dir  string
	keys vault.Keys
}

// LookAtSnapshots returns the snapshots of the spaces in a folder for reading, beside a daemon or without one. It changes nothing there.
func LookAtSnapshots(dir string, keys vault.Keys) *Shelves { return &Shelves{dir: dir, keys: keys} }

// Shelf returns the kept files of a space. A space whose folders are not there is a fault space_files_missing.
func (s *Shelves) Shelf(ctx context.Context, sp id.Space) (space.Shelf, error) {
	if _, err := id.Parse[id.Space](string(sp)); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "invalid_id", "that is not a space")
	}
	home := filepath.Join(s.dir, string(sp))
	if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
		return nil, space.ErrFilesMissing
	}
	shelf, err := snapshots.LookAt(ctx, filepath.Join(home, keptFolder), s.keys)
	if err != nil {
		return nil, err
	}
	return shelf, nil
}
