//go:build linux

package namespace

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

// initName is the name of an init in the host's list of processes.
const initName = "agentbox-init"

// The descriptors of an init and of a launcher, after their connection.
const (
	programFile = 4
	firstMount  = 5
)

// settled is how long an init may take to set its space up, of which it needs milliseconds. One that says nothing loses its space.
const settled = 20 * time.Second

// lastWords is how long is read what an init had said when it died. Nobody else has its end of the connection, unless it gave it away.
const lastWords = time.Second

var errSlow = errors.New("the init did not say within " + settled.String() + " that the space stands")

// instance is one living space.
type instance struct {
	tier       *Tier
	spec       space.Spec
	group      *group
	process    *os.Process
	client     *spaceinit.Client
	watch      *watcher
	freezer    *freezer
	ready      spaceinit.Ready
	unenforced []string
	done       chan struct{} // closed when nothing of the space is left but its files
	released   error         // set before done is closed

	mu       sync.Mutex
	contexts map[string]*interpreter // that have a process, by language and name
}

var (
	_ space.Instance     = (*instance)(nil)
	_ space.ContextEnder = (*instance)(nil)
)

// start starts the init and waits until the space stands. On an error nothing is left.
func (s *instance) start(ctx context.Context) error {
	phase := s.tier.phases(s.spec.ID)
	grouped := make(chan map[string]error, 1)
	go func() { // beside the layout: both are a series of small calls to the kernel
		var failed map[string]error
		s.group, failed = s.tier.groups.create(s.tier.groupName(s.spec.ID), s.spec.Limits)
		grouped <- failed
	}()
	setup, mounts, err := s.tier.layout(s.spec)
	failed := <-grouped
	if err != nil {
		return errors.Join(notStarted(err), s.group.remove())
	}
	if err := s.accept(failed, setup); err != nil {
		return errors.Join(err, closeAll(mounts), s.group.remove())
	}
	phase("prepare")
	if err := s.launch(ctx, setup, mounts, phase); err != nil {
		return errors.Join(notStarted(err), s.group.remove())
	}
	s.freezer = s.newFreezer()
	s.watch = newWatcher(s.spec.Dir, s.spec.Limits.DiskBytes, newEye(s.processes, workdir))
	go s.wait()
	return nil
}

func notStarted(err error) error {
	return fault.Wrap(err, fault.Unavailable, "space_not_started",
		"the space could not be started; `agentbox doctor` says what the host lacks")
}

// accept looks at the bounds that control groups could not take: one has another way, the others end the creation or are noted.
func (s *instance) accept(failed map[string]error, setup *spaceinit.Setup) error {
	if _, ok := failed["pids"]; ok {
		// A resource limit bounds processes as well, though it does not tell when it was hit.
		setup.Rlimits = append(setup.Rlimits, spaceinit.Rlimit{Resource: unix.RLIMIT_NPROC, Value: uint64(s.spec.Limits.Pids + initThreads)})
		delete(failed, "pids")
	}
	for bound, err := range failed {
		if !s.spec.BestEffort {
			return fault.Wrap(err, fault.Unavailable, "bound_not_enforceable",
				"this host cannot enforce %s: it needs control groups that the daemon may write", bound).With(
				"run the daemon as root or in a delegated control group, or allow best_effort for this space")
		}
		s.unenforced = append(s.unenforced, bound)
	}
	slices.Sort(s.unenforced)
	return nil
}

// launch starts the process and talks it through the setup. It closes the mounts.
func (s *instance) launch(ctx context.Context, setup *spaceinit.Setup, mounts []*os.File, phase func(string)) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return errors.Join(err, closeAll(mounts))
	}
	if err := spaceinit.Send(ours, setup); err != nil {
		return errors.Join(err, closeAll(mounts), theirs.Close(), ours.Close())
	}
	s.process, err = s.tier.starter.start(s.tier.birth(s.spec, len(mounts)), append([]*os.File{theirs}, mounts...), s.group)
	err = errors.Join(err, theirs.Close(), closeAll(mounts))
	if err != nil {
		if s.process != nil {
			err = errors.Join(err, s.process.Kill())
			_ = s.tier.starter.wait(s.process)
		}
		return errors.Join(err, ours.Close())
	}
	phase("launch")
	within, cancel := context.WithTimeoutCause(ctx, settled, errSlow)
	defer cancel()
	if s.client, s.ready, err = spaceinit.Connect(within, ours); err != nil {
		err = errors.Join(err, s.process.Kill())
		_ = s.tier.starter.wait(s.process)
		return err
	}
	phase("set_up")
	return nil
}

// phases begins to measure the start of a space; the function that it returns is called at the end of each phase.
func (t *Tier) phases(s id.Space) func(name string) {
	if t.phase == nil {
		return func(string) {}
	}
	began := t.clock.Now()
	return func(name string) {
		now := t.clock.Now()
		t.phase(s, name, now, now.Sub(began))
		began = now
	}
}

// birth says how the init's process is started: under which user of the host, and with which name in its list of processes.
func (t *Tier) birth(spec space.Spec, mounts int) spaceinit.Launch {
	l := spaceinit.Launch{
		Args: []string{initName, t.owner, string(spec.ID)}, Inside: insider, User: uint32(spec.UID), Group: uint32(spec.UID),
		Groups: t.privileged, Mounts: uint32(mounts),
	}
	if !t.privileged {
		l.Group = uint32(os.Getegid())
	}
	return l
}

// socketPair returns the daemon's end, on the runtime's poller, and the init's.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "space"), os.NewFile(uintptr(fds[1]), "init")
	conn, err := net.FileConn(ours) // a copy of it
	if err = errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}

func closeAll(files []*os.File) error {
	var all error
	for _, f := range files {
		all = errors.Join(all, f.Close())
	}
	return all
}

// wait waits for the end of the space and releases its parts of the host.
func (s *instance) wait() {
	// The end of the connection ends the init, and the end of the init ends the connection.
	go func() {
		<-s.client.Ended()
		_ = s.process.Kill()
	}()
	err := s.tier.starter.wait(s.process) // returns after every process of the space has ended
	s.client.Drain(lastWords)
	s.released = errors.Join(err, s.group.remove())
	s.tier.forget(s)
	close(s.done)
}

// kill ends the space without waiting for it.
func (s *instance) kill() { _ = s.process.Kill() }

// Unenforced names the bounds that this host does not enforce.
func (s *instance) Unenforced() []string { return slices.Clone(s.unenforced) }

// Done is closed when the space has ended.
func (s *instance) Done() <-chan struct{} { return s.done }

// Close ends the space and waits until nothing of it is left but its files.
func (s *instance) Close() error {
	s.kill()
	<-s.done
	return s.released
}

// Load returns the present load of the space's processes.
func (s *instance) Load() (space.Load, error) {
	select {
	case <-s.done:
		return space.Load{}, errEnded()
	default:
	}
	c := s.group.usage()
	return space.Load{MemoryBytes: c.memory, Pids: c.pids, CPUMicros: c.cpuMicros}, nil
}

// Usage returns the present use of the space.
func (s *instance) Usage(ctx context.Context) (space.Usage, error) {
	load, err := s.Load()
	if err != nil {
		return space.Usage{}, err
	}
	t, err := measure(ctx, s.spec.Dir, nil)
	if err != nil {
		return space.Usage{}, fault.Wrap(err, fault.Internal, "usage_unknown", "the space's files could not be measured")
	}
	return space.Usage{Load: load, DiskBytes: t.bytes}, nil
}

func errEnded() error {
	return fault.New(fault.Unavailable, "space_ended", "the space has ended; it is started again by the next operation")
}
