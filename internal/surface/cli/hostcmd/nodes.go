package hostcmd

import (
	"github.com/spf13/cobra"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Nodes are the commands about the daemons that work on a log together.
func Nodes(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("node", "List the daemons on one database, and give one up", nodeList(i), nodeRemove(i))
	c.Aliases = []string{"nodes"}
	return c
}

// standing returns the state of a node as a word.
func standing(m node.Member) string {
	switch {
	case m.Removed:
		return "given up"
	case m.Leads:
		return "leads"
	case m.Alive:
		return "works"
	}
	return "does not work"
}

func nodeList(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the daemons that work on the log, and those that have", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := api.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			return i.List("nodes", found, "", func(p *term.Printer) {
				rows := make([][]term.Cell, len(found))
				for n, m := range found {
					rows[n] = []term.Cell{term.Text(string(m.Node)), term.Text(standing(m)), term.Text(m.Address), term.Text(term.Ago(i.Clock.Now(),
						m.Since))}
				}
				p.Table("There are no nodes.", []string{"node", "status", "address", "joined"}, rows)
			})
		},
	}
}

func nodeRemove(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "remove NODE", Short: "Give up a daemon that never comes back: its spaces and their runs end", Args: cobra.ExactArgs(1),
		ValidArgsFunction: i.CompleteNodes,
		Long: "Remove is final: the files of its spaces are lost, and its later writes are refused. Only one that " +
			"does not work can be given up.",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		done, err := api.RemoveNode(cmd.Context(), id.Node(args[0]), reason)
		if err != nil {
			return err
		}
		return i.Show(done, func(p *term.Printer) {
			p.Fields("node", string(done.Node), "status", standing(done), "address", done.Address)
		})
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stays in the log")
	return c
}
