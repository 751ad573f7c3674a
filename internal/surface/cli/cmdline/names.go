package cmdline

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/term"
)

// OnlyRoom adds the flag that names the only room that is meant.
func OnlyRoom(i *Invocation, c *cobra.Command, room *string, usage string) {
	c.Flags().StringVar(room, "room", "", usage)
	_ = c.RegisterFlagCompletionFunc("room", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return i.CompleteRooms(cmd, nil, begun)
	})
}

// RoomOnly returns the id of the only room that is meant, "" for any.
func RoomOnly(ctx context.Context, i *Invocation, api *client.Client, name string) (id.Room, error) {
	if name == "" {
		return "", nil
	}
	return i.RoomNamed(ctx, api, name)
}

// RoomFlag adds the flag that names a room by its id or title.
func RoomFlag(i *Invocation, c *cobra.Command, in *string) {
	c.Flags().StringVar(in, "room", "", "the room, by its id or title (default: the workspace's default room)")
	_ = c.RegisterFlagCompletionFunc("room", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return i.CompleteRooms(cmd, nil, begun)
	})
}

// PrincipalNamed returns the id of a principal that is named by its id or, where only one has it, by its name.
func PrincipalNamed(ctx context.Context, api *client.Client, named string) (id.Principal, error) {
	if named == "" || id.Principal(named).Kind() != "" {
		return id.Principal(named), nil
	}
	found, err := All(func(cursor string) ([]principal.Principal, string, error) {
		page, err := api.Principals(ctx, client.PrincipalFilter{Name: named, Page: client.Page{Cursor: cursor, Limit: 100}})
		return page.Principals, page.Next, err
	})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, p := range found {
		if p.Name == named {
			ids = append(ids, string(p.ID))
		}
	}
	switch len(ids) {
	case 1:
		return id.Principal(ids[0]), nil
	case 0:
		return "", fault.New(fault.NotFound, "principal_not_found", "no principal has the id or the name %q", term.OneLine(named,
			60)).With("see: agentbox principal list")
	}
	return "", fault.New(fault.Conflict, "name_ambiguous", "%d principals have the name %q", len(ids), term.OneLine(named,
		60)).With("name one by its id: " + strings.Join(ids, ", "))
}

// AllRooms reads the rooms that the caller may see, page by page.
func AllRooms(ctx context.Context, api *client.Client) ([]client.ListedRoom, error) {
	return All(func(cursor string) ([]client.ListedRoom, string, error) {
		page, err := api.Rooms(ctx, client.Page{Cursor: cursor, Limit: 200})
		return page.Rooms, page.Next, err
	})
}

// RoomNamed returns the id of a room that is named by its id or, where only one has it, by its title. Without a name it is the default one.
func (i *Invocation) RoomNamed(ctx context.Context, api *client.Client, name string) (id.Room, error) {
	if name == "" {
		return id.DefaultRoom, nil
	}
	if strings.HasPrefix(name, "room_") {
		return id.Room(name), nil
	}
	listed, err := AllRooms(ctx, api)
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
			term.OneLine(name, 60)).With("see: agentbox room list")
	}
	return "", fault.New(fault.Conflict, "name_ambiguous", "%d rooms have the title %q", len(found),
		term.OneLine(name, 60)).With("name one by its id: " + strings.Join(found, ", "))
}

// Named returns the id of a space that is named by its id or, where only one has it, by its name.
func (i *Invocation) Named(ctx context.Context, api *client.Client, name string) (id.Space, error) {
	if name == "" || strings.HasPrefix(name, "spc_") {
		return id.Space(name), nil
	}
	found, err := api.Space(ctx, id.Space(name))
	if fault.CodeOf(err) == "space_not_found" {
		return "", fault.New(fault.NotFound, "space_not_found", "no space has the id or name %q",
			term.OneLine(name, 60)).With("see: agentbox space list")
	}
	return found.ID, err
}

// UnlessTaken makes a space with a name, or without one where a living space has it.
func UnlessTaken(name string, create func(name string) (space.Space, error)) (space.Space, error) {
	made, err := create(name)
	if fault.CodeOf(err) == "space_name_taken" {
		return create("")
	}
	return made, err
}
