package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/incident"
)

// incidents are the commands about what went wrong.
func incidents(i *invocation) *cobra.Command {
	list := incidentList(i)
	c := group("incident", "Track incidents and what was learned from them", incidentOpen(i), list, incidentShow(i),
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

func incidentOpen(i *invocation) *cobra.Command {
	var r client.IncidentRequest
	var details, room, run string
	c := &cobra.Command{Use: "open TITLE", Short: "Open an incident", Args: cobra.ExactArgs(1)}
	f := c.Flags()
	f.StringVar(&r.Severity, "severity", "", "how bad: low, medium, high or critical (default medium)")
	f.StringVar(&r.Category, "category", "", "a word of your own by which you sort them")
	f.StringVar(&details, "details", "", "more, as a JSON object")
	i.onlyRoom(c, &room, "the room in which it happened, by its id or title")
	f.StringVar(&run, "run", "", "the run in which it happened")
	f.StringVar(&r.Key, "key", "", "opens it once: an incident with the same key is shown instead")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		r.Title, r.Run = args[0], id.Run(run)
		if details != "" {
			if r.Details = json.RawMessage(details); !json.Valid(r.Details) {
				return usage("--details is not JSON")
			}
		}
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		if r.Room, err = i.roomOnly(cmd.Context(), api, room); err != nil {
			return err
		}
		made, err := api.OpenIncident(cmd.Context(), r)
		if err != nil {
			return err
		}
		return i.show(made, func(p *printer) {
			if made.Deduped {
				p.line("%s was opened before", made.ID)
				return
			}
			p.line("%s is open", made.ID)
		})
	}
	return c
}

// colourOfSeverity is how a severity is shown.
func colourOfSeverity(s incident.Severity) string {
	return map[incident.Severity]string{incident.High: yellow, incident.Critical: red}[s]
}

func incidentList(i *invocation) *cobra.Command {
	var f client.IncidentFilter
	var room, run string
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List incidents, the newest first", Args: cobra.NoArgs}
	c.Flags().StringVar(&f.Status, "status", "", "only those: open or closed")
	c.Flags().StringVar(&room, "room", "", "only those of a room")
	c.Flags().StringVar(&run, "run", "", "only those of a run")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		f.Room, f.Run = id.Room(room), id.Run(run)
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := all(func(cursor string) ([]incident.Incident, string, error) {
			f.Page = client.Page{Cursor: cursor, Limit: 100}
			page, err := api.Incidents(cmd.Context(), f)
			return page.Incidents, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.list("incidents", found, "", func(p *printer) {
			now := i.Clock.Now()
			rows := make([][]cell, len(found))
			for n, x := range found {
				rows[n] = []cell{
					text(string(x.ID)), text(string(x.Status)), {string(x.Severity), colourOfSeverity(x.Severity)}, {ago(now, x.OpenedAt), faint},
					text(missingOf(x)), text(x.Title),
				}
			}
			p.table("There are no incidents.", []string{"incident", "status", "severity", "opened", "missing", "what"}, rows)
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

func incidentShow(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show INCIDENT", Short: "Show an incident, its cause and what was learned", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			x, err := api.Incident(cmd.Context(), id.Incident(args[0]))
			if err != nil {
				return err
			}
			return i.show(x, func(p *printer) { p.incident(i, x) })
		},
	}
}

func (p *printer) incident(i *invocation, x incident.Incident) {
	now := i.Clock.Now()
	p.line("%s  %s", p.paint(bold, oneLine(x.Title, 0)), p.paint(faint, string(x.ID)))
	cause, closed := "", ""
	if x.RCA != nil {
		cause = first(x.RCA.Summary, string(x.RCA.Analysis))
	}
	if x.Status == incident.Closed {
		closed = ago(now, x.ClosedAt) + " by " + string(x.ClosedBy)
	}
	p.fields("status", string(x.Status), "severity", string(x.Severity), "category", x.Category, "opened", ago(now, x.OpenedAt)+" by "+
		string(x.OpenedBy),
		"room", string(x.Room), "run", string(x.Run), "details", string(x.Details), "root cause", cause, "closed", closed, "reason",
		x.CloseReason)
	for _, l := range x.Learning {
		tags := ""
		for _, tag := range l.Tags {
			tags += " #" + oneLine(tag, 0)
		}
		p.line("learned  %s%s", oneLine(l.Note, 0), p.paint(faint, tags))
	}
	if missing := missingOf(x); missing != "" {
		p.line("%s", p.paint(faint, fmt.Sprintf("to close it, it needs: %s", missing)))
	}
}

// incidentChange is a command that changes an incident and shows it.
func incidentChange(i *invocation, word, use, short string, least int, body func(args, tags []string) map[string]any) *cobra.Command {
	var tags []string
	c := &cobra.Command{Use: use, Short: short, Args: cobra.RangeArgs(least, 2)}
	if word == "learning" {
		c.Flags().StringSliceVar(&tags, "tag", nil, "a word by which it is found again; more than once for more")
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		x, err := api.ChangeIncident(cmd.Context(), id.Incident(args[0]), word, body(args, tags))
		if err != nil {
			return err
		}
		return i.show(x, func(p *printer) { p.incident(i, x) })
	}
	return c
}
