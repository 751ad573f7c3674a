package talkcmd

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Threads are the commands about threads.
func Threads(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("thread", "Start, list and close threads", threadCreate(i), threadList(i), threadShow(i), threadUpdate(i))
	c.Aliases = []string{"threads"}
	return c
}

func threadCreate(i *cmdline.Invocation) *cobra.Command {
	var in string
	c := &cobra.Command{Use: "create TITLE", Short: "Begin a thread in a room", Args: cobra.ExactArgs(1),
		Example: "  agentbox thread create 'release 1.2' --room lab"}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		r, err := i.RoomNamed(cmd.Context(), api, in)
		if err != nil {
			return err
		}
		made, err := api.CreateThread(cmd.Context(), r, args[0])
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) { p.Line("%s", made.ID) })
	}
	cmdline.RoomFlag(i, c, &in)
	return c
}

func threadList(i *cmdline.Invocation) *cobra.Command {
	var in string
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the threads of a room, the newest first", Args: cobra.NoArgs}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		r, err := i.RoomNamed(cmd.Context(), api, in)
		if err != nil {
			return err
		}
		found, err := cmdline.All(func(cursor string) ([]room.Thread, string, error) {
			page, err := api.Threads(cmd.Context(), r, client.Page{Cursor: cursor, Limit: 200})
			return page.Threads, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.List("threads", found, "", func(p *term.Printer) {
			rows := make([][]term.Cell, len(found))
			for n, t := range found {
				rows[n] = []term.Cell{term.Text(string(t.ID)), term.Text(string(t.Status)), {Text: term.Ago(i.Clock.Now(), t.CreatedAt),
					Colour: term.Faint}, term.Text(t.Title)}
			}
			p.Table("There are no threads; begin one with: agentbox thread create", []string{"thread", "status", "begun", "title"}, rows)
		})
	}
	cmdline.RoomFlag(i, c, &in)
	return c
}

// onThread makes a command about one thread that shows it afterwards.
func onThread(i *cmdline.Invocation, use, short string, do func(cmd *cobra.Command, api *client.Client, t id.Thread) (room.Thread,
	error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " THREAD", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			t, err := do(cmd, api, id.Thread(args[0]))
			if err != nil {
				return err
			}
			return i.Show(t, func(p *term.Printer) {
				p.Fields("thread", string(t.ID), "title", t.Title, "status", string(t.Status), "room", string(t.Room), "begun", term.Ago(i.Clock.Now(),
					t.CreatedAt)+" by "+string(t.CreatedBy))
			})
		},
	}
}

func threadShow(i *cmdline.Invocation) *cobra.Command {
	return onThread(i, "show", "Show a thread", func(cmd *cobra.Command, api *client.Client, t id.Thread) (room.Thread, error) {
		return api.Thread(cmd.Context(), t)
	})
}

func threadUpdate(i *cmdline.Invocation) *cobra.Command {
	var title, status string
	var c *cobra.Command
	c = onThread(i, "update", "Change a thread's title, close it or open it again", func(cmd *cobra.Command, api *client.Client,
		t id.Thread) (room.Thread, error) {
		var change client.ThreadChange
		if c.Flags().Changed("title") {
			change.Title = &title
		}
		if c.Flags().Changed("status") {
			change.Status = &status
		}
		if change == (client.ThreadChange{}) {
			return room.Thread{}, cmdline.Usage("nothing to change; name a flag: --title or --status")
		}
		return api.UpdateThread(cmd.Context(), t, change)
	})
	c.Aliases = []string{"set"}
	c.Flags().StringVar(&title, "title", "", "its title")
	c.Flags().StringVar(&status, "status", "", "open or closed; nothing is posted into a closed thread")
	_ = c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions([]string{string(room.Open), string(room.Closed)},
		cobra.ShellCompDirectiveNoFileComp))
	return c
}

// Messages are the commands about messages.
func Messages(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("message", "Post and read messages", messagePost(i), messageList(i))
	c.Aliases = []string{"messages"}
	return c
}

func messagePost(i *cmdline.Invocation) *cobra.Command {
	var q client.MessageRequest
	c := &cobra.Command{
		Use: "post THREAD TEXT", Short: "Post a message into a thread", Args: cobra.ExactArgs(2), ValidArgsFunction: i.CompleteThreads,
		Long: "Post posts Markdown into a thread. @FILE as the text reads a file, - the input.",
		Example: "  agentbox message post th_... 'It *works*.'\n  agentbox message post th_... @report.md --label report\n  git log -1 | " +
			"agentbox message post th_... -",
	}
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if q.Content, err = said(i, args[1]); err != nil {
			return err
		}
		if q.Sender != "" {
			q.SenderType = string(id.Principal(q.Sender).Kind())
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		posted, err := api.PostMessage(cmd.Context(), id.Thread(args[0]), q)
		if err != nil {
			return err
		}
		return i.Show(posted, func(p *term.Printer) { p.Line("%s", posted.ID) })
	}
	f := c.Flags()
	f.StringVar(&q.Parent, "reply-to", "", "the message of the same thread that it answers")
	f.StringVar(&q.Lang, "lang", "", "its language, for example de (default: the room's)")
	f.StringArrayVar(&q.Labels, "label", nil, "a word by which it is sorted; repeatable")
	f.StringVar(&q.Sender, "as", "", "an agent of the workspace that speaks, where you may speak for it")
	f.StringVar(&q.IdempotencyKey, "idempotency-key", "", "a word by which a repeat of this post is known")
	return c
}

// maxSaid is the most bytes that the command reads for one text; the daemon's own limits are lower.
const maxSaid = 1 << 20

// said reads a text that is given as it is, as @FILE or as - for the input.
func said(i *cmdline.Invocation, text string) (string, error) {
	from, what := i.In, "the input"
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		file, err := os.Open(path)
		if err != nil {
			return "", cmdline.Unreadable(err, path)
		}
		defer func() { _ = file.Close() }()
		from, what = file, path
	} else if text != "-" {
		return text, nil
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxSaid+1))
	if err != nil {
		return "", cmdline.Unreadable(err, what)
	}
	if len(raw) > maxSaid {
		return "", fault.New(fault.Exhausted, "text_too_large", "%s has more than %s", term.OneLine(what, 200), term.Bytesize(maxSaid))
	}
	return string(raw), nil
}

func messageList(i *cmdline.Invocation) *cobra.Command {
	var before string
	var limit int
	c := &cobra.Command{
		Use: "list THREAD", Aliases: []string{"ls"}, Short: "Read a thread, the last messages at the end", Args: cobra.ExactArgs(1),
		ValidArgsFunction: i.CompleteThreads,
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		page, err := api.Messages(cmd.Context(), id.Thread(args[0]), before, limit)
		if err != nil {
			return err
		}
		return i.Show(page, func(p *term.Printer) {
			if len(page.Messages) == 0 {
				p.Line("There are no messages; post one with: agentbox message post")
			}
			if page.Next != "" {
				i.Printer(i.Err).Line("%s", p.Paint(term.Faint, "There is more: --before "+page.Next))
			}
			for _, m := range slices.Backward(page.Messages) {
				writeMessage(p, m)
			}
		})
	}
	c.Flags().StringVar(&before, "before", "", "only messages in front of this one, or posted before this time (RFC 3339)")
	c.Flags().IntVar(&limit, "limit", 50, "how many at most, 1 to 200")
	return c
}

// writeMessage writes a message: its sender and time in one line, and its text below.
func writeMessage(p *term.Printer, m room.Message) {
	who := term.OneLine(m.Sender, 60)
	if m.Sender != string(m.By) {
		who += " (handed in by " + term.OneLine(string(m.By), 60) + ")"
	}
	p.Line("%s  %s  %s", p.Paint(term.Faint, m.CreatedAt.Local().Format("2006-01-02 15:04:05")), p.Paint(term.Cyan, who), p.Paint(term.Faint,
		string(m.ID)))
	content := term.Plain(m.Content)
	if m.Redacted != "" {
		content = "(" + strings.ReplaceAll(string(m.Redacted), "_", " ") + ")"
	}
	for line := range strings.SplitSeq(strings.TrimRight(content, "\n"), "\n") {
		p.Line("  %s", term.Wrapped(line, p.Width, 2))
	}
}
