// Package runcmd has the commands that start, show and steer runs, also those that an engine executes.
package runcmd

import (
	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/auditcmd"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/replaycmd"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// Runs are the commands about runs.
func Runs(i *cmdline.Invocation) *cobra.Command {
	own := []*cobra.Command{runList(i), runShow(i), runWatch(i), runCancel(i), runRetain(i), replaycmd.RunExport(i), replaycmd.RunImport(i),
		replaycmd.RunReplay(i),
		runAttach(i), runSignal(i)}
	return cmdline.Group("runs", "List, show, watch, attach to, cancel, export and replay runs", append(own, engineRuns(i)...)...)
}

func runList(i *cmdline.Invocation) *cobra.Command {
	var (
		in, status string
		most       int
		background bool
	)
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List runs, the newest first", Args: cobra.NoArgs}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		named, err := i.Named(cmd.Context(), api, in)
		if err != nil {
			return err
		}
		page, err := api.Runs(cmd.Context(), client.RunFilter{Space: named, Status: status, Background: background,
			Page: client.Page{Limit: most}})
		if err != nil {
			return err
		}
		return i.List("runs", page.Runs, page.Next, func(p *term.Printer) {
			now := i.Clock.Now()
			rows := make([][]term.Cell, len(page.Runs))
			for n, r := range page.Runs {
				rows[n] = []term.Cell{term.Text(string(r.ID)), runview.WhereItStands(r.Run, r.Waits, now), {Text: runview.Progress(r.Run), Colour: ""},
					{Text: term.Ago(now, r.CreatedAt), Colour: term.Faint}, runview.Place(r.Run), term.Text(r.Title)}
			}
			p.Table("There are no runs; start one with: agentbox run SPACE OPERATIONS.json", []string{"run", "status", "done", "asked for", "space",
				"title"}, rows)
		})
	}
	c.Flags().StringVar(&in, "space", "", "only runs of this space")
	c.Flags().StringVar(&status, "status", "", "only those: queued, running, awaiting_approval, succeeded, failed or cancelled")
	c.Flags().BoolVar(&background, "background", false, "only background runs")
	c.Flags().IntVar(&most, "limit", 20, "how many at most, 1 to 100")
	return c
}

func runShow(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Short: "Show a run's timeline", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			r, err := api.Run(cmd.Context(), id.Run(args[0]))
			if err != nil {
				return err
			}
			if r.Engine {
				err = showEngineRun(cmd.Context(), i, api, r)
			} else {
				err = i.Show(r, func(p *term.Printer) { runview.WriteRun(p, i, r) })
			}
			if err != nil || i.JSON {
				return err
			}
			return auditcmd.LedTo(cmd.Context(), i, api, r.ID)
		},
	}
}

func runRetain(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "retain RUN TIME", Short: "Set how long the data of a run that has ended are kept", Args: cobra.ExactArgs(2),
		Long: "Retain sets how long the data of the run's events are kept, counted from the end of the run: in days, or in hours, minutes and\n" +
			"seconds; none means by the operator's rules. Then everything of the run that holds text is redacted for good. It takes an owner\n" +
			"or an admin.",
		Example: "  agentbox runs retain run_... 30d\n  agentbox runs retain run_... none",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			r, err := api.RetainRun(cmd.Context(), id.Run(args[0]), args[1])
			if err != nil {
				return err
			}
			return i.Show(r, func(p *term.Printer) {
				if r.Retention == 0 {
					p.Line("its data are kept as long as those of other runs")
				}
				runview.WriteRetention(p, r)
			})
		},
	}
}

func runWatch(i *cmdline.Invocation) *cobra.Command {
	e := follow.Execution{Stream: true}
	c := &cobra.Command{
		Use: "watch RUN", Short: "Follow a run until it ends or waits for a person", Args: cobra.ExactArgs(1),
		Long: "Watch shows what a run did and does, as agentbox run --stream does, and exits as that does.",
	}
	c.Flags().BoolVar(&e.Ask, "ask", false, "ask here what a person has to decide, and go on")
	c.Flags().BoolVar(&e.Strict, "strict", false, "exit with 6 when an operation was refused and with 1 when one failed")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if e.Ask {
			e.Answer = i.Answer
		}
		api, err := i.Connect(cmd.Context())
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
		shown, err := follow.Attend(cmd.Context(), i, api, r.Space, r.ID, e)
		if err != nil {
			return err
		}
		return follow.Conclude(i, shown, e)
	}
	return c
}

func runCancel(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "cancel RUN", Short: "End a run and every process of it", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		r, err := api.CancelRun(cmd.Context(), id.Run(args[0]), reason)
		if err != nil {
			return err
		}
		return i.Show(r, func(p *term.Printer) {
			if r.Status.Ended() {
				p.Line("%s %s", r.ID, runview.Stands(r.Status))
			} else {
				p.Line("%s is being ended", r.ID)
			}
		})
	}
	return c
}
