package hostcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// toolServers are the commands about MCP servers whose tools agents use.
func toolServers(i *cmdline.Invocation) []*cobra.Command {
	return []*cobra.Command{serverList(i), serverShow(i), serverAdd(i), serverRemove(i), serverLook(i), serverTrust(i), serverLogin(i),
		serverLogout(i)}
}

// shortHash is how many digits of a hash a person names a tool with.
const shortHash = 12

func serverList(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the MCP servers whose tools agents use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			all, err := api.ToolServers(cmd.Context())
			if err != nil {
				return err
			}
			return i.List("mcp_servers", all, "", func(p *term.Printer) {
				rows := make([][]term.Cell, len(all))
				for n, s := range all {
					rows[n] = []term.Cell{term.Text(s.Name), term.Text(s.Command + s.URL), term.Text(s.Key), term.Text(states(s))}
				}
				p.Table("The workspace has no MCP servers. Add one: agentbox mcp add NAME --url URL", []string{"name", "command or url", "key",
					"tools"}, rows)
			})
		},
	}
}

// states counts the tools of a server by their states.
func states(s client.ToolServer) string {
	count := map[string]int{}
	for _, t := range s.Tools {
		count[t.State]++
	}
	var said []string
	for _, state := range []string{"trusted", "quarantined", "unusable", "gone"} {
		if count[state] > 0 {
			said = append(said, fmt.Sprintf("%d %s", count[state], state))
		}
	}
	if len(said) == 0 {
		return "none seen yet"
	}
	return strings.Join(said, ", ")
}

func serverShow(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show SERVER [TOOL]", Short: "Show the tools of an MCP server, and how they differ from what was trusted",
		Args: cobra.RangeArgs(1, 2),
		Long: "Show writes the name, description and schemas of each tool, as a model reads them. " +
			"Characters that nobody sees are written as \\u{code point}.\n" +
			"Of a tool that is not what a person trusted, the lines that are gone begin with -, and the new ones with +.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			s, err := api.ToolServer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				s.Tools = slices.DeleteFunc(s.Tools, func(t client.ServedTool) bool { return t.Tool != args[1] && t.Name != args[1] })
				if len(s.Tools) == 0 {
					return noTool(s.Name, args[1])
				}
			}
			return i.Show(s, func(p *term.Printer) { showServer(p, s) })
		},
	}
}

func noTool(server, tool string) error {
	return fault.New(fault.NotFound, "mcp_tool_not_found", "the server %s offers no tool %s", term.OneLine(server, 60),
		term.OneLine(tool, 60)).With("ask it for its tools: agentbox mcp look " + term.OneLine(server, 60) + " --space SPACE")
}

func showServer(p *term.Printer, s client.ToolServer) {
	login := ""
	switch {
	case s.LoggedIn != nil:
		login = fmt.Sprintf("%s is logged in as the client %s", s.LoggedIn.By, s.LoggedIn.Client)
		if len(s.LoggedIn.Scopes) > 0 {
			login += ", scopes " + strings.Join(s.LoggedIn.Scopes, " ")
		}
	case s.Login:
		login = "nobody is logged in"
	}
	p.Fields("name", s.Name, "command", s.Command, "url", s.URL, "key", s.Key, "client id", s.ClientID, "issuer", s.Issuer, "login", login,
		"hash", s.Hash.String())
	for _, t := range s.Tools {
		p.Line("")
		p.Line("%s  %s", p.Paint(term.Bold, term.Plain(t.Tool)), p.Paint(colourOf(t.State), t.State))
		switch {
		case t.Problem != "":
			p.Line("  it cannot be offered: %s", term.Plain(t.Problem))
			continue
		case t.Was != nil:
			differences(p, said(*t.Was), said(t.ToolText))
		default:
			for _, line := range said(t.ToolText) {
				p.Line("  %s", term.Plain(line))
			}
		}
		if t.State == "quarantined" {
			p.Line("  release it: agentbox mcp trust %s %s@%s", term.Plain(s.Name), term.Plain(t.Tool), t.Hash.Hex()[:shortHash])
		}
	}
}

func colourOf(state string) string {
	if state == "trusted" {
		return term.Green
	}
	return term.Yellow
}

// said are the lines of what a server says of a tool; none of one that is gone.
func said(t client.ToolText) []string {
	var lines []string
	for _, text := range []string{t.Title, t.Description, indented(t.Input), indented(t.Output)} {
		if text != "" {
			lines = append(lines, strings.Split(text, "\n")...)
		}
	}
	return lines
}

func indented(schema json.RawMessage) string {
	var out bytes.Buffer
	if len(schema) == 0 || json.Indent(&out, schema, "", "  ") != nil {
		return ""
	}
	return out.String()
}

// differences shows which lines are gone, which are new, and the others between them.
func differences(p *term.Printer, was, is []string) {
	for _, line := range was {
		if !slices.Contains(is, line) {
			p.Line("  %s", p.Paint(term.Red, "- "+term.Plain(line)))
		}
	}
	for _, line := range is {
		if slices.Contains(was, line) {
			p.Line("    %s", term.Plain(line))
			continue
		}
		p.Line("  %s", p.Paint(term.Green, "+ "+term.Plain(line)))
	}
}

func serverAdd(i *cmdline.Invocation) *cobra.Command {
	var spec client.ToolServerSpec
	c := &cobra.Command{
		Use: "add NAME (--url URL | --command LINE)", Short: "Add an MCP server, or change it", Args: cobra.ExactArgs(1),
		Long: "Add asks nothing of the server yet. A server with a command runs in the space of the agent, one with an address\n" +
			"is asked by the daemon. A key is named, never written here: set it with agentbox model key set.",
		Example: "  agentbox mcp add weather --url https://mcp.example.com/mcp --key weather\n" +
			"  agentbox mcp add notes --url https://mcp.example.org/mcp --login\n" +
			"  agentbox mcp add files --command 'node server.js'",
	}
	c.Flags().StringVar(&spec.URL, "url", "", "the address of a server that speaks streamable HTTP")
	c.Flags().StringVar(&spec.Command, "command", "", "a command line that speaks on its standard input and output")
	c.Flags().StringVar(&spec.Key, "key", "", "the name of the key that the address is sent")
	c.Flags().StringVar(&spec.ClientID, "client-id", "", "for OAuth: the client id, whose secret is the key")
	c.Flags().StringVar(&spec.Issuer, "issuer", "", "for OAuth: the issuer at which the client is registered")
	c.Flags().BoolVar(&spec.Login, "login", false, "for OAuth: a person logs in with a browser, see agentbox mcp login")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if (spec.URL == "") == (spec.Command == "") {
			return cmdline.Usage("name either an address with --url, or a command line with --command")
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		s, err := api.PutToolServer(cmd.Context(), args[0], spec)
		if err != nil {
			return err
		}
		return i.Show(s, func(p *term.Printer) {
			if s.Login && s.LoggedIn == nil {
				p.Line("%s is there; now log in: agentbox mcp login %s --space SPACE", term.Plain(s.Name), term.Plain(s.Name))
				return
			}
			p.Line("%s is there; now see what it offers: agentbox mcp look %s --space SPACE", term.Plain(s.Name), term.Plain(s.Name))
		})
	}
	return c
}

func serverRemove(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "rm SERVER", Short: "Remove an MCP server", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&reason, "reason", "", "why, for the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if err := api.RemoveToolServer(cmd.Context(), args[0], reason); err != nil {
			return err
		}
		return i.Show(map[string]string{"name": args[0]}, func(p *term.Printer) { p.Line("%s is removed", term.Plain(args[0])) })
	}
	return c
}

func serverLook(i *cmdline.Invocation) *cobra.Command {
	var in string
	c := &cobra.Command{
		Use: "look SERVER --space SPACE", Short: "Ask an MCP server for its tools", Args: cobra.ExactArgs(1),
		Long: "Look reaches the server from a space: its policy has to permit the host, and a server with a command runs in it.\n" +
			"What is new is quarantined until somebody trusts it.",
	}
	c.Flags().StringVar(&in, "space", "", "the space from which the server is reached")
	_ = c.RegisterFlagCompletionFunc("space", i.CompleteSpaces)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if in == "" {
			return cmdline.Usage("name the space with --space")
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		at, err := i.Named(cmd.Context(), api, in)
		if err != nil {
			return err
		}
		s, err := api.LookAtToolServer(cmd.Context(), args[0], at)
		if err != nil {
			return err
		}
		return i.Show(s, func(p *term.Printer) { showServer(p, s) })
	}
	return c
}

func serverTrust(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "trust SERVER TOOL@HASH...", Short: "Release tools of an MCP server for agents", Args: cobra.MinimumNArgs(2),
		Long: "Trust names each tool with the first digits of its hash, as agentbox mcp show writes it. So nobody releases what they\n" +
			"have not seen.",
		Example: "  agentbox mcp show weather\n  agentbox mcp trust weather forecast@9f86d081884c",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			s, err := api.ToolServer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var tools []mcp.Named
			for _, arg := range args[1:] {
				one, err := named(s, arg)
				if err != nil {
					return err
				}
				tools = append(tools, one)
			}
			if s, err = api.TrustTools(cmd.Context(), args[0], tools); err != nil {
				return err
			}
			return i.Show(s, func(p *term.Printer) { p.Line("%s: %s", term.Plain(s.Name), states(s)) })
		},
	}
}

// named finds the tool that a person names with the digits of its hash.
func named(s client.ToolServer, arg string) (mcp.Named, error) {
	tool, digits, _ := strings.Cut(arg, "@")
	if len(digits) < shortHash {
		return mcp.Named{}, cmdline.Usage("name a tool with %d digits of its hash, as TOOL@9f86d081884c; agentbox mcp show %s writes them",
			shortHash, term.OneLine(s.Name, 60))
	}
	at := slices.IndexFunc(s.Tools, func(t client.ServedTool) bool { return t.Tool == tool })
	if at < 0 {
		return mcp.Named{}, noTool(s.Name, tool)
	}
	if !strings.HasPrefix(s.Tools[at].Hash.Hex(), digits) {
		return mcp.Named{}, mcp.ErrChanged
	}
	return mcp.Named{Tool: tool, Hash: s.Tools[at].Hash}, nil
}
