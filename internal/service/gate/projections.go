package gate

import (
	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/projection"
)

// Definitions fold the documents that the gate reads: approvals, standing approvals, kill switches, bundles, quotas, principals and keys.
func Definitions() []projection.Definition {
	return []projection.Definition{
		projection.Define(policy.ApprovalProjection, 5, about(policy.ApprovalEntity), func(a policy.Approval, _ string,
			e event.Event) (policy.Approval, error) {
			return a.Evolve(e)
		}, approvalIndexes).Leads(policy.ApprovalEntity, nil),
		projection.Define(policy.AskerProjection, 1, func(e event.Event) []string {
			if e.Type != policy.ApprovalRequestedType || e.Principal == "" {
				return nil
			}
			return []string{string(e.Principal)}
		}, func(a policy.Asker, _ string, e event.Event) (policy.Asker, error) { return a.Evolve(e), nil }, nil),
		projection.Define(policy.StandingProjection, 2, about(policy.StandingEntity), func(s policy.Standing, _ string,
			e event.Event) (policy.Standing, error) {
			return s.Evolve(e)
		}, func(s policy.Standing) []projection.Index {
			if !s.RevokedAt.IsZero() || s.Used >= s.Uses {
				return nil
			}
			return []projection.Index{{Name: "match", Value: s.Cover.Match.String()}}
		}).Leads(policy.StandingEntity, policy.IsUse),
		projection.Define(policy.KillSwitchProjection, 2, about(policy.KillSwitchEntity), func(k policy.KillSwitch, _ string,
			e event.Event) (policy.KillSwitch, error) {
			return k.Evolve(e)
		}, nil).Leads(policy.KillSwitchEntity, nil),
		projection.Define(policy.BundleProjection, 1, about(policy.BundleEntity), func(b policy.Bundle, _ string, e event.Event) (policy.Bundle,
			error) {
			return policy.EvolveBundle(b, e)
		}, nil),
		projection.Define(policy.ActionTypeProjection, 1, about(policy.ActionTypeEntity), func(t policy.ActionType, _ string,
			e event.Event) (policy.ActionType, error) {
			return t.Evolve(e)
		}, func(t policy.ActionType) []projection.Index {
			if !t.Living() {
				return nil
			}
			return []projection.Index{{Name: "living", Value: "true"}}
		}).Leads(policy.ActionTypeEntity, nil),
		projection.Define(policy.ActionTypeCountProjection, 1, func(e event.Event) []string {
			if e.EntityType != policy.ActionTypeEntity {
				return nil
			}
			return []string{string(e.Workspace)}
		}, func(c policy.ActionTypeCount, _ string, e event.Event) (policy.ActionTypeCount, error) {
			return c.Evolve(e), nil
		}, nil),
		projection.Define(policy.QuotaProjection, 1, about(policy.QuotaEntity), func(q policy.Quota, _ string, e event.Event) (policy.Quota,
			error) {
			return q.Evolve(e)
		}, nil),
		projection.Define(principal.Projection, 2, about(principal.Entity), func(p principal.Principal, _ string,
			e event.Event) (principal.Principal, error) {
			return p.Evolve(e)
		}, principalIndexes).Leads(principal.Entity, nil),
		projection.Define(principal.KeyProjection, 3, about(principal.KeyEntity), func(k principal.Key, _ string, e event.Event) (principal.Key,
			error) {
			return k.Evolve(e)
		}, func(k principal.Key) []projection.Index {
			return []projection.Index{{Name: "principal", Value: string(k.Principal)}}
		}).Leads(principal.KeyEntity, nil),
		projection.Define(principal.LoginProjection, 1, func(e event.Event) []string {
			if key := principal.LoginKey(e); key != "" {
				return []string{key}
			}
			return nil
		}, func(l principal.Login, _ string, e event.Event) (principal.Login, error) {
			return l.Evolve(e)
		}, nil),
		projection.Define(principal.SessionProjection, 2, about(principal.SessionEntity), func(s principal.Session, _ string,
			e event.Event) (principal.Session, error) {
			return s.Evolve(e)
		}, nil).Leads(principal.SessionEntity, nil),
		projection.Define(engine.Projection, 2, about(engine.Entity), func(g engine.Engine, _ string, e event.Event) (engine.Engine, error) {
			return g.Evolve(e)
		}, nil).Leads(engine.Entity, nil),
		projection.Define(engine.TokenProjection, 2, about(engine.TokenEntity), func(t engine.Token, _ string, e event.Event) (engine.Token,
			error) {
			return t.Evolve(e)
		}, func(t engine.Token) []projection.Index {
			return []projection.Index{{Name: "engine", Value: string(t.Engine)}}
		}).Leads(engine.TokenEntity, nil),
		projection.Define(token.Projection, 3, about(token.Entity), func(t token.Token, _ string, e event.Event) (token.Token, error) {
			return t.Evolve(e)
		}, tokenIndexes).Leads(token.Entity, nil),
	}
}

// about selects the events about an entity type; its id is the document's key.
func about(entity string) func(event.Event) []string {
	return func(e event.Event) []string {
		if e.EntityType != entity || e.EntityID == "" {
			return nil
		}
		return []string{e.EntityID}
	}
}

func approvalIndexes(a policy.Approval) []projection.Index {
	found := []projection.Index{{Name: "status", Value: string(a.Status)}}
	if a.Run != "" {
		found = append(found, projection.Index{Name: "run", Value: string(a.Run)}, projection.Index{Name: "run_status", Value: string(a.Run) +
			" " + string(a.Status)})
	}
	if a.Space != "" {
		found = append(found, projection.Index{Name: "space", Value: string(a.Space)}, projection.Index{Name: "space_status",
			Value: string(a.Space) + " " + string(a.Status)})
	}
	if a.Room != "" {
		found = append(found, projection.Index{Name: "room", Value: string(a.Room)}, projection.Index{Name: "room_status", Value: string(a.Room) +
			" " + string(a.Status)})
	}
	kind, builtIn := policy.KindOf(a.Action)
	if a.Run == "" || !builtIn || kind.Rules == policy.RulesRole || kind.SideEffect == policy.Network {
		found = append(found, projection.Index{Name: "request", Value: a.ActionHash.String()})
	}
	if a.Status == policy.Pending || a.Status == policy.Held {
		found = append(found, projection.Index{Name: "open_by", Value: string(a.RequestedBy)})
	}
	return found
}

func principalIndexes(p principal.Principal) []projection.Index {
	found := []projection.Index{{Name: "kind", Value: string(p.Kind)}}
	if p.Role != "" {
		found = append(found, projection.Index{Name: "role", Value: string(p.Role)})
	}
	if p.Kind == "agent" {
		found = append(found, projection.Index{Name: "agent", Value: p.Name})
	}
	if p.Legacy != "" {
		found = append(found, projection.Index{Name: "legacy", Value: p.Legacy})
	}
	return found
}

// tokenIndexes are by the holder and by the grantor of a token. A derived token is also found by that fact and by both ends of its
// derivation.
func tokenIndexes(t token.Token) []projection.Index {
	found := []projection.Index{{Name: "principal", Value: string(t.IssuedTo)}, {Name: "granted_by", Value: string(t.GrantedBy)}}
	if t.Parent != "" {
		found = append(found, projection.Index{Name: "derived", Value: "true"}, projection.Index{Name: "edge", Value: string(t.GrantedBy)},
			projection.Index{Name: "edge", Value: string(t.IssuedTo)}, projection.Index{Name: "parent", Value: string(t.Parent)})
	}
	return found
}
