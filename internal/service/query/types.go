package query

import (
	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/content"
	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/evidence"
	"agentbox/internal/domain/incident"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/node"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
)

// eventTypes are the types of every event that is recorded; a test holds them to the constants of the domain.
var eventTypes = []string{
	policy.ApprovalRequestedType, policy.ApprovalAssentedType, policy.ApprovalDecidedType, policy.ApprovalUsedType, policy.ApprovalExpiredType,
	policy.ApprovalWithdrawnType,
	policy.StandingGrantedType, policy.StandingUsedType, policy.StandingRevokedType, policy.KillSwitchThrownType, policy.KillSwitchLiftedType,
	policy.ActionTypeDeclaredType, policy.ActionTypeChangedType, policy.ActionTypeRetiredType,
	policy.BundlePinnedType, policy.DeniedType, policy.RequiresApprovalType, policy.BegunType, policy.EffectCountedType,
	principal.RegisteredType, principal.QuarantinedType, principal.UnquarantinedType, principal.RoleChangedType, principal.KeyIssuedType,
	principal.KeyRevokedType,
	principal.LoginSetType, principal.LoginRefusedType, principal.LoginShutType, principal.SessionBegunType, principal.SessionRefreshedType,
	principal.SessionEndedType,
	engine.RegisteredType, engine.DeactivatedType, engine.TokenIssuedType, engine.TokenRevokedType,
	token.GrantedType, token.RevokedType, token.AttemptedType,
	run.EventCreated, run.EventStarted, run.EventSuspended, run.EventResumed, run.EventCompleted, run.EventFailed, run.EventCancelled,
	run.EventImported, run.EventRetained, run.EventForgotten, run.EventInput,
	run.EventClaimed, run.EventRenewed, run.EventReleased,
	step.EventCreated, step.EventArtifactCreated, step.EventArtifactStored, evidence.EventCreated,
	run.EventInvoked, run.EventSucceeded, run.EventErred, run.EventUnknown,
	space.EventCreated, space.EventStarted, space.EventReady, space.EventUpdated, space.EventExtended, space.EventDestroyed,
	space.EventRewindBegun, space.EventRewound, space.EventRewindFailed, space.EventForked, space.EventPromoted, space.EventPolicy,
	space.EventPaused, space.EventPortOpened, space.EventPortClosed, space.EventResumed,
	workspace.EventImportBegun, workspace.EventImported, workspace.EventImportFailed,
	workspace.EventCreateOrdered, workspace.EventCreated, workspace.EventUpdateOrdered, workspace.EventUpdated,
	workspace.EventArchiveOrdered, workspace.EventArchived, workspace.EventUnarchiveOrdered, workspace.EventUnarchived,
	content.EventSweepBegun, content.EventSwept,
	event.RedactedType,
	room.EventCreated, room.EventUpdated, room.EventDefaultsSet, room.EventThreadCreated, room.EventThreadUpdated, room.EventMessageCreated,
	room.EventRead,
	space.EventFileBegun, space.EventFileEnded, space.EventFileRead,
	incident.EventOpened, incident.EventRCA, incident.EventLearned, incident.EventClosed,
	label.EventLabelled, label.EventDenied, label.EventMismatch, label.EventJustified, label.EventUnjustified,
	blueprint.EventRegistered, blueprint.EventChanged, blueprint.EventRemoved,
	model.EventAdded, model.EventChanged, model.EventRemoved, model.EventRoutesSet, model.EventBudgetsSet, model.EventKeySet,
	model.EventKeyRemoved, model.EventAsked, model.EventAnswered, model.EventFailed, model.EventRefused,
	model.EventDeferred,
	mcp.EventAdded, mcp.EventChanged, mcp.EventRemoved, mcp.EventListed, mcp.EventQuarantined, mcp.EventTrusted, mcp.EventCalled,
	mcp.EventEnded, mcp.EventLoggedIn, mcp.EventLoggedOut,
	leak.EventDetected, node.EventRemoved,
}

// EventTypes returns the types of every event that is recorded.
func EventTypes() []string { return append([]string(nil), eventTypes...) }
