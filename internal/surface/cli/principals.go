package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
)

// principals returns the commands for principals: people, agents and services.
func principals(i *invocation) *cobra.Command {
	list := principalList(i, "principal", "")
	list.Flags().String("kind", "", "only these: user, agent or service")
	return group("principal", "Add people and services, and change roles", list, principalShow(i), principalAdd(i), principalRole(i))
}

// agents are the commands about agents.
func agents(i *invocation) *cobra.Command {
	return group("agent", "Register and quarantine agents", principalList(i, "agent", string(id.Agent)), agentRegister(i), agentQuarantine(i,
		true), agentQuarantine(i, false))
}

// keys are the commands about API keys.
func keys(i *invocation) *cobra.Command {
	return group("key", "Make, list, rotate and revoke API keys", keyList(i), keyIssue(i), keyE2B(i), keyRotate(i), keyRevoke(i))
}

// pages adds the flags of a page to a command.
func pages(c *cobra.Command, page *client.Page) {
	c.Flags().IntVar(&page.Limit, "limit", 20, "how many at most, 1 to 100")
	c.Flags().StringVar(&page.Cursor, "cursor", "", "where to go on, as the page before says")
}

// more says where a list goes on.
func (p *printer) more(next string) {
	if next != "" {
		p.line("%s", p.paint(faint, "more with --cursor "+next))
	}
}

// call connects to the daemon, asks, and shows the answer.
func call[T any](i *invocation, cmd *cobra.Command, ask func(*client.Client) (T, error), people func(*printer, T)) error {
	api, err := i.connect(cmd.Context())
	if err != nil {
		return err
	}
	answer, err := ask(api)
	if err != nil {
		return err
	}
	return i.show(answer, func(p *printer) { people(p, answer) })
}

func principalList(i *invocation, what, kind string) *cobra.Command {
	f := client.PrincipalFilter{Kind: kind}
	c := &cobra.Command{Use: "ls [PART OF A NAME]", Aliases: []string{"list"}, Short: "List each " + what + ", the newest first",
		Args: cobra.MaximumNArgs(1)}
	pages(c, &f.Page)
	var whole bool
	c.Flags().BoolVarP(&whole, "all", "a", false, "also the agents that spaces have for themselves")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		f.Name = first(append(args, "")...)
		f.Named = !whole && f.Name == ""
		if flag := cmd.Flags().Lookup("kind"); flag != nil {
			f.Kind = flag.Value.String()
		}
		return call(i, cmd, func(api *client.Client) (client.PrincipalList, error) { return api.Principals(cmd.Context(), f) }, func(p *printer,
			l client.PrincipalList) {
			rows := make([][]cell, len(l.Principals))
			for n, one := range l.Principals {
				state := cell{string(one.Role), ""}
				if one.Quarantined {
					state = cell{"quarantined", red}
				}
				rows[n] = []cell{text(string(one.ID)), text(string(one.Kind)), state, {ago(i.Clock.Now(), one.CreatedAt), faint}, text(one.Name)}
			}
			p.table("There is none.", []string{"id", "kind", "role", "added", "name"}, rows)
			p.more(l.Next)
		})
	}
	return c
}

func principalShow(i *invocation) *cobra.Command {
	return &cobra.Command{Use: "show PRINCIPAL", Short: "Show a principal", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command,
		args []string) error {
		return call(i, cmd, func(api *client.Client) (principal.Principal, error) {
			return api.Principal(cmd.Context(), id.Principal(args[0]))
		}, (*printer).principal)
	}}
}

// principal writes who somebody is.
func (p *printer) principal(one principal.Principal) {
	quarantined := ""
	if one.Quarantined {
		quarantined = strings.TrimSuffix("yes: "+oneLine(one.Reason, 200), ": ")
	}
	p.fields("id", string(one.ID), "name", oneLine(one.Name, 200), "kind", string(one.Kind), "role", string(one.Role), "quarantined",
		quarantined, "added by", string(one.CreatedBy))
}

func principalAdd(i *invocation) *cobra.Command {
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
				return usage("a service has no role; leave --role out")
			}
			kind, role = id.Service, ""
		}
		return call(i, cmd, func(api *client.Client) (principal.Principal, error) {
			return api.AddPrincipal(cmd.Context(), kind, args[0], principal.Role(role))
		}, (*printer).principal)
	}
	return c
}

func principalRole(i *invocation) *cobra.Command {
	return &cobra.Command{Use: "role PRINCIPAL ROLE", Short: "Give a person another role", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return call(i, cmd, func(api *client.Client) (principal.Principal, error) {
				return api.ChangeRole(cmd.Context(), id.Principal(args[0]), principal.Role(args[1]))
			}, (*printer).principal)
		}}
}

func agentRegister(i *invocation) *cobra.Command {
	return &cobra.Command{Use: "register NAME", Short: "Register an agent", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command,
		args []string) error {
		return call(i, cmd, func(api *client.Client) (client.Agent, error) { return api.RegisterAgent(cmd.Context(), args[0]) }, (*printer).agent)
	}}
}

func agentQuarantine(i *invocation, on bool) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "quarantine AGENT", Short: "Stop an agent and all authority that it handed on", Args: cobra.ExactArgs(1)}
	if !on {
		c.Use, c.Short = "unquarantine AGENT", "End the quarantine of an agent"
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return call(i, cmd, func(api *client.Client) (client.Agent, error) {
			return api.Quarantine(cmd.Context(), id.Principal(args[0]), on, reason)
		}, (*printer).agent)
	}
	return c
}

// agent writes who an agent is.
func (p *printer) agent(a client.Agent) {
	p.principal(principal.Principal{ID: a.ID, Kind: id.Agent, Name: a.Name, Quarantined: a.Quarantined, Reason: a.Reason,
		CreatedBy: a.CreatedBy})
}

func keyList(i *invocation) *cobra.Command {
	var page client.Page
	var of string
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List API keys, the newest first", Args: cobra.NoArgs}
	pages(c, &page)
	c.Flags().StringVar(&of, "for", "", "only those of this principal, by its id or its name")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return call(i, cmd, func(api *client.Client) (client.KeyList, error) {
			who, err := principalNamed(cmd.Context(), api, of)
			if err != nil {
				return client.KeyList{}, err
			}
			return api.Keys(cmd.Context(), who, page)
		}, func(p *printer, l client.KeyList) {
			rows := make([][]cell, len(l.Keys))
			for n, k := range l.Keys {
				state := cell{"in force", green}
				if !k.RevokedAt.IsZero() {
					state = cell{"revoked", faint}
				}
				rows[n] = []cell{text(string(k.ID)), state, text(string(k.Principal)), {ago(i.Clock.Now(), k.CreatedAt), faint}, text(k.Name)}
			}
			p.table("There is none.", []string{"key", "state", "of", "made", "name"}, rows)
			p.more(l.Next)
		})
	}
	return c
}

func keyIssue(i *invocation) *cobra.Command {
	var of string
	c := &cobra.Command{
		Use: "issue NAME", Short: "Create an API key, which is shown once", Args: cobra.ExactArgs(1),
		Long: "The key can do all that its principal may. What shall do less gets a capability token: agentbox token grant.",
	}
	c.Flags().StringVar(&of, "for", "", "whose key: the id or the name of a principal; your own unless named")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return call(i, cmd, func(api *client.Client) (client.Key, error) {
			who, err := principalNamed(cmd.Context(), api, of)
			if err != nil {
				return client.Key{}, err
			}
			return api.IssueKey(cmd.Context(), who, args[0])
		}, func(p *printer, k client.Key) {
			p.fields("id", string(k.ID), "of", string(k.Principal), "key", k.Secret, "for E2B", client.KeyForE2B(k.Secret))
			p.line("%s", p.paint(faint, "It is shown here and nowhere else."))
		})
	}
	return c
}

// principalNamed returns the id of a principal that is named by its id or, where only one has it, by its name.
func principalNamed(ctx context.Context, api *client.Client, named string) (id.Principal, error) {
	if named == "" || id.Principal(named).Kind() != "" {
		return id.Principal(named), nil
	}
	found, err := all(func(cursor string) ([]principal.Principal, string, error) {
		page, err := api.Principals(ctx, client.PrincipalFilter{Name: named, Page: client.Page{Cursor: cursor, Limit: 100}})
		return page.Principals, page.Next, err
	})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, p := range found {
		if p.Name == named {
			ids = append(ids, string(p.ID))
		}
	}
	switch len(ids) {
	case 1:
		return id.Principal(ids[0]), nil
	case 0:
		return "", fault.New(fault.NotFound, "principal_not_found", "no principal has the id or the name %q", oneLine(named,
			60)).With("see: agentbox principal list")
	}
	return "", fault.New(fault.Conflict, "name_ambiguous", "%d principals have the name %q", len(ids), oneLine(named,
		60)).With("name one by its id: " + strings.Join(ids, ", "))
}
