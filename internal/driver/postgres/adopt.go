package postgres

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
)

// Adopt implements journal.Adopter. It is one transaction. Appends to other workspaces go on meanwhile.
func (j *Journal) Adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error], keys iter.Seq2[[]journal.KeyUse,
	error]) (head uint64, err error) {
	if _, err := id.ParseWorkspace(string(ws)); err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "workspace_invalid", "that is not a workspace")
	}
	var s standing
	err = j.folds.alone(ctx, func(tx pgx.Tx) error {
		a := &adoption{l: &ledger{j: j, ws: ws, set: j.folds.set, db: tx.Conn(), ctx: ctx}}
		if err := a.begin(); err != nil {
			return err
		}
		if err := a.events(chunks); err != nil {
			return err
		}
		if keys != nil {
			if err := a.keys(keys); err != nil {
				return err
			}
		}
		s, head = a.l.standing, a.log.Head()
		return nil
	})
	if spoilt, ok := errors.AsType[*spoiltError](err); ok {
		err = spoilt.error
	}
	if codeOf(err) == "23505" {
		err = fault.Wrap(err, fault.Conflict, "event_exists", "the log holds one of these events already, in another workspace")
	}
	if err != nil {
		return 0, err
	}
	j.shelf.begins(ws, s)
	j.listener.heads.Advance(ws, s.head)
	return head, nil
}

// adoption imports one log.
type adoption struct {
	l   *ledger
	log journal.Continuity
}

// begin takes the row of the workspace, and finds out how documents are folded for as long as the transaction lasts.
func (a *adoption) begin() error {
	l := a.l
	if err := l.j.folds.enter(l.ctx, l.db); err != nil {
		return err
	}
	if err := l.look(l.ctx, l.db, true); err != nil {
		return err
	}
	if l.head > 0 {
		return journal.ErrOccupied
	}
	return nil
}

func (a *adoption) events(chunks iter.Seq2[[]event.Event, error]) error {
	for events, err := range chunks {
		if err := errors.Join(err, a.l.ctx.Err()); err != nil {
			return err
		}
		if err := a.log.Next(a.l.ws, events); err != nil {
			return err
		}
		if err := a.chunk(events); err != nil {
			return err
		}
	}
	return a.log.End()
}

func (a *adoption) chunk(events []event.Event) error {
	l := a.l
	if err := l.begin(l.ctx, nil, false); err != nil {
		return err
	}
	raw := make([][]byte, 0, len(events))
	for i := range events {
		if uuid, ok := journal.UUIDBytes(events[i].ID); ok {
			raw = append(raw, slices.Clone(uuid[:]))
		}
	}
	var held []byte
	err := l.db.QueryRow(l.ctx, `SELECT uuid_send(id) FROM events WHERE id = ANY($1) LIMIT 1`, uuids(raw)).Scan(&held)
	if err == nil {
		found, _ := journal.UUIDText(held)
		return fault.New(fault.Conflict, "event_exists", "the log holds an event %s already, in another workspace", found)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	batch := journal.Adopted(l.ws, events)
	if err := l.apply(batch, events); err != nil {
		return err
	}
	if err := l.fold(events); err != nil {
		return err
	}
	g := &group{batches: []recorded{{batch, events}}}
	if err := l.finish(g); err != nil {
		return err
	}
	b := &pgx.Batch{}
	if err := l.write(b, g); err != nil {
		return err
	}
	if err := l.db.SendBatch(l.ctx, b).Close(); err != nil {
		return err
	}
	l.settled()
	return nil
}

func (a *adoption) keys(keys iter.Seq2[[]journal.KeyUse, error]) error {
	for some, err := range keys {
		if err == nil {
			err = a.log.Keys(some)
		}
		if err := errors.Join(err, a.l.ctx.Err()); err != nil {
			return err
		}
		b := &pgx.Batch{}
		for _, k := range some {
			b.Queue(`INSERT INTO batches (workspace, key, digest, first, count) VALUES ($1, $2, $3, $4, $5)`, a.l.no, k.Key, k.Digest[:], k.First,
				k.Count)
		}
		if err := a.l.db.SendBatch(a.l.ctx, b).Close(); err != nil {
			return err
		}
	}
	return nil
}
