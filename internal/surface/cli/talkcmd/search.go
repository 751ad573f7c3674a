package talkcmd

import (
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Search finds messages.
func Search(i *cmdline.Invocation) *cobra.Command {
	var q client.SearchRequest
	c := &cobra.Command{
		Use: "search WORD...", Short: "Search messages, the newest first", Args: cobra.MinimumNArgs(1),
		Long:    "Search finds messages by words, or parts of words, in any language; case does not count.",
		Example: "  agentbox search deploy failed\n  agentbox search 東京 --json\n  agentbox search invoice --room room_00000000000000000000000000",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		q.Words = strings.Join(args, " ")
		found, err := api.Search(cmd.Context(), q)
		if f, ok := cmdline.AsFault(err); ok && f.Code == "q_too_short" {
			return cmdline.Usage("the words have%s", strings.TrimPrefix(f.Msg, "q has"))
		}
		if err != nil {
			return err
		}
		return i.Show(found, func(p *term.Printer) {
			rows := make([][]term.Cell, len(found.Results))
			for n, r := range found.Results {
				rows[n] = []term.Cell{term.Text(string(r.Message)), term.Text(string(r.Thread)), {Text: term.Ago(i.Clock.Now(), r.CreatedAt),
					Colour: term.Faint}, term.Text(r.Excerpt)}
			}
			p.Table("Nothing is found.", []string{"message", "thread", "said", "text"}, rows)
			if !found.Whole {
				i.Printer(i.Err).Line("The index is being made: %d of %d events are searched.", found.Indexed, found.Head)
			}
		})
	}
	f := c.Flags()
	f.IntVar(&q.Limit, "limit", 20, "how many at most, 1 to 100")
	f.StringVar((*string)(&q.Room), "room", "", "only what was said in this room")
	f.StringVar((*string)(&q.Thread), "thread", "", "only what was said in this thread")
	_ = c.RegisterFlagCompletionFunc("room", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return i.CompleteRooms(cmd, nil, begun)
	})
	return c
}
