package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"agentbox/internal/domain/fault"
)

// heartbeat is how often an event stream without news says that it lives.
const heartbeat = 15 * time.Second

// recheck is how often an event stream asks whether the key that opened it still opens anything.
const recheck = 10 * time.Second

// recheckToken is recheck for a stream under a capability token, whose revocation reaches what was derived from it within a second.
const recheckToken = time.Second

// Message is one event of an event stream.
type Message struct {
	ID   uint64 // the cursor: what a client sends as Last-Event-ID
	Name string // of the event; "" for the default
	Data []byte
	Last bool // the stream is complete with it
}

// Feed sends an event stream until the source ends, the client goes or is too slow, or the server stops. It reads the source no further
// than the client takes it. Every message has a cursor, so a client that was cut off continues where it was, and slows nobody down
// meanwhile. A stream ends within recheck after its key was revoked, or within recheckToken after its capability token was.
func (s *Server) Feed(w http.ResponseWriter, r *http.Request, c Call, source func(ctx context.Context) iter.Seq2[Message, error]) error {
	release, err := s.limiter.open(string(c.Caller.Principal))
	if err != nil {
		return err
	}
	defer release()
	cause := "client_gone"
	ended := s.Observer.Stream()
	defer func() { ended(cause) }()

	ctx, cancel := context.WithCancel(r.Context())
	next := make(chan Message)
	failed := make(chan error, 1)
	go func() {
		defer close(next)
		for m, err := range source(ctx) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case next <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range next { // until the reader has ended
		}
	}()

	// Nothing is answered before the source has said something or has had a moment to fail, so that a refusal is still a problem document.
	pipe := &eventPipe{w: w, control: http.NewResponseController(w)}
	every := recheck
	if c.Caller.Token != "" {
		every = recheckToken
	}
	look, enough := s.Clock.NewTimer(every)
	defer func() { enough() }()
	for {
		beat, stop := s.Clock.NewTimer(pipe.patience())
		var err error
		select {
		case m, ok := <-next:
			if !ok {
				stop()
				if r.Context().Err() != nil {
					return nil // it is the client that went, and the source saw it first
				}
				cause = "broken"
				return s.broken(c, pipe, failed)
			}
			if err = pipe.send(m); err == nil && m.Last {
				stop()
				cause = "complete"
				return nil
			}
		case <-beat:
			err = pipe.comment()
		case <-look:
			look, enough = s.Clock.NewTimer(every)
			if _, err = s.authenticate(r); err == nil {
				err = s.bound(r, c) // the giver of its token may be quarantined since
			}
			if err != nil {
				cause = "key_revoked"
			}
		case <-r.Context().Done():
			err = r.Context().Err()
		case <-s.done:
			cause, err = "daemon_stopped", http.ErrServerClosed
		}
		stop()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				cause = "too_slow"
			}
			return nil // the client went, was too slow, lost its key, or is to come back: it has its cursor
		}
	}
}

// broken ends a stream whose source has ended before the stream was complete: with a problem where nothing was sent yet, else by cutting
// the connection, which no client takes for an end.
func (s *Server) broken(c Call, pipe *eventPipe, failed <-chan error) error {
	select {
	case err := <-failed:
		if !pipe.open {
			return err
		}
		s.Log.Error("event stream broke", slog.String("code", "stream_broken"), slog.String("request_id", string(c.Request)),
			slog.String("trace_id", c.Trace.ID), slog.String("cause", err.Error()))
		panic(http.ErrAbortHandler)
	default:
		if !pipe.open {
			pipe.w.WriteHeader(http.StatusNoContent) // which tells a browser not to come back
		}
		return nil
	}
}

// eventPipe writes the format of event streams.
type eventPipe struct {
	w       http.ResponseWriter
	control *http.ResponseController
	open    bool
	buf     bytes.Buffer
}

// patience is how long to wait for the source before saying something: at first only a moment, so that the headers go out.
func (p *eventPipe) patience() time.Duration {
	if p.open {
		return heartbeat
	}
	return 20 * time.Millisecond
}

func (p *eventPipe) send(m Message) error {
	p.buf.Reset()
	p.buf.WriteString("id: " + strconv.FormatUint(m.ID, 10) + "\n")
	if m.Name != "" {
		p.buf.WriteString("event: " + m.Name + "\n")
	}
	for line := range bytes.Lines(m.Data) {
		p.buf.WriteString("data: ")
		p.buf.Write(bytes.TrimRight(line, "\r\n"))
		p.buf.WriteByte('\n')
	}
	p.buf.WriteByte('\n')
	return p.flush()
}

func (p *eventPipe) comment() error {
	p.buf.Reset()
	p.buf.WriteString(": still here\n\n")
	return p.flush()
}

func (p *eventPipe) flush() error {
	if !p.open {
		p.open = true
		h := p.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
		p.w.WriteHeader(http.StatusOK)
	}
	if _, err := p.w.Write(p.buf.Bytes()); err != nil {
		return err
	}
	return p.control.Flush()
}

// Cursor is the first place that a stream is to send: after Last-Event-ID, which a client repeats by itself, else the parameter; ok is
// false where neither was sent.
func Cursor(r *http.Request, parameter string) (from uint64, ok bool, err error) {
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseUint(last, 10, 63)
		if err != nil {
			return 0, false, fault.New(fault.Invalid, "invalid_parameter", "Last-Event-ID %.32q is not a cursor of this stream", last)
		}
		return n + 1, true, nil
	}
	if sent := r.URL.Query().Get(parameter); sent != "" {
		n, err := strconv.ParseUint(sent, 10, 63)
		if err != nil {
			return 0, false, fault.New(fault.Invalid, "invalid_parameter", "%s %.32q is not a number", parameter, sent)
		}
		return max(n, 1), true, nil
	}
	return 0, false, nil
}

// After is the cursor behind which a stream is to go on: Last-Event-ID, which a client repeats by itself, else the parameter; nil where
// neither was sent.
func After(r *http.Request, parameter string) (*uint64, error) {
	for _, sent := range [...]struct{ name, value string }{
		{"Last-Event-ID", r.Header.Get("Last-Event-ID")}, {parameter, r.URL.Query().Get(parameter)},
	} {
		if sent.value == "" {
			continue
		}
		n, err := strconv.ParseUint(sent.value, 10, 63)
		if err != nil {
			return nil, fault.New(fault.Invalid, "invalid_parameter", "%s %.32q is not a cursor of this stream", sent.name, sent.value)
		}
		return &n, nil
	}
	return nil, nil
}

// Within refuses to begin a stream beyond the place that comes next on it, where nothing that happens in between would ever be sent: a
// client that was further is one of a log that is no more, for example of one that was restored from a backup.
func Within(from, next uint64) error {
	if from <= next {
		return nil
	}
	return fault.New(fault.Invalid, "invalid_cursor", "the stream has %d places, and what was asked for begins behind place %d", next-1,
		from-1).
		With(fmt.Sprintf("begin at 1 for all of it, or at %d for what comes from now on; whoever has seen more has seen what is no more, as "+
			"after the restore of an older backup", next))
}
