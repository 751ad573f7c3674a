package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
)

// grant is the content of a mcp.Grant.
type grant struct {
	Server   string           `json:"server"` // for which it was given, as its address is clean
	Issuer   string           `json:"issuer,omitempty"`
	Client   string           `json:"client_id"`
	Secret   string           `json:"client_secret,omitempty"`
	Style    oauth2.AuthStyle `json:"auth_style"`
	TokenURL string           `json:"token_url"`
	Resource string           `json:"resource"`
	Scopes   []string         `json:"scopes,omitempty"`
	Wanted   []string         `json:"wanted,omitempty"` // scopes that the server wanted since; the next login asks for them
	Token    *oauth2.Token    `json:"token"`
}

// sealed returns a grant as it is kept.
func (g grant) sealed() (mcp.Grant, error) {
	raw, err := json.Marshal(g)
	if err == nil && len(raw) > mcp.MaxGrant {
		err = mcp.Failed("has an issuer whose tokens are too long")
	}
	return mcp.NewGrant(string(raw)), err
}

// opened reads a grant of a server; false for one of another server.
func opened(kept mcp.Grant, of mcp.Server) (g grant, ok bool) {
	if json.Unmarshal([]byte(kept.Reveal()), &g) != nil || g.Token == nil {
		return grant{}, false
	}
	return g, g.Server == of.URL && g.Issuer == of.Issuer
}

// Login implements mcp.Dialer.
func (c *Client) Login(ctx context.Context, permit policy.Permit, to mcp.Target, by mcp.Browser) (mcp.Grant, mcp.LoggedIn, error) {
	none := func(err error) (mcp.Grant, mcp.LoggedIn, error) { return mcp.Grant{}, mcp.LoggedIn{}, err }
	if err := redeemed(permit, to); err != nil {
		return none(err)
	}
	if to.Pipe != nil || !to.Server.Login {
		return none(policy.ErrPermitMismatch)
	}
	ctx, stop := context.WithTimeout(ctx, mcp.LoginTime)
	defer stop()
	s := begun(to)
	defer s.Close()
	transport, err := c.transport(s)
	if err != nil {
		return none(err)
	}
	f := &flow{session: s, by: by, guard: &guard{short: short{s, s.tokens}, target: to}}
	if err := to.Grant.Use(ctx, func(now mcp.Grant) (mcp.Grant, error) {
		f.before, _ = opened(now, to.Server)
		return now, nil
	}); err != nil && !errors.Is(err, mcp.ErrLogin) {
		return none(err)
	}
	if transport.OAuthHandler, err = f.handler(); err != nil {
		return none(mcp.Failed("cannot be logged in to with this client id, secret and redirect address"))
	}
	s.inner, err = c.sdk.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err == nil && f.given == nil { // it has not asked who is there
		_, err = s.Tools(ctx)
	}
	switch {
	case f.guard.wrong() != "":
		return none(mcp.WrongIssuer(to.Server, f.guard.wrong()))
	case err != nil:
		return none(f.failure(ctx, err))
	case f.given == nil:
		return none(mcp.Failed("wants no login: it answers without one"))
	}
	kept, err := f.given.sealed()
	return kept, mcp.LoggedIn{Name: to.Server.Name, Client: f.given.Client, Scopes: f.given.Scopes}, err
}

// flow is one login.
type flow struct {
	*session
	by     mcp.Browser
	guard  *guard
	before grant  // of the login before; zero where there was none
	given  *grant // nil until the issuer has given it
	hidden []string
}

// handler returns the handler of the SDK that does the flow.
func (f *flow) handler() (*auth.AuthorizationCodeHandler, error) {
	server := f.target.Server
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: f.by.Redirect, AuthorizationCodeFetcher: f.visit, ScopeFilter: f.scopes, RequestRefreshToken: true,
		Client: &http.Client{Transport: f.guard, CheckRedirect: stays}, NewTokenSource: f.take,
	}
	switch {
	case strings.HasPrefix(server.ClientID, "https://") && f.target.Key == nil:
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: server.ClientID}
	case server.ClientID != "":
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: server.ClientID, Issuer: server.Issuer}
		if f.target.Key != nil {
			config.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: f.target.Key.Reveal()}
		}
	default:
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{f.by.Redirect}, ClientName: "Agentbox", TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}}
	}
	return auth.NewAuthorizationCodeHandler(config)
}

// scopes adds those that the server has wanted since the login before.
func (f *flow) scopes(found []string) []string {
	for _, one := range slices.Concat(f.before.Scopes, f.before.Wanted) {
		if len(f.before.Wanted) > 0 && !slices.Contains(found, one) {
			found = append(slices.Clone(found), one)
		}
	}
	return found
}

// visit has the person log in.
func (f *flow) visit(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	if !visitable(args.URL, f.guard.private()) {
		return nil, mcp.Failed("has an issuer whose login is at no address of https, or at one that is too long or not in ASCII")
	}
	if f.given != nil {
		return nil, mcp.Failed("wants another login than the one that has just been made")
	}
	back, err := f.by.Visit(ctx, args.URL)
	if err != nil {
		return nil, err
	}
	f.hidden = append(f.hidden, back.Code, back.State)
	return &auth.AuthorizationResult{Code: back.Code, State: back.State, Iss: back.Issuer}, nil
}

// visitable reports whether a person may be sent to the address of a login. An issuer names it, and a browser would also open a file, run a
// script, or show one host for another. An issuer of the own network needs no https.
func visitable(address string, private bool) bool {
	at, err := url.Parse(address)
	return err == nil && len(address) <= mcp.MaxAddress && at.Host != "" && at.User == nil &&
		(at.Scheme == "https" || at.Scheme == "http" && private) &&
		!strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' })
}

// take keeps what the issuer has given.
func (f *flow) take(_ context.Context, config *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	f.hidden = append(f.hidden, token.AccessToken, token.RefreshToken)
	_, resource, err := read(f.target.Server.URL)
	f.given = &grant{Server: f.target.Server.URL, Issuer: f.target.Server.Issuer, Client: config.ClientID, Secret: config.ClientSecret,
		Style: config.Endpoint.AuthStyle, TokenURL: config.Endpoint.TokenURL, Resource: resource, Token: token,
		Scopes: slices.Sorted(slices.Values(config.Scopes))} // the SDK joins them in any order
	return oauth2.StaticTokenSource(token), err
}

// failure is why a login did not come to its end. It repeats nothing that an issuer says but the code of an error.
func (f *flow) failure(ctx context.Context, err error) error {
	if refused := refusal(err); refused != nil {
		return refused
	}
	text := err.Error()
	for _, secret := range f.hidden {
		if secret != "" && strings.Contains(text, secret) {
			return mcp.Failed("has an issuer that did not end the login")
		}
	}
	return f.session.failure(ctx, err)
}

// errorCode is an error code of OAuth.
var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// refusal returns the error for an issuer that gives no token, nil for every other error. The SDK's own text has the whole answer of the
// issuer.
func refusal(err error) error {
	var said *oauth2.RetrieveError
	if !errors.As(err, &said) {
		return nil
	}
	if errorCode.MatchString(said.ErrorCode) {
		return mcp.Failed("has an issuer that gives no token: " + said.ErrorCode)
	}
	return mcp.Failed("has an issuer that gives no token")
}

// guard is the transport of a login. The SDK learns from the server which issuer to ask. The guard refuses every issuer but the one that a
// person has named, or one at the host of the server where nobody has named one.
type guard struct {
	short
	target mcp.Target

	mu    sync.Mutex // guards below
	other string     // the issuer that was refused
}

// wrong returns the issuer that was refused; "" for none.
func (g *guard) wrong() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.other
}

// private reports whether the issuer is one of the own network, whose pages need no https.
func (g *guard) private() bool {
	if g.target.Issuer.URL != "" {
		return g.target.Issuer.Private
	}
	return g.target.Private
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.wrong() != "" {
		return nil, errIssuer
	}
	server, err := url.Parse(g.target.Server.URL)
	if err != nil {
		return nil, errIssuer
	}
	named := server
	if g.target.Server.Issuer != "" {
		if named, err = url.Parse(g.target.Server.Issuer); err != nil {
			return nil, errIssuer
		}
	}
	about, isIssuer := issuerOf(r.URL)
	switch {
	case isIssuer && (!same(about, named) || g.target.Server.Issuer != "" && trimmed(about) != trimmed(named)):
		g.mu.Lock()
		g.other = about.String()
		g.mu.Unlock()
		return nil, errIssuer
	case same(r.URL, named), !isIssuer && r.Method == http.MethodGet && same(r.URL, server): // what the server says of itself
		return g.short.RoundTrip(r)
	}
	return nil, errIssuer
}

var errIssuer = errors.New("it is another issuer")

func trimmed(issuer *url.URL) string { return strings.TrimRight(issuer.EscapedPath(), "/") }

// same reports whether two addresses are of one scheme, host and port.
func same(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		if p := u.Port(); p != "" {
			return p
		}
		return map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// issuerOf returns the issuer about which an address tells (RFC 8414, OpenID Connect Discovery); false for another address.
func issuerOf(u *url.URL) (*url.URL, bool) {
	issuer := *u
	issuer.RawQuery, issuer.RawPath = "", ""
	for _, known := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		if rest, ok := strings.CutPrefix(u.Path, known); ok {
			issuer.Path = rest
			return &issuer, true
		}
		if rest, ok := strings.CutSuffix(u.Path, known); ok {
			issuer.Path = rest
			return &issuer, true
		}
	}
	return nil, false
}

// ticket has the token of a login for the requests of a session, and has it renewed.
type ticket struct {
	session *session
	client  *http.Client
}

var _ auth.OAuthHandler = (*ticket)(nil)

// TokenSource implements auth.OAuthHandler.
func (t *ticket) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	token, err := t.token(ctx, "")
	return oauth2.StaticTokenSource(token), err
}

// Authorize implements auth.OAuthHandler: the server has refused the token of a request. A token that it does not take any more is renewed.
func (t *ticket) Authorize(ctx context.Context, r *http.Request, refused *http.Response) error {
	_ = refused.Body.Close()
	challenges, err := oauthex.ParseWWWAuthenticate(refused.Header.Values("WWW-Authenticate"))
	if err != nil {
		return mcp.ErrLogin
	}
	if refused.StatusCode == http.StatusForbidden {
		for _, c := range challenges {
			if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
				return t.wants(ctx, strings.Fields(c.Params["scope"]))
			}
		}
		return nil // it is sent once more, and the answer to that counts
	}
	used, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	_, err = t.token(ctx, used)
	return err
}

// maxScopes is how many scopes the next login asks for because the server has wanted them.
const maxScopes = 50

// wants keeps the scopes that a server wants, for the next login.
func (t *ticket) wants(ctx context.Context, scopes []string) error {
	err := t.session.target.Grant.Use(ctx, func(now mcp.Grant) (mcp.Grant, error) {
		g, ok := opened(now, t.session.target.Server)
		if !ok {
			return now, mcp.ErrLogin
		}
		for _, one := range scopes {
			if !slices.Contains(g.Wanted, one) && len(g.Wanted) < maxScopes && len(one) <= mcp.MaxClientID {
				g.Wanted = append(g.Wanted, one)
			}
		}
		return g.sealed()
	})
	return errors.Join(mcp.ErrLogin, err)
}

// token returns a token that the server takes, renewed where its time is over or where it is the refused one.
func (t *ticket) token(ctx context.Context, refused string) (token *oauth2.Token, err error) {
	s := t.session
	ctx, stop := context.WithTimeout(ctx, openTime)
	defer stop()
	defer context.AfterFunc(s.lasts, stop)()
	err = s.target.Grant.Use(ctx, func(now mcp.Grant) (mcp.Grant, error) {
		g, ok := opened(now, s.target.Server)
		if !ok {
			return now, mcp.ErrLogin
		}
		if token = g.Token; token.Valid() && token.AccessToken != refused {
			return now, nil
		}
		if g.Token.RefreshToken == "" {
			return now, mcp.ErrLogin
		}
		if token, err = t.renewed(ctx, g); err != nil {
			return now, err
		}
		g.Token = token
		return g.sealed()
	})
	if err == nil {
		s.token.Store(&token.AccessToken)
	}
	return token, err
}

// renewed asks the issuer for another token in exchange for the refresh token. The library sends no resource (RFC 8707) when it renews a
// token, so this is an exchange with the parameters of a renewal.
func (t *ticket) renewed(ctx context.Context, g grant) (*oauth2.Token, error) {
	at, err := url.Parse(g.TokenURL)
	issuer := t.session.target.Server.Issuer
	if issuer == "" {
		issuer = t.session.target.Server.URL
	}
	named, err2 := url.Parse(issuer)
	if err != nil || err2 != nil || !same(at, named) {
		return nil, mcp.ErrLogin
	}
	config := &oauth2.Config{ClientID: g.Client, ClientSecret: g.Secret, Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.Style}}
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, t.client), "",
		oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", g.Token.RefreshToken),
		oauth2.SetAuthURLParam("resource", g.Resource))
	var said *oauth2.RetrieveError
	switch {
	case errors.As(err, &said) && said.ErrorCode == "invalid_grant":
		return nil, mcp.ErrLogin
	case err != nil:
		if refused := refusal(err); refused != nil {
			return nil, refused
		}
		return nil, err
	case token.RefreshToken == "":
		token.RefreshToken = g.Token.RefreshToken
	}
	return token, nil
}
