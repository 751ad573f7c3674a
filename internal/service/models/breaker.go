package models

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// The circuit breaker of a model. After breakAfter failures in a row, the breaker is open for breakFirst. Then one request tries the model.
// Each further failure doubles the time, up to breakMost. An empty account opens the breaker at once.
const (
	breakAfter = 5
	breakFirst = 30 * time.Second
	breakMost  = 5 * time.Minute
)

// breakers are the circuit breakers of models, in memory only. The zero value is ready.
type breakers struct {
	mu sync.Mutex // guards of
	of map[named]*breaker
}

// named is an entry of a workspace, as it is now: a changed entry begins with a closed breaker.
type named struct {
	ws   id.Workspace
	name string
	hash event.Digest
}

type breaker struct {
	failures int
	opened   int           // how often since the last answer
	until    time.Time     // the breaker is open until then
	trying   bool          // one request is trying the model
	last     string        // why it failed the last time
	closed   chan struct{} // is closed with the breaker
}

// circuit is a breaker that does not let a request through.
type circuit struct {
	reason string
	until  time.Time
	trying bool            // another request tries the model now; until is a guess
	closed <-chan struct{} // is closed when the model has answered another request
}

// admit returns nil if the request may use the model; then the caller must report its outcome. Otherwise it returns the open circuit.
func (b *breakers) admit(of named, now time.Time) *circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of[of]
	switch {
	case one == nil || one.opened == 0:
		return nil
	case now.Before(one.until):
		return &circuit{reason: fmt.Sprintf("the model %s is left alone until %s (failures in a row: %d; the last one: %s)", of.name,
			one.until.UTC().Format(time.RFC3339), one.failures, one.last), until: one.until,
			closed: one.closed}
	case one.trying:
		return &circuit{reason: fmt.Sprintf("the model %s failed before (%s), and another request tries now whether it works again", of.name,
			one.last), until: now.Add(probeFirst), trying: true, closed: one.closed}
	}
	one.trying = true
	return nil
}

// report notes the outcome of an admitted request. A nil failure is an answer. counts is false for an outcome that shows nothing about the
// model, such as a request that its caller ended.
func (b *breakers) report(of named, now time.Time, f *model.Failure, counts bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of[of]
	if one == nil {
		if f == nil || !counts {
			return
		}
		one = &breaker{closed: make(chan struct{})}
		if b.of == nil {
			b.of = map[named]*breaker{}
		}
		b.of[of] = one
	}
	was := one.trying
	one.trying = false
	switch {
	case !counts:
	case f == nil, !f.Class.Again() && f.Class != model.Money: // the model works and refuses the request
		delete(b.of, of)
		close(one.closed)
	default:
		one.failures++
		one.last = causeOf(f)
		if was || one.failures >= breakAfter || f.Class == model.Money {
			one.until = now.Add(min(breakFirst<<min(one.opened, 4), breakMost))
			one.opened++
		}
	}
}

// causeOf returns why a request failed, for people of other rooms: without the words of the endpoint, which may repeat the request.
func causeOf(f *model.Failure) string {
	said, _, _ := strings.Cut(f.Message, `: "`)
	if f.Status != 0 {
		said += fmt.Sprintf(" (HTTP %d)", f.Status)
	}
	return said
}
