package spaces

import (
	"cmp"
	"context"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Fork asks for a space whose files begin as a snapshot of another's. Zero fields take the other's values, except for the environment: it
// holds secrets, so a fork has only the variables given here. A fork inherits no other trust either. Its agents are new ones. Approvals for
// a run of the other space do not hold for its own runs. Of the other space's past it keeps the one snapshot.
type Fork struct {
	Workspace   id.Workspace
	Space       id.Space // the other one
	At          string   // the snapshot, as Rewind takes it; "" is the present files
	Name        string
	Description string
	Env         map[string]string
	Metadata    map[string]string
	TTL         time.Duration
	PauseAtEnd  bool   // the fork is paused at the end of its time, not destroyed
	Key         string // idempotency key; "" for none
}

// Fork makes the space. The other one may be in use: only a snapshot of it is read, and one of its files as they are now is made only
// while no operation is under way.
func (c *Creation) Fork(ctx context.Context, origin event.Origin, f Fork) (space.Space, error) {
	parent, err := c.catalog.alive(ctx, f.Workspace, f.Space)
	if err != nil {
		return space.Space{}, err
	}
	history, err := c.Store.History(parent.ID, parent.UID, parent.Limits)
	if err != nil {
		return space.Space{}, err
	}
	q := Request{
		Workspace: f.Workspace, Room: parent.Room, Name: f.Name, Description: f.Description, Preset: parent.Policy, Tier: cmp.Or(parent.Runtime,
			parent.Tier), Env: f.Env,
		Metadata: f.Metadata, TTL: f.TTL, Limits: parent.Limits, BestEffort: parent.BestEffort, Key: f.Key,
		PauseAtEnd: f.PauseAtEnd,
		fork:       string(parent.ID) + " " + f.At,
	}
	if err := c.complete(&q); err != nil {
		return space.Space{}, err
	}
	tier, err := c.tiers.tier(parent.Tier)
	if err != nil {
		return space.Space{}, err
	}
	if q.Name != "" { // a caller who may not fork does not learn which names are taken
		early := policy.Action{Type: policy.SpaceFork, Workspace: q.Workspace, Room: q.Room, Principal: origin.Principal, Token: origin.Token,
			Space: parent.ID}
		if err := c.acts.Early(ctx, origin, early); err != nil {
			return space.Space{}, err
		}
	}
	root, err := c.snapshots.state(ctx, parent, history, f.At)
	if err != nil {
		return space.Space{}, err
	}
	q.from, q.parent = space.Seed{Space: parent.ID, Snapshot: root}, parent
	return c.create(ctx, origin, q, parent.Runtime, tier, parent.Bundle)
}

// share prepares the files of a space for forks, so that a fork costs only its own changes. That ends the processes of the space once; they
// are started again when needed. So share does nothing while a run of the space is under way or waits. Then the fork may take as long as it
// takes to copy the files.
func (c *Creation) share(ctx context.Context, parent space.Space) error {
	leave, err := c.living.alone(parent.ID)
	if err != nil {
		return nil //nolint:nilerr // it is being used
	}
	defer leave()
	now, err := c.catalog.alive(ctx, parent.Workspace, parent.ID)
	if err != nil || now.Status != space.Ready {
		return err
	}
	l := c.living.of(parent.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.Store.Share(ctx, now.ID, now.UID, now.Limits, l.halt)
}
