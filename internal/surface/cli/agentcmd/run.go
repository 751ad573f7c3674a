package agentcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// agentRun returns the command that gives an agent a task.
func agentRun(i *cmdline.Invocation) *cobra.Command {
	var (
		space, room string
		detach, ask bool
		t           client.AgentTask
	)
	c := &cobra.Command{
		Use: "run BLUEPRINT TASK", Short: "Give an agent a task, and follow it to its report", Args: cobra.ExactArgs(2),
		Long: "Run begins a run of the agent that a blueprint defines. BLUEPRINT is the name of a registered one, or a file. A file is " +
			"registered first.\nTASK is the text of the task; - reads it from standard input. The agent works in a new space as the blueprint " +
			"says, unless\n--space names one. Turns, tool calls and questions go to standard error, the report goes to standard output. An " +
			"interruption\nof this command does not end the run: `agentbox agent stop RUN` does. `agentbox agent steer RUN TEXT` tells the agent " +
			"something\nwhile it works. Where policy asks a person, the person at this terminal is asked.",
		Example: "  agentbox agent run reporter \"sum up notes.md in three lines\" --space notes\n" +
			"  agentbox agent run reporter.yaml - < task.md",
	}
	c.Flags().IntVar(&t.Version, "version", 0, "version of the blueprint (default: the newest)")
	c.Flags().StringVar(&space, "space", "", "the space in which it works")
	cmdline.RoomFlag(i, c, &room)
	c.Flags().StringVar((*string)(&t.Thread), "thread", "",
		"a thread of the room; the agent is told what people post there (default: a new one)")
	c.Flags().StringVar(&t.Title, "title", "", "title of the run")
	c.Flags().BoolVar(&ask, "ask", false, "ask here what a person has to decide, also where the input is not a terminal")
	c.Flags().BoolVarP(&detach, "detach", "d", false, "print the run, and do not follow it")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		api, err := i.Connect(ctx)
		if err != nil {
			return err
		}
		if t.Task, err = taskText(i, args[1]); err != nil {
			return err
		}
		if t.Space, err = i.Named(ctx, api, space); err != nil {
			return err
		}
		if room != "" {
			if t.Room, err = i.RoomNamed(ctx, api, room); err != nil {
				return err
			}
		}
		name, err := registered(ctx, i, api, args[0])
		if err != nil {
			return err
		}
		made, err := api.RunBlueprint(ctx, name, t)
		if err != nil {
			return named(ctx, api, name, err)
		}
		if detach {
			return i.Show(made, func(p *term.Printer) { p.Line("%s", made.ID) })
		}
		p := i.Printer(i.Err)
		p.Line("%s has begun; Ctrl-C leaves it running", made.ID)
		return watched(ctx, i, api, made, ask)
	}
	return c
}

// agentFollow returns the command that follows an agent at work.
func agentFollow(i *cmdline.Invocation) *cobra.Command {
	var ask bool
	c := &cobra.Command{
		Use: "follow RUN", Short: "Follow an agent's run to its report, and answer its questions", Args: cobra.ExactArgs(1),
		Long: "Follow shows what an agent did and does, as `agentbox agent run` does, and ends as that does.",
	}
	c.Flags().BoolVar(&ask, "ask", false, "ask here what a person has to decide, also where the input is not a terminal")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		api, err := i.Connect(ctx)
		if err != nil {
			return err
		}
		shown, _, err := find(ctx, api, id.Run(args[0]))
		if err != nil {
			return err
		}
		return watched(ctx, i, api, shown.Run, ask)
	}
	return c
}

// taskText returns the text of a task, from standard input for -.
func taskText(i *cmdline.Invocation, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	const most = errand.MaxTask
	raw, err := io.ReadAll(io.LimitReader(i.In, most+1))
	if err == nil && len(raw) > most {
		err = cmdline.Usage("a task has at most %d bytes", most)
	}
	return string(raw), err
}

// registered returns the name of a blueprint. A file is registered first.
func registered(ctx context.Context, i *cmdline.Invocation, api *client.Client, arg string) (string, error) {
	if !strings.ContainsAny(arg, "./") {
		return arg, nil
	}
	f, err := os.Open(arg)
	if err != nil {
		return "", fault.Wrap(err, fault.NotFound, "file_unreadable", "%s cannot be read", term.OneLine(arg, 200))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, blueprint.MaxBytes+1))
	if err != nil {
		return "", err
	}
	if len(text) > blueprint.MaxBytes {
		return "", fault.New(fault.Invalid, "blueprint_invalid", "the blueprint has more than %d bytes, which is the limit", blueprint.MaxBytes)
	}
	checked, err := api.CheckBlueprint(ctx, string(text))
	if err != nil {
		return "", err
	}
	if !checked.Valid {
		wrong := ""
		if len(checked.Problems) > 0 {
			first := checked.Problems[0]
			wrong = fmt.Sprintf(": line %d, column %d: %s", first.Line, first.Column, first.Message)
		}
		return "", fault.New(fault.Invalid, "blueprint_invalid", "%s is not a blueprint%s", term.OneLine(arg, 200), wrong).
			With("see all that is wrong: agentbox blueprint validate " + arg)
	}
	if err := pinned(ctx, api, arg, checked.Drift); err != nil {
		return "", err
	}
	made, err := api.RegisterBlueprint(ctx, checked.Name, string(text))
	if err == nil {
		i.Printer(i.Err).Line("%s is version %d of %s", term.Plain(arg), made.Version, made.Name)
	}
	return checked.Name, err
}

// pinned refuses a file whose pins do not fit, before it becomes the newest version, which could not run.
func pinned(ctx context.Context, api *client.Client, file string, drift []blueprint.Drift) error {
	if len(drift) == 0 {
		return nil
	}
	known, err := api.Blueprints(ctx, false, client.Page{Limit: 1})
	if err != nil || known.Floating {
		return err
	}
	hints := append(cmdline.MissingHints(ctx, api, drift), "pin what is there now: agentbox blueprint lock "+cmdline.Word(file))
	return fault.New(fault.Conflict, "blueprint_unpinned", "%s is not registered: %s", term.OneLine(file, 200), blueprint.Unfit(drift)).
		With(strings.Join(hints, "\n"))
}

// named returns the error of a task for a registered blueprint, with the names that the person knows: those of blueprints, and of the file
// that is to be pinned.
func named(ctx context.Context, api *client.Client, name string, err error) error {
	if fault.CodeOf(err) != "blueprint_unpinned" {
		return cmdline.UnknownBlueprint(ctx, api, name, err)
	}
	refused, _ := cmdline.AsFault(err)
	file, hint := cmdline.BlueprintFile(name), ""
	if file == "" {
		file, hint = "FILE", "\nits text is shown by: agentbox blueprint show "+cmdline.Word(name)
	}
	return refused.With("pin what is there now: agentbox blueprint lock " + file + "\nthen register the file: agentbox blueprint register " +
		file + hint)
}

// watched follows a run to its end and prints its report. Where the daemon goes away, the error names the command that goes on.
func watched(ctx context.Context, i *cmdline.Invocation, api *client.Client, made run.Run, ask bool) error {
	err := followAgent(ctx, i, api, made, ask || i.Asks && i.Terminal && !i.JSON)
	if err == nil {
		err = reportOf(ctx, i, api, made)
	}
	if err != nil && ctx.Err() == nil && fault.KindOf(err) == fault.Unavailable {
		return goneAway(err, "follow the agent then: agentbox agent follow "+string(made.ID))
	}
	return err
}

// followAgent prints the work of an agent to standard error until its run ends. If ask is true, it asks the person at this terminal the
// questions.
func followAgent(ctx context.Context, i *cmdline.Invocation, api *client.Client, made run.Run, ask bool) error {
	p := i.Printer(i.Err)
	if !ask {
		return leftAtWork(ctx, made.ID, Follow(ctx, p, api, made, nil))
	}
	who := &person{i: i, api: api, p: p, run: made.ID}
	defer who.leave()
	return leftAtWork(ctx, made.ID, follow(ctx, p, api, made, who.answer, who))
}

// leftAtWork returns the error of a command that no longer follows a run, which goes on. It names the command that follows it again.
func leftAtWork(ctx context.Context, r id.Run, err error) error {
	again := "follow it again: agentbox agent follow " + string(r)
	if err != nil && ctx.Err() != nil {
		return fault.New(fault.Unavailable, cmdline.CodeInterrupted, "the agent goes on working on %s", r).With(again)
	}
	if f, ok := cmdline.AsFault(err); ok && f.Kind == fault.Unavailable {
		return f.With(strings.TrimPrefix(f.Suggestion+"\n"+again, "\n"))
	}
	return err
}

// Follow tells what an agent does, until its run ends. It calls answer for each question that a person has to answer. With nil the question
// is told, and waits.
func Follow(ctx context.Context, p *term.Printer, api *client.Client, made run.Run, answer func(context.Context, id.Approval) error) error {
	return follow(ctx, p, api, made, answer, &person{})
}

// recordedEvent is an event of the log, or an error instead of it.
type recordedEvent struct {
	event.Event
	err error
}

// follow is Follow with a person whose lines answer the questions that they have left open.
func follow(ctx context.Context, p *term.Printer, api *client.Client, made run.Run, answer func(context.Context, id.Approval) error,
	who *person) error {
	shown := client.EventFilter{From: 1, Correlation: made.Correlation, Types: []string{
		run.EventCreated, run.EventCompleted, run.EventFailed, run.EventCancelled, step.EventCreated, step.EventInvoked, step.EventFailed,
		step.EventUnknown, policy.DeniedType, policy.ApprovalRequestedType, model.EventDeferred, model.EventAnswered,
		room.EventMessageCreated,
	}}
	told := teller{p: p, api: api, made: made, titles: map[string]string{}, failed: map[id.Run]bool{}}
	following, stop := context.WithCancel(ctx)
	events := make(chan recordedEvent)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(events)
		for e, err := range api.FollowEvents(following, shown) {
			select {
			case events <- recordedEvent{e, err}:
			case <-following.Done():
				return
			}
		}
	})
	defer reading.Wait()
	defer stop()
	for {
		select {
		case e, more := <-events:
			switch {
			case !more:
				return ctx.Err()
			case e.err != nil:
				return e.err
			case e.Run == made.ID && (e.Type == run.EventCompleted || e.Type == run.EventFailed || e.Type == run.EventCancelled):
				told.tell(ctx, e.Event)
				return nil
			}
			approval := asked(e.Event)
			if answer == nil || approval == "" {
				told.tell(ctx, e.Event)
			} else if err := answer(ctx, approval); err != nil {
				return err
			}
		case line, more := <-who.replies():
			who.take(ctx, line, more)
		}
	}
}

// asked returns the approval that an event requests; "" for other events.
func asked(e event.Event) id.Approval {
	var said struct {
		Approval id.Approval `json:"approval_id"`
	}
	if e.Type != policy.ApprovalRequestedType || json.Unmarshal(e.Data, &said) != nil {
		return ""
	}
	return said.Approval
}

// reportOf prints how an agent's run ended.
func reportOf(ctx context.Context, i *cmdline.Invocation, api *client.Client, made run.Run) error {
	shown, err := api.Run(ctx, made.ID)
	if err != nil {
		return err
	}
	var out struct {
		Report string `json:"report"`
	}
	if shown.Reported != nil && len(shown.Reported.Output) > 0 {
		if err := json.Unmarshal(shown.Reported.Output, &out); err != nil {
			return err
		}
	}
	if err := i.Show(shown, func(p *term.Printer) {
		if out.Report != "" {
			p.Line("%s", term.Plain(out.Report))
		}
	}); err != nil {
		return err
	}
	runview.WriteKept(i.Printer(i.Err), shown.Run)
	if m, ok := errand.ReadMission(shown.Given); ok {
		i.Printer(i.Err).Line("%s", i.Printer(i.Err).Paint(term.Faint, "its files: agentbox files ls "+string(m.Space)))
	}
	if shown.Status == run.Succeeded {
		return nil
	}
	why := shown.Error
	if shown.Reported != nil && shown.Reported.Message != "" {
		why = shown.Reported.Message
	}
	cmdline.Complain(i.Err, i.Printer(i.Err), fault.New(fault.Conflict, "agent_run_failed", "the run %s: %s",
		runview.Stands(shown.Status), term.OneLine(why, 300)).With("see what it did: agentbox agent show "+string(made.ID)))
	return &cmdline.Ended{Code: cmdline.ExitInternal} // as every run that failed or was cancelled
}
