package runapi

import (
	"context"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/engines"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

type runListed struct {
	run.Run
	engines.Waits
}

// listed returns a page of runs, with what each of them waits for.
func listed(after id.Run, limit int, list func(after id.Run, limit int) ([]run.Run, error),
	waits func(run.Run) (engines.Waits, error)) (page []runListed, next string, err error) {
	found, err := list(after, limit+1)
	if err != nil {
		return nil, "", err
	}
	found, next = access.Cut(found, limit, func(r run.Run) string { return string(r.ID) })
	page = make([]runListed, len(found))
	for n, r := range found {
		page[n].Run = r
		if page[n].Waits, err = waits(r); err != nil {
			return nil, "", err
		}
	}
	return page, next, nil
}

// mostLookedAt bounds the runs at which one request for those that wait looks.
const mostLookedAt = 1000

// waiting returns the runs of a list that wait for a person. A page ends also after the runs that one request looks at; then the list goes
// on behind them.
func waiting(after id.Run, limit int, list func(after id.Run, limit int) ([]run.Run, error),
	waits func(run.Run) (engines.Waits, error)) (page []runListed, next string, err error) {
	const atOnce = 100
	page = []runListed{}
	for looked := 0; ; {
		some, err := list(after, atOnce)
		if err != nil {
			return nil, "", err
		}
		for _, r := range some {
			if looked == mostLookedAt || len(page) == limit {
				return page, string(after), nil
			}
			w, err := waits(r)
			if err != nil {
				return nil, "", err
			}
			if w.For != "" {
				page = append(page, runListed{r, w})
			}
			looked, after = looked+1, r.ID
		}
		if len(some) < atOnce {
			return page, "", nil
		}
	}
}

// waits returns what a run waits for, without the approvals that labels keep from the caller. That it waits is its own state, which those
// see who see the run.
func (s *Runs) waits(ctx context.Context, c wire.Call, of run.Run) (engines.Waits, error) {
	w, err := s.engines.Look.Waits(ctx, of)
	if err != nil || len(w.Approvals) == 0 {
		return w, err
	}
	w.Approvals, err = access.Visible(ctx, s.Access, c, w.Approvals, func(a id.Approval) label.Resource {
		return label.Resource{Type: label.OfApproval, ID: string(a)}
	})
	return w, err
}
