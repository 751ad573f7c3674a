package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// observe reads what the daemon shows when all is over, and ends the followers when they have got all of it.
func (l *load) observe(ctx context.Context) (*history, error) {
	h := &l.history
	h.Streams, h.Pages, h.Shown = map[string][]entry{}, map[string][]message{}, map[string]shown{}
	for _, room := range l.rooms {
		var err error
		if h.Streams[room], err = l.stream(ctx, room); err != nil {
			return nil, err
		}
		if err := l.chain(ctx, room, len(h.Streams[room])); err != nil {
			return nil, err
		}
		if err := l.pages(ctx, room); err != nil {
			return nil, err
		}
	}
	for i := range h.Runs {
		h.Runs[i].Ended = l.ends[h.Runs[i].Run]
		as, err := l.shown(ctx, h.Runs[i].Run)
		if err != nil {
			return nil, err
		}
		h.Shown[h.Runs[i].Run] = as
	}
	for start := time.Now(); ctx.Err() == nil && time.Since(start) < patience; time.Sleep(again) {
		if !slices.ContainsFunc(l.followers, func(f *follower) bool { return f.last() < uint64(len(h.Streams[f.Room])) }) {
			break
		}
	}
	l.deafen()
	for _, f := range l.followers {
		h.Followed = append(h.Followed, f.followed)
	}
	return h, ctx.Err()
}

// deafen ends the followers.
func (l *load) deafen() {
	if l.deaf != nil {
		l.deaf()
		l.following.Wait()
	}
}

// envelope is an event as the API tells it.
type envelope struct {
	ID      string `json:"event_id"`
	Type    string `json:"event_type"`
	Seq     uint64 `json:"stream_seq"`
	Thread  string `json:"thread_id"`
	Run     string `json:"run_id"`
	Step    string `json:"step_id"`
	Prev    string `json:"prev_event_hash"`
	Hash    string `json:"event_hash"`
	Chained struct {
		Prev string `json:"prev_event_hash"`
		Hash string `json:"event_hash"`
	} `json:"chain"`
	Data json.RawMessage `json:"data"`
}

// stream reads a room's stream from its first event on.
func (l *load) stream(ctx context.Context, room string) ([]entry, error) {
	var all []entry
	for from := uint64(1); ; {
		var page struct {
			Events []envelope `json:"events"`
		}
		path := "/v1/events?limit=200&stream_type=room&stream_id=" + room + "&from_seq=" + strconv.FormatUint(from, 10)
		if err := l.owner.get(ctx, path, &page); err != nil {
			return nil, fmt.Errorf("read the stream of room %s: %w", room, err)
		}
		if len(page.Events) == 0 {
			return all, nil
		}
		for _, e := range page.Events {
			var says struct {
				Message string `json:"message_id"`
				Content string `json:"content_md"`
				Run     string `json:"run_id"`
				Step    string `json:"step_id"`
				Fence   uint64 `json:"fence"`
			}
			if err := json.Unmarshal(e.Data, &says); err != nil {
				return nil, fmt.Errorf("event %s: %w", e.ID, err)
			}
			all = append(all, entry{
				Seq: e.Seq, ID: e.ID, Type: e.Type, Prev: or(e.Prev, e.Chained.Prev), Hash: or(e.Hash, e.Chained.Hash), Thread: e.Thread,
				Message: says.Message,
				Run:     or(e.Run, says.Run), Step: or(e.Step, says.Step), Fence: says.Fence, Content: says.Content, Bytes: len(e.Data),
			})
		}
		from = page.Events[len(page.Events)-1].Seq + 1
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// chain asks the daemon to verify the chain of a room, as far as it does at a time.
func (l *load) chain(ctx context.Context, room string, events int) error {
	var report struct {
		Checked  int             `json:"checked"`
		Valid    bool            `json:"valid"`
		Mismatch json.RawMessage `json:"first_mismatch"`
	}
	if err := l.owner.get(ctx, "/v1/audit/hash-chain/verify?limit=10000&stream_type=room&stream_id="+room, &report); err != nil {
		return fmt.Errorf("verify the chain of room %s: %w", room, err)
	}
	if !report.Valid || report.Checked != min(events, 10_000) {
		return fmt.Errorf("the chain of room %s: %d of %d events were checked, valid is %t, %s", room, report.Checked, events, report.Valid,
			report.Mismatch)
	}
	return nil
}

// pages reads every thread of a room, from its newest message back to its first.
func (l *load) pages(ctx context.Context, room string) error {
	for cursor := ""; ; {
		var threads struct {
			Threads []struct {
				Thread string `json:"thread_id"`
			} `json:"threads"`
			Next string `json:"next_cursor"`
		}
		if err := l.owner.get(ctx, "/v1/rooms/"+room+"/threads?limit=200&cursor="+cursor, &threads); err != nil {
			return fmt.Errorf("list the threads of room %s: %w", room, err)
		}
		for _, t := range threads.Threads {
			var all []message
			for before := ""; ; {
				var page struct {
					Messages []struct {
						Message string `json:"message_id"`
						Content string `json:"content_md"`
					} `json:"messages"`
				}
				if err := l.owner.get(ctx, "/v1/threads/"+t.Thread+"/messages?limit=200&before="+before, &page); err != nil {
					return fmt.Errorf("read thread %s: %w", t.Thread, err)
				}
				for _, m := range page.Messages {
					all, before = append(all, message(m)), m.Message
				}
				if len(page.Messages) < 200 {
					break
				}
			}
			slices.Reverse(all)
			l.history.Pages[t.Thread] = all
		}
		if cursor = threads.Next; cursor == "" {
			return nil
		}
	}
}

// shown reads a run and its steps.
func (l *load) shown(ctx context.Context, run string) (shown, error) {
	var got struct {
		Status string `json:"status"`
	}
	if err := l.owner.get(ctx, "/v1/runs/"+run, &got); err != nil {
		return shown{}, fmt.Errorf("read run %s: %w", run, err)
	}
	as := shown{Status: got.Status}
	for cursor := ""; ; {
		var page struct {
			Steps []struct {
				Step string `json:"step_id"`
			} `json:"steps"`
			Next string `json:"next_cursor"`
		}
		if err := l.owner.get(ctx, "/v1/runs/"+run+"/steps?limit=100&cursor="+cursor, &page); err != nil {
			return shown{}, fmt.Errorf("read the steps of run %s: %w", run, err)
		}
		for _, s := range page.Steps {
			as.Steps = append(as.Steps, s.Step)
		}
		if cursor = page.Next; cursor == "" {
			return as, nil
		}
	}
}
