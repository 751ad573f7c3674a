package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// execute is the command that runs operations in a space.
func execute(i *invocation) *cobra.Command {
	var (
		e      execution
		agent  string
		detach bool
		b      beside
	)
	c := &cobra.Command{
		Use: "run SPACE OPERATIONS.json", Short: "Run operations in a space", Args: b.args, ValidArgsFunction: i.completeSpaces,
		Long: "Run sends an operations message of protocol 1.0 (- reads it from standard input), waits for the run, and shows its timeline.\n" +
			"With --background, a command stands in the place of the file: it runs beside the other runs of the space, until it ends, is " +
			"cancelled, or the space is destroyed.\n" +
			"SPACE is, here and everywhere, the id of a space, or its name where no other has it.\n" +
			"It exits with 0 when the run is completed, 6 when all of it was refused, 7 when it waits for a person, 1 when it failed; see also " +
			"--strict.",
		Example: "  agentbox run spc_... operations.json --stream\n  agentbox run spc_... operations.json --ask\n  generate | agentbox run " +
			"spc_... - --json\n  agentbox run --background --tty spc_... -- python3",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if b.background {
			return b.start(cmd.Context(), i, client.RunRequest{Title: e.title, Retention: e.retention, IdempotencyKey: e.key}, args[0], args[1:])
		}
		message, err := i.operations(args[1])
		if err != nil {
			return err
		}
		if agent != "" {
			message.Agent = &client.RunAgent{Name: agent}
		}
		if len(e.context) > 0 {
			message.Context = &client.RunContext{Files: e.context}
		}
		message.Title, message.Retention, message.IdempotencyKey = e.title, e.retention, e.key
		if e.ask {
			e.answer = i.answer
		}
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		if detach {
			begun, err := api.CreateRun(cmd.Context(), in, message)
			if err != nil {
				return err
			}
			return i.show(begun, func(p *printer) { p.line("%s", begun.RunID) })
		}
		shown, err := i.execute(cmd.Context(), api, in, message, e)
		if err != nil {
			return err
		}
		return i.conclude(shown, e)
	}
	b.flags(c)
	f := c.Flags()
	f.BoolVar(&e.stream, "stream", false, "show operations and output as they come; with --json one frame per line")
	f.BoolVar(&detach, "detach", false, "print the run's id and do not wait for it")
	f.BoolVar(&e.ask, "ask", false, "ask here what a person has to decide, and go on")
	f.BoolVar(&e.strict, "strict", false, "exit with 6 when an operation was refused and with 1 when one failed")
	f.StringVar(&agent, "agent", "", "name of the agent that acts (default: the space's own)")
	f.StringArrayVar(&e.context, "context", nil, "file of the space whose content opens the events; repeatable")
	f.StringVar(&e.title, "title", "", "what the run is about")
	f.StringVar(&e.retention, "retention", "",
		"how long what the run's events hold is kept once it has ended, as in 30d or 36h; then it is redacted (default: as long as the "+
			"operator's rules say)")
	f.StringVar(&e.key, "idempotency-key", "", "the same key and operations run once, however often they are sent")
	return c
}

// execution is how a run is watched.
type execution struct {
	stream, ask, strict bool
	answer              func(ctx context.Context, api *client.Client, approval id.Approval) (bool, error) // nil: nobody is asked here
	context             []string
	title, key          string
	retention           string
}

// operations reads an operations message as it is; the daemon judges it.
func (i *invocation) operations(name string) (client.RunRequest, error) {
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
		return client.RunRequest{}, unreadable(err, name)
	}
	m, err := client.ParseMessage(raw)
	if err != nil {
		return client.RunRequest{}, fault.Wrap(err, fault.Invalid, "operation_invalid", "%s cannot be run",
			oneLine(name, 80)).With(`it looks like {"protocolVersion": "1.0", "operations": [{"type": "message", "content": "hello"}]}`)
	}
	return client.RunRequest{Message: m}, nil
}

// execute starts a run and attends it.
func (i *invocation) execute(ctx context.Context, api *client.Client, s id.Space, q client.RunRequest, e execution) (client.RunShown,
	error) {
	begun, err := api.CreateRun(ctx, s, q)
	if err != nil {
		return client.RunShown{}, err
	}
	return i.attend(ctx, api, s, id.Run(begun.RunID), e)
}

// attend follows a run until it ends, or until it waits for a person and this command does not ask one.
func (i *invocation) attend(ctx context.Context, api *client.Client, s id.Space, r id.Run, e execution) (client.RunShown, error) {
	w := &watch{i: i, p: i.printer(i.Out), quiet: !e.stream}
	begun := i.tellOfQueue(ctx, api, s, r, "")
	defer begun()
	for {
		pending, err := w.follow(ctx, api, s, r)
		if ctx.Err() != nil {
			w.flush()
			return client.RunShown{}, fault.New(fault.Unavailable, codeInterrupted, "the run %s goes on", r).
				With("watch it with: agentbox runs watch " + string(r) + "\nend it with: agentbox runs cancel " + string(r))
		}
		if fault.KindOf(err) == fault.Unavailable {
			w.flush()
			return client.RunShown{}, away(r, err)
		}
		if err != nil {
			return client.RunShown{}, err
		}
		if pending == "" || e.answer == nil {
			break
		}
		answered, err := e.answer(ctx, api, pending)
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

// tellOfQueue says on standard error what a run waits for that is still queued after a second: an earlier run of its space, or a place in
// its workspace. The caller ends it with stop, and says in end how the waiting is ended, if that is not the usual way.
func (i *invocation) tellOfQueue(ctx context.Context, api *client.Client, in id.Space, r id.Run, end string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		late, stopTimer := i.Clock.NewTimer(queuedLong)
		defer stopTimer()
		select {
		case <-late:
		case <-ctx.Done():
			return
		}
		shown, err := api.Run(ctx, r)
		if err != nil || shown.Status != run.Queued {
			return // what is wrong shows where the run is watched
		}
		if why := i.queued(ctx, api, in, r); why != "" {
			p := i.printer(i.Err)
			p.json = false // without a word a program seems to hang
			p.line("%s", p.paint(yellow, fmt.Sprintf("the run %s is queued: %s%s", r, why, end)))
		}
	}()
	return func() {
		cancel()
		<-told
	}
}

// queued says what a run waits for; "" where that cannot be found out.
func (i *invocation) queued(ctx context.Context, api *client.Client, in id.Space, r id.Run) string {
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
		return full(now.Tasks) + "; see agentbox runs list"
	}
	return ""
}

// queuedLong is how long a run is queued before it is said what it waits for.
const queuedLong = time.Second

// away is the fault of a daemon that cannot be reached any more while a run is watched.
func away(r id.Run, err error) error {
	return fault.New(fault.Unavailable, fault.CodeOf(err), "the daemon has gone away while the run %s was watched: %s", r, err).
		With("it resumes what it can when it is started again: agentbox up\nthen watch the run with: agentbox runs watch " + string(r))
}

// conclude shows a run that was attended and turns how it ended into how the command ends.
func (i *invocation) conclude(shown client.RunShown, e execution) error {
	if !e.stream || !i.json {
		if err := i.show(shown, func(p *printer) {
			p.line("")
			p.run(i, shown)
		}); err != nil {
			return err
		}
	}
	return verdict(shown, e.strict)
}

// verdict turns how a run ended into how the command ends.
func verdict(r client.RunShown, strict bool) error {
	switch r.Status {
	case run.AwaitingApproval:
		return &ended{ExitWaiting}
	case run.Failed, run.Cancelled:
		return &ended{ExitInternal}
	case run.Succeeded:
	default:
		return &ended{ExitUnavailable}
	}
	if slices.ContainsFunc(r.Operations, func(o run.Progress) bool { return o.Type == run.OpMalformed }) {
		return &ended{ExitInvalid} // the rest has run; what was sent has a mistake all the same
	}
	if !strict {
		if refusedWhole(r) {
			return &ended{ExitRefused}
		}
		return nil
	}
	code := ExitOK
	for _, e := range r.Result.Events {
		switch {
		case e.Type == run.ResPolicyDenied:
			return &ended{ExitRefused}
		case e.Type == run.ResApprovalRequired || e.OperationID == "":
		case !e.OK():
			code = ExitInternal
		}
	}
	if code != ExitOK {
		return &ended{code}
	}
	return nil
}

// watch shows the frames of a run.
type watch struct {
	i     *invocation
	p     *printer
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
		if a, err := api.Approval(ctx, pending); err != nil || waits(a) {
			return pending, err
		}
	}
}

// refusedWhole reports whether policy refused every operation of a run, so that nothing at all was done. The run itself has succeeded: it
// was executed to its end, and each operation has its result.
func refusedWhole(r client.RunShown) bool {
	refused := 0
	for _, e := range r.Result.Events {
		switch {
		case e.Type == run.ResPolicyDenied:
			refused++
		case e.Type != run.ResApprovalRequired && e.OperationID != "":
			return false
		}
	}
	return refused > 0
}
