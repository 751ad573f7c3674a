// Package talkcmd has the commands about rooms, threads and messages, and the search in them.
package talkcmd

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
	"agentbox/internal/surface/cli/auditcmd"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Rooms are the commands about rooms.
func Rooms(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("room", "Create, list and follow rooms, where people and agents talk",
		roomCreate(i), roomList(i), roomShow(i), roomUpdate(i), roomRead(i), roomDefaults(i), roomWatch(i))
	c.Aliases = []string{"rooms"}
	return c
}

// contextFlags are the flags for the instructions and rights of agents in a room.
type contextFlags struct {
	prompt, memory string
	tools, models  []string
	inherit        []string
}

func (f *contextFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.prompt, "system-prompt", "", "what agents in it are told; @FILE reads a file, - the input")
	flags.StringVar(&f.memory, "memory-summary", "", "the summary of what was said so far; @FILE reads a file, - the input")
	flags.StringSliceVar(&f.tools, "tools", nil,
		"tools that may be used there, as shell or what engines call, separated by commas; empty allows none")
	flags.StringSliceVar(&f.models, "models", nil, "models that may be used, separated by commas, as engines are told; empty allows none")
}

func (f *contextFlags) addInherit(c *cobra.Command, usage string) {
	c.Flags().StringSliceVar(&f.inherit, "inherit", nil, usage+": "+strings.Join(room.Fields, ", "))
	_ = c.RegisterFlagCompletionFunc("inherit", cobra.FixedCompletions(room.Fields, cobra.ShellCompDirectiveNoFileComp))
}

// context returns the context that the flags set.
func (f *contextFlags) context(i *cmdline.Invocation, c *cobra.Command) (found room.Context, err error) {
	for _, t := range []struct {
		flag, text string
		into       **string
	}{{"system-prompt", f.prompt, &found.Prompt}, {"memory-summary", f.memory, &found.Memory}} {
		if !c.Flags().Changed(t.flag) {
			continue
		}
		text, err := said(i, t.text)
		if err != nil {
			return found, err
		}
		*t.into = &text
	}
	for _, l := range []struct {
		flag string
		list []string
		into **[]string
	}{{"tools", f.tools, &found.Tools}, {"models", f.models, &found.Models}} {
		if c.Flags().Changed(l.flag) {
			list := append([]string{}, l.list...)
			*l.into = &list
		}
	}
	return found, nil
}

func roomCreate(i *cmdline.Invocation) *cobra.Command {
	var q client.RoomRequest
	var f contextFlags
	c := &cobra.Command{
		Use: "create TITLE", Short: "Create a room", Args: cobra.ExactArgs(1),
		Example: "  agentbox room create lab --topic 'what works'\n  agentbox room create support --system-prompt @prompt.md --tools " +
			"shell,readFile",
	}
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		q.Title = args[0]
		if q.Context, err = f.context(i, cmd); err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		made, err := api.CreateRoom(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) { p.Line("%s", made.ID) })
	}
	flags := c.Flags()
	flags.StringVar(&q.Topic, "topic", "", "what it is about")
	flags.StringVar(&q.Mode, "mode", "", "a word of your own")
	flags.StringVar(&q.Lang, "lang", "", "language of its messages, for example de")
	flags.StringVar(&q.ToolPolicy, "tool-policy", "", "names a policy for tools")
	flags.StringVar(&q.Mission, "mission", "", "the mission to which it belongs")
	f.add(c)
	return c
}

func roomList(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List rooms, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := cmdline.AllRooms(cmd.Context(), api)
			if err != nil {
				return err
			}
			return i.List("rooms", found, "", func(p *term.Printer) {
				rows := make([][]term.Cell, len(found))
				for n, r := range found {
					rows[n] = []term.Cell{term.Text(string(r.ID)), {Text: unread(r.Unread), Colour: term.Yellow}, {Text: term.Ago(i.Clock.Now(),
						r.UpdatedAt), Colour: term.Faint}, term.Text(r.Title),
						term.Text(r.Topic)}
					if r.UpdatedAt.IsZero() {
						rows[n][2].Text = ""
					}
				}
				p.Table("There are no rooms.", []string{"room", "unread", "changed", "title", "topic"}, rows)
			})
		},
	}
}

// onRoom makes a command about one room.
func onRoom(i *cmdline.Invocation, use, short string, do func(cmd *cobra.Command, api *client.Client, r id.Room) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " ROOM", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteRooms,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			named, err := i.RoomNamed(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			return do(cmd, api, named)
		},
	}
}

func roomShow(i *cmdline.Invocation) *cobra.Command {
	return onRoom(i, "show", "Show a room with what agents in it are told and may use", func(cmd *cobra.Command, api *client.Client,
		r id.Room) error {
		found, err := api.Room(cmd.Context(), r)
		if err != nil {
			return err
		}
		return i.Show(found, func(p *term.Printer) { writeRoom(p, i, found.Room, found.Effective) })
	})
}

func writeRoom(p *term.Printer, i *cmdline.Invocation, r room.Room, effective room.Context) {
	made := ""
	if !r.CreatedAt.IsZero() {
		made = term.Ago(i.Clock.Now(), r.CreatedAt) + " by " + string(r.CreatedBy)
	}
	p.Fields(append([]string{
		"room", string(r.ID), "title", r.Title, "topic", r.Topic, "mode", r.Mode, "language", r.Lang, "mission", r.Mission, "tool policy",
		r.ToolPolicy, "made", made,
	}, contextFields(r.Context, effective)...)...)
}

// contextFields are the fields of a context that holds, with a word for those that a room inherits.
func contextFields(own, holds room.Context) []string {
	from := func(inherited bool, text string) string {
		if inherited {
			return text + "  (of the workspace)"
		}
		return text
	}
	fields := []string{}
	if holds.Prompt != nil {
		fields = append(fields, "system prompt", from(own.Prompt == nil, *holds.Prompt))
	}
	for _, l := range []struct {
		name      string
		own, list *[]string
	}{{"tools", own.Tools, holds.Tools}, {"models", own.Models, holds.Models}} {
		if l.list != nil {
			fields = append(fields, l.name, from(l.own == nil, cmdline.First(strings.Join(*l.list, ", "), "none")))
		}
	}
	if holds.Memory != nil {
		fields = append(fields, "memory summary", from(own.Memory == nil, *holds.Memory))
	}
	return fields
}

func roomUpdate(i *cmdline.Invocation) *cobra.Command {
	var title, topic, mode, lang, policy string
	var f contextFlags
	var c *cobra.Command
	c = onRoom(i, "update", "Change a room", func(cmd *cobra.Command, api *client.Client, r id.Room) error {
		change := client.RoomChange{Inherit: f.inherit}
		for _, t := range []struct {
			flag string
			text *string
			into **string
		}{{"title", &title, &change.Title}, {"topic", &topic, &change.Topic}, {"mode", &mode, &change.Mode}, {"lang", &lang, &change.Lang},
			{"tool-policy", &policy, &change.ToolPolicy}} {
			if c.Flags().Changed(t.flag) {
				*t.into = t.text
			}
		}
		var err error
		if change.Context, err = f.context(i, c); err != nil {
			return err
		}
		changed, err := api.UpdateRoom(cmd.Context(), r, change)
		if err != nil {
			return err
		}
		return i.Show(changed, func(p *term.Printer) { writeRoom(p, i, changed, changed.Context) })
	})
	c.Aliases = []string{"set"}
	c.Long = "Update changes only the fields whose flags are given. Owners and admins alone change the instructions and rights of agents."
	flags := c.Flags()
	flags.StringVar(&title, "title", "", "its title")
	flags.StringVar(&topic, "topic", "", "what it is about")
	flags.StringVar(&mode, "mode", "", "a word of your own")
	flags.StringVar(&lang, "lang", "", "language of its messages, for example de")
	flags.StringVar(&policy, "tool-policy", "", "names a policy for tools")
	f.add(c)
	f.addInherit(c, "fields that are inherited from the workspace again")
	return c
}

// unread is how many messages are new, for people.
func unread(n int) string {
	switch {
	case n == 0:
		return ""
	case n >= room.MaxUnread:
		return strconv.Itoa(room.MaxUnread) + "+"
	}
	return strconv.Itoa(n)
}

func roomRead(i *cmdline.Invocation) *cobra.Command {
	var to uint64
	c := onRoom(i, "read", "Say that you have read a room, up to now or to a place in it", func(cmd *cobra.Command, api *client.Client,
		r id.Room) error {
		moved, err := api.MarkRead(cmd.Context(), r, to)
		if err != nil {
			return err
		}
		return i.Show(moved, func(p *term.Printer) {
			p.Line("read up to %d; %s unread", moved.StreamSeq, cmdline.First(unread(moved.Unread), "nothing"))
		})
	})
	c.Flags().Uint64Var(&to, "to", 0, "up to this place in the room's stream (default: everything)")
	return c
}

func roomDefaults(i *cmdline.Invocation) *cobra.Command {
	var f contextFlags
	c := &cobra.Command{
		Use: "defaults", Short: "Show or change what the rooms of the workspace inherit", Args: cobra.NoArgs,
		Example: "  agentbox room defaults\n  agentbox room defaults --system-prompt @prompt.md --models small,large",
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		change := client.ContextChange{Inherit: f.inherit}
		var err error
		if change.Context, err = f.context(i, cmd); err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		var found room.Defaults
		if change.Context == (room.Context{}) && len(change.Inherit) == 0 {
			found, err = api.RoomDefaults(cmd.Context())
		} else {
			found, err = api.UpdateRoomDefaults(cmd.Context(), change)
		}
		if err != nil {
			return err
		}
		return i.Show(found, func(p *term.Printer) {
			fields := contextFields(found.Context, found.Context)
			if len(fields) == 0 {
				p.Line("Nothing is set; agents in a room are told and may use what the room and policy say.")
			}
			p.Fields(fields...)
		})
	}
	f.add(c)
	f.addInherit(c, "fields that are unset again")
	return c
}

func roomWatch(i *cmdline.Invocation) *cobra.Command {
	var from uint64
	c := onRoom(i, "watch", "Follow a room: what is said in it, and what its runs do", func(cmd *cobra.Command, api *client.Client,
		r id.Room) error {
		p, ctx := i.Printer(i.Out), cmd.Context()
		for e, err := range api.FollowRoom(ctx, r, from) {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if err := auditcmd.WriteEvent(p, e); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		return fault.New(fault.Unavailable, "stream_ended", "the daemon ended the stream of events").With("go on with: agentbox room watch")
	})
	c.Long = "Watch prints the events of a room as they happen, until it is interrupted. With --json each is one line, complete."
	c.Flags().Uint64Var(&from, "from", 0, "from this place in the room's stream on (default: from now on)")
	return c
}
