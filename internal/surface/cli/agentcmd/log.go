package agentcmd

import (
	"context"
	"slices"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// quietTime is how long no frame comes before a conversation shows what it has read in the log. Then the frames of the past are drawn.
const quietTime = 300 * time.Millisecond

// waitsLine returns the line about an agent that waits for the open circuit of its model.
func waitsLine(p *term.Printer, wait model.Deferred) string {
	return p.Paint(term.Yellow, "  waits until "+term.Moment(wait.Until)+": "+term.OneLine(wait.Reason, width))
}

// eventsAtOnce is the most events of a run that a conversation asks for at once. An answer of a model may have 8 MiB.
const eventsAtOnce = 20

// recorded returns the filter of the run's own events that the conversation shows, from the first one that it has not read on.
func (a *attended) recorded() client.EventFilter {
	return client.EventFilter{Run: a.run.ID, From: max(1, a.place), Limit: eventsAtOnce,
		Types: append(proposalTypes(), model.EventAsked, model.EventDeferred)}
}

// catchUp reads the run's events that were recorded since the last time. It keeps the last wait that is not over, and the calls that were
// never made. Where the events are too large together, it asks for half as many.
func (a *attended) catchUp(ctx context.Context) {
	for limit := eventsAtOnce; !a.deaf; {
		from := a.recorded()
		from.Limit = limit
		page, err := a.api.Events(ctx, from)
		if fault.CodeOf(err) == "answer_too_large" && limit > 1 {
			limit /= 2
			continue
		}
		if err != nil {
			a.deaf = fault.KindOf(err) != fault.Unavailable // the conversation goes on without what the log alone says
			return
		}
		if len(page.Events) == 0 {
			return
		}
		for _, e := range page.Events {
			a.waits, a.missed = nil, append(a.missed, a.proposals.take(e)...)
			if wait, err := event.Decode[model.Deferred](e); e.Type == model.EventDeferred && err == nil && wait.Until.After(a.i.Clock.Now()) {
				a.waits = &wait
			}
		}
		a.place = page.Next
	}
}

// heard shows an event of the run that was recorded just now.
func (a *attended) heard(e event.Event) {
	if e.Seq < a.place {
		return // catchUp has read it
	}
	a.place, a.waits, a.missed = e.Seq+1, nil, append(a.missed, a.proposals.take(e)...)
	if wait, err := event.Decode[model.Deferred](e); e.Type == model.EventDeferred && err == nil {
		a.waits = &wait
		a.showWait()
	}
}

// quiet returns a channel that tells that no frame has come for some time; nil where nothing waits for that.
func (a *attended) quiet() (<-chan time.Time, func()) {
	if a.waits == nil && (len(a.missed) == 0 || a.inText) {
		return nil, func() {}
	}
	return a.i.Clock.NewTimer(quietTime)
}

// between shows the calls that were never made before another answer or another call begins. No text is cut in its middle.
func (a *attended) between(ctx context.Context, d model.Delta) {
	switch {
	case d.Type == model.CallPart && d.Name != "":
		a.inText = false
		a.showMissed(false)
	case d.Type == model.TextPart && d.Text != "" && !a.inText:
		a.inText = true
		if len(a.calls) > 0 {
			a.catchUp(ctx) // the log has a turn before the first piece of its answer
		}
		a.showMissed(false)
	}
}

// showMissed shows the calls that were never made: all of them, or those whose pieces the frames have shown.
func (a *attended) showMissed(all bool) {
	var now []unmade
	a.missed = slices.DeleteFunc(a.missed, func(u unmade) bool {
		n := slices.IndexFunc(a.calls, func(c proposed) bool { return c.id == u.ID && c.name == u.Name })
		if n < 0 && !all {
			return false
		}
		if n >= 0 {
			a.calls = slices.Delete(a.calls, n, n+1)
		}
		now = append(now, u)
		return true
	})
	for _, calls := range alike(now) {
		a.flush()
		a.err.Line("%s", unmadeLine(a.err, calls))
		for _, u := range calls {
			result := u.result()
			a.tools = append(a.tools, &toolLine{kind: cmdline.First(u.Name, "a call"), arguments: u.Arguments, result: &result})
		}
	}
}

// showWait shows that the agent waits.
func (a *attended) showWait() {
	if a.waits == nil {
		return
	}
	a.pause()
	a.err.Line("%s", waitsLine(a.err, *a.waits))
	a.waits = nil
}
