package agentcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/lineedit"
	"agentbox/internal/surface/cli/term"
)

// toAgent is in front of a line that goes to an agent at work.
const toAgent = "[you, to the agent at work] "

// maxKept is the most frames that are kept while the person types. The stream waits beyond it.
const maxKept = 4096

// watch reports Ctrl-C to the channel interrupts, and other keys to the channel typing.
func (c *chat) watch() {
	if c.editor == nil {
		return
	}
	signal := func(to chan struct{}) func() {
		return func() {
			select {
			case to <- struct{}{}:
			default:
			}
		}
	}
	select {
	case <-c.typing: // of keys that were read since
	default:
	}
	c.unwatch = c.editor.Keys.Watch(signal(c.interrupts), signal(c.typing))
}

func (c *chat) leaveKeys() {
	if c.unwatch != nil {
		c.unwatch()
		c.unwatch = nil
	}
}

// listen lets the person finish the line that they have begun to type while the agent works. It returns the frames that are still to be
// shown: those of kept, and those that came meanwhile.
func (a *attended) listen(ctx context.Context, frames <-chan framed, kept []framed) []framed {
	a.pause()
	a.leaveKeys()
	defer a.watch()
	prompt := toAgent
	if len(a.left) > 0 {
		prompt = "[y, n, a or d answers: " + term.OneLine(a.left[0].Title, 60) + "; else to the agent at work] "
		a.editor.Past.Mute = true
		defer func() { a.editor.Past.Mute = false }()
	}
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := a.read(ctx, a.err.Paint(term.Bold, prompt), true)
		read <- line{text, err}
	}()
	closed := false
	for {
		from := frames
		if closed || len(kept) >= maxKept {
			from = nil
		}
		select {
		case f, ok := <-from:
			f.closed, closed = !ok, !ok
			kept = append(kept, f)
		case l := <-read: // it ends with ctx, too, because the keyboard does
			a.typed(ctx, l.text, l.err)
			return kept
		}
	}
}

// typed takes a line that the person typed at a terminal while the agent works. No line is lost: what the agent does not get now is sent
// when it is done.
func (a *attended) typed(ctx context.Context, text string, err error) {
	word, rest, _ := strings.Cut(text, " ")
	command, is := commandNamed(word)
	_, file := localFile(text)
	switch {
	case errors.Is(err, io.EOF):
		a.leaving = true
		a.note("you leave when the agent is done; Ctrl-C stops it")
	case err != nil || text == "": // the line was dropped
	case a.comesLate(text):
	case a.command(ctx, text):
	case is && command.atOnce:
		if err := command.do(a.chat, ctx, strings.TrimSpace(rest)); err != nil {
			cmdline.Complain(a.i.Err, a.err, err)
		}
	case is:
		a.later = append(a.later, text)
		a.note(command.name + " waits until the agent is done")
	case strings.HasPrefix(text, "/") && !file && !strings.Contains(text, "\n"):
		cmdline.Complain(a.i.Err, a.err, noCommand(word))
	case len(pathsIn(text)) > 0:
		a.later = append(a.later, text)
		a.note("a message with files waits until the agent is done")
	default:
		a.steer(ctx, text)
	}
}

// note prints a sentence of the chat itself.
func (a *attended) note(text string) { a.err.Line("%s", a.err.Paint(term.Faint, "("+text+")")) }

// command executes a line that came while the agent works: an answer to an open question, /stop or /steer. It returns false for other
// lines.
func (a *attended) command(ctx context.Context, line string) bool {
	if len(a.left) > 0 && cmdline.IsReply(line) {
		a.answer(ctx, line)
		return true
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch word {
	case "/stop":
		a.cancel(ctx)
	case "/steer":
		if a.editor == nil && strings.TrimSpace(rest) != "" {
			a.err.Line("%s", a.err.Paint(term.Faint, toAgent+term.OneLine(rest, 300)))
		}
		a.steer(ctx, rest)
	default:
		return false
	}
	return true
}

// steer sends the agent a line while it works. A line that is refused is sent when the agent is done.
func (a *attended) steer(ctx context.Context, text string) {
	said, err := steer(ctx, a.api, a.run, text)
	if err == nil {
		a.steered = append(a.steered, said.content)
		return
	}
	cmdline.Complain(a.i.Err, a.err, err)
	if strings.TrimSpace(text) != "" {
		a.later = append(a.later, text)
		a.note("the line is kept: it is the next message when the agent is done")
	}
}

// unheard keeps the lines to the agent that came after its last turn. They are the next message, or at the prompt again where the task did
// not succeed.
func (a *attended) unheard(ctx context.Context) {
	if len(a.steered) == 0 && len(a.later) == 0 {
		return
	}
	missed := missing(a.steered, nil)
	if len(a.steered) > 0 {
		if recorded, err := a.api.Steps(ctx, a.run.ID); err != nil {
			cmdline.Complain(a.i.Err, a.err, err) // a line that comes twice is better than a lost one
		} else {
			var heard []string
			for _, s := range recorded.Steps {
				var turn errand.Turn
				if s.Kind == errand.TurnKind && json.Unmarshal(s.Input, &turn) == nil {
					heard = append(heard, turn.Heard...)
				}
			}
			missed = missing(a.steered, heard)
		}
	}
	a.steered = nil
	if len(missed) > 0 {
		if !a.failed || a.editor == nil {
			a.note("the agent was done before it read your last words; they are the next message")
		}
		a.later = append([]string{strings.Join(missed, "\n")}, a.later...)
	}
	if !a.failed || a.editor == nil || len(a.later) == 0 {
		return
	}
	a.leaving = false // they have something to say
	a.note("what you typed meanwhile is at the prompt again: Enter sends it, Ctrl-C drops it")
	a.retype(strings.Join(a.later, "\n"))
	a.later = nil
}

// missing returns the texts that were not heard. A text that was said twice has to be heard twice.
func missing(said, heard []string) []string {
	times := map[string]int{}
	for _, text := range heard {
		times[text]++
	}
	var missed []string
	for _, text := range said {
		if times[text]--; times[text] < 0 {
			missed = append(missed, text)
		}
	}
	return missed
}

// question asks the person at this terminal, or prints the command that answers the question.
func (a *attended) question(ctx context.Context, approval id.Approval) (err error) {
	if approval == "" || a.asked[approval] {
		return nil
	}
	a.asked[approval] = true
	defer func() {
		if fault.KindOf(err) == fault.Unavailable && err != nil {
			delete(a.asked, approval) // it is asked again when the daemon is back
		}
	}()
	q, err := a.i.Asked(ctx, a.api, approval)
	if err != nil || q == nil {
		return err // the line of a call whose question was answered goes on with its result
	}
	a.takeBack(approval)
	a.flush()
	q.Show(a.ask)
	a.current = q.ID
	if !a.ask {
		a.err.Line("%s", a.err.Paint(term.Yellow, "it waits until a person says: "+elsewhere(q)))
		return nil
	}
	a.leaveKeys()
	defer a.watch()
	if a.editor != nil {
		a.editor.Past.Mute = true
		defer func() { a.editor.Past.Mute = false }()
		before := a.editor.Keys.Take() // keys that were pressed before the question was shown do not answer it
		defer func() {
			if len(a.left) > 0 { // nor do they later
				var dropped bool
				if before, dropped = withoutReplies(before); dropped {
					a.note("what you typed before the question was shown does not answer it")
				}
			}
			a.editor.Keys.Unread(before)
		}()
	}
	stop := func() {}
	if a.editor != nil {
		a.editor.Keys.Over, stop = decided(ctx, a.i, a.api, q.ID)
	}
	reply, err := q.Ask(ctx)
	stop()
	if a.editor != nil {
		a.editor.Keys.Over = nil
	}
	if errors.Is(err, lineedit.ErrOver) {
		a.note(string(q.ID) + " was answered already")
		a.late = true
		return nil
	}
	return a.replied(ctx, q, reply, err)
}

// withoutReplies leaves out the lines that would answer a question.
func withoutReplies(keys []byte) (kept []byte, dropped bool) {
	for len(keys) > 0 {
		end := bytes.IndexAny(keys, "\r\n") + 1
		if end == 0 {
			end = len(keys)
		}
		if cmdline.IsReply(string(keys[:end])) {
			dropped = true
		} else {
			kept = append(kept, keys[:end]...)
		}
		keys = keys[end:]
	}
	return kept, dropped
}

// elsewhere returns the commands that answer a question in another terminal.
func elsewhere(q *cmdline.Asked) string {
	return "agentbox approvals approve " + term.OneLine(string(q.ID), 80) + ", or deny"
}

// replied goes on after the person has answered a question, or has not.
func (a *attended) replied(ctx context.Context, q *cmdline.Asked, reply cmdline.Reply, err error) error {
	kind := fault.KindOf(err)
	switch {
	case dropped(err):
		a.cancel(ctx)
		return nil
	case err != nil && kind != fault.Denied && kind != fault.Conflict:
		return err
	case err != nil:
		cmdline.Complain(a.i.Err, a.err, err)
	}
	switch {
	case err == nil && reply == cmdline.Left:
		a.left = append(a.left, q)
		a.err.Line("%s", a.err.Paint(term.Yellow, "The question stays open, and the agent waits. Type y, n, a or d at any time to answer it.\n"+
			"Another line goes to the agent; Ctrl-C or /stop stops it. In another terminal:\n"+elsewhere(q)))
	case reply != cmdline.Decided:
		a.err.Line("%s", a.err.Paint(term.Yellow, "it waits until a person says: "+elsewhere(q)))
	}
	return nil
}

// answer takes the answer to the oldest question that was left open.
func (a *attended) answer(ctx context.Context, line string) {
	a.leftOpen.answer(ctx, a.i, a.api, line, a.ask, a.note, func(q *cmdline.Asked, reply cmdline.Reply, err error) {
		if err := a.replied(ctx, q, reply, err); err != nil {
			cmdline.Complain(a.i.Err, a.err, err)
		}
	})
}
