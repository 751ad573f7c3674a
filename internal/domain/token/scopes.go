package token

import (
	"slices"
	"strings"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Any is the entry of a scope that permits everything of its kind.
const Any = "*"

// Bounds of a scope.
const (
	MaxEntries    = 100 // of one list
	MaxEntryBytes = 200
)

// Scopes are the actions that a token permits. An empty list permits nothing of its kind.
type Scopes struct {
	Rooms   []string `json:"rooms,omitempty" doc:"Ids of rooms, or *; what belongs to the whole workspace takes *"`
	Tools   []string `json:"tools,omitempty" doc:"Names of tools, or *"`
	Domains []string `json:"egress_domains,omitempty" doc:"Hosts, *.host for those below one, or *"`
	Actions []string `json:"action_types,omitempty" doc:"Types of actions, as run.start, or *"`
	Data    Data     `json:"data_access,omitzero"`
}

// Data lists the readable and writable data. An entry is a type (run), resource_type:run, resource:run:ID, room:ID, or *.
type Data struct {
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
}

// All are the scopes that permit everything.
func All() Scopes {
	every := []string{Any}
	return Scopes{Rooms: every, Tools: every, Domains: every, Actions: every, Data: Data{Read: every, Write: every}}
}

// lists are the lists of scopes, in one order.
func (s Scopes) lists() []list {
	return []list{
		{s.Rooms, plain}, {s.Tools, plain}, {s.Domains, domain}, {s.Actions, plain}, {s.Data.Read, plain}, {s.Data.Write, plain},
	}
}

// kinds are the names of the lists, in the same order.
var kinds = [...]string{"rooms", "tools", "egress_domains", "action_types", "data_access.read", "data_access.write"}

type list struct {
	entries []string
	covers  func(entry, other string) bool
}

// plain reports whether an entry permits all that another one does.
func plain(entry, other string) bool { return entry == Any || entry == other }

// domain is plain for hosts and the patterns of hosts: *.x permits what ends with .x, and x itself only where it stands there too.
func domain(entry, other string) bool {
	below, ok := strings.CutPrefix(entry, "*")
	return plain(entry, other) || ok && strings.HasSuffix(strings.TrimPrefix(other, "*"), below) && other != Any
}

// Check refuses scopes that are too long, or whose entries are not plain words.
func (s Scopes) Check() error {
	for n, l := range s.lists() {
		if len(l.entries) > MaxEntries {
			return ErrInvalidScopes
		}
		for _, e := range l.entries {
			if e == "" || len(e) > MaxEntryBytes || strings.ContainsFunc(e, func(c rune) bool { return c <= 0x20 || c >= 0x7f }) {
				return ErrInvalidScopes
			}
			if n == 2 && !isDomain(e) {
				return ErrInvalidScopes
			}
		}
	}
	return nil
}

// isDomain reports whether an entry is a host in small letters, a pattern of hosts, or any.
func isDomain(e string) bool {
	host := strings.TrimPrefix(e, "*.")
	return e == Any || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-") == "" && !strings.HasPrefix(host, ".") &&
		!strings.HasSuffix(host, ".") &&
		!strings.Contains(host, "..")
}

// Within returns what both permit: of two entries one of which permits the other, the narrower one. Entries come once each and sorted.
func (s Scopes) Within(parent Scopes) Scopes {
	mine, theirs := s.lists(), parent.lists()
	met := make([][]string, len(mine))
	for n, l := range mine {
		met[n] = intersect(l.entries, theirs[n].entries, l.covers)
	}
	return Scopes{Rooms: met[0], Tools: met[1], Domains: met[2], Actions: met[3], Data: Data{Read: met[4], Write: met[5]}}
}

func intersect(a, b []string, covers func(entry, other string) bool) []string {
	var met []string
	for _, x := range a {
		for _, y := range b {
			switch {
			case covers(x, y):
				met = append(met, y)
			case covers(y, x):
				met = append(met, x)
			}
		}
	}
	slices.Sort(met)
	return slices.Compact(met)
}

// Covers reports whether everything that the other scopes permit is permitted.
func (s Scopes) Covers(other Scopes) bool {
	mine, theirs := s.lists(), other.lists()
	for n, l := range mine {
		for _, e := range theirs[n].entries {
			if !permits(l, e) {
				return false
			}
		}
	}
	return true
}

func permits(l list, what string) bool {
	return slices.ContainsFunc(l.entries, func(e string) bool { return l.covers(e, what) })
}

// Use is one intended use of a token. An empty field is not checked, except for the room.
type Use struct {
	Action   string   // the type of an action; "" for what only shows something
	Room     id.Room  // "" for things of the whole workspace
	Anywhere bool     // it belongs to no room by its nature, so that rooms do not bound it
	Tool     string   // that is called
	Domain   string   // of the host that is reached
	Reads    []string // names of data that the action reads, as Data has them; one of them has to be permitted
	Writes   []string // names of data that the action writes
	NoTool   bool     // a tool is called whose name is not said
	NoDomain bool     // a host is reached whose name is not said
}

// Names returns the entries of Data that name a thing of the workspace.
func Names(typ, key string, room id.Room) []string {
	names := []string{typ, "resource_type:" + typ}
	if key != "" {
		names = append(names, "resource:"+typ+":"+key)
	}
	if room != "" {
		names = append(names, "room:"+string(room))
	}
	return names
}

// Refuses returns the reason code of the first scope that does not permit a use, with a sentence; "" where all do.
func (s Scopes) Refuses(u Use) (code, reason string) {
	l := s.lists()
	switch {
	case u.Action != "" && len(s.Actions) == 0:
		return policy.ReasonScopeActionRequired, "the token permits no actions"
	case u.Action != "" && !permits(l[3], u.Action):
		return policy.ReasonScopeAction, "the token does not permit " + u.Action
	}
	if !u.Anywhere {
		switch {
		case u.Room == "" && !permits(l[0], Any):
			return policy.ReasonScopeRoomRequired, "the token is for certain rooms, and this belongs to the whole workspace"
		case u.Room != "" && !permits(l[0], string(u.Room)):
			return policy.ReasonScopeRoom, "the token is not for this room"
		}
	}
	for _, asked := range []struct {
		wanted                     bool
		missing                    bool
		list                       list
		names                      []string
		lacks, required, forbidden string
		what                       string
	}{
		{u.Tool != "" || u.NoTool, u.NoTool, l[1], []string{u.Tool}, policy.ReasonScopeToolMissing, policy.ReasonScopeToolRequired,
			policy.ReasonScopeTool, "this tool"},
		{u.Domain != "" || u.NoDomain, u.NoDomain, l[2], []string{u.Domain}, policy.ReasonScopeDomainMissing, policy.ReasonScopeDomainRequired,
			policy.ReasonScopeDomain, "this host"},
		{len(u.Reads) > 0, false, l[4], u.Reads, "", policy.ReasonScopeDataRequired, policy.ReasonScopeData, "to read this"},
		{len(u.Writes) > 0, false, l[5], u.Writes, "", policy.ReasonScopeDataRequired, policy.ReasonScopeData, "to write this"},
	} {
		switch {
		case !asked.wanted:
		case len(asked.list.entries) == 0:
			return asked.required, "the token does not permit " + asked.what + ": its scope is empty"
		case asked.missing && slices.Contains(asked.list.entries, Any): // whichever it is
		case asked.missing:
			return asked.lacks, "the token permits certain names only, and none is said"
		case !slices.ContainsFunc(asked.names, func(name string) bool { return permits(asked.list, name) }):
			return asked.forbidden, "the token does not permit " + asked.what
		}
	}
	return "", ""
}
