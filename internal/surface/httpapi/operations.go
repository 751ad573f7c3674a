package httpapi

import (
	"agentbox/internal/domain/id"
	"context"
)

const apiVersion = "1.0"

var tags = []string{"service", "auth"}

type Services struct{ Gate Authenticator }

// Caller is who a key belongs to.
type Caller struct {
	Principal id.Principal
	Workspace id.Workspace
	Role      string
}

type Authenticator interface {
	Authenticate(ctx context.Context, bearer string) (Caller, error)
}

func (s *Server) register() {
	type session struct {
		Body struct {
			Principal id.Principal `json:"principal_id"`
			Workspace id.Workspace `json:"workspace_id"`
			Role      string       `json:"role"`
		}
	}
	handle(s, operation{id: "get-session", method: "GET", path: "/v1/auth/session", tag: "auth", summary: "Who am I"},
		func(ctx context.Context, c call, in *struct{}) (*session, error) {
			var out session
			out.Body.Principal, out.Body.Workspace, out.Body.Role = c.caller.Principal, c.caller.Workspace, c.caller.Role
			return &out, nil
		})
	s.registerDocs()
}
