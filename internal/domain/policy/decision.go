package policy

import (
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Outcome is the gate's decision on an action. The zero value denies.
type Outcome int

// The outcomes.
const (
	Deny Outcome = iota
	RequireApproval
	Allow
)

// String returns the wire form: allow, deny or require_approval.
func (o Outcome) String() string {
	switch o {
	case Allow:
		return "allow"
	case RequireApproval:
		return "require_approval"
	}
	return "deny"
}

// MarshalText returns the wire form.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the wire form; anything unknown denies.
func (o *Outcome) UnmarshalText(text []byte) error {
	switch string(text) {
	case "allow":
		*o = Allow
	case "require_approval":
		*o = RequireApproval
	default:
		*o = Deny
	}
	return nil
}

// Decision is the gate's answer to one action, complete enough to be shown, stored and evaluated again.
type Decision struct {
	Outcome    Outcome      `json:"decision"`
	ReasonCode string       `json:"reason_code"`          // one of the ReasonX constants or a bundle's own
	Reason     string       `json:"reason"`               // a sentence for people
	Suggestion string       `json:"suggestion,omitempty"` // how to proceed after a refusal
	Policies   []string     `json:"policies,omitempty"`   // ids of the policies that decided
	Action     event.Digest `json:"action_sha256"`        // of the action's canonical bytes
	Bundle     event.Digest `json:"policy_bundle,omitzero"`
	Shadow     bool         `json:"shadow,omitempty"`    // mode shadow let it pass; Outcome says what enforce would have said
	Unsealed   []string     `json:"unsealed,omitempty"`  // what an approval cannot seal, for example a script that is read later
	Approvers  int          `json:"approvers,omitempty"` // persons who have to approve it, where they are more than one
}

// Allowed reports whether the action may be done now without asking anybody: it is allowed, or mode shadow lets it pass.
func (d Decision) Allowed() bool { return d.Outcome == Allow || d.Shadow }

// Refusal turns a decision that is not an allowance into an error: of kind Waiting where a person may still approve it, else Denied.
func (d Decision) Refusal() error {
	kind := fault.Denied
	if d.Outcome == RequireApproval {
		kind = fault.Waiting
	}
	return fault.New(kind, d.ReasonCode, "%s", d.Reason).With(d.Suggestion)
}

// Reason codes of the gate itself; the set is open.
const (
	ReasonDefaultAllow      = "default_allow"
	ReasonNoPolicy          = "no_policy_allows"
	ReasonPolicyForbids     = "policy_forbids"
	ReasonPolicyAsks        = "policy_requires_approval"
	ReasonApprovalAllows    = "approval_allows_action"
	ReasonStandingAllows    = "standing_approval_allows_action"
	ReasonKillSwitch        = "kill_switch_active"
	ReasonArchived          = "workspace_archived"
	ReasonUnknownAction     = "unknown_action"
	ReasonTargetMismatch    = "action_target_mismatch" // of a declared action: the target is of no kind that the declaration names
	ReasonPrincipalNotFound = "agent_principal_not_found"
	ReasonAgentQuarantined  = "agent_quarantined"
	ReasonQuotaExceeded     = "quota_exceeded"
	ReasonLimitExceeded     = "limit_exceeded"
	ReasonClockUnreadable   = "clock_unreadable"
	ReasonPolicyUnavailable = "policy_unavailable"
	ReasonPreApproval       = "action_pre_approval_required"
	ReasonExternalWrite     = "external_write_requires_approval"
	ReasonHighStakes        = "action_zone_requires_high_stakes"
	ReasonZoneMismatch      = "action_zone_mismatch"
	ReasonRoomMismatch      = "data_access_restricted_room_mismatch"
	ReasonPurposeMismatch   = "data_access_purpose_hint_mismatch"
	ReasonNotOutside        = "action_not_external"
	ReasonToolNotAllowed    = "tool_not_allowed" // by the list of the room
	ReasonAgentRequired     = "agent_principal_required"
	ReasonActorMismatch     = "agent_actor_id_mismatch"
	ReasonTokenNotFound     = "capability_token_not_found"
	ReasonTokenRevoked      = "capability_token_revoked"
	ReasonTokenExpired      = "capability_token_expired"
	ReasonTokenMismatch     = "capability_principal_mismatch"
	ReasonRoleTooLow        = "role_not_permitted"
	ReasonUnresolved        = "command_unresolved"
	ReasonCommandInvalid    = "command_invalid"
	ReasonActionInvalid     = "action_invalid"
	ReasonTooLongToShow     = "action_too_long_to_show"
	ReasonApprovalDenied    = "approval_denied"
	ReasonApprovalExpired   = "approval_expired"
	ReasonApprovalMismatch  = "approval_mismatch"

	// Of the scopes of a capability token: an empty one permits nothing of its kind, another one not this.
	ReasonScopeRoomRequired   = "capability_scope_room_required"
	ReasonScopeRoom           = "capability_scope_room_not_allowed"
	ReasonScopeActionRequired = "capability_scope_action_type_required"
	ReasonScopeAction         = "capability_scope_action_not_allowed"
	ReasonScopeToolRequired   = "capability_scope_tool_required"
	ReasonScopeTool           = "capability_scope_tool_not_allowed"
	ReasonScopeToolMissing    = "capability_scope_context_missing_tool_name"
	ReasonScopeDataRequired   = "capability_scope_data_access_required"
	ReasonScopeData           = "capability_scope_data_access_not_allowed"
	ReasonScopeDomainRequired = "capability_scope_egress_domain_required"
	ReasonScopeDomain         = "capability_scope_egress_domain_not_allowed"
	ReasonScopeDomainMissing  = "capability_scope_context_missing_egress_domain"
)
