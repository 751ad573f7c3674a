package policy

import (
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// DecisionWord is a person's answer.
type DecisionWord string

// The answers. Hold is not final.
const (
	Approve DecisionWord = "approve"
	Refuse  DecisionWord = "deny"
	Hold    DecisionWord = "hold"
)

// Bounds of a question and its answer.
const (
	DefaultQuestionTime = 24 * time.Hour     // how long a question stays open
	MaxQuestionTime     = 7 * 24 * time.Hour // the most that an answer may be put off
	UseTime             = 15 * time.Minute   // an answer can be used at least this long, however late it came
	MaxReasonBytes      = 2_000
	MaxAgentWords       = 4_000 // bytes
)

// The refusals of an approval.
var (
	// ErrInvalidDecision refuses an answer that is none of approve, deny and hold.
	ErrInvalidDecision = fault.New(fault.Invalid, "invalid_decision", "the decision must be approve, deny or hold")
	// ErrAlreadyDecided refuses a second final answer.
	ErrAlreadyDecided = fault.New(fault.Conflict, "approval_already_decided",
		"this question has its answer already; read it again to see who answered, and how")
	// ErrAlreadyAssented refuses a second yes of the same person where policy demands two.
	ErrAlreadyAssented = fault.New(fault.Conflict, "approval_already_assented",
		"you have approved this; the policy demands that another person approves it too")
	// ErrAssentCredential refuses an approval whose credential an earlier approver may know, or the other way round.
	ErrAssentCredential = fault.New(fault.Denied, "approval_assent_credential",
		"you, or whoever issued your key or token, also issued the key or token by which another person has approved this, so that both could "+
			"be one").
		With("If somebody else issued your key, make a key of your own and answer with that.")
	// ErrAssentDiffers refuses an approval that covers more or less than the one that another person has given.
	ErrAssentDiffers = fault.New(fault.Conflict, "approval_scope_differs",
		"another person has approved this with another scope; approve with the same, or deny it")
	// ErrApprovalExpired refuses to decide an approval after its time.
	ErrApprovalExpired = fault.New(fault.Conflict, ReasonApprovalExpired, "this approval has expired; what it was for must be asked again")
	// ErrApprovalWithdrawn refuses to decide or to use a withdrawn approval.
	ErrApprovalWithdrawn = fault.New(fault.Conflict, "approval_withdrawn", "this approval was withdrawn; what asked for it has ended")
	// ErrApprovalLapsed refuses to use an approval after its time; to errors.Is it is ErrApprovalExpired.
	ErrApprovalLapsed = fault.New(fault.Denied, ReasonApprovalExpired, "this approval has expired; what it was for must be asked again")
	// ErrApprovalUsed refuses the second use of an approval.
	ErrApprovalUsed = fault.New(fault.Denied, "approval_used", "this approval was used before; it holds for one start only")
	// ErrApprovalPending refuses the use of an undecided approval.
	ErrApprovalPending = fault.New(fault.Waiting, "approval_pending", "nobody has decided this approval yet")
	// ErrApprovalDenied refuses the use of an approval that was denied.
	ErrApprovalDenied = fault.New(fault.Denied, ReasonApprovalDenied, "this approval was denied")
	// ErrApprovalMismatch refuses an approval for other bytes than the question had, or for another principal or policy.
	ErrApprovalMismatch = fault.New(fault.Denied, ReasonApprovalMismatch, "the action differs from the approved one; ask again")
	// ErrInvalidExpiry refuses a question or an answer that ends too early or too late.
	ErrInvalidExpiry = fault.New(fault.Invalid, "invalid_expires_at", "expires_at must lie between now and %s from now", MaxQuestionTime)
	// ErrOtherAction refuses an answer to another action than the one that the person saw.
	ErrOtherAction = fault.New(fault.Conflict, "action_mismatch",
		"the approval is about another action than the one with this action_sha256; read it again, then decide")
	// ErrReasonTooLong refuses a reason of more than MaxReasonBytes.
	ErrReasonTooLong = fault.New(fault.Invalid, "reason_too_long", "the reason may have at most %d bytes of UTF-8", MaxReasonBytes)
)

// Answer is the command that decides an approval.
type Answer struct {
	Decision  DecisionWord
	Reason    string
	Scope     Scope       // empty means once
	ExpiresAt time.Time   // until when an approval can be used, or its standing approval holds; zero for the default
	Uses      int         // of a standing approval
	Standing  id.Standing // the id of the standing approval that the answer makes, if any

	Saw *event.Digest // the action_sha256 that the person saw; nil if their answer has none
}

// Decide answers the question and returns the event's data. It does not judge who answers; the gate does.
func (a Approval) Decide(cmd Answer, now time.Time) (ApprovalDecided, error) {
	if len(cmd.Reason) > MaxReasonBytes || !utf8.ValidString(cmd.Reason) {
		return ApprovalDecided{}, ErrReasonTooLong
	}
	d := ApprovalDecided{Approval: a.ID, Decision: cmd.Decision, Reason: cmd.Reason, Scope: ScopeOnce, ExpiresAt: a.ExpiresAt}
	switch cmd.Decision {
	case Approve:
		d.Status = Approved
	case Refuse:
		d.Status = Denied
	case Hold:
		d.Status = Held
	default:
		return ApprovalDecided{}, ErrInvalidDecision
	}
	switch {
	case a.Status == Expired:
		return ApprovalDecided{}, ErrApprovalExpired
	case a.Status == Withdrawn:
		return ApprovalDecided{}, ErrApprovalWithdrawn
	case !a.Open():
		return ApprovalDecided{}, ErrAlreadyDecided
	case !now.Before(a.ExpiresAt):
		return ApprovalDecided{}, ErrApprovalExpired
	}
	if d.Status != Approved {
		return d, nil
	}
	d.Scope = cmd.scope()
	if d.Scope != ScopeOnce {
		d.Standing = cmd.Standing
	}
	if least := now.Add(UseTime); d.ExpiresAt.Before(least) {
		d.ExpiresAt = least
	}
	if d.Scope == ScopeOnce && !cmd.ExpiresAt.IsZero() {
		if !cmd.ExpiresAt.After(now) || cmd.ExpiresAt.After(now.Add(MaxQuestionTime)) {
			return ApprovalDecided{}, ErrInvalidExpiry
		}
		d.ExpiresAt = cmd.ExpiresAt
	}
	return d, nil
}

// Second combines this approval with the earlier ones that count (two-person rule). Issuer is the principal who issued the credential of
// this one. It returns the answer with the narrowest bounds of all. It returns false if policy demands more approvals and there is another
// person to ask.
func (a Approval) Second(cmd Answer, by, issuer id.Principal, others []Assent, more bool) (Answer, bool, error) {
	for _, o := range others {
		if o.Same(by, issuer) {
			return cmd, false, ErrAssentCredential
		}
		if o.Scope != cmd.scope() {
			return cmd, false, ErrAssentDiffers
		}
		if !o.ExpiresAt.IsZero() && (cmd.ExpiresAt.IsZero() || o.ExpiresAt.Before(cmd.ExpiresAt)) {
			cmd.ExpiresAt = o.ExpiresAt
		}
		if o.Uses != 0 {
			cmd.Uses = min(cmd.Uses, o.Uses)
		}
	}
	if len(others)+1 >= a.Approvers || !more {
		return cmd, true, nil
	}
	for _, own := range a.Assents {
		if own.By == by && own.Issuer == issuer && own.Scope == cmd.scope() {
			return cmd, false, ErrAlreadyAssented
		}
	}
	return cmd, false, nil
}

// Assent returns the data of approval.assented for an answer that approves.
func (a Approval) Assent(cmd Answer, issuer id.Principal) ApprovalAssented {
	return ApprovalAssented{Approval: a.ID, Reason: cmd.Reason, Scope: cmd.scope(), ExpiresAt: cmd.ExpiresAt, Uses: cmd.Uses, Issuer: issuer}
}

func (cmd Answer) scope() Scope {
	if cmd.Scope == "" {
		return ScopeOnce
	}
	return cmd.Scope
}

// Use checks that the approval permits these canonical bytes now, once, and returns the event's data.
func (a Approval) Use(canonical []byte, action Action, now time.Time) (ApprovalUsed, error) {
	switch a.Status {
	case Approved:
	case Denied:
		return ApprovalUsed{}, ErrApprovalDenied
	case Expired:
		return ApprovalUsed{}, ErrApprovalLapsed
	case Withdrawn:
		return ApprovalUsed{}, ErrApprovalWithdrawn
	case Pending, Held:
		return ApprovalUsed{}, ErrApprovalPending
	default:
		return ApprovalUsed{}, ErrApprovalMismatch
	}
	if a.Used {
		return ApprovalUsed{}, ErrApprovalUsed
	}
	if !now.Before(a.ExpiresAt) {
		return ApprovalUsed{}, ErrApprovalLapsed
	}
	digest := event.DigestOf(canonical)
	if digest != a.ActionHash || string(a.Request) != string(canonical) ||
		a.Bundle != action.Bundle || a.RequestedBy != action.Principal || a.Workspace != action.Workspace {
		return ApprovalUsed{}, ErrApprovalMismatch
	}
	return ApprovalUsed{Approval: a.ID, ActionHash: digest}, nil
}

// Withdraw ends a question because nobody needs its answer any more; false if it is already answered.
func (a Approval) Withdraw(reason string) (ApprovalWithdrawn, bool) {
	return ApprovalWithdrawn{Approval: a.ID, Reason: reason}, a.Open()
}

// Expire ends a question that was not decided in time; false if it is not yet time, or if it was decided.
func (a Approval) Expire(now time.Time) (ApprovalExpired, bool) {
	return ApprovalExpired{Approval: a.ID}, a.Open() && !now.Before(a.ExpiresAt)
}
