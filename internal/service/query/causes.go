package query

import (
	"context"
	"errors"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// Limits of a walk from one event.
const (
	MaxPath    = 1_000 // causes
	MaxEffects = 200
)

// Effect is an event that follows from another one.
type Effect struct {
	event.Event
	Depth int // 1 for a direct effect
}

// Causes holds the events that led to an event, and those that it led to.
type Causes struct {
	Event   event.Event
	Path    []event.Event // the first cause first, the event's own cause last; empty where it has none
	Effects []Effect      // each behind its cause, in the order of the log where they have the same one
	// Outside is the cause of the first event of Path, if that cause is not in this workspace's log: an order of the installation.
	Outside id.Event
	// PathCut and EffectsCut say that there is more than MaxPath and MaxEffects.
	PathCut, EffectsCut bool
}

// Causes walks from an event to its first cause and to its effects. Each step reads one event, or the effects of one event, by an index.
func (r *Service) Causes(ctx context.Context, ws id.Workspace, of id.Event) (Causes, error) {
	e, err := r.log.Get(ctx, ws, of)
	if err != nil {
		return Causes{}, err
	}
	c := Causes{Event: e}
	if err := r.path(ctx, ws, &c); err != nil {
		return c, err
	}
	return c, r.effects(ctx, ws, &c, e.ID, 1)
}

func (r *Service) path(ctx context.Context, ws id.Workspace, c *Causes) error {
	for cause := c.Event.Causation; cause != ""; {
		if len(c.Path) == MaxPath {
			c.PathCut = true
			break
		}
		e, err := r.log.Get(ctx, ws, cause)
		if errors.Is(err, journal.ErrNotFound) {
			c.Outside = cause
			break
		}
		if err != nil {
			return err
		}
		c.Path = append(c.Path, e)
		cause = e.Causation
	}
	slices.Reverse(c.Path)
	return nil
}

// effects adds the events that an event caused, and their effects in turn, as a tree is read from its root.
func (r *Service) effects(ctx context.Context, ws id.Workspace, c *Causes, of id.Event, depth int) error {
	found, err := r.log.Read(ctx, journal.Query{Workspace: ws, Causation: of, Limit: MaxEffects + 1})
	if err != nil {
		return err
	}
	for _, e := range found {
		if len(c.Effects) == MaxEffects {
			c.EffectsCut = true
			return nil
		}
		c.Effects = append(c.Effects, Effect{e, depth})
		if err := r.effects(ctx, ws, c, e.ID, depth+1); err != nil {
			return err
		}
	}
	return nil
}
