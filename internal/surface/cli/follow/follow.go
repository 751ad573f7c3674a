// Package follow starts runs and shows their output until they end.
package follow

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// Execution is how a run is watched.
type Execution struct {
	Stream, Ask, Strict bool
	Answer              func(ctx context.Context, api *client.Client, approval id.Approval) (bool, error) // nil: ask nobody here
	Context             []string
	Title, Key          string
	Retention           string
	Artifacts           []string // the files of the space that are kept as artifacts
}

// Operations reads an operations message as it is; the daemon judges it.
func Operations(i *cmdline.Invocation, name string) (client.RunRequest, error) {
	var (
		raw []byte
		err error
	)
	if name == "-" {
		raw, err = io.ReadAll(i.In)
	} else {
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return client.RunRequest{}, cmdline.Unreadable(err, name)
	}
	m, err := client.ParseMessage(raw)
	if err != nil {
		return client.RunRequest{}, fault.Wrap(err, fault.Invalid, "operation_invalid", "%s cannot be run",
			term.OneLine(name, 80)).With(`it looks like {"protocolVersion": "1.0", "operations": [{"type": "message", "content": "hello"}]}`)
	}
	return client.RunRequest{Message: m}, nil
}

// Execute starts a run and attends it.
func Execute(ctx context.Context, i *cmdline.Invocation, api *client.Client, s id.Space, q client.RunRequest, e Execution) (client.RunShown,
	error) {
	begun, err := api.CreateRun(ctx, s, q)
	if err != nil {
		return client.RunShown{}, err
	}
	return Attend(ctx, i, api, s, id.Run(begun.RunID), e)
}

// Attend follows a run until it ends, or until it waits for a person and this command does not ask one.
func Attend(ctx context.Context, i *cmdline.Invocation, api *client.Client, s id.Space, r id.Run, e Execution) (client.RunShown, error) {
	w := &watch{i: i, p: i.Printer(i.Out), quiet: !e.Stream}
	begun := TellOfQueue(ctx, i, api, s, r, "")
	defer begun()
	for {
		pending, err := w.follow(ctx, api, s, r)
		if ctx.Err() != nil {
			w.flush()
			return client.RunShown{}, fault.New(fault.Unavailable, cmdline.CodeInterrupted, "the run %s goes on", r).
				With("watch it with: agentbox runs watch " + string(r) + "\nend it with: agentbox runs cancel " + string(r))
		}
		if fault.KindOf(err) == fault.Unavailable {
			w.flush()
			return client.RunShown{}, away(r, err)
		}
		if err != nil {
			return client.RunShown{}, err
		}
		if pending == "" || e.Answer == nil {
			break
		}
		answered, err := e.Answer(ctx, api, pending)
		if err != nil {
			return client.RunShown{}, err
		}
		if !answered {
			break
		}
	}
	shown, err := api.Run(ctx, r)
	if fault.KindOf(err) == fault.Unavailable && ctx.Err() == nil {
		err = away(r, err)
	}
	return shown, err
}

// TellOfQueue says on standard error what a run waits for that is still queued after a second: an earlier run of its space, or a place in
// its workspace. The caller ends it with stop, and says in end how the waiting is ended, if that is not the usual way.
func TellOfQueue(ctx context.Context, i *cmdline.Invocation, api *client.Client, in id.Space, r id.Run, end string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		late, stopTimer := i.Clock.NewTimer(QueuedLong)
		defer stopTimer()
		select {
		case <-late:
		case <-ctx.Done():
			return
		}
		shown, err := api.Run(ctx, r)
		if err != nil || shown.Status != run.Queued {
			return // watching the run shows the error
		}
		if why := queued(ctx, i, api, in, r); why != "" {
			p := i.Printer(i.Err)
			p.JSON = false // without a word a program seems to hang
			p.Line("%s", p.Paint(term.Yellow, fmt.Sprintf("the run %s is queued: %s%s", r, why, end)))
		}
	}()
	return func() {
		cancel()
		<-told
	}
}

// queued names the reason why a run waits; "" if it cannot find one.
func queued(ctx context.Context, i *cmdline.Invocation, api *client.Client, in id.Space, r id.Run) string {
	for _, status := range []run.Status{run.AwaitingApproval, run.Running} {
		page, err := api.Runs(ctx, client.RunFilter{Space: in, Status: string(status), Page: client.Page{Limit: 1}})
		if err != nil || len(page.Runs) == 0 || page.Runs[0].ID == r {
			continue
		}
		if status == run.AwaitingApproval {
			return fmt.Sprintf("%s of the same space waits for a person; see agentbox approvals", page.Runs[0].ID)
		}
		return fmt.Sprintf("%s of the same space is not finished", page.Runs[0].ID)
	}
	if now, err := api.Top(ctx); err == nil && now.Tasks.Running >= now.Tasks.Most {
		return runview.Full(now.Tasks) + "; see agentbox runs list"
	}
	return ""
}

// QueuedLong is the time in the queue after which the command line names the reason.
const QueuedLong = time.Second

// away is the fault of a daemon that cannot be reached any more while a run is watched.
func away(r id.Run, err error) error {
	return fault.New(fault.Unavailable, fault.CodeOf(err), "the daemon has gone away while the run %s was watched: %s", r, err).
		With("it resumes what it can when it is started again: agentbox up\nthen watch the run with: agentbox runs watch " + string(r))
}

// Conclude shows a run that was attended and turns how it ended into how the command ends.
func Conclude(i *cmdline.Invocation, shown client.RunShown, e Execution) error {
	if !e.Stream || !i.JSON {
		if err := i.Show(shown, func(p *term.Printer) {
			p.Line("")
			runview.WriteRun(p, i, shown)
		}); err != nil {
			return err
		}
	}
	return Verdict(shown, e.Strict)
}

// Verdict turns how a run ended into how the command ends.
func Verdict(r client.RunShown, strict bool) error {
	switch r.Status {
	case run.AwaitingApproval:
		return &cmdline.Ended{Code: cmdline.ExitWaiting}
	case run.Failed, run.Cancelled:
		return &cmdline.Ended{Code: cmdline.ExitInternal}
	case run.Succeeded:
	default:
		return &cmdline.Ended{Code: cmdline.ExitUnavailable}
	}
	if slices.ContainsFunc(r.Operations, func(o run.Progress) bool { return o.Type == run.OpMalformed }) {
		return &cmdline.Ended{Code: cmdline.ExitInvalid} // the rest has run, but the request has a mistake
	}
	if !strict {
		if runview.RefusedWhole(r) {
			return &cmdline.Ended{Code: cmdline.ExitRefused}
		}
		return nil
	}
	code := cmdline.ExitOK
	for _, e := range r.Result.Events {
		switch {
		case e.Type == run.ResPolicyDenied:
			return &cmdline.Ended{Code: cmdline.ExitRefused}
		case e.Type == run.ResApprovalRequired || e.OperationID == "":
		case !e.OK():
			code = cmdline.ExitInternal
		}
	}
	if code != cmdline.ExitOK {
		return &cmdline.Ended{Code: code}
	}
	return nil
}

// watch shows the frames of a run.
type watch struct {
	i     *cmdline.Invocation
	p     *term.Printer
	quiet bool
	next  uint64 // number of the next frame; 0 for the first
	rest  []byte // of a character that came in two pieces
	open  bool   // the last line of output has no end yet
}

// follow shows frames until the run ends or waits for a person; then it returns the approval.
func (w *watch) follow(ctx context.Context, api *client.Client, s id.Space, r id.Run) (id.Approval, error) {
	for {
		var pending id.Approval
		done := false
		for f, err := range api.FollowRun(ctx, s, r, w.next) {
			if err != nil {
				return "", err
			}
			w.next = f.N + 1
			if done, pending, err = w.frame(f); err != nil {
				return "", err
			}
			if done || pending != "" {
				break
			}
		}
		if done || ctx.Err() != nil {
			return "", ctx.Err()
		}
		if pending == "" {
			continue
		}
		if a, err := api.Approval(ctx, pending); err != nil || cmdline.Waits(a) {
			return pending, err
		}
	}
}
