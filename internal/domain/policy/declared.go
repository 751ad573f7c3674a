package policy

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Bounds of the action types that a workspace declares.
const (
	MaxActionTypes      = 200 // declared at the same time in one workspace
	MaxActionTypeName   = 64  // bytes
	MaxDescriptionBytes = 200
)

// The target kinds of a declared action: the kind of its target. The last three are for actions without a target and name their subject.
const (
	TargetHost      = "host"    // a host, maybe with a port
	TargetURL       = "url"     // a URL with a host
	TargetAddress   = "address" // an e-mail address
	TargetName      = "name"    // any other text of one line
	TargetRoom      = "room"
	TargetRun       = "run"
	TargetWorkspace = "workspace"
)

// TargetKinds returns the target kinds that there are.
func TargetKinds() []string {
	return []string{TargetHost, TargetURL, TargetAddress, TargetName, TargetRoom, TargetRun, TargetWorkspace}
}

// The names of the documents of declared action types, and the entity type of their events.
const (
	ActionTypeProjection      = "action_types"
	ActionTypeCountProjection = "action_type_counts" // one of each workspace
	ActionTypeEntity          = "action_type"
)

// The event types of declared action types.
const (
	ActionTypeDeclaredType = "action_type.declared"
	ActionTypeChangedType  = "action_type.changed"
	ActionTypeRetiredType  = "action_type.retired"
)

// Declaration is a workspace's declaration of an action type of its own. Each action of that type contains it. So everything that is
// bound to the action is bound to this version: questions, approvals, standing approvals and permits.
type Declaration struct {
	Version     int        `json:"version"` // rises with each change, also over a retirement
	Description string     `json:"description"`
	SideEffect  SideEffect `json:"side_effect"`
	Zone        event.Zone `json:"zone"`
	Reversible  bool       `json:"reversible"`
	Asks        bool       `json:"always_asks"`
	Targets     string     `json:"target_kinds,omitempty"` // joined by spaces
}

// kind returns the registry row for a declared action type. Such an action is done outside, by a principal who asks first.
func (d Declaration) kind(name string) Kind {
	return Kind{
		Type: name, SideEffect: d.SideEffect, Zone: d.Zone, Reversible: d.Reversible, PreApproval: d.Asks, Title: "do " + name, Outside: true,
		Role: "member", Agents: true, Services: true, Declared: d.Version, Rules: RulesRole, Template: TemplateRequest,
	}
}

// Kind returns the kind of the action's type: the registry's row, or else the workspace's declaration that the gate has set in the action.
// False means that the type is undeclared; then the action is denied.
func (a Action) Kind() (Kind, bool) {
	if k, ok := KindOf(a.Type); ok {
		return k, true
	}
	if a.Declared.Version == 0 {
		return Kind{}, false
	}
	return a.Declared.kind(a.Type), true
}

// Own reports whether the action's type is one that its workspace declared.
func (a Action) Own() bool {
	k, _ := a.Kind()
	return k.Declared > 0
}

// Misses returns the declared target kinds that the action's target, or its subject, should have had; "" if it fits. A type without target
// kinds takes every target and none.
func (a Action) Misses() string {
	kinds := strings.Fields(a.Declared.Targets)
	if len(kinds) == 0 || slices.ContainsFunc(kinds, a.aims) {
		return ""
	}
	return strings.Join(kinds, ", ")
}

// aims reports whether the action's target is of a kind.
func (a Action) aims(kind string) bool {
	scheme, host, _ := hostOf(a.Target)
	switch kind {
	case TargetHost:
		return scheme == "" && host != Unreadable && !strings.ContainsAny(a.Target, "@/?#")
	case TargetURL:
		return scheme != "" && host != Unreadable
	case TargetAddress:
		user, at, found := strings.Cut(a.Target, "@")
		return found && user != "" && !strings.Contains(at, "@") && !strings.ContainsAny(a.Target, " ,;:<>\"()[]/") && plainLine(a.Target) &&
			Host(at) != Unreadable
	case TargetName:
		return a.Target != "" && plainLine(a.Target)
	case TargetRoom:
		return a.Target == "" && a.Room != "" && a.Run == ""
	case TargetRun:
		return a.Target == "" && a.Run != ""
	case TargetWorkspace:
		return a.Target == "" && a.Room == "" && a.Run == ""
	}
	return false
}

// plainLine reports whether a text is one line that shows as it is: UTF-8 without control characters and without those that change its
// direction.
func plainLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == '\ufeff'
	})
}

// The states of a declared action type.
const (
	DeclaredStatus = "declared"
	RetiredStatus  = "retired"
)

// ActionType is the document of an action type that a workspace declared.
type ActionType struct {
	Name        string       `json:"action_type"`
	Workspace   id.Workspace `json:"workspace_id"`
	Status      string       `json:"status" enum:"declared,retired"`
	Version     int          `json:"version" doc:"Rises with each change; what was asked or approved under an older one holds no more"`
	Description string       `json:"description"`
	SideEffect  SideEffect   `json:"side_effect"`
	Zone        event.Zone   `json:"zone"`
	Reversible  bool         `json:"reversible"`
	Asks        bool         `json:"always_asks"`
	Targets     []string     `json:"target_kinds,omitempty"`
	DeclaredBy  id.Principal `json:"declared_by" doc:"Who declared this version"`
	DeclaredAt  time.Time    `json:"declared_at"`
	RetiredBy   id.Principal `json:"retired_by,omitempty"`
	RetiredAt   time.Time    `json:"retired_at,omitzero" doc:"Since when nothing of this type is done"`
	Reason      string       `json:"reason,omitempty" doc:"Of the retirement"`
}

// Living reports whether the type is declared now.
func (t ActionType) Living() bool { return t.Status == DeclaredStatus }

// Declaration returns the type's declaration in the form that actions contain; the zero value if the type is not declared now.
func (t ActionType) Declaration() Declaration {
	if !t.Living() {
		return Declaration{}
	}
	return Declaration{
		Version: t.Version, Description: t.Description, SideEffect: t.SideEffect, Zone: t.Zone, Reversible: t.Reversible, Asks: t.Asks,
		Targets: strings.Join(t.Targets, " "),
	}
}

// Kind returns the type as the registry shows its own ones.
func (t ActionType) Kind() Kind {
	k := t.Declaration().kind(t.Name)
	k.Title = t.Description
	return k.graded()
}

// Declare is the command that declares an action type, or changes it.
type Declare struct {
	Name        string
	Description string
	SideEffect  SideEffect
	Zone        event.Zone // empty means supervised
	Reversible  bool
	Asks        bool
	Targets     []string // some of TargetKinds, in any order; none takes every target and none
}

// The refusals of a declaration.
var (
	// ErrActionTypeName refuses a name that is none.
	ErrActionTypeName = fault.New(fault.Invalid, "invalid_action_type",
		"an action type is named noun.verb or noun.noun.verb: small letters, digits and _, each part beginning with a letter, "+
			"%d bytes at most", MaxActionTypeName)
	// ErrActionTypeReserved refuses a name whose noun belongs to Agentbox.
	ErrActionTypeReserved = fault.New(fault.Invalid, "action_type_reserved", "action types of this noun belong to Agentbox").
				With("Choose a noun of your own, such as deploy, invoice or crm. `agentbox policy actions` lists the built-in ones.")
	// ErrActionTypeNotFound means that the workspace has declared no such type.
	ErrActionTypeNotFound = fault.New(fault.NotFound, "action_type_not_found", "this workspace has declared no such action type").
				With("`agentbox actions ls` lists those that it has declared.")
	// ErrActionTypeFull refuses one type more than a workspace may have.
	ErrActionTypeFull = fault.New(fault.Exhausted, "too_many_action_types", "a workspace has at most %d action types of its own; retire one",
		MaxActionTypes)
	// ErrDescription refuses a description that is none.
	ErrDescription = fault.New(fault.Invalid, "invalid_description",
		"describe the action in one line of 1 to %d bytes, without control characters", MaxDescriptionBytes)
	// ErrSideEffect refuses a side effect that a declared type cannot have.
	ErrSideEffect = fault.New(fault.Invalid, "invalid_side_effect", "side_effect must be pure, read, filesystem, process or network")
	// ErrDeclaredZone refuses a zone that is none.
	ErrDeclaredZone = fault.New(fault.Invalid, "invalid_zone", "the zone must be sandbox, supervised or high_stakes")
	// ErrTargetKinds refuses target kinds that are none, or that are named twice.
	ErrTargetKinds = fault.New(fault.Invalid, "invalid_target_kinds",
		"target_kinds are some of host, url, address, name, room, run and workspace, each once")
	// ErrDeclarationChanged refuses to approve a question of an older declaration.
	ErrDeclarationChanged = fault.New(fault.Conflict, "declaration_changed",
		"the workspace has changed or retired this action type since the question; request the action again")
)

// reserved are nouns that belong to Agentbox besides those of the registry, so that its later action types collide with no declaration.
var reserved = []string{
	"action", "action_type", "agentbox", "connector", "egress", "event", "experiment", "hook", "lease", "model", "objective", "policy",
	"provider", "quota", "secret",
	"session", "skill", "snapshot", "system", "task", "token", "trust", "webhook",
}

// Declarable returns nil where a workspace may declare an action type of this name.
func Declarable(name string) error {
	parts := strings.Split(name, ".")
	if len(name) > MaxActionTypeName || len(parts) < 2 || len(parts) > 3 {
		return ErrActionTypeName
	}
	for _, part := range parts {
		if part == "" || part[0] < 'a' || part[0] > 'z' || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return ErrActionTypeName
		}
	}
	noun := parts[0] + "."
	builtIn := func(k Kind) bool { return strings.HasPrefix(k.Type, noun) }
	if slices.Contains(reserved, parts[0]) || slices.ContainsFunc(Registry(), builtIn) {
		return ErrActionTypeReserved
	}
	return nil
}

// Outside reports whether actions of a type are done outside: by the registry, or because only a workspace can have declared it.
func Outside(actionType string) bool {
	k, builtIn := KindOf(actionType)
	return k.Outside || !builtIn && Declarable(actionType) == nil
}

// check returns the command with all defaults filled in. It refuses values beyond the bounds.
func (c Declare) check() (Declare, error) {
	if err := Declarable(c.Name); err != nil {
		return c, err
	}
	if c.Description == "" || len(c.Description) > MaxDescriptionBytes || !plainLine(c.Description) {
		return c, ErrDescription
	}
	switch c.SideEffect {
	case Pure, Read, Filesystem, Process, Network:
	default:
		return c, ErrSideEffect
	}
	switch c.Zone {
	case "":
		c.Zone = event.Supervised
	case event.Sandbox, event.Supervised, event.HighStakes:
	default:
		return c, ErrDeclaredZone
	}
	var targets []string
	for _, kind := range TargetKinds() {
		if slices.Contains(c.Targets, kind) {
			targets = append(targets, kind)
		}
	}
	if len(targets) != len(c.Targets) {
		return c, ErrTargetKinds
	}
	c.Targets = targets
	return c, nil
}

// ActionTypeDeclared is the data of action_type.declared and action_type.changed.
type ActionTypeDeclared struct {
	Name        string     `json:"action_type"`
	Version     int        `json:"version"`
	Description string     `json:"description"`
	SideEffect  SideEffect `json:"side_effect"`
	Zone        event.Zone `json:"zone"`
	Reversible  bool       `json:"reversible"`
	Asks        bool       `json:"always_asks"`
	Targets     []string   `json:"target_kinds,omitempty"`
}

// ActionTypeRetired is the data of action_type.retired.
type ActionTypeRetired struct {
	Name    string `json:"action_type"`
	Version int    `json:"version"`
	Reason  string `json:"reason,omitempty"`
}

// Declare declares the type or changes it, where the workspace has living ones already. It returns the type of the event and its data; an
// empty type where the command says what holds already.
func (t ActionType) Declare(cmd Declare, living int) (string, ActionTypeDeclared, error) {
	cmd, err := cmd.check()
	if err != nil {
		return "", ActionTypeDeclared{}, err
	}
	d := ActionTypeDeclared{
		Name: cmd.Name, Version: t.Version + 1, Description: cmd.Description, SideEffect: cmd.SideEffect, Zone: cmd.Zone,
		Reversible: cmd.Reversible,
		Asks:       cmd.Asks, Targets: cmd.Targets,
	}
	if !t.Living() {
		if living >= MaxActionTypes {
			return "", d, ErrActionTypeFull
		}
		return ActionTypeDeclaredType, d, nil
	}
	same := t.Declaration()
	same.Version = d.Version
	if d.declaration() == same {
		return "", d, nil
	}
	return ActionTypeChangedType, d, nil
}

func (d ActionTypeDeclared) declaration() Declaration {
	return Declaration{
		Version: d.Version, Description: d.Description, SideEffect: d.SideEffect, Zone: d.Zone, Reversible: d.Reversible, Asks: d.Asks,
		Targets: strings.Join(d.Targets, " "),
	}
}

// Retire ends the type and returns the event's data.
func (t ActionType) Retire(reason string) (ActionTypeRetired, error) {
	if !t.Living() {
		return ActionTypeRetired{}, ErrActionTypeNotFound
	}
	if len(reason) > MaxReasonBytes || !utf8.ValidString(reason) {
		return ActionTypeRetired{}, ErrReasonTooLong
	}
	return ActionTypeRetired{Name: t.Name, Version: t.Version, Reason: reason}, nil
}

// Evolve returns the type after an event about it.
func (t ActionType) Evolve(e event.Event) (ActionType, error) {
	switch e.Type {
	case ActionTypeDeclaredType, ActionTypeChangedType:
		d, err := event.Decode[ActionTypeDeclared](e)
		if err != nil || d.Name != e.EntityID {
			return t, misplaced(e, err)
		}
		return ActionType{
			Name: d.Name, Workspace: e.Workspace, Status: DeclaredStatus, Version: d.Version, Description: d.Description, SideEffect: d.SideEffect,
			Zone:       d.Zone,
			Reversible: d.Reversible, Asks: d.Asks, Targets: d.Targets, DeclaredBy: e.Principal, DeclaredAt: e.OccurredAt,
		}, nil
	case ActionTypeRetiredType:
		d, err := event.Decode[ActionTypeRetired](e)
		if err != nil || d.Name != t.Name {
			return t, misplaced(e, err)
		}
		t.Status, t.RetiredBy, t.RetiredAt, t.Reason = RetiredStatus, e.Principal, e.OccurredAt, d.Reason
	}
	return t, nil
}

// ActionTypeCount is the document of how many action types a workspace has declared.
type ActionTypeCount struct {
	Living int `json:"living"`
}

// Evolve returns the count after an event about a declared action type.
func (c ActionTypeCount) Evolve(e event.Event) ActionTypeCount {
	switch e.Type {
	case ActionTypeDeclaredType:
		c.Living++
	case ActionTypeRetiredType:
		c.Living--
	}
	return c
}
