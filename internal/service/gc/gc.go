// Package gc frees content that no event names any more and snapshots that a rule lets go, and forgets what redacted events have brought.
package gc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// Every is how long after one sweep the next begins by itself.
const Every = 6 * time.Hour

// Parts are the dependencies of the service.
type Parts struct {
	Log    journal.Journal
	Docs   projection.Reader
	Gate   policy.Gate
	Blobs  blob.Store
	Live   livestream.Store
	Spaces space.Store
	Rule   content.Rule
	Clock  event.Clock
	Logger *slog.Logger
	System id.Principal // sweeps by the clock

	// If several daemons work on one log, each sweeps the snapshots of its own spaces. Their leader sweeps the contents, which they share. Nil
	// if there are no other daemons.
	Mine  func(ctx context.Context, s space.Space) (bool, error)
	Leads func() bool

	Remember int // names of content that are kept in memory for redactions; 0 for DefaultRemember
}

// Service sweeps. Make it with New; every method may be called from any goroutine.
type Service struct {
	Parts

	sweeping sync.Mutex // one sweep at a time
	names    names
}

// New returns a service of the given parts.
func New(parts Parts) *Service { return &Service{Parts: parts} }

// Usage returns how much content the log of a workspace names.
func (s *Service) Usage(ctx context.Context, ws id.Workspace) (content.Usage, error) {
	return Usage(ctx, s.Docs, ws)
}

// Survey counts the content that a sweep would free now. It changes nothing.
func (s *Service) Survey(ctx context.Context, ws id.Workspace) (content.Swept, error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	var swept content.Swept
	var err error
	if s.leads() {
		if swept.Contents, err = s.Blobs.Survey(ctx, s.mark); err != nil {
			return swept, err
		}
	}
	return swept, s.each(ctx, ws, &swept, func(p past) (int64, error) { return p.history.Survey(ctx, p.gone) })
}

// Sweep frees content that nothing names, on behalf of the caller, and records how much it freed. Content belongs to the whole
// installation: it is kept if the log of any workspace names it.
func (s *Service) Sweep(ctx context.Context, origin event.Origin, ws id.Workspace) (content.Swept, error) {
	return s.sweep(ctx, origin.Principal, origin, ws, false)
}

// Step sweeps if there is anything to free, on behalf of the owner who lets the daemon run; the log says that it was the daemon. If the
// gate refuses a sweep, as while the kill switch is thrown, the next Step sweeps.
func (s *Service) Step(ctx context.Context, ws id.Workspace, owner id.Principal) error {
	found, err := s.Survey(ctx, ws)
	if err != nil || found.Contents.Freed == 0 && found.Snapshots.Freed == 0 && found.Snapshots.FreedBytes == 0 {
		return err // there is nothing to do, and so nothing to record
	}
	_, err = s.sweep(ctx, owner, event.Origin{Principal: s.System}, ws, true)
	if fault.KindOf(err) == fault.Denied {
		s.Logger.Info("nothing is swept now", "code", "sweep_refused", "error", err)
		return nil
	}
	return err
}

// sweep takes a sweep through the gate, records its intent, sweeps and records the result. Each store gets a permit of its own.
func (s *Service) sweep(ctx context.Context, by id.Principal, origin event.Origin, ws id.Workspace, scheduled bool) (content.Swept, error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	var swept content.Swept
	permit, begun, err := s.permit(ctx, policy.Action{Type: policy.ContentSweep, Workspace: ws, Principal: by, Token: origin.Token},
		origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{draft(content.EventSweepBegun, origin, ws, content.SweepBegun{Scheduled: scheduled, Rule: s.Rule})},
		}))
	if err != nil {
		return swept, err
	}
	if s.leads() {
		if swept.Contents, err = s.Blobs.Sweep(ctx, permit, s.mark); err != nil {
			return swept, err
		}
	}
	err = s.each(ctx, ws, &swept, func(p past) (int64, error) {
		freed, err := p.history.Survey(ctx, p.gone)
		if err != nil || freed == 0 && len(p.gone) == 0 {
			return 0, err
		}
		a := policy.Action{Type: policy.ContentSweep, Workspace: ws, Room: p.space.Room, Principal: by, Token: origin.Token, Space: p.space.ID,
			Bundle: p.space.Bundle}
		permit, _, err := s.permit(ctx, a, event.Batch{Workspace: ws})
		if err != nil {
			return 0, err
		}
		return p.history.Sweep(ctx, permit, p.gone)
	})
	if err != nil {
		return swept, err
	}
	done := event.Origin{Principal: origin.Principal, Correlation: begun.Correlation, Causation: begun.Event}
	_, err = s.Log.Append(context.WithoutCancel(ctx), event.Batch{Workspace: ws, Drafts: []event.Draft{draft(content.EventSwept, done, ws,
		swept)}})
	return swept, err
}

// leads reports whether the contents are this daemon's to sweep.
func (s *Service) leads() bool { return s.Leads == nil || s.Leads() }

// permit takes an action through the gate and returns the cause for the events after its intent. It does not wait for a person.
func (s *Service) permit(ctx context.Context, a policy.Action, intent event.Batch) (permit policy.Permit, begun event.Cause, err error) {
	permit, receipt, err := policy.Client{Gate: s.Gate, Final: true}.Do(ctx, event.Origin{}, a, intent)
	if len(receipt.Events) > 0 {
		begun = receipt.Events[0].Cause()
	}
	return permit, begun, err
}

func draft(typ string, origin event.Origin, ws id.Workspace, data any) event.Draft {
	return event.New(typ, origin, ws, "", data).About(content.EntityType, string(ws))
}

// Swept returns the result of the sweep whose intent is at a place of the log.
func (s *Service) Swept(ctx context.Context, ws id.Workspace, place uint64) (content.Swept, error) {
	found, err := s.Log.Read(ctx, journal.Query{
		Workspace: ws, From: place, EntityType: content.EntityType, EntityID: string(ws), Types: []string{content.EventSwept}, Limit: 1,
	})
	if err != nil {
		return content.Swept{}, err
	}
	if len(found) == 0 {
		return content.Swept{}, errUnderWay
	}
	return event.Decode[content.Swept](found[0])
}

var errUnderWay = fault.New(fault.Conflict, "idempotency_in_progress",
	"a sweep with this idempotency key is under way, or was cut off; ask again, or under another key")

// errSealed refuses to sweep if the names of content cannot be read.
var errSealed = fault.New(fault.Unavailable, vault.ErrMissing.Code,
	"the log holds events whose keys are not here, so that nobody can tell what they name; nothing is swept").
	With(vault.ErrMissing.Suggestion)

// mark names the content that the log of any workspace names.
func (s *Service) mark(ctx context.Context, named func(event.Digest)) error {
	workspaces, err := s.Log.Workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		q := journal.Query{Workspace: ws, From: 1, Types: run.NamingEvents(), Limit: journal.MaxRead}
		for {
			events, err := s.Log.Read(ctx, q)
			if err != nil {
				return err
			}
			for _, e := range events {
				if e.Withheld == event.Sealed {
					return errSealed
				}
				contents, err := run.ContentsOf(e)
				if err != nil {
					return err
				}
				for _, c := range contents {
					named(c.Digest)
				}
				q.From = e.Seq + 1
			}
			if len(events) < q.Limit {
				break
			}
		}
	}
	return nil
}
