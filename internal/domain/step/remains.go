package step

import "agentbox/internal/domain/event"

// Remains returns what stays of the data of an event of steps when it is redacted: ids, numbers and words of the program. It is nil for
// an event of another kind.
func Remains(e event.Event) (any, error) {
	switch {
	case e.Type == EventCreated:
		d, err := event.Decode[Created](e)
		return Created{Step: d.Step, Run: d.Run, Kind: d.Kind, Fence: d.Fence}, err
	case e.Type == EventInvoked && e.EntityType == CallEntity:
		d, err := event.Decode[Invoked](e)
		return Invoked{Call: d.Call, Run: d.Run, Tool: d.Tool, Agent: d.Agent, Decision: d.Decision, Reason: d.Reason, Fence: d.Fence}, err
	case (e.Type == EventSucceeded || e.Type == EventFailed || e.Type == EventUnknown) && e.EntityType == CallEntity:
		d, err := event.Decode[Ended](e)
		return Ended{Call: d.Call, Run: d.Run, Tool: d.Tool, Fence: d.Fence, Permit: d.Permit}, err
	case e.Type == EventArtifactCreated:
		d, err := event.Decode[ArtifactCreated](e)
		return ArtifactCreated{Artifact: d.Artifact, Run: d.Run, Kind: d.Kind, Content: Content{Type: None}, Fence: d.Fence,
			Operation: d.Operation, Taken: d.Taken}, err
	case e.Type == EventArtifactStored:
		d, err := event.Decode[ArtifactStored](e)
		return ArtifactStored{Artifact: d.Artifact, Run: d.Run, Fence: d.Fence}, err
	}
	return nil, nil
}
