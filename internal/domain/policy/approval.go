package policy

import (
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// ApprovalStatus is where a question to a person stands.
type ApprovalStatus string

// The states of an approval. All but Pending and Held are final.
const (
	Pending   ApprovalStatus = "pending"
	Held      ApprovalStatus = "held" // somebody looks into it; a final decision follows
	Approved  ApprovalStatus = "approved"
	Denied    ApprovalStatus = "denied"
	Expired   ApprovalStatus = "expired"
	Withdrawn ApprovalStatus = "withdrawn" // the requesting run has ended, so nobody needs an answer
)

// Scope says what an answer covers besides the one action of the question.
type Scope string

// The scopes. Every one but Once makes a standing approval.
const (
	ScopeOnce      Scope = "once"
	ScopeRun       Scope = "run"
	ScopeRoom      Scope = "room"
	ScopeWorkspace Scope = "workspace"
	ScopeTemplate  Scope = "template"
)

// Known returns the scope; an empty one becomes once. It returns an error for an unknown scope.
func (s Scope) Known() (Scope, error) {
	switch s {
	case "":
		return ScopeOnce, nil
	case ScopeOnce, ScopeRun, ScopeRoom, ScopeWorkspace, ScopeTemplate:
		return s, nil
	}
	return "", ErrInvalidScope
}

// Stored is JSON that becomes canonical again when it is read: encoding/json rewrites embedded JSON, and an approval is for exact bytes.
type Stored []byte

// MarshalJSON returns the bytes.
func (s Stored) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	return s, nil
}

// UnmarshalJSON makes the bytes canonical.
func (s *Stored) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*s = nil
		return nil
	}
	canonical, err := Canonicalize(raw)
	*s = canonical
	return err
}

// Question is the text that a person reads. The daemon renders What, Why and Impact from the action. AgentWords are the agent's own words,
// escaped, and are shown separately and marked as such.
type Question struct {
	What       string   `json:"what"`                  // the action in full, as Render writes it
	Why        string   `json:"why"`                   // the rule that asks
	Impact     string   `json:"impact"`                // the effects of the action and whether they can be undone
	Unsealed   []string `json:"unsealed,omitempty"`    // escaped names of the files that the approval cannot seal
	Template   string   `json:"template,omitempty"`    // the actions that an approval of scope template would cover, if there is such a scope
	AgentTitle string   `json:"agent_title,omitempty"` // the title that the requester gave it, escaped
	AgentWords string   `json:"agent_words,omitempty"` // escaped
}

// Assent is one person's approval where policy demands more than one.
type Assent struct {
	By        id.Principal `json:"principal_id"`
	At        time.Time    `json:"at"`
	Reason    string       `json:"reason,omitempty"`
	Scope     Scope        `json:"scope"`
	ExpiresAt time.Time    `json:"expires_at,omitzero"` // as it was asked for
	Uses      int          `json:"uses,omitempty"`
	Issuer    id.Principal `json:"credential_issued_by,omitempty"` // where that was another one
}

// Same reports whether the assent may come from the same person as by. Issuer is the principal who issued by's credential; "" if by issued
// it themselves. The two count as one person in three cases:
//   - they are the same principal;
//   - one issued the credential of the other;
//   - a third principal issued both credentials.
func (a Assent) Same(by, issuer id.Principal) bool {
	return a.By == by || a.By == issuer || a.Issuer != "" && (a.Issuer == by || a.Issuer == issuer)
}

// Open reports whether the question still waits for its final answer.
func (a Approval) Open() bool { return a.Status == Pending || a.Status == Held }

// Approval is the document of one question and its answer.
type Approval struct {
	ID        id.Approval  `json:"approval_id"`
	Workspace id.Workspace `json:"workspace_id"`
	Room      id.Room      `json:"room_id,omitempty"`
	Space     id.Space     `json:"space_id,omitempty"`
	Run       id.Run       `json:"run_id,omitempty"`
	Step      id.Step      `json:"step_id,omitempty"`
	Thread    id.Thread    `json:"thread_id,omitempty"`
	Operation string       `json:"operation_id,omitempty"`

	Action     string       `json:"action"`        // its type
	Title      string       `json:"title"`         // one line
	Request    Stored       `json:"request"`       // the action's canonical bytes
	ActionHash event.Digest `json:"action_sha256"` // of Request
	Bundle     event.Digest `json:"policy_bundle,omitzero"`
	Question   Question     `json:"question"`

	RequestedBy id.Principal   `json:"requested_by"`
	Through     id.Principal   `json:"through_principal_id,omitempty"` // the principal who sent the question for the acting one
	RequestedAt time.Time      `json:"requested_at"`
	ExpiresAt   time.Time      `json:"expires_at"`
	Status      ApprovalStatus `json:"status"`
	Scope       Scope          `json:"scope"`
	Reason      string         `json:"reason,omitempty"`    // of the decision
	Approvers   int            `json:"approvers,omitempty"` // persons whom policy demands, where they are more than one
	Assents     []Assent       `json:"assents,omitempty"`   // of those who have approved while more were needed
	DecidedBy   id.Principal   `json:"decided_by,omitempty"`
	DecidedAt   time.Time      `json:"decided_at,omitzero"`
	Standing    id.Standing    `json:"standing_id,omitempty"` // the standing approval that the answer made
	Used        bool           `json:"used"`                  // its one use is spent
}
