package auditcmd

import (
	"context"
	"fmt"
	"strings"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// causes prints the path from the first cause of an event to the event, and the tree of its effects.
func causes(ctx context.Context, i *cmdline.Invocation, of id.Event) error {
	api, err := i.Connect(ctx)
	if err != nil {
		return err
	}
	found, err := api.Causes(ctx, of)
	if err != nil {
		return err
	}
	p := i.Printer(i.Out)
	if p.JSON {
		return p.Record(found)
	}
	if found.Outside != "" {
		p.Line("%s", p.Paint(term.Faint, "caused by "+string(found.Outside)+" in another workspace"))
	}
	if found.PathCut {
		p.Line("%s", p.Paint(term.Faint, "... earlier causes are not shown"))
	}
	for depth, e := range found.Path {
		writeBranch(p, e, depth, term.Faint)
	}
	depth := len(found.Path)
	writeBranch(p, found.Event, depth, term.Green)
	for _, e := range found.Effects {
		writeBranch(p, e.Event, depth+e.Depth, "")
	}
	if found.EffectsCut {
		p.Line("%s", p.Paint(term.Faint, "... more effects are not shown; ask with the id of one of these"))
	}
	return nil
}

// LedTo writes what led to a run, and how its effects are shown.
func LedTo(ctx context.Context, i *cmdline.Invocation, api *client.Client, r id.Run) error {
	made, err := api.Events(ctx, client.EventFilter{Run: r, Types: []string{run.EventCreated, run.EventImported}, From: 1, Limit: 1})
	if err != nil || len(made.Events) == 0 {
		return err
	}
	found, err := api.Causes(ctx, made.Events[0].ID)
	if err != nil {
		return err
	}
	p := i.Printer(i.Out)
	if len(found.Path) > 0 {
		words := make([]string, len(found.Path))
		for n, e := range found.Path {
			words[n] = term.Plain(e.Type)
		}
		p.Line("%s", term.Wrapped("led to by: "+strings.Join(words, " > "), p.Width, 2))
	}
	p.Line("%s", p.Paint(term.Faint, term.Wrapped("what it led to: agentbox events --cause "+string(found.Event.ID), p.Width, 2)))
	return nil
}

// deepest is how far a branch is indented at most, so that a long path stays on the screen.
const deepest = 12

// writeBranch writes an event under its cause.
func writeBranch(p *term.Printer, e event.Event, depth int, colour string) {
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
	p.Line("%s  %s%s  %s  %s", p.Paint(term.Faint, term.Pad(fmt.Sprint(e.Seq), 6)), mark, p.Paint(colour, term.OneLine(e.Type, 24)),
		term.OneLine(about, 48),
		p.Paint(term.Faint, string(e.ID)))
}
