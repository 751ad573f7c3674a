package spaces

import (
	"context"
	"errors"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Pauses stops the processes of spaces for a while, and lets them go on. Both need the right to change the space.
type Pauses struct {
	catalog *Catalog
	living  *Living
	acts    policy.Client
	clock   event.Clock
}

// Pause says how a space is paused.
type Pause struct {
	Reason      string // for a person; at most MaxReason characters
	ResumeOnRun bool   // a run that is sent to the space resumes it; else it waits

	atEnd bool // the time of the space is over, and it is paused instead of destroyed
}

// The life of a space that is paused at the end of its time, and its life after the resumption if the request does not say another one.
const (
	afterEnd    = MaxTTL
	afterResume = 5 * time.Minute
)

// Pause stops every process of a space: it uses no processor time, the time limits of its commands stop, and no operation begins in it. Its
// files can be read and written from outside, and the end of its life does not move.
func (p *Pauses) Pause(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, how Pause) (space.Space, error) {
	doc, err := p.pause(ctx, origin, ws, s, how)
	if err != nil {
		return doc, err
	}
	return p.catalog.Space(ctx, ws, s)
}

func (p *Pauses) pause(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, how Pause) (space.Space, error) {
	if len([]rune(how.Reason)) > MaxReason {
		return space.Space{}, fault.New(fault.Invalid, "validation_failed", "the reason has more than %d characters", MaxReason)
	}
	l := p.living.of(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	doc, err := p.catalog.alive(ctx, ws, s)
	if err != nil {
		return doc, err
	}
	if doc.Status == space.Creating {
		return doc, ErrBusy
	}
	record := p.acts.Append // the work that the space was made for needs no permission
	if !how.atEnd {
		ruling, err := p.acts.Allow(ctx, origin, actionOn(policy.SpaceUpdate, origin, doc))
		if err != nil {
			return doc, err
		}
		record = func(ctx context.Context, b event.Batch) (event.Receipt, error) {
			_, receipt, err := p.acts.Gate.Begin(ctx, ruling, "", b)
			return receipt, err
		}
	}
	if doc.Pause != nil {
		return doc, space.ErrAlreadyPaused
	}
	method, err := l.freeze()
	if err != nil {
		return doc, errors.Join(err, l.thaw())
	}
	p.living.drop(s)
	defer p.living.drop(s) // and those that were opened before the pause was known
	told := space.PausedData{Space: s, Method: method, Reason: how.Reason, ResumeOnRun: how.ResumeOnRun, AtEnd: how.atEnd}
	if how.atEnd {
		told.ExpiresAt = p.clock.Now().UTC().Add(afterEnd)
	}
	_, err = record(context.WithoutCancel(ctx), origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{
		draftOf(space.EventPaused, origin, doc, told),
	}}))
	if err != nil {
		return doc, errors.Join(err, l.thaw())
	}
	return doc, nil
}

// atEnd pauses a space whose time is over.
func (p *Pauses) atEnd(ctx context.Context, origin event.Origin, doc space.Space) error {
	_, err := p.pause(ctx, origin, doc.Workspace, doc.ID, Pause{ResumeOnRun: true, atEnd: true})
	if errors.Is(err, space.ErrAlreadyPaused) {
		return nil
	}
	return err
}

// Resume lets a paused space go on. Its processes may be gone, because the daemon or the space ended meanwhile; then it goes on with its
// files alone, and the event says so. It lives for ttl from now; 0 leaves the end of its life, but of a space that was paused at that end:
// it lives for five minutes.
func (p *Pauses) Resume(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, ttl time.Duration) (space.Space, error) {
	if err := p.resume(ctx, origin, ws, s, space.ResumeRequested, ttl); err != nil {
		return space.Space{}, err
	}
	return p.catalog.Space(ctx, ws, s)
}

func (p *Pauses) resume(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, cause string,
	ttl time.Duration) error {
	if ttl != 0 {
		if err := checkTTL(ttl); err != nil {
			return err
		}
	}
	l := p.living.of(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	doc, err := p.catalog.alive(ctx, ws, s)
	if err != nil {
		return err
	}
	record := p.acts.Append // for a run: who paused the space has permitted it
	if cause == space.ResumeRequested {
		ruling, err := p.acts.Allow(ctx, origin, actionOn(policy.SpaceUpdate, origin, doc))
		if err != nil {
			return err
		}
		record = func(ctx context.Context, b event.Batch) (event.Receipt, error) {
			_, receipt, err := p.acts.Gate.Begin(ctx, ruling, "", b)
			return receipt, err
		}
	}
	if doc.Pause == nil {
		return errors.Join(space.ErrNotPaused, l.thaw()) // what an earlier resumption could not let go on
	}
	told := space.ResumedData{Space: s, Cause: cause, Ended: doc.Pause.Method != space.PausedNothing && !l.alive()}
	if ttl == 0 && doc.Pause.AtEnd {
		ttl = afterResume
	}
	if ttl != 0 {
		told.ExpiresAt = p.clock.Now().UTC().Add(ttl)
	}
	_, err = record(ctx, origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{draftOf(space.EventResumed, origin, doc, told)}}))
	if err != nil {
		return err
	}
	return l.thaw()
}

// ForRun resumes a space to which a run is sent, if its pause permits that. The caller has asked the gate about the run.
func (p *Pauses) ForRun(ctx context.Context, origin event.Origin, doc space.Space) error {
	if doc.Pause == nil || !doc.Pause.ResumeOnRun {
		return nil
	}
	origin.Key = "" // it is that of the run
	err := p.resume(ctx, origin, doc.Workspace, doc.ID, space.ResumeRun, 0)
	if errors.Is(err, space.ErrNotPaused) {
		return nil // somebody else was first
	}
	return err
}

// freeze stops the processes of the space, if it has any, and returns how. The caller holds the lock.
func (l *running) freeze() (method string, err error) {
	if !l.alive() {
		return space.PausedNothing, nil
	}
	instance, ok := l.instance.(space.Pausing)
	if !ok {
		return space.PausedNothing, nil
	}
	if method, err = instance.Pause(); err != nil && !l.alive() {
		return space.PausedNothing, nil
	}
	return method, err
}

// thaw lets the processes of the space go on, if it has any. The caller holds the lock.
func (l *running) thaw() error {
	if instance, ok := l.instance.(space.Pausing); ok && l.alive() {
		if err := instance.Resume(); err != nil && l.alive() {
			return err
		}
	}
	return nil
}

// alive reports whether the space runs. The caller holds the lock.
func (l *running) alive() bool {
	if l.instance == nil {
		return false
	}
	select {
	case <-l.instance.Done():
		return false
	default:
		return true
	}
}
