package follow

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// Ordered is a run of one shell operation. The command line prints its output as it comes.
type Ordered struct {
	Api   *client.Client
	Space id.Space
	Title string

	Output func(channel string, data []byte) error               // channel is client.FrameStdout or client.FrameStderr
	Asks   func(ctx context.Context, approval id.Approval) error // a person has to decide; the run goes on when one has
	begun  func(r id.Run)                                        // optional
	Queued func(ctx context.Context, r id.Run) (stop func())     // optional: tells what the run waits for while it is queued
	Wait   func(ctx context.Context, l *client.Later) error      // for as long as the daemon says; without it what is too soon is refused
}

// Do runs a shell operation and returns its result event, and the run. When ctx ends the run is cancelled.
func (o *Ordered) Do(ctx context.Context, op run.Operation) (run.Result, id.Run, error) {
	raw, err := json.Marshal([]run.Operation{op})
	if err != nil {
		return run.Result{}, "", err
	}
	q := client.RunRequest{Message: client.Message{ProtocolVersion: json.RawMessage(`"` + run.Protocol + `"`), Operations: raw},
		Title: o.Title}
	return o.Made(ctx, func() (run.Events, error) { return o.Api.CreateRun(ctx, o.Space, q) })
}

// Made starts a run of one operation and returns its result event, and the run. When ctx ends the run is cancelled.
func (o *Ordered) Made(ctx context.Context, create func() (run.Events, error)) (run.Result, id.Run, error) {
	made, err := create()
	for err != nil {
		later, ok := errors.AsType[*client.Later](err)
		if !ok || o.Wait == nil {
			return run.Result{}, "", err
		}
		if err := o.Wait(ctx, later); err != nil {
			return run.Result{}, "", err
		}
		made, err = create()
	}
	r := id.Run(made.RunID)
	if o.begun != nil {
		o.begun(r)
	}
	stop := func() {}
	if o.Queued != nil {
		stop = o.Queued(ctx, r)
	}
	result, err := o.Follow(ctx, r)
	stop()
	if err != nil {
		if _, cancelling := o.Api.CancelRun(context.WithoutCancel(ctx), r, "the client that asked for it went away"); ctx.Err() != nil &&
			cancelling == nil {
			err = fault.New(fault.Unavailable, cmdline.CodeInterrupted, "interrupted")
		}
		return result, r, err
	}
	if result.Type == "" { // it ended before the operation was reached
		shown, err := o.Api.Run(ctx, r)
		if err != nil {
			return result, r, err
		}
		return result, r, fault.New(fault.Unavailable, "run_"+string(shown.Status), "the run %s %s: %s", r, runview.Stands(shown.Status),
			cmdline.First(shown.Error,
				"its command was not begun"))
	}
	return result, r, nil
}

// Follow reads the frames of the run until it has ended.
func (o *Ordered) Follow(ctx context.Context, r id.Run) (result run.Result, err error) {
	for f, err := range o.Api.FollowRun(ctx, o.Space, r, 0) {
		if err != nil {
			return result, err
		}
		switch f.Kind {
		case client.FrameStdout, client.FrameStderr:
			data, err := printed(f)
			if err == nil {
				err = o.Output(f.Kind, data)
			}
			if err != nil {
				return result, err
			}
		case client.FrameResult:
			var e run.Result
			if err := json.Unmarshal(f.Data, &e); err != nil {
				return result, fault.Wrap(err, fault.Internal, "frame_unreadable", "frame %d of the run cannot be read", f.N)
			}
			switch {
			case e.Type == run.ResApprovalRequired:
				if err := o.Asks(ctx, id.Approval(e.ApprovalID)); err != nil {
					return result, err
				}
			case e.OperationID != "":
				result = e
			}
		}
	}
	return result, ctx.Err()
}

// maxLacked is how many things are named that a space lacks.
const maxLacked = 3

// lacked names the features that a space lacked.
func lacked(all []run.Lack) string {
	names := make([]string, 0, maxLacked)
	for _, l := range all[:min(len(all), maxLacked)] {
		name := "the " + l.Kind + " " + l.Name
		if l.Kind == "feature" && l.Detail != "" { // of a program that is there
			name = l.Detail + " (" + l.Name + ")"
		}
		names = append(names, term.OneLine(name, 80))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - maxLacked; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Patience returns what waits where what comes, as in "the lines", comes faster than the daemon takes runs. It says so once.
func Patience(i *cmdline.Invocation, what string) func(ctx context.Context, l *client.Later) error {
	said := false
	return func(ctx context.Context, l *client.Later) error {
		if !said {
			said = true
			p := i.Printer(i.Err)
			p.JSON = false
			p.Line("%s", p.Paint(term.Faint,
				fmt.Sprintf("%s come faster than the daemon takes runs of this key; waiting %s, and again where it has to be", what, l.After)))
		}
		over, stop := i.Clock.NewTimer(l.After)
		defer stop()
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return fault.New(fault.Unavailable, cmdline.CodeInterrupted, "interrupted")
		}
	}
}

// printed returns the bytes of a command's output in a frame.
func printed(f client.Frame) ([]byte, error) {
	var out client.Output
	err := json.Unmarshal(f.Data, &out)
	data := []byte(out.Data)
	if err == nil && out.Encoding == "base64" {
		data, err = base64.StdEncoding.DecodeString(out.Data)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "frame_unreadable", "frame %d of the run cannot be read", f.N)
	}
	return data, nil
}

// TellQuestion writes a question to a person to standard error, with the commands that answer it.
func TellQuestion(ctx context.Context, i *cmdline.Invocation, api *client.Client, approval id.Approval) error {
	a, err := api.Approval(ctx, approval)
	if err != nil || !cmdline.Waits(a) {
		return err
	}
	p := i.Printer(i.Err)
	p.JSON = false
	cmdline.WriteQuestion(p, i.Own(a))
	p.Line("%s", p.Paint(term.Yellow, "it waits until a person says: agentbox approvals approve "+string(a.ID)+", or deny"))
	return nil
}

// Ending turns the result of a command into the exit code of the program that shows it, and says on standard error what no output said:
// also what the space lacked for a command that failed, with what to do about it. It returns ExitUnavailable for a command that was
// refused because no tier has a network.
func Ending(i *cmdline.Invocation, e run.Result) (code int) {
	say := func(kind fault.Kind, code, text, suggestion string) {
		cmdline.Complain(i.Err, i.Printer(i.Err), fault.New(kind, cmdline.First(code, "operation_failed"), "%s", text).With(suggestion))
	}
	switch e.Type {
	case run.ResPolicyDenied:
		say(fault.Denied, e.ReasonCode, cmdline.First(e.Reason, e.ReasonCode), e.Suggestion)
		return cmdline.ExitRefused
	case run.ResUnknown:
		say(fault.Unavailable, e.ReasonCode, "what became of the command is not known: "+e.Reason, e.Suggestion)
		return cmdline.ExitUnavailable
	case run.ResError:
		say(fault.Internal, e.ReasonCode, cmdline.First(e.Message, e.Category), e.Suggestion)
		return cmdline.ExitInternal
	}
	if e.ReasonCode == space.NoNetworkCode {
		say(fault.Unavailable, e.ReasonCode, e.Error, e.Suggestion)
		return cmdline.ExitUnavailable
	}
	if e.Error != "" {
		say(fault.Exhausted, cmdline.First(e.ReasonCode, e.Limit), e.Error, e.Suggestion)
	}
	if lacked := lacked(e.Lacks); lacked != "" && e.Error == "" && !e.OK() {
		say(fault.Conflict, "tier_lacks", "a "+cmdline.First(e.Tier, "nano")+" space has not "+lacked, e.Suggestion)
	}
	switch {
	case e.ExitCode == nil:
		return cmdline.ExitInternal
	case *e.ExitCode == 0 && !e.OK():
		return cmdline.ExitInternal
	}
	return *e.ExitCode
}
