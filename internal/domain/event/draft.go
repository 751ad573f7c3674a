package event

import (
	"encoding/json"
	"fmt"

	"agentbox/internal/domain/id"
)

// New drafts an event of a room of a workspace, or of the workspace itself if room is empty. It marshals the data once. It panics if that
// fails, because the types of data are the program's own. The log sets ID and OccurredAt if they are empty.
func New(typ string, origin Origin, ws id.Workspace, room id.Room, data any) Draft {
	body, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("event: marshal the data of %s: %v", typ, err))
	}
	return Draft{
		Header: Header{
			Type: typ, Version: 1, Workspace: ws, Room: room, Stream: RoomStream(ws, room),
			Actor: Actor{Type: origin.Principal.Kind(), ID: string(origin.Principal)}, Principal: origin.Principal,
			Zone: Supervised, Correlation: origin.Correlation, Causation: origin.Causation, Redaction: RedactNone,
			PolicyContext: origin.authority(),
		},
		Data: body, Follows: origin.Follows,
	}
}

// About returns a copy that names the subject of the event.
func (d Draft) About(entityType, entityID string) Draft {
	d.EntityType, d.EntityID = entityType, entityID
	return d
}

// In returns a copy that belongs to a run and, where step is not empty, to one of its steps.
func (d Draft) In(run id.Run, step id.Step) Draft {
	d.Run, d.Step = run, step
	return d
}

// authority returns the envelope's record of the authority: the token, and the principal who was authenticated. It is nil if there is
// neither.
func (o Origin) authority() json.RawMessage {
	if o.Token == "" && o.By == "" {
		return nil
	}
	raw, _ := json.Marshal(struct {
		By    id.Principal `json:"authenticated_principal_id,omitempty"`
		Token id.Token     `json:"capability_token_id,omitempty"`
	}{o.By, o.Token})
	return raw
}
