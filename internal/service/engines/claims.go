package engines

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// The numbers of runs that a claim checks: the first number at first, and then four times as many each time.
const (
	firstCandidates = 4
	mostCandidates  = 256
)

// maxLull is the longest time without a check of claims that other daemons may have recorded. Those claims last from when this daemon first
// sees them.
const maxLull = 5 * time.Second

// Wanted says which runs an engine takes; the zero Wanted is any.
type Wanted struct {
	Room id.Room
	Work string // the kind of their input

	Shows func(id.Run) (bool, error) // whether the engine may see a run; nil where it may see all

	Fits func(context.Context, run.Run) (bool, error) // the engine can execute it; nil where it can execute every one
}

// index is that of the runs that are wanted, in a state.
func (w Wanted) index(state string) projection.Index {
	switch {
	case w.Room != "" && w.Work != "":
		return projection.Index{Name: "engine_room_work", Value: string(w.Room) + " " + w.Work + " " + state}
	case w.Room != "":
		return projection.Index{Name: "engine_room", Value: string(w.Room) + " " + state}
	case w.Work != "":
		return projection.Index{Name: "engine_work", Value: w.Work + " " + state}
	}
	return projection.Index{Name: "engine", Value: state}
}

// Claim gives the engine that asks a run of the workspace and the token by which it is known from then on: the oldest that waits, if the
// workspace has room for another one that runs, else the oldest whose claim has expired. No run is errand.ErrNothing.
func (d *Service) Claim(ctx context.Context, origin event.Origin, ws id.Workspace, want Wanted) (run.Run, string, error) {
	for doc, err := range d.offered(ctx, ws, want) {
		if err != nil {
			return run.Run{}, "", err
		}
		if doc, token, err := d.reach(ctx, origin, want, doc); !errors.Is(err, errTaken) {
			return doc, token, err
		}
	}
	return run.Run{}, "", errand.ErrNothing
}

// ClaimOne is Claim for a run that was made for a tool call of the caller's engine. errand.ErrNothing means that another engine has it.
func (d *Service) ClaimOne(ctx context.Context, origin event.Origin, ws id.Workspace, r id.Run) (run.Run, string, error) {
	doc, err := d.Find(ctx, ws, r)
	if err != nil {
		return doc, "", err
	}
	if doc.Parent == nil || !doc.Claimable(d.left(doc)) {
		return doc, "", errand.ErrNothing
	}
	doc, token, err := d.reach(ctx, origin, Wanted{}, doc)
	if errors.Is(err, errTaken) {
		err = errand.ErrNothing
	}
	return doc, token, err
}

// reach claims an offered run. It returns errTaken if the next run should be tried: the engine may not see this one, another one was first,
// or no more runs may start.
func (d *Service) reach(ctx context.Context, origin event.Origin, want Wanted, doc run.Run) (run.Run, string, error) {
	if want.Shows != nil {
		if may, err := want.Shows(doc.ID); err != nil || !may {
			return run.Run{}, "", either(err, errTaken)
		}
	}
	if err := d.mayClaim(ctx, origin, doc); err != nil {
		return run.Run{}, "", err
	}
	give, ok := d.hands.reach(doc.ID)
	if !ok {
		return run.Run{}, "", errTaken
	}
	defer give()
	doc, token, err := d.claimRun(ctx, origin, doc)
	if errors.Is(err, journal.ErrConflict) || errors.Is(err, run.ErrFull) {
		err = errTaken
	}
	return doc, token, err
}

// denialTime is how long the same denial of the same engine is not recorded again, because engines ask every second.
const denialTime = time.Hour

// mayClaim refuses an engine that may not claim runs, before a run is taken for it. It leaves the first denial within denialTime to the
// code that records it.
func (d *Service) mayClaim(ctx context.Context, origin event.Origin, doc run.Run) error {
	r, err := d.Gate.Judge(ctx, policy.Action{Type: policy.RunClaim, Workspace: doc.Workspace, Room: doc.Room, Principal: origin.Principal,
		Token: origin.Token})
	if said := r.Decision; err == nil && !said.Allowed() && said.Outcome == policy.Deny {
		of, now := string(doc.Workspace)+" "+string(origin.Principal)+" "+said.ReasonCode, d.passed()
		if d.denials.last(of, now) {
			return fault.New(fault.Denied, said.ReasonCode, "%s", said.Reason).With(said.Suggestion)
		}
		d.denials.until(of, now+denialTime)
	}
	return err
}

// offered yields the runs that can be claimed, in the order in which they are.
func (d *Service) offered(ctx context.Context, ws id.Workspace, want Wanted) iter.Seq2[run.Run, error] {
	return func(yield func(run.Run, error) bool) {
		d.eachOffered(ctx, ws, want, yield)
	}
}

func (d *Service) eachOffered(ctx context.Context, ws id.Workspace, want Wanted, yield func(run.Run, error) bool) {
	states := []string{run.ForEngine, run.WithEngine}
	_, err := d.slot(ctx, ws)
	if errors.Is(err, run.ErrFull) && d.releaseSilentRuns(ctx, ws) {
		_, err = d.slot(ctx, ws)
	}
	switch {
	case errors.Is(err, run.ErrFull):
		states = states[1:] // a claimed run has its place already
	case err != nil:
		yield(run.Run{}, err)
		return
	}
	for _, state := range states {
		q := projection.Query{Workspace: ws, Name: run.Projection, Index: want.index(state), Limit: firstCandidates}
		lull := string(ws) + " " + q.Index.Name + " " + q.Index.Value
		if state == run.WithEngine && d.lulls.last(lull, d.passed()) {
			continue
		}
		began, soonest := d.passed(), d.ClaimTime
		for {
			found, err := projection.List[run.Run](ctx, d.Docs, q)
			if err != nil {
				yield(run.Run{}, err)
				return
			}
			for _, doc := range found {
				left := d.left(doc)
				soonest = min(soonest, left)
				if q.After = string(doc.ID); !doc.Claimable(left) {
					continue
				}
				if want.Fits != nil {
					fits, err := want.Fits(ctx, doc)
					if err != nil {
						yield(run.Run{}, err)
						return
					}
					if !fits {
						continue
					}
				}
				if !yield(doc, nil) {
					return
				}
			}
			if len(found) < q.Limit {
				break
			}
			q.Limit = min(4*q.Limit, mostCandidates)
		}
		if state == run.WithEngine {
			if d.Together {
				soonest = min(soonest, maxLull)
			}
			d.lulls.until(lull, began+soonest)
		}
	}
}

// passed is how much time has passed since the service was made.
func (d *Service) passed() time.Duration { return d.Clock.Now().Sub(d.begun) }

// hands are the runs that callers are claiming here at this moment. A concurrent caller tries the next run, instead of losing this one.
type hands struct {
	mu  sync.Mutex // guards out
	out map[id.Run]bool
}

func (h *hands) reach(r id.Run) (give func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.out[r] {
		return nil, false
	}
	if h.out == nil {
		h.out = map[id.Run]bool{}
	}
	h.out[r] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.out, r)
	}, true
}

// count is how many claim a run just now.
func (h *hands) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.out)
}

// lulls hold the times until which no known claim can end. A claim that is made meanwhile lasts longer than that.
type lulls struct {
	mu  sync.Mutex // guards end
	end map[string]time.Duration
}

// mostLulls is how many lulls are remembered.
const mostLulls = 10_000

func (l *lulls) last(of string, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now < l.end[of]
}

func (l *lulls) until(of string, end time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil || len(l.end) >= mostLulls {
		l.end = map[string]time.Duration{}
	}
	l.end[of] = end
}

// Offers reports whether there is a run that an engine could claim.
func (d *Service) Offers(ctx context.Context, ws id.Workspace, want Wanted) (bool, error) {
	for doc, err := range d.offered(ctx, ws, want) {
		return err == nil && doc.ID != "", err
	}
	return false, nil
}

// errTaken says that a run cannot be claimed any more.
var errTaken = errors.New("another engine has claimed the run")

// claimRun claims one run.
func (d *Service) claimRun(ctx context.Context, origin event.Origin, seen run.Run) (run.Run, string, error) {
	for try := 1; ; try++ {
		doc, version, err := d.load(ctx, seen.Workspace, seen.ID)
		if err != nil {
			return doc, "", err
		}
		if !doc.Claimable(d.left(doc)) {
			return doc, "", errTaken
		}
		var place []event.DocumentVersion
		if doc.Status == run.Queued && doc.Parent == nil { // a run under a tool call uses the place of the call's run
			if place, err = d.slot(ctx, doc.Workspace); err != nil {
				return doc, "", err
			}
		}
		doc, token, err := d.claim(ctx, origin, doc, version, place)
		if errors.Is(err, journal.ErrConflict) && try < tries {
			continue
		}
		return doc, token, err
	}
}

// claim records a claim of a run as it stands.
func (d *Service) claim(ctx context.Context, origin event.Origin, doc run.Run, version uint64, place []event.DocumentVersion) (run.Run,
	string, error) {
	c := run.Claimed{
		Run: doc.ID, Attempt: id.New[id.Attempt](d.IDs), Engine: origin.Principal, Fence: doc.Fence + 1, TimeMS: d.ClaimTime.Milliseconds(),
	}
	token := d.Tokens.Token(doc.Workspace, doc.ID, c.Attempt, c.Fence)
	c.Token = run.HashToken(token)
	if doc.Claim != nil {
		c.Lapsed = doc.Claim.Attempt
	}
	e := entry{action: policy.Action{Type: policy.RunClaim, Fence: c.Fence}, drafts: []event.Draft{draft(run.EventClaimed, origin, doc, c)},
		expect: place}
	if doc.Status == run.Queued {
		e.drafts = append(e.drafts, draft(run.EventStarted, origin, doc, run.Started{Run: doc.ID, Child: doc.Parent != nil}))
	}
	receipt, err := d.append(ctx, origin, doc, version, e)
	if err != nil {
		return doc, "", err
	}
	if doc, err = after(doc, receipt); err == nil {
		d.saw(doc)
	}
	return doc, token, err
}

// Claimed returns the token of a run's claim as the claim's answer had it, for a repeated request.
func (d *Service) Claimed(doc run.Run) string {
	if doc.Claim == nil {
		return ""
	}
	token := d.Tokens.Token(doc.Workspace, doc.ID, doc.Claim.Attempt, doc.Claim.Fence)
	if !doc.Claim.Opens(token) {
		return "" // another installation's
	}
	return token
}

// Renew keeps a run for its engine for another ClaimTime.
func (d *Service) Renew(ctx context.Context, origin event.Origin, h Hold) (run.Run, error) {
	doc, receipt, err := d.record(ctx, origin, h, func(doc run.Run) (entry, error) {
		if err := owned(doc, h); err != nil {
			return entry{}, err
		}
		renewed := run.Renewed{Run: doc.ID, Attempt: doc.Claim.Attempt, Fence: doc.Claim.Fence, TimeMS: d.ClaimTime.Milliseconds()}
		return entry{action: policy.Action{Type: policy.RunRenew}, drafts: []event.Draft{draft(run.EventRenewed, origin, doc, renewed)}}, nil
	})
	if errors.Is(err, journal.ErrConflict) {
		err = run.ErrOutpaced
	}
	if err = ended(err); err != nil {
		return doc, err
	}
	if doc, err = after(doc, receipt); err == nil {
		d.saw(doc)
	}
	return doc, err
}

// Release gives a run back, so that the next engine claims it.
func (d *Service) Release(ctx context.Context, origin event.Origin, h Hold) (run.Run, error) {
	doc, receipt, err := d.record(ctx, origin, h, func(doc run.Run) (entry, error) {
		if err := owned(doc, h); err != nil {
			return entry{}, err
		}
		released := run.Released{Run: doc.ID, Attempt: doc.Claim.Attempt, Fence: doc.Claim.Fence, Reason: run.ReleasedByHand}
		return entry{action: policy.Action{Type: policy.RunRelease}, drafts: []event.Draft{draft(run.EventReleased, origin, doc, released)}}, nil
	})
	if err = ended(err); err != nil {
		return doc, err
	}
	if doc, err = after(doc, receipt); err == nil && !receipt.Replayed {
		d.bells.offer(doc)
		d.bells.hasRoom(doc.Workspace)
	}
	return doc, err
}

// owned refuses what only the owner of a claim can do, where there is none.
func owned(doc run.Run, h Hold) error {
	switch {
	case h.Token == "":
		return run.ErrNoToken
	case doc.Status != run.Running || doc.Claim == nil:
		return run.ErrNotRunning
	}
	return nil
}

// ended turns an error about an ended run into the error of the claim routes: the run is not running.
func ended(err error) error {
	if errors.Is(err, run.ErrEnded) {
		return run.ErrNotRunning
	}
	return err
}
