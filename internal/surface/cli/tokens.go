package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	machine "agentbox/internal/domain/engine"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

// tokens are the commands about capability tokens.
func tokens(i *invocation) *cobra.Command {
	return group("token", "Grant and revoke capability tokens, which narrow what somebody may do", tokenList(i), tokenGrant(i), tokenRevoke(i),
		tokenEdges(i))
}

// engines are the commands about programs elsewhere that execute runs.
func engines(i *invocation) *cobra.Command {
	return group("engines", "Register engines and issue their tokens", engineList(i), engineRegister(i), engineDeactivate(i), enginePermit(i),
		group("token", "Make, list and revoke the tokens of an engine", engineTokens(i), engineIssue(i), engineRevoke(i)))
}

// scoped adds the flags of scopes to a command.
func scoped(c *cobra.Command, s *token.Scopes) {
	c.Flags().StringSliceVar(&s.Actions, "action", s.Actions, "types of actions, as run.start, or *; may be repeated")
	c.Flags().StringSliceVar(&s.Rooms, "room", s.Rooms, "rooms, or *; what belongs to the whole workspace takes *")
	c.Flags().StringSliceVar(&s.Tools, "tool", nil, "tools, or *")
	c.Flags().StringSliceVar(&s.Domains, "domain", nil, "hosts, *.host, or *")
	c.Flags().StringSliceVar(&s.Data.Read, "read", nil, "what may be read: a type as run or file, resource:TYPE:ID, room:ID, or *")
	c.Flags().StringSliceVar(&s.Data.Write, "write", nil, "what may be written")
}

// ends reads how long something lasts; zero means without end.
func (i *invocation) ends(after time.Duration) time.Time {
	if after == 0 {
		return time.Time{}
	}
	return i.Clock.Now().Add(after).UTC()
}

func tokenList(i *invocation) *cobra.Command {
	var page client.Page
	var of string
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List capability tokens, the newest first", Args: cobra.NoArgs}
	pages(c, &page)
	c.Flags().StringVar(&of, "for", "", "only those that this principal holds")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return call(i, cmd, func(api *client.Client) (client.CapabilityList, error) {
			return api.Capabilities(cmd.Context(), id.Principal(of), page)
		}, func(p *printer, l client.CapabilityList) {
			rows := make([][]cell, len(l.Tokens))
			for n, t := range l.Tokens {
				state := cell{t.Status, faint}
				if t.Status == "active" {
					state = cell{t.Status, green}
				}
				rows[n] = []cell{text(string(t.ID)), state, text(string(t.IssuedTo)), text(string(t.Parent)), {ago(i.Clock.Now(), t.CreatedAt), faint},
					text(scopesLine(t.Scopes))}
			}
			p.table("There is none.", []string{"token", "state", "held by", "derived from", "granted", "permits"}, rows)
			p.more(l.Next)
		})
	}
	return c
}

// scopesLine says in a line what a token permits.
func scopesLine(s token.Scopes) string {
	var parts []string
	for _, one := range []struct {
		name string
		list []string
	}{{"actions", s.Actions}, {"rooms", s.Rooms}, {"tools", s.Tools}, {"domains", s.Domains}, {"read", s.Data.Read}, {"write", s.Data.Write}} {
		if len(one.list) > 0 {
			parts = append(parts, one.name+" "+strings.Join(one.list, ","))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

func tokenGrant(i *invocation) *cobra.Command {
	g := client.Grant{Scopes: token.Scopes{Rooms: []string{token.Any}}}
	var parent string
	var after time.Duration
	c := &cobra.Command{
		Use: "grant PRINCIPAL", Short: "Grant a capability token, whose bearer is shown once", Args: cobra.ExactArgs(1),
		Long: "A token narrows what its holder may do. One thing it adds: where the policy of a space says so (standard and permissive do), an " +
			"agent or a service starts runs there\n" +
			"under a token that names run.start, and not under *. What is derived from another one permits what both permit, ends no later and is " +
			"revoked with it. The bearer is used like a key. What is left out permits nothing of its kind, but for --room, which is * then.",
		Example: "  agentbox token grant AGENT --action run.start,file.read --read file,run --ends-after 8h\n  agentbox token grant AGENT " +
			"--derive-from TOKEN --action file.read --read file",
	}
	scoped(c, &g.Scopes)
	c.Flags().StringVar(&parent, "derive-from", "", "a token of your own; without it only owners and admins grant one")
	c.Flags().DurationVar(&after, "ends-after", 0, "how long it holds, as 8h; without it as long as what it is derived from")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		g.IssuedTo, g.Parent, g.ValidUntil = id.Principal(args[0]), id.Token(parent), i.ends(after)
		return call(i, cmd, func(api *client.Client) (client.Capability, error) { return api.Grant(cmd.Context(), g) }, func(p *printer,
			t client.Capability) {
			p.fields("id", string(t.ID), "held by", string(t.IssuedTo), "permits", scopesLine(t.Scopes), "bearer", t.Bearer)
			if len(t.Dropped) > 0 {
				i.printer(i.Err).line("left out, because %s does not permit it: %s", t.Parent, strings.Join(t.Dropped, ", "))
			}
			if t.Bearer != "" {
				p.line("%s", p.paint(faint, "The bearer is shown here and nowhere else."))
			}
		})
	}
	return c
}

func tokenRevoke(i *invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "revoke TOKEN", Short: "Revoke a capability token, with all that were derived from it", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return call(i, cmd, func(api *client.Client) (client.Capability, error) {
			return api.RevokeCapability(cmd.Context(), id.Token(args[0]), reason)
		}, func(p *printer, t client.Capability) {
			p.line("%s %s permits nothing any more, nor does what was derived from it", p.paint(green, "✓"), t.ID)
		})
	}
	return c
}

func tokenEdges(i *invocation) *cobra.Command {
	var page client.Page
	var of string
	c := &cobra.Command{Use: "delegations", Short: "List how authority was handed on, the newest first", Args: cobra.NoArgs}
	pages(c, &page)
	c.Flags().StringVar(&of, "for", "", "only those from or to this principal")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return call(i, cmd, func(api *client.Client) (client.DelegationList, error) {
			return api.Delegations(cmd.Context(), id.Principal(of), page)
		}, func(p *printer, l client.DelegationList) {
			rows := make([][]cell, len(l.Edges))
			for n, e := range l.Edges {
				rows[n] = []cell{text(string(e.Child)), text(string(e.Parent)), text(string(e.From)), text(string(e.To)), {strings.Repeat("→", e.Depth),
					faint}}
			}
			p.table("Nothing was handed on.", []string{"token", "derived from", "by", "to", "depth"}, rows)
			p.more(l.Next)
		})
	}
	return c
}

func engineList(i *invocation) *cobra.Command {
	var page client.Page
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List engines, the newest first", Args: cobra.NoArgs}
	pages(c, &page)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return call(i, cmd, func(api *client.Client) (client.EngineList, error) { return api.Engines(cmd.Context(), page) }, func(p *printer,
			l client.EngineList) {
			rows := make([][]cell, len(l.Engines))
			for n, e := range l.Engines {
				state := cell{"active", green}
				if e.Inactive {
					state = cell{"inactive", faint}
				}
				rows[n] = []cell{text(string(e.ID)), state, {ago(i.Clock.Now(), e.CreatedAt), faint}, text(e.Name)}
			}
			p.table("There is none.", []string{"engine", "state", "registered", "name"}, rows)
			p.more(l.Next)
		})
	}
	return c
}

func engineRegister(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "register NAME", Short: "Register an engine", Args: cobra.ExactArgs(1),
		Long: "An engine is a program elsewhere that executes runs. It is known by a token: agentbox engines token issue ENGINE.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return call(i, cmd, func(api *client.Client) (machine.Engine, error) { return api.RegisterEngine(cmd.Context(), args[0]) },
				(*printer).engine)
		},
	}
}

// enginePermit verifies what an engine shows.
func enginePermit(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "permit PERMIT", Short: "Verify the signed permit of an engine, and show what it permits", Args: cobra.ExactArgs(1),
		Long: "Permit asks the daemon for the key of its permits and verifies the signature. Whether the engine still has the run is not in " +
			"the permit: agentbox runs\n" +
			"show RUN has the fence of the last claim.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			key, err := api.PermitKey(cmd.Context())
			if err != nil {
				return err
			}
			permit, err := policy.OpenPermit(key, args[0])
			if err != nil {
				return err
			}
			return i.show(permit, func(p *printer) {
				what, begin := permit.Kind, "over"
				if permit.Tool != "" {
					what = permit.Tool
				}
				if left := permit.BeginBy.Sub(i.Clock.Now()); left > 0 {
					begin = "within " + left.Round(time.Second).String()
				}
				p.fields("permits", what, "run", string(permit.Run), "engine", string(permit.Engine), "fence", strconv.FormatUint(permit.Fence, 10),
					"call", string(permit.Call), "begins", begin)
			})
		},
	}
}

// engine writes what an engine is.
func (p *printer) engine(e machine.Engine) {
	state := "active"
	if e.Inactive {
		state = "inactive"
	}
	p.fields("id", string(e.ID), "name", oneLine(e.Name, 200), "state", state, "reason", oneLine(e.Reason, 200))
}

func engineDeactivate(i *invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "deactivate ENGINE", Short: "End an engine for good, with all its tokens", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return call(i, cmd, func(api *client.Client) (machine.Engine, error) {
			return api.DeactivateEngine(cmd.Context(), id.Principal(args[0]), reason)
		}, (*printer).engine)
	}
	return c
}

func engineTokens(i *invocation) *cobra.Command {
	var page client.Page
	c := &cobra.Command{Use: "ls ENGINE", Aliases: []string{"list"}, Short: "List the tokens of an engine, the newest first",
		Args: cobra.ExactArgs(1)}
	pages(c, &page)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return call(i, cmd, func(api *client.Client) (client.EngineTokenList, error) {
			return api.EngineTokens(cmd.Context(), id.Principal(args[0]), page)
		}, func(p *printer, l client.EngineTokenList) {
			rows := make([][]cell, len(l.Tokens))
			for n, t := range l.Tokens {
				state := cell{"in force", green}
				switch {
				case !t.RevokedAt.IsZero():
					state = cell{"revoked", faint}
				case !t.ExpiresAt.IsZero() && !i.Clock.Now().Before(t.ExpiresAt):
					state = cell{"expired", faint}
				}
				rows[n] = []cell{text(string(t.ID)), state, text(string(t.Capability)), {ago(i.Clock.Now(), t.CreatedAt), faint}}
			}
			p.table("There is none.", []string{"token", "state", "acts under", "issued"}, rows)
			p.more(l.Next)
		})
	}
	return c
}

func engineIssue(i *invocation) *cobra.Command {
	s := token.Scopes{Rooms: []string{token.Any}, Actions: []string{policy.RunClaim, policy.RunRenew, policy.RunRelease}}
	var after time.Duration
	c := &cobra.Command{
		Use: "issue ENGINE", Short: "Make a token by which an engine is known, which is shown once", Args: cobra.ExactArgs(1),
		Long: "Without scopes it permits to claim runs of every room, to go on owning them and to give them back. The second example permits " +
			"all that an engine\n" +
			"does with a run, tool calls included: --tool names those that it may call.",
		Example: "  agentbox engines token issue ENGINE\n  agentbox engines token issue ENGINE --action " + strings.Join(machine.Work(), ",") +
			" --tool '*'",
	}
	scoped(c, &s)
	c.Flags().DurationVar(&after, "ends-after", 0, "how long it holds, as 8h; without it without end")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		var scopes *token.Scopes
		for _, name := range []string{"action", "room", "tool", "domain", "read", "write"} {
			if cmd.Flags().Changed(name) {
				scopes = &s
			}
		}
		return call(i, cmd, func(api *client.Client) (client.EngineToken, error) {
			return api.IssueEngineToken(cmd.Context(), id.Principal(args[0]), scopes, i.ends(after))
		}, func(p *printer, t client.EngineToken) {
			p.fields("id", string(t.ID), "engine", string(t.Engine), "acts under", string(t.Capability), "token", t.Secret)
			p.line("%s", p.paint(faint, "The token is shown here and nowhere else."))
		})
	}
	return c
}

func engineRevoke(i *invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "revoke ENGINE TOKEN", Short: "Revoke a token of an engine at once", Args: cobra.ExactArgs(2)}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return call(i, cmd, func(api *client.Client) (client.EngineToken, error) {
			return api.RevokeEngineToken(cmd.Context(), id.Principal(args[0]), id.EngineToken(args[1]), reason)
		}, func(p *printer, t client.EngineToken) {
			p.line("%s %s opens nothing any more", p.paint(green, "✓"), t.ID)
		})
	}
	return c
}
