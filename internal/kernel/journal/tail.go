package journal

import (
	"context"
	"iter"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Tail returns the events that the query selects, first those that are recorded, then those that come, each exactly once and in order. It
// ends when the place Before is reached, or with an error: that of ctx, or ErrClosed. Limit is how many are read at a time.
func Tail(ctx context.Context, j Journal, q Query) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := tail(ctx, j, q, yield); err != nil {
			yield(event.Event{}, err)
		}
	}
}

func tail(ctx context.Context, j Journal, q Query, yield func(event.Event, error) bool) error {
	q, err := q.Check()
	if err != nil {
		return err
	}
	if q.Last {
		return fault.New(fault.Invalid, "query_invalid", "a tail begins at a place; it cannot begin with the last events")
	}
	q.From, q.Follows = max(q.From, 1), true
	byStream := q.Stream != event.Stream{}
	for q.Before == 0 || q.From < q.Before {
		// Ask for the head first: an event that is recorded while we read lies beyond it, and Wait returns at once.
		head, err := j.Head(ctx, q.Workspace)
		if err != nil {
			return err
		}
		events, err := j.Read(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range events {
			if !yield(e, nil) {
				return nil
			}
			if byStream {
				q.From = e.StreamSeq + 1
			} else {
				q.From = e.Seq + 1
			}
		}
		if len(events) == q.Limit {
			continue
		}
		if !byStream {
			// The query was answered up to head, whether something there was selected or not.
			q.From = max(q.From, head+1)
			head = q.From - 1
		}
		if q.Before != 0 && q.From >= q.Before {
			return nil
		}
		if err := j.Wait(ctx, q.Workspace, head); err != nil {
			return err
		}
	}
	return nil
}
