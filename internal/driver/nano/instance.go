package nano

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/worker"
	"agentbox/internal/userland/bound"
)

// Paths in a space. They are those of the other tiers.
const (
	workspace = "/workspace" // its files
	home      = "/tmp/home"  // private, gone with the space
)

// Bounds that a space's limits do not name.
const (
	maxGas   = 1 << 40          // of one command: some minutes of computing
	maxTime  = 3_600_000        // milliseconds of a command whose action names no bound
	maxDepth = 1000             // of functions of the shell and of programs that programs start
	longest  = 1 << 20          // bytes of a command's arguments and environment together
	seedName = "AGENTBOX_SEED"  // variable that decides chance, any text
	timeName = "AGENTBOX_CLOCK" // variable that says when the virtual clock begins, RFC 3339
)

// instance is one living space.
type instance struct {
	tier *Tier
	spec space.Spec
	tmp  string
	busy chan struct{} // holds a token while a command runs
	base context.Context
	end  context.CancelCauseFunc
	done chan struct{}

	closing sync.Once
	closed  error

	mu     sync.Mutex       // guards the fields below
	micros int64            // of computing, so far
	memory int64            // of the command that runs; the most that it held
	late   [2]time.Duration // how long the last command went on after the bound that ended it: on the wall, and of processor time
}

var _ space.Instance = (*instance)(nil)

// start makes the folder of the temporary files.
func (s *instance) start() error {
	if err := os.RemoveAll(s.tmp); err != nil { // of an earlier daemon
		return err
	}
	if err := os.Mkdir(s.tmp, 0o700); err != nil {
		return err
	}
	// as every execution but the first would find it, so that equal commands use equal gas
	return os.Mkdir(filepath.Join(s.tmp, path.Base(home)), 0o755)
}

// Unenforced names the bounds that are not enforced: none.
func (s *instance) Unenforced() []string { return nil }

// Done is closed when the space has ended.
func (s *instance) Done() <-chan struct{} { return s.done }

// Close ends the commands of the space and removes its temporary files.
func (s *instance) Close() error {
	s.closing.Do(func() {
		s.end(errEnded())
		s.busy <- struct{}{} // the running command has ended then
		s.closed = os.RemoveAll(s.tmp)
		s.tier.forget(s)
		close(s.done)
	})
	<-s.done
	return s.closed
}

func errEnded() error {
	return fault.New(fault.Unavailable, "space_ended", "the space has ended; it is started again by the next operation")
}

// Exec runs the command of a shell.exec permit. The commands of one space run one after the other.
func (s *instance) Exec(ctx context.Context, p policy.Permit, stdin []byte, out space.Output) (space.Exit, error) {
	action, back, err := p.Try(policy.ShellExec)
	if err != nil {
		return space.Exit{}, err
	}
	var input event.Digest
	if len(stdin) > 0 {
		input = event.DigestOf(stdin)
	}
	empty := event.DigestOf(nil)
	if action.Attach != "" || action.Space != s.spec.ID || action.Stdin != input && !(action.Stdin == empty && len(stdin) == 0) {
		return space.Exit{}, policy.ErrPermitMismatch
	}
	order, seed, err := s.order(action, stdin)
	if err != nil {
		return space.Exit{}, err
	}
	within, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(s.base, end)()
	select {
	case s.busy <- struct{}{}:
		var once sync.Once
		order.Done = func() { once.Do(func() { <-s.busy }) }
		defer order.Done()
	case <-within.Done():
		return s.ended(ctx, space.Exit{Code: 137, Signal: "SIGKILL", Canceled: true})
	}
	if s.base.Err() != nil {
		return space.Exit{}, errEnded()
	}
	exit, err := s.execute(ctx, within, order, out)
	exit.Seed, exit.Clock = seed, order.Start
	if _, lacking := errors.AsType[*space.Lacking](err); lacking {
		back() // it has had no effect
	}
	return exit, err
}

// Start refuses a command that runs while others do: this tier has no processes.
func (s *instance) Start(_ context.Context, p policy.Permit, _ space.TerminalSize) (space.Process, error) {
	_, back, err := p.Try(policy.ShellExec)
	if err != nil {
		return nil, err
	}
	back() // it has had no effect
	return nil, space.LacksProcesses("a command that gets input or signals while it runs")
}

// ended is an exit, or the error of a space that has ended meanwhile.
func (s *instance) ended(ctx context.Context, e space.Exit) (space.Exit, error) {
	if e.Canceled && ctx.Err() == nil && s.base.Err() != nil {
		return space.Exit{}, errEnded()
	}
	return e, nil
}

// order makes the order that a worker gets.
func (s *instance) order(a policy.Action, stdin []byte) (o worker.Order, seed string, err error) {
	switch {
	case len(a.Argv) == 0 || a.Argv[0] == "":
		return o, "", fault.New(fault.Invalid, "command_empty", "there is no command to run")
	case path.IsAbs(a.Cwd) || slices.Contains(strings.Split(a.Cwd, "/"), "..") || strings.ContainsRune(a.Cwd, 0):
		return o, "", fault.New(fault.Invalid, "invalid_cwd", "the working folder must be a path below the space's files")
	case strings.ContainsRune(strings.Join(a.Argv, ""), 0):
		return o, "", fault.New(fault.Invalid, "command_not_started", "an argument of the command holds a NUL")
	}
	env, seed, start, err := s.environment(a.Env)
	if err != nil {
		return o, "", err
	}
	size := 0
	for _, text := range slices.Concat(a.Argv, env) {
		size += len(text) + 1
	}
	if size > longest {
		return o, "", fault.New(fault.Invalid, "command_not_started", "the arguments and the environment have %d bytes; at most %d are taken",
			size, longest)
	}
	limit := a.TimeoutMS
	if limit <= 0 || limit > maxTime {
		limit = maxTime
	}
	o = s.sized(a.Argv, env, path.Join(workspace, a.Cwd), stdin, time.Duration(limit)*time.Millisecond)
	o.Seed, o.Start, o.Tentative, o.Elsewhere = sha256.Sum256([]byte(seed)), start, s.spec.Tentative, s.spec.Elsewhere
	return o, seed, nil
}

// sized is an order with the bounds of the space.
func (s *instance) sized(argv, env []string, cwd string, stdin []byte, limit time.Duration) worker.Order {
	l := s.spec.Limits
	return worker.Order{
		Argv: argv, Env: env, Cwd: cwd, Stdin: stdin, Millis: l.CPUMillis,
		Limits: bound.Limits{
			Gas: maxGas, Time: limit, MemoryBytes: l.MemoryBytes, OutputBytes: l.OutputBytes, FileBytes: l.FileBytes, OpenFiles: l.OpenFiles,
			Depth: maxDepth,
		},
		Mounts: []worker.Mount{{Path: workspace, Disk: true}, {Path: "/tmp"}},
	}
}

// environment is what a command finds set, and what decides its chance and its clock: what the command's variables say, then the space's,
// else a seed that is drawn and the time that it is.
func (s *instance) environment(command map[string]string) (env []string, seed string, start time.Time, err error) {
	all := map[string]string{
		"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": home, "TMPDIR": "/tmp", "LANG": "C.UTF-8", "USER": "agent", "LOGNAME": "agent",
		"SHELL": "/bin/sh",
	}
	for _, extra := range []map[string]string{s.spec.Env, command} {
		for name, value := range extra {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
				return nil, "", start, fault.New(fault.Invalid, "invalid_env", "a variable's name may not be empty or hold = or NUL")
			}
			all[name] = value
		}
	}
	seed, chosen := all[seedName]
	if !chosen {
		drawn := make([]byte, 16)
		if _, err := io.ReadFull(s.tier.o.Entropy, drawn); err != nil {
			return nil, "", start, fault.Wrap(err, fault.Unavailable, "entropy_missing", "the host gives no randomness for a seed")
		}
		seed = hex.EncodeToString(drawn)
	}
	start = s.tier.o.Clock.Now().UTC().Truncate(time.Microsecond)
	if said, ok := all[timeName]; ok {
		if start, err = time.Parse(time.RFC3339Nano, said); err != nil || start.Year() < 1970 || start.Year() > 2200 {
			return nil, "", start, fault.New(fault.Invalid, "invalid_env", "%s is no time: write it as 2026-01-02T03:04:05Z", timeName)
		}
	}
	delete(all, seedName)
	delete(all, timeName)
	for name, value := range all {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, seed, start, nil
}

// execute has a worker execute the order.
func (s *instance) execute(ctx, within context.Context, o worker.Order, out space.Output) (space.Exit, error) {
	files := &folder{path: s.spec.Dir, uid: s.spec.UID, bytes: s.spec.Limits.DiskBytes}
	tmp := &folder{path: s.tmp, bytes: s.spec.Limits.TmpBytes}
	defer files.close()
	defer tmp.close()
	outcome, err := s.attempt(within, o, []worker.Files{files, tmp}, out)
	if err == nil && outcome.NotReady != "" && within.Err() != nil {
		return s.ended(ctx, space.Exit{Code: 137, Signal: "SIGKILL", Canceled: true})
	}
	exit := space.Exit{
		Code: outcome.Code, Signal: outcome.Signal, Limit: outcome.Limit, TimedOut: outcome.TimedOut, Canceled: outcome.Canceled,
		Duration: outcome.Took, Commit: outcome.Commit, Gas: outcome.Gas, Lacks: outcome.Lacks,
		Engine: outcome.Version, Displays: outcome.Displays,
	}
	s.mu.Lock()
	s.micros += outcome.CPU.Microseconds()
	s.memory = outcome.Memory
	s.late = [2]time.Duration{outcome.Late, outcome.LateCPU}
	s.mu.Unlock()
	switch {
	case err != nil && within.Err() != nil && errors.Is(err, worker.ErrEnded):
		return s.ended(ctx, space.Exit{Code: 137, Signal: "SIGKILL", Canceled: true, Duration: exit.Duration})
	case err != nil:
		return exit, err
	case outcome.Dropped:
		return space.Exit{}, &space.Lacking{Lacks: outcome.Lacks}
	case outcome.NotReady != "":
		return space.Exit{}, fault.New(fault.Unavailable, "runtime_unavailable",
			"an interpreter of nano spaces could not be prepared; the daemon's own log says why")
	case outcome.Refused != "":
		return space.Exit{}, fault.New(fault.Invalid, "command_not_started", "the command could not be started: %s", outcome.Refused)
	}
	return s.ended(ctx, exit)
}

// Load returns the present load of the space. Its processor time is the time in which its commands were executed.
func (s *instance) Load() (space.Load, error) {
	if s.base.Err() != nil {
		return space.Load{}, errEnded()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return space.Load{MemoryBytes: s.memory, Pids: int64(len(s.busy)), CPUMicros: s.micros}, nil
}

// Usage returns the present use of the space.
func (s *instance) Usage(ctx context.Context) (space.Usage, error) {
	load, err := s.Load()
	if err != nil {
		return space.Usage{}, err
	}
	bytes, _, err := measure(ctx, s.spec.Dir)
	if err != nil {
		return space.Usage{}, fault.Wrap(err, fault.Internal, "usage_unknown", "the space's files could not be measured")
	}
	return space.Usage{Load: load, DiskBytes: bytes}, nil
}
