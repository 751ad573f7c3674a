package auditcmd

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

func auditRedact(i *cmdline.Invocation) *cobra.Command {
	var run, reason string
	c := &cobra.Command{
		Use: "redact [EVENT]", Short: "Destroy the data of an event, or of every event of a run, for good", Args: cobra.MaximumNArgs(1),
		Long: "Redact destroys the key under which the data of an event are sealed, and the data themselves: in the log, in the documents that " +
			"were folded\n" +
			"from them, in the content that the event brought, and in every backup without the keys. The event stays, with who, when, which " +
			"type and its hash,\n" +
			"so that the log verifies and earlier proofs hold. The reason stays too. It cannot be undone. docs/FORGETTING.md says what it cannot " +
			"reach.",
		Example: "  agentbox audit redact 0190163d-8694-739b-aea5-966c26f8ad91 --reason 'a password was pasted'\n  agentbox audit redact --run " +
			"RUN --reason 'the customer asked for it'",
	}
	c.Flags().StringVar(&run, "run", "", "every event of this run, which has to have ended")
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case (len(args) == 1) == (run != ""):
			return cmdline.Usage("name an event, or a run with --run")
		case reason == "":
			return cmdline.Usage("say why with --reason; it is what stays in the log")
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		event := ""
		if len(args) == 1 {
			event = args[0]
		}
		done, err := api.Redact(cmd.Context(), id.Event(event), id.Run(run), reason)
		if err != nil {
			return err
		}
		return i.Show(done, func(p *term.Printer) { writeRedacted(p, done) })
	}
	return c
}

func auditRedactions(i *cmdline.Invocation) *cobra.Command {
	var page client.Page
	c := &cobra.Command{Use: "redactions", Short: "List what was redacted, by whom and why", Args: cobra.NoArgs}
	c.Flags().IntVar(&page.Limit, "limit", 20, "how many at most, 1 to 100")
	c.Flags().StringVar(&page.Cursor, "cursor", "", "where to go on, as the page before says")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		list, err := api.Redactions(cmd.Context(), page)
		if err != nil {
			return err
		}
		return i.Show(list, func(p *term.Printer) {
			rows := make([][]term.Cell, len(list.Redactions))
			for n, r := range list.Redactions {
				rows[n] = []term.Cell{term.Text(string(r.Event)), term.Text(strconv.FormatUint(r.Seq, 10)), term.Text(r.Type),
					{Text: term.Ago(i.Clock.Now(), r.At), Colour: term.Faint},
					term.Text(string(r.Principal)), term.Text(r.Reason)}
			}
			p.Table("Nothing was redacted.", []string{"event", "place", "type", "redacted", "by", "reason"}, rows)
			if list.Next != "" {
				p.Line("%s", p.Paint(term.Faint, "more with --cursor "+list.Next))
			}
		})
	}
	return c
}

// writeRedacted writes the result of a redaction.
func writeRedacted(p *term.Printer, done client.Redactions) {
	p.Line("%s the data of %s destroyed; what stays is that there were some, and why they went", p.Paint(term.Green, "✓"),
		map[bool]string{true: "1 event are", false: fmt.Sprint(len(done.Redactions)) + " events are"}[len(done.Redactions) == 1])
	for n, r := range done.Redactions {
		if n == 10 {
			p.Line("  %s", p.Paint(term.Faint, fmt.Sprintf("and %d more: agentbox audit redactions", len(done.Redactions)-n)))
			break
		}
		p.Line("  event %d  %s  %s", r.Seq, r.Type, r.Event)
	}
	if done.Contents == nil {
		return
	}
	p.Line("  %s of content went with them", term.Count(done.Contents.Forgotten, "piece"))
	for _, list := range []struct {
		what  string
		names []string
	}{{"is named by something else and stays", done.Contents.Shared}, {"is a file of a living space; delete it there", done.Contents.Live},
		{"could not be reached", done.Contents.Missed}} {
		for _, name := range list.names {
			p.Line("  %s %s %s", p.Paint(term.Yellow, "!"), term.OneLine(name, 100), list.what)
		}
	}
}
