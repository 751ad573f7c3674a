package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// world holds the spaces and files that daemons act upon, and outlives them. It counts the real effects, and holds it at that very
// moment against what the log says.
type world struct {
	s *simulation

	mu     sync.Mutex
	files  map[id.Space]map[string]string
	past   map[event.Digest]map[string]string // snapshots of them
	done   map[deed]int
	begun  map[deed]bool // an intent is recorded and no result yet
	ended  map[deed]string
	hidden map[deed]bool // begun when a daemon died
	used   map[id.Approval]int
	asked  map[deed]bool     // an approval was used for it
	thrown bool              // the kill switch, surely
	heavy  map[id.Space]bool // spaces that were promoted
	names  map[string]string // of runs and spaces, by the place in the log at which they were made
}

// deed is an operation of a run.
type deed struct {
	run       id.Run
	operation string
}

func newWorld(s *simulation) *world {
	return &world{
		s: s, files: map[id.Space]map[string]string{}, done: map[deed]int{}, begun: map[deed]bool{}, ended: map[deed]string{},
		hidden: map[deed]bool{}, used: map[id.Approval]int{}, asked: map[deed]bool{}, heavy: map[id.Space]bool{}, names: map[string]string{},
	}
}

// recorded takes note of what is in the log from now on.
func (w *world) recorded(receipt event.Receipt) {
	if receipt.Replayed {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	types := make([]string, len(receipt.Events))
	var last string
	for i, e := range receipt.Events {
		types[i] = e.Type
		switch e.Type {
		case run.EventCreated:
			w.names[string(e.Run)] = fmt.Sprint("run", e.Seq)
		case space.EventCreated:
			w.names[e.EntityID] = fmt.Sprint("space", e.Seq)
		case space.EventPromoted:
			w.s.count(func(h *History) { h.Promoted++ })
			if w.heavy[id.Space(e.EntityID)] {
				w.s.wrong("space %s is promoted twice", e.EntityID)
			}
			w.heavy[id.Space(e.EntityID)] = true
		case run.EventInvoked:
			if d, err := event.Decode[run.Invoked](e); err == nil {
				w.begun[deed{d.Run, d.Operation}] = true
				w.asked[deed{d.Run, d.Operation}] = d.Approval != ""
			}
		case run.EventSucceeded, run.EventErred, run.EventUnknown:
			if d, err := event.Decode[run.Ended](e); err == nil {
				w.result(deed{d.Run, d.Operation}, e.Type)
			}
		case policy.ApprovalUsedType:
			w.s.count(func(h *History) { h.Used++ })
			if w.used[id.Approval(e.EntityID)]++; w.used[id.Approval(e.EntityID)] > 1 {
				w.s.wrong("approval %s was used twice", e.EntityID)
			}
		}
	}
	if first := receipt.Events[0]; first.Run != "" {
		last = w.names[string(first.Run)]
	} else {
		last = w.names[first.EntityID]
	}
	w.s.note("%d %s %s", receipt.Events[len(types)-1].Seq, strings.Join(types, " "), last)
}

// about says what a batch is about, in words that are the same in every history of a seed.
func (w *world) about(b event.Batch) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var words []string
	for _, d := range b.Drafts {
		words = append(words, d.Type, w.names[string(d.Run)], w.names[d.EntityID])
	}
	if i := strings.LastIndexByte(b.Key, ':'); i >= 0 {
		words = append(words, b.Key[i:])
	}
	return strings.Join(words, " ")
}

// name names a run or a space by the place in the log at which it was made.
func (w *world) name(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[id]
}

// deed says what an action is, likewise.
func (w *world) deed(a policy.Action) string {
	return strings.Join([]string{a.Type, w.name(string(a.Space)), w.name(string(a.Run)), a.Operation, a.Path}, " ")
}

// result notes the result of an operation. The lock is held.
func (w *world) result(d deed, typ string) {
	if before, twice := w.ended[d]; twice {
		w.s.wrong("operation %s of %s has a second result %s after %s", d.operation, d.run, typ, before)
	}
	if typ == run.EventUnknown && !w.hidden[d] {
		w.s.wrong("operation %s of %s has the result unknown, and no daemon died over it", d.operation, d.run)
	}
	if typ != run.EventUnknown && w.hidden[d] {
		w.s.wrong("operation %s of %s has the result %s, and a daemon died over it", d.operation, d.run, typ)
	}
	if typ == run.EventUnknown {
		w.s.count(func(h *History) { h.Unknown++ })
	}
	w.ended[d] = typ
	delete(w.begun, d)
}

// died notes what was under way when a daemon died.
func (w *world) died() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for d := range w.begun {
		w.hidden[d] = true
	}
}

func (w *world) throw(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.thrown = on
}

// do counts an effect of an operation and holds it against the log. An effect that no run asked for, such as a start, is not counted.
func (w *world) do(a policy.Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.thrown {
		w.s.wrong("%s of %s is done, and the kill switch is thrown", a.Type, a.Run)
	}
	if a.Run == "" {
		return
	}
	d := deed{a.Run, a.Operation}
	w.s.note("done: %s %s", a.Operation, w.names[string(a.Run)])
	w.s.count(func(h *History) { h.Effects++ })
	if w.done[d]++; w.done[d] > 1 {
		w.s.wrong("operation %s of %s is done %d times", d.operation, d.run, w.done[d])
	}
	if !w.begun[d] && !w.hidden[d] {
		w.s.wrong("operation %s of %s is done without an intent", d.operation, d.run)
	}
	if strings.Contains(a.Command, asking) && !w.asked[d] {
		w.s.wrong("operation %s of %s is done, and nobody was asked", d.operation, d.run)
	}
	if strings.Contains(a.Command, denied) {
		w.s.wrong("operation %s of %s is done, and policy denies it", d.operation, d.run)
	}
}

// stays holds a tier in which something of a space is done against what the log says of it: from a heavier one nothing goes back.
func (w *world) stays(s id.Space, tier string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heavy[s] && tier == space.Nano {
		w.s.wrong("something of space %s is done in %s after it was promoted", s, tier)
	}
}

func (s *simulation) count(add func(*History)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.history)
}

// Texts of commands that make policy ask about them, or deny them.
const (
	asking = "rm -r"
	denied = "sudo"
	fails  = "exit 1"
)

// Texts of commands that need a heavier tier: compiling is known before they run, lacking is found while they run.
const (
	compiling = "# compiler"
	lacking   = "# lacking"
)

// place sees what a command needs.
func place(_ space.Offer, c space.Command, _ space.Read) []space.Need {
	if strings.Contains(c.Text, compiling) {
		return []space.Need{{Kind: space.LackCommand, Name: "compiler"}}
	}
	return nil
}

// host is the world as one daemon reaches it. Requests of a dead daemon have no effect.
type host struct {
	w      *world
	living context.Context
	tier   string // namespace, or nano, which lacks what commands say
}

var (
	_ space.Tier  = (*host)(nil)
	_ space.Store = (*hostFiles)(nil)
	_ space.Files = (*spaceFiles)(nil)
)

// Lacks implements space.Tier.
func (h *host) Lacks() []string {
	if h.tier == space.Nano {
		return []string{space.Binaries}
	}
	return nil
}

var errGone = fault.New(fault.Unavailable, "host_gone", "the daemon is dead")

// Offer implements space.Tier. It says nothing: the heavier tier has everything.
func (h *host) Offer() space.Offer { return space.Offer{Tier: h.tier} }

// Name implements space.Tier.
func (h *host) Name() string { return h.tier }

// Probe implements space.Tier.
func (h *host) Probe(context.Context) space.Report { return space.Report{Tier: h.tier, OK: true} }

// Try implements space.Tier.
func (h *host) Try(context.Context) error { return nil }

// Reap implements space.Tier. Nothing of a dead daemon is left in a simulation but files.
func (h *host) Reap(context.Context, []id.Space) error { return nil }

// Create implements space.Tier.
func (h *host) Create(ctx context.Context, p policy.Permit, spec space.Spec) (space.Instance, error) {
	a, err := p.Redeem(policy.SpaceStart)
	if err != nil {
		return nil, err
	}
	h.w.s.pause(h.w.deed(a), startTime)
	if h.w.s.happens(h.w.deed(a), 0.03) {
		h.w.s.note("a space does not start")
		return nil, fault.New(fault.Unavailable, "space_start_failed", "the space's init did not answer")
	}
	if err := h.gone(ctx); err != nil {
		return nil, err
	}
	h.w.stays(spec.ID, h.tier)
	i := &instance{h: h, space: spec.ID, tentative: spec.Tentative}
	i.life, i.end = context.WithCancel(h.living)
	return i, nil
}

func (h *host) gone(ctx context.Context) error {
	if h.living.Err() != nil {
		return errGone
	}
	return ctx.Err()
}

// instance is a living space.
type instance struct {
	h     *host
	space id.Space

	tentative bool
	life      context.Context
	end       context.CancelFunc
}

// Exec implements space.Instance. A command takes its time, has its effect at some moment of it, prints, and may be ended before or after.
func (i *instance) Exec(ctx context.Context, p policy.Permit, _ []byte, out space.Output) (space.Exit, error) {
	a, back, err := p.Try(policy.ShellExec)
	if err != nil {
		return space.Exit{}, err
	}
	return i.perform(ctx, a, back, out)
}

// perform does what a command does whose permit was redeemed.
func (i *instance) perform(ctx context.Context, a policy.Action, back func(), out space.Output) (space.Exit, error) {
	s := i.h.w.s
	what := i.h.w.deed(a)
	before, after, dies := s.moment(what, commandTime), s.moment(what, commandTime), s.happens(what, 0.03)
	if !i.passes(ctx, before) {
		return i.cut(ctx)
	}
	if i.h.tier == space.Nano && (strings.Contains(a.Command, lacking) || strings.Contains(a.Command, compiling)) {
		lacks := []space.Lack{{Kind: space.LackCommand, Name: a.Operation}}
		s.note("lacking: %s", what)
		if i.tentative {
			back()
			return space.Exit{}, &space.Lacking{Lacks: lacks}
		}
		return space.Exit{Code: 127, Duration: before, Lacks: lacks}, nil
	}
	i.h.w.stays(i.space, i.h.tier)
	i.h.w.do(a)
	if err := out("stdout", []byte(a.Operation+"\n")); err != nil {
		return space.Exit{}, err
	}
	if dies {
		s.note("a space dies")
		i.end()
	}
	if !i.passes(ctx, after) {
		return i.cut(ctx)
	}
	exit := space.Exit{Duration: before + after}
	if strings.Contains(a.Command, fails) {
		exit.Code = 1
	}
	return exit, nil
}

// Start implements space.Instance.
func (i *instance) Start(ctx context.Context, p policy.Permit, _ space.TerminalSize) (space.Process, error) {
	a, back, err := p.Try(policy.ShellExec)
	if err != nil {
		return nil, err
	}
	return &process{i, ctx, a, back}, nil
}

// process is a command in the background. It reads all of its input and ends by itself, whatever signals it gets.
type process struct {
	in     *instance
	ctx    context.Context
	action policy.Action
	back   func()
}

func (p *process) Wait(out space.Output) (space.Exit, error) {
	return p.in.perform(p.ctx, p.action, p.back, out)
}

func (p *process) Send(_ context.Context, _ []byte, before func() error) error {
	if before != nil {
		return before()
	}
	return nil
}

func (p *process) Signal(name string) error { return space.CheckSignal(name) }

func (p *process) Resize(size space.TerminalSize) error { return size.Check() }

// passes lets time pass; false where the command or the space ends before it is over.
func (i *instance) passes(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil && i.life.Err() == nil
	case <-ctx.Done():
		<-t.C // it takes a moment to die
		return false
	case <-i.life.Done():
		<-t.C
		return false
	}
}

func (i *instance) cut(ctx context.Context) (space.Exit, error) {
	if ctx.Err() != nil {
		return space.Exit{Code: 137, Signal: "killed", Canceled: true}, nil
	}
	return space.Exit{}, fault.New(fault.Unavailable, "space_ended", "the space ended while the command ran")
}

// Load implements space.Instance.
func (i *instance) Load() (space.Load, error) { return space.Load{}, nil }

// Usage implements space.Instance.
func (i *instance) Usage(context.Context) (space.Usage, error) { return space.Usage{}, nil }

// Unenforced implements space.Instance.
func (i *instance) Unenforced() []string { return nil }

// Done implements space.Instance.
func (i *instance) Done() <-chan struct{} { return i.life.Done() }

// Close implements space.Instance.
func (i *instance) Close() error {
	i.end()
	return nil
}

// hostFiles are the folders of spaces as one daemon reaches them.
type hostFiles struct{ h *host }

// Create implements space.Store.
func (f *hostFiles) Create(ctx context.Context, p policy.Permit, _ int, _ space.Limits, _ space.Seed) (space.Sown, error) {
	a, err := p.Redeem(policy.SpaceCreate)
	if err != nil {
		return space.Sown{}, err
	}
	f.h.w.s.pause(f.h.w.deed(a), fileTime)
	if err := f.h.gone(ctx); err != nil {
		return space.Sown{}, err
	}
	if f.h.w.s.happens(f.h.w.deed(a), 0.03) {
		return space.Sown{}, space.ErrDiskFull
	}
	f.h.w.mu.Lock()
	defer f.h.w.mu.Unlock()
	f.h.w.files[a.Space] = map[string]string{}
	return space.Sown{}, nil
}

// Aside implements space.Store: nothing is withheld here.
func (f *hostFiles) Aside(id.Space, int, space.Limits, policy.Withhold) (space.Files, error) {
	return nil, space.ErrWithheld
}

// Withholds implements space.Store.
func (f *hostFiles) Withholds(id.Space, int, space.Limits, string) bool { return false }

// KeepAside implements space.Store.
func (f *hostFiles) KeepAside(context.Context, id.Space, int, space.Limits, policy.Withhold, bool) (space.Swept, error) {
	return space.Swept{}, nil
}

// Share implements space.Store: no fork is made here.
func (f *hostFiles) Share(context.Context, id.Space, int, space.Limits, func() error) error {
	return nil
}

// Open implements space.Store.
func (f *hostFiles) Open(s id.Space, _ int, _ space.Limits) (space.Files, string, error) {
	f.h.w.mu.Lock()
	defer f.h.w.mu.Unlock()
	if f.h.w.files[s] == nil {
		return nil, "", fault.New(fault.NotFound, "space_files_missing", "the files of %s are not on this host", s)
	}
	return &spaceFiles{f.h, s}, "/" + string(s), nil
}

// Remove implements space.Store.
func (f *hostFiles) Remove(_ context.Context, s id.Space) error {
	if f.h.living.Err() != nil {
		return errGone
	}
	f.h.w.mu.Lock()
	defer f.h.w.mu.Unlock()
	delete(f.h.w.files, s)
	return nil
}

// List implements space.Store.
func (f *hostFiles) List(context.Context) ([]id.Space, error) {
	f.h.w.mu.Lock()
	defer f.h.w.mu.Unlock()
	return slices.Sorted(maps.Keys(f.h.w.files)), nil
}
