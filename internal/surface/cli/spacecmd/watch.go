package spacecmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

func spaceWatch(i *cmdline.Invocation) *cobra.Command {
	var deep bool
	var count int
	c := &cobra.Command{
		Use: "watch SPACE [PATH]", Short: "Watch the files of a space", Args: cobra.RangeArgs(1, 2), ValidArgsFunction: i.CompleteSpaces,
		Long: "Watch prints each change of the files in a folder, until you interrupt it or the folder is gone. It tells the changes of " +
			"everybody. If the connection breaks, watch connects again. The line overflow means that some changes are not known: list the " +
			"folder again. " +
			"With --json each event is one line. Watch writes \"Watching.\" to standard error when it has begun.",
		Example: "  agentbox space watch SPACE --recursive\n  agentbox space watch SPACE src --json | jq .path",
	}
	c.Flags().BoolVarP(&deep, "recursive", "r", false, "also what is in the folders")
	c.Flags().IntVarP(&count, "count", "n", 0, "end after so many events (default: do not end)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if count < 0 {
			return cmdline.Usage("--count is a number of events, 1 or more")
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		seen, p := 0, i.Printer(i.Out)
		begun := func() { fmt.Fprintln(i.Err, "Watching.") } // with --json too: a program changes files once the watch has begun
		for e, err := range api.WatchFiles(cmd.Context(), in, cmdline.First(append(args[1:], ".")...), deep, begun) {
			if cmd.Context().Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if err := showFileEvent(p, e); err != nil {
				return err
			}
			if seen++; count > 0 && seen >= count {
				return nil
			}
		}
		return nil
	}
	return c
}

// showFileEvent prints an event of a watch.
func showFileEvent(p *term.Printer, e client.FileEvent) error {
	if p.JSON {
		return p.Record(e)
	}
	name := term.OneLine(e.Path, 0)
	if e.Type == "directory" {
		name += "/"
	}
	switch {
	case e.From != "":
		name = term.OneLine(e.From, 0) + " -> " + name
	case e.Reason != "":
		name = e.Reason
	case e.Attributes:
		name += "  (permissions)"
	}
	colour := map[string]string{"created": term.Green, "removed": term.Red, "overflow": term.Yellow, "ended": term.Yellow}[e.Event]
	p.Line("%s %s", p.Paint(colour, fmt.Sprintf("%-8s", e.Event)), name)
	return nil
}
