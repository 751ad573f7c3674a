package wire

import (
	"bytes"
	"net/http"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Limits of the answers that are kept for repeated requests.
const (
	maxReplays     = 10_000
	maxReplayBytes = 256 << 10 // of one answer; a longer one is not kept
)

// ErrKeyConflict refuses an idempotency key that was used for something else.
var ErrKeyConflict = fault.New(fault.Conflict, "idempotency_conflict", "this idempotency key was used for something else; choose a new key")

var errKeyBusy = fault.New(fault.Conflict, "idempotency_in_progress", "a request with this idempotency key is under way; ask again when it has ended")

// replays keeps the answers of requests with an idempotency key, for operations whose service does not know repeats itself. A restart
// forgets them; what such an operation does can be done twice without harm, or is refused the second time by its nature.
type replays struct {
	mu    sync.Mutex
	kept  map[string]*kept
	order []string // of kept, the oldest first
}

// kept is an answer; without a status it is not there yet.
type kept struct {
	digest event.Digest
	status int
	header http.Header
	body   []byte
}

// begin returns the answer that a key has already, or takes the key for a request: then end must be called, with its answer or nil.
func (r *replays) begin(key string, digest event.Digest) (again *kept, end func(*kept), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.kept[key]; k != nil {
		switch {
		case k.digest != digest:
			return nil, nil, ErrKeyConflict
		case k.status == 0:
			return nil, nil, errKeyBusy
		}
		return k, nil, nil
	}
	if r.kept == nil {
		r.kept = map[string]*kept{}
	}
	r.kept[key] = &kept{digest: digest}
	return nil, func(k *kept) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if k == nil {
			delete(r.kept, key)
			return
		}
		k.digest = digest
		r.kept[key] = k
		if r.order = append(r.order, key); len(r.order) > maxReplays {
			delete(r.kept, r.order[0])
			r.order = r.order[1:]
		}
	}, nil
}

// replay serves a request with an idempotency key: from the answer that it had before, or by next, whose success is kept.
func (s *Server) replay(w *answer, r *http.Request, c *Call, next func(http.ResponseWriter)) error {
	digest := event.DigestOf(append([]byte(r.Method+" "+r.URL.EscapedPath()+"\n"), c.Body...))
	again, end, err := s.replays.begin(c.ServiceKey(), digest)
	if err != nil {
		return err
	}
	if again != nil {
		for name, values := range again.header {
			w.Header()[name] = values
		}
		w.Header().Set("Idempotency-Replayed", "true")
		w.WriteHeader(again.status)
		_, _ = w.Write(again.body) // the caller has gone
		return nil
	}
	tape := &tape{answer: w}
	var success *kept
	defer func() { end(success) }() // also when next panics: a refusal uses up no key
	next(tape)
	if w.status >= 200 && w.status < 300 && !tape.long {
		success = &kept{status: w.status, header: http.Header{}, body: tape.body.Bytes()}
		for _, name := range []string{"Content-Type", "Location"} {
			if v := w.Header().Values(name); v != nil {
				success.header[name] = v
			}
		}
	}
	return nil
}

// tape records what is answered.
type tape struct {
	*answer
	body bytes.Buffer
	long bool
}

// Write sends a piece of the body and keeps it.
func (t *tape) Write(p []byte) (int, error) {
	if t.long = t.long || t.body.Len()+len(p) > maxReplayBytes; !t.long {
		t.body.Write(p)
	}
	return t.answer.Write(p)
}
