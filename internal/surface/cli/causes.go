package cli

import (
	"context"
	"fmt"
	"strings"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// causes prints the path from the first cause of an event to the event, and the tree of its effects.
func (i *invocation) causes(ctx context.Context, of id.Event) error {
	api, err := i.connect(ctx)
	if err != nil {
		return err
	}
	found, err := api.Causes(ctx, of)
	if err != nil {
		return err
	}
	p := i.printer(i.Out)
	if p.json {
		return p.record(found)
	}
	if found.Outside != "" {
		p.line("%s", p.paint(faint, "caused by "+string(found.Outside)+" in another workspace"))
	}
	if found.PathCut {
		p.line("%s", p.paint(faint, "... earlier causes are not shown"))
	}
	for depth, e := range found.Path {
		p.branch(e, depth, faint)
	}
	depth := len(found.Path)
	p.branch(found.Event, depth, green)
	for _, e := range found.Effects {
		p.branch(e.Event, depth+e.Depth, "")
	}
	if found.EffectsCut {
		p.line("%s", p.paint(faint, "... more effects are not shown; ask with the id of one of these"))
	}
	return nil
}

// ledTo writes what led to a run, and how its effects are shown.
func (i *invocation) ledTo(ctx context.Context, api *client.Client, r id.Run) error {
	made, err := api.Events(ctx, client.EventFilter{Run: r, Types: []string{run.EventCreated, run.EventImported}, From: 1, Limit: 1})
	if err != nil || len(made.Events) == 0 {
		return err
	}
	found, err := api.Causes(ctx, made.Events[0].ID)
	if err != nil {
		return err
	}
	p := i.printer(i.Out)
	if len(found.Path) > 0 {
		words := make([]string, len(found.Path))
		for n, e := range found.Path {
			words[n] = plain(e.Type)
		}
		p.line("%s", wrapped("led to by: "+strings.Join(words, " > "), p.width, 2))
	}
	p.line("%s", p.paint(faint, wrapped("what it led to: agentbox events --cause "+string(found.Event.ID), p.width, 2)))
	return nil
}

// deepest is how far a branch is indented at most, so that a long path stays on the screen.
const deepest = 12

// branch writes an event under its cause.
func (p *printer) branch(e event.Event, depth int, colour string) {
	mark := ""
	if depth > 0 {
		mark = strings.Repeat("  ", min(depth, deepest)-1) + "└ "
	}
	about := ""
	switch {
	case e.EntityType == "space" && e.Run != "", e.EntityID == "":
		about = string(e.Run)
	default:
		about = e.EntityType + " " + e.EntityID
	}
	p.line("%s  %s%s  %s  %s", p.paint(faint, pad(fmt.Sprint(e.Seq), 6)), mark, p.paint(colour, oneLine(e.Type, 24)), oneLine(about, 48),
		p.paint(faint, string(e.ID)))
}
