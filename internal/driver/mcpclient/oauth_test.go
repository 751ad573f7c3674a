package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
)

// The secret of a client, and the token that it is exchanged for.
const (
	clientSecret = "secret-0123456789"
	accessToken  = "token-0123456789"
)

// issuer is a server that exchanges the secret for the token.
func issuer(t *testing.T) (s *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%[2]s/authorize","token_endpoint":"%[2]s/token",`+
				`"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],`+
				`"token_endpoint_auth_methods_supported":["client_secret_post"]}`, s.URL, s.URL)
		case "/token":
			if r.FormValue("grant_type") != "client_credentials" || r.FormValue("client_id") != "c1" ||
				r.FormValue("client_secret") != clientSecret {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, accessToken)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s, asked
}

// guarded is a server of the SDK that takes only the token, and says that an issuer has it.
func guarded(t *testing.T, at func() string) mcp.Target {
	t.Helper()
	server := shop(t)
	server.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context,
		r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Extra.Header.Get("Authorization")}}}, nil
	})
	to := outside(t, server, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			own := "http://" + r.Host
			if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"resource":"%s/","authorization_servers":[%q]}`, own, at())
				return
			}
			if r.Header.Get("Authorization") != "Bearer "+accessToken {
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+own+`/.well-known/oauth-protected-resource"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	to.Key, to.Server.Key, to.Server.ClientID = model.NewSecret(clientSecret), "shop", "c1"
	return to
}

// TestTokensOfAnIssuer exchanges the secret for a token at the issuer that a person named, and at no other, whatever the server says.
func TestTokensOfAnIssuer(t *testing.T) {
	good, asked := issuer(t)
	thief, stolen := issuer(t)
	named := good.URL
	to := guarded(t, func() string { return named })
	to.Server.Issuer, to.Issuer = good.URL, mcp.Issuer{URL: good.URL + "/", Private: true}
	grant := policy.Action{Type: policy.MCPConnectPrivate, Subject: "shop", Target: to.Issuer.URL}
	try := func(granted policy.Permit) (mcp.Session, error) {
		to.Granted = granted
		return open(t, to)
	}
	public, other := grant, grant
	public.Type, other.Target = policy.MCPConnect, thief.URL+"/"
	for name, p := range map[string]policy.Permit{"none": {}, "public": permit(t, public), "another issuer": permit(t, other)} {
		if _, err := try(p); !errors.Is(err, policy.ErrNoPermit) && !errors.Is(err, policy.ErrPermitMismatch) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if asked.Load() != 0 {
		t.Error("the issuer was asked without a permit")
	}
	s, err := try(permit(t, grant))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Call(t.Context(), calling(t, "shop__echo", `{}`, time.Minute))
	if err != nil || got.Text != "Bearer [token]" {
		t.Errorf("got %+v, %v", got, err)
	}
	named = thief.URL
	if _, err := try(permit(t, grant)); !errors.Is(err, mcp.ErrFailed) || strings.Contains(err.Error(), clientSecret) || stolen.Load() != 0 {
		t.Errorf("another issuer: got %v, which was asked %d times", err, stolen.Load())
	}
	named, to.Key = good.URL, model.NewSecret("wrong-0123456789")
	if _, err := try(permit(t, grant)); !errors.Is(err, mcp.ErrFailed) || strings.Contains(err.Error(), "wrong-0123456789") {
		t.Errorf("a wrong secret: got %v", err)
	}
}
