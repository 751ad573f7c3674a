package policy

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The event types of permission.
const (
	ApprovalRequestedType = "approval.requested"
	ApprovalAssentedType  = "approval.assented"
	ApprovalDecidedType   = "approval.decided"
	ApprovalUsedType      = "approval.used"
	ApprovalExpiredType   = "approval.expired"
	ApprovalWithdrawnType = "approval.withdrawn"
	StandingGrantedType   = "standing.granted"
	StandingUsedType      = "standing.used"
	StandingRevokedType   = "standing.revoked"
	KillSwitchThrownType  = "kill_switch.thrown"
	KillSwitchLiftedType  = "kill_switch.lifted"
	BundlePinnedType      = "bundle.pinned"
	DeniedType            = "policy.denied"
	RequiresApprovalType  = "policy.requires_approval"
	BegunType             = "action.begun"
	EffectCountedType     = "effect.counted"
)

// The names of the documents of permission, besides ApprovalProjection.
const (
	StandingProjection   = "standing_approvals"
	KillSwitchProjection = "kill_switches"
	BundleProjection     = "policy_bundles"
	QuotaProjection      = "quotas"
	AskerProjection      = "askers" // how many questions each principal has asked
)

// The entity types under which these events are found.
const (
	ApprovalEntity   = "approval"
	StandingEntity   = "standing"
	KillSwitchEntity = "kill_switch"
	BundleEntity     = "bundle"
	ActionEntity     = "action"
	QuotaEntity      = "quota"
)

// ApprovalRequested is the data of approval.requested.
type ApprovalRequested struct {
	Approval   id.Approval  `json:"approval_id"`
	Space      id.Space     `json:"space_id,omitempty"`
	Operation  string       `json:"operation_id,omitempty"`
	Action     string       `json:"action"`
	Title      string       `json:"title"`
	Request    Stored       `json:"request"` // the action's canonical bytes
	ActionHash event.Digest `json:"action_sha256"`
	Bundle     event.Digest `json:"policy_bundle,omitzero"`
	Question   Question     `json:"question"`
	Scope      Scope        `json:"scope"`
	ExpiresAt  time.Time    `json:"expires_at"`
	Approvers  int          `json:"approvers,omitempty"`
	Through    id.Principal `json:"through_principal_id,omitempty"` // the principal who sent it for the acting one
}

// ApprovalAssented is the data of approval.assented: one person approves, and another one has to.
type ApprovalAssented struct {
	Approval  id.Approval `json:"approval_id"`
	Reason    string      `json:"reason,omitempty"`
	Scope     Scope       `json:"scope"`
	ExpiresAt time.Time   `json:"expires_at,omitzero"`
	Uses      int         `json:"uses,omitempty"`

	Issuer id.Principal `json:"credential_issued_by,omitempty"` // of the person's credential, where that was another one
}

// ApprovalDecided is the data of approval.decided.
type ApprovalDecided struct {
	Approval  id.Approval    `json:"approval_id"`
	Decision  DecisionWord   `json:"decision"`
	Status    ApprovalStatus `json:"status"` // held, approved or denied
	Reason    string         `json:"reason,omitempty"`
	Scope     Scope          `json:"scope"`
	ExpiresAt time.Time      `json:"expires_at"` // until when the answer can be used
	Standing  id.Standing    `json:"standing_id,omitempty"`
}

// ApprovalUsed is the data of approval.used.
type ApprovalUsed struct {
	Approval   id.Approval  `json:"approval_id"`
	ActionHash event.Digest `json:"action_sha256"`
}

// ApprovalExpired is the data of approval.expired.
type ApprovalExpired struct {
	Approval id.Approval `json:"approval_id"`
}

// ApprovalWithdrawn is the data of approval.withdrawn.
type ApprovalWithdrawn struct {
	Approval id.Approval `json:"approval_id"`
	Reason   string      `json:"reason"`
}

// StandingGranted is the data of standing.granted.
type StandingGranted struct {
	Standing id.Standing `json:"standing_id"`
	Approval id.Approval `json:"approval_id"` // the question whose answer it is
	Cover    Cover       `json:"cover"`
	EndsAt   time.Time   `json:"ends_at"`
	Uses     int         `json:"uses"`
}

// StandingUsed is the data of standing.used.
type StandingUsed struct {
	Standing   id.Standing  `json:"standing_id"`
	ActionHash event.Digest `json:"action_sha256"`
}

// StandingRevoked is the data of standing.revoked.
type StandingRevoked struct {
	Standing id.Standing `json:"standing_id"`
	Reason   string      `json:"reason,omitempty"`
}

// KillSwitchThrown is the data of kill_switch.thrown.
type KillSwitchThrown struct {
	Reason string `json:"reason,omitempty"`
}

// KillSwitchLifted is the data of kill_switch.lifted.
type KillSwitchLifted struct {
	Reason string `json:"reason,omitempty"`
}

// BundlePinned is the data of bundle.pinned: from now on the bundle can be found by its hash, whatever later presets say.
type BundlePinned struct {
	Bundle Bundle `json:"bundle"`
}

// EffectCounted is the data of effect.counted. That event accompanies an effect's intent if effects are limited.
type EffectCounted struct {
	Principal id.Principal `json:"principal_id"`
	Window    time.Time    `json:"window_started_at"` // of the hour in which it counts
}

// Refused is the data of policy.denied and policy.requires_approval.
type Refused struct {
	Action    string       `json:"action"`
	Title     string       `json:"title"`
	Space     id.Space     `json:"space_id,omitempty"`
	Operation string       `json:"operation_id,omitempty"`
	Decision  Decision     `json:"decision"`
	Bundle    event.Digest `json:"policy_bundle,omitzero"`
	Approval  id.Approval  `json:"approval_id,omitempty"`          // the open question about an action outside
	Through   id.Principal `json:"through_principal_id,omitempty"` // the principal who sent it for the acting one
}

// aboutAction makes a draft one about the action of a decision. An action without canonical bytes has no digest, and its event is about
// nothing: no approval can name it.
func aboutAction(draft event.Draft, d Decision) event.Draft {
	if d.Action.IsZero() {
		return draft
	}
	return draft.About(ActionEntity, d.Action.String())
}

// RefusedDraft drafts the event of a decision that is not allow. The event is about the action, if that has canonical bytes.
func RefusedDraft(origin event.Origin, r Ruling) event.Draft {
	typ := DeniedType
	if r.Decision.Outcome == RequireApproval {
		typ = RequiresApprovalType
	}
	a := r.Action
	return aboutAction(event.New(typ, origin, a.Workspace, a.Room, Refused{
		Action: a.Type, Title: Title(a), Space: a.Space, Operation: a.Operation, Decision: r.Decision, Bundle: a.Bundle,
	}).In(a.Run, a.Step), r.Decision)
}

// Begun is the data of action.begun, which the gate records where the caller has no intent of its own to record.
type Begun struct {
	Action    string   `json:"action"`
	Title     string   `json:"title"`
	Space     id.Space `json:"space_id,omitempty"`
	Operation string   `json:"operation_id,omitempty"`
	Decision  Decision `json:"decision"`

	// For an action that is done outside: the approval that it rests on, and the principal who sent it for the acting one.
	Approval id.Approval  `json:"approval_id,omitempty"`
	Standing id.Standing  `json:"standing_id,omitempty"`
	Through  id.Principal `json:"through_principal_id,omitempty"`
}

// BegunDraft drafts action.begun.
func BegunDraft(r Ruling) event.Draft {
	a := r.Action
	return event.New(BegunType, event.Origin{Principal: a.Principal, Token: a.Token}, a.Workspace, a.Room, Begun{
		Action: a.Type, Title: Title(a), Space: a.Space, Operation: a.Operation, Decision: r.Decision,
	}).In(a.Run, a.Step).About(ActionEntity, r.Decision.Action.String())
}
