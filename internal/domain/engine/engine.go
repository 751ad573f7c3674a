// Package engine is programs elsewhere that execute runs: services with tokens by which they are known.
package engine

import (
	"crypto/subtle"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Engine is the document of an engine. It is a service, whose principal has the same id.
type Engine struct {
	ID            id.Principal `json:"engine_id"`
	Workspace     id.Workspace `json:"workspace_id"`
	Name          string       `json:"display_name"`
	Inactive      bool         `json:"inactive,omitempty"` // for good
	Reason        string       `json:"reason,omitempty"`   // of its deactivation
	CreatedBy     id.Principal `json:"created_by"`
	CreatedAt     time.Time    `json:"created_at"`
	DeactivatedAt time.Time    `json:"deactivated_at,omitzero"`
}

// Token is the document of an engine's token. The token itself is shown once and stored nowhere.
type Token struct {
	ID         id.EngineToken `json:"token_id"`
	Workspace  id.Workspace   `json:"workspace_id"`
	Engine     id.Principal   `json:"engine_id"`
	Capability id.Token       `json:"capability_token_id"` // under which the engine acts
	Seal       event.Digest   `json:"secret_hmac_sha256"`
	ExpiresAt  time.Time      `json:"expires_at,omitzero"` // zero means without end
	CreatedAt  time.Time      `json:"created_at"`
	RevokedAt  time.Time      `json:"revoked_at,omitzero"`
	Reason     string         `json:"reason,omitempty"` // of the revocation
}

// Opens reports whether a seal belongs to this token, in any state. It compares in constant time.
func (t Token) Opens(seal event.Digest) bool {
	return subtle.ConstantTimeCompare(seal[:], t.Seal[:]) == 1 && t.ID != "" && !t.Seal.IsZero()
}

// Work are the action types that the whole of an engine's work takes, from the claim of a run to the evidence of it. Its tool calls take
// the names of the tools besides.
func Work() []string {
	return []string{
		policy.RunClaim, policy.RunRenew, policy.RunRelease, policy.StepCreate, policy.ToolCall, policy.ToolReport, policy.ArtifactCreate,
		policy.ArtifactStore,
		policy.RunComplete, policy.RunFail, policy.EvidenceCollect,
	}
}

// NotPermitted is ErrActionNot that names the action and how to get a token which permits it. An action that is empty is to see something.
func NotPermitted(action string) error {
	if action == "" {
		return fault.New(ErrActionNot.Kind, ErrActionNot.Code, "the engine's token does not permit to see this").
			With("Ask an owner or an admin for a token with what may be read: `agentbox engines token issue ENGINE --read TYPE`, with the actions " +
				"that it needs.")
	}
	return fault.New(ErrActionNot.Kind, ErrActionNot.Code, "the engine's token does not permit %s", action).
		With("Ask an owner or an admin for a token with all actions that the engine needs: `agentbox engines token issue ENGINE --action " +
			"run.claim,...," + action + "`.")
}

// The refusals of an engine and its token.
var (
	ErrNotFound      = fault.New(fault.NotFound, "engine_not_found", "there is no such engine in this workspace")
	ErrTokenNotFound = fault.New(fault.NotFound, "engine_token_not_found", "this engine has no such token")
	ErrMissing       = fault.New(fault.Denied, "missing_engine_token",
		"an engine sends its id and its token, as X-Engine-Id and X-Engine-Token")
	ErrInvalid  = fault.New(fault.Denied, "engine_token_invalid", "this is not a token of this engine, or it was revoked")
	ErrExpired  = fault.New(fault.Denied, "engine_token_expired", "this engine's token has expired; request another one")
	ErrInactive = fault.New(fault.Denied, "engine_inactive", "this engine was deactivated")
	ErrNoMore   = fault.New(fault.Conflict, "engine_inactive",
		"this engine was deactivated and gets no more tokens; register another one")
	ErrActionNot    = fault.New(fault.Denied, "engine_action_not_allowed", "the engine's token does not permit this")
	ErrRoomNot      = fault.New(fault.Denied, "engine_room_not_allowed", "the engine's token is not for this room")
	ErrRoomRequired = fault.New(fault.Denied, "engine_room_scope_required",
		"the engine's token is for certain rooms: name one of them as room_id")
)
