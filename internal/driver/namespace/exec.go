//go:build linux

package namespace

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

// stubborn is how long an init may take to kill a command on request, beyond the command's grace. Then the space ends.
const stubborn = 10 * time.Second

// timedOut is the exit code of a command whose time ran out.
const timedOut = 124

// overrun ends a command that has hit one of the bounds which the daemon itself watches.
type overrun struct{ bound string }

func (o overrun) Error() string { return "the command hit the bound " + o.bound }

// Exec runs the command of a shell.exec permit.
func (s *instance) Exec(ctx context.Context, p policy.Permit, stdin []byte, out space.Output) (space.Exit, error) {
	action, err := p.Redeem(policy.ShellExec)
	if err != nil {
		return space.Exit{}, err
	}
	if action.Attach != "" {
		return space.Exit{}, policy.ErrPermitMismatch // its approver saw that it gets input
	}
	var input event.Digest
	if len(stdin) > 0 {
		input = event.DigestOf(stdin)
	}
	empty := event.DigestOf(nil)
	if action.Space != s.spec.ID || action.Stdin != input && !(action.Stdin == empty && len(stdin) == 0) {
		return space.Exit{}, policy.ErrPermitMismatch
	}
	if c, ok := cellOf(action); ok && len(stdin) == 0 {
		return s.runCell(ctx, c, action, out)
	}
	x, err := s.command(action)
	if err != nil {
		return space.Exit{}, err
	}
	return s.run(ctx, x, timeOf(action), stdin, out)
}

// run runs a command within its bounds and says how it ended.
func (s *instance) run(ctx context.Context, x spaceinit.Exec, limit time.Duration, stdin []byte, out space.Output) (space.Exit, error) {
	return s.follow(ctx, s.begin(limit), out, func(within context.Context, expire <-chan time.Time, out spaceinit.Output) (spaceinit.Exit,
		error) {
		return s.client.Run(within, x, stdin, expire, out)
	})
}

// command turns an action into a command for the init.
func (s *instance) command(a policy.Action) (spaceinit.Exec, error) {
	if len(a.Argv) == 0 || a.Argv[0] == "" {
		return spaceinit.Exec{}, fault.New(fault.Invalid, "command_empty", "there is no command to run")
	}
	if path.IsAbs(a.Cwd) || slices.Contains(strings.Split(a.Cwd, "/"), "..") || strings.ContainsRune(a.Cwd, 0) {
		return spaceinit.Exec{}, fault.New(fault.Invalid, "invalid_cwd", "the working folder must be a path below the space's files")
	}
	for name := range a.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return spaceinit.Exec{}, fault.New(fault.Invalid, "invalid_env", "a variable's name may not be empty or hold = or NUL")
		}
	}
	return spaceinit.Exec{Argv: a.Argv, Env: environment(s.spec.Env, a.Env), Cwd: path.Join(workdir, a.Cwd)}, nil
}

// beginning is the state of the space before a command.
type beginning struct {
	at    time.Time
	hits  hits
	limit time.Duration // of the command; 0 for none
}

func (s *instance) begin(limit time.Duration) beginning {
	return beginning{s.tier.clock.Now(), s.group.hits(), limit}
}

// timeOf is how long the command of an action may take; 0 for as long as it likes.
func timeOf(a policy.Action) time.Duration { return time.Duration(a.TimeoutMS) * time.Millisecond }

// runner runs a command: it kills it when ctx ends, ends it when a value comes from expire, and returns when nothing of it is left.
type runner func(ctx context.Context, expire <-chan time.Time, out spaceinit.Output) (spaceinit.Exit, error)

// follow has a command run within its bounds and says how it ended.
func (s *instance) follow(ctx context.Context, b beginning, out space.Output, run runner) (space.Exit, error) {
	began, before, limit := b.at, b.hits, b.limit
	within, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer s.watch.join(func(bound string) { end(overrun{bound}) })()
	// The init of a paused space must run again, so that it can end the command.
	defer s.excused(within)()
	// If an init does not end the command on request, the space ends.
	defer after(within, stubborn, s.kill)()
	var expire <-chan time.Time
	var overdue atomic.Bool
	if limit > 0 {
		timer, stop := s.freezer.timer(limit)
		defer stop()
		expire = timer
		defer s.abandon(limit+spaceinit.Grace+stubborn, &overdue)()
	}
	room := s.spec.Limits.OutputBytes
	exit, err := run(within, expire, func(c spaceinit.Channel, piece []byte) (err error) {
		defer func() {
			if err != nil {
				end(err) // from here on the init has to end the command
			}
		}()
		fits := piece[:min(int64(len(piece)), room)]
		room -= int64(len(fits))
		if len(fits) > 0 {
			if err := out(channelNames[c], fits); err != nil {
				return err
			}
		}
		if len(fits) < len(piece) {
			return overrun{"output_bytes"}
		}
		return nil
	})
	result := space.Exit{Code: int(exit.Code), Duration: s.tier.clock.Now().Sub(began)}
	if exit.Signal != 0 {
		result.Signal = unix.SignalName(unix.Signal(exit.Signal))
	}
	after := before
	if exit.Code != 0 || err != nil {
		after = s.group.hits()
	}
	starved := after.oomKills > before.oomKills
	hit, isBound := errors.AsType[overrun](errors.Join(err, context.Cause(within)))
	switch {
	case isBound && (err == nil || errors.Is(err, error(hit))):
		result.Limit = hit.bound
		return result, nil
	case errors.Is(err, spaceinit.ErrEnded):
		result.TimedOut, result.Limit = overdue.Load(), hit.bound
		return s.lost(ctx, result, starved)
	case errors.Is(err, spaceinit.ErrRefused):
		return space.Exit{}, s.refusal(err)
	case err != nil:
		return result, err
	}
	switch {
	case exit.Killed && ctx.Err() != nil:
		result.Canceled = true
	case exit.Killed:
		result.TimedOut, result.Code = true, timedOut
	case result.Code != 0 && starved:
		result.Limit = "memory_bytes"
	case exit.Signal == uint8(unix.SIGXFSZ), result.Code == 128+int(unix.SIGXFSZ): // of the command, or of one that its shell started
		result.Limit = "file_bytes"
	case result.Code != 0 && after.pidsRefused > before.pidsRefused:
		result.Limit = "pids"
	}
	return result, nil
}

// refusal is the error of a command that the init did not start.
func (s *instance) refusal(err error) error {
	if errors.Is(err, spaceinit.ErrEnded) {
		return errEnded()
	}
	return fault.Wrap(err, fault.Invalid, "command_not_started", "the command could not be started")
}

// lost says what became of a command whose space ended under it, once no process of it is left and the space can be started again. The
// result says what the space was ended for, where the daemon ended it because the init did not end the command.
func (s *instance) lost(ctx context.Context, result space.Exit, starved bool) (space.Exit, error) {
	s.kill()
	<-s.done
	result.Code, result.Signal = 128+int(unix.SIGKILL), unix.SignalName(unix.SIGKILL)
	switch {
	case ctx.Err() != nil:
		result.Canceled, result.TimedOut, result.Limit = true, false, ""
		return result, nil
	case result.TimedOut:
		result.Code, result.Signal = timedOut, ""
		return result, nil
	case result.Limit != "":
		return result, nil
	case starved:
		// The kernel chose the init when memory ran out: the smallest process of a space full of smaller ones.
		result.Limit = "memory_bytes"
		return result, nil
	default:
		return space.Exit{}, errEnded()
	}
}

// excused lets the processes of a paused space run from the end of ctx on, until the returned function is called.
func (s *instance) excused(ctx context.Context) (done func()) {
	var mu sync.Mutex
	back, over := func() {}, false
	unhook := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			back = s.freezer.excuse()
		}
	})
	return func() {
		unhook()
		mu.Lock()
		defer mu.Unlock()
		over = true
		back()
	}
}

// abandon ends the space after d in which it was not paused and says so, unless the returned function is called first.
func (s *instance) abandon(d time.Duration, overdue *atomic.Bool) (stop func()) {
	seen, _ := s.freezer.still()
	over := make(chan struct{})
	go func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-over:
				return
			}
			stood, _ := s.freezer.still()
			if stood <= seen {
				overdue.Store(true)
				s.kill()
				return
			}
			timer.Reset(max(stood-seen, time.Second))
			seen = stood
		}
	}()
	return sync.OnceFunc(func() { close(over) })
}

// after calls do when ctx has ended and d has passed, unless the caller calls the returned function first, even within d.
func after(ctx context.Context, d time.Duration, do func()) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	unhook := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			timer = time.AfterFunc(d, do)
		}
	})
	return func() {
		unhook()
		mu.Lock()
		defer mu.Unlock()
		if stopped = true; timer != nil {
			timer.Stop()
		}
	}
}

var channelNames = map[spaceinit.Channel]string{spaceinit.Stdout: "stdout", spaceinit.Stderr: "stderr"}
