package policy

import (
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// CodeApprovalRequired is the code of a request that is not done before a person approves it.
const CodeApprovalRequired = "approval_required"

// Asked is the error of a request that became a question. It wraps the fault that says what to do, and names the question.
type Asked struct {
	Approval id.Approval
	Fault    *fault.Error
}

// Error returns the fault's message.
func (a *Asked) Error() string { return a.Fault.Error() }

// Unwrap returns the fault, so that its kind and code are found.
func (a *Asked) Unwrap() error { return a.Fault }

// Counts reports whether the question is still valid for its action: it is open, it was denied and its time to answer is not over, or it
// was approved and not yet used.
func (a Approval) Counts(now time.Time) bool {
	switch a.Status {
	case Pending, Held, Denied:
		return now.Before(a.ExpiresAt)
	case Approved:
		return !a.Used && now.Before(a.ExpiresAt) && a.Scope == ScopeOnce
	}
	return false
}

// Answered returns nil if the question is approved. Otherwise it returns the error that tells the requester the state of the question.
func (a Approval) Answered() error {
	switch a.Status {
	case Approved:
		return nil
	case Denied:
		f := ErrApprovalDenied
		if a.Reason != "" {
			f = fault.New(f.Kind, f.Code, "a person refused it: %s", Escape(a.Reason))
		}
		return &Asked{a.ID, f.With("Do without it, or change the request.")}
	}
	f := fault.New(fault.Waiting, CodeApprovalRequired, "policy asks a person first: %s", a.Question.Why).
		With("Once " + string(a.ID) +
			" is approved, send the same request again; it is done once. A person answers with: agentbox approvals approve " + string(a.ID))
	return &Asked{a.ID, f}
}
