package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
)

// searchCommand finds messages.
func searchCommand(i *invocation) *cobra.Command {
	var q client.SearchRequest
	c := &cobra.Command{
		Use: "search WORD...", Short: "Search messages, the newest first", Args: cobra.MinimumNArgs(1),
		Long:    "Search finds messages by words, or parts of words, in any language; case does not count.",
		Example: "  agentbox search deploy failed\n  agentbox search 東京 --json\n  agentbox search invoice --room room_00000000000000000000000000",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		q.Words = strings.Join(args, " ")
		found, err := api.Search(cmd.Context(), q)
		if f, ok := asFault(err); ok && f.Code == "q_too_short" {
			return usage("the words have%s", strings.TrimPrefix(f.Msg, "q has"))
		}
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
	f := c.Flags()
	f.IntVar(&q.Limit, "limit", 20, "how many at most, 1 to 100")
	f.StringVar((*string)(&q.Room), "room", "", "only what was said in this room")
	f.StringVar((*string)(&q.Thread), "thread", "", "only what was said in this thread")
	_ = c.RegisterFlagCompletionFunc("room", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return i.completeRooms(cmd, nil, begun)
	})
	return c
}
