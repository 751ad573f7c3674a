package hostcmd

import (
	"io"

	"github.com/spf13/cobra"

	"agentbox/internal/surface/cli/cmdline"
)

// ModelContext is the command by which agents of others use spaces.
func ModelContext(i *cmdline.Invocation) *cobra.Command {
	var (
		c     cmdline.ModelContext
		quiet bool
	)
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve spaces to other agents over MCP, and keep the MCP servers that agents use", Args: cobra.NoArgs,
		Long: "Mcp speaks the Model Context Protocol on standard input and output, for Claude Code, Codex, opencode, Cursor and other " +
			"clients.\n" +
			"A client gets tools for code, commands, files, spaces, runs and search. The first call makes a space for the session.\n" +
			"Runs act as an agent with the client's name, so policy binds them. When policy asks a person, a client that can ask its user\n" +
			"does so; every other one is told which approval waits. The daemon must run: agentbox up.\n" +
			"The commands below keep the other side: servers of others whose tools agents of blueprints use.",
		Example: "  claude mcp add agentbox -- agentbox mcp\n" +
			"  agentbox mcp --space my-project --policy restrictive --no-ask",
	}
	f := cmd.Flags()
	f.StringVar(&c.Agent, "agent", "", "name of the agent for whom runs are started (default: the client's name)")
	f.StringVar(&c.Space, "space", "", "work in this space (default: one that is made for the session)")
	f.StringVar(&c.Runtime, "runtime", "auto", "runtime of the session's own space: auto, nano or heavy")
	f.StringVar(&c.Policy, "policy", "", "preset of the session's own space (default: standard)")
	f.DurationVar(&c.TTL, "ttl", 0, "how long the session's own space lives (default: 12h)")
	f.BoolVar(&quiet, "no-ask", false, "never ask the client's user about approvals; they are answered elsewhere")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.TTL < 0 {
			return cmdline.Usage("--ttl must be a time such as 30m or 12h")
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if _, err := api.Session(cmd.Context()); err != nil { // report a wrong key before a client waits for its first call
			return err
		}
		c.API, c.Elicit = api, !quiet
		return i.ModelContext(cmd.Context(), c, io.NopCloser(i.In), keptOpen{i.Out})
	}
	cmd.AddCommand(toolServers(i)...)
	return cmd
}

// keptOpen is a writer that its user does not close.
type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }
