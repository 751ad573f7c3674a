package policycmd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/incident"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Incidents are the commands about incidents.
func Incidents(i *cmdline.Invocation) *cobra.Command {
	list := incidentList(i)
	c := cmdline.Group("incident", "Track incidents and what was learned from them", incidentOpen(i), list, incidentShow(i),
		incidentChange(i, "rca", "rca INCIDENT SUMMARY", "Write down the root cause", 2, func(args []string, _ []string) map[string]any {
			return map[string]any{"summary": args[1]}
		}),
		incidentChange(i, "learning", "learn INCIDENT NOTE", "Write down what was learned", 2, func(args []string, tags []string) map[string]any {
			return map[string]any{"note": args[1], "tags": tags}
		}),
		incidentChange(i, "close", "close INCIDENT [REASON]", "Close it; that takes a root cause and a learning", 1, func(args []string,
			_ []string) map[string]any {
			if len(args) > 1 {
				return map[string]any{"reason": args[1]}
			}
			return map[string]any{}
		}))
	c.Aliases = []string{"incidents"}
	c.Example = "  agentbox incident open 'the wrong mail was sent' --severity high\n  agentbox incident rca inc_... 'the template was " +
		"stale'\n" +
		"  agentbox incident learn inc_... 'pin templates by hash' --tag templates\n  agentbox incident close inc_..."
	return c
}

func incidentOpen(i *cmdline.Invocation) *cobra.Command {
	var r client.IncidentRequest
	var details, room, run string
	c := &cobra.Command{Use: "open TITLE", Short: "Open an incident", Args: cobra.ExactArgs(1)}
	f := c.Flags()
	f.StringVar(&r.Severity, "severity", "", "how bad: low, medium, high or critical (default medium)")
	f.StringVar(&r.Category, "category", "", "a word of your own by which you sort them")
	f.StringVar(&details, "details", "", "more, as a JSON object")
	cmdline.OnlyRoom(i, c, &room, "the room in which it happened, by its id or title")
	f.StringVar(&run, "run", "", "the run in which it happened")
	f.StringVar(&r.Key, "key", "", "opens it once: an incident with the same key is shown instead")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		r.Title, r.Run = args[0], id.Run(run)
		if details != "" {
			if r.Details = json.RawMessage(details); !json.Valid(r.Details) {
				return cmdline.Usage("--details is not JSON")
			}
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if r.Room, err = cmdline.RoomOnly(cmd.Context(), i, api, room); err != nil {
			return err
		}
		made, err := api.OpenIncident(cmd.Context(), r)
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) {
			if made.Deduped {
				p.Line("%s was opened before", made.ID)
				return
			}
			p.Line("%s is open", made.ID)
		})
	}
	return c
}

// colourOfSeverity is how a severity is shown.
func colourOfSeverity(s incident.Severity) string {
	return map[incident.Severity]string{incident.High: term.Yellow, incident.Critical: term.Red}[s]
}

func incidentList(i *cmdline.Invocation) *cobra.Command {
	var f client.IncidentFilter
	var room, run string
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List incidents, the newest first", Args: cobra.NoArgs}
	c.Flags().StringVar(&f.Status, "status", "", "only those: open or closed")
	c.Flags().StringVar(&room, "room", "", "only those of a room")
	c.Flags().StringVar(&run, "run", "", "only those of a run")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		f.Room, f.Run = id.Room(room), id.Run(run)
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := cmdline.All(func(cursor string) ([]incident.Incident, string, error) {
			f.Page = client.Page{Cursor: cursor, Limit: 100}
			page, err := api.Incidents(cmd.Context(), f)
			return page.Incidents, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.List("incidents", found, "", func(p *term.Printer) {
			now := i.Clock.Now()
			rows := make([][]term.Cell, len(found))
			for n, x := range found {
				rows[n] = []term.Cell{
					term.Text(string(x.ID)), term.Text(string(x.Status)), {Text: string(x.Severity),
						Colour: colourOfSeverity(x.Severity)}, {Text: term.Ago(now, x.OpenedAt), Colour: term.Faint},
					term.Text(missingOf(x)), term.Text(x.Title),
				}
			}
			p.Table("There are no incidents.", []string{"incident", "status", "severity", "opened", "missing", "what"}, rows)
		})
	}
	return c
}

// missingOf says what an open incident needs before it can be closed.
func missingOf(x incident.Incident) string {
	var missing []string
	if x.Status == incident.Open && x.RCA == nil {
		missing = append(missing, "root cause")
	}
	if x.Status == incident.Open && len(x.Learning) == 0 {
		missing = append(missing, "learning")
	}
	return strings.Join(missing, ", ")
}

func incidentShow(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show INCIDENT", Short: "Show an incident, its cause and what was learned", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			x, err := api.Incident(cmd.Context(), id.Incident(args[0]))
			if err != nil {
				return err
			}
			return i.Show(x, func(p *term.Printer) { writeIncident(p, i, x) })
		},
	}
}

func writeIncident(p *term.Printer, i *cmdline.Invocation, x incident.Incident) {
	now := i.Clock.Now()
	p.Line("%s  %s", p.Paint(term.Bold, term.OneLine(x.Title, 0)), p.Paint(term.Faint, string(x.ID)))
	cause, closed := "", ""
	if x.RCA != nil {
		cause = cmdline.First(x.RCA.Summary, string(x.RCA.Analysis))
	}
	if x.Status == incident.Closed {
		closed = term.Ago(now, x.ClosedAt) + " by " + string(x.ClosedBy)
	}
	p.Fields("status", string(x.Status), "severity", string(x.Severity), "category", x.Category, "opened", term.Ago(now, x.OpenedAt)+" by "+
		string(x.OpenedBy),
		"room", string(x.Room), "run", string(x.Run), "details", string(x.Details), "root cause", cause, "closed", closed, "reason",
		x.CloseReason)
	for _, l := range x.Learning {
		tags := ""
		for _, tag := range l.Tags {
			tags += " #" + term.OneLine(tag, 0)
		}
		p.Line("learned  %s%s", term.OneLine(l.Note, 0), p.Paint(term.Faint, tags))
	}
	if missing := missingOf(x); missing != "" {
		p.Line("%s", p.Paint(term.Faint, fmt.Sprintf("to close it, it needs: %s", missing)))
	}
}

// incidentChange is a command that changes an incident and shows it.
func incidentChange(i *cmdline.Invocation, word, use, short string, least int, body func(args,
	tags []string) map[string]any) *cobra.Command {
	var tags []string
	c := &cobra.Command{Use: use, Short: short, Args: cobra.RangeArgs(least, 2)}
	if word == "learning" {
		c.Flags().StringSliceVar(&tags, "tag", nil, "a word by which it is found again; more than once for more")
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		x, err := api.ChangeIncident(cmd.Context(), id.Incident(args[0]), word, body(args, tags))
		if err != nil {
			return err
		}
		return i.Show(x, func(p *term.Printer) { writeIncident(p, i, x) })
	}
	return c
}
