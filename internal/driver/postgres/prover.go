package postgres

import (
	"context"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// proof is the state of a workspace's log, or the error of reading it.
type proof struct {
	standing
	err error
}

// prove returns the state of a workspace's log at a moment after the call.
func (j *Journal) prove(ctx context.Context, ws id.Workspace) (standing, error) {
	if err := ctx.Err(); err != nil {
		return standing{}, err
	}
	if j.db.ctx.Err() != nil {
		return standing{}, journal.ErrClosed
	}
	if j.db.options.Alone {
		if now, known := j.shelf.knows(ws); known {
			return now, nil
		}
	}
	p, err := j.prover.ask(ctx, j.queue, ws, func(*proof) {}, func(p *proof) {
		p.err = j.db.reading(j.db.ctx, func(db querier) (err error) {
			p.standing, err = j.events.readStanding(j.db.ctx, db, ws, false)
			return err
		})
		if p.err == nil {
			j.shelf.learns(ws, p.standing)
		}
	})
	if err != nil {
		return standing{}, err
	}
	return p.standing, p.err
}
