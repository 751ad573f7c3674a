package disk

import (
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// MinRoom is how many bytes of the host's disk must be free before anything begins, because the outcome must be recorded afterwards.
const MinRoom = 1 << 20

// Room reports that the disk has no room for what anything that is begun now would leave. Where the disk does not say how much is free,
// it has.
func (b *Blobs) Room() error {
	return room(free(b.dir))
}

func room(free uint64, known bool) error {
	if known && free < MinRoom {
		return fault.New(space.ErrDiskFull.Kind, space.ErrDiskFull.Code,
			"the disk that holds the data directory has %d KiB free; at least %d KiB are needed",
			free>>10, MinRoom>>10).With("free space on it, or have what nothing names removed with: agentbox gc")
	}
	return nil
}
