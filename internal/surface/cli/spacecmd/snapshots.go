package spacecmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// shortDigits is how many digits of a snapshot's hash a table shows. A command accepts as many.
const shortDigits = 12

func short(d event.Digest) string { return d.Hex()[:shortDigits] }

func spaceSnapshots(i *cmdline.Invocation) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "snapshots SPACE", Short: "List the snapshots of a space's files, the newest first", Args: cobra.ExactArgs(1),
		ValidArgsFunction: i.CompleteSpaces,
		Long: "A snapshot is made when a space is ready, before each run, and after each operation that can change files. What is " +
			"marked as gone\nmade room for newer ones: the last 1,000 are kept, of those as many as fit into twice the space's disk limit.",
	}
	c.Flags().IntVar(&limit, "limit", 50, "how many at most")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		named, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		found, next := []client.Snapshot{}, ""
		for cursor := ""; len(found) < limit; {
			page, err := api.Snapshots(cmd.Context(), named, client.Page{Cursor: cursor, Limit: min(100, limit-len(found))})
			if err != nil {
				return err
			}
			found = append(found, page.Snapshots...)
			if cursor, next = page.Next, page.Next; cursor == "" {
				break
			}
		}
		return i.List("snapshots", found, next, func(p *term.Printer) {
			now := i.Clock.Now()
			rows := make([][]term.Cell, len(found))
			for n, s := range found {
				state := term.Cell{Text: "kept", Colour: term.Green}
				if !s.Kept {
					state = term.Cell{Text: "gone", Colour: term.Faint}
				}
				rows[n] = []term.Cell{
					{Text: short(s.Root), Colour: ""}, state, {Text: term.Ago(now, s.At),
						Colour: term.Faint}, term.Text(term.Trimmed(float64(s.Files))), term.Text(term.Bytesize(s.Bytes)), term.Text(string(s.Step)),
					term.Text(occasion(s.Recorded)),
				}
			}
			p.Table("There are no snapshots.", []string{"snapshot", "", "made", "files", "size", "step", "what happened"}, rows)
		})
	}
	return c
}

// occasion describes why a snapshot was made, in the words of its event.
func occasion(r space.Recorded) string {
	switch r.Cause {
	case space.EventReady:
		return "the space was made"
	case space.EventRewound, space.EventRewindFailed:
		return "a rewind"
	case "run.started":
		return "before " + string(r.Run)
	}
	return "after " + r.Operation + " of " + string(r.Run)
}

func spaceRewind(i *cmdline.Invocation) *cobra.Command {
	c := &cobra.Command{
		Use: "rewind SPACE TO", Short: "Return a space's files to an earlier snapshot", Args: cobra.ExactArgs(2),
		ValidArgsFunction: i.CompleteSpaces,
		Long: "TO is a snapshot, by its hash or at least 8 digits of it; a step, for the files after it; or a run, for the " +
			"files before it.\nAll files change or none does. The daemon keeps the present files as a snapshot too, so a rewind can be undone.",
		Example: "  agentbox space rewind weather 3f9a1c20be77\n  agentbox space rewind weather run_01ARZ3NDEKTSV4RRFFQ69G5FAV",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		named, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		done, err := api.RewindSpace(cmd.Context(), named, args[1])
		if err != nil {
			return err
		}
		return i.Show(done, func(p *term.Printer) {
			p.Line("%s  %s", short(done.Snapshot.Root), p.Paint(term.Faint, term.Count(done.Snapshot.Files,
				"file")+", "+term.Bytesize(done.Snapshot.Bytes)))
			if done.From != done.Snapshot.Root {
				p.Line("%s agentbox space rewind %s %s", p.Paint(term.Faint, "to undo:"), named, short(done.From))
			}
		})
	}
	return c
}

func spaceFork(i *cmdline.Invocation) *cobra.Command {
	var (
		q             client.ForkRequest
		env, metadata []string
		ttl           string
	)
	c := &cobra.Command{
		Use: "fork SPACE [NAME]", Short: "Create a space from a snapshot of another", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: i.CompleteSpaces,
		Long: "The fork has the other space's policy, tier, limits and room. It has nothing of its environment, where secrets " +
			"are: give it its own with --env.",
	}
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 1 {
			q.Name = args[1]
		}
		if q.Env, q.Metadata, q.TTLSeconds, err = settings(env, metadata, ttl); err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		named, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		made, err := api.ForkSpace(cmd.Context(), named, q)
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) { p.Line("%s", made.ID) })
	}
	f := c.Flags()
	f.StringVar(&q.At, "at", "", "a snapshot, step or run, as in rewind (default: the files as they are now)")
	f.StringVar(&q.Description, "description", "", "what it is for")
	f.StringVar(&ttl, "ttl", "", "how long it lives, for example 90m or 7d (default 12h)")
	f.StringArrayVar(&env, "env", nil, "NAME=VALUE in the environment of every command; repeatable")
	f.StringArrayVar(&metadata, "metadata", nil, "NAME=VALUE for your own notes; repeatable")
	return c
}

func spaceDiff(i *cmdline.Invocation) *cobra.Command {
	c := &cobra.Command{
		Use: "diff SPACE [FROM [TO]]", Short: "Compare two snapshots of a space's files", Args: cobra.RangeArgs(1, 3),
		ValidArgsFunction: i.CompleteSpaces,
		Long: "FROM and TO are snapshots, steps or runs, as in rewind. Without them it is what the files were before the last " +
			"run, and what they are now.",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := compare(cmd.Context(), i, append(args, "", "")[:3])
		if err != nil {
			return err
		}
		return i.Show(found, func(p *term.Printer) { writeComparison(p, found) })
	}
	return c
}

func compare(ctx context.Context, i *cmdline.Invocation, args []string) (client.Comparison, error) {
	api, err := i.Connect(ctx)
	if err != nil {
		return client.Comparison{}, err
	}
	named, err := i.Named(ctx, api, args[0])
	if err != nil {
		return client.Comparison{}, err
	}
	return api.DiffSpace(ctx, named, args[1], args[2])
}

// writeComparison writes a line for each path that differs.
func writeComparison(p *term.Printer, c client.Comparison) {
	if len(c.Differences) == 0 {
		p.Line("Nothing differs.")
		return
	}
	for _, d := range c.Differences {
		sign, colour := "~", term.Yellow
		switch d.Change {
		case space.Added:
			sign, colour = "+", term.Green
		case space.Removed:
			sign, colour = "-", term.Red
		}
		p.Line("%s", strings.TrimRight(p.Paint(colour, sign+" "+term.Plain(d.Path))+"  "+p.Paint(term.Faint, change(d)), " "))
	}
	if c.Truncated {
		p.Line("There is more; compare snapshots that lie nearer to each other.")
	}
}

// change describes a difference.
func change(d space.Difference) string {
	if d.Before == nil || d.After == nil {
		v := d.Before
		if v == nil {
			v = d.After
		}
		return measures(v)
	}
	var parts []string
	if d.Before.Type != d.After.Type {
		return d.Before.Type + " -> " + d.After.Type
	}
	if d.Before.Mode != d.After.Mode {
		parts = append(parts, "mode "+d.Before.Mode+" -> "+d.After.Mode)
	}
	if d.Before.Digest != d.After.Digest && d.After.Type == "file" {
		parts = append(parts, term.Bytesize(d.Before.Size)+" -> "+term.Bytesize(d.After.Size))
	}
	if d.Before.Target != d.After.Target {
		parts = append(parts, term.Plain(d.Before.Target)+" -> "+term.Plain(d.After.Target))
	}
	return strings.Join(parts, ", ")
}

func measures(v *space.Version) string {
	switch v.Type {
	case "file":
		return term.Bytesize(v.Size)
	case "symlink":
		return "-> " + term.Plain(v.Target)
	}
	return v.Type
}
