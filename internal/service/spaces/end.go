package spaces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
)

// Change asks for a change of a space; nil means unchanged.
type Change struct {
	Name        *string
	Description *string
	Env         *map[string]string
	Metadata    *map[string]string
}

// Update changes the name, description and metadata of a space, and the environment of commands that begin from now on.
func (k *Service) Update(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, c Change) (space.Space, error) {
	doc, err := k.alive(ctx, ws, s)
	if err != nil {
		return doc, err
	}
	if c.Name != nil {
		if err := doc.CheckName(*c.Name); err != nil {
			return doc, err
		}
	}
	if err := checkDescription(value(c.Description)); err != nil {
		return doc, err
	}
	if err := checkMaps(value(c.Env), value(c.Metadata)); err != nil {
		return doc, err
	}
	draft := k.event(space.EventUpdated, origin, doc, space.Updated{Space: s, Name: c.Name, Description: c.Description, Env: c.Env,
		Metadata: c.Metadata})
	name := value(c.Name)
	if name == doc.Name {
		name = "" // it has it already
	}
	if name != "" { // a caller who may not change the space does not learn which names are taken
		if _, err := k.through().Allow(ctx, origin, k.action(policy.SpaceUpdate, origin, doc)); err != nil {
			return doc, err
		}
	}
	err = k.claim(ctx, ws, doc.ID, name, origin.Key, func(unique string) error {
		draft.IdempotencyKey = unique
		_, _, err := k.through().Do(ctx, origin, k.action(policy.SpaceUpdate, origin, doc), origin.Once(event.Batch{Workspace: ws,
			Drafts: []event.Draft{draft}}))
		return err
	})
	if err != nil {
		return doc, err
	}
	return k.Space(ctx, ws, s)
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

// Extend sets the end of a space's life to the given time from now.
func (k *Service) Extend(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, by time.Duration) (space.Space, error) {
	doc, err := k.alive(ctx, ws, s)
	if err != nil {
		return doc, err
	}
	if err := checkTTL(by); err != nil {
		return doc, err
	}
	ends := k.Clock.Now().UTC().Add(by)
	_, _, err = k.through().Do(ctx, origin, k.action(policy.SpaceUpdate, origin, doc), origin.Once(event.Batch{Workspace: ws,
		Drafts: []event.Draft{
			k.event(space.EventExtended, origin, doc, space.Extended{Space: s, ExpiresAt: ends}),
		}}))
	if err != nil {
		return doc, err
	}
	return k.Space(ctx, ws, s)
}

// Destroy ends a space for good: its runs, its processes, its files. A space that is already destroyed does not change.
func (k *Service) Destroy(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space) (space.Space, error) {
	doc, err := k.Space(ctx, ws, s)
	if err != nil || doc.Status == space.Destroyed {
		return doc, err
	}
	if _, _, err := k.through().Do(ctx, origin, k.action(policy.SpaceDestroy, origin, doc), event.Batch{Workspace: ws}); err != nil {
		return doc, err
	}
	if err := k.end(ctx, origin, doc, "requested"); err != nil {
		return doc, err
	}
	return k.Space(ctx, ws, s)
}

// end stops everything of a space first, then records it, then removes its files; a crash in between is made up for by Recover.
func (k *Service) end(ctx context.Context, origin event.Origin, doc space.Space, reason string) error {
	if k.occupants != nil {
		why := "the space was destroyed"
		if reason == "expired" {
			why = "the space's time was over"
		}
		if reason == nodeRemoved {
			why = "the daemon that had the space was given up"
		}
		if err := k.occupants.CancelSpace(ctx, origin, doc.ID, why); err != nil {
			return err
		}
	}
	l := k.of(doc.ID)
	l.ending.Lock()
	defer l.ending.Unlock()
	leave, err := k.await(ctx, doc.ID) // a rewind or a fork ends first; they take milliseconds and wait for nobody
	if err != nil {
		return err
	}
	defer leave()
	if now, err := k.Space(ctx, doc.Workspace, doc.ID); err != nil || now.Status == space.Destroyed {
		return err // somebody else was first
	}
	if err := l.close(); err != nil {
		k.Logger.Warn("close a space", "code", "space_not_closed", "space", doc.ID, "error", err)
	}
	_, err = k.Log.Append(ctx, event.Batch{Workspace: doc.Workspace, Drafts: []event.Draft{
		k.event(space.EventDestroyed, origin, doc, space.Ended{Space: doc.ID, Reason: reason}),
	}})
	if err != nil {
		return err
	}
	if err := k.withdraw(ctx, origin, doc); err != nil { // the next start makes up for it
		k.Logger.Error("withdraw the questions about a space", "code", "questions_not_withdrawn", "space", doc.ID, "error", err)
	}
	if err := l.close(); err != nil { // started again between the two
		k.Logger.Warn("close a space", "code", "space_not_closed", "space", doc.ID, "error", err)
	}
	if err := k.Store.Remove(ctx, doc.ID); err != nil {
		return err // its host uid stays taken until the next start has removed them
	}
	k.mu.Lock()
	delete(k.living, doc.ID)
	k.mu.Unlock()
	k.giveUID(doc.UID, doc.ID)
	return nil
}

// lookEvery is how often Step looks at the spaces of a workspace in which nothing happens, at least.
const lookEvery = time.Minute

// look is what Step has seen: no space of the workspace ends before until, as long as its log ends at head.
type look struct {
	head  uint64
	until time.Time
}

// Step destroys the spaces whose time is over at now. A space that cannot be destroyed does not keep the others alive. If nothing was
// recorded since, it looks again only when the time of one is over, so a thousand unused spaces cost no processor time.
func (k *Service) Step(ctx context.Context, now time.Time) error {
	workspaces, err := k.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, ws := range workspaces {
		if err := k.expire(ctx, ws, now); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// expire does what Step does, of one workspace.
func (k *Service) expire(ctx context.Context, ws id.Workspace, now time.Time) error {
	head, err := k.Log.Head(ctx, ws)
	if err != nil {
		return err
	}
	k.mu.Lock()
	seen, ok := k.looked[ws]
	k.mu.Unlock()
	if ok && seen.head == head && now.Before(seen.until) {
		return nil
	}
	var failed []error
	until := now.Add(lookEvery)
	err = k.eachOf(ctx, ws, func(doc space.Space) error {
		if doc.ExpiresAt.After(now) {
			if doc.ExpiresAt.Before(until) {
				until = doc.ExpiresAt
			}
			return nil
		}
		until = now // it is checked again in any case
		if ours, err := k.expires(ctx, doc); err != nil || !ours {
			return err
		}
		k.Logger.Info("space expired", "code", "space_expired", "space", doc.ID)
		if err := k.end(ctx, event.Origin{Principal: k.System}, doc, "expired"); err != nil {
			failed = append(failed, fmt.Errorf("end space %s: %w", doc.ID, err))
		}
		return ctx.Err()
	})
	if err = errors.Join(append(failed, err)...); err == nil {
		k.mu.Lock()
		k.looked[ws] = look{head, until}
		k.mu.Unlock()
	}
	return err
}

// Recover repairs the state that an earlier daemon left. It ends processes without a daemon, destroys unfinished spaces, and removes
// directories without a living space. If several daemons work on the log, it does so for its own spaces. Call it once, before spaces are
// used.
func (k *Service) Recover(ctx context.Context) error {
	for _, t := range k.Tiers {
		if err := t.Reap(ctx, nil); err != nil {
			return err
		}
	}
	alive := map[id.Space]bool{}
	err := k.each(ctx, func(doc space.Space) error {
		mine, err := k.Mine(ctx, doc)
		if err != nil || !mine {
			alive[doc.ID] = true // any part of it here is not ours to remove
			return err
		}
		if doc.Status == space.Creating {
			return k.end(ctx, event.Origin{Principal: k.System}, doc, "failed")
		}
		if err := k.settle(ctx, doc); err != nil {
			return err
		}
		alive[doc.ID] = true
		if doc.UID != 0 {
			k.mu.Lock()
			k.uids[doc.UID] = doc.ID
			k.mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return err
	}
	workspaces, err := k.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := errors.Join(k.closeChanges(ctx, ws), k.withdrawLeft(ctx, ws)); err != nil {
			return err
		}
	}
	kept, err := k.Store.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range kept {
		if !alive[s] {
			if err := k.Store.Remove(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// each calls f for every space of every workspace that is not destroyed.
func (k *Service) each(ctx context.Context, f func(space.Space) error) error {
	workspaces, err := k.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := k.eachOf(ctx, ws, f); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls f for every space of a workspace that is not destroyed.
func (k *Service) eachOf(ctx context.Context, ws id.Workspace, f func(space.Space) error) error {
	q := projection.Query{Workspace: ws, Name: space.Projection, Index: projection.Index{Name: "living", Value: "true"}, Limit: 1000}
	for {
		docs, err := projection.List[space.Space](ctx, k.Docs, q)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if err := f(doc); err != nil {
				return err
			}
			q.After = string(doc.ID)
		}
		if len(docs) < q.Limit {
			return nil
		}
	}
}
