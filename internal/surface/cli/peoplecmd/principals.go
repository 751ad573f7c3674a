// Package peoplecmd has the commands about who may act: principals, agents, engines, keys, tokens and logging in.
package peoplecmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Principals returns the commands for principals: people, agents and services.
func Principals(i *cmdline.Invocation) *cobra.Command {
	list := principalList(i)
	list.Flags().String("kind", "", "only these: user, agent or service")
	return cmdline.Group("principal", "Add people and services, and change roles", list, principalShow(i), principalAdd(i), principalRole(i))
}

// Agents are the commands about agents.
func Agents(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("agent", "Register and quarantine agents", agentRegister(i), agentQuarantine(i, true), agentQuarantine(i, false))
}

// Keys are the commands about API keys.
func Keys(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("key", "Make, list, rotate and revoke API keys", keyList(i), keyIssue(i), keyE2B(i), keyRotate(i), keyRevoke(i))
}

func principalList(i *cmdline.Invocation) *cobra.Command {
	var f client.PrincipalFilter
	c := &cobra.Command{Use: "ls [PART OF A NAME]", Aliases: []string{"list"}, Short: "List each principal, the newest first",
		Args: cobra.MaximumNArgs(1)}
	cmdline.Pages(c, &f.Page)
	var whole bool
	c.Flags().BoolVarP(&whole, "all", "a", false, "also the agents that spaces have for themselves")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		f.Name = cmdline.First(append(args, "")...)
		f.Named = !whole && f.Name == ""
		if flag := cmd.Flags().Lookup("kind"); flag != nil {
			f.Kind = flag.Value.String()
		}
		return cmdline.Call(i, cmd, func(api *client.Client) (client.PrincipalList, error) { return api.Principals(cmd.Context(), f) },
			func(p *term.Printer,
				l client.PrincipalList) {
				rows := make([][]term.Cell, len(l.Principals))
				for n, one := range l.Principals {
					state := term.Cell{Text: string(one.Role), Colour: ""}
					if one.Quarantined {
						state = term.Cell{Text: "quarantined", Colour: term.Red}
					}
					rows[n] = []term.Cell{term.Text(string(one.ID)), term.Text(string(one.Kind)), state, {Text: term.Ago(i.Clock.Now(), one.CreatedAt),
						Colour: term.Faint}, term.Text(one.Name)}
				}
				p.Table("There are no such principals.", []string{"id", "kind", "role", "added", "name"}, rows)
				cmdline.WriteMore(p, l.Next)
			})
	}
	return c
}

func principalShow(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{Use: "show PRINCIPAL", Short: "Show a principal", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command,
		args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (principal.Principal, error) {
			return api.Principal(cmd.Context(), id.Principal(args[0]))
		}, writePrincipal)
	}}
}

// writePrincipal writes who somebody is.
func writePrincipal(p *term.Printer, one principal.Principal) {
	quarantined := ""
	if one.Quarantined {
		quarantined = strings.TrimSuffix("yes: "+term.OneLine(one.Reason, 200), ": ")
	}
	p.Fields("id", string(one.ID), "name", term.OneLine(one.Name, 200), "kind", string(one.Kind), "role", string(one.Role), "quarantined",
		quarantined, "added by", string(one.CreatedBy))
}

func principalAdd(i *cmdline.Invocation) *cobra.Command {
	var role string
	var service bool
	c := &cobra.Command{
		Use: "add NAME", Short: "Add a person or a service", Args: cobra.ExactArgs(1),
		Long: "A person has a role: overlord (the owner), admin, operator, member or viewer; docs/RIGHTS.md says what each may do. Nobody " +
			"gives a role above their own.\nThey get a key with: agentbox key issue NAME --for PRINCIPAL.",
		Example: "  agentbox principal add Anna --role operator\n  agentbox principal add mailer --service",
	}
	c.Flags().StringVar(&role, "role", string(principal.Member), "of a person")
	c.Flags().BoolVar(&service, "service", false, "a program, which has no role")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		kind := id.User
		if service {
			if cmd.Flags().Changed("role") {
				return cmdline.Usage("a service has no role; leave --role out")
			}
			kind, role = id.Service, ""
		}
		return cmdline.Call(i, cmd, func(api *client.Client) (principal.Principal, error) {
			return api.AddPrincipal(cmd.Context(), kind, args[0], principal.Role(role))
		}, writePrincipal)
	}
	return c
}

func principalRole(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{Use: "role PRINCIPAL ROLE", Short: "Give a person another role", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmdline.Call(i, cmd, func(api *client.Client) (principal.Principal, error) {
				return api.ChangeRole(cmd.Context(), id.Principal(args[0]), principal.Role(args[1]))
			}, writePrincipal)
		}}
}

func agentRegister(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{Use: "register NAME", Short: "Register an agent", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command,
		args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.Agent, error) { return api.RegisterAgent(cmd.Context(), args[0]) },
			writeAgent)
	}}
}

func agentQuarantine(i *cmdline.Invocation, on bool) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "quarantine AGENT", Short: "Stop an agent and all authority that it handed on", Args: cobra.ExactArgs(1),
		Long: "AGENT is the id of a registered agent, or its name. Runs of blueprints are ended with agentbox agent stop.",
	}
	if !on {
		c.Use, c.Short = "unquarantine AGENT", "End the quarantine of an agent"
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.Agent, error) {
			agent, err := cmdline.PrincipalNamed(cmd.Context(), api, args[0])
			if fault.CodeOf(err) == "principal_not_found" {
				return client.Agent{}, noAgent(cmd.Context(), api, args[0])
			}
			if err != nil {
				return client.Agent{}, err
			}
			return api.Quarantine(cmd.Context(), agent, on, reason)
		}, writeAgent)
	}
	return c
}

// noAgent is the error for a name that no agent has. The name of a blueprint is not one: its agents are runs.
func noAgent(ctx context.Context, api *client.Client, name string) error {
	err := fault.New(fault.NotFound, "agent_not_found", "no agent has the id or the name %q", term.OneLine(name, 60))
	if _, failed := api.Blueprint(ctx, name, 0); failed != nil {
		return err.With("see: agentbox principal list")
	}
	return err.With("it is a blueprint, whose agents are runs: agentbox agent ls --blueprint " + cmdline.Word(name) + "\nend one: " +
		"agentbox agent stop RUN; have no more of them: agentbox blueprint rm " + cmdline.Word(name))
}

// writeAgent writes who an agent is.
func writeAgent(p *term.Printer, a client.Agent) {
	writePrincipal(p, principal.Principal{ID: a.ID, Kind: id.Agent, Name: a.Name, Quarantined: a.Quarantined, Reason: a.Reason,
		CreatedBy: a.CreatedBy})
}

func keyList(i *cmdline.Invocation) *cobra.Command {
	var page client.Page
	var of string
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List API keys, the newest first", Args: cobra.NoArgs}
	cmdline.Pages(c, &page)
	c.Flags().StringVar(&of, "for", "", "only those of this principal, by its id or its name")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.KeyList, error) {
			who, err := cmdline.PrincipalNamed(cmd.Context(), api, of)
			if err != nil {
				return client.KeyList{}, err
			}
			return api.Keys(cmd.Context(), who, page)
		}, func(p *term.Printer, l client.KeyList) {
			rows := make([][]term.Cell, len(l.Keys))
			for n, k := range l.Keys {
				state := term.Cell{Text: "in force", Colour: term.Green}
				if !k.RevokedAt.IsZero() {
					state = term.Cell{Text: "revoked", Colour: term.Faint}
				}
				rows[n] = []term.Cell{term.Text(string(k.ID)), state, term.Text(string(k.Principal)), {Text: term.Ago(i.Clock.Now(), k.CreatedAt),
					Colour: term.Faint}, term.Text(k.Name)}
			}
			p.Table("There are no API keys.", []string{"key", "state", "of", "made", "name"}, rows)
			cmdline.WriteMore(p, l.Next)
		})
	}
	return c
}

func keyIssue(i *cmdline.Invocation) *cobra.Command {
	var of string
	c := &cobra.Command{
		Use: "issue NAME", Short: "Create an API key, which is shown once", Args: cobra.ExactArgs(1),
		Long: "The key has all rights of its principal. For fewer rights, grant a capability token: agentbox token grant.",
	}
	c.Flags().StringVar(&of, "for", "", "whose key: the id or the name of a principal; your own unless named")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.Key, error) {
			who, err := cmdline.PrincipalNamed(cmd.Context(), api, of)
			if err != nil {
				return client.Key{}, err
			}
			return api.IssueKey(cmd.Context(), who, args[0])
		}, func(p *term.Printer, k client.Key) {
			p.Fields("id", string(k.ID), "of", string(k.Principal), "key", k.Secret, "for E2B", client.KeyForE2B(k.Secret))
			p.Line("%s", p.Paint(term.Faint, "It is shown here and nowhere else."))
		})
	}
	return c
}
