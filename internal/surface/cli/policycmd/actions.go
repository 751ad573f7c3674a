package policycmd

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// ActionTypes are the commands about the action types that a workspace declares for its own programs.
func ActionTypes(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("actions", "Declare action types for what your programs do outside", actionTypeList(i), actionTypeShow(i),
		actionTypeDeclare(i),
		actionTypeRetire(i))
	c.Aliases = []string{"action"}
	c.Example = "  agentbox actions declare deploy.production 'deploy a build to production' --effect network --asks --target host\n" +
		"  agentbox policy evaluate deploy.production --target web1.example.com && deploy"
	return c
}

func actionTypeList(i *cmdline.Invocation) *cobra.Command {
	var retired bool
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List the action types that this workspace declared", Args: cobra.NoArgs}
	c.Flags().BoolVar(&retired, "retired", false, "the retired ones, too")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := cmdline.All(func(cursor string) ([]policy.ActionType, string, error) {
			page, err := api.ActionTypes(cmd.Context(), retired, client.Page{Cursor: cursor, Limit: 100})
			return page.Types, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.List("action_types", found, "", func(p *term.Printer) {
			rows := make([][]term.Cell, len(found))
			for n, t := range found {
				asks := ""
				if t.Asks {
					asks = "always asks"
				}
				if !t.Living() {
					asks = "retired"
				}
				rows[n] = []term.Cell{term.Text(t.Name), term.Text(strconv.Itoa(t.Version)), term.Text(string(t.SideEffect)), term.Text(string(t.Zone)),
					term.Text(asks),
					term.Text(t.Description)}
			}
			p.Table("This workspace has declared no action types; `agentbox policy actions` lists the built-in ones.", []string{"action", "version",
				"effect", "zone", "approval", "what"}, rows)
		})
	}
	return c
}

func actionTypeShow(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show ACTION", Short: "Show an action type that this workspace declared", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			t, err := api.ActionType(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return i.Show(t, func(p *term.Printer) { writeActionType(p, i, t) })
		},
	}
}

func writeActionType(p *term.Printer, i *cmdline.Invocation, t policy.ActionType) {
	now := i.Clock.Now()
	yes := map[bool]string{true: "yes", false: "no"}
	retired := ""
	if !t.Living() {
		retired = term.Ago(now, t.RetiredAt) + " by " + string(t.RetiredBy)
	}
	p.Line("%s  %s", p.Paint(term.Bold, t.Name), term.Plain(t.Description))
	p.Fields("version", strconv.Itoa(t.Version), "effect", string(t.SideEffect), "zone", string(t.Zone), "can be undone", yes[t.Reversible],
		"always asks", yes[t.Asks],
		"targets", strings.Join(t.Targets, ", "), "declared", term.Ago(now,
			t.DeclaredAt)+" by "+string(t.DeclaredBy), "retired", retired, "reason",
		t.Reason)
}

func actionTypeDeclare(i *cmdline.Invocation) *cobra.Command {
	var (
		r            client.ActionTypeRequest
		effect, zone string
	)
	c := &cobra.Command{
		Use: "declare ACTION DESCRIPTION", Short: "Declare an action type, or change it", Args: cobra.ExactArgs(2),
		Long: "Declare describes an action of your own program: its effect, and how strictly policy treats it. " +
			"Its name is noun.verb,\n" +
			"with a noun that Agentbox does not use. If you declare it again, it changes: earlier questions, approvals and grants become\n" +
			"invalid. Only an admin declares.",
		Example: "  agentbox actions declare deploy.production 'deploy a build to production' --effect network --zone high_stakes --asks " +
			"--target host",
	}
	f := c.Flags()
	f.StringVar(&effect, "effect", "", "what it does to the world: pure, read, filesystem, process or network")
	f.StringVar(&zone, "zone", "", "the posture that it takes: sandbox, supervised or high_stakes (default supervised)")
	f.BoolVar(&r.Reversible, "reversible", false, "it can be undone")
	f.BoolVar(&r.Asks, "asks", false, "a person approves it each time, whatever a policy says")
	f.StringSliceVar(&r.Targets, "target", nil,
		"what its target is: host, url, address or name; or what it is about without one: room, run or workspace; more than once for more")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if effect == "" {
			return cmdline.Usage("name the effect with --effect: pure, read, filesystem, process or network")
		}
		r.Description, r.SideEffect, r.Zone = args[1], policy.SideEffect(effect), event.Zone(zone)
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		t, err := api.DeclareActionType(cmd.Context(), args[0], r)
		if err != nil {
			return err
		}
		return i.Show(t, func(p *term.Printer) { p.Line("%s is declared, version %d", t.Name, t.Version) })
	}
	return c
}

func actionTypeRetire(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "retire ACTION", Short: "Retire an action type: from now on it is denied", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := api.RetireActionType(cmd.Context(), args[0], reason); err != nil {
				return err
			}
			t, err := api.ActionType(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return i.Show(t, func(p *term.Printer) { p.Line("%s is retired", t.Name) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}
