package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
)

// labels are the commands about how sensitive data are.
func labels(i *invocation) *cobra.Command {
	c := group("label", "Label data by sensitivity, and ask for access", labelSet(i), labelList(i), labelAccess(i))
	c.Aliases = []string{"labels"}
	c.Example = "  agentbox label set person ada sensitive_pii --purpose support\n  agentbox label access person ada --purpose support && " +
		"fetch-person ada"
	return c
}

func labelSet(i *invocation) *cobra.Command {
	var room string
	var purposes []string
	c := &cobra.Command{
		Use: "set TYPE ID LABEL", Short: "Label a resource: public, internal, restricted, confidential or sensitive_pii",
		Args: cobra.ExactArgs(3),
		Long: "What bears no label is internal. To let anybody nearer than before, by a lower label, another room or more purposes, takes an " +
			"admin.",
	}
	c.Flags().StringVar(&room, "room", "", "the only room in which it is used; restricted takes one")
	c.Flags().StringSliceVar(&purposes, "purpose", nil, "for which it is kept; more than once for more")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		l, err := api.Label(cmd.Context(), client.ResourceLabel{Type: args[0], ID: args[1], Label: label.Level(args[2]), Room: id.Room(room),
			Purposes: purposes})
		if err != nil {
			return err
		}
		return i.show(l, func(p *printer) { p.line("%s is %s", oneLine(l.Key(), 0), l.Level) })
	}
	return c
}

func labelList(i *invocation) *cobra.Command {
	var f client.LabelFilter
	var room string
	c := &cobra.Command{Use: "list [TYPE ID]", Aliases: []string{"ls", "show"}, Short: "List labels, or show that of one resource",
		Args: cobra.RangeArgs(0, 2)}
	c.Flags().StringVar(&f.Label, "label", "", "only these")
	c.Flags().StringVar(&room, "room", "", "only those of a room")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return usage("name the resource by its type and its id")
		}
		if len(args) == 2 {
			f.Type, f.ID = args[0], args[1]
		}
		f.Room = id.Room(room)
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := all(func(cursor string) ([]label.Label, string, error) {
			f.Page = client.Page{Cursor: cursor, Limit: 100}
			page, err := api.Labels(cmd.Context(), f)
			return page.Labels, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.list("labels", found, "", func(p *printer) {
			rows := make([][]cell, len(found))
			for n, l := range found {
				rows[n] = []cell{{oneLine(l.Key(), 60), ""}, text(string(l.Level)), text(string(l.Room)), text(strings.Join(l.Purposes, " "))}
			}
			p.table("Nothing is labelled: all of it is internal.", []string{"resource", "label", "room", "purposes"}, rows)
		})
	}
	return c
}

func labelAccess(i *invocation) *cobra.Command {
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
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		d, err := api.RequestAccess(cmd.Context(), r)
		if err != nil {
			return err
		}
		if err := i.show(d, func(p *printer) {
			p.line("%s  %s", p.paint(colourOf(d.Decision), d.Decision.String()), plain(d.Reason))
			if d.Suggestion != "" {
				p.line("%s %s", p.paint(yellow, "→"), plain(here(d.Suggestion)))
			}
			p.fields("reason code", d.Code, "label", string(d.Label.Level), "approval", string(d.Approval), "event", string(d.Event))
		}); err != nil {
			return err
		}
		switch {
		case !d.Blocked:
			return nil
		case d.Decision == policy.RequireApproval:
			return &ended{ExitWaiting}
		}
		return &ended{ExitRefused}
	}
	return c
}
