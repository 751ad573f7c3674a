package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is read each time somebody reads the metrics, because it is a state and not a count.
type State struct {
	Head    uint64             // events of all workspaces together
	Waiting int                // questions to people that are open
	Oldest  time.Time          // when the oldest of them was asked; zero for none
	Thrown  int                // workspaces whose kill switch is thrown
	Spaces  map[SpaceState]int // that are not destroyed
	Data    map[string]int64   // bytes of the parts of the data directory
}

// SpaceState is how spaces are counted.
type SpaceState struct{ Tier, Status string }

const (
	stateHead = iota
	stateWaiting
	stateOldest
	stateThrown
	stateSpaces
	stateData
	stateCount
)

// states are the metrics that a State gives.
var states = [stateCount]Definition{
	stateHead:    {Name: "agentbox_log_head_events", Help: "Events in the log, of all workspaces together."},
	stateWaiting: {Name: "agentbox_approvals_waiting", Help: "Questions to people that are open."},
	stateOldest: {Name: "agentbox_approvals_oldest_timestamp_seconds",
		Help: "When the oldest open question was asked; 0 where none is open."},
	stateThrown: {Name: "agentbox_kill_switches_thrown", Help: "Workspaces whose kill switch is thrown."},
	stateSpaces: {Name: "agentbox_spaces", Help: "Spaces that are not destroyed.", Labels: []string{"tier", "state"}},
	stateData: {Name: "agentbox_data_bytes", Help: "What the parts of the data directory hold; measured once a minute.",
		Labels: []string{"part"}},
}

// stateCollector asks for a State at each collection.
type stateCollector struct {
	look         func(ctx context.Context) (State, error)
	descriptions [stateCount]*prometheus.Desc
}

// Watch makes the metrics show the state that look returns. A look that fails leaves them out; the daemon's log has the reason.
func (m *Metrics) Watch(look func(ctx context.Context) (State, error)) {
	c := &stateCollector{look: look}
	for n, d := range states {
		c.descriptions[n] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	}
	m.registry.MustRegister(c)
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descriptions {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(to chan<- prometheus.Metric) {
	s, err := c.look(context.Background())
	if err != nil {
		return
	}
	tell := func(n int, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(c.descriptions[n], prometheus.GaugeValue, value, labels...)
	}
	tell(stateHead, float64(s.Head))
	tell(stateWaiting, float64(s.Waiting))
	tell(stateOldest, seconds(s.Oldest))
	tell(stateThrown, float64(s.Thrown))
	for in, n := range s.Spaces {
		tell(stateSpaces, float64(n), in.Tier, in.Status)
	}
	for part, n := range s.Data {
		tell(stateData, float64(n), part)
	}
}

// seconds is a moment as Prometheus writes it; 0 for the zero time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
