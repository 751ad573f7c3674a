package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// runs are the commands about runs.
func runs(i *invocation) *cobra.Command {
	own := []*cobra.Command{runList(i), runShow(i), runWatch(i), runCancel(i), runRetain(i), runExport(i), runImport(i), runReplay(i),
		runAttach(i), runSignal(i)}
	return group("runs", "List, show, watch, attach to, cancel, export and replay runs", append(own, engineRuns(i)...)...)
}

func runList(i *invocation) *cobra.Command {
	var (
		in, status string
		most       int
		background bool
	)
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List runs, the newest first", Args: cobra.NoArgs}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		named, err := i.named(cmd.Context(), api, in)
		if err != nil {
			return err
		}
		page, err := api.Runs(cmd.Context(), client.RunFilter{Space: named, Status: status, Background: background,
			Page: client.Page{Limit: most}})
		if err != nil {
			return err
		}
		return i.list("runs", page.Runs, page.Next, func(p *printer) {
			now := i.Clock.Now()
			rows := make([][]cell, len(page.Runs))
			for n, r := range page.Runs {
				rows[n] = []cell{text(string(r.ID)), whereItStands(r, now), {progress(r), ""}, {ago(now, r.CreatedAt), faint}, place(r), text(r.Title)}
			}
			p.table("There are no runs; start one with: agentbox run SPACE OPERATIONS.json", []string{"run", "status", "done", "asked for", "space",
				"title"}, rows)
		})
	}
	c.Flags().StringVar(&in, "space", "", "only runs of this space")
	c.Flags().StringVar(&status, "status", "", "only those: queued, running, awaiting_approval, succeeded, failed or cancelled")
	c.Flags().BoolVar(&background, "background", false, "only background runs")
	c.Flags().IntVar(&most, "limit", 20, "how many at most, 1 to 100")
	return c
}

// place is where a run was executed.
func place(r run.Run) cell {
	if r.Imported != nil {
		return cell{"imported", yellow}
	}
	return text(string(r.Space))
}

func progress(r run.Run) string {
	done := 0
	for _, o := range r.Operations {
		if o.State == run.Done {
			done++
		}
	}
	return fmt.Sprintf("%d/%d", done, len(r.Operations))
}

// state is a run's status in its colour.
func state(s run.Status) cell {
	colour := map[run.Status]string{run.Succeeded: green, run.Failed: red, run.Cancelled: red, run.AwaitingApproval: yellow,
		run.Running: cyan}[s]
	return cell{oneLine(string(s), 40), colour}
}

// whereItStands is a run's status, and for how long its engine was silent where its claim has expired.
func whereItStands(r run.Run, now time.Time) cell {
	if c := r.Claim; c != nil && r.Status == run.Running && now.After(c.Until) {
		return cell{fmt.Sprintf("%s, engine silent for %s", r.Status, duration(now.Sub(c.Renewed).Truncate(time.Second))), yellow}
	}
	return state(r.Status)
}

func runShow(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Short: "Show a run's timeline", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			r, err := api.Run(cmd.Context(), id.Run(args[0]))
			if err != nil {
				return err
			}
			if r.Engine {
				err = i.showEngineRun(cmd.Context(), api, r)
			} else {
				err = i.show(r, func(p *printer) { p.run(i, r) })
			}
			if err != nil || i.json {
				return err
			}
			return i.ledTo(cmd.Context(), api, r.ID)
		},
	}
}

// failures says how many operations did not succeed, for a run that has succeeded may hold some.
func failures(r client.RunShown) string {
	if r.Status == run.Succeeded && refusedWhole(r) {
		return ", but all of it was refused: nothing was done"
	}
	failed := 0
	for _, o := range r.Operations {
		if o.State == run.Done && !o.OK {
			failed++
		}
	}
	switch failed {
	case 0:
		return ""
	case 1:
		return ", 1 operation did not succeed"
	}
	return fmt.Sprintf(", %s did not succeed", count(failed, "operation"))
}

// run writes a run: its timeline, then where it stands and what to do next.
func (p *printer) run(i *invocation, r client.RunShown) {
	if r.Engine {
		p.order(r)
	} else {
		p.timeline(r.Run, r.Result.Events)
	}
	status := whereItStands(r.Run, i.Clock.Now())
	took := ""
	if !r.EndedAt.IsZero() && !r.StartedAt.IsZero() {
		took = " in " + duration(r.EndedAt.Sub(r.StartedAt))
	}
	p.line("\nrun %s: %s%s%s", p.paint(bold, string(r.ID)), p.paint(status.colour, status.text), took, p.paint(red, failures(r)))
	if r.Error != "" {
		p.line("%s", p.paint(red, plain(r.Error)))
	}
	p.imported(r.Run)
	p.retention(r.Run)
	if _, approval := r.Pending(); approval != "" {
		p.line("%s", wrapped("it waits for a person: agentbox approvals show|approve|deny "+string(approval), p.width, 2))
	}
}

// retention says how long the data of a run are kept, where that was said of it.
func (p *printer) retention(r run.Run) {
	keep := keptFor(r.Retention)
	switch {
	case !r.Forgotten.IsZero():
		p.line("%s", p.paint(yellow, "its data were kept for "+keep+" and redacted at "+r.Forgotten.Format(time.RFC3339)))
	case !r.KeptUntil.IsZero():
		p.line("its data are kept for %s, until %s, and redacted then", keep, r.KeptUntil.Format(time.RFC3339))
	case r.Retention > 0:
		p.line("its data are kept for %s once it has ended, and redacted then", keep)
	}
}

// keptFor writes a time for which data are kept as it is asked for.
func keptFor(seconds int64) string {
	const day = 24 * 60 * 60
	if seconds > 0 && seconds%day == 0 {
		return strconv.FormatInt(seconds/day, 10) + "d"
	}
	text := (time.Duration(seconds) * time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

func runRetain(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "retain RUN TIME", Short: "Set how long the data of a run that has ended are kept", Args: cobra.ExactArgs(2),
		Long: "Retain sets for how long what the run's events hold is kept, counted from the run's end: in days, or hours, minutes and " +
			"seconds, or none for as long as\n" +
			"the operator's rules say. When it is over everything of the run that holds text is redacted, for good. Only owners and admins may.",
		Example: "  agentbox runs retain run_... 30d\n  agentbox runs retain run_... none",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			r, err := api.RetainRun(cmd.Context(), id.Run(args[0]), args[1])
			if err != nil {
				return err
			}
			return i.show(r, func(p *printer) {
				if r.Retention == 0 {
					p.line("its data are kept as long as those of other runs")
				}
				p.retention(r)
			})
		},
	}
}

func runWatch(i *invocation) *cobra.Command {
	e := execution{stream: true}
	c := &cobra.Command{
		Use: "watch RUN", Short: "Follow a run until it ends or waits for a person", Args: cobra.ExactArgs(1),
		Long: "Watch shows what a run did and does, as agentbox run --stream does, and exits as that does.",
	}
	c.Flags().BoolVar(&e.ask, "ask", false, "ask here what a person has to decide, and go on")
	c.Flags().BoolVar(&e.strict, "strict", false, "exit with 6 when an operation was refused and with 1 when one failed")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if e.ask {
			e.answer = i.answer
		}
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		r, err := api.Run(cmd.Context(), id.Run(args[0]))
		if err != nil {
			return err
		}
		if r.Engine {
			return fault.New(fault.Invalid, "run_of_engine", "an engine executes this run, which has no output to watch").With(
				"watch its events: agentbox events --follow --run " + string(r.ID))
		}
		shown, err := i.attend(cmd.Context(), api, r.Space, r.ID, e)
		if err != nil {
			return err
		}
		return i.conclude(shown, e)
	}
	return c
}

func runCancel(i *invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "cancel RUN", Short: "End a run and every process of it", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		r, err := api.CancelRun(cmd.Context(), id.Run(args[0]), reason)
		if err != nil {
			return err
		}
		return i.show(r, func(p *printer) {
			if r.Status.Ended() {
				p.line("%s is %s", r.ID, r.Status)
			} else {
				p.line("%s is being ended", r.ID)
			}
		})
	}
	return c
}
