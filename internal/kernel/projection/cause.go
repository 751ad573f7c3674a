package projection

import (
	"bytes"
	"encoding/json"
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// latest is the last field of the documents whose definition leads. It stands behind all that their type has.
const latest = `"latest_event":`

// withCause adds the cause of the next event to the bytes of a document.
func (s State) withCause(body []byte) []byte {
	if s.cause == (event.Cause{}) || len(body) < 2 || body[0] != '{' {
		return body
	}
	cause, err := json.Marshal(s.cause)
	if err != nil {
		panic(fmt.Sprintf("projection: marshal two texts: %v", err))
	}
	body = body[:len(body)-1]
	if len(body) > 1 {
		body = append(body, ',')
	}
	return append(append(append(body, latest...), cause...), '}')
}

// causeIn reads what withCause wrote.
func (d Definition) causeIn(body []byte) (cause event.Cause, err error) {
	at := -1
	if d.moves != nil {
		at = bytes.LastIndex(body, []byte(latest))
	}
	if at < 0 {
		return cause, nil
	}
	if err := json.Unmarshal(body[at+len(latest):len(body)-1], &cause); err != nil {
		return cause, fmt.Errorf("read the latest event of a document of %s: %w", d.Name, err)
	}
	return cause, nil
}

// Leader returns the definition that knows the causes of events about entities of that type, and whether there is one.
func (s *Set) Leader(entity string) (Definition, bool) {
	i, ok := s.leaders[entity]
	if !ok {
		return Definition{}, false
	}
	return s.defs[i], true
}

// LeadingRef returns the document that knows the cause of the next event about a subject, and whether there can be one.
func (s *Set) LeadingRef(ws id.Workspace, of event.Subject) (Ref, bool) {
	def, ok := s.Leader(of.Type)
	if !ok || of.ID == "" || len(of.ID) > MaxKeyBytes {
		return Ref{}, false
	}
	return Ref{Workspace: ws, Name: def.Name, Key: of.ID}, true
}
