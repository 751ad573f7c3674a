package runs

import (
	"bytes"
	"context"
	"io"
	"maps"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// verb says how operations of a type are executed. run.Spec describes the type and the action that it needs.
type verb struct {
	// ask completes the action of the operation. Its error is the operation's validation error.
	ask func(r *execution, t *task, a *policy.Action, s space.Space, limits policy.Limits) error
	// do does the permitted action. It never returns an error: an error becomes the result.
	do func(ctx context.Context, r *execution, t *task, p policy.Permit) run.Result
}

// verbs has a row for each operation type of the protocol. An operation without a row is denied, because it has no action.
var verbs = map[string]verb{
	run.OpMessage:    {askMessage, say},
	run.OpCreateFile: {askCreate, inFiles(create)},
	run.OpReadFile:   {askRead, inFiles(read)},
	run.OpEditFile:   {askEdit, inFiles(edit)},
	run.OpDeleteFile: {askPath, inFiles(remove)},
	run.OpShell:      {askShell, execute},
}

func askMessage(_ *execution, t *task, a *policy.Action, _ space.Space, _ policy.Limits) error {
	a.Content, a.Size = event.DigestOf([]byte(t.op.Content)), int64(len(t.op.Content))
	return nil
}

// say does nothing but use the permit up: the message is in the log.
func say(ctx context.Context, r *execution, t *task, p policy.Permit) run.Result {
	if _, err := p.Redeem(policy.MessageSend); err != nil {
		return r.failed(ctx, t, run.Result{Type: t.op.Type}, err)
	}
	return run.Result{Type: t.op.Type, Success: ptr(true)}
}

func askCreate(r *execution, t *task, a *policy.Action, s space.Space, limits policy.Limits) (err error) {
	a.Overwrite = t.op.Overwrite
	if t.content, err = space.DecodeContent(t.op.Content, t.op.Encoding, run.MaxContentBytes); err != nil {
		return err
	}
	a.Content, a.Size = event.DigestOf(t.content), int64(len(t.content))
	return askPath(r, t, a, s, limits)
}

func create(ctx context.Context, files space.Files, p policy.Permit, t *task, result *run.Result) error {
	made, err := files.Write(ctx, p, bytes.NewReader(t.content))
	result.BytesWritten = ptr(made.Size)
	return err
}

func askRead(r *execution, t *task, a *policy.Action, s space.Space, limits policy.Limits) error {
	a.MaxBytes = mostBytes(limits)
	return askPath(r, t, a, s, limits)
}

func read(ctx context.Context, files space.Files, p policy.Permit, t *task, result *run.Result) error {
	file, err := files.Read(ctx, p)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, run.MaxContentBytes+1))
	if err != nil {
		return err
	}
	if len(content) > run.MaxContentBytes { // it grew while it was read
		return fault.New(fault.Exhausted, "file_too_large", "the file has more than %d bytes, the most that one operation reads",
			run.MaxContentBytes)
	}
	text, err := space.EncodeContent(content, t.op.Encoding)
	if err != nil {
		return err
	}
	if result.Encoding = t.op.Encoding; result.Encoding == "" {
		result.Encoding = space.UTF8
	}
	result.Content, result.Size = &text, ptr(int64(len(content)))
	return nil
}

func askEdit(r *execution, t *task, a *policy.Action, s space.Space, limits policy.Limits) (err error) {
	a.MaxBytes = mostBytes(limits)
	for _, e := range t.op.Edits {
		t.edits = append(t.edits, space.Edit(e))
		a.Size += int64(len(e.New))
	}
	if a.Content, err = space.EditsDigest(t.edits); err != nil {
		return err
	}
	return askPath(r, t, a, s, limits)
}

func edit(ctx context.Context, files space.Files, p policy.Permit, t *task, result *run.Result) error {
	_, err := files.Edit(ctx, p, t.edits)
	result.EditsApplied = ptr(len(t.edits))
	return err
}

func remove(ctx context.Context, files space.Files, p policy.Permit, _ *task, _ *run.Result) error {
	return files.Delete(ctx, p)
}

func askPath(_ *execution, t *task, a *policy.Action, _ space.Space, _ policy.Limits) (err error) {
	a.Path, err = space.CleanFilePath(t.op.Path)
	return err
}

func askShell(r *execution, t *task, a *policy.Action, s space.Space, limits policy.Limits) error {
	err := shell(a, t.op, s, limits.CommandMS)
	if r.doc.Background {
		beside(a, t.op)
	}
	if place, wanted := a.Env[run.TraceVariable]; wanted && place == "" {
		a.Env[run.TraceVariable] = r.doc.Traced(a.Step)
	}
	return err
}

// shell makes the action of a command: bash with the command's text. Its environment is the space's, overlaid by the operation's. A
// requested time may only lower the policy's.
func shell(a *policy.Action, op run.Operation, s space.Space, mostMS int64) error {
	a.Command, a.Argv = op.Command, []string{"/bin/bash", "-c", op.Command}
	a.TimeoutMS = min(run.DefaultTimeoutMS, mostMS)
	if op.TimeoutMS != nil {
		a.TimeoutMS = min(*op.TimeoutMS, mostMS)
	}
	a.Env = map[string]string{}
	maps.Copy(a.Env, s.Env)
	maps.Copy(a.Env, op.Env)
	if op.Cwd == "" || op.Cwd == "." {
		return nil
	}
	cwd, err := space.CleanPath(op.Cwd)
	a.Cwd = cwd
	return err
}

func execute(ctx context.Context, r *execution, t *task, p policy.Permit) run.Result {
	return command{r}.exec(ctx, t, p)
}

// onFiles does something with the files of a space and completes the result.
type onFiles func(ctx context.Context, files space.Files, p policy.Permit, t *task, result *run.Result) error

// inFiles makes the do function of a verb from a function on the files of a space.
func inFiles(do onFiles) func(context.Context, *execution, *task, policy.Permit) run.Result {
	return func(ctx context.Context, r *execution, t *task, p policy.Permit) run.Result {
		result := run.Result{Type: t.op.Type, Path: t.action.Path}
		files, err := r.x.Spaces.Files(t.space)
		if err != nil {
			return r.failed(ctx, t, result, err)
		}
		if err := do(ctx, files, p, t, &result); err != nil {
			return r.failed(ctx, t, run.Result{Type: t.op.Type, Path: t.action.Path}, err)
		}
		result.Success = ptr(true)
		return result
	}
}

// mostBytes is the bound of an operation that names none: it is held to the policy's, not refused.
func mostBytes(limits policy.Limits) int64 { return min(run.MaxContentBytes, limits.FileBytes) }
