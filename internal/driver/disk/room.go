package disk

import (
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/freespace"
)

// MinRoom is how many bytes of the host's disk must be free before anything begins, because the outcome must be recorded afterwards.
const MinRoom = 1 << 20

// Room reports that the disk has no room for what anything that is begun now would leave. Where the disk does not say how much is free,
// it has.
func (b *Blobs) Room() error {
	left, known := freespace.Free(b.dir)
	return enough(b.dir, left, known)
}

func enough(dir string, free uint64, known bool) error {
	if known && free < MinRoom {
		return fault.New(space.ErrDiskFull.Kind, space.ErrDiskFull.Code, "the disk that holds %s has %d KiB free; at least %d KiB are needed",
			dir, free>>10, MinRoom>>10).With(space.ErrDiskFull.Suggestion)
	}
	return nil
}
