package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
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

	// Of a server to which a person logs in: its grant.
	Grant Holder
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

// Grant is what an issuer gave for a login: tokens, and all that renews them. Only the driver that made it reads it. It prints and marshals
// as nothing but a mark.
type Grant struct{ value string }

// NewGrant returns a grant of this content; "" for none.
func NewGrant(value string) Grant { return Grant{value} }

// Reveal returns the content, for its driver and for the place where it is kept.
func (g Grant) Reveal() string { return g.value }

// String returns a mark.
func (g Grant) String() string {
	if g.value == "" {
		return ""
	}
	return "[grant]"
}

// GoString returns a mark.
func (g Grant) GoString() string { return g.String() }

// MarshalText returns a mark.
func (g Grant) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// Holder holds the grant of a server while sessions use it: an issuer renews a grant once, so only one of them may have it renewed.
type Holder interface {
	// Use calls f with the grant as it is now, and keeps the grant that f returns, if it is another one. Nobody else uses it meanwhile.
	Use(ctx context.Context, f func(now Grant) (Grant, error)) error
}

// MethodLogin is the method of the action by which a login is kept.
const MethodLogin = "login"

// Grants keeps the grants of logins, by workspace and server. It hands a grant to nobody but the one who reaches the server.
type Grants interface {
	// Grant returns the grant of a server, or ErrLogin.
	Grant(ctx context.Context, ws id.Workspace, server string) (Grant, error)
	// Keep keeps the grant of a login, in the place of an earlier one. It redeems a permit of type mcp.configure.
	Keep(ctx context.Context, permit policy.Permit, ws id.Workspace, server string, grant Grant) error
	// Renew keeps what an issuer gave in exchange for the grant, in its place.
	Renew(ctx context.Context, ws id.Workspace, server string, grant Grant) error
	// Forget destroys the grant; one that is not there is no error.
	Forget(ctx context.Context, ws id.Workspace, server string) error
}

// Browser is the way in which a person logs in. The issuer sends the browser of the person to Redirect when they have done so.
type Browser struct {
	Redirect string
	// Visit shows the person an address, and returns what the browser was sent back with.
	Visit func(ctx context.Context, address string) (Returned, error)
}

// Returned is what the browser of a person is sent back with.
type Returned struct {
	Code   string `json:"code" minLength:"1" maxLength:"4096" doc:"The code in the address to which the browser was sent"`
	State  string `json:"state" minLength:"1" maxLength:"256" doc:"The state in that address"`
	Issuer string `json:"iss,omitempty" maxLength:"4096" doc:"The iss in that address, where it has one"`
}

// Dialer begins sessions with servers. It redeems a permit for exactly this server. It dials only addresses that it has checked, follows
// no redirect and uses no proxy. A server may ask nothing of it: neither for a model, nor for files, nor for an answer of a person.
type Dialer interface {
	Open(ctx context.Context, permit policy.Permit, to Target) (Session, error)
	// Login has a person log in to a server. It redeems the same permits as Open, and takes at most LoginTime. The facts are those of the
	// event that tells of the login.
	Login(ctx context.Context, permit policy.Permit, to Target, by Browser) (Grant, LoggedIn, error)
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
	// ErrLogin means that a person has to log in to the server first, or again.
	ErrLogin = fault.New(fault.Conflict, "mcp_login_needed", "nobody is logged in to this MCP server, or the login has ended").
			With("A person logs in: agentbox mcp login SERVER --space SPACE")
	// ErrNoLogin refuses to end a login that has not begun.
	ErrNoLogin = fault.New(fault.NotFound, "mcp_login_not_found", "no login at this MCP server waits for its end").
			With("begin it, again if it took more than ten minutes: agentbox mcp login SERVER --space SPACE")
	// ErrLoginsFull refuses one login more than may wait.
	ErrLoginsFull = fault.New(fault.Exhausted, "mcp_logins_full", "at most %d logins at MCP servers may wait; try again later", MaxLogins)
	// ErrIssuer means that a server wants tokens of an issuer that nobody has named.
	ErrIssuer = fault.New(fault.Denied, "mcp_issuer_unknown", "the MCP server wants tokens of an issuer that nobody has named")
	// ErrBusy refuses one session more than may be open.
	ErrBusy = fault.New(fault.Conflict, "mcp_sessions_full", "at most %d sessions with MCP servers are open; try again later", MaxSessions)
)

// Failed returns ErrFailed with its cause.
func Failed(cause string) error {
	return fault.New(ErrFailed.Kind, ErrFailed.Code, "the MCP server %s", cause)
}

// WrongIssuer returns ErrIssuer with the issuer that the server names. The suggestion has a command only if no shell reads more than an
// address in it: the server has chosen the issuer, and people copy commands.
func WrongIssuer(server Server, issuer string) error {
	next := "If that is right, set it as the issuer of the server: agentbox mcp add --help"
	if inert(issuer) && inert(server.URL) {
		next = "If that is right, set it: agentbox mcp add " + server.Name + " --url " + server.URL + " --login --issuer " + issuer
	}
	return fault.New(ErrIssuer.Kind, ErrIssuer.Code, "the MCP server %s wants tokens of the issuer %s, which is not the one that is set",
		server.Name, policy.Escape(issuer)).With(next)
}

// inert reports whether every shell takes a text for one word without a meaning of its own.
func inert(text string) bool {
	return text != "" && text[0] != '-' &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._-%") == ""
}

// CheckRedirect refuses an address to which no browser may be sent with a code: one that is not of the person's own machine.
func CheckRedirect(address string) error {
	u, err := url.Parse(address)
	if err != nil || len(address) > 256 || u.Scheme != "http" || u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" || u.Port() == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fault.New(fault.Invalid, "invalid_field", "redirect_uri is an address of the person's own machine: http://127.0.0.1:PORT/PATH")
	}
	return nil
}
