// Package peopleapi has the operations for who may act: principals, sessions, keys, tokens, engines and workspaces.
package peopleapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/identity"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// Agent is an agent as it is shown.
type Agent struct {
	Agent       id.Principal `json:"agent_id"`
	Principal   id.Principal `json:"principal_id" doc:"The same"`
	Name        string       `json:"display_name"`
	Quarantined bool         `json:"quarantined"`
	Reason      string       `json:"quarantine_reason,omitempty"`
	CreatedBy   id.Principal `json:"created_by,omitempty"`
	CreatedAt   time.Time    `json:"created_at"`
}

type agentList struct {
	Agents []Agent `json:"agents" nullable:"false"`
	Next   string  `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type principalList struct {
	Principals []principal.Principal `json:"principals" nullable:"false"`
	Next       string                `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

// APIKey is an API key as it is shown.
type APIKey struct {
	Key       id.Key       `json:"key_id"`
	Principal id.Principal `json:"principal_id"`
	Name      string       `json:"name"`
	IssuedBy  id.Principal `json:"issued_by" doc:"Who made it, or had made that by which it was made; what that principal requested is not approved with it"`
	CreatedAt time.Time    `json:"created_at"`
	RevokedAt time.Time    `json:"revoked_at,omitzero"`
	Secret    string       `json:"key,omitempty" doc:"What to send as Authorization: Bearer. Shown once"`
}

type keyList struct {
	Keys []APIKey `json:"keys" nullable:"false"`
	Next string   `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type agentRequest struct {
	Name string `json:"display_name" doc:"1 to 200 bytes in one line; no other agent of the workspace has it"`
}

type quarantineRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"2000"`
}

type principalRequest struct {
	Kind string `json:"kind" enum:"user,service"`
	Role string `json:"role,omitempty" enum:"overlord,admin,operator,member,viewer" doc:"Of a user, who has to have one"`
	Name string `json:"display_name"`
}

type roleRequest struct {
	Role string `json:"role" enum:"overlord,admin,operator,member,viewer"`
}

type ensureRequest struct {
	Type string `json:"actor_type" doc:"user, agent or service"`
	ID   string `json:"actor_id" doc:"What the other program calls it"`
	Name string `json:"display_name,omitempty"`
}

type keyRequest struct {
	Principal id.Principal `json:"principal_id,omitempty" maxLength:"100" doc:"Whose key; the caller's own unless named"`
	Name      string       `json:"name" doc:"What it is for"`
}

// AgentPath names an agent.
type AgentPath struct {
	Agent string `path:"agent_id" doc:"The agent"`
}

// PrincipalPath names a principal.
type PrincipalPath struct {
	Principal string `path:"principal_id" doc:"The principal"`
}

type principalAnswer struct{ Body principal.Principal }

// Principals are the operations for people, agents and their keys.
type Principals struct {
	access.Part
	identity *identity.Service
}

// NewPrincipals returns the operations for people, agents and their keys.
func NewPrincipals(p access.Part, identity *identity.Service) *Principals {
	return &Principals{p, identity}
}

// Register adds the operations to the server.
func (s *Principals) Register() {
	s.registerAgents()
	wire.Handle(s.Server, wire.Operation{
		ID: "list-principals", Needs: wire.Shows("principal"), Method: http.MethodGet, Path: "/v1/principals", Tag: "principals",
		Summary: "List people, agents and services",
	}, func(ctx context.Context, c wire.Call, in *struct {
		Kind  string `query:"kind" enum:"user,agent,service" doc:"Only these"`
		Name  string `query:"q" maxLength:"200" doc:"A part of the name"`
		Named bool   `query:"named" doc:"Leave out the agents that spaces have for themselves"`
		access.Page[id.Principal]
	}) (*struct{ Body principalList }, error) {
		found, err := s.identity.Principals(ctx, c.Caller.Workspace, identity.Filter{
			Kind: id.PrincipalKind(in.Kind), Name: in.Name, After: in.Cursor.After, Limit: in.Limit + 1, Named: in.Named,
		})
		out := principalList{}
		out.Principals, out.Next = access.Cut(found, in.Limit, func(p principal.Principal) string { return string(p.ID) })
		return &struct{ Body principalList }{out}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "get-principal", Needs: wire.Shows("principal"), Method: http.MethodGet, Path: "/v1/principals/{principal_id}", Tag: "principals",
		Summary: "Show a principal",
	}, func(ctx context.Context, c wire.Call, in *PrincipalPath) (*principalAnswer, error) {
		found, err := s.identity.Principal(ctx, c.Caller.Workspace, id.Principal(in.Principal))
		return &principalAnswer{found}, err
	})
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "add-principal", Needs: wire.Does(policy.PrincipalAdd), Method: http.MethodPost, Path: "/v1/principals", Tag: "principals",
		Summary: "Add a person or a service",
		Status:  http.StatusCreated, Repeat: wire.RepeatRecalled, Detail: "A person gets no role above that of the person who adds them.",
	}, access.Recalled[principal.Principal](s.Access, principal.Projection, principal.Entity),
		func(ctx context.Context, c wire.Call, in *struct{ Body principalRequest }) (principal.Principal, error) {
			return s.add(ctx, c, in.Body)
		}, answerPrincipal)
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "change-role", Needs: wire.Does(policy.PrincipalRole), Method: http.MethodPost, Path: "/v1/principals/{principal_id}/role",
		Tag:     "principals",
		Summary: "Give a person another role", Repeat: wire.RepeatRecalled,
		Detail: "Nobody gives a role above their own, or changes that of somebody above them. The last owner stays one.",
	}, access.Recalled[principal.Principal](s.Access, principal.Projection, principal.Entity),
		func(ctx context.Context, c wire.Call, in *struct {
			PrincipalPath
			Body roleRequest
		}) (principal.Principal, error) {
			return s.identity.ChangeRole(ctx, c.Once(), c.Caller.Workspace, id.Principal(in.Principal), principal.Role(in.Body.Role))
		}, answerPrincipal)
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "ensure-principal", Needs: wire.Does(policy.PrincipalEnsure), Method: http.MethodPost, Path: "/v1/principals/legacy/ensure",
		Tag:     "principals",
		Summary: "Find or register whom another program knows", Repeat: wire.RepeatRecalled,
		Detail: "An agent is found by its name. A person who is not known is registered as a viewer.",
	}, access.Recalled[principal.Principal](s.Access, principal.Projection, principal.Entity),
		func(ctx context.Context, c wire.Call, in *struct{ Body ensureRequest }) (principal.Principal, error) {
			return s.identity.Ensure(ctx, c.Once(), c.Caller.Workspace, id.PrincipalKind(in.Body.Type), in.Body.ID, in.Body.Name)
		}, answerPrincipal)
	s.registerKeys()
}

func answerPrincipal(p principal.Principal) *principalAnswer { return &principalAnswer{p} }

func (s *Principals) registerAgents() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-agents", Needs: wire.Shows("agent"), Method: http.MethodGet, Path: "/v1/agents", Tag: "principals",
		Summary: "List agents, the newest first",
	}, func(ctx context.Context, c wire.Call, in *struct {
		Name string `query:"q" maxLength:"200" doc:"A part of the name"`
		access.Page[id.Principal]
	}) (*struct{ Body agentList }, error) {
		found, err := s.identity.Principals(ctx, c.Caller.Workspace, identity.Filter{Kind: id.Agent, Name: in.Name,
			After: in.Cursor.After, Limit: in.Limit + 1})
		if err != nil {
			return nil, err
		}
		out := agentList{Agents: []Agent{}}
		found, out.Next = access.Cut(found, in.Limit, func(p principal.Principal) string { return string(p.ID) })
		for _, p := range found {
			out.Agents = append(out.Agents, shownAgent(p))
		}
		return &struct{ Body agentList }{out}, nil
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "get-agent", Needs: wire.Shows("agent"), Method: http.MethodGet, Path: "/v1/agents/{agent_id}", Tag: "principals",
		Summary: "Show an agent",
	}, func(ctx context.Context, c wire.Call, in *AgentPath) (*struct{ Body Agent }, error) {
		found, err := s.agent(ctx, c, in.Agent)
		return &struct{ Body Agent }{found}, err
	})
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "register-agent", Needs: wire.Does(policy.AgentRegister), Method: http.MethodPost, Path: "/v1/agents", Tag: "principals",
		Summary: "Register an agent",
		Status:  http.StatusCreated, Repeat: wire.RepeatRecalled,
		Detail: "An agent that registers another one may be given what lets it act as that one, as the bearer of a capability token.",
	}, access.Recalled[principal.Principal](s.Access, principal.Projection, principal.Entity),
		func(ctx context.Context, c wire.Call, in *struct{ Body agentRequest }) (principal.Principal, error) {
			return s.identity.RegisterAgent(ctx, c.Once(), c.Caller.Workspace, in.Body.Name)
		}, func(p principal.Principal) *struct{ Body Agent } {
			return &struct{ Body Agent }{shownAgent(p)}
		})
	for _, on := range []bool{true, false} {
		op := wire.Operation{
			ID: "quarantine-agent", Needs: wire.Does(policy.AgentQuarantine), Method: http.MethodPost, Path: "/v1/agents/{agent_id}/quarantine",
			Tag:     "principals",
			Summary: "Stop an agent from doing anything", Repeat: wire.RepeatRecalled,
			Detail: "At once, and with whatever it handed on by capability tokens.",
		}
		if !on {
			op.ID, op.Path, op.Summary, op.Detail = "unquarantine-agent", "/v1/agents/{agent_id}/unquarantine", "End the quarantine of an agent", ""
		}
		wire.Handle(s.Server, op, func(ctx context.Context, c wire.Call, in *struct {
			AgentPath
			Body *quarantineRequest
		}) (*struct{ Body Agent }, error) {
			found, err := wire.Once(c, func() (Agent, error) {
				doc, err := access.Past[principal.Principal](ctx, s.Access, c, principal.Projection, principal.Entity)
				return shownAgent(doc), err
			}, func() (Agent, error) {
				if found, err := s.agent(ctx, c, in.Agent); err != nil {
					return found, err
				}
				reason := ""
				if in.Body != nil {
					reason = in.Body.Reason
				}
				if err := s.identity.Quarantine(ctx, c.Once(), c.Caller.Workspace, id.Principal(in.Agent), on, reason); err != nil {
					return Agent{}, err
				}
				return s.agent(ctx, c, in.Agent)
			})
			return &struct{ Body Agent }{found}, err
		})
	}
}

func (s *Principals) registerKeys() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-keys", Needs: wire.Shows("key"), Method: http.MethodGet, Path: "/v1/keys", Tag: "principals",
		Summary: "List API keys, the newest first",
		Detail:  "A caller who is not an admin sees their own.",
	}, func(ctx context.Context, c wire.Call, in *ofPrincipal[id.Key]) (*struct{ Body keyList }, error) {
		of := id.Principal(in.Principal)
		if !c.Caller.Role.AtLeast(principal.Admin) {
			if of != "" && of != c.Caller.Principal {
				return nil, principal.ErrMayNotGive
			}
			of = c.Caller.Principal
		}
		found, err := s.identity.Keys(ctx, c.Caller.Workspace, of, in.Cursor.After, in.Limit+1)
		if err != nil {
			return nil, err
		}
		out := keyList{Keys: []APIKey{}}
		found, out.Next = access.Cut(found, in.Limit, func(k principal.Key) string { return string(k.ID) })
		for _, k := range found {
			out.Keys = append(out.Keys, shownKey(k, ""))
		}
		return &struct{ Body keyList }{out}, nil
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "issue-key", Needs: wire.Does(policy.KeyIssue), Method: http.MethodPost, Path: "/v1/keys", Tag: "principals",
		Summary: "Make an API key",
		Status:  http.StatusCreated, Repeat: wire.RepeatRecalled,
		Detail: "For oneself; for others an owner does, but not for owners, and an admin for members, viewers, agents and services. Who issued " +
			"a key does not get their own requests approved with it. Whoever acts under a capability token makes none. A repeat is answered " +
			"without " +
			"the key.",
	}, func(ctx context.Context, c wire.Call, in *struct{ Body keyRequest }) (*struct{ Body APIKey }, error) {
		secret := ""
		doc, err := wire.Once(c, func() (principal.Key, error) {
			return access.Past[principal.Key](ctx, s.Access, c, principal.KeyProjection, principal.KeyEntity)
		}, func() (doc principal.Key, err error) {
			of := cmp.Or(in.Body.Principal, c.Caller.Principal)
			secret, doc, err = s.identity.IssueKey(ctx, c.Once(), c.Caller.Workspace, of, in.Body.Name)
			return doc, err
		})
		return &struct{ Body APIKey }{shownKey(doc, secret)}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "revoke-key", Needs: wire.Does(policy.KeyRevoke), Method: http.MethodDelete, Path: "/v1/keys/{key_id}", Tag: "principals",
		Summary: "Revoke an API key",
		Status:  http.StatusNoContent, Detail: "At once; an event stream that it opened ends within ten seconds.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		Key    string `path:"key_id" doc:"The key"`
		Reason string `query:"reason" maxLength:"2000"`
		Last   bool   `query:"last" doc:"Revoke it even where it is the last key in force of an owner; without it that is refused with last_owner_key"`
	}) (*struct{}, error) {
		return nil, s.identity.RevokeKey(ctx, c.Once(), c.Caller.Workspace, id.Key(in.Key), in.Reason, in.Last)
	})
}

// add registers a person or a service.
func (s *Principals) add(ctx context.Context, c wire.Call, q principalRequest) (principal.Principal, error) {
	switch {
	case q.Kind == string(id.Service) && q.Role != "":
		return principal.Principal{}, identity.ErrNotAPerson
	case q.Kind == string(id.Service):
		return s.identity.AddService(ctx, c.Once(), c.Caller.Workspace, q.Name)
	}
	p, err := s.identity.AddPerson(ctx, c.Once(), c.Caller.Workspace, q.Name, principal.Role(q.Role))
	if err != nil {
		return principal.Principal{}, err
	}
	return s.identity.Principal(ctx, c.Caller.Workspace, p)
}

// agent returns an agent of the caller's workspace.
func (s *Principals) agent(ctx context.Context, c wire.Call, name string) (Agent, error) {
	found, err := s.identity.Principal(ctx, c.Caller.Workspace, id.Principal(name))
	if fault.KindOf(err) == fault.NotFound && err != nil || err == nil && found.Kind != id.Agent {
		err = identity.ErrNotAnAgent
	}
	return shownAgent(found), err
}

func shownAgent(p principal.Principal) Agent {
	return Agent{p.ID, p.ID, p.Name, p.Quarantined, p.Reason, p.CreatedBy, p.CreatedAt}
}

func shownKey(k principal.Key, secret string) APIKey {
	return APIKey{k.ID, k.Principal, k.Name, k.IssuedBy, k.CreatedAt, k.RevokedAt, secret}
}
