package policycmd

import (
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Labels are the commands about how sensitive data are.
func Labels(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("label", "Label data by sensitivity, and ask for access", labelSet(i), labelList(i), labelAccess(i))
	c.Aliases = []string{"labels"}
	c.Example = "  agentbox label set person ada sensitive_pii --purpose support\n  agentbox label access person ada --purpose support && " +
		"fetch-person ada"
	return c
}

func labelSet(i *cmdline.Invocation) *cobra.Command {
	var room string
	var purposes []string
	c := &cobra.Command{
		Use: "set TYPE ID LABEL", Short: "Label a resource: public, internal, restricted, confidential or sensitive_pii",
		Args: cobra.ExactArgs(3),
		Long: "A resource without a label is internal. Only an admin widens access: by a lower label, another room or more purposes.",
	}
	c.Flags().StringVar(&room, "room", "", "the only room in which it is used; restricted takes one")
	c.Flags().StringSliceVar(&purposes, "purpose", nil, "for which it is kept; more than once for more")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		l, err := api.Label(cmd.Context(), client.ResourceLabel{Type: args[0], ID: args[1], Label: label.Level(args[2]), Room: id.Room(room),
			Purposes: purposes})
		if err != nil {
			return err
		}
		return i.Show(l, func(p *term.Printer) { p.Line("%s is %s", term.OneLine(l.Key(), 0), l.Level) })
	}
	return c
}

func labelList(i *cmdline.Invocation) *cobra.Command {
	var f client.LabelFilter
	var room string
	c := &cobra.Command{Use: "list [TYPE ID]", Aliases: []string{"ls", "show"}, Short: "List labels, or show that of one resource",
		Args: cobra.RangeArgs(0, 2)}
	c.Flags().StringVar(&f.Label, "label", "", "only these")
	c.Flags().StringVar(&room, "room", "", "only those of a room")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return cmdline.Usage("name the resource by its type and its id")
		}
		if len(args) == 2 {
			f.Type, f.ID = args[0], args[1]
		}
		f.Room = id.Room(room)
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := cmdline.All(func(cursor string) ([]label.Label, string, error) {
			f.Page = client.Page{Cursor: cursor, Limit: 100}
			page, err := api.Labels(cmd.Context(), f)
			return page.Labels, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.List("labels", found, "", func(p *term.Printer) {
			rows := make([][]term.Cell, len(found))
			for n, l := range found {
				rows[n] = []term.Cell{{Text: term.OneLine(l.Key(), 60), Colour: ""}, term.Text(string(l.Level)), term.Text(string(l.Room)),
					term.Text(strings.Join(l.Purposes, " "))}
			}
			p.Table("Nothing is labelled: all of it is internal.", []string{"resource", "label", "room", "purposes"}, rows)
		})
	}
	return c
}

func labelAccess(i *cmdline.Invocation) *cobra.Command {
	var room string
	var r client.AccessRequest
	c := &cobra.Command{
		Use: "access TYPE ID", Short: "Ask for access to a labelled resource, right before it is read", Args: cobra.ExactArgs(2),
		Long: "Access exits with 0 where it is allowed, with 6 where it is refused, and with 7 where a person has to approve it first.",
	}
	c.Flags().StringVar(&r.Action, "action", "read", "read or write")
	c.Flags().StringVar(&room, "room", "", "the room from which it is asked")
	c.Flags().StringSliceVar(&r.Purposes, "purpose", nil, "for what; more than once for more")
	c.Flags().StringVar(&r.Justification, "justification", "", "why, where the purpose is none of the label's")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		r.Type, r.ID, r.Room = args[0], args[1], id.Room(room)
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		d, err := api.RequestAccess(cmd.Context(), r)
		if err != nil {
			return err
		}
		if err := i.Show(d, func(p *term.Printer) {
			p.Line("%s  %s", p.Paint(colourOf(d.Decision), d.Decision.String()), term.Plain(d.Reason))
			if d.Suggestion != "" {
				p.Line("%s %s", p.Paint(term.Yellow, "→"), term.Plain(here(d.Suggestion)))
			}
			p.Fields("reason code", d.Code, "label", string(d.Label.Level), "approval", string(d.Approval), "event", string(d.Event))
		}); err != nil {
			return err
		}
		switch {
		case !d.Blocked:
			return nil
		case d.Decision == policy.RequireApproval:
			return &cmdline.Ended{Code: cmdline.ExitWaiting}
		}
		return &cmdline.Ended{Code: cmdline.ExitRefused}
	}
	return c
}
