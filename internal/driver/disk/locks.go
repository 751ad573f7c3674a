package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/host"
)

// Grace is how long content that several daemons can put is left alone after it was put last, by the clock of its file system: what one
// of them puts is named by an event within seconds, and no other one knows of it before.
const Grace = time.Hour

// errYoung says that content was put too lately to be swept.
var errYoung = errors.New("the content was put a moment ago")

// lockFile is the locked file while content gets its name (then all writers share the lock) or loses it.
const lockFile = "lock"

// lock keeps content from being removed while another daemon puts it; of a folder that is one daemon's alone it does nothing.
func (b *Blobs) lock(how host.How) (unlock func(), err error) {
	if !b.shared {
		return func() {}, nil
	}
	f, err := os.OpenFile(filepath.Join(b.dir, lockFile), os.O_CREATE|os.O_RDWR|beneath.NoFollow, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := host.Lock(f, how)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !host.Interrupted(err) {
			return nil, errors.Join(fmt.Errorf("lock the stored content: %w", err), f.Close())
		}
	}
}

// young returns what tells whether content was put within Grace; nothing was of a folder that is one daemon's alone, which knows what it
// holds.
func (b *Blobs) young() (func(event.Digest) bool, error) {
	if !b.shared {
		return func(event.Digest) bool { return false }, nil
	}
	now, err := b.fileTime()
	if err != nil {
		return nil, err
	}
	return func(d event.Digest) bool {
		folder, name := b.path(d)
		for _, suffix := range []string{"", sealedSuffix} {
			info, err := os.Lstat(filepath.Join(folder, name+suffix))
			if err == nil && now.Sub(info.ModTime()) < Grace || err != nil && !errors.Is(err, os.ErrNotExist) {
				return true
			}
		}
		return false
	}, nil
}

// fileTime is the time of the file system's clock.
func (b *Blobs) fileTime() (time.Time, error) {
	staging, err := beneath.At(b.staging)
	if err != nil {
		return time.Time{}, err
	}
	defer staging.Close()
	file, name, err := beneath.CreateTemp(staging, b.entropy)
	if err != nil {
		return time.Time{}, err
	}
	_, err = file.Write([]byte{0}) // this sets its time
	info, statErr := file.Stat()
	if err := errors.Join(err, statErr, beneath.Unlink(staging, name), file.Close()); err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
