package spaces

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Living are the spaces that run on this daemon: their instances, and the present users of their files. It implements space.Keeping.
type Living struct {
	*Catalog
	acts   policy.Client
	store  space.Store
	tiers  Tiers
	logger *slog.Logger
	doors  space.Doors // nil for none

	mu  sync.Mutex
	all map[id.Space]*running
}

var (
	_ space.Keeping  = (*Living)(nil)
	_ space.Presence = (*Living)(nil)
)

// running is a space that runs on this daemon, or is being started.
type running struct {
	busy     chan struct{} // holds a token while an operation, a rewind or a fork has its files
	whole    chan struct{} // holds a token while what needs the files as a whole has them, and while other code begins
	beside   atomic.Int64  // how much code runs beside the operations
	ending   sync.Mutex    // held while it is destroyed
	mu       sync.Mutex    // held while it is started or closed
	instance space.Instance
}

// Files implements space.Keeping.
func (lv *Living) Files(doc space.Space) (space.Files, error) {
	if err := inUse(doc); err != nil {
		return nil, err
	}
	files, _, err := lv.store.Open(doc.ID, doc.UID, doc.Limits)
	return files, err
}

// Instance implements space.Keeping. If there is none, because the daemon was restarted or the space ended by itself, it starts one again
// with the same files.
func (lv *Living) Instance(ctx context.Context, doc space.Space) (space.Instance, error) {
	return lv.instance(ctx, doc, func(doc space.Space) (policy.Permit, error) { return lv.mayStart(ctx, "", doc) })
}

// instance is Instance with a function that gets the permit for a start.
func (lv *Living) instance(ctx context.Context, doc space.Space, may func(space.Space) (policy.Permit, error)) (space.Instance, error) {
	if err := inUse(doc); err != nil {
		return nil, err
	}
	l := lv.of(doc.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.instance != nil {
		select {
		case <-l.instance.Done():
			if err := l.instance.Close(); err != nil {
				lv.logger.Warn("close a space that ended by itself", "code", "ended_space_not_closed", "space", doc.ID, "error", err)
			}
			l.instance = nil
		default:
			return l.instance, nil
		}
	}
	doc, err := lv.alive(ctx, doc.Workspace, doc.ID) // it may have been destroyed while the lock was awaited
	if err != nil {
		return nil, err
	}
	instance, err := lv.start(ctx, doc, may)
	if err != nil {
		return nil, err
	}
	l.instance = instance
	if doc.Pause != nil { // it was paused while an operation was about to begin: what begins stands still until it is resumed
		if _, err := l.freeze(); err != nil {
			return nil, errors.Join(err, l.halt())
		}
	}
	return instance, nil
}

func (lv *Living) of(s id.Space) *running {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	l := lv.all[s]
	if l == nil {
		l = &running{busy: make(chan struct{}, 1), whole: make(chan struct{}, 1)}
		lv.all[s] = l
	}
	return l
}

// start starts the processes of a space, through the gate.
func (lv *Living) start(ctx context.Context, doc space.Space, may func(space.Space) (policy.Permit, error)) (space.Instance, error) {
	tier, err := lv.tiers.tier(doc.Tier)
	if err != nil {
		return nil, err
	}
	_, dir, err := lv.store.Open(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return nil, err
	}
	permit, err := may(doc)
	if err != nil {
		return nil, err
	}
	// The space's environment is part of each command's action, as it is when the command begins: a removed variable is gone.
	return tier.Create(ctx, permit, space.Spec{
		ID: doc.ID, Dir: dir, UID: doc.UID, Limits: doc.Limits, BestEffort: doc.BestEffort, Tentative: lv.tiers.tentative(doc),
		Elsewhere: lv.tiers.elsewhere(doc),
	})
}

// mayStart records that the processes of a space are about to start, in the name of its maker. The start is linked to a cause.
func (lv *Living) mayStart(ctx context.Context, cause id.Correlation, doc space.Space) (policy.Permit, error) {
	origin := event.Origin{Principal: doc.CreatedBy, Correlation: cause}
	action := actionOn(policy.SpaceStart, origin, doc)
	permit, _, err := lv.acts.Do(ctx, origin, action, event.Batch{Workspace: doc.Workspace, Drafts: []event.Draft{
		draftOf(space.EventStarted, origin, doc, space.Started{Space: doc.ID, Tier: doc.Tier}),
	}})
	return permit, err
}

// Close ends every space of this daemon and keeps their files.
func (lv *Living) Close() error {
	lv.mu.Lock()
	all := make([]*running, 0, len(lv.all))
	for _, l := range lv.all {
		all = append(all, l)
	}
	lv.mu.Unlock()
	var errs []error
	for _, l := range all {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

func (l *running) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.halt()
}

// halt is close for a caller that holds the lock.
func (l *running) halt() error {
	if l.instance == nil {
		return nil
	}
	err := l.instance.Close()
	l.instance = nil
	return err
}

// Occupy implements space.Keeping.
func (lv *Living) Occupy(ctx context.Context, ws id.Workspace, s id.Space, runs bool) (doc space.Space, leave func(), err error) {
	leave, err = lv.await(ctx, s)
	if err != nil {
		return doc, nil, err
	}
	doc, err = lv.Space(ctx, ws, s)
	if err == nil && runs {
		err = lv.disturb(doc)
	}
	if err != nil {
		leave()
		return doc, nil, err
	}
	return doc, leave, nil
}

// Beside implements space.Keeping.
func (lv *Living) Beside(ctx context.Context, ws id.Workspace, s id.Space) (doc space.Space, leave func(), err error) {
	l := lv.of(s)
	select {
	case l.whole <- struct{}{}: // so that it does not begin while the files are rewound or moved
		l.beside.Add(1)
		<-l.whole
	case <-ctx.Done():
		return doc, nil, ctx.Err()
	}
	var history space.History
	if doc, err = lv.alive(ctx, ws, s); err == nil {
		history, err = lv.store.History(doc.ID, doc.UID, doc.Limits)
	}
	if err != nil {
		l.beside.Add(-1)
		return doc, nil, err
	}
	return doc, func() {
		history.Distrust()
		l.beside.Add(-1)
	}, nil
}

// alone is Seize for what needs the files as a whole: also no code may run beside the operations until the caller calls leave.
func (lv *Living) alone(s id.Space) (leave func(), err error) {
	free, err := lv.Seize(s)
	if err != nil {
		return nil, err
	}
	l := lv.of(s)
	l.whole <- struct{}{} // others hold it for a moment only; a long holder has the files
	leave = func() {
		<-l.whole
		free()
	}
	if l.beside.Load() > 0 {
		leave()
		return nil, ErrBackground
	}
	return leave, nil
}

// disturb says that code is going to run among the files of a space, which may change any of them.
func (lv *Living) disturb(doc space.Space) error {
	if err := inUse(doc); err != nil {
		return err
	}
	history, err := lv.store.History(doc.ID, doc.UID, doc.Limits)
	if err == nil {
		history.Disturb()
	}
	return err
}

// await takes the files of a space and waits for its turn.
func (lv *Living) await(ctx context.Context, s id.Space) (leave func(), err error) {
	l := lv.of(s)
	select {
	case l.busy <- struct{}{}:
		return func() { <-l.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Seize implements space.Keeping.
func (lv *Living) Seize(s id.Space) (leave func(), err error) {
	l := lv.of(s)
	select {
	case l.busy <- struct{}{}:
		return func() { <-l.busy }, nil
	default:
		return nil, ErrBusy
	}
}

// Keep implements space.Keeping.
func (lv *Living) Keep(ctx context.Context, doc space.Space) (space.Snapshot, error) {
	if err := inUse(doc); err != nil {
		return space.Snapshot{}, err
	}
	history, err := lv.store.History(doc.ID, doc.UID, doc.Limits)
	if err != nil {
		return space.Snapshot{}, err
	}
	if lv.of(doc.ID).beside.Load() > 0 {
		history.Distrust()
	}
	return history.Keep(ctx)
}

// Load returns the present load of a space's processes; ok is false for a space that does not run on this daemon at the moment.
func (lv *Living) Load(s id.Space) (load space.Load, ok bool) {
	lv.mu.Lock()
	l := lv.all[s]
	lv.mu.Unlock()
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

// Present implements space.Presence.
func (lv *Living) Present(s id.Space) (space.Instance, bool) {
	lv.mu.Lock()
	l := lv.all[s]
	lv.mu.Unlock()
	if l == nil {
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.instance, l.alive()
}

// drop ends the connections to the ports of a paused space.
func (lv *Living) drop(s id.Space) {
	if lv.doors != nil {
		lv.doors.Paused(s)
	}
}

// shut closes the ports of a space that ends.
func (lv *Living) shut(ctx context.Context, s id.Space) {
	if lv.doors != nil {
		lv.doors.Ended(ctx, s)
	}
}

// forget drops the data of a destroyed space.
func (lv *Living) forget(s id.Space) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	delete(lv.all, s)
}
