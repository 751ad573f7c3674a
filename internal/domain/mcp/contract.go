package mcp

import (
	"context"
	"encoding/json"
	"io"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// Key is a key that is shown to nobody but its server.
type Key interface{ Reveal() string }

// Target is a server with everything that is needed to reach it.
type Target struct {
	Server  Server
	Private bool               // its host may have an address that is not public
	Key     Key                // nil for none
	Pipe    io.ReadWriteCloser // to the process of a server with a command; nil for one with an address

	// Of a server with an issuer: its address as it is judged, and the permit to ask it for tokens.
	Issuer  Issuer
	Granted policy.Permit
}

// Issuer is where tokens of OAuth are asked for.
type Issuer struct {
	URL     string // as it is judged; "" for none
	Private bool   // its host may have an address that is not public
}

// Action returns the type of the action by which a session begins.
func (t Target) Action() string {
	if t.Private {
		return policy.MCPConnectPrivate
	}
	return policy.MCPConnect
}

// Answer is what a server answers to a call.
type Answer struct {
	Text       string          // all text, in order; for other content its media type and size
	Structured json.RawMessage // nil for none
	Failed     bool            // the tool says that it failed
}

// Dialer begins sessions with servers. It redeems a permit for exactly this server. It dials only addresses that it has checked, follows
// no redirect and uses no proxy. A server may ask nothing of it: neither for a model, nor for files, nor for an answer of a person.
type Dialer interface {
	Open(ctx context.Context, permit policy.Permit, to Target) (Session, error)
}

// Session is a conversation with a server; any goroutine may call its methods. After an error of Failed it is over.
type Session interface {
	// Tools asks the server for all of its tools, each time anew.
	Tools(ctx context.Context) ([]Tool, error)
	// Call makes the call that the permit is for: its tool, its arguments and its time limit are those of the permitted action.
	Call(ctx context.Context, permit policy.Permit) (Answer, error)
	// Close ends the session.
	Close()
}

// The refusals of servers.
var (
	// ErrNotFound means that the workspace has no such server.
	ErrNotFound = fault.New(fault.NotFound, "mcp_server_not_found", "this workspace has no such MCP server").
			With("`agentbox mcp ls` lists those that it has.")
	// ErrFull refuses one server more than a workspace may have.
	ErrFull = fault.New(fault.Exhausted, "mcp_servers_full", "a workspace has at most %d MCP servers; remove one", MaxServers)
	// ErrQuarantined refuses a tool that no person trusts as it is now.
	ErrQuarantined = fault.New(fault.Denied, "mcp_tool_quarantined", "no person has trusted this tool as it is now").
			With("Do without it. A person looks at it: agentbox mcp show SERVER; and releases it: agentbox mcp trust SERVER TOOL")
	// ErrChanged refuses to trust a tool that is not what the person was shown.
	ErrChanged = fault.New(fault.Conflict, "mcp_tool_changed", "the tool is not what was shown").
			With("look at it again: agentbox mcp show SERVER")
	// ErrUnknown tells of a call whose outcome a crash hid. It is not made again.
	ErrUnknown = fault.New(fault.Conflict, "mcp_outcome_unknown",
		"the daemon stopped while the tool was called; nobody knows what it did, and the call is not made again").
		With("find out what was done before you call the tool again")
	// ErrFailed means that the server did not answer as the protocol wants.
	ErrFailed = fault.New(fault.Conflict, "mcp_failed", "the MCP server did not answer")
	// ErrBusy refuses one session more than may be open.
	ErrBusy = fault.New(fault.Conflict, "mcp_sessions_full", "at most %d sessions with MCP servers are open; try again later", MaxSessions)
)

// Failed returns ErrFailed with its cause.
func Failed(cause string) error {
	return fault.New(ErrFailed.Kind, ErrFailed.Code, "the MCP server %s", cause)
}
