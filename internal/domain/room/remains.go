package room

import "agentbox/internal/domain/event"

// Remains returns the part of an event's data that stays after a redaction: ids and words of the program, no text of a person. The
// documents can still be folded from it. It is nil for events of other kinds, and for moves of a read cursor, which hold no text.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case EventCreated:
		d, err := event.Decode[Created](e)
		return Created{Room: d.Room, Context: d.Context.emptied()}, err
	case EventUpdated:
		d, err := event.Decode[Updated](e)
		// A set text becomes empty; an unset one stays unset.
		return Updated{
			Room: d.Room, Title: emptied(d.Title), Topic: emptied(d.Topic), Mode: emptied(d.Mode), Lang: emptied(d.Lang),
			ToolPolicy: emptied(d.ToolPolicy),
			Context:    d.Context.emptied(), Inherit: d.Inherit,
		}, err
	case EventDefaultsSet:
		d, err := event.Decode[DefaultsSet](e)
		return DefaultsSet{Context: d.Context.emptied(), Inherit: d.Inherit}, err
	case EventThreadCreated:
		d, err := event.Decode[ThreadCreated](e)
		return ThreadCreated{Thread: d.Thread, Status: d.Status}, err
	case EventThreadUpdated:
		d, err := event.Decode[ThreadUpdated](e)
		return ThreadUpdated{Thread: d.Thread, Title: emptied(d.Title), Status: d.Status}, err
	case EventMessageCreated:
		d, err := event.Decode[MessageCreated](e)
		return MessageCreated{Message: d.Message, Thread: d.Thread, Parent: d.Parent, SenderType: d.SenderType, Sender: d.Sender}, err
	}
	return nil, nil
}

// emptied returns a context whose set fields are empty: a set allowlist then allows nothing, not everything.
func (c Context) emptied() Context {
	return Context{Prompt: emptied(c.Prompt), Tools: none(c.Tools), Models: none(c.Models), Memory: emptied(c.Memory)}
}

// emptied returns a pointer to an empty value where there is one to any.
func emptied[T any](value *T) *T {
	if value == nil {
		return nil
	}
	return new(T)
}

func none(list *[]string) *[]string {
	if list == nil {
		return nil
	}
	return &[]string{}
}
