package auditcmd

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Events is the command that reads the log.
func Events(i *cmdline.Invocation) *cobra.Command {
	var (
		q             client.EventFilter
		run, space    string
		inRoom        string
		thread, step  string
		follow        bool
		most          int
		since, before uint64
		cause         string
	)
	c := &cobra.Command{
		Use: "events", Short: "Read the log, or follow it", Args: cobra.NoArgs,
		Long: "Events prints entries of the log in order: the last ones, or those from a place on. With --json each is one line, complete.",
		Example: "  agentbox events --follow\n  agentbox events --run run_... --json | jq .event_type\n  agentbox events --type " +
			"tool.invoked,approval.requested --limit 50\n" +
			"  agentbox events --cause EVENT",
	}
	f := c.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on with what happens from now on")
	f.StringVar(&run, "run", "", "only events of this run")
	f.StringVar(&space, "space", "", "only events of this space")
	f.StringVar(&inRoom, "room", "", "only events of this room; places are those in its stream")
	f.StringVar(&thread, "thread", "", "only events of this thread")
	f.StringVar(&step, "step", "", "only events of this step")
	f.StringSliceVar(&q.Types, "type", nil, "only these types, at most 20, separated by commas")
	f.Uint64Var(&since, "from", 0, "from this place in the workspace on")
	f.Uint64Var(&before, "before", 0, "only events in front of this place")
	f.IntVar(&most, "limit", 50, "how many at most, 1 to 200; of those that are already there when following")
	f.StringVar(&cause, "cause", "", "show what led to this event, from its first cause on, and what it led to")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if cause != "" && follow {
			return cmdline.Usage("--cause shows what has happened and --follow what happens; use one of them")
		}
		if cause != "" {
			return causes(cmd.Context(), i, id.Event(cause))
		}
		q.Thread, q.Step = id.Thread(thread), id.Step(step)
		q.Run, q.From, q.Before, q.Limit = id.Run(run), since, before, most
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if q.Space, err = i.Named(cmd.Context(), api, space); err != nil {
			return err
		}
		if inRoom != "" {
			if q.Room, err = i.RoomNamed(cmd.Context(), api, inRoom); err != nil {
				return err
			}
		}
		p := i.Printer(i.Out)
		page, err := api.Events(cmd.Context(), q)
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			if err := WriteEvent(p, e); err != nil {
				return err
			}
		}
		if !follow {
			if len(page.Events) == 0 {
				i.Printer(i.Err).Line("No event matches.")
			}
			return nil
		}
		if before != 0 {
			return cmdline.Usage("--follow goes forward and --before backward; use one of them")
		}
		q.From, q.Limit = page.Next, 0
		return followEvents(cmd.Context(), i, api, q, p)
	}
	return c
}

// followEvents prints events until ctx ends. It reconnects after the last event.
func followEvents(ctx context.Context, i *cmdline.Invocation, api *client.Client, q client.EventFilter, p *term.Printer) error {
	for e, err := range api.FollowEvents(ctx, q) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := WriteEvent(p, e); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fault.New(fault.Unavailable, "stream_ended", "the daemon ended the stream of events").With("go on with: agentbox events --follow")
}

// WriteEvent writes one entry of the log.
func WriteEvent(p *term.Printer, e event.Event) error {
	if p.JSON {
		return p.Record(event.Show(e))
	}
	var data struct {
		Title    string `json:"title"`
		Summary  string `json:"summary"`
		Name     string `json:"name"`
		Tool     string `json:"tool_name"`
		Kind     string `json:"result_type"`
		Decision string `json:"decision"`
		Reason   string `json:"reason_code"`
		Answer   string `json:"answer"`
		Error    string `json:"error"`
		Content  string `json:"content_md"`
		Why      string `json:"reason"`
	}
	_ = json.Unmarshal(e.Data, &data) // what does not fit is not shown
	var words []string
	for _, w := range []string{data.Tool, data.Name, cmdline.First(data.Title, data.Summary, data.Content), data.Kind, data.Decision,
		data.Answer,
		data.Reason, data.Error} {
		if w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	if e.Type == model.EventDeferred {
		words = append(words, data.Why)
	}
	if e.Withheld != "" {
		words = append(words, "withheld: "+term.OneLine(string(e.Withheld), 20))
	}
	colour := ""
	switch {
	case strings.HasSuffix(e.Type, ".failed"), strings.HasSuffix(e.Type, ".denied"), strings.HasSuffix(e.Type, ".unknown"),
		data.Decision == "deny":
		colour = term.Red
	case strings.HasPrefix(e.Type, "approval."), data.Decision == "require_approval":
		colour = term.Yellow
	}
	rest := 0
	if p.Width > 0 {
		rest = max(20, p.Width-92)
	}
	p.Line("%s  %s  %s  %s  %s", p.Paint(term.Faint, term.Pad(term.Trimmed(float64(e.Seq)), 6)), p.Paint(term.Faint,
		e.OccurredAt.Local().Format("2006-01-02 15:04:05.000")), term.PadRight(term.OneLine(string(e.Principal), 0), 30),
		p.Paint(colour, term.PadRight(p.Cut(e.Type, 24), 20)), term.OneLine(strings.Join(words, " · "), rest))
	return nil
}
