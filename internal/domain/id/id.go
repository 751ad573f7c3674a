// Package id holds the identifiers of everything that has one, as distinct types that cannot be mixed up.
//
// An identifier is a prefix that names its kind and a ULID, so identifiers of one kind sort by the time they were made.
// Event identifiers are the exception: they are UUIDv7, because other systems expect a UUID there, and they sort the same way.
package id

import (
	"fmt"
	"strings"
)

// The identifiers. The zero value of each is "none".
type (
	// Workspace names a tenant (`ws_`). It is chosen by people, so any short word after the prefix is valid.
	Workspace string
	// Room names a room (`room_`), the policy and memory boundary.
	Room string
	// Thread names a thread of a room (`th_`).
	Thread string
	// Message names a message of a thread (`msg_`).
	Message string
	// Principal names the acting principal: `usr_`, `agt_` or `svc_` and a ULID; see PrincipalKind.
	Principal string
	// Run names one execution (`run_`).
	Run string
	// Step names a unit of a run (`step_`).
	Step string
	// ToolCall names one call out of a step (`tc_`).
	ToolCall string
	// Artifact names an output of a run (`art_`).
	Artifact string
	// Attempt names one try of an engine to execute a run (`rat_`).
	Attempt string
	// Evidence names the manifest of a run (`evd_`).
	Evidence string
	// Experiment names an experiment that runs belong to (`exp_`).
	Experiment string
	// Approval names one question to a person and its answer (`appr_`).
	Approval string
	// Standing names a standing approval, an answer that covers later questions too (`stand_`).
	Standing string
	// Space names an isolated place where code runs (`spc_`).
	Space string
	// Node names a daemon that works on a database with others, by its data directory (`node_`).
	Node string
	// Exposure names a port of a space while it is open (`xps_`).
	Exposure string
	// Incident names something that went wrong (`inc_`).
	Incident string
	// Token names a capability token (`cap_`).
	Token string
	// EngineToken names a token of an engine (`engtok_`); never the token itself.
	EngineToken string
	// Session names a login of a person (`ses_`).
	Session string
	// Key names an API key (`key_`); never the key itself.
	Key string
	// Request names one HTTP request (`req_`).
	Request string
	// Correlation ties together everything that one cause led to (`cor_`, or whatever a client sent).
	Correlation string
	// Event names an entry of the log, a UUIDv7 in its usual text form.
	Event string
)

// DefaultWorkspace is the workspace of a daemon that is not configured with another one.
const DefaultWorkspace Workspace = "ws_dev"

// DefaultRoom is the room that every workspace has, for things without another room. No event records its creation.
const DefaultRoom Room = "room_00000000000000000000000000"

// kind is an identifier that is made of a prefix and a ULID.
type kind interface {
	~string
	prefix() string
}

func (Room) prefix() string        { return "room_" }
func (Thread) prefix() string      { return "th_" }
func (Message) prefix() string     { return "msg_" }
func (Run) prefix() string         { return "run_" }
func (Step) prefix() string        { return "step_" }
func (ToolCall) prefix() string    { return "tc_" }
func (Artifact) prefix() string    { return "art_" }
func (Attempt) prefix() string     { return "rat_" }
func (Evidence) prefix() string    { return "evd_" }
func (Experiment) prefix() string  { return "exp_" }
func (Approval) prefix() string    { return "appr_" }
func (Standing) prefix() string    { return "stand_" }
func (Space) prefix() string       { return "spc_" }
func (Node) prefix() string        { return "node_" }
func (Exposure) prefix() string    { return "xps_" }
func (Incident) prefix() string    { return "inc_" }
func (Token) prefix() string       { return "cap_" }
func (EngineToken) prefix() string { return "engtok_" }
func (Session) prefix() string     { return "ses_" }
func (Key) prefix() string         { return "key_" }
func (Request) prefix() string     { return "req_" }
func (Correlation) prefix() string { return "cor_" }

// Parse reads an identifier of one kind. The error says which prefix was wanted and never repeats more than 64 bytes of the text.
func Parse[T kind](text string) (T, error) {
	var none T
	want := none.prefix()
	rest, ok := strings.CutPrefix(text, want)
	if !ok || !isULID(rest) {
		return none, fmt.Errorf("%.64q is not an identifier of the form %s followed by 26 characters", text, want)
	}
	return T(text), nil
}

// Read reads an identifier of any type of this package, in the form that the type has.
func Read[T ~string](text string) (T, error) {
	switch none := any(T("")).(type) {
	case Workspace:
		_, err := ParseWorkspace(text)
		return T(text), err
	case Principal:
		_, err := ParsePrincipal(text)
		return T(text), err
	case Event:
		if _, ok := Event(text).made(); ok && strings.Trim(text, "0123456789abcdef-") == "" {
			return T(text), nil
		}
		return "", fmt.Errorf("%.64q is not an event: a UUIDv7 in small letters", text)
	case interface{ prefix() string }:
		if rest, ok := strings.CutPrefix(text, none.prefix()); ok && isULID(rest) {
			return T(text), nil
		}
		return "", fmt.Errorf("%.64q is not an identifier of the form %s followed by 26 characters", text, none.prefix())
	}
	return "", fmt.Errorf("%.64q is not an identifier: %T has no form of its own", text, T(""))
}

// ParseWorkspace reads a workspace identifier: `ws_` and 1 to 60 of a-z, 0-9, - and _.
func ParseWorkspace(text string) (Workspace, error) {
	rest, ok := strings.CutPrefix(text, "ws_")
	if !ok || len(rest) < 1 || len(rest) > 60 || strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return "", fmt.Errorf("%.64q is not a workspace: ws_ and 1 to 60 of a-z, 0-9, - and _", text)
	}
	return Workspace(text), nil
}

// PrincipalKind is the kind of a principal; its text is the event envelope's actor_type.
type PrincipalKind string

// The three kinds of principal.
const (
	User    PrincipalKind = "user"
	Agent   PrincipalKind = "agent"
	Service PrincipalKind = "service"
)

var principalPrefix = map[PrincipalKind]string{User: "usr_", Agent: "agt_", Service: "svc_"}

// Kind returns the kind of the principal by its prefix; "" for anything else.
func (p Principal) Kind() PrincipalKind {
	for kind, prefix := range principalPrefix {
		if rest, ok := strings.CutPrefix(string(p), prefix); ok && isULID(rest) {
			return kind
		}
	}
	return ""
}

// ParsePrincipal reads a principal identifier of any of the three kinds.
func ParsePrincipal(text string) (Principal, error) {
	if p := Principal(text); p.Kind() != "" {
		return p, nil
	}
	return "", fmt.Errorf("%.64q is not a principal: usr_, agt_ or svc_ followed by 26 characters", text)
}
