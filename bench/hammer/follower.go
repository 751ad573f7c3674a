package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// follower reads the event stream of a room from its first event on, and goes on where it was whenever it is cut off.
type follower struct {
	followed
	address string
	header  map[string]string

	mu   sync.Mutex // guards the fields below, and Got
	took []time.Duration
	cuts int // how often it was cut off
}

// follow reads until the context ends.
func (f *follower) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.read(ctx); err != nil && ctx.Err() == nil {
			f.mu.Lock()
			f.cuts++
			f.mu.Unlock()
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
		}
	}
}

// read opens the stream behind the last event and reads it until it breaks.
func (f *follower) read(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.address+"/v1/streams/rooms/"+f.Room+"?from_seq=1", nil)
	if err != nil {
		return err
	}
	for name, value := range f.header {
		r.Header.Set(name, value)
	}
	if last := f.last(); last > 0 {
		r.Header.Set("Last-Event-ID", strconv.FormatUint(last, 10))
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the stream of room %s answered %d", f.Room, answer.StatusCode)
	}
	in := bufio.NewReaderSize(answer.Body, 64<<10)
	for {
		raw, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if event, ok := bytes.CutPrefix(raw, []byte("data: ")); ok {
			if err := f.got(event, time.Now()); err != nil {
				return err
			}
		}
	}
}

// got notes an event. It decodes only four fields of the envelope, because every follower decodes every event.
func (f *follower) got(raw []byte, now time.Time) error {
	seq, err := strconv.ParseUint(field(raw, `"stream_seq":`), 10, 64)
	if err != nil {
		return fmt.Errorf("an event of room %s has no place: %.300s", f.Room, raw)
	}
	at, err := time.Parse(time.RFC3339Nano, field(raw, `"occurred_at":"`))
	if err != nil {
		return fmt.Errorf("an event of room %s has no time: %.300s", f.Room, raw)
	}
	f.mu.Lock()
	f.Got = append(f.Got, ref{seq, field(raw, `"event_id":"`)})
	f.took = append(f.took, now.Sub(at))
	f.mu.Unlock()
	return nil
}

// field is what stands behind a name in a JSON document, up to its end.
func field(raw []byte, name string) string {
	_, rest, ok := bytes.Cut(raw, []byte(name))
	if !ok {
		return ""
	}
	return string(rest[:max(0, bytes.IndexAny(rest, `",}`))])
}

func (f *follower) last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.Got) == 0 {
		return 0
	}
	return f.Got[len(f.Got)-1].Seq
}

// lately returns how long events took from being recorded until they came, since the last call.
func (f *follower) lately() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	took := f.took
	f.took = nil
	return took
}
