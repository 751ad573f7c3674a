package agentcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// usesFrom returns the filter of the uses of standing approvals in the room of the run, from a place on. An event of a use belongs to the
// answer that granted it, not to the run, so the run's correlation does not find it.
func (a *attended) usesFrom(place uint64) client.EventFilter {
	return client.EventFilter{Room: a.run.Room, Types: []string{policy.StandingUsedType}, From: place, Limit: 100}
}

// standing prints the uses of standing approvals that were recorded for this run since the last time, each as one line.
func (a *attended) standing(ctx context.Context) error {
	for !a.blind {
		page, err := a.api.Events(ctx, a.usesFrom(max(1, a.uses)))
		for n := 0; err == nil && n < len(page.Events); n++ {
			err = a.used(ctx, page.Events[n])
		}
		switch {
		case fault.KindOf(err) == fault.Unavailable && err != nil:
			return err
		case err != nil: // said once; the conversation goes on without these lines
			a.blind = true
			a.closeTool()
			cmdline.Complain(a.i.Err, a.err, err)
		case len(page.Events) == 0:
			return nil
		default:
			a.uses = page.Next
		}
	}
	return nil
}

// earlierUses remembers the place behind the uses of standing approvals from before the run.
func (a *attended) earlierUses(ctx context.Context) {
	if a.run.Status.Ended() {
		a.blind = true
		return
	}
	page, err := a.api.Events(ctx, a.usesFrom(0))
	if err == nil {
		a.uses = page.Next
	}
	a.blind = err != nil && fault.KindOf(err) != fault.Unavailable
}

// used prints that a standing approval has allowed an action.
func (a *attended) used(ctx context.Context, e event.Event) error {
	d, err := event.Decode[policy.StandingUsed](e)
	if err != nil {
		return err
	}
	if e.Run != a.run.ID { // a run that a call made in the space belongs to the same request
		r, err := a.api.Run(ctx, e.Run)
		if err != nil || r.Correlation != a.run.Correlation {
			return err
		}
	}
	said := string(d.Standing)
	all, err := a.api.Standings(ctx, client.Page{Limit: 100})
	if err != nil {
		return err
	}
	for _, s := range all.Standing {
		if s.ID == d.Standing {
			said = fmt.Sprintf("use %d of %d; end it: agentbox approvals revoke %s", s.Used, s.Uses, s.Approval)
		}
	}
	a.closeTool()
	a.err.Line("  %s", a.err.Paint(term.Faint, "standing approval, "+said))
	return nil
}

// maxArguments is the most bytes of the arguments of a call that are kept for /tools.
const maxArguments = 16 << 10

// proposed is a tool call as the model writes it.
type proposed struct{ id, name, arguments string }

// propose takes a piece of a tool call.
func (a *attended) propose(d model.Delta) {
	n := len(a.calls)
	if d.Name != "" || n == 0 || d.ID != "" && d.ID != a.calls[n-1].id {
		a.calls = append(a.calls, proposed{id: d.ID, name: d.Name})
		n++
	}
	last := &a.calls[n-1]
	if room := maxArguments - len(last.arguments); room > 0 {
		last.arguments += d.Text[:min(room, len(d.Text))]
	}
}

// argumentsOf returns the arguments of the first call of a name, or with an id, that no line has shown yet.
func (a *attended) argumentsOf(name string) string {
	for n, c := range a.calls {
		if c.name == name || c.id == name {
			a.calls = slices.Delete(a.calls, n, n+1)
			return c.arguments
		}
	}
	return ""
}

// shortArguments writes the arguments of a call as name=value pairs on one line of at most so many characters.
func shortArguments(arguments string, width int) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return term.OneLine(arguments, width) // it is cut, or no object
	}
	pairs := make([]string, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		pairs = append(pairs, name+"="+string(fields[name]))
	}
	return term.OneLine(strings.Join(pairs, " "), width)
}
