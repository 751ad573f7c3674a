package identity

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// The refusals to change who there is.
var (
	ErrNameTaken  = fault.New(fault.Conflict, "agent_name_taken", "there is an agent of that name in this workspace; choose another one")
	ErrNotAnAgent = fault.New(fault.NotFound, "agent_not_found", "there is no such agent in this workspace")
	ErrLastOwner  = fault.New(fault.Conflict, "last_owner",
		"this is the last owner of the workspace who may act; give somebody else the role overlord first")
	ErrNotAPerson = fault.New(fault.Invalid, "principal_not_a_user",
		"only people have roles; the rights of an agent or a service come from its kind and from capability tokens")
	ErrRevoked = fault.New(fault.Conflict, "principal_revoked",
		"this principal is quarantined; end the quarantine first, or use another one")
	ErrInvalidActor = fault.New(fault.Invalid, "invalid_actor",
		"actor_type must be user, agent or service, and actor_id 1 to %d bytes of text in one line", principal.MaxName)
	ErrInvalidCursor = fault.New(fault.Invalid, "invalid_cursor", "the cursor is not one of this list; leave it out to begin at its top")
)

// ErrMayNotRegister refuses an agent to somebody who only reads.
var ErrMayNotRegister = fault.New(fault.Denied, policy.ReasonRoleTooLow, "to register an agent takes the role member").
	With("Ask an owner for the role member.")

// ErrMayNotStop refuses to end a run for somebody who only reads, or for another agent than the run's own.
var ErrMayNotStop = fault.New(fault.Denied, policy.ReasonRoleTooLow,
	"you may not end this run: a viewer only reads, and an agent ends its own runs only").
	With("Ask an owner for the role member.")

// people registers principals and changes their roles and states.
type people struct{ *core }

var _ policy.Agents = (*people)(nil)

// register records a new principal, by way of the gate. Unique is the name that no other principal may be registered under.
func (r *people) register(ctx context.Context, origin event.Origin, ws id.Workspace, action string, d principal.Registered,
	unique string) (principal.Principal, error) {
	if err := principal.CheckName(d.Name); err != nil {
		return principal.Principal{}, err
	}
	asked, err := json.Marshal(principal.Registered{Kind: d.Kind, Role: d.Role, Name: d.Name, Legacy: d.Legacy})
	if err != nil {
		return principal.Principal{}, err
	}
	draft := r.draft(principal.RegisteredType, origin, ws, d, principal.Entity, string(d.Principal))
	draft.IdempotencyKey = "principal:" + unique
	a := policy.Action{Type: action, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Content: event.DigestOf(asked)}
	receipt, err := r.Gate.Record(ctx, origin, a, origin.Once(event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft}, Documents: []event.DocumentVersion{{Projection: principal.Projection,
			Key: string(d.Principal)}},
	}))
	if err != nil {
		return principal.Principal{}, err
	}
	doc, _, err := r.who(ctx, ws, id.Principal(receipt.Events[0].EntityID))
	return doc, err
}

// RegisterAgent makes an agent. Its name is its own in the workspace.
func (r *people) RegisterAgent(ctx context.Context, origin event.Origin, ws id.Workspace, name string) (principal.Principal, error) {
	taken, err := r.one(ctx, ws, projection.Index{Name: "agent", Value: name})
	if err == nil && taken.ID != "" {
		err = ErrNameTaken
	}
	if err != nil {
		return principal.Principal{}, err
	}
	doc, err := r.register(ctx, origin, ws, policy.AgentRegister, principal.Registered{Principal: id.NewPrincipal(r.IDs, id.Agent),
		Kind: id.Agent, Name: name}, "agent:"+name)
	if errors.Is(err, journal.ErrKeyConflict) {
		if taken, look := r.one(ctx, ws, projection.Index{Name: "agent", Value: name}); look == nil && taken.ID != "" {
			err = ErrNameTaken // somebody was faster
		}
	}
	return doc, err
}

// AddService registers a service. It has no role: its kind and a capability token bound its actions.
func (r *people) AddService(ctx context.Context, origin event.Origin, ws id.Workspace, name string) (principal.Principal, error) {
	p := id.NewPrincipal(r.IDs, id.Service)
	return r.register(ctx, origin, ws, policy.PrincipalAdd, principal.Registered{Principal: p, Kind: id.Service, Name: name}, string(p))
}

// Ensure returns the principal that another program knew under a type and an id, and registers it where there is none: a person as a
// viewer. One that is quarantined is refused.
func (r *people) Ensure(ctx context.Context, origin event.Origin, ws id.Workspace, kind id.PrincipalKind, actor,
	name string) (principal.Principal, error) {
	if principal.CheckName(actor) != nil || kind != id.User && kind != id.Agent && kind != id.Service {
		return principal.Principal{}, ErrInvalidActor
	}
	legacy := string(kind) + ":" + actor
	for range journal.Tries {
		known, err := r.known(ctx, ws, kind, actor, legacy)
		if err != nil {
			return principal.Principal{}, err
		}
		if known.Quarantined {
			return principal.Principal{}, ErrRevoked
		}
		if known.ID != "" {
			return known, nil
		}
		d := principal.Registered{Principal: id.NewPrincipal(r.IDs, kind), Kind: kind, Name: name, Legacy: legacy}
		if d.Name == "" {
			d.Name = actor
		}
		unique := "legacy:" + legacy
		switch kind {
		case id.User:
			d.Role = principal.Viewer
		case id.Agent:
			unique, d.Name = "agent:"+actor, actor // an agent is known by its name
		}
		doc, err := r.register(ctx, origin, ws, policy.PrincipalEnsure, d, unique)
		if !errors.Is(err, journal.ErrKeyConflict) && !errors.Is(err, journal.ErrConflict) {
			return doc, err
		}
	}
	return principal.Principal{}, journal.ErrConflict
}

// known finds a principal by another program's name for it: its id here, an agent's name, or the name of its registration.
func (r *people) known(ctx context.Context, ws id.Workspace, kind id.PrincipalKind, actor, legacy string) (principal.Principal, error) {
	if p, err := id.ParsePrincipal(actor); err == nil {
		doc, _, err := r.who(ctx, ws, p)
		if err == nil && doc.Kind != kind {
			err = ErrInvalidActor
		}
		return doc, err
	}
	if kind == id.Agent {
		return r.one(ctx, ws, projection.Index{Name: "agent", Value: actor})
	}
	return r.one(ctx, ws, projection.Index{Name: "legacy", Value: legacy})
}

// one returns the principal under an index entry, or the zero one.
func (r *people) one(ctx context.Context, ws id.Workspace, by projection.Index) (principal.Principal, error) {
	found, err := projection.List[principal.Principal](ctx, r.Docs, projection.Query{Workspace: ws, Name: principal.Projection, Index: by,
		Limit: 1})
	if err != nil || len(found) == 0 {
		return principal.Principal{}, err
	}
	return found[0], nil
}

// ChangeRole gives a person another role. The caller must manage that person and gives no role above their own. The last owner stays one.
func (r *people) ChangeRole(ctx context.Context, origin event.Origin, ws id.Workspace, p id.Principal,
	to principal.Role) (principal.Principal, error) {
	if _, err := principal.ParseRole(string(to)); err != nil {
		return principal.Principal{}, err
	}
	err := journal.Again(func() error {
		target, version, err := r.who(ctx, ws, p)
		if err != nil {
			return err
		}
		who, own, err := r.who(ctx, ws, origin.Principal)
		if err != nil {
			return err
		}
		action := policy.Action{Type: policy.PrincipalRole, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(p),
			Method: string(to)}
		switch {
		case target.Kind != id.User:
			return ErrNotAPerson
		case !reaches(who, target) || !who.Role.AtLeast(to):
			return policy.RecordRefusal(ctx, r.Gate, r.Log.Append, origin, action, principal.ErrMayNotGive)
		case target.Role == to:
			return nil
		}
		expect := []event.DocumentVersion{ // the person who gives a role must still have it
			{Projection: principal.Projection, Key: string(p), Version: version},
			{Projection: principal.Projection, Key: string(who.ID), Version: own},
		}
		if target.Role == principal.Overlord {
			others, err := r.otherOwners(ctx, ws, p)
			if err != nil {
				return err
			}
			if len(others) == 0 {
				return ErrLastOwner
			}
			expect = append(expect, others...)
		}
		changed := principal.RoleChanged{Principal: p, From: target.Role, To: to}
		_, err = r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
			Workspace: ws, Drafts: []event.Draft{r.draft(principal.RoleChangedType, origin, ws, changed, principal.Entity, string(p))},
			Documents: unique(expect),
		}))
		return err
	})
	if err != nil {
		return principal.Principal{}, err
	}
	doc, _, err := r.who(ctx, ws, p)
	return doc, err
}

// otherOwners returns the documents of all owners but one, with their versions. A change that lowers an owner expects these versions, so
// that of two owners who lower each other one fails.
func (r *people) otherOwners(ctx context.Context, ws id.Workspace, but id.Principal) ([]event.DocumentVersion, error) {
	found, err := r.Docs.Documents(ctx, projection.Query{
		Workspace: ws, Name: principal.Projection, Index: projection.Index{Name: "role", Value: string(principal.Overlord)}, Limit: 100,
	})
	if err != nil {
		return nil, err
	}
	var others []event.DocumentVersion
	for _, d := range found {
		var doc principal.Principal
		if err := json.Unmarshal(d.Body, &doc); err != nil {
			return nil, err
		}
		if doc.ID != but && !doc.Quarantined {
			others = append(others, event.DocumentVersion{Projection: principal.Projection, Key: d.Key, Version: d.Version})
		}
	}
	return others, nil
}

// unique removes duplicate expectations.
func unique(expect []event.DocumentVersion) []event.DocumentVersion {
	var once []event.DocumentVersion
	for _, e := range expect {
		if !slices.Contains(once, e) {
			once = append(once, e)
		}
	}
	return once
}

// Filter selects principals.
type Filter struct {
	Kind  id.PrincipalKind // "" for all
	Name  string           // a part of the name, in small or capital letters; "" for all
	After id.Principal     // where to go on
	Limit int              // 1 to 1000
	Named bool             // leave out the agents that spaces have for themselves
}

// Principals returns principals of the workspace, the newest of each kind first.
func (r *people) Principals(ctx context.Context, ws id.Workspace, f Filter) ([]principal.Principal, error) {
	if f.After != "" && (f.After.Kind() == "" || f.Kind != "" && f.After.Kind() != f.Kind) {
		return nil, ErrInvalidCursor
	}
	q := projection.Query{Workspace: ws, Name: principal.Projection, After: string(f.After), Newest: true, Limit: max(f.Limit, 100)}
	if f.Kind != "" {
		q.Index = projection.Index{Name: "kind", Value: string(f.Kind)}
	}
	part := strings.ToLower(f.Name)
	var list []principal.Principal
	for {
		found, err := projection.List[principal.Principal](ctx, r.Docs, q)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if q.After = string(p.ID); f.Named && p.Kind == id.Agent && strings.HasPrefix(p.Name, principal.SpaceAgent+"spc_") {
				continue
			}
			if part != "" && !strings.Contains(strings.ToLower(p.Name), part) {
				continue
			}
			if list = append(list, p); len(list) == f.Limit {
				return list, nil
			}
		}
		if len(found) < q.Limit {
			return list, nil
		}
	}
}

// Principal returns a principal of the workspace.
func (r *people) Principal(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Principal, error) {
	doc, _, err := r.who(ctx, ws, p)
	return doc, err
}

// Owner returns the owner of a workspace and makes one, with the given name, where there is none.
func (r *people) Owner(ctx context.Context, ws id.Workspace, name string) (id.Principal, error) {
	for range journal.Tries {
		found, err := projection.List[principal.Principal](ctx, r.Docs, projection.Query{
			Workspace: ws, Name: principal.Projection, Index: projection.Index{Name: "role", Value: string(principal.Overlord)}, Limit: 1,
		})
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return found[0].ID, nil
		}
		owner := id.NewPrincipal(r.IDs, id.User)
		err = r.enrol(ctx, event.Origin{Principal: owner}, ws, principal.Registered{Principal: owner, Kind: id.User, Role: principal.Overlord,
			Name: name}, "owner")
		if !journal.Lost(err) {
			return owner, err
		}
	}
	return "", journal.ErrConflict
}

// AddPerson registers a person with a role, which may not be above the caller's own.
func (r *people) AddPerson(ctx context.Context, origin event.Origin, ws id.Workspace, name string, role principal.Role) (id.Principal,
	error) {
	action := policy.Action{Type: policy.PrincipalAdd, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(role),
		Content: event.DigestOf([]byte(name))}
	if err := r.mayGive(ctx, origin.Principal, ws, role); err != nil {
		return "", r.refused(ctx, origin, action, err)
	}
	p := id.NewPrincipal(r.IDs, id.User)
	batch, err := r.registration(origin, ws, principal.Registered{Principal: p, Kind: id.User, Role: role, Name: name}, string(p))
	if err != nil {
		return "", err
	}
	receipt, err := r.Gate.Record(ctx, origin, action, origin.Once(batch))
	if err != nil {
		return "", err
	}
	return id.Principal(receipt.Events[0].EntityID), nil
}

// enrol records a principal without asking anybody. Unique is the name that no other principal may be registered under.
func (r *people) enrol(ctx context.Context, origin event.Origin, ws id.Workspace, d principal.Registered, unique string) error {
	batch, err := r.registration(origin, ws, d, unique)
	if err == nil {
		_, err = r.Log.Append(ctx, batch)
	}
	return err
}

// registration is the batch that registers a principal.
func (r *people) registration(origin event.Origin, ws id.Workspace, d principal.Registered, unique string) (event.Batch, error) {
	draft := event.New(principal.RegisteredType, origin, ws, "", d).About(principal.Entity, string(d.Principal))
	draft.OccurredAt, draft.IdempotencyKey = r.Clock.Now().UTC(), "principal:"+unique
	return event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft},
		Documents: []event.DocumentVersion{{Projection: principal.Projection, Key: string(d.Principal)}},
	}, principal.CheckName(d.Name)
}

// Agent implements policy.Agents.
func (r *people) Agent(ctx context.Context, origin event.Origin, ws id.Workspace, name string) (id.Principal, error) {
	for range journal.Tries {
		found, err := projection.List[principal.Principal](ctx, r.Docs, projection.Query{
			Workspace: ws, Name: principal.Projection, Index: projection.Index{Name: "agent", Value: name}, Limit: 1,
		})
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return found[0].ID, nil
		}
		who, err := r.acting(ctx, ws, origin.Principal)
		if err != nil {
			return "", err
		}
		if who.Kind == id.User && !who.Role.AtLeast(principal.Member) {
			return "", ErrMayNotRegister
		}
		alive, err := r.living(ctx, ws)
		if err != nil {
			return "", err
		}
		agent := id.NewPrincipal(r.IDs, id.Agent)
		batch, err := r.registration(origin, ws, principal.Registered{Principal: agent, Kind: id.Agent, Name: name}, "agent:"+name)
		if err != nil {
			return "", err
		}
		batch.Documents = append(batch.Documents, alive...)
		if _, err = r.Log.Append(ctx, batch); !journal.Lost(err) {
			return agent, err
		}
	}
	return "", journal.ErrConflict
}

// Quarantine stops a principal from doing anything, or ends that.
func (r *people) Quarantine(ctx context.Context, origin event.Origin, ws id.Workspace, p id.Principal, on bool, reason string) error {
	typ := principal.UnquarantinedType
	if on {
		typ = principal.QuarantinedType
	}
	action := policy.Action{Type: policy.AgentQuarantine, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Subject: string(p),
		Method: typ}
	if err := r.mayGive(ctx, origin.Principal, ws, principal.Viewer); err != nil {
		return r.refused(ctx, origin, action, err)
	}
	if len(reason) > policy.MaxReasonBytes {
		return policy.ErrReasonTooLong
	}
	doc, err := r.Principal(ctx, ws, p)
	if err != nil || doc.Quarantined == on {
		return err
	}
	if doc.Role == principal.Overlord {
		return r.refused(ctx, origin, action, fault.New(fault.Denied, policy.ReasonRoleTooLow, "an owner cannot be quarantined"))
	}
	draft := event.New(typ, origin, ws, "", principal.Quarantined{Principal: p, Reason: reason}).About(principal.Entity, string(p))
	draft.OccurredAt = r.Clock.Now().UTC()
	_, err = r.Gate.Record(ctx, origin, action, origin.Once(event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}))
	return err
}

// MayStop reports whether a principal may end a run of an agent. Every person except a viewer may, and the agent itself. If the role cannot
// be read, stopping is allowed.
func (r *people) MayStop(ctx context.Context, ws id.Workspace, p, agent id.Principal) error {
	who, err := r.acting(ctx, ws, p)
	if err != nil && !errors.Is(err, errStranger) || p == agent || err == nil && who.Kind == id.User && who.Role.AtLeast(principal.Member) {
		return nil
	}
	return ErrMayNotStop
}
