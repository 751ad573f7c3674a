package telemetry

import (
	"strconv"
	"strings"
	"time"
)

// Request is a request that was answered.
type Request struct {
	Route  string // the pattern of the operation, as in "GET /v1/runs/{run_id}"; "" for a request that met none
	Status int
	Took   time.Duration
}

// Begun counts a request that is being answered.
func (m *Metrics) Begun() { m.answering.Inc() }

// Answered counts a request that was answered. Its path and, where it met no operation, its method are the caller's own: neither is a
// label.
func (m *Metrics) Answered(r Request) {
	m.answering.Dec()
	method, route, ok := strings.Cut(r.Route, " ")
	if !ok {
		method, route = other, "none"
	}
	m.requests.WithLabelValues(route, method, status(r.Status)).Inc()
	m.answered.WithLabelValues(route, method).Observe(r.Took.Seconds())
}

// causes are why event streams end.
var causes = []string{"complete", "client_gone", "too_slow", "key_revoked", "daemon_stopped", "broken"}

// Stream counts an event stream that was opened, and returns what counts its end.
func (m *Metrics) Stream() (ended func(cause string)) {
	m.streams.Inc()
	return func(cause string) {
		m.streams.Dec()
		m.streamEnd.WithLabelValues(among(cause, causes)).Inc()
	}
}

// Signed says that everything which is recorded was found to be under a signed checkpoint.
func (m *Metrics) Signed(now time.Time) { m.signed.Set(seconds(now)) }

// Visited counts an attempt to bring the newest checkpoint to a witness, by its number in the configuration, from 1.
func (m *Metrics) Visited(witness int, now time.Time, err error) {
	name := strconv.Itoa(witness)
	if err != nil {
		m.visits.WithLabelValues(name, "failed").Inc()
		return
	}
	m.visits.WithLabelValues(name, "held").Inc()
	m.witnessed.WithLabelValues(name).Set(seconds(now))
}

// tiers are how spaces can be isolated.
var tiers = []string{"nano", "namespace", "gvisor", "microvm"}

// InSpace is how a space in a state is counted.
func InSpace(tier, state string) SpaceState {
	return SpaceState{among(tier, tiers), among(state, []string{"creating", "ready", "running", "paused"})}
}
