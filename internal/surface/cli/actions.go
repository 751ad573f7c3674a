package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// actionTypes are the commands about the action types that a workspace declares for its own programs.
func actionTypes(i *invocation) *cobra.Command {
	c := group("actions", "Declare action types for what your programs do outside", actionTypeList(i), actionTypeShow(i), actionTypeDeclare(i),
		actionTypeRetire(i))
	c.Aliases = []string{"action"}
	c.Example = "  agentbox actions declare deploy.production 'deploy a build to production' --effect network --asks --target host\n" +
		"  agentbox policy evaluate deploy.production --target web1.example.com && deploy"
	return c
}

func actionTypeList(i *invocation) *cobra.Command {
	var retired bool
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List the action types that this workspace declared", Args: cobra.NoArgs}
	c.Flags().BoolVar(&retired, "retired", false, "the retired ones, too")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := all(func(cursor string) ([]policy.ActionType, string, error) {
			page, err := api.ActionTypes(cmd.Context(), retired, client.Page{Cursor: cursor, Limit: 100})
			return page.Types, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.list("action_types", found, "", func(p *printer) {
			rows := make([][]cell, len(found))
			for n, t := range found {
				asks := ""
				if t.Asks {
					asks = "always asks"
				}
				if !t.Living() {
					asks = "retired"
				}
				rows[n] = []cell{text(t.Name), text(strconv.Itoa(t.Version)), text(string(t.SideEffect)), text(string(t.Zone)), text(asks),
					text(t.Description)}
			}
			p.table("This workspace has declared no action types; `agentbox policy actions` lists the built-in ones.", []string{"action", "version",
				"effect", "zone", "approval", "what"}, rows)
		})
	}
	return c
}

func actionTypeShow(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show ACTION", Short: "Show an action type that this workspace declared", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			t, err := api.ActionType(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return i.show(t, func(p *printer) { p.actionType(i, t) })
		},
	}
}

func (p *printer) actionType(i *invocation, t policy.ActionType) {
	now := i.Clock.Now()
	yes := map[bool]string{true: "yes", false: "no"}
	retired := ""
	if !t.Living() {
		retired = ago(now, t.RetiredAt) + " by " + string(t.RetiredBy)
	}
	p.line("%s  %s", p.paint(bold, t.Name), plain(t.Description))
	p.fields("version", strconv.Itoa(t.Version), "effect", string(t.SideEffect), "zone", string(t.Zone), "can be undone", yes[t.Reversible],
		"always asks", yes[t.Asks],
		"targets", strings.Join(t.Targets, ", "), "declared", ago(now, t.DeclaredAt)+" by "+string(t.DeclaredBy), "retired", retired, "reason",
		t.Reason)
}

func actionTypeDeclare(i *invocation) *cobra.Command {
	var (
		r            client.ActionTypeRequest
		effect, zone string
	)
	c := &cobra.Command{
		Use: "declare ACTION DESCRIPTION", Short: "Declare an action type, or change it", Args: cobra.ExactArgs(2),
		Long: "Declare says what an action of yours does, and how carefully it is treated. Its name is noun.verb, and its noun is none of " +
			"Agentbox's. To declare it again changes it:\n" +
			"what was asked, approved or granted before holds no more. An admin declares.",
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
			return usage("name the effect with --effect: pure, read, filesystem, process or network")
		}
		r.Description, r.SideEffect, r.Zone = args[1], policy.SideEffect(effect), event.Zone(zone)
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		t, err := api.DeclareActionType(cmd.Context(), args[0], r)
		if err != nil {
			return err
		}
		return i.show(t, func(p *printer) { p.line("%s is declared, version %d", t.Name, t.Version) })
	}
	return c
}

func actionTypeRetire(i *invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "retire ACTION", Short: "Retire an action type: from now on it is denied", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
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
			return i.show(t, func(p *printer) { p.line("%s is retired", t.Name) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}
