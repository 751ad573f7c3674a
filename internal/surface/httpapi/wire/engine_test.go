package wire

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
)

// TestAnEngineIsKnownByABodyOfAnyAllowedLength names an engine behind as much as its operation takes, and behind one byte more.
func TestAnEngineIsKnownByABodyOfAnyAllowedLength(t *testing.T) {
	const most = 300 << 10
	w := newWire(t, func(c *Config) {
		c.AuthenticateEngine = func(_ context.Context, e id.Principal, token string) (principal.Caller, error) {
			if e != "svc_mill" || token != "engtok_mill" {
				return principal.Caller{}, engine.ErrInvalid
			}
			return principal.Caller{Principal: e, Workspace: id.DefaultWorkspace, Engine: true}, nil
		}
	})
	Handle(w.s, Operation{ID: "report", Method: "POST", Path: "/v1/test/reports", Tag: "test", MaxBody: most, Engines: true,
		Repeat: RepeatHarmless},
		func(_ context.Context, c Call, in *struct {
			Body struct {
				Text string `json:"text"`
			}
		}) (*struct{ Body thing }, error) {
			return &struct{ Body thing }{thing{Name: string(c.Caller.Principal), Count: len(in.Body.Text)}}, nil
		})
	body := func(length int, token string) string {
		empty := fmt.Sprintf(`{"text":"","engine_id":"svc_mill","engine_token":%q}`, token)
		return strings.Replace(empty, `""`, `"`+strings.Repeat("x", length-len(empty))+`"`, 1)
	}
	for _, c := range []struct {
		length int
		token  string
		want   int
	}{
		{100, "engtok_mill", http.StatusOK}, {64 << 10, "engtok_mill", http.StatusOK}, {64<<10 + 1, "engtok_mill", http.StatusOK},
		{most, "engtok_mill", http.StatusOK}, {most + 1, "engtok_mill", http.StatusRequestEntityTooLarge}, {most, "engtok_else",
			http.StatusUnauthorized},
	} {
		resp, got := w.ask("POST", "/v1/test/reports", body(c.length, c.token), "Authorization: ")
		if resp.StatusCode != c.want || c.want == http.StatusOK && !strings.Contains(got, `"svc_mill"`) {
			t.Errorf("%d bytes by %s: got %d %.200s, want %d", c.length, c.token, resp.StatusCode, got, c.want)
		}
	}
	if held := w.s.bodies.held.Load(); held != 0 {
		t.Errorf("%d bytes are held when all is answered", held)
	}
	if err := w.s.bodies.reserve(&Call{route: &route{maxBody: maxBodies}}, maxBodies); err != nil {
		t.Fatal(err)
	}
	if resp, got := w.ask("POST", "/v1/test/reports", body(most, "engtok_mill"),
		"Authorization: "); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("while there is no room for a body: got %d %s", resp.StatusCode, got)
	}
}
