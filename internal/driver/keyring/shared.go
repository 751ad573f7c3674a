package keyring

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/host"
)

// lockFile is the file that a program locks while it writes keys that others have open too.
const lockFile = "lock"

// CheckTime is how long a shared keyring trusts its memory before it looks whether another program has destroyed something
// of it: a program that stood still for longer looks before it opens anything.
const CheckTime = time.Second

// Timeouts and retries.
const (
	lockTime  = 10 * time.Second      // for another program that writes keys
	lockPause = 20 * time.Millisecond // between two tries
	readTries = 10                    // of a file that is replaced each time
)

// OpenShared opens keys that several programs have open at the same time. Each program finds the trees that another has planted. It drops
// keys that another has forgotten within CheckTime, or at once if Refresh is called; a program that was suspended checks first. Its writes
// start from the present files on disk.
func OpenShared(dir string, entropy io.Reader, now func() time.Time) (*Keyring, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the keys: %w", err)
	}
	k := &Keyring{dir: dir, entropy: entropy, now: now}
	return k, k.alone(func() error { return tidy(dir) })
}

// Refresh reads the keys anew: what another program has forgotten is forgotten here when it returns.
func (k *Keyring) Refresh() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refresh()
}

func (k *Keyring) refresh() error {
	at := time.Time{}
	if k.now != nil {
		at = k.now()
	}
	if err := k.load(); err != nil {
		return err
	}
	k.checked = at
	return nil
}

// alone calls do with the keys on the disk in memory, while no other program writes keys. The caller holds the lock.
func (k *Keyring) alone(do func() error) error {
	if k.now == nil {
		return do()
	}
	f, err := os.OpenFile(filepath.Join(k.dir, lockFile), os.O_CREATE|os.O_RDWR|host.NoFollow, 0o600)
	if err != nil {
		return fmt.Errorf("lock the keys: %w", err)
	}
	defer f.Close() // which gives it free
	for begun := k.now(); ; {
		err := host.Lock(f, host.Exclusive|host.NoWait)
		if err == nil {
			break
		}
		if !errors.Is(err, host.ErrLocked) && !host.Interrupted(err) {
			return fault.Wrap(err, fault.Unavailable, "data_not_lockable", "the keys in %s cannot be locked, so that two daemons might write them",
				k.dir)
		}
		if k.now().Sub(begun) > lockTime {
			return fault.New(fault.Unavailable, "keys_busy", "another daemon has been writing the keys in %s for too long",
				k.dir).With("see whether a daemon of this database stands still, and end it")
		}
		<-time.After(lockPause)
	}
	if err := k.refresh(); err != nil {
		return err
	}
	err = do()
	return errors.Join(err, k.refresh()) // whose files are ours now
}

// FreshTime is how old what Current has found may be.
const FreshTime = 50 * time.Millisecond

// Current checks whether another program has forgotten a key, unless it checked a moment ago. Call it before content is sealed under a name
// that may have been forgotten.
func (k *Keyring) Current() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.look(FreshTime)
}

// current looks whether the files are those that were read, where that was found last a while ago. The lock is held.
func (k *Keyring) current() error { return k.look(CheckTime) }

func (k *Keyring) look(after time.Duration) error {
	if k.now == nil {
		return nil
	}
	now := k.now()
	if passed := now.Sub(k.checked); passed >= 0 && passed < after {
		return nil
	}
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return fmt.Errorf("look at the keys: %w", err)
	}
	found := 0
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != keysSuffix {
			continue
		}
		found++
		info, err := entry.Info()
		if was := k.files[entry.Name()]; err != nil || was == nil || !unchanged(info, was) {
			return k.refresh()
		}
	}
	if found != len(k.files) {
		return k.refresh()
	}
	k.checked = now
	return nil
}

// unchanged reports whether a file was not replaced. The number of one that was removed may be given to the next, which then has another
// time.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
