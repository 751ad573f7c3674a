package runcmd

import (
	"io"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// Timeline shows when a run did what.
func Timeline(i *cmdline.Invocation) *cobra.Command {
	var (
		file  string
		force bool
	)
	c := &cobra.Command{
		Use: "timeline RUN", Short: "Show the time line of a run, as a table or as an SVG picture", Args: cobra.ExactArgs(1),
		Long: "Timeline shows the time of a run: when it was queued, when each operation worked, and when it waited for a person. Of a run " +
			"that engines\n" +
			"execute it shows their attempts, and the steps and tool calls in them.\n" +
			"With --svg it draws that as a picture that needs nothing but a browser.",
		Example: "  agentbox timeline run_...\n  agentbox timeline run_... --svg run.svg",
	}
	c.Flags().StringVar(&file, "svg", "", "draw a picture into this file; - writes it to standard output")
	c.Flags().BoolVarP(&force, "force", "f", false, "replace the file if it exists")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		r, err := api.Run(cmd.Context(), id.Run(args[0]))
		if err != nil {
			return err
		}
		spans, err := spansOf(cmd, api, r.Run)
		if err != nil {
			return err
		}
		if file != "" {
			return cmdline.Emit(i, file, force, func(w io.Writer) error {
				_, err := io.WriteString(w, runview.Waterfall(r.Run, spans))
				return err
			})
		}
		return i.Show(timelineShown{Run: r.ID, Status: r.Status, Spans: spans}, func(p *term.Printer) { runview.WriteWaterfall(p, r, spans) })
	}
	return c
}

// timelineShown is a timeline in JSON.
type timelineShown struct {
	Run    id.Run     `json:"run_id"`
	Status run.Status `json:"status"`
	Spans  []run.Span `json:"spans"`
}

// spansOf reads the events of a run and tells its time from them.
func spansOf(cmd *cobra.Command, api *client.Client, r run.Run) ([]run.Span, error) {
	var all []event.Event
	q := client.EventFilter{Run: r.ID, From: 1, Limit: 200}
	for {
		page, err := api.Events(cmd.Context(), q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Events...)
		if len(page.Events) < q.Limit {
			return run.Spans(r, all), nil
		}
		q.From = page.Next
	}
}
