package peopleapi

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/identity"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// grantRequest asks for a capability token.
type grantRequest struct {
	IssuedTo   id.Principal `json:"issued_to_principal_id" maxLength:"100" doc:"Who may act under it"`
	GrantedBy  id.Principal `json:"granted_by_principal_id,omitempty" maxLength:"100" doc:"Who grants it, where that is an agent for whom the caller acts"`
	Parent     id.Token     `json:"parent_token_id,omitempty" maxLength:"100" doc:"The token that it is derived from; the caller's own where they act under one, else none"`
	Scopes     token.Scopes `json:"scopes" doc:"What may be done under it; where the parent permits less, that"`
	ValidUntil time.Time    `json:"valid_until,omitzero" doc:"Until when; never longer than the parent"`
}

type revokeRequest struct {
	Token  id.Token `json:"token_id" maxLength:"100"`
	Reason string   `json:"reason,omitempty" maxLength:"2000"`
}

// CapabilityToken is a token as it is shown.
type CapabilityToken struct {
	Token      id.Token     `json:"token_id"`
	IssuedTo   id.Principal `json:"issued_to_principal_id"`
	GrantedBy  id.Principal `json:"granted_by_principal_id"`
	Parent     id.Token     `json:"parent_token_id,omitempty"`
	Depth      int          `json:"depth" doc:"How often it was handed on"`
	Scopes     token.Scopes `json:"scopes"`
	ValidUntil time.Time    `json:"valid_until,omitzero"`
	Status     string       `json:"status" enum:"active,revoked,expired" doc:"As what it was derived from permits, too"`
	RevokedAt  time.Time    `json:"revoked_at,omitzero"`
	Reason     string       `json:"reason,omitempty"`
	CreatedAt  time.Time    `json:"created_at"`
	Dropped    []string     `json:"dropped,omitempty" doc:"What was asked for and the parent does not permit, or not in full, as action_types run.start"`
	Bearer     string       `json:"bearer,omitempty" doc:"What to send as Authorization: Bearer. Shown once, to whoever may speak for the holder"`
}

type capabilityList struct {
	Tokens []CapabilityToken `json:"tokens" nullable:"false"`
	Next   string            `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type edgeList struct {
	Edges []token.Edge `json:"edges" nullable:"false"`
	Next  string       `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

// ofPrincipal selects what concerns one principal, from a list that goes by a T.
type ofPrincipal[T ~string] struct {
	Principal string `query:"principal_id" maxLength:"100" doc:"Only what concerns this principal"`
	access.Page[T]
}

// Capabilities are the operations for capability tokens.
type Capabilities struct {
	access.Part
	identity *identity.Service
}

// NewCapabilities returns the operations for capability tokens.
func NewCapabilities(p access.Part, identity *identity.Service) *Capabilities {
	return &Capabilities{p, identity}
}

// Register adds the operations to the server.
func (s *Capabilities) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-capabilities", Needs: wire.Shows("capability_token"), Method: http.MethodGet, Path: "/v1/capabilities", Tag: "principals",
		Summary: "List capability tokens, the newest first",
	}, s.listCapabilities)
	wire.Handle(s.Server, wire.Operation{
		ID: "grant-capability", Needs: wire.Does(policy.CapabilityGrant), Method: http.MethodPost, Path: "/v1/capabilities/grant",
		Tag:     "principals",
		Summary: "Grant a capability token", Status: http.StatusCreated, Repeat: wire.RepeatRecalled,
		Detail: "A token permits nothing that its holder may not do anyway; it narrows. One that is derived from another permits what both " +
			"permit, ends no later, and is revoked with it; " +
			"it may be handed on three times. An action that is not in the registry is refused, and so is a token that would permit nothing; what " +
			"the parent does not permit is left out and named as `dropped`. Without a parent only owners and admins grant one, to nobody above " +
			"themselves. A repeat is answered without the bearer.",
	}, func(ctx context.Context, c wire.Call, in *struct{ Body grantRequest }) (*struct{ Body CapabilityToken }, error) {
		made, err := wire.Once(c, func() (made identity.Issued, err error) {
			made.Token, err = access.Past[token.Token](ctx, s.Access, c, token.Projection, token.Entity)
			return made, err
		}, func() (made identity.Issued, err error) {
			if c.Caller, err = s.identity.ActsFor(ctx, c.Caller, in.Body.GrantedBy, ""); err != nil {
				return made, err
			}
			return s.identity.Grant(ctx, c.Once(), c.Caller.Workspace, token.Grant{
				IssuedTo: in.Body.IssuedTo, Parent: in.Body.Parent, Scopes: in.Body.Scopes, ValidUntil: in.Body.ValidUntil.UTC(),
			})
		})
		if err != nil {
			return nil, err
		}
		out := shownToken(made.Token, "active")
		out.Bearer, out.Dropped = made.Bearer, in.Body.Scopes.Without(made.Scopes)
		return &struct{ Body CapabilityToken }{out}, nil
	})
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "revoke-capability", Needs: wire.Does(policy.CapabilityRevoke), Method: http.MethodPost, Path: "/v1/capabilities/revoke",
		Tag:     "principals",
		Summary: "Revoke a capability token", Repeat: wire.RepeatRecalled,
		Detail: "With all that were derived from it, at once. Whoever granted or holds it, or one that it was derived from, may, and so may " +
			"owners and admins.",
	}, access.Recalled[token.Token](s.Access, token.Projection, token.Entity),
		func(ctx context.Context, c wire.Call, in *struct{ Body revokeRequest }) (token.Token, error) {
			return s.identity.Revoke(ctx, c.Once(), c.Caller.Workspace, in.Body.Token, in.Body.Reason)
		}, func(t token.Token) *struct{ Body CapabilityToken } {
			return &struct{ Body CapabilityToken }{shownToken(t, "revoked")}
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "list-delegations", Needs: wire.Shows("capability_token"), Method: http.MethodGet, Path: "/v1/capabilities/delegations",
		Tag:     "principals",
		Summary: "List by which steps authority was handed on, the newest first",
	}, func(ctx context.Context, c wire.Call, in *ofPrincipal[id.Token]) (*struct{ Body edgeList }, error) {
		found, err := s.identity.Edges(ctx, c.Caller.Workspace, id.Principal(in.Principal), in.Cursor.After, in.Limit+1)
		if err != nil {
			return nil, err
		}
		out := edgeList{}
		out.Edges, out.Next = access.Cut(found, in.Limit, func(e token.Edge) string { return string(e.Child) })
		return &struct{ Body edgeList }{out}, nil
	})
}

func (s *Capabilities) listCapabilities(ctx context.Context, c wire.Call, in *ofPrincipal[id.Token]) (*struct{ Body capabilityList },
	error) {
	found, err := s.identity.Tokens(ctx, c.Caller.Workspace, id.Principal(in.Principal), in.Cursor.After, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := capabilityList{Tokens: []CapabilityToken{}}
	found, out.Next = access.Cut(found, in.Limit, func(t token.Token) string { return string(t.ID) })
	for _, t := range found {
		status, err := s.identity.InForce(ctx, c.Caller.Workspace, t)
		if err != nil {
			return nil, err
		}
		out.Tokens = append(out.Tokens, shownToken(t, status))
	}
	return &struct{ Body capabilityList }{out}, nil
}

func shownToken(t token.Token, status string) CapabilityToken {
	return CapabilityToken{
		Token: t.ID, IssuedTo: t.IssuedTo, GrantedBy: t.GrantedBy, Parent: t.Parent, Depth: t.Depth, Scopes: t.Scopes, ValidUntil: t.ValidUntil,
		Status:    status,
		RevokedAt: t.RevokedAt, Reason: t.Reason, CreatedAt: t.CreatedAt,
	}
}
