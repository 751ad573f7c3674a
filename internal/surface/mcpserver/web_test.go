package mcpserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
)

// shows adds a key to each request.
type shows struct{ key string }

func (s shows) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	if s.key != "" {
		in.Header.Set("Authorization", "Bearer "+s.key)
	}
	return http.DefaultTransport.RoundTrip(in)
}

// TestTheProtocolOverHTTP works in a space over /mcp, and lets nobody in without a key, or with another one than that of the session.
func TestTheProtocolOverHTTP(t *testing.T) {
	api, key := started(t)
	address := api.Address() + "/mcp"
	connect := func(key string) (*mcp.ClientSession, error) {
		client := mcp.NewClient(&mcp.Implementation{Name: "web-client", Version: "1"},
			&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
		return client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: shows{key}},
			MaxRetries: -1}, nil)
	}
	for name, wrong := range map[string]string{"no key": "", "another key": "agb_wrong"} {
		if _, err := connect(wrong); err == nil {
			t.Errorf("%s opens a session", name)
		}
	}
	s, err := connect(key)
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, "shell", map[string]any{"command": "echo hello > a; cat a"}); got.failed || !strings.Contains(got.text, "hello") {
		t.Errorf("got %+v", got)
	}
	got := call(t, s, "run_code", map[string]any{"language": "javascript", "code": "1 + 1"})
	if got.failed || !strings.Contains(got.text, "2") {
		t.Errorf("got %+v", got)
	}
	// The session belongs to the key that began it.
	other, err := api.AddPrincipal(t.Context(), id.User, "Mia", principal.Member)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := api.IssueKey(t.Context(), other.ID, "mia")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(key, session string, header ...string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(
			`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"list_spaces","arguments":{}}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Session-Id", session)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, got.Body)
		_ = got.Body.Close()
		return got.StatusCode
	}
	if s.ID() == "" {
		t.Fatal("the session has no id")
	}
	if got := ask(key, s.ID()); got != http.StatusOK {
		t.Errorf("its own key: %d", got)
	}
	if got := ask(issued.Secret, s.ID()); got != http.StatusForbidden {
		t.Errorf("the key of somebody else: %d", got)
	}
	if got := ask(key, "another"); got != http.StatusNotFound {
		t.Errorf("a session that is not there: %d", got)
	}
	if got := ask(key, s.ID(), "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); got != http.StatusForbidden {
		t.Errorf("a page of another site: %d", got)
	}
	if err := s.Close(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if got := ask(key, s.ID()); got != http.StatusNotFound {
		t.Errorf("after its end: %d", got)
	}
}
