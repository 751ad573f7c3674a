package spaces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
)

// Ending destroys spaces: on request, when their time is over, and those of a daemon that was given up.
type Ending struct {
	catalog   *Catalog
	ownership *Ownership
	living    *Living
	questions *questions
	pauses    *Pauses
	uids      *uids
	acts      policy.Client
	log       journal.Journal
	store     space.Store
	logger    *slog.Logger
	system    id.Principal
	occupants space.Occupants

	mu     sync.Mutex
	looked map[id.Workspace]look
}

// Change asks for a change of a space; nil means unchanged.
type Change struct {
	Name        *string
	Description *string
	Env         *map[string]string
	Metadata    *map[string]string
}

// Update changes the name, description and metadata of a space, and the environment of commands that begin from now on.
func (st *Settings) Update(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, c Change) (space.Space, error) {
	doc, err := st.catalog.alive(ctx, ws, s)
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
	updated := space.Updated{Space: s, Name: c.Name, Description: c.Description, Metadata: c.Metadata}
	if c.Env != nil {
		masked, secrets, err := st.variables.seal(ws, doc, *c.Env)
		if err != nil {
			return doc, err
		}
		updated.Env, updated.Secrets = &masked, secrets
	}
	draft := draftOf(space.EventUpdated, origin, doc, updated)
	name := value(c.Name)
	if name == doc.Name {
		name = "" // it has it already
	}
	if name != "" { // a caller who may not change the space does not learn which names are taken
		if _, err := st.acts.Allow(ctx, origin, actionOn(policy.SpaceUpdate, origin, doc)); err != nil {
			return doc, err
		}
	}
	err = st.names.claim(ctx, ws, doc.ID, name, origin.Key, func(unique string) error {
		draft.IdempotencyKey = unique
		_, _, err := st.acts.Do(ctx, origin, actionOn(policy.SpaceUpdate, origin, doc), origin.Once(event.Batch{Workspace: ws,
			Drafts: []event.Draft{draft}}))
		return err
	})
	if err != nil {
		return doc, err
	}
	return st.catalog.Space(ctx, ws, s)
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

// Extend sets the end of a space's life to the given time from now.
func (st *Settings) Extend(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, by time.Duration) (space.Space, error) {
	doc, err := st.catalog.alive(ctx, ws, s)
	if err != nil {
		return doc, err
	}
	if err := checkTTL(by); err != nil {
		return doc, err
	}
	ends := st.clock.Now().UTC().Add(by)
	_, _, err = st.acts.Do(ctx, origin, actionOn(policy.SpaceUpdate, origin, doc), origin.Once(event.Batch{Workspace: ws,
		Drafts: []event.Draft{
			draftOf(space.EventExtended, origin, doc, space.Extended{Space: s, ExpiresAt: ends}),
		}}))
	if err != nil {
		return doc, err
	}
	return st.catalog.Space(ctx, ws, s)
}

// Destroy ends a space for good: its runs, its processes, its files. A space that is already destroyed does not change.
func (e *Ending) Destroy(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space) (space.Space, error) {
	doc, err := e.catalog.Space(ctx, ws, s)
	if err != nil || doc.Status == space.Destroyed {
		return doc, err
	}
	if _, _, err := e.acts.Do(ctx, origin, actionOn(policy.SpaceDestroy, origin, doc), event.Batch{Workspace: ws}); err != nil {
		return doc, err
	}
	if err := e.end(ctx, origin, doc, "requested"); err != nil {
		return doc, err
	}
	return e.catalog.Space(ctx, ws, s)
}

// end stops everything of a space first, then records it, then removes its files; after a crash in between, Recover finishes.
func (e *Ending) end(ctx context.Context, origin event.Origin, doc space.Space, reason string) error {
	if e.occupants != nil {
		why := "the space was destroyed"
		if reason == "expired" {
			why = "the space's time was over"
		}
		if reason == nodeRemoved {
			why = "the daemon that had the space was given up"
		}
		if err := e.occupants.CancelSpace(ctx, origin, doc.ID, why); err != nil {
			return err
		}
	}
	l := e.living.of(doc.ID)
	l.ending.Lock()
	defer l.ending.Unlock()
	leave, err := e.living.await(ctx, doc.ID) // a rewind or a fork ends first; they take milliseconds and wait for nobody
	if err != nil {
		return err
	}
	defer leave()
	if now, err := e.catalog.Space(ctx, doc.Workspace, doc.ID); err != nil || now.Status == space.Destroyed {
		return err // somebody else was first
	}
	if err := l.close(); err != nil {
		e.logger.Warn("close a space", "code", "space_not_closed", "space", doc.ID, "error", err)
	}
	e.living.shut(ctx, doc.ID)
	_, err = e.log.Append(ctx, event.Batch{Workspace: doc.Workspace, Drafts: []event.Draft{
		draftOf(space.EventDestroyed, origin, doc, space.Ended{Space: doc.ID, Reason: reason}),
	}})
	if err != nil {
		return err
	}
	if err := e.questions.withdraw(ctx, origin, doc); err != nil { // the next start makes up for it
		e.logger.Error("withdraw the questions about a space", "code", "questions_not_withdrawn", "space", doc.ID, "error", err)
	}
	if err := l.close(); err != nil { // started again between the two
		e.logger.Warn("close a space", "code", "space_not_closed", "space", doc.ID, "error", err)
	}
	if err := e.store.Remove(ctx, doc.ID); err != nil {
		return err // its host uid stays taken until the next start has removed them
	}
	e.living.forget(doc.ID)
	e.uids.release(doc.UID, doc.ID)
	return nil
}

// lookEvery is how often Step looks at the spaces of a workspace in which nothing happens, at least.
const lookEvery = time.Minute

// look is Step's knowledge of a workspace: none of its spaces ends before until, as long as its log ends at head.
type look struct {
	head  uint64
	until time.Time
}

// Step destroys the spaces whose time is over at now. A space that cannot be destroyed does not keep the others alive. If nothing was
// recorded since, it looks again only when the time of one is over, so a thousand unused spaces cost no processor time.
func (e *Ending) Step(ctx context.Context, now time.Time) error {
	workspaces, err := e.log.Workspaces(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, ws := range workspaces {
		if err := e.expire(ctx, ws, now); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// expire does what Step does, of one workspace.
func (e *Ending) expire(ctx context.Context, ws id.Workspace, now time.Time) error {
	head, err := e.log.Head(ctx, ws)
	if err != nil {
		return err
	}
	e.mu.Lock()
	seen, ok := e.looked[ws]
	e.mu.Unlock()
	if ok && seen.head == head && now.Before(seen.until) {
		return nil
	}
	var failed []error
	until := now.Add(lookEvery)
	err = e.catalog.eachOf(ctx, ws, func(doc space.Space) error {
		if doc.ExpiresAt.After(now) {
			if doc.ExpiresAt.Before(until) {
				until = doc.ExpiresAt
			}
			return nil
		}
		until = now // it is checked again in any case
		if ours, err := e.ownership.expires(ctx, doc); err != nil || !ours {
			return err
		}
		if doc.PauseAtEnd && doc.Pause == nil && doc.Status != space.Creating {
			e.logger.Info("space paused at the end of its time", "code", "space_paused_at_end", "space", doc.ID)
			if err := e.pauses.atEnd(ctx, event.Origin{Principal: e.system}, doc); err != nil {
				failed = append(failed, fmt.Errorf("pause space %s: %w", doc.ID, err))
			}
			return ctx.Err()
		}
		e.logger.Info("space expired", "code", "space_expired", "space", doc.ID)
		if err := e.end(ctx, event.Origin{Principal: e.system}, doc, "expired"); err != nil {
			failed = append(failed, fmt.Errorf("end space %s: %w", doc.ID, err))
		}
		return ctx.Err()
	})
	if err = errors.Join(append(failed, err)...); err == nil {
		e.mu.Lock()
		e.looked[ws] = look{head, until}
		e.mu.Unlock()
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
	err := k.Catalog.each(ctx, func(doc space.Space) error {
		mine, err := k.Ownership.Mine(ctx, doc)
		if err != nil || !mine {
			alive[doc.ID] = true // any part of it here is not ours to remove
			return err
		}
		if doc.Status == space.Creating {
			return k.Ending.end(ctx, event.Origin{Principal: k.parts.System}, doc, "failed")
		}
		if err := k.Snapshots.settle(ctx, doc); err != nil {
			return err
		}
		alive[doc.ID] = true
		if doc.UID != 0 {
			k.uids.keep(doc.UID, doc.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	workspaces, err := k.parts.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if err := errors.Join(k.Files.closeChanges(ctx, ws), k.questions.withdrawLeft(ctx, ws)); err != nil {
			return err
		}
	}
	kept, err := k.parts.Store.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range kept {
		if !alive[s] {
			if err := k.parts.Store.Remove(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodeRemoved is why a space was destroyed whose daemon was given up.
const nodeRemoved = "node_removed"

// GiveUp ends every space of a removed daemon, with its runs. Nobody can reach the files.
func (e *Ending) GiveUp(ctx context.Context, origin event.Origin, node id.Node) error {
	var failed []error
	err := e.catalog.each(ctx, func(doc space.Space) error {
		if doc.Node != node {
			return nil
		}
		if err := e.end(ctx, origin, doc, nodeRemoved); err != nil {
			failed = append(failed, fmt.Errorf("end space %s: %w", doc.ID, err))
		}
		return ctx.Err()
	})
	return errors.Join(append(failed, err)...)
}
