package policy

import "agentbox/internal/domain/event"

// Remains returns the part of a permission event's data that stays after a redaction: ids, numbers and words of the program. It holds no
// text of a person, nor the hash of one. The approval's document can still be folded from it. It is nil for events of other kinds. It is
// also nil for events that say who may do what, because these are not redacted.
func Remains(e event.Event) (any, error) {
	switch e.Type {
	case ApprovalRequestedType:
		d, err := event.Decode[ApprovalRequested](e)
		return ApprovalRequested{
			Approval: d.Approval, Space: d.Space, Action: d.Action, Bundle: d.Bundle, Scope: d.Scope, ExpiresAt: d.ExpiresAt, Approvers: d.Approvers,
			Through: d.Through,
		}, err
	case ApprovalAssentedType:
		d, err := event.Decode[ApprovalAssented](e)
		d.Reason = ""
		return d, err
	case ApprovalDecidedType:
		d, err := event.Decode[ApprovalDecided](e)
		d.Reason = ""
		return d, err
	case ApprovalUsedType:
		d, err := event.Decode[ApprovalUsed](e)
		return ApprovalUsed{Approval: d.Approval}, err
	case ApprovalExpiredType:
		return event.Decode[ApprovalExpired](e)
	case ApprovalWithdrawnType:
		d, err := event.Decode[ApprovalWithdrawn](e)
		return ApprovalWithdrawn{Approval: d.Approval}, err
	case DeniedType, RequiresApprovalType:
		d, err := event.Decode[Refused](e)
		return Refused{Action: d.Action, Space: d.Space, Decision: bare(d.Decision), Bundle: d.Bundle, Approval: d.Approval, Through: d.Through},
			err
	case BegunType:
		d, err := event.Decode[Begun](e)
		return Begun{
			Action: d.Action, Space: d.Space, Decision: bare(d.Decision), Approval: d.Approval, Standing: d.Standing, Through: d.Through,
		}, err
	}
	return nil, nil
}

// bare returns a decision without the words that quote the action.
func bare(d Decision) Decision {
	return Decision{Outcome: d.Outcome, ReasonCode: d.ReasonCode, Policies: d.Policies, Bundle: d.Bundle, Shadow: d.Shadow,
		Approvers: d.Approvers}
}
