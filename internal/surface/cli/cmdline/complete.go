package cmdline

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentbox/internal/client"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/term"
)

// completionTime is how long a shell waits for a daemon's offers.
const completionTime = 500 * time.Millisecond

// offer is a function that returns the completions of an argument or of a flag's value.
type offer = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// Completed gives every command and every flag of a tree its completions: identifiers from the daemon, words where there are few, files
// only where a file is meant.
func Completed(i *Invocation, cmd *cobra.Command) {
	if len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = i.arguments(cmd)
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if _, known := cmd.GetFlagCompletionFunc(f.Name); !known && f.Value.Type() != "bool" && f.Name != "help" {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, i.values(cmd, f)) // it is known to the command
			}
		})
	}
	for _, sub := range cmd.Commands() {
		Completed(i, sub)
	}
}

// Shells adds the command that writes the completions of each shell, and has it refuse a shell that it does not know.
func Shells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = OnlyCommands, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			WrapArgs(c)
		}
	}
}

// Helps has the command that shows the help of others refuse a word that is not a command.
func Helps(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				if err != nil {
					return Usage("%s", err).With("see: agentbox --help")
				}
				if len(rest) > 0 && of.HasSubCommands() {
					return OnlyCommands(of, rest)
				}
				of.InitDefaultHelpFlag()
				return of.Help()
			}
		}
	}
}

// soon puts a time limit on a request to the daemon.
func (i *Invocation) soon(of offer) offer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := cmd.Context()
		ctx, cancel := context.WithCancel(before)
		over, stop := i.Clock.NewTimer(completionTime)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case <-over:
				cancel()
			case <-ctx.Done():
			}
		}()
		defer func() {
			cancel()
			stop()
			<-ended
		}()
		cmd.SetContext(ctx)
		defer cmd.SetContext(before)
		return of(cmd, args, begun)
	}
}

// arguments offers what the line of use of a command says, and for the first argument what the command itself does, if anything.
func (i *Invocation) arguments(cmd *cobra.Command) offer {
	own := cmd.ValidArgsFunction
	_, takes, _ := strings.Cut(cmd.Use, " ")
	words := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(takes))
	return i.soon(func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if own != nil && len(args) == 0 {
			return own(cmd, args, begun)
		}
		if len(words) == 0 || len(args) >= len(words) && !strings.HasSuffix(words[len(words)-1], "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		stands := words[min(len(args), len(words)-1)]
		if stands == "CONTEXT" && len(args) > 0 {
			return i.completeContexts(cmd, args[0])
		}
		return i.offered(cmd, stands, begun)
	})
}

// completion offers what has an id and a name by its name, and by its id where that was begun or there is no name that is one word.
func completion(id, name, begun string) string {
	kind, _, _ := strings.Cut(id, "_")
	if name == "" || Word(name) != name || strings.HasPrefix(name, kind+"_") || begun != "" && strings.HasPrefix(id, begun) {
		return id + "\t" + term.OneLine(name, 60)
	}
	return name + "\t" + id
}

// offered returns the completions of an argument by its words in the usage line.
func (i *Invocation) offered(cmd *cobra.Command, stands, begun string) ([]string, cobra.ShellCompDirective) {
	for kind := range strings.SplitSeq(strings.TrimSuffix(stands, "..."), "|") {
		switch kind {
		case "RUN":
			return i.fromDaemon(cmd, func(ctx context.Context, api *client.Client) (found []string, err error) {
				page, err := api.Runs(ctx, client.RunFilter{Page: client.Page{Limit: 100}})
				for _, r := range page.Runs {
					found = append(found, string(r.ID)+"\t"+term.OneLine(First(r.Title, string(r.Status)), 60))
				}
				return found, err
			})
		case "INCIDENT":
			return i.fromDaemon(cmd, func(ctx context.Context, api *client.Client) (found []string, err error) {
				page, err := api.Incidents(ctx, client.IncidentFilter{Page: client.Page{Limit: 100}})
				for _, x := range page.Incidents {
					found = append(found, string(x.ID)+"\t"+term.OneLine(x.Title, 60))
				}
				return found, err
			})
		case "SPACE":
			return i.CompleteSpaces(cmd, nil, begun)
		case "ROOM":
			return i.CompleteRooms(cmd, nil, begun)
		case "THREAD":
			return i.CompleteThreads(cmd, nil, begun)
		case "APPROVAL":
			return i.CompleteApprovals(cmd, nil, begun)
		case "WORKSPACE":
			return i.CompleteWorkspaces(cmd, nil, begun)
		case "BLUEPRINT": // or the file of one
			names, _ := i.completeBlueprints(cmd)
			return names, cobra.ShellCompDirectiveDefault
		case "SERVER":
			return i.completeServers(cmd)
		case "NAME", "NAME@VERSION":
			return i.completeNames(cmd)
		case "LABEL":
			return enumerations["label list label"], cobra.ShellCompDirectiveNoFileComp
		case "ROLE":
			return enumerations["role"], cobra.ShellCompDirectiveNoFileComp
		}
		if strings.HasPrefix(kind, "FILE") || strings.Contains(kind, ".") || kind == "WHERE" {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// enumerations are the words that a flag takes, by its name; with the command before it where another command's flag of that name takes
// others.
var enumerations = map[string][]string{
	"approvals scope":  {"once", "run", "room", "workspace", "template"},
	"approvals status": {"pending", "held", "approved", "denied", "expired", "withdrawn"},
	"up engine":        {"embedded", "external"},
	"label list label": {string(label.Public), string(label.Internal), string(label.Restricted), string(label.Confidential),
		string(label.SensitivePII)},
	"log-format": {"text", "json"},
	"policy":     {"restrictive", "standard", "permissive"},
	"redact":     {"env", "content", "output", "commands", "none"},
	"role": {string(principal.Viewer), string(principal.Member), string(principal.Operator), string(principal.Admin),
		string(principal.Overlord)},
	"severity":        {string(incident.Low), string(incident.Medium), string(incident.High), string(incident.Critical)},
	"incident status": {string(incident.Open), string(incident.Closed)},
	"space status":    {string(space.Creating), string(space.Ready), string(space.Running), string(space.Paused), string(space.Destroyed)},
	"runs status": {string(run.Queued), string(run.Running), string(run.AwaitingApproval), string(run.Succeeded), string(run.Failed),
		string(run.Cancelled)},
	"context language": {"python", "js", "ts"},
	"exec language":    {"python", "js", "ts", "bash", "wasm"},
	"runtime":          {"auto", "nano", "heavy"},
	"tier":             {"auto", "nano", "heavy", "namespace"},
	"zone":             {"sandbox", "supervised", "high_stakes"},
}

// values offers the values of a flag.
func (i *Invocation) values(cmd *cobra.Command, f *pflag.Flag) offer {
	above := ""
	if cmd.HasParent() {
		above = cmd.Parent().Name() + " "
	}
	for _, name := range []string{above + cmd.Name() + " " + f.Name, cmd.Name() + " " + f.Name, above + f.Name, f.Name} {
		if words, known := enumerations[name]; known {
			return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
		}
	}
	switch {
	case f.Name == "blueprint":
		return i.soon(func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return i.completeBlueprints(cmd)
		})
	case cmd.Name() == "chat" && f.Name == "model":
		return i.soon(func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return i.completeModels(cmd)
		})
	}
	if kind := strings.ToUpper(f.Name); slices.Contains([]string{"RUN", "ROOM", "SPACE", "THREAD", "WORKSPACE"}, kind) {
		return i.soon(func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return i.offered(cmd, kind, begun)
		})
	}
	for _, word := range []string{"file", "folder", "directory", ".csv"} {
		if strings.Contains(strings.ToLower(f.Usage), word) {
			return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		}
	}
	return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
}

// fromDaemon offers names and ids from a daemon; nothing where none answers.
func (i *Invocation) fromDaemon(cmd *cobra.Command, list func(ctx context.Context, api *client.Client) ([]string, error)) ([]string,
	cobra.ShellCompDirective) {
	api, err := i.Connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := list(cmd.Context(), api)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
