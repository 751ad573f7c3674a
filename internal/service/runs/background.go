package runs

import (
	"context"
	"errors"

	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/livestream"
)

// mostShown is how many bytes of each channel of a background run its result holds. Its frames have all that the live output keeps.
const mostShown = 256 << 10

// beside makes the action of a background run from that of a command. Policy bounds the time of commands for which something waits. Nothing
// waits for this one, so it takes as long as it was asked to, or as long as the space lives.
func beside(a *policy.Action, op run.Operation) {
	a.Background, a.TimeoutMS = true, 0
	if op.TimeoutMS != nil {
		a.TimeoutMS = *op.TimeoutMS
	}
	switch {
	case op.PTY != nil:
		a.Attach = policy.AttachTerminal
		if a.Env["TERM"] == "" {
			a.Env["TERM"] = "xterm-256color"
		}
	case op.Stdin:
		a.Attach = policy.AttachStdin
	}
}

// beside executes the command of a background run while other operations use the space. In a tier whose commands run one after the other,
// it takes its turn with them.
func (r command) beside(ctx context.Context, t *task, p policy.Permit) run.Result {
	result := run.Result{Type: run.OpShell, Command: t.op.Command}
	s, err := r.x.Spaces.Space(ctx, r.doc.Workspace, r.doc.Space)
	if err == nil && s.Tier == space.Nano {
		var ended bool
		if result, ended, err = r.inTurn(ctx, t, p); ended && err == nil {
			return result
		}
	}
	if err != nil {
		return r.failed(ctx, t, result, err)
	}
	s, leave, err := r.x.Spaces.Beside(ctx, r.doc.Workspace, r.doc.Space)
	if err != nil {
		return r.failed(ctx, t, result, err)
	}
	defer leave()
	t.space = s
	if err := r.reachable(ctx, *t); err != nil {
		return r.failed(ctx, t, result, err)
	}
	if result, err = r.follow(ctx, t, p); err != nil {
		return r.failed(ctx, t, result, err)
	}
	return result
}

// inTurn executes the command in the tier nano, if that has all its needs. Otherwise it promotes the space, or returns the refusal.
func (r command) inTurn(ctx context.Context, t *task, p policy.Permit) (result run.Result, ended bool, err error) {
	result = run.Result{Type: run.OpShell, Command: t.op.Command}
	s, leave, err := r.x.Spaces.Occupy(ctx, r.doc.Workspace, r.doc.Space, true)
	if err != nil {
		return result, false, err
	}
	defer leave()
	t.space = s
	if err := r.route(ctx, t); err != nil || t.space.Tier != space.Nano {
		return result, false, err
	}
	err = space.LacksProcesses("a command that gets input while it runs")
	if !t.op.Attached() {
		result, err = r.attempt(ctx, t, p)
	} else if s.Runtime != space.RuntimeAuto {
		return result, false, err
	}
	lacking, ok := errors.AsType[*space.Lacking](err)
	if !ok {
		t.kept = r.snapshot(context.WithoutCancel(ctx), t.space)
		return result, true, err
	}
	result.Stdout, result.Stderr = nil, nil
	return result, false, r.promote(ctx, t, space.WhyTierLacks, lacking.Lacks)
}

// follow starts the command and shows its output until it ends.
func (r command) follow(ctx context.Context, t *task, p policy.Permit) (run.Result, error) {
	result := run.Result{Type: run.OpShell, Command: t.op.Command, Tier: t.space.Tier}
	instance, err := r.x.Spaces.Instance(ctx, t.space)
	if err != nil {
		return result, err
	}
	if t.env, err = r.x.variables(t.space); err != nil {
		return result, err
	}
	var size space.TerminalSize
	if t.op.PTY != nil {
		size = space.TerminalSize(*t.op.PTY)
	}
	process, err := instance.Start(ctx, p.Supply(t.space.Env, t.env), size)
	if err != nil {
		return result, err
	}
	defer r.x.Input.attach(r.doc.ID, &attached{process, t.op})()
	shows := r.x.Frames.Printer(ctx, r.doc.ID, t.op.ID, leak.Values(t.env, t.op.Env))
	write, rest := shows.Write, shows.Rest
	if t.op.PTY != nil {
		write, rest = shows.Promptly()
	}
	var stdout, stderr beginning
	exit, err := process.Wait(func(channel string, data []byte) error {
		kind, text := livestream.Stdout, &stdout
		if channel == "stderr" {
			kind, text = livestream.Stderr, &stderr
		}
		text.add(data)
		write(kind, data)
		return nil
	})
	rest()
	result.Stdout, result.Stderr = ptr(valid(stdout.bytes)), ptr(valid(stderr.bytes))
	for name, text := range map[string]beginning{"stdout": stdout, "stderr": stderr} {
		if text.more {
			result.Omitted = append(result.Omitted, name)
		}
	}
	if err != nil {
		return result, err
	}
	r.exited(ctx, *t, exit, &result)
	return result, nil
}

// beginning is the first part of a long output.
type beginning struct {
	bytes []byte
	more  bool // it is not all
}

func (b *beginning) add(data []byte) {
	n := min(len(data), mostShown-len(b.bytes))
	b.bytes, b.more = append(b.bytes, data[:n]...), b.more || n < len(data)
}
