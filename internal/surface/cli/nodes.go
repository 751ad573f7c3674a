package cli

import (
	"github.com/spf13/cobra"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
)

// nodes are the commands about the daemons that work on a log together.
func nodes(i *invocation) *cobra.Command {
	c := group("node", "List the daemons on one database, and give one up", nodeList(i), nodeRemove(i))
	c.Aliases = []string{"nodes"}
	return c
}

// standing says how a node stands.
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

func nodeList(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the daemons that work on the log, and those that have", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := api.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			return i.list("nodes", found, "", func(p *printer) {
				rows := make([][]cell, len(found))
				for n, m := range found {
					rows[n] = []cell{text(string(m.Node)), text(standing(m)), text(m.Address), text(ago(i.Clock.Now(), m.Since))}
				}
				p.table("There are no nodes.", []string{"node", "status", "address", "joined"}, rows)
			})
		},
	}
}

func nodeRemove(i *invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "remove NODE", Short: "Give up a daemon that never comes back: its spaces and their runs end", Args: cobra.ExactArgs(1),
		ValidArgsFunction: i.completeNodes,
		Long: "Remove is for good: the files of its spaces are lost, and nothing that it writes is taken any more. Only one that " +
			"does not work can be given up.",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		done, err := api.RemoveNode(cmd.Context(), id.Node(args[0]), reason)
		if err != nil {
			return err
		}
		return i.show(done, func(p *printer) {
			p.fields("node", string(done.Node), "status", standing(done), "address", done.Address)
		})
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stays in the log")
	return c
}

// completeNodes offers the nodes that do not work.
func (i *invocation) completeNodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := i.connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := api.Nodes(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, m := range all {
		if !m.Alive && !m.Removed {
			found = append(found, string(m.Node)+"\t"+m.Address)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
