package telemetry

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// told are the events of which the daemon's own log has a line too.
var told = []string{
	space.EventCreated, space.EventStarted, space.EventReady, space.EventDestroyed, space.EventRewound, space.EventRewindFailed,
	space.EventForked, space.EventPromoted, space.EventPaused, space.EventResumed,
	run.EventCreated, run.EventStarted, run.EventSuspended, run.EventResumed, run.EventCompleted, run.EventFailed, run.EventCancelled,
	run.EventUnknown,
	policy.ApprovalRequestedType, policy.ApprovalDecidedType, policy.ApprovalExpiredType, policy.ApprovalWithdrawnType,
	policy.StandingGrantedType, policy.StandingRevokedType, policy.KillSwitchThrownType, policy.KillSwitchLiftedType,
}

// ToldEvents returns the types of the events of which the daemon's own log has a line too.
func ToldEvents() []string { return slices.Clone(told) }

// CodeOf is the code of the line about an event of a type: space_started for space.started.
func CodeOf(typ string) string { return strings.ReplaceAll(typ, ".", "_") }

// tell writes a line for each event on the list. The line names the ids of the event and none of its contents.
func (j *Journal) tell(ctx context.Context, events []event.Event) {
	if j.logger == nil || !j.logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for i := range events {
		e := &events[i]
		if !slices.Contains(told, e.Type) {
			continue
		}
		line := []slog.Attr{slog.String("code", CodeOf(e.Type)), slog.Uint64("seq", e.Seq), slog.String("principal", string(e.Principal))}
		for _, a := range []slog.Attr{
			slog.String("run", string(e.Run)), slog.String("step", string(e.Step)), slog.String(e.EntityType, e.EntityID),
			slog.String("correlation_id", string(e.Correlation)),
		} {
			if a.Key != "" && a.Value.String() != "" {
				line = append(line, a)
			}
		}
		j.logger.LogAttrs(ctx, slog.LevelInfo, e.Type, line...)
	}
}
