package app

import (
	"context"
	"encoding/json"
	"time"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/fault"
	"agentbox/internal/host"
)

// A process that a daemon is starting holds the daemon's lock and address until its program is loaded. If the daemon is killed at that
// moment, the next daemon finds both taken, on a busy machine for a second. So it tries again for as long.
const (
	lingerTries = 100
	lingerPause = 50 * time.Millisecond
)

// claimDirectory locks the data directory. It refuses at once if daemon.json names a daemon that lives.
func (a *App) claimDirectory(ctx context.Context) (lock *datadir.Lock, err error) {
	err = a.lingering(ctx, func() (bool, error) {
		lock, err = datadir.Acquire(a.Config.DataDir)
		_, lives := a.last()
		return fault.CodeOf(err) == "data_in_use" && !lives, err
	})
	return lock, err
}

// lingering tries something until that says that it is not to be tried again.
func (a *App) lingering(ctx context.Context, do func() (again bool, err error)) error {
	for tried := 0; ; tried++ {
		again, err := do()
		if !again || tried == lingerTries {
			return err
		}
		pause, stop := a.clock.NewTimer(lingerPause)
		select {
		case <-pause:
		case <-ctx.Done():
			stop()
			return err
		}
	}
}

// last returns what daemon.json says of the daemon that wrote it last, and whether that lives.
func (a *App) last() (s State, lives bool) {
	raw, err := readSmall(a.path(stateFile))
	if err != nil || json.Unmarshal(raw, &s) != nil || s.PID <= 0 {
		return State{}, false
	}
	return s, host.Lives(s.PID)
}
