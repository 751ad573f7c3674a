package killswitch

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// followAgain is the interval of the search for new workspaces, and the delay after an error before a log is followed again.
const followAgain = time.Second

// Follow applies kill switches that other daemons of the log throw or lift, until ctx ends. A thrown switch ends effects under way here
// too. A lifted switch lets its held work continue. A new action reads the switch from the log itself, so it does not depend on Follow.
func (s *Service) Follow(ctx context.Context) error {
	var follows sync.WaitGroup
	defer follows.Wait()
	known := map[id.Workspace]bool{}
	for ctx.Err() == nil {
		workspaces, err := s.Log.Workspaces(ctx)
		if err == nil {
			for _, ws := range workspaces {
				if !known[ws] {
					known[ws] = true
					follows.Go(func() { s.follow(ctx, ws) })
				}
			}
		}
		s.pause(ctx)
	}
	return nil
}

func (s *Service) pause(ctx context.Context) {
	again, stop := s.Clock.NewTimer(followAgain)
	defer stop()
	select {
	case <-again:
	case <-ctx.Done():
	}
}

// follow follows the switch of one workspace. The head is read before the switch, so that nothing falls between the two.
func (s *Service) follow(ctx context.Context, ws id.Workspace) {
	for ; ctx.Err() == nil; s.pause(ctx) {
		head, err := s.Log.Head(ctx, ws)
		if err != nil || s.learn(ctx, ws) != nil {
			continue
		}
		for _, err := range journal.Tail(ctx, s.Log, journal.Query{Workspace: ws, From: head + 1, Types: []string{policy.KillSwitchThrownType,
			policy.KillSwitchLiftedType}}) {
			if err != nil || s.learn(ctx, ws) != nil {
				break
			}
		}
	}
}

// learned is the document of a kill switch, with the event that set it.
type learned struct {
	policy.KillSwitch
	Latest event.Cause `json:"latest_event"`
}

// learn reads a switch from the log and applies it.
func (s *Service) learn(ctx context.Context, ws id.Workspace) error {
	doc, _, err := projection.Load[learned](ctx, s.Docs, ws, policy.KillSwitchProjection, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return err
	}
	thrown, lifted := s.switches.learn(ws, doc.On, doc.Latest.Event)
	if thrown != nil && s.halt != nil {
		s.halt(ws, thrown)
	}
	if lifted && s.lifted != nil {
		s.lifted(ws)
	}
	return nil
}
