package agentcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// How the chat waits for a daemon that has gone away.
const (
	awayTime = 10 * time.Minute
	awayLook = 500 * time.Millisecond
)

// errStillAway ends the wait for a daemon: the person has interrupted it, or it has lasted too long.
var errStillAway = errors.New("the daemon is still away")

// gone is the error of a run that the chat follows no more. It ends the chat.
type gone struct{ error }

func (g gone) Unwrap() error { return g.error }

// goneAway is the error of a daemon that cannot be reached any more while an agent works. Again names the command that goes on.
func goneAway(err error, again string) error {
	return fault.New(fault.Unavailable, fault.CodeOf(err), "the daemon has gone away while the agent worked: %s", err).
		With("start it again: agentbox up; it resumes what runs\n" + again)
}

// unreachable reports whether nothing answers at the daemon's address, or nobody knows the address.
func unreachable(err error) bool {
	return err == nil || slices.Contains([]string{"daemon_unreachable", "daemon_not_running", "stream_ended"}, fault.CodeOf(err))
}

// unanswered reports whether the daemon has not answered to a message, so that the message counts as not sent.
func unanswered(ctx context.Context, err error) bool {
	_, ended := errors.AsType[gone](err)
	return err != nil && ctx.Err() == nil && !ended && fault.KindOf(err) == fault.Unavailable
}

// misses says once that the daemon does not answer, and what happens when it does.
func (c *chat) misses(err error, then string) {
	if c.silent {
		return
	}
	c.silent = true
	said := "the daemon has gone away; " + then + " when it is back: agentbox up"
	if !unreachable(err) {
		said = "the daemon does not answer: " + sentenceOf(err) + "; " + then + " when it does"
	}
	c.err.Line("%s", c.err.Paint(term.Yellow, "("+said+")"))
}

// sentenceOf returns the message of an error of the daemon.
func sentenceOf(err error) string {
	if f, ok := cmdline.AsFault(err); ok {
		return term.OneLine(f.Msg, 200)
	}
	return term.OneLine(err.Error(), 200)
}

// answers says once that the daemon answers again.
func (c *chat) answers() {
	if c.silent {
		c.silent = false
		c.err.Line("%s", c.err.Paint(term.Faint, "(the daemon is back)"))
	}
}

// reconnect waits until the daemon answers again: works tells it by a request. It returns errStillAway where a person interrupts the wait,
// and after too long a time.
func (c *chat) reconnect(ctx context.Context, works func(*client.Client) error) error {
	until := c.i.Clock.Now().Add(awayTime)
	for c.i.Clock.Now().Before(until) {
		again, stop := c.i.Clock.NewTimer(awayLook)
		select {
		case <-again:
		case <-c.interrupts:
			stop()
			return errStillAway
		case <-ctx.Done():
			stop()
			return errStillAway
		}
		api, err := c.i.Connect(ctx)
		if err != nil {
			continue
		}
		if err := works(api); err == nil {
			c.api = api
			c.answers()
			return nil
		} else if fault.KindOf(err) != fault.Unavailable {
			return err
		}
	}
	return errStillAway
}

// misses ends the line that is being drawn, and says once that the daemon does not answer.
func (a *attended) misses(err error) {
	if !a.silent {
		a.pause()
		a.chat.misses(err, "the agent goes on")
	}
}

// returns waits until the daemon is there again, and its log can be read. A person who interrupts it, or too long a time, ends the chat.
func (a *attended) returns(ctx context.Context, lost error) error {
	a.misses(lost)
	err := a.reconnect(ctx, func(api *client.Client) error {
		if _, err := api.Run(ctx, a.run.ID); err != nil {
			return err
		}
		if a.deaf && a.blind {
			return nil
		}
		if _, err := api.Events(ctx, client.EventFilter{Run: a.run.ID, From: 1, Limit: 1}); fault.KindOf(err) == fault.Unavailable {
			return err
		}
		return nil
	})
	if errors.Is(err, errStillAway) {
		return a.away(ctx, lost)
	}
	return err
}

// regain waits for a daemon that has not answered to a message. A task is then sent again; the daemon knows it where it has begun already.
// At a terminal another message is at the prompt again, and so is a task that is still not sent.
func (c *chat) regain(ctx context.Context, text string, lost error) error {
	word, _, _ := strings.Cut(text, " ")
	_, command := commandNamed(word)
	if c.editor == nil && (command || !unreachable(lost)) {
		c.later = append([]string{text}, c.later...)
		return lost
	}
	if unreachable(lost) {
		then := "your message is sent"
		if command {
			then = "you can type the command again"
		}
		c.watch()
		c.misses(lost, then)
		err := c.reconnect(ctx, func(api *client.Client) error {
			if _, err := api.Session(ctx); fault.KindOf(err) == fault.Unavailable {
				return err
			}
			return nil // the message itself meets what else is wrong
		})
		c.leaveKeys()
		ends := err != nil && (ctx.Err() != nil || c.editor == nil)
		if ends || err == nil && !command {
			c.later = append([]string{text}, c.later...)
		}
		switch {
		case ends:
			return lost
		case err == nil && !command:
			return nil
		}
	} else {
		cmdline.Complain(c.i.Err, c.err, lost)
	}
	c.err.Line("%s", c.err.Paint(term.Faint, "(what you typed is at the prompt again: Enter sends it, Ctrl-C drops it)"))
	c.retype(text)
	return nil
}

// retype has a text at the prompt again, as if the person had typed it.
func (c *chat) retype(text string) {
	text = strings.Map(func(r rune) rune { // a key that controls the line would change it
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	c.editor.Keys.Unread([]byte(strings.ReplaceAll(text, "\n", "\\\r")))
}

// unsent says at the end of the chat which messages nobody got.
func (c *chat) unsent() {
	for _, text := range slices.Concat(c.later, c.held) {
		c.err.Line("%s", c.err.Paint(term.Yellow, "not sent: "+term.OneLine(text, 300)))
	}
}

// sending is a task that is sent until the daemon answers.
type sending struct {
	of  event.Digest
	key string
}

// once returns a task with the key by which the daemon knows it, however often it is sent.
func (c *chat) once(t client.AgentTask) (client.AgentTask, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	if of := event.DigestOf(raw); c.sending.of != of {
		c.sending = sending{of, fmt.Sprintf("chat:%d:%.24s", c.i.Clock.Now().UnixNano(), of)}
	}
	t.IdempotencyKey = c.sending.key
	return t, nil
}

// logged is an event of the log, or a change of whether the log can be read.
type logged struct {
	event.Event
	lost error // why it cannot
	back bool  // it can again
}

// follows sends the run's events to a channel from the first one that it has not read on, until ctx ends. Where the log cannot be read, it
// says so, and again when it can; then it goes on behind the last event.
func (a *attended) follows(ctx context.Context, to chan<- logged) func() {
	api, clock, from := a.api, a.i.Clock, a.recorded()
	send := func(l logged) bool {
		select {
		case to <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	readable := func() bool {
		probe := from
		for probe.Limit = 1; ; {
			again, stop := clock.NewTimer(awayLook)
			select {
			case <-again:
			case <-ctx.Done():
				stop()
				return false
			}
			if _, err := api.Events(ctx, probe); err == nil || fault.KindOf(err) != fault.Unavailable {
				return true
			}
		}
	}
	return func() {
		defer close(to)
		for {
			var lost error
			for e, err := range api.FollowEvents(ctx, from) {
				if lost = err; err != nil {
					break
				}
				from.From = e.Seq + 1
				if !send(logged{Event: e}) {
					return
				}
			}
			if lost == nil || fault.KindOf(lost) != fault.Unavailable || !send(logged{lost: lost}) || !readable() || !send(logged{back: true}) {
				return
			}
		}
	}
}
