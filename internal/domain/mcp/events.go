package mcp

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The names of the documents of servers, and the entity types of their events.
const (
	Projection      = "mcp_servers"       // by name
	CountProjection = "mcp_server_counts" // one of each workspace
	CallProjection  = "mcp_calls"         // by the id of the tool call
	Entity          = "mcp_server"
	CallEntity      = "mcp_call"
)

// The event types of servers.
const (
	EventAdded       = "mcp.added"
	EventChanged     = "mcp.changed" // what is trusted of it is forgotten
	EventRemoved     = "mcp.removed"
	EventListed      = "mcp.listed"      // it offers other tools than it did
	EventQuarantined = "mcp.quarantined" // tools that were trusted are not what they were
	EventTrusted     = "mcp.trusted"     // a person has looked at tools
	EventLoggedIn    = "mcp.logged_in"   // a person has logged in with a browser
	EventLoggedOut   = "mcp.logged_out"  // the tokens of a login are destroyed
	EventCalled      = "mcp.called"      // recorded before the call is sent
	EventEnded       = "mcp.ended"
)

// Put is the data of mcp.added and mcp.changed.
type Put struct {
	Server Server `json:"server"`
}

// Removed is the data of mcp.removed.
type Removed struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
}

// Listed is the data of mcp.listed.
type Listed struct {
	Name  string `json:"name"`
	Tools []Seen `json:"tools"`
}

// Difference is a trusted tool that is not what it was.
type Difference struct {
	Tool    string       `json:"tool"`
	Trusted event.Digest `json:"trusted_sha256"`
	Seen    event.Digest `json:"seen_sha256,omitzero"` // zero where the server has no such tool
}

// Quarantined is the data of mcp.quarantined.
type Quarantined struct {
	Name  string       `json:"name"`
	Tools []Difference `json:"tools"`
}

// Named is a tool as a person has seen it.
type Named struct {
	Tool string       `json:"tool" maxLength:"64" doc:"Its name at the server"`
	Hash event.Digest `json:"tool_sha256" doc:"The hash that was shown"`
}

// Trusted is the data of mcp.trusted.
type Trusted struct {
	Name  string  `json:"name"`
	Tools []Named `json:"tools"`
}

// LoggedIn is the data of mcp.logged_in. It has nothing that is secret.
type LoggedIn struct {
	Name   string   `json:"name"`
	Client string   `json:"client_id" doc:"As the issuer knows the daemon"`
	Scopes []string `json:"scopes,omitempty" doc:"What the issuer was asked for"`
}

// LoggedOut is the data of mcp.logged_out.
type LoggedOut struct {
	Name string `json:"name"`
}

// Login is the login of a person at a server, as its document has it.
type Login struct {
	LoggedIn
	By id.Principal `json:"logged_in_by"`
	At time.Time    `json:"logged_in_at"`
}

// Called is the data of mcp.called.
type Called struct {
	Server    string       `json:"server"`
	Tool      string       `json:"tool"`
	Hash      event.Digest `json:"tool_sha256"`
	Arguments event.Digest `json:"arguments_sha256"`
}

// The ways in which a call ends.
const (
	EndAnswered   = "answered"
	EndFailed     = "failed"     // the tool says so
	EndUnanswered = "unanswered" // what it did is not known
)

// Ended is the data of mcp.ended.
type Ended struct {
	Status string       `json:"status"`
	Size   int64        `json:"size_bytes,omitempty"` // of what was answered
	Digest event.Digest `json:"sha256,omitzero"`
	Reason string       `json:"reason,omitempty"`
}

// Kept is a tool that a person trusts.
type Kept struct {
	Seen
	By id.Principal `json:"trusted_by"`
	At time.Time    `json:"trusted_at"`
}

// Held is the document of a server.
type Held struct {
	Server
	Workspace id.Workspace `json:"workspace_id"`
	Status    string       `json:"status" enum:"registered,removed"`
	ChangedBy id.Principal `json:"changed_by"`
	ChangedAt time.Time    `json:"changed_at"`
	Reason    string       `json:"reason,omitempty" doc:"Of its removal"`
	Tools     []Seen       `json:"tools,omitempty" doc:"What it offered last"`
	Trusted   []Kept       `json:"trusted,omitempty" doc:"What people trust of it"`
	ListedAt  time.Time    `json:"listed_at,omitzero" doc:"When what it offers was last seen to change"`
	Session   *Login       `json:"session,omitempty" doc:"The login that has not ended"`
}

// The states of a server.
const (
	StatusRegistered = "registered"
	StatusRemoved    = "removed"
)

// Count is how many servers a workspace has.
type Count struct {
	Living int `json:"living"`
}

// Call is the document of a call.
type Call struct {
	Called
	Begun time.Time `json:"begun_at"`
	End   *Ended    `json:"end,omitempty"`
}
