package run

import (
	"slices"

	"agentbox/internal/domain/event"
)

// The events of what engines leave that name stored contents, as content_ref.
const (
	artifactStored  = "artifact.stored"
	evidenceCreated = "evidence.manifest.created"
)

// naming are the events that name stored contents.
var naming = []string{EventCreated, EventImported, EventSucceeded, EventErred, EventUnknown, artifactStored, evidenceCreated}

// NamingEvents returns the types of the events that name stored contents.
func NamingEvents() []string { return slices.Clone(naming) }

// ContentsOf returns the stored contents that an event names: the operations of a run, a result that was too long for its event, the
// contents of an import, artifacts and evidence. A redacted event names no contents.
func ContentsOf(e event.Event) ([]Input, error) {
	if !slices.Contains(naming, e.Type) || e.Redaction == event.RedactFull {
		return nil, nil
	}
	switch e.Type {
	case EventCreated:
		d, err := event.Decode[Created](e)
		if d.Input.Digest.IsZero() || d.Input.Inline {
			return nil, err // of a run that was asked for without any, or with one that stands in the event
		}
		return []Input{d.Input}, err
	case EventImported:
		d, err := event.Decode[ImportedData](e)
		return []Input{d.Recorded.Input, d.From.Transcript, d.From.Outcomes}, err
	}
	if e.Type == artifactStored || e.Type == evidenceCreated {
		d, err := event.Decode[struct {
			Content Input `json:"content_ref"`
		}](e)
		return []Input{d.Content}, err
	}
	d, err := event.Decode[Ended](e)
	if err != nil || d.Stored == nil {
		return nil, err
	}
	return []Input{*d.Stored}, nil
}
