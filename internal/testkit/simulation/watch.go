package simulation

import (
	"context"
	"errors"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Watch implements space.Files. No daemon of the simulation watches files.
func (f *spaceFiles) Watch(_ context.Context, p policy.Permit, _ bool) (space.Watch, error) {
	_, err := p.Redeem(policy.FileList)
	return nil, errors.Join(err, space.ErrWatchedGone)
}
