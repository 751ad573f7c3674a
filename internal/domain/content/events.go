package content

// The events of content.
const (
	EventSweepBegun = "content.sweep_begun"
	EventSwept      = "content.swept"
)

// EntityType is the entity of the events: the workspace, under its id.
const EntityType = "workspace"

// SweepBegun is the data of content.sweep_begun: the rule by which snapshots are kept.
type SweepBegun struct {
	Scheduled bool `json:"scheduled"` // by the daemon's own clock, not by somebody's request
	Rule
}

// Rule says which snapshots of a space are kept besides the newest. Snapshots outside the store's own bounds are removed in any case.
type Rule struct {
	Snapshots int   `json:"keep_snapshots"`         // the last so many; 0 for as many as the store keeps
	Seconds   int64 `json:"keep_seconds,omitempty"` // those that were made, or returned to, within this time; 0 for however long
}

// Swept is the data of content.swept: how much was freed and how much is left.
type Swept struct {
	Contents  Freed  `json:"contents"`
	Snapshots Freed  `json:"snapshots"`
	Failed    []Miss `json:"failed,omitempty"` // spaces whose snapshots could not be swept
}

// Freed counts the freed and the remaining content, with its bytes on disk.
type Freed struct {
	Kept       int64 `json:"kept"`
	KeptBytes  int64 `json:"kept_bytes"`
	Freed      int64 `json:"freed"`
	FreedBytes int64 `json:"freed_bytes"`
}

// Add adds counts.
func (f *Freed) Add(g Freed) {
	f.Kept += g.Kept
	f.KeptBytes += g.KeptBytes
	f.Freed += g.Freed
	f.FreedBytes += g.FreedBytes
}

// Count adds content to the freed or the kept.
func (f *Freed) Count(freed bool, size int64) {
	if freed {
		f.Freed++
		f.FreedBytes += size
		return
	}
	f.Kept++
	f.KeptBytes += size
}

// Miss is a space whose snapshots could not be swept, and why.
type Miss struct {
	Space string `json:"space_id"`
	Error string `json:"error"`
}
