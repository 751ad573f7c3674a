package gate

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/projection"
)

// maxWindows is how many windows are kept before expired ones are dropped.
const maxWindows = 10_000

// quota counts effects per principal in windows of an hour. It counts in memory, because checking and counting must be one step. Each
// effect's intent also carries an event that counts it, so that a restarted daemon continues from the log. Without a limit, nothing is
// counted, read or recorded.
type quota struct {
	most     int
	docs     projection.Reader
	together bool // other daemons count too: the log counts alone, and each effect expects that it has not counted on

	mu      sync.Mutex
	windows map[id.Principal]window
}

type window struct {
	start time.Time // as the log has it
	begun time.Time // with the monotonic clock's reading: a changed wall clock makes no window longer or shorter
	used  int
}

func (w window) over(now time.Time) bool { return now.Sub(w.begun) >= time.Hour }

// full is the refusal if no effect is left.
func (q *quota) full() error {
	return fault.New(fault.Exhausted, policy.ReasonQuotaExceeded, "%d effects were caused within an hour, the most that are allowed",
		q.most).With("Wait, then go on.")
}

// left reports whether a principal may cause another effect.
func (q *quota) left(ctx context.Context, ws id.Workspace, p id.Principal, now time.Time) (bool, error) {
	if q.most <= 0 {
		return true, nil
	}
	if q.together {
		w, _, err := q.counted(ctx, ws, p, now)
		return w.used < q.most, err
	}
	if err := q.load(ctx, ws, p, now); err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.windows[p]
	return w.used < q.most || w.over(now), nil
}

// add counts one effect and adds its event to a batch. Checking and counting are one step, so that two concurrent effects cannot both be
// the last.
func (q *quota) add(ctx context.Context, batch *event.Batch, a policy.Action, now time.Time) (bool, error) {
	if q.most <= 0 {
		return true, nil
	}
	if q.together {
		w, version, err := q.counted(ctx, a.Workspace, a.Principal, now)
		if err != nil || w.used >= q.most {
			return false, err
		}
		batch.Documents = append(batch.Documents, event.DocumentVersion{Projection: policy.QuotaProjection, Key: string(a.Principal),
			Version: version})
		count(batch, a, w)
		return true, nil
	}
	if err := q.load(ctx, a.Workspace, a.Principal, now); err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.windows[a.Principal]
	if w.over(now) {
		w = window{start: now.UTC().Round(0), begun: now}
	}
	if w.used >= q.most {
		return false, nil
	}
	w.used++
	q.windows[a.Principal] = w
	count(batch, a, w)
	return true, nil
}

// count adds the event of an effect to a batch.
func count(batch *event.Batch, a policy.Action, w window) {
	counted := policy.EffectCounted{Principal: a.Principal, Window: w.start}
	draft := event.New(policy.EffectCountedType, event.Origin{Principal: a.Principal, Token: a.Token, Correlation: batch.Correlation()},
		a.Workspace, a.Room, counted)
	batch.Drafts = append(batch.Drafts, draft.In(a.Run, a.Step).About(policy.QuotaEntity, string(a.Principal)))
}

// counted returns the present window as the log has counted it, and the version of its document.
func (q *quota) counted(ctx context.Context, ws id.Workspace, p id.Principal, now time.Time) (window, uint64, error) {
	doc, version, err := projection.Load[policy.Quota](ctx, q.docs, ws, policy.QuotaProjection, string(p))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return window{}, 0, err
	}
	w := window{doc.Window, doc.Window, doc.Used}
	if w.over(now) {
		w = window{start: now.UTC().Round(0), begun: now}
	}
	return w, version, nil
}

// remove uncounts an effect that was not recorded.
func (q *quota) remove(p id.Principal) {
	if q.most <= 0 || q.together {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w, ok := q.windows[p]; ok && w.used > 0 {
		w.used--
		q.windows[p] = w
	}
}

// load reads the count of the log for a principal whom the daemon sees for the first time.
func (q *quota) load(ctx context.Context, ws id.Workspace, p id.Principal, now time.Time) error {
	q.mu.Lock()
	_, met := q.windows[p]
	q.mu.Unlock()
	if met {
		return nil
	}
	doc, _, err := projection.Load[policy.Quota](ctx, q.docs, ws, policy.QuotaProjection, string(p))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.windows == nil {
		q.windows = map[id.Principal]window{}
	}
	if _, met := q.windows[p]; met {
		return nil // somebody else read it and has counted on
	}
	if len(q.windows) >= maxWindows {
		maps.DeleteFunc(q.windows, func(_ id.Principal, w window) bool { return w.over(now) })
	}
	begun := doc.Window
	if begun.After(now) { // the clock was set back since
		begun = now
	}
	q.windows[p] = window{doc.Window, begun, doc.Used}
	return nil
}
