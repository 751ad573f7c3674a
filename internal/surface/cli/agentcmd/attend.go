package agentcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// toolLine is a tool call that the conversation shows as one line.
type toolLine struct {
	id, kind, summary string
	arguments         string // as the model wrote them; "" if they are not known
	result            *run.Result
}

// attended is the display of a task while the agent works on it.
type attended struct {
	*chat
	leftOpen
	run     run.Run
	draw    *term.Markdown         // at a terminal
	said    strings.Builder        // the present answer so far
	open    *toolLine              // the call whose line has no end yet
	asked   map[id.Approval]bool   // questions that it has shown
	asks    map[string]id.Approval // the questions about operations
	calls   []proposed             // calls whose arguments have come, and whose lines have not
	steered []string               // messages to the agent at work, as it may hear them
	stopped bool

	uses  uint64 // the place in the log behind the last use of a standing approval that it has shown
	blind bool   // uses of standing approvals are not shown

	place uint64          // behind the last event of the run that it has read
	deaf  bool            // it may not read the run's events
	waits *model.Deferred // a wait of the agent that was not shown yet

	proposals proposals
	missed    []unmade // calls that were never made and not shown yet
	inText    bool     // the last piece of an answer was text

	shown uint64 // the last frame that it has shown
	over  bool   // that was the last frame of the run
}

// attend shows the work of the agent until its run ends. When it loses the daemon, it waits for it, and goes on behind what it has shown.
func (c *chat) attend(ctx context.Context, r run.Run) error {
	a := &attended{chat: c, run: r, draw: &term.Markdown{P: c.out}, asked: map[id.Approval]bool{},
		asks: map[string]id.Approval{}}
	c.tools = nil
	if c.editor != nil && !c.hinted && !r.Status.Ended() {
		c.hinted = true
		c.err.Line("%s", c.err.Paint(term.Faint, "(while the agent works, a line that you type goes to it; Ctrl-C or /stop stops it)"))
	}
	a.earlierUses(ctx)
	a.watch()
	defer func() { a.leaveKeys() }()
	for {
		over, err := a.follow(ctx)
		if over && err == nil {
			err = a.ended(ctx)
		}
		if err == nil && over {
			return nil
		}
		if ctx.Err() != nil || err != nil && fault.KindOf(err) != fault.Unavailable {
			a.flush()
			return gone{a.away(ctx, err)}
		}
		if err := a.returns(ctx, err); err != nil {
			return gone{err}
		}
	}
}

// framed is a frame, an error instead of it, or the end of the stream.
type framed struct {
	client.Frame
	err    error
	closed bool
}

// follow shows the frames of the run that it has not shown yet. It reports whether the run has ended.
func (a *attended) follow(ctx context.Context) (over bool, err error) {
	if a.over {
		return true, nil
	}
	following, stop := context.WithCancel(ctx)
	frames := make(chan framed)
	var reading sync.WaitGroup
	api, next := a.api, a.shown+1
	a.catchUp(ctx)
	var events chan logged
	if !a.deaf && !a.run.Status.Ended() {
		events = make(chan logged)
		reading.Go(a.follows(following, events))
	}
	reading.Go(func() {
		defer close(frames)
		for f, err := range api.FollowRun(following, "", a.run.ID, next) {
			select {
			case frames <- framed{Frame: f, err: err}:
			case <-following.Done():
				return
			}
		}
	})
	defer reading.Wait()
	defer stop()
	lines := a.lines
	var kept []framed // that came while the person typed
	for {
		if len(kept) > 0 {
			f := kept[0]
			kept = kept[1:]
			if over, err := a.take(ctx, f); over || err != nil || f.closed {
				return over, err
			}
			select {
			case <-a.typing:
				kept = a.listen(ctx, frames, kept)
			default:
			}
			continue
		}
		quiet, noTimer := a.quiet()
		select {
		case <-quiet:
			if !a.inText {
				a.showMissed(true)
			}
			a.showWait()
		case e, ok := <-events:
			switch {
			case !ok:
				events = nil
			case e.lost != nil:
				a.misses(e.lost)
			case e.back && a.silent:
				a.pause()
				a.answers()
			case e.back:
			default:
				a.heard(e.Event)
			}
		case f, ok := <-frames:
			f.closed = !ok
			if over, err := a.take(ctx, f); over || err != nil || f.closed {
				return over, err
			}
			for len(a.left) > 0 && len(a.held) > 0 && a.command(ctx, a.held[0]) {
				a.held = a.held[1:]
			}
			if len(a.held) == 0 {
				lines = a.lines
			}
		case line, ok := <-lines:
			if !ok || !a.command(ctx, line) {
				if ok {
					a.held = append(a.held, line)
				}
				lines = nil // the line waits until the agent is done
			}
		case <-a.typing:
			kept = a.listen(ctx, frames, kept)
		case <-a.interrupts:
			a.cancel(ctx)
		}
		noTimer()
	}
}

// take shows a frame. It reports whether that was the last one of the run.
func (a *attended) take(ctx context.Context, f framed) (over bool, err error) {
	if f.closed || f.err != nil {
		return false, f.err
	}
	if err := a.frame(ctx, f.Frame); err != nil {
		return false, err
	}
	a.shown, a.over = f.N, f.Kind == client.FrameComplete
	return a.over, nil
}

// pause ends the line that is being drawn, and keeps what has been said: the rest of the answer follows.
func (a *attended) pause() {
	if a.editor != nil && !a.out.JSON {
		a.closeTool()
		a.endDraw()
	}
}

// away returns the error for a run that can no longer be followed. It names the command that continues the conversation.
func (a *attended) away(ctx context.Context, err error) error {
	again := "go on: " + a.again(a.run.ID)
	if ctx.Err() != nil {
		return fault.New(fault.Unavailable, cmdline.CodeInterrupted, "the agent goes on working on %s", a.run.ID).With(again)
	}
	if err == nil {
		err = fault.New(fault.Unavailable, "stream_ended", "the stream ended before the run")
	}
	if fault.KindOf(err) == fault.Unavailable {
		return goneAway(err, again)
	}
	return err
}

// cancel stops the agent's work on the present task.
func (a *attended) cancel(ctx context.Context) {
	if a.stopped {
		return
	}
	a.stopped = true
	if _, err := a.api.CancelRun(ctx, a.run.ID, "stopped by the person who talks with the agent"); err != nil &&
		fault.KindOf(err) != fault.Conflict {
		a.stopped = false
		cmdline.Complain(a.i.Err, a.err, err)
	}
}

// frame displays a frame of the run.
func (a *attended) frame(ctx context.Context, f client.Frame) error {
	unreadable := func(err error) error {
		return fault.Wrap(err, fault.Internal, "frame_unreadable", "frame %d of the run cannot be read", f.N)
	}
	switch f.Kind {
	case client.FrameDelta:
		var d model.Delta
		if err := json.Unmarshal(f.Data, &d); err != nil {
			return unreadable(err)
		}
		a.between(ctx, d)
		a.delta(d)
	case client.FrameOperation:
		var o run.Outline
		if err := json.Unmarshal(f.Data, &o); err != nil {
			return unreadable(err)
		}
		a.inText = false
		a.tool(o)
	case client.FrameResult:
		var r run.Result
		if err := json.Unmarshal(f.Data, &r); err != nil {
			return unreadable(err)
		}
		if r.Type == run.ResApprovalRequired {
			a.asks[r.OperationID] = id.Approval(r.ApprovalID)
			return a.question(ctx, id.Approval(r.ApprovalID))
		}
		a.result(r)
		a.left = slices.DeleteFunc(a.left, func(q *cmdline.Asked) bool {
			if r.OperationID == "" || q.ID != a.asks[r.OperationID] {
				return false
			}
			waits, err := a.i.Asked(ctx, a.api, q.ID) // two agents may give their calls the same name
			return err == nil && waits == nil
		})
		return a.standing(ctx)
	}
	return nil
}

// delta displays a piece of an answer at once at a terminal, otherwise when the answer is complete.
func (a *attended) delta(d model.Delta) {
	if d.Again {
		a.calls = nil
		began := a.said.Len() > 0
		if a.said.Reset(); began && a.editor != nil && !a.out.JSON {
			a.endDraw()
			a.err.Line("%s", a.err.Paint(term.Yellow, "(the answer broke off; the model is asked again)"))
		}
		return
	}
	if d.Type == model.CallPart {
		a.propose(d)
	}
	if d.Type != model.TextPart || d.Text == "" {
		return
	}
	a.said.WriteString(d.Text)
	if a.editor != nil && !a.out.JSON {
		a.closeTool()
		_, _ = a.draw.Write([]byte(d.Text)) // a terminal that is gone shows nothing
	}
}

func (a *attended) endDraw() { _ = a.draw.Flush() }

// flush ends the display of an answer before other output.
func (a *attended) flush() {
	switch {
	case a.out.JSON:
	case a.editor != nil:
		a.closeTool()
		a.endDraw()
	case a.said.Len() > 0:
		a.out.Line("%s", strings.TrimRight(term.Plain(a.said.String()), "\n"))
	}
	a.said.Reset()
}

// tool displays the beginning of a tool call.
func (a *attended) tool(o run.Outline) {
	for _, t := range a.tools {
		if t.id == o.ID {
			return // the call continued after a crash
		}
	}
	a.flush()
	t := &toolLine{id: o.ID, kind: o.Type, summary: o.Summary, arguments: a.argumentsOf(o.Type)}
	a.tools = append(a.tools, t)
	if a.editor != nil {
		fmt.Fprint(a.i.Err, callLine(a.err, t.kind, t.summary))
		a.open = t
	}
	if t.kind == tool.AskPerson {
		sayItWaits(a, t)
	}
}

// sayItWaits says that the agent waits for the answer to a question of its tool ask_person, and how to give it.
func sayItWaits(a *attended, t *toolLine) {
	a.closeTool()
	if a.editor != nil {
		a.err.Line("  %s", a.err.Paint(term.Yellow, "the agent waits for your answer: type it"))
		return
	}
	a.err.Line("%s", callLine(a.err, t.kind, t.summary))
	a.err.Line("  %s", a.err.Paint(term.Yellow, "the agent waits for an answer: a line /steer ANSWER, or agentbox agent steer "+
		string(a.run.ID)+" ANSWER"))
}

// callLine returns the line of a tool call without its result.
func callLine(p *term.Printer, kind, summary string) string {
	width := 100
	if p.Width > 0 {
		width = max(20, p.Width-40)
	}
	return "  " + p.Paint(term.Cyan, "▸ "+term.OneLine(kind, 40)) + " " + term.OneLine(summary, width)
}

// resultWords returns the words about the result of a tool call, which end its line.
func resultWords(p *term.Printer, r run.Result) string {
	words, colour := runview.Said(r)
	return p.Paint(colour, map[string]string{term.Green: "✓", term.Red: "✗"}[colour]+" "+term.OneLine(words, 200))
}

// closeTool ends the line of a call that has no result yet.
func (a *attended) closeTool() {
	if a.open != nil {
		fmt.Fprintln(a.i.Err)
		a.open = nil
	}
}

// takeBack removes the line of a call from the terminal, if its question is shown instead. The line comes again with the result. A line
// that may be longer than the terminal is wide stays.
func (a *attended) takeBack(approval id.Approval) {
	if a.open == nil || a.asks[a.open.id] != approval {
		return
	}
	plain := *a.err
	if plain.Colour = false; len(callLine(&plain, a.open.kind, a.open.summary)) < a.err.Width {
		fmt.Fprint(a.i.Err, "\r\x1b[K")
		a.open = nil
	}
}

// result displays the result of a call.
func (a *attended) result(r run.Result) {
	var of *toolLine
	for _, t := range a.tools {
		if t.id == r.OperationID {
			of = t
		}
	}
	if of == nil { // policy refused the call before it reached the space
		of = &toolLine{id: r.OperationID, kind: "tool", summary: r.OperationType}
		of.arguments = a.argumentsOf(strings.TrimPrefix(r.OperationID, "call:"))
		a.flush()
		a.tools = append(a.tools, of)
	}
	if of.result != nil {
		return
	}
	of.result = &r
	if a.open == of {
		fmt.Fprintln(a.i.Err, "  "+resultWords(a.err, r))
		a.open = nil
		return
	}
	a.closeTool()
	a.err.Line("%s  %s", callLine(a.err, of.kind, of.summary), resultWords(a.err, r))
}

// ended prints how the task ended.
func (a *attended) ended(ctx context.Context) error {
	shown, err := a.api.Run(ctx, a.run.ID)
	if err != nil {
		return err
	}
	told := a.said.Len() > 0
	a.flush()
	a.catchUp(ctx)
	a.showMissed(true)
	if err := a.standing(ctx); err != nil {
		return err
	}
	var out struct {
		Report string `json:"report"`
		Turns  int    `json:"turns"`
	}
	why := shown.Error
	if r := shown.Reported; r != nil {
		if len(r.Output) > 0 {
			if err := json.Unmarshal(r.Output, &out); err != nil {
				return err
			}
		}
		why = cmdline.First(r.Message, why)
	}
	a.failed = shown.Status != run.Succeeded
	defer a.unheard(ctx)
	if a.out.JSON {
		line := struct {
			Run    id.Run     `json:"run_id"`
			Status run.Status `json:"status"`
			Report string     `json:"report,omitempty"`
			Error  string     `json:"error,omitempty"`

			Artifacts *run.Gathered `json:"artifacts_kept,omitempty"`
		}{shown.ID, shown.Status, out.Report, "", shown.Artifacts}
		if a.failed {
			line.Error = why
		}
		return a.out.Record(line)
	}
	if out.Report != "" && !told { // the answer did not come in pieces
		a.said.WriteString(out.Report)
		if a.editor != nil {
			_, _ = a.draw.Write([]byte(out.Report))
		}
		a.flush()
	}
	if k := shown.Artifacts; k != nil && (k.Files > 0 || k.LeftOut > 0 || k.Error != "") {
		runview.WriteKept(a.err, shown.Run)
	}
	switch {
	case shown.Status == run.Cancelled && a.stopped:
		a.err.Line("%s", a.err.Paint(term.Yellow, "stopped; say how to go on"))
	case a.failed:
		a.err.Line("%s", a.err.Paint(term.Red, fmt.Sprintf("the run %s: %s", runview.Stands(shown.Status), term.OneLine(why, 300))))
	}
	if n := len(a.runs); shown.Status == run.Failed && out.Turns == 0 && n > 0 && a.runs[n-1] == shown.ID {
		a.dropped = append(a.dropped, shown.ID)
		a.runs = a.runs[:n-1] // it had no turn; the next task continues the task before
	}
	return nil
}
