package telemetry

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/projection"
)

// Tracer sends the traces of a daemon to a collector. A nil Tracer sends nothing.
//
// The spans of a run come from the events of the log, when they are recorded. A span begins with one event and ends with another, and its
// number follows from its subject. So nothing is lost if a run waits for days and the daemon is restarted.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider
	docs     projection.Reader
	request  func(context.Context) string
	last     atomic.Uint64 // number of the last span without a named subject

	mu       sync.Mutex
	runs     map[id.Run]*traced
	early    map[id.Run]func(*traced) // decisions for runs that are about to be made
	permits  map[event.Digest]place   // places of actions that are about to begin in spaces
	waking   map[id.Space]place       // place of the command for which a space is started
	starting map[id.Space][]phase     // phases of the spaces that are being started
}

// maxEarly is for how many future runs decisions are kept. Beyond that number all of them are dropped.
const maxEarly = 1_024

// traced is a run that has not ended.
type traced struct {
	parent  trace.SpanContext // the request that made it; not valid for a run that belongs to no trace
	began   time.Time
	agent   id.Principal
	space   id.Space
	steps   map[id.Step]time.Time // when the gate was first asked about them
	permits []event.Digest
}

// place is a position in a trace.
type place struct {
	run    id.Run
	step   id.Step
	parent trace.SpanContext
}

// OpenTracer makes a tracer that sends spans to the OTLP/HTTP collector at an address, as in http://127.0.0.1:4318; "" leaves the
// address, as everything else, to the standard variables OTEL_*. Docs has the runs and the approvals of the log; request returns the
// traceparent of the request that a context serves, "" where it serves none. Close sends the waiting spans.
func OpenTracer(ctx context.Context, address, version string, docs projection.Reader, request func(context.Context) string) (*Tracer,
	error) {
	var options []otlptracehttp.Option
	if address != "" {
		options = append(options, otlptracehttp.WithEndpointURL(strings.TrimSuffix(address, "/")+"/v1/traces"))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "agentbox"), attribute.String("service.version",
		version)), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	t := &Tracer{
		docs: docs, request: request, runs: map[id.Run]*traced{}, early: map[id.Run]func(*traced){}, permits: map[event.Digest]place{},
		waking: map[id.Space]place{}, starting: map[id.Space][]phase{},
	}
	t.provider = sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about), sdk.WithIDGenerator(numbers{}))
	t.tracer = t.provider.Tracer("agentbox", trace.WithInstrumentationVersion(version))
	return t, nil
}

// closing is how long the daemon may take at its end to send the waiting spans.
const closing = 3 * time.Second

// Close sends the waiting spans, for the time closing at most.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// numbers gives each span the number that its context names.
type numbers struct{}

// own is the context key under which a span's own number travels to the generator of numbers.
type own struct{}

// NewIDs implements the SDK's IDGenerator.
func (numbers) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	c, _ := ctx.Value(own{}).(trace.SpanContext)
	return c.TraceID(), c.SpanID()
}

// NewSpanID implements the SDK's IDGenerator.
func (n numbers) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, span := n.NewIDs(ctx)
	return span
}

// span is one span as it is exported at its end. Until then only its number is kept.
type span struct {
	name       string
	kind       trace.SpanKind
	parent     trace.SpanContext // not valid for the first of its trace
	self       trace.SpanContext
	began      time.Time
	ended      time.Time
	failed     string // error code; "" if nothing failed
	attributes []attribute.KeyValue
}

// tell hands a span to the SDK, which does not block: it drops spans that do not fit into its queue.
func (t *Tracer) tell(s span) {
	ctx := context.WithValue(context.Background(), own{}, s.self)
	if s.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.parent)
	}
	if s.failed != "" {
		s.attributes = append(s.attributes, attribute.String("error.type", s.failed))
	}
	_, told := t.tracer.Start(ctx, s.name, trace.WithTimestamp(s.began), trace.WithSpanKind(s.kind), trace.WithAttributes(s.attributes...))
	if s.failed != "" {
		told.SetStatus(codes.Error, "")
	}
	told.End(trace.WithTimestamp(s.ended))
}

// below is the context of a span of that number in the trace of its parent.
func below(parent trace.SpanContext, number string) trace.SpanContext {
	raw, err := trace.SpanIDFromHex(number)
	if err != nil {
		return trace.SpanContext{}
	}
	return parent.WithSpanID(raw)
}

// fresh is the context of a span without a named subject: an event that happened once, at a moment.
func (t *Tracer) fresh(parent trace.SpanContext, at time.Time) trace.SpanContext {
	return below(parent, run.SpanID(parent.SpanID().String()+"\n"+strconv.FormatInt(at.UnixNano(), 36)+"\n"+strconv.FormatUint(t.last.Add(1),
		36)))
}

// parse reads a traceparent of the version that is written here.
func parse(traceparent string) trace.SpanContext {
	parts := strings.Split(traceparent, "-")
	if len(parts) != 4 {
		return trace.SpanContext{}
	}
	number, errA := trace.TraceIDFromHex(parts[1])
	at, errB := trace.SpanIDFromHex(parts[2])
	flags, errC := hex.DecodeString(parts[3])
	if errA != nil || errB != nil || errC != nil || len(flags) != 1 {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: number, SpanID: at, TraceFlags: trace.TraceFlags(flags[0]), Remote: true})
}

// Sampled reports whether a trace that begins here is exported, as OTEL_TRACES_SAMPLER says.
func (t *Tracer) Sampled(traceID, spanID string) bool {
	if t == nil {
		return false
	}
	self := parse("00-" + traceID + "-" + spanID + "-00")
	_, asked := t.tracer.Start(context.WithValue(context.Background(), own{}, self), "sample") // it never ends, so it is never exported
	return asked.SpanContext().IsSampled()
}

// Served is a request that was answered, with the fields of its span.
type Served struct {
	Traceparent string // of the request itself
	Parent      string // number of the caller's span; "" for a request that begins its trace
	Request
	Began, Ended time.Time
	ID           string // of the request
	Principal    id.Principal
}

// Served exports the span of a request.
func (t *Tracer) Served(s Served) {
	self := parse(s.Traceparent)
	if t == nil || !self.IsSampled() {
		return
	}
	method, route, ok := strings.Cut(s.Route, " ")
	name := s.Route
	if !ok {
		method, name = "_OTHER", "HTTP"
	}
	told := span{name: name, kind: trace.SpanKindServer, self: self, began: s.Began, ended: s.Ended, attributes: []attribute.KeyValue{
		attribute.String("http.request.method", method), attribute.Int("http.response.status_code", s.Status),
		attribute.String("agentbox.request.id", s.ID),
	}}
	if route != "" {
		told.attributes = append(told.attributes, attribute.String("http.route", route))
	}
	if s.Principal != "" {
		told.attributes = append(told.attributes, attribute.String("agentbox.principal.id", string(s.Principal)))
	}
	if s.Parent != "" {
		told.parent = below(self, s.Parent)
	}
	if s.Status >= 500 {
		told.failed = strconv.Itoa(s.Status)
	}
	t.tell(told)
}
