// Package nano makes spaces in metered WebAssembly and a virtual shell: without root, processes of the space or programs of the host.
//
// A command runs in a worker process that has given up everything but its pipe to the daemon, over a file system in memory
// that loads what is touched; at its end the daemon makes the changes in the space's folder. The same command with the same files, seed
// and clock does the same, to the unit of gas.
package nano

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/worker"
)

// Name is the tier's word.
const Name = "nano"

// Options are the settings and dependencies of a tier.
type Options struct {
	Command []string  // the program that calls Worker, and its arguments before those of Worker
	Cache   string    // folder for compiled interpreters, which nobody but the daemon may write; made if needed
	Workers int       // how many executions run at once; at least 1
	Scratch string    // folder for the /tmp of living spaces, which nobody but the daemon reaches; made if needed
	Entropy io.Reader // for seeds that nobody has chosen; safe for concurrent use
	Clock   event.Clock
	Logger  *slog.Logger
}

// Tier makes spaces. Close it last: the spaces end with it.
type Tier struct {
	o     Options
	pool  *worker.Pool
	files func() []string // those of the cache that a worker needs; to name them takes reading the interpreters, once
	base  context.Context // ends with the tier
	end   context.CancelFunc

	warmed      atomic.Bool // workers were started, since there was a space or a probe
	preparing   sync.Once
	preparation sync.WaitGroup // and what looks after the cache
	compiles    *compilation
	offer       func() space.Offer
	prepared    chan struct{} // closed when the interpreters lie in the cache, or could not be put there

	mu     sync.Mutex // guards the fields below
	living map[id.Space]*instance
	closed bool
}

var _ space.Tier = (*Tier)(nil)

// New prepares the tier. Its workers start in the background with the first space.
func New(o Options) (*Tier, error) {
	if len(o.Command) == 0 || o.Workers < 1 || !filepath.IsAbs(o.Scratch) || !filepath.IsAbs(o.Cache) || o.Entropy == nil || o.Clock == nil ||
		o.Logger == nil {
		return nil, fault.New(fault.Internal, "tier_options", "the nano tier needs a command, workers, a folder, entropy, a clock and a logger")
	}
	if err := os.MkdirAll(o.Scratch, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "scratch_missing", "the folder for the temporary files of spaces cannot be made")
	}
	t := &Tier{o: o, living: map[id.Space]*instance{}, prepared: make(chan struct{}), compiles: newCompilation(), offer: sync.OnceValue(Offer)}
	t.files = sync.OnceValue(func() []string { return keptFiles(o.Cache) })
	t.pool = t.workers(serves, o.Workers)
	t.base, t.end = context.WithCancel(context.Background())
	return t, nil
}

// workers returns a pool whose workers do what a word says.
func (t *Tier) workers(word string, count int) *worker.Pool {
	return worker.NewPool(worker.Options{Command: slices.Concat(t.o.Command, []string{word, t.o.Cache}), Workers: count,
		Prepare: worker.Prepare, Logger: t.o.Logger})
}

// warm starts a worker, and prepares the interpreters, if that was not done before.
func (t *Tier) warm() {
	t.warmed.Store(true)
	t.pool.Warm()
	t.prepare()
}

// Name returns the tier's word.
func (t *Tier) Name() string { return Name }

// Lacks names what needs an operating system: a nano space has none.
func (t *Tier) Lacks() []string { return lacks() }

// Offer lists the commands of the userland and the interpreters of this program.
func (t *Tier) Offer() space.Offer { return t.offer() }

// Create makes a space for a space.start permit. No process of it runs until it has a command.
func (t *Tier) Create(ctx context.Context, p policy.Permit, spec space.Spec) (space.Instance, error) {
	action, err := p.Redeem(policy.SpaceStart)
	if err != nil {
		return nil, err
	}
	if err := check(action, spec); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(spec.Dir); err != nil || !info.IsDir() {
		return nil, fault.Wrap(errors.Join(err, os.ErrNotExist), fault.Unavailable, "space_not_started",
			"the space could not be started: its files are not there")
	}
	s := &instance{tier: t, spec: spec, tmp: filepath.Join(t.o.Scratch, string(spec.ID)), busy: make(chan struct{}, 1),
		done: make(chan struct{})}
	s.base, s.end = context.WithCancelCause(context.Background())
	t.warm()
	if err := t.register(s); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		t.forget(s)
		return nil, fault.Wrap(err, fault.Unavailable, "space_not_started", "the space could not be started")
	}
	return s, nil
}

// check compares the specification with the permit.
func check(action policy.Action, spec space.Spec) error {
	var permitted space.Limits
	d := json.NewDecoder(bytes.NewReader(action.Limits))
	d.DisallowUnknownFields()
	if err := d.Decode(&permitted); err != nil || permitted != spec.Limits || action.Space != spec.ID {
		return policy.ErrPermitMismatch
	}
	for _, bound := range permitted.Bounds() {
		if bound.Value <= 0 {
			return fault.New(fault.Invalid, "limit_invalid", "the limit %s is %d; every limit of a space is positive", bound.Name, bound.Value)
		}
	}
	return nil
}

// register makes room for a space; there is one instance of each.
func (t *Tier) register(s *instance) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fault.New(fault.Unavailable, "tier_closed", "the daemon is shutting down; no space can be started")
	}
	if t.living[s.spec.ID] != nil {
		return fault.New(fault.Conflict, "space_running", "the space %s is running already", s.spec.ID)
	}
	t.living[s.spec.ID] = s
	return nil
}

func (t *Tier) forget(s *instance) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.living, s.spec.ID)
}

// Reap removes the temporary files of spaces that an earlier daemon had and that are not in keep.
func (t *Tier) Reap(ctx context.Context, keep []id.Space) error {
	entries, err := os.ReadDir(t.o.Scratch)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "scratch_missing", "the folder for the temporary files of spaces cannot be read")
	}
	var all error
	for _, e := range entries {
		s, err := id.Parse[id.Space](e.Name())
		if err != nil || slices.Contains(keep, s) || t.lives(s) {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(all, ctx.Err())
		}
		all = errors.Join(all, os.RemoveAll(filepath.Join(t.o.Scratch, e.Name())))
	}
	return all
}

func (t *Tier) lives(s id.Space) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.living[s] != nil
}

// Close ends every space of the tier and its workers.
func (t *Tier) Close() error {
	t.mu.Lock()
	again := t.closed
	t.closed = true
	living := slices.Collect(maps.Values(t.living))
	t.mu.Unlock()
	if again {
		return nil
	}
	var all error
	for _, s := range living {
		all = errors.Join(all, s.Close())
	}
	t.end()
	t.preparation.Wait()
	return errors.Join(all, t.pool.Close())
}
