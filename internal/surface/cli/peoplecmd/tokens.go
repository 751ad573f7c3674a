package peoplecmd

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
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Tokens are the commands about capability tokens.
func Tokens(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("token", "Grant and revoke capability tokens, which narrow what somebody may do", tokenList(i), tokenGrant(i),
		tokenRevoke(i),
		tokenEdges(i))
}

// Engines are the commands about programs elsewhere that execute runs.
func Engines(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("engines", "Register engines and issue their tokens", engineList(i), engineRegister(i), engineDeactivate(i),
		enginePermit(i),
		cmdline.Group("token", "Make, list and revoke the tokens of an engine", engineTokens(i), engineIssue(i), engineRevoke(i)))
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
func ends(i *cmdline.Invocation, after time.Duration) time.Time {
	if after == 0 {
		return time.Time{}
	}
	return i.Clock.Now().Add(after).UTC()
}

func tokenList(i *cmdline.Invocation) *cobra.Command {
	var page client.Page
	var of string
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List capability tokens, the newest first", Args: cobra.NoArgs}
	cmdline.Pages(c, &page)
	c.Flags().StringVar(&of, "for", "", "only those that this principal holds")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.CapabilityList, error) {
			return api.Capabilities(cmd.Context(), id.Principal(of), page)
		}, func(p *term.Printer, l client.CapabilityList) {
			rows := make([][]term.Cell, len(l.Tokens))
			for n, t := range l.Tokens {
				state := term.Cell{Text: t.Status, Colour: term.Faint}
				if t.Status == "active" {
					state = term.Cell{Text: t.Status, Colour: term.Green}
				}
				rows[n] = []term.Cell{term.Text(string(t.ID)), state, term.Text(string(t.IssuedTo)), term.Text(string(t.Parent)),
					{Text: term.Ago(i.Clock.Now(), t.CreatedAt), Colour: term.Faint},
					term.Text(scopesLine(t.Scopes))}
			}
			p.Table("There are no capability tokens.", []string{"token", "state", "held by", "derived from", "granted", "permits"}, rows)
			cmdline.WriteMore(p, l.Next)
		})
	}
	return c
}

// scopesLine lists the scopes of a token in one line.
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

func tokenGrant(i *cmdline.Invocation) *cobra.Command {
	g := client.Grant{Scopes: token.Scopes{Rooms: []string{token.Any}}}
	var parent string
	var after time.Duration
	c := &cobra.Command{
		Use: "grant PRINCIPAL", Short: "Grant a capability token, whose bearer is shown once", Args: cobra.ExactArgs(1),
		Long: "A token narrows what its holder may do. One thing it adds: where the policy of a space says so (standard and permissive do), an " +
			"agent or a service starts runs there\n" +
			"under a token that names run.start, and not under *. A token that is derived from another one permits what both permit. " +
			"It ends no later, and is revoked with it. Use the bearer like a key. A scope whose option you leave out permits " +
			"nothing. Without --room the token holds in all rooms.",
		Example: "  agentbox token grant AGENT --action run.start,file.read --read file,run --ends-after 8h\n  agentbox token grant AGENT " +
			"--derive-from TOKEN --action file.read --read file",
	}
	scoped(c, &g.Scopes)
	c.Flags().StringVar(&parent, "derive-from", "", "a token of your own; without it only owners and admins grant one")
	c.Flags().DurationVar(&after, "ends-after", 0, "how long it holds, as 8h; without it as long as what it is derived from")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		g.IssuedTo, g.Parent, g.ValidUntil = id.Principal(args[0]), id.Token(parent), ends(i, after)
		return cmdline.Call(i, cmd, func(api *client.Client) (client.Capability, error) { return api.Grant(cmd.Context(), g) },
			func(p *term.Printer,
				t client.Capability) {
				p.Fields("id", string(t.ID), "held by", string(t.IssuedTo), "permits", scopesLine(t.Scopes), "bearer", t.Bearer)
				if len(t.Dropped) > 0 {
					i.Printer(i.Err).Line("left out, because %s does not permit it: %s", t.Parent, strings.Join(t.Dropped, ", "))
				}
				if t.Bearer != "" {
					p.Line("%s", p.Paint(term.Faint, "The bearer is shown here and nowhere else."))
				}
			})
	}
	return c
}

func tokenRevoke(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "revoke TOKEN", Short: "Revoke a capability token, with all that were derived from it", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.Capability, error) {
			return api.RevokeCapability(cmd.Context(), id.Token(args[0]), reason)
		}, func(p *term.Printer, t client.Capability) {
			p.Line("%s %s permits nothing any more, nor does what was derived from it", p.Paint(term.Green, "✓"), t.ID)
		})
	}
	return c
}

func tokenEdges(i *cmdline.Invocation) *cobra.Command {
	var page client.Page
	var of string
	c := &cobra.Command{Use: "delegations", Short: "List how authority was handed on, the newest first", Args: cobra.NoArgs}
	cmdline.Pages(c, &page)
	c.Flags().StringVar(&of, "for", "", "only those from or to this principal")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.DelegationList, error) {
			return api.Delegations(cmd.Context(), id.Principal(of), page)
		}, func(p *term.Printer, l client.DelegationList) {
			rows := make([][]term.Cell, len(l.Edges))
			for n, e := range l.Edges {
				rows[n] = []term.Cell{term.Text(string(e.Child)), term.Text(string(e.Parent)), term.Text(string(e.From)), term.Text(string(e.To)),
					{Text: strings.Repeat("→", e.Depth),
						Colour: term.Faint}}
			}
			p.Table("Nothing was handed on.", []string{"token", "derived from", "by", "to", "depth"}, rows)
			cmdline.WriteMore(p, l.Next)
		})
	}
	return c
}

func engineList(i *cmdline.Invocation) *cobra.Command {
	var page client.Page
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List engines, the newest first", Args: cobra.NoArgs}
	cmdline.Pages(c, &page)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.EngineList, error) { return api.Engines(cmd.Context(), page) },
			func(p *term.Printer,
				l client.EngineList) {
				rows := make([][]term.Cell, len(l.Engines))
				for n, e := range l.Engines {
					state := term.Cell{Text: "active", Colour: term.Green}
					if e.Inactive {
						state = term.Cell{Text: "inactive", Colour: term.Faint}
					}
					rows[n] = []term.Cell{term.Text(string(e.ID)), state, {Text: term.Ago(i.Clock.Now(), e.CreatedAt), Colour: term.Faint},
						term.Text(e.Name)}
				}
				p.Table("There are no engines.", []string{"engine", "state", "registered", "name"}, rows)
				cmdline.WriteMore(p, l.Next)
			})
	}
	return c
}

func engineRegister(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "register NAME", Short: "Register an engine", Args: cobra.ExactArgs(1),
		Long: "An engine is a program elsewhere that executes runs. It is known by a token: agentbox engines token issue ENGINE.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmdline.Call(i, cmd, func(api *client.Client) (machine.Engine, error) { return api.RegisterEngine(cmd.Context(), args[0]) },
				writeEngine)
		},
	}
}

// enginePermit verifies what an engine shows.
func enginePermit(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "permit PERMIT", Short: "Verify the signed permit of an engine, and show what it permits", Args: cobra.ExactArgs(1),
		Long: "Permit asks the daemon for the key of its permits and verifies the signature. Whether the engine still has the run is not in " +
			"the permit: agentbox runs\n" +
			"show RUN has the fence of the last claim.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
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
			return i.Show(permit, func(p *term.Printer) {
				what, begin := permit.Kind, "over"
				if permit.Tool != "" {
					what = permit.Tool
				}
				if left := permit.BeginBy.Sub(i.Clock.Now()); left > 0 {
					begin = "within " + left.Round(time.Second).String()
				}
				p.Fields("permits", what, "run", string(permit.Run), "engine", string(permit.Engine), "fence", strconv.FormatUint(permit.Fence, 10),
					"call", string(permit.Call), "begins", begin)
			})
		},
	}
}

// writeEngine writes what an engine is.
func writeEngine(p *term.Printer, e machine.Engine) {
	state := "active"
	if e.Inactive {
		state = "inactive"
	}
	p.Fields("id", string(e.ID), "name", term.OneLine(e.Name, 200), "state", state, "reason", term.OneLine(e.Reason, 200))
}

func engineDeactivate(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "deactivate ENGINE", Short: "End an engine for good, with all its tokens", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (machine.Engine, error) {
			return api.DeactivateEngine(cmd.Context(), id.Principal(args[0]), reason)
		}, writeEngine)
	}
	return c
}

func engineTokens(i *cmdline.Invocation) *cobra.Command {
	var page client.Page
	c := &cobra.Command{Use: "ls ENGINE", Aliases: []string{"list"}, Short: "List the tokens of an engine, the newest first",
		Args: cobra.ExactArgs(1)}
	cmdline.Pages(c, &page)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.EngineTokenList, error) {
			return api.EngineTokens(cmd.Context(), id.Principal(args[0]), page)
		}, func(p *term.Printer, l client.EngineTokenList) {
			rows := make([][]term.Cell, len(l.Tokens))
			for n, t := range l.Tokens {
				state := term.Cell{Text: "in force", Colour: term.Green}
				switch {
				case !t.RevokedAt.IsZero():
					state = term.Cell{Text: "revoked", Colour: term.Faint}
				case !t.ExpiresAt.IsZero() && !i.Clock.Now().Before(t.ExpiresAt):
					state = term.Cell{Text: "expired", Colour: term.Faint}
				}
				rows[n] = []term.Cell{term.Text(string(t.ID)), state, term.Text(string(t.Capability)), {Text: term.Ago(i.Clock.Now(), t.CreatedAt),
					Colour: term.Faint}}
			}
			p.Table("The engine has no tokens.", []string{"token", "state", "acts under", "issued"}, rows)
			cmdline.WriteMore(p, l.Next)
		})
	}
	return c
}

func engineIssue(i *cmdline.Invocation) *cobra.Command {
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
		return cmdline.Call(i, cmd, func(api *client.Client) (client.EngineToken, error) {
			return api.IssueEngineToken(cmd.Context(), id.Principal(args[0]), scopes, ends(i, after))
		}, func(p *term.Printer, t client.EngineToken) {
			p.Fields("id", string(t.ID), "engine", string(t.Engine), "acts under", string(t.Capability), "token", t.Secret)
			p.Line("%s", p.Paint(term.Faint, "The token is shown here and nowhere else."))
		})
	}
	return c
}

func engineRevoke(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "revoke ENGINE TOKEN", Short: "Revoke a token of an engine at once", Args: cobra.ExactArgs(2)}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (client.EngineToken, error) {
			return api.RevokeEngineToken(cmd.Context(), id.Principal(args[0]), id.EngineToken(args[1]), reason)
		}, func(p *term.Printer, t client.EngineToken) {
			p.Line("%s %s opens nothing any more", p.Paint(term.Green, "✓"), t.ID)
		})
	}
	return c
}
