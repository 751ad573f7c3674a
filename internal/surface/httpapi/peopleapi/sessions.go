package peopleapi

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/identity"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// The schemas for unauthenticated callers require no fields. Only a caller with the right token learns which fields are missing, and a
// login without a passphrase is a failed one.
type bootstrapRequest struct {
	Workspace  string `json:"workspace_id,omitempty" doc:"ws_dev unless named"`
	Name       string `json:"display_name" required:"false" doc:"Needed: who the owner is"`
	Passphrase string `json:"passphrase" required:"false" doc:"Needed: 12 to 1024 bytes"`
}

type bootstrapAnswer struct {
	Workspace id.Workspace `json:"workspace_id"`
	Principal id.Principal `json:"principal_id"`
}

type loginRequest struct {
	Workspace  string `json:"workspace_id,omitempty" doc:"ws_dev unless named"`
	Principal  string `json:"principal_id,omitempty" maxLength:"64" doc:"Who logs in; the owner who was given a passphrase by bootstrap-owner unless named"`
	Passphrase string `json:"passphrase" required:"false" doc:"Needed; one that is left out is a wrong one"`
}

type passphraseRequest struct {
	Current    string `json:"current_passphrase,omitempty" doc:"The one that holds so far, where there is one"`
	Passphrase string `json:"passphrase" doc:"12 to 1024 bytes"`
}

type passphraseSet struct {
	OK        bool         `json:"ok"`
	Principal id.Principal `json:"principal_id" doc:"By which the caller logs in"`
}

type refreshRequest struct {
	Token string `json:"refresh_token" required:"false" doc:"Needed; one that is left out opens nothing"`
}

// sessionTokens are the tokens of a session. They are shown once.
type sessionTokens struct {
	Session      id.Session   `json:"session_id"`
	Principal    id.Principal `json:"principal_id"`
	Workspace    id.Workspace `json:"workspace_id"`
	Access       string       `json:"access_token" doc:"What to send as Authorization: Bearer"`
	AccessUntil  time.Time    `json:"access_expires_at"`
	Refresh      string       `json:"refresh_token" doc:"What to exchange for new tokens, once"`
	RefreshUntil time.Time    `json:"refresh_expires_at"`
}

type loggedOut struct {
	OK    bool `json:"ok"`
	Ended bool `json:"ended" doc:"Whether there was a session; a key has none"`
}

// Sessions are the operations for sessions of people.
type Sessions struct {
	access.Part
	identity *identity.Service
}

// NewSessions returns the operations for sessions of people.
func NewSessions(p access.Part, identity *identity.Service) *Sessions {
	return &Sessions{p, identity}
}

// Register adds the operations to the server.
func (s *Sessions) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "bootstrap-owner", Method: http.MethodPost, Path: "/v1/auth/bootstrap-owner", Tag: "auth",
		Summary: "Give the owner of a workspace a passphrase",
		Public:  true, Status: http.StatusCreated, Repeat: wire.RepeatRefused,
		Detail: "Once for each workspace, with the token that lies in bootstrap.key in the daemon's data directory. An owner is made where " +
			"there is none.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		Token string `header:"X-Bootstrap-Token" doc:"The daemon's bootstrap token"`
		Body  bootstrapRequest
	}) (*struct{ Body bootstrapAnswer }, error) {
		ws, err := workspaceOf(in.Body.Workspace)
		if err != nil {
			return nil, err
		}
		owner, err := s.identity.Bootstrap(ctx, in.Token, ws, in.Body.Name, in.Body.Passphrase)
		return &struct{ Body bootstrapAnswer }{bootstrapAnswer{ws, owner}}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "login", Method: http.MethodPost, Path: "/v1/auth/login", Tag: "auth", Summary: "Open a session", Public: true,
		Repeat: wire.RepeatRefused,
		Detail: "After five wrong passphrases in a row the person does not log in for five minutes, and the log says so. There are no cookies: " +
			"a page of another origin has nothing to send.",
	}, func(ctx context.Context, c wire.Call, in *struct{ Body loginRequest }) (*struct{ Body sessionTokens }, error) {
		ws, err := workspaceOf(in.Body.Workspace)
		if err != nil {
			return nil, err
		}
		opened, err := s.identity.Login(ctx, ws, id.Principal(in.Body.Principal), in.Body.Passphrase)
		return &struct{ Body sessionTokens }{shownSession(opened)}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "refresh", Method: http.MethodPost, Path: "/v1/auth/refresh", Tag: "auth", Summary: "Exchange a refresh token for new tokens",
		Public: true, Repeat: wire.RepeatRefused,
		Detail: "Both tokens are new; the ones before open nothing. A refresh token that is used twice ends its session.",
	}, func(ctx context.Context, c wire.Call, in *struct{ Body refreshRequest }) (*struct{ Body sessionTokens }, error) {
		opened, err := s.identity.Refresh(ctx, in.Body.Token)
		return &struct{ Body sessionTokens }{shownSession(opened)}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "set-passphrase", Needs: wire.Does(policy.PassphraseSet), Method: http.MethodPost, Path: "/v1/auth/passphrase", Tag: "auth",
		Summary: "Set the caller's own passphrase", Repeat: wire.RepeatRefused,
		Detail: "By which the caller, a person, logs in from then on. Whoever has one sends it along. Nobody sets one under a capability " +
			"token. An Idempotency-Key is refused, for the log would keep a hash of the passphrase with it.",
	}, func(ctx context.Context, c wire.Call, in *struct{ Body passphraseRequest }) (*struct{ Body passphraseSet }, error) {
		err := s.identity.SetPassphrase(ctx, c.Origin(), c.Caller.Workspace, in.Body.Current, in.Body.Passphrase)
		return &struct{ Body passphraseSet }{passphraseSet{OK: err == nil, Principal: c.Caller.Principal}}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "logout", Needs: wire.Own(), Method: http.MethodPost, Path: "/v1/auth/logout", Tag: "auth", Summary: "End the caller's session",
		Repeat: wire.RepeatHarmless,
	}, func(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body loggedOut }, error) {
		if c.Caller.Session == "" {
			return &struct{ Body loggedOut }{loggedOut{OK: true}}, nil
		}
		err := s.identity.Logout(ctx, c.Caller.Workspace, c.Caller.Session)
		return &struct{ Body loggedOut }{loggedOut{OK: true, Ended: true}}, err
	})
}

// workspaceOf reads the workspace of somebody who is not known yet.
func workspaceOf(text string) (id.Workspace, error) {
	if text == "" {
		return id.DefaultWorkspace, nil
	}
	ws, err := id.ParseWorkspace(text)
	if err != nil {
		err = fault.Wrap(err, fault.Invalid, "invalid_workspace", "a workspace is ws_ and 1 to 60 of a-z, 0-9, - and _")
	}
	return ws, err
}

func shownSession(o identity.Opened) sessionTokens {
	return sessionTokens{o.ID, o.Principal, o.Workspace, o.AccessToken, o.AccessUntil, o.RefreshToken, o.RefreshUntil}
}
