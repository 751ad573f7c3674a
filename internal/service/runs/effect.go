package runs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// affect does what the permit permits and returns the operation's result event. It never fails: what goes wrong is the result.
func (r *ride) affect(ctx context.Context, t *task, p policy.Permit) run.Result {
	if t.op.Type == run.OpMessage {
		if _, err := p.Redeem(policy.MessageSend); err != nil {
			return r.failed(ctx, t, run.Result{Type: run.OpMessage}, err)
		}
		return run.Result{Type: run.OpMessage, Success: ptr(true)}
	}
	if t.op.Type == run.OpShell {
		return r.exec(ctx, t, p)
	}
	result := run.Result{Type: t.op.Type, Path: t.action.Path}
	files, err := r.x.Spaces.Files(ctx, r.doc.Workspace, r.doc.Space)
	if err != nil {
		return r.failed(ctx, t, result, err)
	}
	switch t.op.Type {
	case run.OpCreateFile:
		var made space.Entry
		made, err = files.Write(ctx, p, bytes.NewReader(t.content))
		result.BytesWritten = ptr(made.Size)
	case run.OpReadFile:
		err = read(ctx, files, p, t.op.Encoding, &result)
	case run.OpEditFile:
		_, err = files.Edit(ctx, p, t.edits)
		result.EditsApplied = ptr(len(t.edits))
	case run.OpDeleteFile:
		err = files.Delete(ctx, p)
	}
	if err != nil {
		return r.failed(ctx, t, run.Result{Type: t.op.Type, Path: t.action.Path}, err)
	}
	result.Success = ptr(true)
	return result
}

// read fills a readFile result.
func read(ctx context.Context, files space.Files, p policy.Permit, encoding string, result *run.Result) error {
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
		return fault.New(fault.Exhausted, "file_too_large", "the file has more than %d bytes, the most that one operation reads", run.MaxContentBytes)
	}
	text, err := space.EncodeContent(content, encoding)
	if err != nil {
		return err
	}
	if result.Encoding = encoding; encoding == "" {
		result.Encoding = space.UTF8
	}
	result.Content, result.Size = &text, ptr(int64(len(content)))
	return nil
}

// failed completes a result with an error. A permit that was refused at the last moment is a denial; an error that carries no words for
// the agent is the system's, and its cause goes to the daemon's own log.
func (r *ride) failed(ctx context.Context, t *task, result run.Result, err error) run.Result {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	} else if cause != nil {
		err = errShutdown
	}
	if halt, ok := errors.AsType[policy.Halt](err); ok {
		t.halt = halt
	}
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case !ok || f.Kind == fault.Internal:
		r.x.Logger.Error("operation failed", "code", "operation_failed", "run", r.doc.ID, "operation", t.op.ID, "error", err)
		return failure(run.CategorySystem, err)
	case f.Kind == fault.Denied:
		refused := *t
		refused.ruling.Decision = policy.Decision{Outcome: policy.Deny, ReasonCode: f.Code, Reason: f.Msg, Suggestion: f.Suggestion}
		return denial(refused)
	}
	result.Success, result.Error, result.ReasonCode, result.Suggestion = ptr(false), f.Msg, f.Code, f.Suggestion
	return result
}

// failure is the result of an operation that could not be tried.
func failure(category string, err error) run.Result {
	return run.Result{Type: run.ResError, Category: category, Message: message(err), ReasonCode: fault.CodeOf(err), Suggestion: suggestion(err)}
}

// denial is the result of an operation that the gate, or a person, refused.
func denial(t task) run.Result {
	d := t.ruling.Decision
	return run.Result{Type: run.ResPolicyDenied, OperationType: t.op.Type, Reason: d.Reason, ReasonCode: d.ReasonCode, Suggestion: d.Suggestion}
}

func message(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		return f.Msg
	}
	return "the daemon could not do it; its own log says why"
}

func suggestion(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Suggestion
	}
	return ""
}

// valid returns bytes as text; what is not UTF-8 is replaced by U+FFFD.
func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

func ptr[T any](v T) *T { return &v }
