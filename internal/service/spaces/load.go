package spaces

import (
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// Load returns what the processes of a space use now; ok is false for a space that does not run on this daemon at the moment.
func (k *Service) Load(s id.Space) (load space.Load, ok bool) {
	k.mu.Lock()
	l := k.living[s]
	k.mu.Unlock()
	if l == nil || !l.mu.TryLock() { // it is being started or closed
		return space.Load{}, false
	}
	instance := l.instance
	l.mu.Unlock()
	if instance == nil {
		return space.Load{}, false
	}
	load, err := instance.Load()
	return load, err == nil
}
