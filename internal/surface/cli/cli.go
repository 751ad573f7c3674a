// Package cli is the command line: a client of the HTTP API for a person at a terminal or a script.
package cli

//go:generate go test -count=1 -run ^TestTheReferenceIsCurrent$ . -update

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/agentcmd"
	"agentbox/internal/surface/cli/auditcmd"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/codecmd"
	"agentbox/internal/surface/cli/hostcmd"
	"agentbox/internal/surface/cli/modelcmd"
	"agentbox/internal/surface/cli/peoplecmd"
	"agentbox/internal/surface/cli/policycmd"
	"agentbox/internal/surface/cli/runcmd"
	"agentbox/internal/surface/cli/shellcmd"
	"agentbox/internal/surface/cli/spacecmd"
	"agentbox/internal/surface/cli/talkcmd"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/topcmd"
)

// commands are all commands, by the group and in the order in which help lists them.
var commands = []struct {
	id, title string
	makes     []func(*cmdline.Invocation) *cobra.Command
}{
	{"start", "Start here:", []func(*cmdline.Invocation) *cobra.Command{hostcmd.Up, hostcmd.Demo, hostcmd.Doctor, codecmd.Snippets}},
	{"work", "Spaces and runs:", []func(*cmdline.Invocation) *cobra.Command{
		spacecmd.Spaces, spacecmd.Files, shellcmd.Shell, runcmd.Exec, codecmd.Contexts, runcmd.Runs, runcmd.Timeline, policycmd.Approvals,
		spacecmd.Artifacts, topcmd.Top, runcmd.Engine, hostcmd.Wasi, hostcmd.ModelContext,
	}},
	{"agents", "Agents:", []func(*cmdline.Invocation) *cobra.Command{agentcmd.Chat, agents, policycmd.Blueprints, modelcmd.Models}},
	{"policy", "Policy and safety:", []func(*cmdline.Invocation) *cobra.Command{policycmd.Policies, policycmd.ActionTypes,
		policycmd.KillSwitch, peoplecmd.Tokens, policycmd.Labels, policycmd.Incidents}},
	{"people", "People, agents and talk:", []func(*cmdline.Invocation) *cobra.Command{
		peoplecmd.Principals, peoplecmd.Engines, peoplecmd.Keys, peoplecmd.Login, peoplecmd.Logout, peoplecmd.Passphrase,
		peoplecmd.Bootstrap, talkcmd.Rooms, talkcmd.Threads, talkcmd.Messages, talkcmd.Search,
	}},
	{"operate", "Log and operation:", []func(*cmdline.Invocation) *cobra.Command{
		auditcmd.Events, auditcmd.Audit, hostcmd.Workspaces, hostcmd.Nodes, hostcmd.Backups, hostcmd.Restore, hostcmd.ExportWorkspace,
		hostcmd.ImportWorkspace, hostcmd.Collect, version,
	}},
}

// Main is Run for a whole process. Help lists commands in the order above, which cobra knows for the whole process only.
func Main(ctx context.Context, host cmdline.Host, args []string) int {
	cobra.EnableCommandSorting = false
	return Run(ctx, host, args)
}

// Run executes the command line and returns the exit code.
func Run(ctx context.Context, host cmdline.Host, args []string) int {
	i := &cmdline.Invocation{Host: host}
	root := root(i)
	cmdline.Shells(root)
	cmdline.Helps(root)
	cmdline.Fits(i, root)
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(ctx)
	if _, silent := errors.AsType[*cmdline.Ended](err); err != nil && !silent {
		i.JSON = i.JSON || asksForJSON(args) // a wrong flag may keep the rest from being read
		cmdline.Complain(host.Err, i.Printer(host.Err), stopped(ctx, cmdline.Typed(ran, cmdline.UnknownKey(i, err))))
	}
	return cmdline.ExitCode(err)
}

// stopped says in words what ended because the person at the terminal wanted it, and said nothing of its own.
func stopped(ctx context.Context, err error) error {
	if _, said := cmdline.AsFault(err); said || ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return fault.New(fault.Unavailable, cmdline.CodeInterrupted, "interrupted")
}

func asksForJSON(args []string) bool {
	for _, a := range args {
		if a == "--json" {
			return true
		}
	}
	return false
}

// root makes the command tree.
func root(i *cmdline.Invocation) *cobra.Command {
	root := &cobra.Command{
		Use:   "agentbox",
		Short: "Run AI agents that do real work without having to be trusted",
		Long: "Agentbox runs the code of AI agents in isolated spaces. A policy decides on each step and asks people where it says so.\n" +
			"An append-only log records everything and can prove it. Start the daemon with `agentbox up`, or watch `agentbox demo`.",
		SilenceErrors: true, SilenceUsage: true, Version: i.Version,
		Args: cmdline.OnlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return cmp.Or(cmdline.RefuseEmpty(i, cmd), cmdline.RefuseLimit(cmd))
		},
	}
	root.SetVersionTemplate("agentbox {{.Version}}\n")
	root.SetIn(i.In)
	root.SetOut(i.Out)
	root.SetErr(i.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cmdline.Usage("%s: %s", cmdline.Within(cmd), err).With("see: " + cmd.CommandPath() + " --help")
	})
	flags := root.PersistentFlags()
	flags.BoolVar(&i.JSON, "json", false, "answer in JSON")
	flags.StringVar(&i.Data, "data", "", "data directory of the local daemon (AGENTBOX_HOME; default ~/.agentbox)")
	flags.StringVar(&i.Store, "store", "",
		"database of the log, as in postgres://user@host/database (AGENTBOX_STORE; default: a file in the data directory)")
	flags.StringVar(&i.Shared, "shared", "", "folder that all daemons of one database share (AGENTBOX_SHARED; default: the data directory)")
	flags.StringVar(&i.URL, "url", "", "address of the daemon (AGENTBOX_URL; default: the local daemon)")
	flags.StringVar(&i.Key, "key-file", "", "file with the API key (AGENTBOX_KEY holds a key itself; default: the key of the local owner)")
	for _, g := range commands {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, make := range g.makes {
			c := make(i)
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("start")
	root.SetCompletionCommandGroupID("operate")
	cmdline.Completed(i, root)
	cmdline.WrapArgs(root)
	return root
}

// version says which program this is.
func version(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return i.Show(map[string]string{"version": i.Version}, func(p *term.Printer) { fmt.Fprintf(p.Out, "agentbox %s\n", i.Version) })
		},
	}
}

// agents are the commands about agents: who they are, and what they are told to do.
func agents(i *cmdline.Invocation) *cobra.Command {
	c := peoplecmd.Agents(i)
	c.Short = "Give agents tasks, watch, steer and stop them; register and quarantine agents"
	c.AddCommand(agentcmd.Commands(i)...)
	return c
}
