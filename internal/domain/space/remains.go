package space

import "agentbox/internal/domain/event"

// Remains returns the part of a space event's data that stays after a redaction: ids, numbers and words of the program. It holds no text of
// a person: no name, no variable, no path. The space's document can still be folded from it. It is nil for events of other kinds.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case EventCreated:
		d, err := event.Decode[Created](e)
		d.Name, d.Description, d.Env, d.Secrets, d.Metadata, d.Key = "", "", nil, nil, nil, ""
		return d, err
	case EventUpdated:
		d, err := event.Decode[Updated](e)
		// A set text becomes empty; an unset one stays unset.
		emptied(d.Name)
		emptied(d.Description)
		emptied(d.Env)
		d.Secrets = nil
		emptied(d.Metadata)
		return d, err
	case EventPolicy:
		return event.Decode[PolicyChanged](e)
	case EventStarted:
		return event.Decode[Started](e)
	case EventReady:
		return event.Decode[Made](e)
	case EventExtended:
		return event.Decode[Extended](e)
	case EventDestroyed:
		return event.Decode[Ended](e)
	case EventRewindBegun:
		d, err := event.Decode[RewindBegun](e)
		return RewindBegun{Space: d.Space, To: d.To}, err
	case EventRewound:
		return event.Decode[Rewound](e)
	case EventRewindFailed:
		return event.Decode[RewindFailed](e)
	case EventPromoted:
		d, err := event.Decode[Promoted](e)
		d.Reason, d.Operation = "", "" // they quote the command
		return d, err
	case EventPaused:
		d, err := event.Decode[PausedData](e)
		d.Reason = ""
		return d, err
	case EventResumed:
		return event.Decode[ResumedData](e)
	case EventForked:
		return event.Decode[Forked](e)
	case EventPortOpened:
		d, err := event.Decode[PortOpened](e)
		d.Hash = event.Digest{}
		return d, err
	case EventPortClosed:
		return event.Decode[PortClosed](e)
	case EventFileBegun:
		d, err := event.Decode[FileBegun](e)
		return FileBegun{Space: d.Space, Action: d.Action, Size: d.Size, Withheld: d.Withheld}, err
	case EventFileEnded:
		d, err := event.Decode[FileEnded](e)
		d.Entry = nil
		return d, err
	case EventFileRead:
		d, err := event.Decode[FileRead](e)
		return FileRead{Space: d.Space, Action: d.Action, Withheld: d.Withheld, Watch: d.Watch}, err
	}
	return nil, nil
}

// emptied makes the value that a pointer leads to zero, if it leads to one.
func emptied[T any](value *T) {
	if value != nil {
		*value = *new(T)
	}
}
