package localengine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/search"
	"agentbox/internal/service/tools"
)

// errNoThread refuses to talk in a run that has no thread.
var errNoThread = fault.New(fault.Conflict, "run_has_no_thread", "the run has no thread in which people could read or answer").
	With("Report what you would have said or asked when you end.")

// post posts a message in the thread of the run, once for each call. Both the daemon's engine and the requester of the run need the right
// to post. It speaks as the requester, if that is an agent, and else as the engine. So nobody takes an agent's message for a person's.
func (u use) post(ctx context.Context, content string) (room.Message, error) {
	if u.asked.Thread == "" {
		return room.Message{}, errNoThread
	}
	origin := u.requester()
	if _, err := (policy.Client{Gate: u.Gate, Append: u.Log.Append, Final: true}).Allow(ctx, origin, policy.Action{
		Type: policy.MessageCreate, Workspace: u.work.Workspace, Room: u.asked.Room, Principal: origin.Principal, Token: origin.Token,
		Run: u.work.Run, Subject: string(u.asked.Thread), Content: event.DigestOf([]byte(content)), Size: int64(len(content)),
	}); err != nil {
		return room.Message{}, err
	}
	said := room.MessageCreated{Content: content}
	if origin.Principal.Kind() == id.Agent {
		said.SenderType, said.Sender = id.Agent, string(origin.Principal)
	}
	by := u.origin()
	by.Correlation = u.asked.Correlation
	by.Key, by.Command = "tool:"+string(u.call), event.DigestOf([]byte(content))
	return u.Rooms.Post(ctx, by, principal.Caller{Principal: ID, Workspace: u.work.Workspace}, u.asked.Thread, said)
}

// message posts a message for the people in the room.
func (u use) message(ctx context.Context) (errand.Outcome, error) {
	m, err := tools.ReadMessage(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	if _, err := u.post(ctx, m.Content); err != nil {
		return errand.Outcome{}, err
	}
	return u.told(ctx, "posted")
}

// ask posts a question and waits until a person has written in the thread. The next request to the model includes their message, like every
// message of a person. So the model gets it once.
func (u use) ask(ctx context.Context) (errand.Outcome, error) {
	a, err := tools.ReadAsk(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	question, err := u.post(ctx, a.Question)
	if err != nil {
		return errand.Outcome{}, err
	}
	for {
		answered, err := u.answered(ctx, question)
		if err != nil {
			return errand.Outcome{}, err
		}
		if answered {
			return u.told(ctx, "A person has answered. Their words follow.")
		}
		if !errand.Pause(ctx, u.Clock, errand.Ask) {
			return errand.Outcome{}, context.Cause(ctx)
		}
	}
}

// answered reports whether a person has written after a question.
func (u use) answered(ctx context.Context, question room.Message) (bool, error) {
	const page = 100
	for before := id.Message(""); ; {
		found, err := u.Rooms.Messages(ctx, u.work.Workspace, u.asked.Thread, before, page)
		if err != nil {
			return false, err
		}
		for _, m := range found { // the newest first
			if m.ID == question.ID || m.CreatedAt.Before(question.CreatedAt) {
				return false, nil
			}
			if m.SenderType == id.User && m.Content != "" {
				return true, nil
			}
			before = m.ID
		}
		if len(found) < page {
			return false, nil
		}
	}
}

// search finds messages that the requester of the run may read. A capability token bounds it to the room of the run.
func (u use) search(ctx context.Context) (errand.Outcome, error) {
	s, err := tools.ReadSearch(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	origin, ws, in := u.requester(), u.work.Workspace, id.Room("")
	if origin.Token != "" {
		in = u.asked.Room
		if err := u.Gate.Bound(ctx, origin, principal.Caller{Principal: origin.Principal, Workspace: ws, Token: origin.Token}, token.Use{
			Room: in, Reads: token.Names("message", string(in), in),
		}); err != nil {
			return errand.Outcome{}, err
		}
	}
	sight, err := u.Labels.Sight(ctx, ws, origin.Principal)
	if err != nil {
		return errand.Outcome{}, err
	}
	shows := func(m room.Message) (bool, error) {
		return sight.Shows(ctx, label.Resource{Type: label.OfMessage, ID: string(m.ID)})
	}
	found, err := u.Search.Search(ctx, ws, search.Query{Words: s.Words, Room: in, Limit: s.Limit, Shows: shows})
	if err != nil {
		return errand.Outcome{}, err
	}
	var text strings.Builder
	for _, r := range found.Results {
		fmt.Fprintf(&text, "%s %s: %s\n", r.CreatedAt.UTC().Format(time.RFC3339), r.SenderType, r.Excerpt)
	}
	if text.Len() == 0 {
		text.WriteString("nothing was found\n")
	}
	if found.Indexed < found.Head {
		text.WriteString("[the index of messages is being made anew, so some may be missing]\n")
	}
	return u.say(ctx, u.work, u.call, u.name, tool.Result{OK: true, Text: text.String()})
}
