package peopleapi

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/identity"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

type engineRequest struct {
	Name string `json:"display_name"`
}

type engineTokenRequest struct {
	Scopes    *token.Scopes `json:"scopes,omitempty" doc:"What the engine may do by it; to claim runs of every room, to go on owning them and to give them back unless named"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
}

// EngineToken is a token of an engine as it is shown.
type EngineToken struct {
	Token      id.EngineToken `json:"token_id"`
	Engine     id.Principal   `json:"engine_id"`
	Capability id.Token       `json:"capability_token_id" doc:"Under which the engine acts by it"`
	ExpiresAt  time.Time      `json:"expires_at,omitzero"`
	CreatedAt  time.Time      `json:"created_at"`
	RevokedAt  time.Time      `json:"revoked_at,omitzero"`
	Reason     string         `json:"reason,omitempty"`
	Secret     string         `json:"token,omitempty" doc:"What to send as X-Engine-Token. Shown once"`
}

type engineList struct {
	Engines []engine.Engine `json:"engines" nullable:"false"`
	Next    string          `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type engineTokenList struct {
	Tokens []EngineToken `json:"tokens" nullable:"false"`
	Next   string        `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

// EnginePath names an engine.
type EnginePath struct {
	Engine string `path:"engine_id" doc:"The engine"`
}

type engineAnswer struct{ Body engine.Engine }

type reasonBody struct {
	Reason string `json:"reason,omitempty" maxLength:"2000"`
}

func (b *reasonBody) text() string {
	if b == nil {
		return ""
	}
	return b.Reason
}

type permitKey struct {
	Algorithm string `json:"algorithm" doc:"ed25519"`
	Key       []byte `json:"public_key" doc:"The 32 bytes of the key, in base64"`
}

func answerEngine(e engine.Engine) *engineAnswer { return &engineAnswer{e} }

// Engines are the operations for engines and their tokens.
type Engines struct {
	access.Part
	engines  *engines.Service
	identity *identity.Service
}

// NewEngines returns the operations for engines and their tokens.
func NewEngines(p access.Part, engines *engines.Service, identity *identity.Service) *Engines {
	return &Engines{p, engines, identity}
}

// Register adds the operations to the server.
func (s *Engines) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "get-permit-key", Engines: true, Needs: wire.Shows("engine"), Method: http.MethodGet, Path: "/v1/engines/permit-key", Tag: "engines",
		Summary: "The public key of the permits of engines",
		Detail: "A permit is prm_, JSON in base64url, a dot, and in base64url the Ed25519 signature over the line `agentbox permit 1` with " +
			"its line feed, and the JSON.",
	}, func(context.Context, wire.Call, *struct{}) (*struct{ Body permitKey }, error) {
		return &struct{ Body permitKey }{permitKey{"ed25519", s.engines.Permits.Key()}}, nil
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "list-engines", Needs: wire.Shows("engine"), Method: http.MethodGet, Path: "/v1/engines", Tag: "engines",
		Summary: "List engines, the newest first",
	}, func(ctx context.Context, c wire.Call, in *access.Page[id.Principal]) (*struct{ Body engineList }, error) {
		found, err := s.identity.Engines(ctx, c.Caller.Workspace, in.Cursor.After, in.Limit+1)
		out := engineList{}
		out.Engines, out.Next = access.Cut(found, in.Limit, func(e engine.Engine) string { return string(e.ID) })
		return &struct{ Body engineList }{out}, err
	})
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "register-engine", Needs: wire.Does(policy.EngineRegister), Method: http.MethodPost, Path: "/v1/engines/register", Tag: "engines",
		Summary: "Register an engine",
		Status:  http.StatusCreated, Repeat: wire.RepeatRecalled,
		Detail: "A program elsewhere that executes runs. It is a service; what it may do is what its tokens permit.",
	}, access.Recalled[engine.Engine](s.Access, engine.Projection, engine.Entity),
		func(ctx context.Context, c wire.Call, in *struct{ Body engineRequest }) (engine.Engine, error) {
			return s.identity.RegisterEngine(ctx, c.Once(), c.Caller.Workspace, in.Body.Name)
		}, answerEngine)
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "deactivate-engine", Needs: wire.Does(policy.EngineRegister), Method: http.MethodPost, Path: "/v1/engines/{engine_id}/deactivate",
		Tag:     "engines",
		Summary: "End an engine for good", Repeat: wire.RepeatRecalled, Detail: "None of its tokens opens anything any more.",
	}, access.Recalled[engine.Engine](s.Access, engine.Projection, engine.Entity), func(ctx context.Context, c wire.Call, in *struct {
		EnginePath
		Body *reasonBody
	}) (engine.Engine, error) {
		return s.identity.DeactivateEngine(ctx, c.Once(), c.Caller.Workspace, id.Principal(in.Engine), in.Body.text())
	}, answerEngine)
	wire.Handle(s.Server, wire.Operation{
		ID: "list-engine-tokens", Needs: wire.Shows("engine"), Method: http.MethodGet, Path: "/v1/engines/{engine_id}/tokens", Tag: "engines",
		Summary: "List the tokens of an engine",
	}, func(ctx context.Context, c wire.Call, in *struct {
		EnginePath
		access.Page[id.EngineToken]
	}) (*struct{ Body engineTokenList }, error) {
		found, err := s.identity.EngineTokens(ctx, c.Caller.Workspace, id.Principal(in.Engine), in.Cursor.After, in.Limit+1)
		if err != nil {
			return nil, err
		}
		out := engineTokenList{Tokens: []EngineToken{}}
		found, out.Next = access.Cut(found, in.Limit, func(t engine.Token) string { return string(t.ID) })
		for _, t := range found {
			out.Tokens = append(out.Tokens, shownEngineToken(t, ""))
		}
		return &struct{ Body engineTokenList }{out}, nil
	})
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "issue-engine-token", Needs: wire.Does(policy.EngineToken), Method: http.MethodPost, Path: "/v1/engines/{engine_id}/tokens/issue",
		Tag:     "engines",
		Summary: "Make a token by which an engine is known", Status: http.StatusCreated, Repeat: wire.RepeatRecalled,
		Detail: "Bound to a capability token of its own, which says what the engine may do by it. It opens the operations of engines only. A " +
			"repeat is answered without the token.",
	}, func(ctx context.Context, c wire.Call) (made identity.EngineToken, err error) {
		made.Token, err = access.Past[engine.Token](ctx, s.Access, c, engine.TokenProjection, engine.TokenEntity)
		return made, err
	}, func(ctx context.Context, c wire.Call, in *struct {
		EnginePath
		Body *engineTokenRequest
	}) (identity.EngineToken, error) {
		scopes, until := identity.EngineScopes(), time.Time{}
		if in.Body != nil && in.Body.Scopes != nil {
			scopes = *in.Body.Scopes
		}
		if in.Body != nil {
			until = in.Body.ExpiresAt.UTC()
		}
		return s.identity.IssueEngineToken(ctx, c.Once(), c.Caller.Workspace, id.Principal(in.Engine), scopes, until)
	}, func(made identity.EngineToken) *struct{ Body EngineToken } {
		return &struct{ Body EngineToken }{shownEngineToken(made.Token, made.Secret)}
	})
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "revoke-engine-token", Needs: wire.Does(policy.EngineToken), Method: http.MethodPost,
		Path: "/v1/engines/{engine_id}/tokens/{engine_token_id}/revoke", Tag: "engines",
		Summary: "Revoke a token of an engine", Repeat: wire.RepeatRecalled, Detail: "At once, with the capability token to which it is bound.",
	}, access.Recalled[engine.Token](s.Access, engine.TokenProjection, engine.TokenEntity),
		func(ctx context.Context, c wire.Call, in *struct {
			EnginePath
			Token string `path:"engine_token_id" doc:"The token"`
			Body  *reasonBody
		}) (engine.Token, error) {
			e, t := id.Principal(in.Engine), id.EngineToken(in.Token)
			return s.identity.RevokeEngineToken(ctx, c.Once(), c.Caller.Workspace, e, t, in.Body.text())
		}, func(t engine.Token) *struct{ Body EngineToken } {
			return &struct{ Body EngineToken }{shownEngineToken(t, "")}
		})
}

func shownEngineToken(t engine.Token, secret string) EngineToken {
	return EngineToken{t.ID, t.Engine, t.Capability, t.ExpiresAt, t.CreatedAt, t.RevokedAt, t.Reason, secret}
}
