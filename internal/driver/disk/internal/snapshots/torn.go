package snapshots

import (
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/space"
)

// whole returns the snapshots of which a power cut took no part. It drops one whose folder lies in a pack that was not durable and names
// content that is gone, because that lay in an earlier pack. A snapshot that was durable stays whatever it lacks: an audit must say so.
func (p *packs) whole(kept []space.Snapshot) []space.Snapshot {
	seen := map[event.Digest]bool{}
	return slices.DeleteFunc(slices.Clone(kept), func(s space.Snapshot) bool {
		return p.objects[s.Root].pack.fresh && p.lacks(seen, s.Root)
	})
}

// lacks reports whether a folder, or one below it, names content that is not there. Seen holds the answers so far. A folder that cannot be
// read lacks nothing: its key may come back, and damage is for an audit to report.
func (p *packs) lacks(seen map[event.Digest]bool, root event.Digest) bool {
	if answer, known := seen[root]; known {
		return answer
	}
	entries, err := p.folder(root)
	seen[root] = err == nil && slices.ContainsFunc(entries, func(e entry) bool {
		return e.kind != isLink && !p.has(e.digest) || e.kind == isFolder && p.lacks(seen, e.digest)
	})
	return seen[root]
}
