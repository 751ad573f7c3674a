package spaces

import (
	"encoding/json"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// action returns an action on a space; its bounds are part of the decision.
func actionOn(typ string, origin event.Origin, doc space.Space) policy.Action {
	limits, _ := json.Marshal(doc.Limits)
	return policy.Action{
		Type: typ, Workspace: doc.Workspace, Room: doc.Room, Principal: origin.Principal, Token: origin.Token, Space: doc.ID, Limits: limits,
		Bundle: doc.Bundle,
	}
}

func draftOf(typ string, origin event.Origin, doc space.Space, data any) event.Draft {
	return event.New(typ, origin, doc.Workspace, doc.Room, data).About(space.EntityType, string(doc.ID))
}

// fileEvent drafts an event of a request about files. It follows from the request, an approval or the event that it ends, never from other
// events in the space.
func fileDraft(typ string, origin event.Origin, doc space.Space, data any, follows event.Subject) event.Draft {
	draft := draftOf(typ, origin, doc, data)
	draft.Follows = follows
	return draft
}
