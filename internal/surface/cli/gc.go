package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/content"
)

// collect frees what nothing names.
func collect(i *invocation) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "gc", Short: "Free content and snapshots that nothing needs", Args: cobra.NoArgs,
		Long: "Content of which no event of the log tells any more goes, and snapshots that the rule of the daemon (up --keep-snapshots and\n" +
			"--keep-snapshots-for) lets go. The newest snapshot of a space stays. The daemon does the same by itself every six hours.",
		Example: "  agentbox gc --dry-run\n  agentbox gc",
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be freed, and free nothing")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		if dry {
			state, err := api.Content(cmd.Context())
			if err != nil {
				return err
			}
			return i.show(state, func(p *printer) { p.contents(state) })
		}
		swept, err := api.SweepContent(cmd.Context())
		if err != nil {
			return err
		}
		return i.show(swept, func(p *printer) { p.swept("freed", swept) })
	}
	return c
}

// contents shows what is kept beside the log and what a sweep would free.
func (p *printer) contents(s client.ContentState) {
	quota := "without a quota"
	if s.Quota > 0 {
		quota = "of " + bytesize(s.Quota)
	}
	p.fields("the log names", fmt.Sprintf("%s, %s %s", count(s.Usage.Contents, "content"), bytesize(s.Usage.Bytes), quota), "snapshots kept",
		rule(s.Rule))
	p.swept("would be freed", s.Sweep)
}

// swept shows what was freed, or would be.
func (p *printer) swept(freed string, s content.Swept) {
	row := func(what string, f content.Freed) []cell {
		return []cell{{what, ""}, text(fmt.Sprint(f.Kept)), text(bytesize(f.KeptBytes)), text(fmt.Sprint(f.Freed)), text(bytesize(f.FreedBytes))}
	}
	p.table("", []string{"", "kept", "", freed, ""}, [][]cell{row("contents", s.Contents), row("snapshots", s.Snapshots)})
	for _, m := range s.Failed {
		p.line("%s", p.paint(yellow, "the snapshots of "+oneLine(m.Space, 40)+" were left as they are: "+oneLine(m.Error, 60)))
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
