//go:build !linux || portable

package snapshots

import "agentbox/internal/driver/disk/internal/beneath"

// watchFrom is how many entries a space has whose folders are watched.
const watchFrom = 512

// watch would note in which folders something happens; this system has none whose silence proves that nothing did.
type watch struct{}

func newWatch(*beneath.Folder) *watch { return nil }

func (*watch) of(*beneath.Folder) bool { return false }

func (*watch) add(*beneath.Folder, string) bool { return false }

func (*watch) touched() (map[string]bool, bool) { return nil, false }

func (*watch) close() {}
