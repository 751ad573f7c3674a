package wire

import (
	"context"
	"net/http"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/principal"
)

// Repeat says how an operation of the method POST meets a request whose Idempotency-Key it has seen before. Each of them says it, so that
// none is forgotten.
type Repeat string

// The ways to answer a repeat.
const (
	// RepeatRecalled looks the key up in the log, where the events of the first request bear it, before the operation begins. The operation
	// finds Call.Repeated and answers without doing anything; it records what it does under Call.Once.
	RepeatRecalled Repeat = "recalled"
	// RepeatByService leaves it to the service, which gets the key with the request.
	RepeatByService Repeat = "by_service"
	// RepeatRefused refuses an idempotency key. It is for unauthenticated requests whose answers hold secrets, because nobody could tell whose
	// key it is. It is also for requests with a passphrase, because the log would keep a hash that somebody could guess.
	RepeatRefused Repeat = "refused"
	// RepeatHarmless is for what changes nothing: a repeat is answered anew.
	RepeatHarmless Repeat = "harmless"
)

// Recall returns the place in the caller's workspace of the last event that bears an idempotency key for a command of that digest, 0
// where the key is new. Another command under the key is a conflict.
type Recall func(ctx context.Context, caller principal.Caller, key string, command event.Digest) (uint64, error)

var errKeyBusy = fault.New(fault.Conflict, "idempotency_in_progress",
	"a request with this idempotency key is under way; ask again when it has ended")

var errNoKey = fault.New(fault.Invalid, "idempotency_key_not_possible",
	"this operation takes no Idempotency-Key; send the request without one")

// inHand are the idempotency keys of requests that are worked on now: a repeat that comes before the first has ended is refused, not
// queued.
type inHand struct {
	mu   sync.Mutex
	keys map[string]bool
}

// begin reserves a key until the caller calls end. It returns false if another request has it.
func (h *inHand) begin(key string) (end func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys[key] {
		return nil, false
	}
	if h.keys == nil {
		h.keys = map[string]bool{}
	}
	h.keys[key] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.keys, key)
	}, true
}

// repeated takes the key of a call for its duration, and finds out whether the log knows the request already.
func (s *Server) repeated(w http.ResponseWriter, r *http.Request, c *Call) (end func(), err error) {
	if c.route.repeat == RepeatRefused {
		return nil, errNoKey
	}
	end, ok := s.inHand.begin(c.once)
	if !ok {
		return nil, errKeyBusy
	}
	if c.route.repeat != RepeatRecalled {
		return end, nil
	}
	if c.Repeated, err = s.Known(r.Context(), *c); err != nil {
		end()
		return nil, err
	}
	if c.Repeated > 0 {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	return end, nil
}

// Once returns what recall finds where the call repeats an earlier one, and otherwise what do makes. Operations of RepeatRecalled use it
// where they have to read the input for both; HandleOnce is for the others.
func Once[D any](c Call, recall, do func() (D, error)) (D, error) {
	if c.Repeated > 0 {
		return recall()
	}
	return do()
}

// Known returns the place of the last event of the request, if it has an Idempotency-Key that the log knows, else 0. An operation asks
// itself that may begin while the log cannot be read.
func (s *Server) Known(ctx context.Context, c Call) (uint64, error) {
	if c.Key == "" {
		return 0, nil
	}
	return s.Recall(ctx, c.Caller, c.once, c.command)
}
