// Package telemetry counts the daemon's work for Prometheus and writes its traces for OpenTelemetry.
//
// It wraps the contracts that services use, so no service knows of it. Nothing in it decides anything, and nothing waits for a reader.
package telemetry

//go:generate go test -count=1 -run ^TestTheReferenceIsCurrent$ . -update

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"agentbox/internal/domain/run"
)

// Definition is a metric as the documentation shows it.
type Definition struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// Metrics are the daemon's counters. Make them with NewMetrics; every method may be called from any goroutine. No label takes its value
// from a caller: each has a short list of values, and every other value is `other`.
type Metrics struct {
	registry    *prometheus.Registry
	process     sync.Once // adds what tells of the process and of the Go runtime, when somebody asks: it looks at a hundred descriptions first
	definitions []Definition
	tallies     tallies

	requests  *prometheus.CounterVec
	answering prometheus.Gauge
	answered  *prometheus.HistogramVec
	streams   prometheus.Gauge
	streamEnd *prometheus.CounterVec

	decisions *prometheus.CounterVec
	deciding  prometheus.Histogram
	approvals *prometheus.CounterVec
	waited    *prometheus.HistogramVec

	appends    *prometheus.CounterVec
	appending  prometheus.Histogram
	events     prometheus.Counter
	grouped    prometheus.Histogram
	committing prometheus.Histogram

	signed    prometheus.Gauge
	witnessed *prometheus.GaugeVec
	visits    *prometheus.CounterVec

	starts     *prometheus.CounterVec
	starting   *prometheus.HistogramVec
	commands   *prometheus.CounterVec
	commanding prometheus.Histogram
	output     *prometheus.CounterVec

	runs       *prometheus.CounterVec
	operations *prometheus.CounterVec
}

// The bounds of histograms, in seconds: of work in memory, on the disk, over the network, in a space, and with people.
var (
	instants = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .1}
	commits  = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5}
	answers  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300}
	works    = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}
	patience = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}
	groups   = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)

// NewMetrics makes the counters of a daemon of a version.
func NewMetrics(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.requests = m.counters("agentbox_http_requests_total", "Requests that were answered.", "route", "method", "code")
	m.answering = m.gauge("agentbox_http_requests_in_flight", "Requests that are being answered, event streams among them.")
	m.answered = m.histograms("agentbox_http_request_duration_seconds",
		"Time to answer a request; an event stream lasts as long as it is open.", answers, "route", "method")
	m.streams = m.gauge("agentbox_http_event_streams", "Event streams that are open.")
	m.streamEnd = m.counters("agentbox_http_event_streams_ended_total", "Event streams that have ended, by the cause.", "cause")

	m.decisions = m.counters("agentbox_gate_decisions_total", "Decisions of the gate on actions.", "outcome", "reason", "preset")
	m.deciding = m.histogram("agentbox_gate_decision_duration_seconds", "Time that the gate took to decide on an action.", instants)
	m.approvals = m.counters("agentbox_approvals_total", "Questions to people, by what became of them.", "status")
	m.waited = m.histograms("agentbox_approval_wait_duration_seconds",
		"Time that questions waited for people, from when they were asked until they were settled for good, by what became of them.", patience,
		"status")

	m.appends = m.counters("agentbox_log_appends_total", "Batches that were handed to the log, by what became of them.", "outcome")
	m.appending = m.histogram("agentbox_log_append_duration_seconds", "Time until a batch was durable.", commits)
	m.events = m.counter("agentbox_log_events_total", "Events that were recorded.")
	m.grouped = m.histogram("agentbox_log_commit_batches", "Batches in one durable commit of the log.", groups)
	m.committing = m.histogram("agentbox_log_commit_duration_seconds", "Time of one durable commit of the log.", commits)

	m.signed = m.gauge("agentbox_checkpoint_last_success_timestamp_seconds",
		"When the last checkpoint was found to be signed for all that was recorded.")
	m.witnessed = m.gauges("agentbox_witness_last_success_timestamp_seconds",
		"When a witness last held the newest checkpoint, by its number in the configuration.", "witness")
	m.visits = m.counters("agentbox_witness_visits_total", "Checkpoints that were brought to a witness, by its number in the configuration.",
		"witness", "outcome")

	m.starts = m.counters("agentbox_space_starts_total", "Spaces whose processes were started.", "tier", "outcome")
	m.starting = m.histograms("agentbox_space_start_duration_seconds", "Time to start a space, by phase; total is all of it.", works, "tier",
		"phase")
	m.commands = m.counters("agentbox_space_commands_total", "Commands that were run in spaces, by how they ended.", "tier", "exit")
	m.commanding = m.histogram("agentbox_space_command_duration_seconds", "Time that commands ran.", works)
	m.output = m.counters("agentbox_space_output_bytes_total", "What commands wrote.", "channel")

	m.runs = m.counters("agentbox_runs_total", "Runs, by what became of them.", "status")
	m.operations = m.counters("agentbox_operations_total", "Operations that have their result.", "operation", "outcome")

	build := m.gauges("agentbox_build_info", "Is 1; the labels say what runs.", "version")
	build.WithLabelValues(version).Set(1)
	for n := range stateCount {
		m.define(states[n].Name, "gauge", states[n].Help, states[n].Labels)
	}
	return m
}

// Definitions are all metrics of the daemon itself, in the order of their names. Those of the Go runtime and of the process come besides.
func (m *Metrics) Definitions() []Definition {
	all := slices.Clone(m.definitions)
	slices.SortFunc(all, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Gatherer collects the present values.
func (m *Metrics) Gatherer() prometheus.Gatherer {
	m.process.Do(func() {
		m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	})
	return m.registry
}

// Handler answers with the present values in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	handler := sync.OnceValue(func() http.Handler {
		return promhttp.HandlerFor(m.Gatherer(), promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: 4})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler().ServeHTTP(w, r) })
}

func (m *Metrics) define(name, typ, help string, labels []string) {
	m.definitions = append(m.definitions, Definition{name, typ, labels, help})
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	m.define(name, "counter", help, labels)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	return m.counters(name, help).WithLabelValues()
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	m.define(name, "gauge", help, labels)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	return m.gauges(name, help).WithLabelValues()
}

func (m *Metrics) histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	m.define(name, "histogram", help, labels)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) histogram(name, help string, bounds []float64) prometheus.Histogram {
	return m.histograms(name, help, bounds).WithLabelValues().(prometheus.Histogram)
}

// among returns a label's value if it is one of those that it may have, else `other`.
func among(value string, known []string) string {
	if slices.Contains(known, value) {
		return value
	}
	return other
}

// operation is the value of a label for a type of operation.
func operation(typ string) string {
	if _, ok := run.SpecOf(typ); ok {
		return typ
	}
	return other
}

// other is the value of a label for everything that has no value of its own.
const other = "other"

// status is the value of a label for an HTTP status.
func status(code int) string {
	if code < 100 || code > 599 {
		return other
	}
	return strconv.Itoa(code)
}
