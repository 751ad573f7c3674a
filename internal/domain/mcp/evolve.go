package mcp

import (
	"slices"
	"strings"

	"agentbox/internal/domain/event"
)

// Evolve returns the document after an event about its server.
func (h Held) Evolve(e event.Event) (Held, error) {
	switch e.Type {
	case EventAdded, EventChanged: // another server, of which nobody trusts anything
		d, err := event.Decode[Put](e)
		return Held{Server: d.Server, Workspace: e.Workspace, Status: StatusRegistered, ChangedBy: e.Principal, ChangedAt: e.OccurredAt}, err
	case EventRemoved:
		d, err := event.Decode[Removed](e)
		return Held{Server: h.Server, Workspace: e.Workspace, Status: StatusRemoved, Reason: d.Reason, ChangedBy: e.Principal,
			ChangedAt: e.OccurredAt}, err
	case EventListed:
		d, err := event.Decode[Listed](e)
		h.Tools, h.ListedAt = d.Tools, e.OccurredAt
		return h, err
	case EventLoggedIn:
		d, err := event.Decode[LoggedIn](e)
		h.Session = &Login{d, e.Principal, e.OccurredAt}
		return h, err
	case EventLoggedOut:
		h.Session = nil
	case EventTrusted:
		d, err := event.Decode[Trusted](e)
		if err != nil {
			return h, err
		}
		trusted := slices.Clone(h.Trusted)
		for _, one := range d.Tools {
			seen, found := h.tool(one.Tool)
			if !found || seen.Hash != one.Hash { // its list was redacted
				continue
			}
			trusted = slices.DeleteFunc(trusted, func(k Kept) bool { return k.Name == one.Tool })
			trusted = append(trusted, Kept{seen, e.Principal, e.OccurredAt})
		}
		slices.SortFunc(trusted, func(a, b Kept) int { return strings.Compare(a.Name, b.Name) })
		h.Trusted = trusted
	}
	return h, nil
}

// Evolve returns the count after an event about a server.
func (c Count) Evolve(e event.Event) (Count, error) {
	switch e.Type {
	case EventAdded:
		c.Living++
	case EventRemoved:
		c.Living--
	}
	return c, nil
}

// Evolve returns the document after an event about its call.
func (c Call) Evolve(e event.Event) (Call, error) {
	switch e.Type {
	case EventCalled:
		d, err := event.Decode[Called](e)
		return Call{Called: d, Begun: e.OccurredAt}, err
	case EventEnded:
		d, err := event.Decode[Ended](e)
		c.End = &d
		return c, err
	}
	return c, nil
}

// Remains returns the data of an event that stay after a redaction: names and hashes, without texts of a server or of people.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case EventRemoved:
		d, err := event.Decode[Removed](e)
		d.Reason = ""
		return d, err
	case EventListed:
		d, err := event.Decode[Listed](e)
		for i, t := range d.Tools {
			d.Tools[i] = Seen{Tool: Tool{Name: t.Name}, Hash: t.Hash, Problem: "what the server said of it was redacted"}
		}
		return d, err
	case EventQuarantined:
		return event.Decode[Quarantined](e)
	case EventTrusted:
		return event.Decode[Trusted](e)
	case EventLoggedIn:
		return event.Decode[LoggedIn](e)
	case EventLoggedOut:
		return event.Decode[LoggedOut](e)
	case EventCalled:
		return event.Decode[Called](e)
	case EventEnded:
		d, err := event.Decode[Ended](e)
		d.Reason = ""
		return d, err
	}
	return nil, nil
}
