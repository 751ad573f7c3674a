// Package mcpclient talks with servers of the Model Context Protocol, through the protocol's official SDK.
package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/web"
)

// Dial connects to a host and port. It checks every address of the host, and dials no other; one that is not public only where private is
// true.
type Dial func(ctx context.Context, endpoint string, private bool) (net.Conn, error)

// Client begins sessions. Make it with New; any goroutine may use it.
type Client struct {
	sdk  *sdk.Client
	dial Dial
}

var _ mcp.Dialer = (*Client)(nil)

// revision is the revision of the protocol that the client asks for. In the next one the SDK answers the list of tools from what it had
// before, for as long as the server says, so that a tool that changes would be called.
const revision = "2025-11-25"

// The parts of the time of a request over HTTP.
const (
	openTime  = 60 * time.Second // from the first byte to the end of the handshake; a program may have to load itself first
	tlsTime   = 10 * time.Second
	replyTime = 30 * time.Second  // of what is sent without a limit of its own: an answer to a question of the server
	byeTime   = time.Second       // of the request that tells the server that the session has ended
	maxHeader = 64 << 10          // bytes of the head of an answer
	maxPages  = 64                // of a list of tools
	maxPiped  = 2 * mcp.MaxAnswer // bytes that a process may send from one request to the next: the answer, and what it says besides
)

// New returns a client of this version of the program.
func New(version string, dial Dial) *Client {
	return &Client{dial: dial, sdk: sdk.NewClient(&sdk.Implementation{Name: "agentbox", Title: "Agentbox", Version: version},
		&sdk.ClientOptions{
			Capabilities:   &sdk.ClientCapabilities{}, // else it offers roots
			MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
			Logger:         slog.New(slog.DiscardHandler), // a server decides about its words
		})}
}

// Open implements mcp.Dialer.
func (c *Client) Open(ctx context.Context, permit policy.Permit, to mcp.Target) (mcp.Session, error) {
	if err := redeemed(permit, to); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, openTime)
	defer stop()
	s := begun(to)
	var over sdk.Transport
	if to.Pipe == nil {
		streamed, err := c.http(s)
		if err != nil {
			return nil, err
		}
		over = streamed
	} else {
		s.piped = &piped{ReadWriteCloser: to.Pipe, patience: replyTime}
		s.piped.left.Store(maxPiped)
		over = &sdk.IOTransport{Reader: s.piped, Writer: s.piped, MaxLineLength: mcp.MaxAnswer}
	}
	var err error
	if s.inner, err = c.sdk.Connect(ctx, over, &sdk.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
		s.Close()
		return nil, s.failure(ctx, err)
	}
	return s, nil
}

// redeemed redeems the permits to reach a server, and the issuer of its tokens.
func redeemed(permit policy.Permit, to mcp.Target) error {
	a, err := permit.Redeem(to.Action())
	if err != nil {
		return err
	}
	if a.Subject != to.Server.Name || a.Target != to.Server.URL || (to.Pipe == nil) != (a.Target != "") {
		return policy.ErrPermitMismatch
	}
	if to.Issuer.URL != "" {
		return grants(to)
	}
	return nil
}

// grants redeems the permit to ask an issuer for tokens.
func grants(to mcp.Target) error {
	typ := policy.MCPConnect
	if to.Issuer.Private {
		typ = policy.MCPConnectPrivate
	}
	a, err := to.Granted.Redeem(typ)
	if err == nil && (a.Subject != to.Server.Name || a.Target != to.Issuer.URL) {
		err = policy.ErrPermitMismatch
	}
	return err
}

// http returns the transport of a server with an address, with the tokens that it wants.
func (c *Client) http(s *session) (*sdk.StreamableClientTransport, error) {
	over, err := c.transport(s)
	if err != nil || s.tokens == nil {
		return over, err
	}
	client := &http.Client{Transport: short{s, s.tokens}, CheckRedirect: stays}
	if s.target.Server.Login {
		over.OAuthHandler = &ticket{s, client}
		return over, nil
	}
	if s.target.Key == nil {
		return nil, mcp.Failed("cannot be asked without the secret of its client")
	}
	over.OAuthHandler, err = extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{ClientID: s.target.Server.ClientID, Issuer: s.target.Server.Issuer,
			ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: s.target.Key.Reveal()}},
		HTTPClient: client,
	})
	if err != nil {
		return nil, mcp.Failed("cannot be asked with this client id and secret")
	}
	return over, nil
}

// transport returns the transport of a server with an address. Nothing of it is shared with other sessions, or taken from the environment.
func (c *Client) transport(s *session) (*sdk.StreamableClientTransport, error) {
	at, endpoint, err := read(s.target.Server.URL)
	if err != nil {
		return nil, err
	}
	s.line = c.line(map[string]bool{at: s.target.Private})
	over := &sdk.StreamableClientTransport{
		Endpoint: endpoint, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: mcp.MaxAnswer,
		HTTPClient: &http.Client{Transport: s, CheckRedirect: stays},
	}
	hosts := map[string]bool{at: s.target.Private}
	if s.target.Issuer.URL != "" {
		issuer, _, err := read(s.target.Issuer.URL)
		if err != nil {
			return nil, err
		}
		hosts[issuer] = s.target.Issuer.Private
	}
	if s.target.Issuer.URL != "" || s.target.Server.Login {
		s.tokens = c.line(hosts)
	}
	return over, nil
}

// read returns the host and port of a clean address, and the address as it is sent: without a port that its scheme has anyway.
func read(clean string) (at, sent string, err error) {
	u, err := url.Parse(clean)
	if err != nil {
		return "", "", mcp.Failed("has an address that cannot be read")
	}
	at = u.Host
	if u.Port() == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		u.Host = u.Hostname()
	}
	return at, u.String(), nil
}

func stays(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// line returns a transport that dials these hosts and no others. Of each, the value says whether its address may be one that is not public.
func (c *Client) line(hosts map[string]bool) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, endpoint string) (net.Conn, error) {
			private, known := hosts[endpoint]
			if !known {
				return nil, errors.New("it is another host")
			}
			return c.dial(ctx, endpoint, private)
		},
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: tlsTime, MaxResponseHeaderBytes: maxHeader,
	}
}

// short is a transport of a session whose answers are bounded, and whose requests end with the session.
type short struct {
	of *session
	by *http.Transport
}

// RoundTrip implements http.RoundTripper. The SDK waits for every request before it closes a session, also for one that the server never
// answers. So a request without a limit of time gets one, and none goes on when the session ends.
func (s short) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancel(r.Context())
	unhook := func() bool { return true }
	if r.Method != http.MethodDelete { // it tells the server of the end
		unhook = context.AfterFunc(s.of.lasts, end)
	}
	timer := (*time.Timer)(nil)
	if _, limited := r.Context().Deadline(); r.Method == http.MethodDelete {
		timer = time.AfterFunc(byeTime, end)
	} else if !limited {
		timer = time.AfterFunc(replyTime, end)
	}
	done := func() {
		unhook()
		if timer != nil {
			timer.Stop()
		}
		end()
	}
	answer, err := s.by.RoundTrip(r.WithContext(ctx))
	if err != nil {
		done()
		return nil, err
	}
	answer.Body = &bounded{answer.Body, mcp.MaxAnswer, done}
	return answer, nil
}

// RoundTrip implements http.RoundTripper for the requests of the session: each has the key, or the token for which it was exchanged.
func (s *session) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	switch {
	case s.tokens != nil: // the SDK has set it
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			s.token.Store(&token)
		}
	case s.target.Key != nil:
		r.Header.Set("Authorization", "Bearer "+s.target.Key.Reveal())
	default:
		r.Header.Del("Authorization")
	}
	return short{s, s.line}.RoundTrip(r)
}

// bounded is a body of which so many bytes may be read. Without it the SDK reads an answer of any size.
type bounded struct {
	io.ReadCloser
	left   int64
	closed func()
}

// Close implements io.Closer.
func (b *bounded) Close() error {
	err := b.ReadCloser.Close()
	b.closed()
	return err
}

var errLong = errors.New("the answer is too long")

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errLong
	}
	return n, err
}

// piped is the pipe to a process. So many bytes may come from one request to the next: the SDK keeps every message that nobody has asked
// for, however many they are. And a message is read within its patience: the SDK waits for that without a limit, also where a call has one.
type piped struct {
	io.ReadWriteCloser
	left     atomic.Int64
	patience time.Duration
}

// Read implements io.Reader.
func (p *piped) Read(b []byte) (int, error) {
	n, err := p.ReadWriteCloser.Read(b)
	if p.left.Add(int64(-n)) < 0 {
		_ = p.Close() // no answer to a question of the process is written any more
		return 0, errLong
	}
	return n, err
}

// Write implements io.Writer.
func (p *piped) Write(b []byte) (int, error) {
	late := time.AfterFunc(p.patience, func() { _ = p.Close() })
	defer late.Stop()
	return p.ReadWriteCloser.Write(b)
}

// session is a session with one server.
type session struct {
	target mcp.Target
	inner  *sdk.ClientSession
	line   *http.Transport // nil for a server with a command
	tokens *http.Transport // to the issuer of tokens; nil where there is none
	piped  *piped          // nil for a server with an address
	token  atomic.Pointer[string]
	lasts  context.Context // until the session ends
	end    context.CancelFunc
}

// begun returns a session that has no connection yet.
func begun(to mcp.Target) *session {
	lasts, end := context.WithCancel(context.Background())
	return &session{target: to, lasts: lasts, end: end}
}

// asks begins a request of this side, after which a process may answer.
func (s *session) asks() {
	if s.piped != nil {
		s.piped.left.Store(maxPiped)
	}
}

// Close implements mcp.Session.
func (s *session) Close() {
	s.end()
	if s.target.Pipe != nil {
		_ = s.target.Pipe.Close() // it ends the process, so that nothing waits for it
	}
	if s.inner != nil {
		_ = s.inner.Close() // the server learns of it, if it still can
	}
	for _, line := range []*http.Transport{s.line, s.tokens} {
		if line != nil {
			line.CloseIdleConnections()
		}
	}
}

// Tools implements mcp.Session.
func (s *session) Tools(ctx context.Context) ([]mcp.Tool, error) {
	ctx, stop := context.WithTimeout(ctx, mcp.ListTime)
	defer stop()
	var out []mcp.Tool
	params := &sdk.ListToolsParams{}
	for range maxPages {
		s.asks()
		page, err := s.inner.ListTools(ctx, params)
		if err != nil {
			return nil, s.failure(ctx, err)
		}
		for _, t := range page.Tools {
			one, err := s.described(t)
			if err != nil {
				return nil, err
			}
			if out = append(out, one); len(out) > 10*mcp.MaxTools {
				return nil, mcp.Failed("offers too many tools")
			}
		}
		if page.NextCursor == "" {
			return out, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, mcp.Failed("offers its tools on too many pages")
}

// described returns a tool without the session's key, which a server could put where it is recorded.
func (s *session) described(t *sdk.Tool) (mcp.Tool, error) {
	one := mcp.Tool{Name: s.clean(t.Name), Title: s.clean(t.Title), Description: s.clean(t.Description)}
	for into, schema := range map[*json.RawMessage]any{&one.Input: t.InputSchema, &one.Output: t.OutputSchema} {
		if schema == nil {
			continue
		}
		raw, err := json.Marshal(schema)
		if err != nil {
			return one, mcp.Failed("offers a tool whose schema cannot be read")
		}
		*into = json.RawMessage(s.clean(string(raw)))
	}
	return one, nil
}

// Call implements mcp.Session.
func (s *session) Call(ctx context.Context, permit policy.Permit) (mcp.Answer, error) {
	a, err := permit.Redeem(policy.MCPCall)
	if err != nil {
		return mcp.Answer{}, err
	}
	server, tool, ok := mcp.Split(a.Tool)
	if !ok || server != s.target.Server.Name || a.Content != event.DigestOf(a.Request) || a.TimeoutMS <= 0 {
		return mcp.Answer{}, policy.ErrPermitMismatch
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(a.TimeoutMS)*time.Millisecond)
	defer stop()
	s.asks()
	answer, err := s.inner.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: a.Request})
	if message, said := answered(err); said && ctx.Err() == nil {
		return mcp.Answer{Failed: true, Text: "error: " + s.clean(message)}, nil
	}
	if err != nil {
		return mcp.Answer{}, s.failure(ctx, err)
	}
	out := mcp.Answer{Text: s.clean(text(answer.Content)), Failed: answer.IsError}
	if answer.StructuredContent != nil {
		raw, err := json.Marshal(answer.StructuredContent)
		if err != nil {
			return mcp.Answer{}, mcp.Failed("answered with a value that cannot be read")
		}
		out.Structured = json.RawMessage(s.clean(string(raw)))
	}
	return out, nil
}

// answered returns the words of an error that the server itself answered with. The SDK has errors of its own in the same form: the client
// is closing, the server is closing, and the transport did not take the request.
func answered(err error) (string, bool) {
	var said *jsonrpc.Error
	if !errors.As(err, &said) || said.Code <= -32003 && said.Code >= -32005 {
		return "", false
	}
	return said.Message, true
}

// clean takes the session's key, and the token for which it was exchanged, out of a text of the server, also where they stand in JSON.
func (s *session) clean(text string) string {
	if s.target.Key != nil {
		text = without(text, s.target.Key.Reveal(), "[key "+s.target.Server.Key+"]")
	}
	if token := s.token.Load(); token != nil {
		text = without(text, *token, "[token]")
	}
	return text
}

// without replaces a secret in a text: as it is, and as JSON writes it.
func without(text, secret, mark string) string {
	if secret == "" {
		return text
	}
	text = strings.ReplaceAll(text, secret, mark)
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	escaped, err := json.Marshal(secret)
	if err = errors.Join(err, enc.Encode(secret)); err != nil {
		return text
	}
	for _, form := range []string{string(escaped), strings.TrimSuffix(plain.String(), "\n")} {
		text = strings.ReplaceAll(text, form[1:len(form)-1], mark)
	}
	return text
}

// longestReason is the most bytes of a server's own words in an error.
const longestReason = 300

// failure is the error of a request that was not answered. It says nothing of addresses, which a model need not know.
func (s *session) failure(ctx context.Context, err error) error {
	var lookup *net.DNSError
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, web.ErrPrivate):
		return web.ErrPrivate
	case errors.Is(err, mcp.ErrLogin):
		return mcp.ErrLogin
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return mcp.Failed("did not answer in time")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errLong) || strings.Contains(err.Error(), errLong.Error()):
		return mcp.Failed("sent more than is read of one answer")
	case errors.As(err, &lookup):
		return mcp.Failed("has no address")
	case errors.As(err, &late) && late.Timeout():
		return mcp.Failed("did not answer in time")
	case strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "x509:"):
		return mcp.Failed("has no valid certificate")
	}
	var refused *net.OpError
	if errors.As(err, &refused) {
		return mcp.Failed("cannot be reached")
	}
	why := s.clean(err.Error())
	if len(why) > longestReason {
		why = strings.ToValidUTF8(why[:longestReason], "") + "..."
	}
	return mcp.Failed("ended, or broke the protocol: " + policy.Escape(why))
}
