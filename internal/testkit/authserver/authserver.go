// Package authserver is an authorization server of OAuth and an MCP server that takes its tokens, for tests.
//
// It checks what the protocol wants of a client: PKCE with S256, the resource in each request, exact redirect addresses, codes that count
// once, and refresh tokens that count once. A refresh token that comes again ends its login, as thieves are found.
package authserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Issuer is an authorization server.
type Issuer struct {
	*httptest.Server

	Refuses  atomic.Bool  // logins, with access_denied
	Lasts    atomic.Int64 // seconds of an access token
	Resource string       // of which tokens are wanted
	Renewals atomic.Int64 // that were granted
	Stolen   atomic.Int64 // refresh tokens that came twice

	mu      sync.Mutex            // guards all below
	clients map[string][]string   // redirect addresses, by the id of the client
	codes   map[string]url.Values // the request of a code that has not been exchanged
	access  map[string]*family
	refresh map[string]*family
	used    map[string]*family // refresh tokens that were exchanged
	secrets []string           // everything that nobody may be shown
}

// family is what one login gave.
type family struct {
	client, scope string
	ended         bool
}

// NewIssuer starts an authorization server.
func NewIssuer() *Issuer {
	i := &Issuer{clients: map[string][]string{}, codes: map[string]url.Values{}, access: map[string]*family{}, refresh: map[string]*family{},
		used: map[string]*family{}}
	i.Lasts.Store(3600)
	i.Server = httptest.NewServer(i)
	return i
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /.well-known/oauth-authorization-server":
		answer(w, http.StatusOK, map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"registration_endpoint": i.URL + "/register", "response_types_supported": []string{"code"},
			"grant_types_supported":            []string{"authorization_code", "refresh_token"},
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
			"authorization_response_iss_parameter_supported": true,
		})
	case "POST /register":
		i.register(w, r)
	case "GET /authorize":
		i.authorize(w, r)
	case "POST /token":
		i.token(w, r)
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code, why string) {
	answer(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": why})
}

// secret draws a secret. The caller holds the lock.
func (i *Issuer) secret(kind string) string {
	s := kind + "-" + rand.Text()
	i.secrets = append(i.secrets, s)
	return s
}

// Secrets returns every code and token that was given.
func (i *Issuer) Secrets() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.secrets)
}

func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil || len(m.Redirects) != 1 || m.Method != "none" {
		refuse(w, "invalid_client_metadata", "a public client with one redirect address")
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	id := "client-" + rand.Text()
	i.clients[id] = m.Redirects
	answer(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": m.Redirects, "token_endpoint_auth_method": "none"})
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !slices.Contains(i.clients[q.Get("client_id")], q.Get("redirect_uri")):
		http.Error(w, "an unknown client or redirect address", http.StatusBadRequest)
		return
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" ||
		q.Get("state") == "" || q.Get("resource") != i.Resource:
		http.Error(w, "not a code with PKCE for "+i.Resource, http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {i.URL}}
	if i.Refuses.Load() {
		back.Set("error", "access_denied")
	} else {
		code := i.secret("code")
		i.codes[code] = q
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.FormValue("resource") != i.Resource {
		refuse(w, "invalid_target", "tokens are for "+i.Resource)
		return
	}
	var f *family
	switch r.FormValue("grant_type") {
	case "authorization_code":
		q := i.codes[r.FormValue("code")]
		delete(i.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if q == nil || q.Get("client_id") != r.FormValue("client_id") || q.Get("redirect_uri") != r.FormValue("redirect_uri") ||
			q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse(w, "invalid_grant", "the code "+r.FormValue("code")+" is not yours")
			return
		}
		f = &family{client: q.Get("client_id"), scope: q.Get("scope")}
	case "refresh_token":
		given := r.FormValue("refresh_token")
		if old := i.used[given]; old != nil {
			i.Stolen.Add(1)
			old.ended = true
		}
		f = i.refresh[given]
		if f == nil || f.ended || f.client != r.FormValue("client_id") {
			refuse(w, "invalid_grant", "the token "+given+" is not good")
			return
		}
		delete(i.refresh, given)
		i.used[given] = f
		i.Renewals.Add(1)
	default:
		refuse(w, "unsupported_grant_type", "")
		return
	}
	access, refresh := i.secret("access"), i.secret("refresh")
	i.access[access], i.refresh[refresh] = f, f
	answer(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": i.Lasts.Load(),
		"refresh_token": refresh, "scope": f.scope})
}

// Forgets makes every access token that was given so far worthless.
func (i *Issuer) Forgets() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.access)
}

// Ends ends every login.
func (i *Issuer) Ends() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.access)
	clear(i.refresh)
}

// scope returns the scopes of an access token that is good.
func (i *Issuer) scope(token string) ([]string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.access[token]
	if f == nil || f.ended {
		return nil, false
	}
	return strings.Fields(f.scope), true
}

// Guarded is an MCP server that takes the tokens of an issuer. Its tool echo answers with the token that it was called with.
type Guarded struct {
	*httptest.Server
	Issuer *Issuer
	Names  atomic.Pointer[string] // the issuer that it names
	Calls  atomic.Int64           // of its tool
	Wants  atomic.Pointer[string] // a scope without which its tool is not called
}

// NewGuarded starts an MCP server and the issuer of its tokens.
func NewGuarded() *Guarded {
	g := &Guarded{Issuer: NewIssuer()}
	s := sdk.NewServer(&sdk.Implementation{Name: "guarded", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Tells the token.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			g.Calls.Add(1)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Extra.Header.Get("Authorization")}}}, nil
		})
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true})
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
			answer(w, http.StatusOK, map[string]any{"resource": g.URL + "/mcp", "authorization_servers": []string{*g.Names.Load()},
				"scopes_supported": []string{"tools"}})
			return
		}
		if r.URL.Path != "/mcp" && g.Issuer.URL == g.URL {
			g.Issuer.ServeHTTP(w, r)
			return
		}
		if r.URL.Path != "/mcp" {
			http.NotFound(w, r)
			return
		}
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		scopes, good := g.Issuer.scope(token)
		if !good {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if wants := g.Wants.Load(); wants != nil && !slices.Contains(scopes, *wants) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer error=%q, scope=%q", "insufficient_scope", *wants))
			w.WriteHeader(http.StatusForbidden)
			return
		}
		mcp.ServeHTTP(w, r)
	}))
	g.Issuer.Resource = g.URL + "/mcp"
	g.Names.Store(&g.Issuer.URL)
	return g
}

// Together has the MCP server be the issuer of its own tokens. Call it before the first request.
func (g *Guarded) Together() {
	g.Issuer.URL = g.URL
	g.Names.Store(&g.URL)
}

// Close stops both servers.
func (g *Guarded) Close() {
	g.Server.Close()
	g.Issuer.Close()
}

// Visit does what a person's browser does with an address, and returns the answer to which it is sent back.
func Visit(ctx context.Context, address string) (url.Values, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = got.Body.Close() }()
	to, err := got.Location()
	if err != nil {
		return nil, fmt.Errorf("the issuer answers %s without sending the browser anywhere: %w", got.Status, err)
	}
	return to.Query(), nil
}
