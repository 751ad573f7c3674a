package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/room"
)

// rooms are the commands about rooms.
func rooms(i *invocation) *cobra.Command {
	c := group("room", "Create, list and follow rooms, where people and agents talk",
		roomCreate(i), roomList(i), roomShow(i), roomUpdate(i), roomRead(i), roomDefaults(i), roomWatch(i))
	c.Aliases = []string{"rooms"}
	return c
}

// contextFlags are the flags that say what agents in a room are told and may use.
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

// context returns what the flags set.
func (f *contextFlags) context(i *invocation, c *cobra.Command) (found room.Context, err error) {
	for _, t := range []struct {
		flag, text string
		into       **string
	}{{"system-prompt", f.prompt, &found.Prompt}, {"memory-summary", f.memory, &found.Memory}} {
		if !c.Flags().Changed(t.flag) {
			continue
		}
		text, err := i.said(t.text)
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

func roomCreate(i *invocation) *cobra.Command {
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
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		made, err := api.CreateRoom(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.show(made, func(p *printer) { p.line("%s", made.ID) })
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

func roomList(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List rooms, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			found, err := allRooms(cmd.Context(), api)
			if err != nil {
				return err
			}
			return i.list("rooms", found, "", func(p *printer) {
				rows := make([][]cell, len(found))
				for n, r := range found {
					rows[n] = []cell{text(string(r.ID)), {unread(r.Unread), yellow}, {ago(i.Clock.Now(), r.UpdatedAt), faint}, text(r.Title),
						text(r.Topic)}
					if r.UpdatedAt.IsZero() {
						rows[n][2].text = ""
					}
				}
				p.table("There are no rooms.", []string{"room", "unread", "changed", "title", "topic"}, rows)
			})
		},
	}
}

func allRooms(ctx context.Context, api *client.Client) ([]client.ListedRoom, error) {
	return all(func(cursor string) ([]client.ListedRoom, string, error) {
		page, err := api.Rooms(ctx, client.Page{Cursor: cursor, Limit: 200})
		return page.Rooms, page.Next, err
	})
}

// roomNamed returns the id of a room that is named by its id or, where only one has it, by its title. Without a name it is the default one.
func (i *invocation) roomNamed(ctx context.Context, api *client.Client, name string) (id.Room, error) {
	if name == "" {
		return id.DefaultRoom, nil
	}
	if strings.HasPrefix(name, "room_") {
		return id.Room(name), nil
	}
	listed, err := allRooms(ctx, api)
	if err != nil {
		return "", err
	}
	var found []string
	for _, r := range listed {
		if r.Title == name {
			found = append(found, string(r.ID))
		}
	}
	switch len(found) {
	case 1:
		return id.Room(found[0]), nil
	case 0:
		return "", fault.New(fault.NotFound, "room_not_found", "no room has the id or title %q",
			oneLine(name, 60)).With("see: agentbox room list")
	}
	return "", fault.New(fault.Conflict, "name_ambiguous", "%d rooms have the title %q", len(found),
		oneLine(name, 60)).With("name one by its id: " + strings.Join(found, ", "))
}

// onRoom makes a command about one room.
func onRoom(i *invocation, use, short string, do func(cmd *cobra.Command, api *client.Client, r id.Room) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " ROOM", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: i.completeRooms,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			named, err := i.roomNamed(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			return do(cmd, api, named)
		},
	}
}

func roomShow(i *invocation) *cobra.Command {
	return onRoom(i, "show", "Show a room with what agents in it are told and may use", func(cmd *cobra.Command, api *client.Client,
		r id.Room) error {
		found, err := api.Room(cmd.Context(), r)
		if err != nil {
			return err
		}
		return i.show(found, func(p *printer) { p.room(i, found.Room, found.Effective) })
	})
}

func (p *printer) room(i *invocation, r room.Room, effective room.Context) {
	made := ""
	if !r.CreatedAt.IsZero() {
		made = ago(i.Clock.Now(), r.CreatedAt) + " by " + string(r.CreatedBy)
	}
	p.fields(append([]string{
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
			fields = append(fields, l.name, from(l.own == nil, first(strings.Join(*l.list, ", "), "none")))
		}
	}
	if holds.Memory != nil {
		fields = append(fields, "memory summary", from(own.Memory == nil, *holds.Memory))
	}
	return fields
}

func roomUpdate(i *invocation) *cobra.Command {
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
		return i.show(changed, func(p *printer) { p.room(i, changed, changed.Context) })
	})
	c.Aliases = []string{"set"}
	c.Long = "Update changes what is named by a flag. What agents in the room are told and may use is for owners and admins to change."
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

func roomRead(i *invocation) *cobra.Command {
	var to uint64
	c := onRoom(i, "read", "Say that you have read a room, up to now or to a place in it", func(cmd *cobra.Command, api *client.Client,
		r id.Room) error {
		moved, err := api.MarkRead(cmd.Context(), r, to)
		if err != nil {
			return err
		}
		return i.show(moved, func(p *printer) {
			p.line("read up to %d; %s unread", moved.StreamSeq, first(unread(moved.Unread), "nothing"))
		})
	})
	c.Flags().Uint64Var(&to, "to", 0, "up to this place in the room's stream (default: everything)")
	return c
}

func roomDefaults(i *invocation) *cobra.Command {
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
		api, err := i.connect(cmd.Context())
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
		return i.show(found, func(p *printer) {
			fields := contextFields(found.Context, found.Context)
			if len(fields) == 0 {
				p.line("Nothing is set; agents in a room are told and may use what the room and policy say.")
			}
			p.fields(fields...)
		})
	}
	f.add(c)
	f.addInherit(c, "fields that are unset again")
	return c
}

func roomWatch(i *invocation) *cobra.Command {
	var from uint64
	c := onRoom(i, "watch", "Follow a room: what is said in it, and what its runs do", func(cmd *cobra.Command, api *client.Client,
		r id.Room) error {
		p, ctx := i.printer(i.Out), cmd.Context()
		for e, err := range api.FollowRoom(ctx, r, from) {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if err := p.event(e); err != nil {
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

// completeRooms offers rooms.
func (i *invocation) completeRooms(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := i.connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	page, err := api.Rooms(cmd.Context(), client.Page{Limit: 100})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, r := range page.Rooms {
		found = append(found, completion(string(r.ID), r.Title, begun))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
