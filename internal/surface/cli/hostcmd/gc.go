package hostcmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/content"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Collect frees what nothing names.
func Collect(i *cmdline.Invocation) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "gc", Short: "Free content and snapshots that nothing needs", Args: cobra.NoArgs,
		Long: "Gc frees content that no event of the log names, and snapshots that the rule of the daemon (up --keep-snapshots and\n" +
			"--keep-snapshots-for) does not keep. The newest snapshot of a space stays. The daemon does the same by itself every six hours.",
		Example: "  agentbox gc --dry-run\n  agentbox gc",
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be freed, and free nothing")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if dry {
			state, err := api.Content(cmd.Context())
			if err != nil {
				return err
			}
			return i.Show(state, func(p *term.Printer) { writeContents(p, state) })
		}
		swept, err := api.SweepContent(cmd.Context())
		if err != nil {
			return err
		}
		return i.Show(swept, func(p *term.Printer) { writeSwept(p, "freed", swept) })
	}
	return c
}

// writeContents shows the contents beside the log, and the part that a sweep would free.
func writeContents(p *term.Printer, s client.ContentState) {
	quota := "without a quota"
	if s.Quota > 0 {
		quota = "of " + term.Bytesize(s.Quota)
	}
	p.Fields("the log names", fmt.Sprintf("%s, %s %s", term.Count(s.Usage.Contents, "content"), term.Bytesize(s.Usage.Bytes), quota),
		"snapshots kept",
		rule(s.Rule))
	writeSwept(p, "would be freed", s.Sweep)
}

// writeSwept shows the contents that a sweep freed or would free.
func writeSwept(p *term.Printer, freed string, s content.Swept) {
	row := func(what string, f content.Freed) []term.Cell {
		return []term.Cell{{Text: what, Colour: ""}, term.Text(fmt.Sprint(f.Kept)), term.Text(term.Bytesize(f.KeptBytes)),
			term.Text(fmt.Sprint(f.Freed)), term.Text(term.Bytesize(f.FreedBytes))}
	}
	p.Table("", []string{"", "kept", "", freed, ""}, [][]term.Cell{row("contents", s.Contents), row("snapshots", s.Snapshots)})
	for _, m := range s.Failed {
		p.Line("%s", p.Paint(term.Yellow, "the snapshots of "+term.OneLine(m.Space, 40)+" were left as they are: "+term.OneLine(m.Error, 60)))
	}
}

// rule says which snapshots stay.
func rule(r content.Rule) string {
	text := "as many as fit"
	if r.Snapshots > 0 {
		text = fmt.Sprintf("the last %d of each space", r.Snapshots)
	}
	if r.Seconds > 0 {
		text += ", none older than " + (time.Duration(r.Seconds) * time.Second).String()
	}
	return text
}
