// Package spaces keeps spaces: makes them, starts them again when they are needed, and destroys them when their time is over.
package spaces

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Limits of a request for a space.
const (
	DefaultTTL     = 12 * time.Hour
	MinTTL         = 10 * time.Second
	MaxTTL         = 30 * 24 * time.Hour // from the moment it is set, not from creation
	MaxName        = space.MaxName       // characters
	MaxDescription = 1_000               // characters
	MaxEnv         = 100                 // variables
	MaxEnvBytes    = 32 << 10            // names and values together
	MaxMetadata    = 50                  // entries
	MaxMetaBytes   = 16 << 10            // names and values together
)

// Parts are the dependencies of the service.
type Parts struct {
	Log     journal.Journal
	Docs    projection.Reader
	Gate    policy.Gate
	Library policy.Library
	Store   space.Store
	Tiers   []space.Tier // from the weakest to the strongest
	Place   space.Place  // finds what a command needs that the tier nano has not; nil finds nothing
	Clock   event.Clock
	IDs     *id.Source
	Logger  *slog.Logger

	MaxSpaces int          // living spaces of one workspace
	MaxLimits space.Limits // the most that a space may ask for
	FirstUID  int          // of the range of host uids for spaces; 0 where the daemon is not root
	Node      id.Node      // of this daemon, which its spaces bear
	Together  Together     // the zero value where no other daemon works on the log
	System    id.Principal // destroys expired spaces
}

// Together is what the service needs if several daemons work on one log, each with the files of its own spaces.
type Together struct {
	Leads     func() bool                                                         // this daemon is their leader; nil where there are no others
	Exclusive func(ctx context.Context, name string) (giveBack func(), err error) // waits until nobody else, in any daemon, has what is named
}

// Service keeps spaces. Make it with New; every method may be called from any goroutine.
type Service struct {
	Parts

	creating sync.Mutex

	mu        sync.Mutex
	occupants space.Occupants
	living    map[id.Space]*living
	uids      map[int]id.Space
	looked    map[id.Workspace]look
}

// living is a space that runs on this daemon, or is being started.
type living struct {
	turn     chan struct{} // holds a token while an operation, a rewind or a fork has its files
	whole    chan struct{} // holds a token while what needs the files as a whole has them, and while other code begins
	beside   atomic.Int64  // how much code runs beside the operations
	ending   sync.Mutex    // held while it is destroyed
	mu       sync.Mutex    // held while it is started or closed
	instance space.Instance
}

var _ space.Keeping = (*Service)(nil)

// New returns a keeper of the given parts.
func New(parts Parts) *Service {
	return &Service{Parts: parts, living: map[id.Space]*living{}, uids: map[int]id.Space{}, looked: map[id.Workspace]look{}}
}

// SetOccupants tells the keeper who ends the runs of a space before it is destroyed. It is called once, before anything else.
func (k *Service) SetOccupants(o space.Occupants) { k.occupants = o }

// Space returns a space of the workspace, also one that was destroyed.
func (k *Service) Space(ctx context.Context, ws id.Workspace, s id.Space) (space.Space, error) {
	doc, _, err := k.load(ctx, ws, s)
	return doc, err
}

func (k *Service) load(ctx context.Context, ws id.Workspace, s id.Space) (space.Space, uint64, error) {
	doc, version, err := projection.Load[space.Space](ctx, k.Docs, ws, space.Projection, string(s))
	if fault.KindOf(err) == fault.NotFound {
		return doc, 0, fault.New(fault.NotFound, "space_not_found", "there is no space %.64s in this workspace", s)
	}
	return doc, version, err
}

// List returns spaces of the workspace by their status, newest first; an empty status returns those that are not destroyed.
func (k *Service) List(ctx context.Context, ws id.Workspace, status space.Status, after id.Space, limit int) ([]space.Space, error) {
	index := projection.Index{Name: "status", Value: string(status)}
	if status == "" {
		index = projection.Index{Name: "living", Value: "true"}
	}
	return projection.List[space.Space](ctx, k.Docs, projection.Query{
		Workspace: ws, Name: space.Projection, Index: index, After: string(after), Newest: true, Limit: limit,
	})
}

// Files implements space.Keeping.
func (k *Service) Files(doc space.Space) (space.Files, error) {
	if err := inUse(doc); err != nil {
		return nil, err
	}
	files, _, err := k.Store.Open(doc.ID, doc.UID, doc.Limits)
	return files, err
}

func (k *Service) alive(ctx context.Context, ws id.Workspace, s id.Space) (space.Space, error) {
	doc, err := k.Space(ctx, ws, s)
	if err == nil {
		err = inUse(doc)
	}
	return doc, err
}

func inUse(doc space.Space) error {
	if doc.Status == space.Destroyed {
		return ErrDestroyed
	}
	return nil
}

// ErrDestroyed refuses to use a space whose time is over.
var ErrDestroyed = fault.New(fault.Conflict, "space_destroyed", "the space was destroyed; make a new one")

// Instance implements space.Keeping. If there is none, because the daemon was restarted or the space ended by itself, it starts one again
// with the same files.
func (k *Service) Instance(ctx context.Context, doc space.Space) (space.Instance, error) {
	return k.instance(ctx, doc, func(doc space.Space) (policy.Permit, error) { return k.mayStart(ctx, "", doc) })
}

// instance is Instance with a function that gets the permit for a start.
func (k *Service) instance(ctx context.Context, doc space.Space, may func(space.Space) (policy.Permit, error)) (space.Instance, error) {
	if err := inUse(doc); err != nil {
		return nil, err
	}
	l := k.of(doc.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.instance != nil {
		select {
		case <-l.instance.Done():
			if err := l.instance.Close(); err != nil {
				k.Logger.Warn("close a space that ended by itself", "code", "ended_space_not_closed", "space", doc.ID, "error", err)
			}
			l.instance = nil
		default:
			return l.instance, nil
		}
	}
	doc, err := k.alive(ctx, doc.Workspace, doc.ID) // it may have been destroyed while the lock was awaited
	if err != nil {
		return nil, err
	}
	instance, err := k.start(ctx, doc, may)
	if err != nil {
		return nil, err
	}
	l.instance = instance
	return instance, nil
}

func (k *Service) of(s id.Space) *living {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.living[s]
	if l == nil {
		l = &living{turn: make(chan struct{}, 1), whole: make(chan struct{}, 1)}
		k.living[s] = l
	}
	return l
}

// start starts the processes of a space, through the gate.
func (k *Service) start(ctx context.Context, doc space.Space, may func(space.Space) (policy.Permit, error)) (space.Instance, error) {
	tier, err := k.tier(doc.Tier)
	if err != nil {
		return nil, err
	}
	_, dir, err := k.Store.Open(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return nil, err
	}
	permit, err := may(doc)
	if err != nil {
		return nil, err
	}
	// The space's environment is part of each command's action, as it is when the command begins: a removed variable is gone.
	return tier.Create(ctx, permit, space.Spec{
		ID: doc.ID, Dir: dir, UID: doc.UID, Limits: doc.Limits, BestEffort: doc.BestEffort, Tentative: k.tentative(doc),
		Elsewhere: k.elsewhere(doc),
	})
}

// mayStart records that the processes of a space are about to start, in the name of its maker. The start is linked to a cause.
func (k *Service) mayStart(ctx context.Context, cause id.Correlation, doc space.Space) (policy.Permit, error) {
	origin := event.Origin{Principal: doc.CreatedBy, Correlation: cause}
	action := k.action(policy.SpaceStart, origin, doc)
	permit, _, err := k.through().Do(ctx, origin, action, event.Batch{Workspace: doc.Workspace, Drafts: []event.Draft{
		k.event(space.EventStarted, origin, doc, space.Started{Space: doc.ID, Tier: doc.Tier}),
	}})
	return permit, err
}

// through takes actions through the gate.
func (k *Service) through() policy.Client { return policy.Client{Gate: k.Gate, Append: k.Log.Append} }

func (k *Service) event(typ string, origin event.Origin, doc space.Space, data any) event.Draft {
	return event.New(typ, origin, doc.Workspace, doc.Room, data).About(space.EntityType, string(doc.ID))
}

// Probe asks every tier what the host supports.
func (k *Service) Probe(ctx context.Context) []space.Report {
	reports := make([]space.Report, len(k.Tiers))
	for i, t := range k.Tiers {
		reports[i] = t.Probe(ctx)
	}
	return reports
}

// Try reports whether some tier can make a space and run a program in it.
func (k *Service) Try(ctx context.Context) error { return Try(ctx, k.Tiers) }

// Try reports whether one of some tiers can make a space and run a program in it.
func Try(ctx context.Context, tiers []space.Tier) error {
	var errs []error
	for _, t := range tiers {
		err := t.Try(ctx)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fault.Wrap(errors.Join(errs...), fault.Unavailable, "tier_unavailable", "no tier can make spaces on this host; run agentbox doctor")
}

// Close ends every space of this daemon and keeps their files.
func (k *Service) Close() error {
	k.mu.Lock()
	all := make([]*living, 0, len(k.living))
	for _, l := range k.living {
		all = append(all, l)
	}
	k.mu.Unlock()
	var errs []error
	for _, l := range all {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

func (l *living) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.halt()
}

// halt is close for a caller that holds the lock.
func (l *living) halt() error {
	if l.instance == nil {
		return nil
	}
	err := l.instance.Close()
	l.instance = nil
	return err
}
