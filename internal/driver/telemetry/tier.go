package telemetry

import (
	"context"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/livestream"
)

// Tier is a tier whose spaces and their commands are counted.
type Tier struct {
	space.Tier
	clock   event.Clock
	metrics *Metrics
	tracer  *Tracer
}

var (
	_ space.Tier         = (*Tier)(nil)
	_ space.CellTier     = (*Tier)(nil)
	_ space.ContextEnder = (*instance)(nil)
)

// WrapTier counts the work of a tier. It tells the tracer of it, unless the tracer is nil.
func WrapTier(t space.Tier, clock event.Clock, m *Metrics, to *Tracer) *Tier {
	return &Tier{t, clock, m, to}
}

// Create implements space.Tier.
func (t *Tier) Create(ctx context.Context, p policy.Permit, spec space.Spec) (space.Instance, error) {
	began := t.clock.Now()
	started := t.tracer.start(ctx, spec.ID, t.Name(), began)
	made, err := t.Tier.Create(ctx, p, spec)
	ended := t.clock.Now()
	started(ended, err)
	if err != nil {
		t.metrics.starts.WithLabelValues(t.Name(), "failed").Inc()
		return nil, err
	}
	t.metrics.starts.WithLabelValues(t.Name(), "started").Inc()
	t.metrics.Started(t.Name(), "total", ended.Sub(began))
	counted := &instance{made, t}
	stops, pauses := made.(space.Pausing)
	opens, reaches := made.(space.Reachable)
	leads, asks := made.(space.Asking)
	switch {
	case pauses && reaches && asks:
		return &reachable{&pausing{counted, stops}, opens, leads}, nil
	case pauses:
		return &pausing{counted, stops}, nil
	}
	return counted, nil
}

// pausing is a living space whose processes can stand still.
type pausing struct {
	*instance
	space.Pausing
}

// reachable is a living space whose processes can stand still, serve on ports and reach the daemon.
type reachable struct {
	*pausing
	space.Reachable
	space.Asking
}

// RunsCells implements space.CellTier.
func (t *Tier) RunsCells() bool { return space.RunsCells(t.Tier) }

// Started counts a phase of the start of a space.
func (m *Metrics) Started(tier, phase string, took time.Duration) {
	m.starting.WithLabelValues(tier, phase).Observe(took.Seconds())
}

// instance is a living space whose commands are counted.
type instance struct {
	space.Instance
	tier *Tier
}

// Exec implements space.Instance.
func (i *instance) Exec(ctx context.Context, p policy.Permit, stdin []byte, out space.Output) (space.Exit, error) {
	began, permit := i.tier.clock.Now(), p.Digest()
	exit, err := i.Instance.Exec(ctx, p, stdin, out)
	i.counted(ctx, permit, began, exit, err)
	return exit, err
}

// EndContext implements space.ContextEnder.
func (i *instance) EndContext(name, language string) { space.EndContext(i.Instance, name, language) }

// counted counts a command that has ended.
func (i *instance) counted(ctx context.Context, permit event.Digest, began time.Time, exit space.Exit, err error) {
	m := i.tier.metrics
	m.commands.WithLabelValues(i.tier.Name(), exitClass(exit, err)).Inc()
	ended := i.tier.clock.Now()
	m.commanding.Observe(ended.Sub(began).Seconds())
	if at, ok := i.tier.tracer.redeem(ctx, permit); ok {
		i.tier.tracer.commanded(at, i.tier.Name(), began, ended, exit, err)
	}
}

// Start implements space.Instance.
func (i *instance) Start(ctx context.Context, p policy.Permit, size space.TerminalSize) (space.Process, error) {
	made := &process{instance: i, ctx: ctx, began: i.tier.clock.Now(), permit: p.Digest()}
	var err error
	if made.Process, err = i.Instance.Start(ctx, p, size); err != nil {
		i.tier.metrics.commands.WithLabelValues(i.tier.Name(), exitClass(space.Exit{}, err)).Inc()
		return nil, err
	}
	return made, nil
}

// process is a command in the background that is counted when it has ended.
type process struct {
	space.Process
	instance *instance
	ctx      context.Context
	began    time.Time
	permit   event.Digest
}

// Wait implements space.Process.
func (p *process) Wait(out space.Output) (space.Exit, error) {
	exit, err := p.Process.Wait(out)
	p.instance.counted(p.ctx, p.permit, p.began, exit, err)
	return exit, err
}

// Output is a store of live output of which what commands wrote is counted.
type Output struct {
	livestream.Store
	metrics *Metrics
}

var _ livestream.Store = (*Output)(nil)

// WrapOutput counts the output of commands as it comes.
func WrapOutput(s livestream.Store, m *Metrics) *Output { return &Output{s, m} }

// Append implements livestream.Store.
func (o *Output) Append(ctx context.Context, r id.Run, f livestream.Frame) (uint64, error) {
	if f.Kind == livestream.Stdout || f.Kind == livestream.Stderr {
		o.metrics.output.WithLabelValues(f.Kind).Add(float64(len(f.Data)))
	}
	return o.Store.Append(ctx, r, f)
}

// exitClass is how a command ended, in one of few words.
func exitClass(x space.Exit, err error) string {
	switch {
	case err != nil:
		return "not_run"
	case x.TimedOut:
		return "timeout"
	case x.Canceled:
		return "canceled"
	case x.Limit != "":
		return "limit"
	case x.Signal != "":
		return "signal"
	case x.Code != 0:
		return "nonzero"
	}
	return "zero"
}
