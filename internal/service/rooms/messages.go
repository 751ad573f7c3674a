package rooms

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/room"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// The refusals of somebody who speaks for another.
var (
	// ErrSender refuses a caller that speaks for another: only owners, admins and services may do so, and only for agents.
	ErrSender = fault.New(fault.Denied, "sender_not_permitted",
		"you may speak as yourself only; owners, admins and engines may speak for agents of the workspace too").
		With("Leave sender_type and sender_id out.")
	// ErrNoSender means that there is no such agent.
	ErrNoSender = fault.New(fault.NotFound, "sender_not_found", "there is no such agent in this workspace")
)

// tries bounds how often a message is posted again because its thread has changed meanwhile.
const tries = 8

// Post posts a message into a thread, as its caller or as an agent that the caller may speak for. Both are in the event, and both need the
// right to post.
func (m *Service) Post(ctx context.Context, origin event.Origin, who principal.Caller, t id.Thread, c room.MessageCreated) (room.Message,
	error) {
	if err := c.Check(); err != nil {
		return room.Message{}, err
	}
	ws := who.Workspace
	if made, known, err := m.recall(ctx, origin, ws, room.EventMessageCreated); err != nil || known {
		return evolved(room.Message{}, made, err)
	}
	thread, version, err := m.thread(ctx, ws, t)
	if err != nil {
		return room.Message{}, err
	}
	if c.Lang == "" {
		in, err := m.Room(ctx, ws, thread.Room)
		if err != nil {
			return room.Message{}, err
		}
		c.Lang = in.Lang
	}
	sender, err := m.sender(ctx, who, c.SenderType, c.Sender)
	if err != nil {
		return room.Message{}, err
	}
	c.Thread, c.SenderType, c.Sender = t, sender.Kind(), string(sender)
	a := m.action(policy.MessageCreate, origin, ws, thread.Room, string(t), c)
	if sender != who.Principal {
		spoken := a
		spoken.Principal, spoken.Token = sender, "" // the token is the caller's, and asked about below
		if err := m.permitted(ctx, origin, spoken); err != nil {
			return room.Message{}, err
		}
	}
	if c.Parent != "" {
		parent, err := m.Message(ctx, ws, c.Parent)
		if err != nil {
			return room.Message{}, err
		}
		if parent.Thread != t {
			return room.Message{}, room.ErrNoMessage
		}
	}
	c.Message = id.New[id.Message](m.IDs)
	draft := event.New(room.EventMessageCreated, origin, ws, thread.Room, c).About(room.MessageEntity, string(c.Message))
	draft.Thread, draft.Actor = t, event.Actor{Type: c.SenderType, ID: c.Sender}
	for try := 1; ; try++ {
		if thread.Status != room.Open {
			return room.Message{}, room.ErrClosed
		}
		// The thread is as it was when it was found open: of a post and a closing, one comes first.
		made, err := m.record(ctx, origin, a, draft, event.DocumentVersion{Projection: room.MessageProjection, Key: string(c.Message)},
			event.DocumentVersion{Projection: room.ThreadProjection, Key: string(t), Version: version})
		if !errors.Is(err, journal.ErrConflict) || try == tries {
			return evolved(room.Message{}, made, err)
		}
		if thread, version, err = m.thread(ctx, ws, t); err != nil {
			return room.Message{}, err
		}
	}
}

// sender returns the speaker. Identity comes from the key of the request. The body may name a speaker if the caller is that principal, or
// may speak for it.
func (m *Service) sender(ctx context.Context, who principal.Caller, typ id.PrincipalKind, named string) (id.Principal, error) {
	sender := id.Principal(named)
	if named == "" {
		sender = who.Principal
	}
	if typ != "" && typ != sender.Kind() || sender.Kind() == "" {
		return "", fault.New(fault.Invalid, "invalid_sender",
			"sender_type and sender_id do not fit together: an id begins with usr_, agt_ or svc_ for a user, an agent or a service")
	}
	if sender == who.Principal {
		return sender, nil
	}
	speaks := who.Principal.Kind() == id.Service || who.Principal.Kind() == id.User && who.Role.AtLeast(principal.Admin)
	if !speaks || sender.Kind() != id.Agent {
		return "", ErrSender
	}
	_, _, err := projection.Load[principal.Principal](ctx, m.Docs, who.Workspace, principal.Projection, string(sender))
	if errors.Is(err, projection.ErrNotFound) {
		err = ErrNoSender
	}
	return sender, err
}
