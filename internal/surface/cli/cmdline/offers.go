package cmdline

import (
	"context"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/surface/cli/term"
)

// CompleteApprovals offers the questions that wait for a person.
func (i *Invocation) CompleteApprovals(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := i.Connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	waiting, err := Open(cmd.Context(), api, "", "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, a := range waiting {
		found = append(found, string(a.ID)+"\t"+term.OneLine(a.Title, 60))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeContexts offers the interpreter contexts of a space.
func (i *Invocation) completeContexts(cmd *cobra.Command, in string) ([]string, cobra.ShellCompDirective) {
	return i.fromDaemon(cmd, func(ctx context.Context, api *client.Client) (found []string, err error) {
		s, err := i.Named(ctx, api, in)
		if err != nil {
			return nil, err
		}
		all, err := api.Contexts(ctx, s)
		for _, c := range all {
			found = append(found, c.Name+"\t"+c.Language)
		}
		return found, err
	})
}

// CompleteThreads offers the threads of the newest rooms.
func (i *Invocation) CompleteThreads(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	api, err := i.Connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	page, err := api.Rooms(cmd.Context(), client.Page{Limit: 10})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, r := range page.Rooms {
		list, err := api.Threads(cmd.Context(), r.ID, client.Page{Limit: 20})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, t := range list.Threads {
			found = append(found, string(t.ID)+"\t"+term.OneLine(r.Title, 20)+": "+term.OneLine(t.Title, 60))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// CompleteNodes offers the nodes that do not work.
func (i *Invocation) CompleteNodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := i.Connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := api.Nodes(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, m := range all {
		if !m.Alive && !m.Removed {
			found = append(found, string(m.Node)+"\t"+m.Address)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// CompleteRooms offers rooms.
func (i *Invocation) CompleteRooms(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := i.Connect(cmd.Context())
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

// CompleteSpaces offers the spaces that live.
func (i *Invocation) CompleteSpaces(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := i.Connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	page, err := api.Spaces(cmd.Context(), client.SpaceFilter{Page: client.Page{Limit: 100}})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, s := range page.Spaces {
		found = append(found, completion(string(s.ID), s.Name, begun))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// CompleteWorkspaces offers the workspaces that are seen.
func (i *Invocation) CompleteWorkspaces(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	api, err := i.Connect(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	page, err := api.Workspaces(cmd.Context(), client.Page{Limit: 100})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, w := range page.Workspaces {
		found = append(found, string(w.ID)+"\t"+term.OneLine(w.Name, 60))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeBlueprints offers the registered blueprints.
func (i *Invocation) completeBlueprints(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
	return i.fromDaemon(cmd, func(ctx context.Context, api *client.Client) (found []string, err error) {
		all, err := Blueprints(ctx, api)
		for _, b := range all {
			found = append(found, b.Name+"\t"+term.OneLine(b.Summary.Description, 60))
		}
		return found, err
	})
}

// completeModels offers the models of the catalogue.
func (i *Invocation) completeModels(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
	return i.fromDaemon(cmd, func(ctx context.Context, api *client.Client) (found []string, err error) {
		all, err := api.Models(ctx)
		for _, m := range all.Models {
			found = append(found, m.Name+"\t"+term.OneLine(m.Model, 60))
		}
		return found, err
	})
}

// completeServers offers the MCP servers.
func (i *Invocation) completeServers(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
	return i.fromDaemon(cmd, func(ctx context.Context, api *client.Client) (found []string, err error) {
		all, err := api.ToolServers(ctx)
		for _, s := range all {
			found = append(found, s.Name+"\t"+term.OneLine(First(s.URL, s.Command), 60))
		}
		return found, err
	})
}

// completeNames offers the things that a NAME of the command means: models or blueprints that there are. A new name is not offered.
func (i *Invocation) completeNames(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) {
	switch cmd.Parent().Name() + " " + cmd.Name() {
	case "model show", "model test", "model rm", "model record":
		return i.completeModels(cmd)
	case "blueprint show", "blueprint rm":
		return i.completeBlueprints(cmd)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
