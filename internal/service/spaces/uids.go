package spaces

import (
	"context"
	"sync"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// uids are the host uids that spaces of this daemon have.
type uids struct {
	first int // 0 where the daemon is not root

	mu    sync.Mutex
	taken map[int]id.Space
}

// acquire finds a host uid that no living space has.
func (u *uids) acquire(ctx context.Context, s id.Space) (int, error) {
	if u.first == 0 {
		return 0, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for uid := u.first; uid < u.first+uidRange; uid++ {
		if u.taken[uid] == "" {
			u.taken[uid] = s
			return uid, ctx.Err()
		}
	}
	return 0, fault.New(fault.Exhausted, "quota_exceeded", "the daemon has no host uid left for a space; %d are in use", uidRange)
}

// release gives back the host uid of a space, which by then may be another's.
func (u *uids) release(uid int, s id.Space) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.taken[uid] == s {
		delete(u.taken, uid)
	}
}

// uidRange is how many host uids a daemon uses for spaces.
const uidRange = 10_000

// keep takes a host uid that a space has from before.
func (u *uids) keep(uid int, s id.Space) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.taken[uid] = s
}
