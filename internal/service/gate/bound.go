package gate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/authority"
)

// token asks the capability token of an action.
func (g *Gate) token(ctx context.Context, c *consideration) (refused bool, err error) {
	a := c.ruling.Action
	holds := func(p id.Principal) (bool, error) { return g.holder(ctx, p, c.who, a) }
	code, reason, err := g.authority.Permits(ctx, a.Workspace, a.Token, holds, c.use())
	if err != nil || code == "" {
		return false, err
	}
	c.deny(code, reason, suggestToken)
	return true, nil
}

// delegated reports whether a person delegated an action to the acting principal. The capability token and each token that it was derived
// from must name the action. The person who granted the first one must still have the right themselves. The scopes of the token were
// checked before.
func (g *Gate) delegated(ctx context.Context, c *consideration) (bool, error) {
	a := c.ruling.Action
	if a.Token == "" || !slices.Contains(policy.Givable(), a.Type) {
		return false, nil
	}
	chain, err := g.authority.Chain(ctx, a.Workspace, a.Token)
	if err != nil || !token.Delegates(chain, a.Type) {
		return false, err
	}
	from, err := g.authority.Who(ctx, a.Workspace, chain[len(chain)-1].GrantedBy)
	if errors.Is(err, authority.ErrNobody) {
		return false, nil
	}
	return err == nil && from.Kind == id.User && from.Role.AtLeast(principal.Member), err
}

const suggestToken = "Ask whoever granted the token for one that permits it."

// holder reports whether an action may be done under a token that was issued to p. That is so if p acts, if p may act for the one who acts,
// or if the action is part of a run that p requested under this token.
func (g *Gate) holder(ctx context.Context, p id.Principal, who principal.Principal, a policy.Action) (bool, error) {
	if p == a.Principal {
		return true, nil
	}
	if a.Run != "" {
		doc, _, err := projection.Load[run.Run](ctx, g.Docs, a.Workspace, run.Projection, string(a.Run))
		if err != nil && !errors.Is(err, projection.ErrNotFound) {
			return false, err
		}
		if err == nil && doc.Token == a.Token && doc.CreatedBy == p && doc.Agent == a.Principal {
			return true, nil
		}
	}
	by, err := g.authority.Who(ctx, a.Workspace, p)
	if errors.Is(err, authority.ErrNobody) {
		return false, nil
	}
	return err == nil && by.MayActFor(who), err
}

// toolCall is the type of the actions that call a tool.
const toolCall = "tool.call"

// use returns the action as the use of a capability token. A space determines its room itself.
func (c *consideration) use() token.Use {
	a := c.ruling.Action
	u := token.Use{Action: a.Type, Room: a.Room, Anywhere: c.kind.Anywhere, Tool: a.Tool, NoTool: a.Type == toolCall && a.Tool == ""}
	if c.space.ID != "" {
		u.Room = c.space.Room
	}
	if a.Type == policy.DataAccess || a.Type == policy.DataAccessUnjustified {
		// The requester names the room, so the room is no name of the data.
		typ, key, _ := strings.Cut(a.Subject, "/")
		if a.Method == "read" {
			u.Reads = token.Names(typ, key, "")
		} else {
			u.Writes = token.Names(typ, key, "")
		}
		return u
	}
	noun, _, _ := strings.Cut(a.Type, ".")
	switch key := a.Path; c.kind.SideEffect {
	case policy.Read:
		u.Reads = token.Names(noun, key, u.Room)
	case policy.Filesystem:
		u.Writes = token.Names(noun, key, u.Room)
	case policy.Process: // code can read and write every file of its space
		u.Reads, u.Writes = token.Names("file", "", u.Room), token.Names("file", "", u.Room)
	case policy.Network:
		u.Domain, u.NoDomain = policy.Host(a.Target), a.Target == ""
	}
	return u
}

// Bound refuses a request that the capability token of a caller does not permit, and records the refusal. It permits a caller without a
// token; other checks judge their role.
func (g *Gate) Bound(ctx context.Context, origin event.Origin, c principal.Caller, u token.Use) error {
	if c.Token == "" {
		return nil
	}
	holder := func(p id.Principal) (bool, error) { return p == c.Principal || p == c.By, nil }
	code, reason, err := g.authority.Permits(ctx, c.Workspace, c.Token, holder, u)
	if err != nil || code == "" {
		return err
	}
	a := policy.Action{Type: u.Action, Workspace: c.Workspace, Room: u.Room, Principal: c.Principal, Token: c.Token}
	if a.Type == "" {
		a.Type = ReadAction
	}
	return g.refuse(ctx, origin, a, policy.Decision{Outcome: policy.Deny, ReasonCode: code, Reason: reason, Suggestion: suggestToken})
}

// refuse records and returns a refusal that depends on nothing but the caller.
func (g *Gate) refuse(ctx context.Context, origin event.Origin, a policy.Action, d policy.Decision) error {
	r := policy.Ruling{Action: a, Decision: d}
	if canonical, err := a.Canonical(); err == nil {
		r.Canonical, r.Decision.Action = canonical, event.DigestOf(canonical)
	}
	draft := policy.RefusedDraft(origin, r)
	draft.OccurredAt = g.Clock.Now().UTC()
	if _, err := g.recordRefusal(ctx, event.Batch{Workspace: a.Workspace, Drafts: []event.Draft{draft}}); err != nil {
		return err
	}
	return r.Decision.Refusal()
}

// ReadAction is the action in the record of a refused read.
const ReadAction = "data.read"
