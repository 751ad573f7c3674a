package hostcmd

import (
	"strconv"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Workspaces are the commands about workspaces.
func Workspaces(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("workspace", "Create, list, change and archive workspaces (tenants)",
		workspaceCreate(i), workspaceList(i), workspaceShow(i), workspaceUpdate(i), workspaceArchive(i), workspaceUnarchive(i))
	c.Aliases = []string{"workspaces"}
	return c
}

func workspaceCreate(i *cmdline.Invocation) *cobra.Command {
	var q client.WorkspaceRequest
	c := &cobra.Command{
		Use: "create [WORKSPACE]", Short: "Create a workspace with an owner and their first key", Args: cobra.MaximumNArgs(1),
		Long:    "Create makes a workspace and prints the first key of its owner. The key is stored nowhere and shown once: keep it.",
		Example: "  agentbox workspace create ws_team --kind community --name 'The team'\n  AGENTBOX_KEY=abk_... agentbox room list",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			q.Workspace = id.Workspace(args[0])
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		made, err := api.CreateWorkspace(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) {
			p.Fields("workspace", string(made.ID), "kind", string(made.Kind), "name", made.Name, "owner", string(made.Owner), "key", made.Key)
		})
	}
	f := c.Flags()
	f.StringVar(&q.Kind, "kind", "", "community or private (default private)")
	f.StringVar(&q.Name, "name", "", "how it is called")
	f.StringVar(&q.Owner, "owner", "", "how its owner is called")
	f.IntVar(&q.Tasks, "tasks", 0, "how many of its tasks run at the same time (default "+strconv.Itoa(workspace.DefaultTasks)+")")
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{string(workspace.Community), string(workspace.Private)},
		cobra.ShellCompDirectiveNoFileComp))
	return c
}

func workspaceList(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the workspaces that you see", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := cmdline.All(func(cursor string) ([]workspace.Workspace, string, error) {
				page, err := api.Workspaces(cmd.Context(), client.Page{Cursor: cursor, Limit: 100})
				return page.Workspaces, page.Next, err
			})
			if err != nil {
				return err
			}
			return i.List("workspaces", found, "", func(p *term.Printer) {
				rows := make([][]term.Cell, len(found))
				for n, w := range found {
					rows[n] = []term.Cell{term.Text(string(w.ID)), term.Text(string(w.Kind)), term.Text(string(w.State)), term.Text(strconv.Itoa(w.Tasks)),
						term.Text(w.Name)}
				}
				p.Table("There are no workspaces.", []string{"workspace", "kind", "status", "tasks", "name"}, rows)
			})
		},
	}
}

func writeWorkspace(p *term.Printer, i *cmdline.Invocation, w workspace.Workspace) {
	now := i.Clock.Now()
	made, archived := "", ""
	if !w.CreatedAt.IsZero() {
		made = term.Ago(now, w.CreatedAt) + " by " + string(w.CreatedBy)
	}
	if !w.ArchivedAt.IsZero() {
		archived = term.Ago(now, w.ArchivedAt)
	}
	p.Fields("workspace", string(w.ID), "kind", string(w.Kind), "name", w.Name, "status", string(w.State), "tasks at once",
		strconv.Itoa(w.Tasks), "made", made, "archived", archived, "reason", w.Reason)
}

func workspaceShow(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show WORKSPACE", Short: "Show a workspace", Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteWorkspaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := api.Workspace(cmd.Context(), id.Workspace(args[0]))
			if err != nil {
				return err
			}
			return i.Show(found, func(p *term.Printer) { writeWorkspace(p, i, found) })
		},
	}
}

func workspaceArchive(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "archive WORKSPACE", Short: "Archive a workspace: it can only be read", Args: cobra.ExactArgs(1),
		ValidArgsFunction: i.CompleteWorkspaces,
		Long: "What runs in an archived workspace may be ended and what it holds redacted; everything else is refused, until an " +
			"owner of the installation unarchives it.",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		done, err := api.ArchiveWorkspace(cmd.Context(), id.Workspace(args[0]), reason)
		if err != nil {
			return err
		}
		return i.Show(done, func(p *term.Printer) { writeWorkspace(p, i, done) })
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stays in the log")
	return c
}

func workspaceUnarchive(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "unarchive WORKSPACE", Short: "Unarchive a workspace", Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteWorkspaces,
		Long: "Unarchive takes an owner or an admin of the installation's own workspace. Runs that waited when the workspace was archived, and " +
			"were not ended, go on.",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		done, err := api.UnarchiveWorkspace(cmd.Context(), id.Workspace(args[0]), reason)
		if err != nil {
			return err
		}
		return i.Show(done, func(p *term.Printer) { writeWorkspace(p, i, done) })
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stays in the log")
	return c
}

func workspaceUpdate(i *cmdline.Invocation) *cobra.Command {
	var q client.WorkspaceChange
	c := &cobra.Command{
		Use: "update WORKSPACE", Short: "Change how a workspace is called, or how many of its runs run at the same time",
		Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteWorkspaces,
		Long: "A run beyond the number waits and starts when another one ends. A lower number ends nothing: what runs goes on. Update takes an " +
			"owner or an\n" +
			"admin of the installation's own workspace.",
		Example: "  agentbox workspace update ws_dev --tasks 20",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("tasks") && (q.Tasks < 1 || q.Tasks > workspace.MaxTasks) {
			return cmdline.Usage("--tasks %d: write a number from 1 to %d", q.Tasks, workspace.MaxTasks)
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		done, err := api.UpdateWorkspace(cmd.Context(), id.Workspace(args[0]), q)
		if err != nil {
			return err
		}
		return i.Show(done, func(p *term.Printer) { writeWorkspace(p, i, done) })
	}
	f := c.Flags()
	f.StringVar(&q.Name, "name", "", "how it is called")
	f.IntVar(&q.Tasks, "tasks", 0, "how many of its runs run at the same time, 1 to "+strconv.Itoa(workspace.MaxTasks))
	return c
}
