package label

import (
	"slices"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Request is an intended access and its reason.
type Request struct {
	Resource
	Action        string // read or write
	Level         Level  // that the asker believes it to have; a stricter one than the label's counts
	Room          id.Room
	Purposes      []string
	Justification string
}

// Check refuses a request that cannot be decided.
func (q Request) Check() error {
	if err := q.Resource.Check(); err != nil {
		return err
	}
	if q.Action != "read" && q.Action != "write" {
		return ErrInvalidAction
	}
	if q.Level != "" && rank[q.Level] == 0 {
		return ErrInvalidLabel
	}
	if len(q.Justification) > MaxJustification || !utf8.ValidString(q.Justification) {
		return ErrInvalidJustification
	}
	return checkTags(q.Purposes)
}

// Decide decides a requested access under a label. Resolved is the label's level, or the stricter one of the request. Mismatch reports that
// the purposes differ from those of the label.
func (l Label) Decide(q Request) (resolved Level, d policy.Decision, mismatch bool) {
	resolved = l.Level
	if rank[resolved] == 0 {
		resolved = Internal
	}
	if rank[q.Level] > rank[resolved] {
		resolved = q.Level
	}
	if resolved.AtLeast(Restricted) && l.Room != q.Room && (l.Room != "" || resolved == Restricted) {
		return resolved, policy.Decision{
			Outcome: policy.Deny, ReasonCode: policy.ReasonRoomMismatch, Reason: "the data are restricted to another room",
			Suggestion: "Ask from the room to which they belong.",
		}, false
	}
	d = policy.Decision{Outcome: policy.Allow, ReasonCode: policy.ReasonDefaultAllow, Reason: "the label " + string(resolved) + " permits it"}
	if !l.forPurposes(resolved) || l.serves(q.Purposes) {
		return resolved, d, false
	}
	if strings.TrimSpace(q.Justification) != "" {
		d.Reason = "the purpose is not that of the label, and a justification is given"
		return resolved, d, true
	}
	return resolved, policy.Decision{
		Outcome: policy.RequireApproval, ReasonCode: policy.ReasonPurposeMismatch,
		Reason:     "the purpose is not that of the label, and no justification is given",
		Suggestion: "Say the purpose for which the data are kept, or justify another one.",
	}, true
}

// forPurposes reports whether the label limits its data to certain purposes: sensitive_pii always does, confidential if it names some.
func (l Label) forPurposes(resolved Level) bool {
	return resolved == SensitivePII || resolved.AtLeast(Confidential) && len(l.Purposes) > 0
}

// serves reports whether purposes are named and all of them are the label's.
func (l Label) serves(purposes []string) bool {
	return len(purposes) > 0 && !slices.ContainsFunc(purposes, func(tag string) bool { return !slices.Contains(l.Purposes, tag) })
}
