//go:build linux

// Package namespace makes spaces of Linux namespaces, Landlock, seccomp and control groups, without any other program than its own init.
package namespace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

// Name is the tier's word.
const Name = "namespace"

// Options are the settings and dependencies of a tier.
type Options struct {
	Program []byte      // the init's program
	Root    string      // folder of the spaces' root file system, or HostRoot
	Owner   string      // tells this daemon's spaces from those of others on the host: a short name of its data directory, a-z and 0-9
	Clock   event.Clock // for the durations of commands

	// Sharing tries whether forks can share files here; it is one of the checks of Probe, and may be nil.
	Sharing func() error

	// Phase is called with each phase of a space's start, when it has ended: prepare, launch and set_up. Each begins when the one before it
	// ended. The goroutine that starts the space calls it. It may be nil.
	Phase func(s id.Space, name string, ended time.Time, took time.Duration)
}

// Tier makes spaces. Close it last: the spaces end with it.
type Tier struct {
	root       *root
	offer      func() space.Offer
	links      []spaceinit.Link
	filter     []byte
	program    *os.File
	null       *os.File // the standard streams of the launcher, and so of each init
	owner      string
	clock      event.Clock
	phase      func(s id.Space, name string, ended time.Time, took time.Duration)
	sharing    func() error
	groups     *hierarchy
	privileged bool // the daemon is root, so each space has a user id of its own
	starter    *starter

	mu      sync.Mutex
	living  map[id.Space]*instance
	reaping map[id.Space]bool // those whose leftovers Reap removes
	closed  bool
}

var (
	_ space.Tier     = (*Tier)(nil)
	_ space.CellTier = (*Tier)(nil)
)

// New prepares the tier. Its error names the missing part of the host and the way to get it.
func New(o Options) (*Tier, error) {
	if len(o.Program) == 0 || o.Clock == nil || strings.Trim(o.Owner, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || o.Owner == "" {
		return nil, fault.New(fault.Internal, "tier_options", "the namespace tier needs a program, a clock and an owner of a-z and 0-9")
	}
	root, err := openRoot(o.Root)
	if err != nil {
		return nil, err
	}
	groups, err := findHierarchy("/")
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "proc_missing", "the namespace tier needs a readable /proc")
	}
	groups.delegate(os.Getpid())
	program, err := seal(o.Program)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "memfd_refused", "this host does not let the daemon keep its init in memory")
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	privileged := os.Geteuid() == 0
	s := &starter{program: program, null: null, owner: o.Owner, apart: privileged, homes: groups.homes(), answer: answerTime}
	s.open()
	return &Tier{
		phase: o.Phase, sharing: o.Sharing, null: null, root: root, offer: sync.OnceValue(root.offer), links: etcLinks(), filter: filterProgram(),
		program: program, owner: o.Owner, clock: o.Clock, groups: groups,
		privileged: privileged, starter: s, living: map[id.Space]*instance{}, reaping: map[id.Space]bool{},
	}, nil
}

// aboveInherited is larger than every descriptor number of an init.
const aboveInherited = 100

// seal puts a program into memory that nobody can change any more, so that no space can change the program of the next one.
func seal(program []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("agentbox-init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // MFD_EXEC is newer than the rest
		fd, err = unix.MemfdCreate("agentbox-init", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	// The number must not be among those that the init inherits, which are arranged before it is executed.
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, aboveInherited)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(high), "agentbox-init")
	if _, err := f.Write(program); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Name returns the tier's word.
func (t *Tier) Name() string { return Name }

// Lacks names the features that only nano has: contexts that a script may use. A command that is nothing but a cell runs here too. Else a
// space of namespaces has what an ordinary system has.
func (t *Tier) Lacks() []string { return lacks() }

func lacks() []string { return []string{space.Contexts} }

// RunsCells implements space.CellTier.
func (t *Tier) RunsCells() bool { return t.Offer().Program("python3") }

// Offer lists the programs of the root file system of the spaces. It reads them once.
func (t *Tier) Offer() space.Offer { return t.offer() }

// Create starts a space for a space.create permit.
func (t *Tier) Create(ctx context.Context, p policy.Permit, spec space.Spec) (space.Instance, error) {
	action, err := p.Redeem(policy.SpaceStart)
	if err != nil {
		return nil, err
	}
	if err := t.check(action, &spec); err != nil {
		return nil, err
	}
	made, err := t.create(ctx, spec)
	if err != nil {
		return nil, err // a nil *instance would be an Instance that is there
	}
	return made, nil
}

// create starts a space.
func (t *Tier) create(ctx context.Context, spec space.Spec) (*instance, error) {
	s := &instance{tier: t, spec: spec, done: make(chan struct{})}
	if err := t.register(s); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		t.forget(s)
		return nil, err
	}
	return s, nil
}

// check compares the specification with the permit and with what can be had, and fills in the daemon's own user where that is meant.
func (t *Tier) check(action policy.Action, spec *space.Spec) error {
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
	switch {
	case t.privileged && spec.UID == 0:
		return fault.New(fault.Invalid, "uid_required", "a daemon that runs as root gives each space a host user of its own; none was named")
	case !t.privileged && spec.UID == 0:
		spec.UID = os.Geteuid()
	case !t.privileged && spec.UID != os.Geteuid():
		return fault.New(fault.Invalid, "uid_unavailable", "only a daemon that runs as root can give a space another host user than its own")
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
	if t.reaping[s.spec.ID] {
		return fault.New(fault.Conflict, "space_running", "what an earlier daemon left of the space %s is being removed; try again", s.spec.ID)
	}
	t.living[s.spec.ID] = s
	return nil
}

func (t *Tier) forget(s *instance) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.living, s.spec.ID)
}

// Close ends every space of the tier and releases its resources.
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
	return errors.Join(all, t.starter.stop(), t.program.Close(), t.null.Close())
}
