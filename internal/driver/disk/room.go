package disk

import (
	"fmt"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// MinRoom is how many bytes of the host's disk must be free before anything begins, because the outcome must be recorded afterwards.
const MinRoom = 1 << 20

// Room reports that the disk has no room for what anything that is begun now would leave. Where the disk does not say how much is free,
// it has.
func (b *Blobs) Room() error {
	left, known := free(b.dir)
	return room(b.dir, left, known)
}

func room(dir string, free uint64, known bool) error {
	if known && free < MinRoom {
		return fault.New(space.ErrDiskFull.Kind, space.ErrDiskFull.Code, "the disk that holds %s has %d KiB free; at least %d KiB are needed",
			dir, free>>10, MinRoom>>10).With(space.ErrDiskFull.Suggestion)
	}
	return nil
}

// full is the fault of something that the disk of a folder had no room for.
func full(dir string, err error) error {
	left := ""
	if bytes, known := free(dir); known {
		left = fmt.Sprintf(": it has %d KiB free, which is too little for what is written", bytes>>10)
	}
	return fault.Wrap(err, space.ErrDiskFull.Kind, space.ErrDiskFull.Code, "the disk that holds %s is full%s", dir, left).
		With(space.ErrDiskFull.Suggestion)
}
