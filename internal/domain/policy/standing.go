package policy

import (
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Bounds of a standing approval. Both are mandatory when one is granted.
const (
	MaxStandingTime = 30 * 24 * time.Hour
	MaxStandingUses = 100
)

// ErrStandingImpossible refuses a standing approval for a command with open effects: a shell, an interpreter, a wrapper, a pattern.
var ErrStandingImpossible = fault.New(fault.Invalid, "standing_not_possible", "this can only be approved once").
	With("Approve it with scope once. A standing approval is possible for one exact command that runs nothing else, for a host, a " +
		"recipient, or a skill, " +
		"and with scope template for files of one folder.")

// ErrInvalidScope refuses a scope that is none.
var ErrInvalidScope = fault.New(fault.Invalid, "invalid_scope", "the scope must be once, run, room, workspace or template")

// ErrScopeMissing refuses a scope that the action does not have, because it is outside of a run or a room.
var ErrScopeMissing = fault.New(fault.Invalid, "scope_not_available", "the question belongs to no such run or room").
	With("Approve it with scope once, workspace or template.")

// CoverKind is the kind of a standing approval.
type CoverKind string

// The kinds of cover.
const (
	CoverCommand   CoverKind = "command"   // one exact command line, environment and folder
	CoverHost      CoverKind = "host"      // one method to one host, with any path
	CoverRecipient CoverKind = "recipient" // one recipient of one action type
	CoverSkill     CoverKind = "skill"     // one tool, pinned by hash
	CoverInput     CoverKind = "input"     // one tool of a coding agent with exactly one input
	CoverTemplate  CoverKind = "template"  // one command or one kind of file operation of one agent in one space, with any names of files
)

// Cover is the reach of a standing approval: its kind, its scope, and the digest of the equal parts. Nothing in it is a pattern.
type Cover struct {
	Kind   CoverKind    `json:"kind"`
	Scope  Scope        `json:"scope"`
	Action string       `json:"action"`
	Match  event.Digest `json:"match_sha256"`
	Text   string       `json:"text"` // rendered for people; decides nothing
}

// Standing is the document of a standing approval.
type Standing struct {
	ID        id.Standing  `json:"standing_id"`
	Workspace id.Workspace `json:"workspace_id"`
	Approval  id.Approval  `json:"approval_id"`
	Cover     Cover        `json:"cover"`
	EndsAt    time.Time    `json:"ends_at"`
	Uses      int          `json:"uses"` // permitted
	Used      int          `json:"used"`
	GrantedBy id.Principal `json:"granted_by"`
	GrantedAt time.Time    `json:"granted_at"`
	RevokedAt time.Time    `json:"revoked_at,omitzero"`
	RevokedBy id.Principal `json:"revoked_by,omitempty"`
}

// Holds reports whether the standing approval can be used now.
func (s Standing) Holds(now time.Time) bool {
	return s.ID != "" && s.RevokedAt.IsZero() && now.Before(s.EndsAt) && s.Used < s.Uses
}

// CoverOf returns the reach of a standing approval of the action within a scope. Words are those of one simple command with known words
// that runs nothing else. Without them a command has no cover.
func CoverOf(a Action, scope Scope, words []string) (Cover, error) {
	c := Cover{Scope: scope, Action: a.Type}
	kind, known := a.Kind()
	switch {
	case scope != ScopeRun && scope != ScopeRoom && scope != ScopeWorkspace && scope != ScopeTemplate:
		return Cover{}, ErrInvalidScope
	case !known, a.Type == ShellExec && (len(words) == 0 || len(a.Argv) == 0):
		return Cover{}, ErrStandingImpossible
	case a.Type == AgentTool && a.Command != "" && len(words) == 0:
		return Cover{}, ErrStandingImpossible // its command runs something else
	case kind.Declared > 0 && (kind.SideEffect == Process || a.Target == ""):
		return Cover{}, ErrStandingImpossible // it could become anything, or it names no recipient
	case scope == ScopeTemplate:
		return templateOf(a, words)
	case a.Type == ShellExec:
		c.Kind = CoverCommand
	case a.Type == AgentTool: // its input decides what it does, so it stays the same to the byte
		c.Kind = CoverInput
	case a.Tool != "" && !a.ToolHash.IsZero():
		c.Kind = CoverSkill
	case kind.SideEffect == Network && a.Target != "" && a.Method != "":
		c.Kind = CoverHost
		if a.Target = place(a.Target); a.Target == "" {
			return Cover{}, ErrStandingImpossible
		}
	case (kind.SideEffect == Network || kind.Declared > 0) && a.Target != "":
		c.Kind = CoverRecipient
	default:
		return Cover{}, ErrStandingImpossible
	}
	if scope == ScopeRun && a.Run == "" || scope == ScopeRoom && a.Room == "" {
		return Cover{}, ErrScopeMissing
	}
	covered := a.within(scope)
	if c.Kind != CoverCommand && c.Kind != CoverInput {
		// The sent content may differ from call to call; the destination, the method and the tool may not.
		covered.Content, covered.Size, covered.Stdin = event.Digest{}, 0, event.Digest{}
		if !a.unvaried() {
			covered.Request = nil
		}
	}
	canonical, err := covered.Canonical()
	if err != nil {
		return Cover{}, err
	}
	tagged, err := json.Marshal([]any{c.Kind, scope, string(canonical)})
	if err != nil {
		return Cover{}, ErrStandingImpossible
	}
	c.Match = event.DigestOf(tagged)
	c.Text = Title(covered)
	return c, nil
}

// unvaried reports whether a standing approval covers only the exact request. That is so for payments, because the amount is essential. It
// is also so for a declared action that cannot be undone, because its essential parts are unknown.
func (a Action) unvaried() bool {
	kind, _ := a.Kind()
	return a.Type == PaymentExecute || kind.Declared > 0 && !kind.Reversible
}

// within clears what differs between two actions that one scope covers. A run's scope keeps the run and who acts in it; a room's and
// the workspace's cover everyone who acts there.
func (a Action) within(scope Scope) Action {
	a.Step, a.Operation, a.Fence, a.Token = "", "", 0, ""
	if scope == ScopeRun {
		return a
	}
	a.Run, a.Principal, a.Space = "", "", ""
	if scope == ScopeWorkspace {
		a.Room = ""
	}
	return a
}

// Grant checks the bounds of a new standing approval and returns the event's data.
func Grant(s id.Standing, approval id.Approval, cover Cover, endsAt time.Time, uses int, now time.Time) (StandingGranted, error) {
	if !endsAt.After(now) || endsAt.After(now.Add(MaxStandingTime)) {
		return StandingGranted{}, fault.New(fault.Invalid, "invalid_expires_at", "a standing approval needs expires_at, at most %d days from now",
			int(MaxStandingTime.Hours()/24))
	}
	if uses < 1 || uses > MaxStandingUses {
		return StandingGranted{}, fault.New(fault.Invalid, "invalid_uses", "a standing approval needs uses, from 1 to %d", MaxStandingUses)
	}
	return StandingGranted{Standing: s, Approval: approval, Cover: cover, EndsAt: endsAt, Uses: uses}, nil
}

// KillSwitch is the document of a workspace's kill switch.
type KillSwitch struct {
	Workspace id.Workspace `json:"workspace_id"`
	On        bool         `json:"on"`
	Reason    string       `json:"reason,omitempty"`
	By        id.Principal `json:"by,omitempty"`
	At        time.Time    `json:"at,omitzero"`
}

// Quota is the document of how many effects a principal has caused in its latest hour.
type Quota struct {
	Principal id.Principal `json:"principal_id"`
	Window    time.Time    `json:"window_started_at"`
	Used      int          `json:"used"`
}
