package disk

import (
	"context"
	"maps"
)

// SyncAround is Sync of the spaces that are there now, after something happened to them meanwhile.
func (s *Spaces) SyncAround(ctx context.Context, meanwhile func()) error {
	s.mu.Lock()
	pasts := maps.Clone(s.pasts)
	s.mu.Unlock()
	meanwhile()
	return s.sync(ctx, pasts)
}
