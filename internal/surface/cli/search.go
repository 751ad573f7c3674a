package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// searchCommand finds messages.
func searchCommand(i *invocation) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "search WORD...", Short: "Find messages that have every word, the newest first", Args: cobra.MinimumNArgs(1),
		Long:    "Search finds messages by words, or parts of words, in any language; case does not count.",
		Example: "  agentbox search deploy failed\n  agentbox search 東京 --json",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := api.Search(cmd.Context(), strings.Join(args, " "), limit)
		if err != nil {
			return err
		}
		return i.show(found, func(p *printer) {
			rows := make([][]cell, len(found.Results))
			for n, r := range found.Results {
				rows[n] = []cell{text(string(r.Message)), text(string(r.Thread)), {ago(i.Clock.Now(), r.CreatedAt), faint}, text(r.Excerpt)}
			}
			p.table("Nothing is found.", []string{"message", "thread", "said", "text"}, rows)
			if !found.Whole {
				i.printer(i.Err).line("The index is being made: %d of %d events are searched.", found.Indexed, found.Head)
			}
		})
	}
	c.Flags().IntVar(&limit, "limit", 20, "how many at most, 1 to 100")
	return c
}
