package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/livestream"
)

// command executes the commands of a run, each in a tier that has all its needs.
type command struct{ *execution }

// exec runs a command in the tier that it needs. A lighter tier may find while it runs that it lacks something; then it leaves no effects.
// The space is promoted, and the command runs by the same permit in the heavier tier.
func (r command) exec(ctx context.Context, t *task, p policy.Permit) run.Result {
	result := run.Result{Type: run.OpShell, Command: t.op.Command}
	if err := r.route(ctx, t); err != nil {
		return r.failed(ctx, t, result, err)
	}
	result, err := r.attempt(ctx, t, p)
	if lacking, ok := errors.AsType[*space.Lacking](err); ok {
		shown := result.Stdout != nil && *result.Stdout != "" || result.Stderr != nil && *result.Stderr != ""
		result.Stdout, result.Stderr = nil, nil
		if err = r.promote(ctx, t, space.WhyTierLacks, lacking.Lacks); err != nil {
			result.Lacks = lacksOf(lacking.Lacks)
			return r.failed(ctx, t, result, err)
		}
		if shown {
			r.x.Frames.Announce(ctx, r.doc.ID, outline(t.op)) // viewers see that it begins again
		}
		result, err = r.attempt(ctx, t, p)
	}
	if err != nil {
		return r.failed(ctx, t, result, err)
	}
	return result
}

// route first promotes the space of a command that visibly needs a heavier tier. Hidden needs show while the command runs. A command that
// wants another host is refused, because no tier has a network.
func (r command) route(ctx context.Context, t *task) error {
	found, err := r.look(ctx, *t, t.space.Runtime != space.RuntimeAuto || t.space.Tier != space.Nano)
	if err != nil {
		return err
	}
	if len(found.Unreachable) > 0 {
		return space.NoNetwork(found.Unreachable)
	}
	if found.To == found.Tier {
		return nil
	}
	return r.promote(ctx, t, space.WhyRouted, found.Lacks())
}

// reachable refuses a command that wants another host, or that is a call of a program which no tier has.
func (r command) reachable(ctx context.Context, t task) error {
	if t.op.Type != run.OpShell {
		return nil
	}
	found, err := r.look(ctx, t, true)
	if err == nil && len(found.Unreachable) > 0 {
		err = space.NoNetwork(found.Unreachable)
	} else if absent := r.x.Routes.Offers().Absent(found.Needs); err == nil && len(absent) > 0 {
		err = space.NoProgram(absent[0])
	}
	return err
}

// look finds the tier and the needs of a command, or only the reason why it cannot do anything. If look fails, it returns nothing.
func (r command) look(ctx context.Context, t task, reach bool) (space.Route, error) {
	a := t.action
	found, err := r.x.Routes.Route(ctx, r.origin, r.doc.Workspace, r.doc.Space, space.Command{Text: a.Command, Cwd: a.Cwd, Env: a.Env,
		Reach: reach})
	if err != nil {
		if ctx.Err() == nil {
			r.x.Logger.Warn("find the tier of a command", "code", "command_not_routed", "run", r.doc.ID, "operation", t.op.ID, "error", err)
		}
		return space.Route{}, ctx.Err()
	}
	return found, nil
}

// promote moves the space to the strongest tier, in the name of the principal who made the space.
func (r command) promote(ctx context.Context, t *task, code string, lacks []space.Lack) error {
	origin := event.Origin{Principal: t.space.CreatedBy, Correlation: r.doc.Correlation}
	why := space.Why{Code: code, Reason: "it needs " + space.Names(lacks), Run: r.doc.ID, Operation: t.op.ID}
	s, err := r.x.Routes.PromoteHeld(ctx, origin, r.doc.Workspace, r.doc.Space, "", why)
	if err == nil {
		t.space = s
	}
	return err
}

// attempt runs a command in the space's present tier and streams its output. An error means that the command could not run.
func (r command) attempt(ctx context.Context, t *task, p policy.Permit) (run.Result, error) {
	result := run.Result{Type: run.OpShell, Command: t.op.Command}
	s := t.space
	instance, err := r.x.Spaces.Instance(ctx, s)
	if err != nil {
		return result, err
	}
	if t.env, err = r.x.variables(s); err != nil {
		return result, err
	}
	var stdout, stderr bytes.Buffer
	shows := r.x.Frames.Printer(ctx, r.doc.ID, t.op.ID, leak.Values(t.env, t.op.Env))
	exit, err := instance.Exec(ctx, p.Supply(s.Env, t.env), nil, func(channel string, data []byte) error {
		kind, buffer := livestream.Stdout, &stdout
		if channel == "stderr" {
			kind, buffer = livestream.Stderr, &stderr
		}
		buffer.Write(data)
		shows.Write(kind, data)
		return nil
	})
	shows.Rest()
	result.Stdout, result.Stderr, result.Tier = ptr(valid(stdout.Bytes())), ptr(valid(stderr.Bytes())), s.Tier
	if err != nil {
		return result, err
	}
	t.shown = exit.Displays
	r.exited(ctx, *t, exit, &result)
	return result, nil
}

// exited tells how a command ended.
func (r command) exited(ctx context.Context, t task, exit space.Exit, result *run.Result) {
	result.ExitCode, result.DurationMS, result.TimedOut = ptr(exit.Code), ptr(exit.Duration.Milliseconds()), ptr(exit.TimedOut)
	if exit.Commit > 0 {
		result.CommitMS = ptr(exit.Commit.Milliseconds())
	}
	result.Success, result.Limit = ptr(exit.Code == 0 && exit.Limit == "" && !exit.TimedOut && !exit.Canceled), exit.Limit
	result.Gas, result.Seed, result.Engine = exit.Gas, exit.Seed, exit.Engine
	if !exit.Clock.IsZero() {
		result.Clock = ptr(exit.Clock.UTC())
	}
	lacks := exit.Lacks
	if len(lacks) == 0 && exit.Code != 0 && result.Tier != space.Nano {
		lacks = r.missed(ctx, t, exit, result)
	}
	if result.Lacks = lacksOf(lacks); len(lacks) > 0 {
		result.Suggestion = r.x.Routes.Offers().Advice(result.Tier, lacks)
	}
	switch {
	case exit.Canceled:
		cause := context.Cause(ctx)
		result.Error, result.ReasonCode = message(cause), fault.CodeOf(cause)
		if errors.Is(cause, context.Canceled) {
			result.Error, result.ReasonCode = errShutdown.Msg, errShutdown.Code
		}
	case exit.TimedOut:
		result.Limit = "timeout_ms"
		result.Error = "the command did not end within " + milliseconds(t.ruling.Action.TimeoutMS) + "; it and its children were killed"
	case exit.Limit != "":
		result.Error = limitError(exit.Limit, t.space.Limits)
	}
}

// missed finds the lacks of a command in a tier that does not report them. Such a thing is named in the command, absent in its tier, and in
// its error output.
func (r command) missed(ctx context.Context, t task, exit space.Exit, result *run.Result) (lacks []space.Lack) {
	complaint := ""
	if result.Stderr != nil {
		complaint = *result.Stderr
	}
	if exit.Code != notFound && !strings.Contains(complaint, "No module named") || ctx.Err() != nil {
		return nil
	}
	found, err := r.look(ctx, t, false)
	if err != nil {
		return nil
	}
	for _, n := range found.Needs {
		if (n.Kind == space.LackCommand || n.Kind == space.LackModule) && strings.Contains(complaint, n.Name) {
			lacks = append(lacks, space.Lack{Kind: n.Kind, Name: n.Name, Detail: n.Where})
		}
	}
	return lacks
}

// notFound is the exit code of a shell that does not find a command.
const notFound = 127

func lacksOf(lacks []space.Lack) []run.Lack {
	var told []run.Lack
	for _, l := range lacks {
		told = append(told, run.Lack(l))
	}
	return told
}

// limitError says which bound ended a command, with its number.
func limitError(limit string, l space.Limits) string {
	switch limit {
	case "memory_bytes":
		return fmt.Sprintf("the command used more than the %d bytes of memory that the space has; processes were killed", l.MemoryBytes)
	case "output_bytes":
		return fmt.Sprintf("the command printed more than %d bytes and was killed; write long output to a file", l.OutputBytes)
	case "disk_bytes":
		return fmt.Sprintf("the space's files grew beyond their bytes or number of files: %d bytes, %d files, and the command was killed; "+
			"delete some", l.DiskBytes, space.MaxFiles(l.DiskBytes))
	case "folder_depth":
		return fmt.Sprintf("the command nested folders more than %d deep and was killed; what is there can be deleted", space.MaxFolderDepth)
	case "pids":
		return fmt.Sprintf("the command wanted more than %d processes at once", l.Pids)
	case "file_bytes":
		return fmt.Sprintf("the command wrote more than %d bytes to one file", l.FileBytes)
	}
	return "the command hit the limit " + limit
}

func milliseconds(n int64) string { return strconv.FormatInt(n, 10) + " ms" }
