package mcp

import (
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Living reports whether the workspace has the server now.
func (h Held) Living() bool { return h.Status == StatusRegistered }

// Put decides what adding or changing the server records: the type of the event and its data, an empty type where it says the same
// already. Living is how many servers there are.
func (h Held) Put(next Server, living int) (string, Put, error) {
	d := Put{Server: next}
	switch err := next.Check(); {
	case err != nil:
		return "", d, err
	case !h.Living() && living >= MaxServers:
		return "", d, ErrFull
	case !h.Living():
		return EventAdded, d, nil
	case h.Server == next:
		return "", d, nil
	}
	return EventChanged, d, nil
}

// Remove decides what removing the server records.
func (h Held) Remove(reason string) (Removed, error) {
	if !h.Living() {
		return Removed{}, ErrNotFound
	}
	return Removed{h.Name, reason}, nil
}

// Listing decides what a list of tools records: nothing where it is the last one again, and false. The differences are trusted tools
// which the list before had as they were trusted.
func (h Held) Listing(tools []Tool) (Listed, []Difference, bool, error) {
	d := Listed{Name: h.Name, Tools: []Seen{}}
	size, times := 0, map[string]int{}
	for _, t := range tools {
		size += len(t.Name) + len(t.Title) + len(t.Description) + len(t.Input) + len(t.Output)
		times[t.Name]++
	}
	if len(tools) > MaxTools || size > MaxList {
		return d, nil, false, fault.New(ErrFailed.Kind, ErrFailed.Code, "the MCP server offers %d tools with %d bytes; the limits are %d and %d",
			len(tools), size, MaxTools, MaxList)
	}
	for _, t := range tools {
		seen, err := See(h.Name, t)
		if err != nil {
			return d, nil, false, err
		}
		if times[t.Name] > 1 {
			seen.Problem = "the server offers several tools of this name"
		}
		d.Tools = append(d.Tools, seen)
	}
	slices.SortStableFunc(d.Tools, func(a, b Seen) int { return strings.Compare(a.Name, b.Name) })
	var differ []Difference
	now := Held{Tools: d.Tools, Trusted: h.Trusted}
	for _, kept := range h.Trusted {
		if h.Allows(kept.Name) && !now.Allows(kept.Name) {
			seen, _ := now.tool(kept.Name)
			differ = append(differ, Difference{kept.Name, kept.Hash, seen.Hash})
		}
	}
	same := slices.EqualFunc(h.Tools, d.Tools, func(a, b Seen) bool { return a.Name == b.Name && a.Hash == b.Hash && a.Problem == b.Problem })
	return d, differ, !same || h.ListedAt.IsZero(), nil
}

// Trust decides what trusting tools records. Each must be what the person has seen.
func (h Held) Trust(tools []Named) (Trusted, error) {
	d := Trusted{Name: h.Name}
	if !h.Living() {
		return d, ErrNotFound
	}
	for _, one := range tools {
		seen, found := h.tool(one.Tool)
		switch {
		case !found:
			return d, fault.New(fault.NotFound, "mcp_tool_not_found", "the server %s offers no tool %.64q", h.Name, one.Tool)
		case seen.Problem != "":
			return d, fault.New(fault.Conflict, "mcp_tool_unusable", "%s cannot be offered: %s", one.Tool, seen.Problem)
		case seen.Hash != one.Hash:
			return d, fault.New(ErrChanged.Kind, ErrChanged.Code, "%s: %s", one.Tool, ErrChanged.Msg).With(ErrChanged.Suggestion)
		case !h.Allows(one.Tool) && !slices.Contains(d.Tools, one):
			d.Tools = append(d.Tools, one)
		}
	}
	return d, nil
}

// tool returns a tool as the server offered it last.
func (h Held) tool(name string) (Seen, bool) {
	i := slices.IndexFunc(h.Tools, func(s Seen) bool { return s.Name == name })
	if i < 0 {
		return Seen{}, false
	}
	return h.Tools[i], true
}

// Allows reports whether a person trusts the tool as the server offered it last.
func (h Held) Allows(name string) bool {
	seen, found := h.tool(name)
	return found && seen.Problem == "" && slices.ContainsFunc(h.Trusted, func(k Kept) bool { return k.Name == name && k.Hash == seen.Hash })
}

// Usable returns the trusted tools of the server, by name, as they were trusted and are now.
func (h Held) Usable() []Seen {
	var out []Seen
	for _, t := range h.Tools {
		if h.Living() && h.Allows(t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// Hash returns what a blueprint pins: the server, and every tool that people trust of it.
func (h Held) Hash() event.Digest {
	lines := []string{h.Name, h.Command, h.URL, h.Key, h.ClientID, h.Issuer}
	if h.Server.Login {
		lines = append(lines, "login") // no line of a tool is one word
	}
	for _, k := range h.Trusted {
		lines = append(lines, k.Name+" "+k.Hash.String())
	}
	return event.DigestOf([]byte(strings.Join(lines, "\n")))
}
