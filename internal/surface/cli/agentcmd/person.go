package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/lineedit"
	"agentbox/internal/surface/cli/term"
)

// leftOpen are the questions that a person has left open.
type leftOpen struct {
	left    []*cmdline.Asked // the oldest first
	current id.Approval      // the question that was shown last, of all
}

// answer takes the answer to the oldest question. It calls replied for an answer that does not decide, and for an error.
func (o *leftOpen) answer(ctx context.Context, i *cmdline.Invocation, api *client.Client, line string, here bool, note func(string),
	replied func(*cmdline.Asked, cmdline.Reply, error)) {
	q := o.left[0]
	now, err := i.Asked(ctx, api, q.ID)
	if err == nil && now == nil {
		o.left = o.left[1:]
		note(string(q.ID) + " was answered already")
		return
	}
	if err == nil && o.current != q.ID { // the person has another one before them
		note(fmt.Sprintf("the answer was not sent: of %d open questions this one is the first", len(o.left)))
		now.Show(here)
		o.current = q.ID
		return
	}
	reply := cmdline.Unclear
	if err == nil {
		reply, err = now.Reply(ctx, line)
	}
	switch {
	case err == nil && (reply == cmdline.Unclear || reply == cmdline.Left):
		note("the question is still open: y, n, a or d answers it")
	case err == nil && reply == cmdline.Decided:
		o.left = o.left[1:]
		note("answered: " + term.OneLine(q.Title, 100))
	default:
		if fault.KindOf(err) != fault.Unavailable || err == nil {
			o.left = o.left[1:]
		}
		replied(q, reply, err)
	}
}

// person answers the questions of an agent's run that a command follows. The zero person answers none.
type person struct {
	leftOpen
	i   *cmdline.Invocation
	api *client.Client
	p   *term.Printer
	run id.Run

	lines <-chan string // of the input, from the first question on; nil where another part of the program reads it
	ended bool          // the input has
	stop  context.CancelFunc
	over  <-chan struct{} // closed when the question that is shown was answered elsewhere
}

// decidedLook is how often a command that shows a question looks whether somebody has answered it elsewhere.
const decidedLook = 2 * time.Second

// decided returns a channel that is closed when a question waits for nobody any more. The function ends the looking.
func decided(ctx context.Context, i *cmdline.Invocation, api *client.Client, of id.Approval) (over <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	closes := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			again, noTimer := i.Clock.NewTimer(decidedLook)
			select {
			case <-again:
			case <-ctx.Done():
				noTimer()
				return
			}
			if a, err := api.Approval(ctx, of); err == nil && !cmdline.Waits(a) {
				close(closes)
				return
			}
		}
	})
	return closes, func() {
		cancel()
		looking.Wait()
	}
}

// read begins to read the input, once.
func (w *person) read(ctx context.Context) {
	if w.stop != nil || w.i.Answers != nil {
		return
	}
	in := w.i.In
	if w.i.Lines != nil {
		in = w.i.Lines
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.lines = readLines(ctx, in)
	w.i.Answers = func(prompt string) (string, error) {
		fmt.Fprint(w.i.Err, prompt)
		select {
		case line, more := <-w.lines:
			if !more {
				w.ended = true
				return "", io.EOF
			}
			return line, nil
		case <-w.over:
			fmt.Fprintln(w.i.Err)
			return "", lineedit.ErrOver
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// forget drops what was typed at a terminal before a question is shown: it answers none. The lines of another input are answers in their
// order, whenever they come.
func (w *person) forget() error {
	if err := w.i.DropTyped(); err != nil || !w.i.Asks {
		return err
	}
	select {
	case _, more := <-w.lines: // it was read already
		if w.ended = !more; more {
			w.note("what you typed before the question was shown does not answer it")
		}
	default:
	}
	return nil
}

// note prints a sentence of the command itself.
func (w *person) note(text string) { w.p.Line("%s", w.p.Paint(term.Faint, "("+text+")")) }

// leave ends the reading.
func (w *person) leave() {
	if w.stop != nil {
		w.stop()
		w.i.Answers = nil
	}
}

// answer asks a question. Without an answer the run waits. While another question is open, it only shows this one: a line that was typed
// before, for the other one, must not answer it.
func (w *person) answer(ctx context.Context, approval id.Approval) error {
	q, err := w.i.Asked(ctx, w.api, approval)
	if q == nil && err == nil {
		return nil
	}
	if err == nil {
		err = w.forget()
	}
	if err == nil {
		w.read(ctx)
		q.Show(true)
		w.current = q.ID
		if len(w.left) > 0 && !w.ended {
			w.left = append(w.left, q)
			w.p.Line("%s", w.p.Paint(term.Yellow, "Another question is open already; y, n, a or d answers the oldest one first. "+
				"In another terminal:\n"+elsewhere(q)))
			return nil
		}
		stop := func() {}
		if w.i.Asks { // the lines of a script are answers in their order
			w.over, stop = decided(ctx, w.i, w.api, q.ID)
		}
		var reply cmdline.Reply
		reply, err = q.Ask(ctx)
		stop()
		w.over = nil
		switch {
		case err == nil:
			w.replied(q, reply)
			return nil
		case errors.Is(err, lineedit.ErrOver):
			w.note(string(q.ID) + " was answered already")
			return nil
		}
	}
	if kind := fault.KindOf(err); kind != fault.Denied && kind != fault.Conflict {
		return err
	}
	cmdline.Complain(w.i.Err, w.p, err)
	w.waits(approval)
	return nil
}

// replied goes on after an answer.
func (w *person) replied(q *cmdline.Asked, reply cmdline.Reply) {
	switch {
	case reply == cmdline.Decided:
	case reply == cmdline.Left && w.lines != nil && !w.ended:
		w.left = append(w.left, q)
		w.p.Line("%s", w.p.Paint(term.Yellow, "The question stays open, and the agent waits. Type y, n, a or d at any time to answer it. "+
			"In another terminal:\n"+elsewhere(q)))
	default:
		w.waits(q.ID)
	}
}

// waits says how the question is answered elsewhere.
func (w *person) waits(approval id.Approval) {
	w.p.Line("%s", w.p.Paint(term.Yellow, "  waits until a person says: agentbox approvals approve "+term.OneLine(string(approval), 80)+
		", or deny"))
}

// replies returns the lines of the input while a question is open that the person has left; nil otherwise.
func (w *person) replies() <-chan string {
	if len(w.left) == 0 || w.ended {
		return nil
	}
	return w.lines
}

// take takes a line that was typed while a question is open, or the end of the input.
func (w *person) take(ctx context.Context, line string, more bool) {
	switch {
	case !more:
		w.ended = true
	case strings.TrimSpace(line) == "":
	case !cmdline.IsReply(line):
		w.note("y, n, a or d answers the question; tell the agent something: agentbox agent steer " + string(w.run) + " TEXT")
	default:
		w.leftOpen.answer(ctx, w.i, w.api, line, true, w.note, func(q *cmdline.Asked, reply cmdline.Reply, err error) {
			if err != nil {
				cmdline.Complain(w.i.Err, w.p, err)
			}
			w.waits(q.ID)
		})
	}
}
