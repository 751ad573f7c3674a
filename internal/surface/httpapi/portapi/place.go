package portapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"agentbox/internal/domain/principal"
	"agentbox/internal/service/ports"
)

// The kinds of addresses of a port.
const (
	byKey  = iota // below the operation request-port, with a key
	byPath        // below a path with a secret
	byHost        // at a host of its own
)

// place is the address at which a request came.
type place struct {
	kind   int
	prefix string // of the path; "" at a host of its own
	host   string // of its own
}

// hop are the headers of one connection, which no proxy passes on.
var hop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade"}

// ours are the headers of a request that concern the daemon alone, or that only a proxy may set.
var ours = []string{"Expect", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port",
	"X-Forwarded-Prefix", "X-Real-Ip", "X-Capability-Token", "X-Workspace-Id", "X-Access-Token", "X-Api-Key", "X-Engine-Id", "X-Engine-Token",
	"Traceparent", "Tracestate", tokenHeader, e2bHeader, "E2b-Sandbox-Id", "E2b-Sandbox-Port"}

// theirs are the headers of an answer that reach beyond its page: to other pages of the browser, or to other hosts.
var theirs = []string{"Clear-Site-Data", "Strict-Transport-Security", "Public-Key-Pins", "Alt-Svc", "Nel", "Report-To",
	"Reporting-Endpoints", "Service-Worker-Allowed", "Traceparent", "Traceresponse"}

// sandbox lets a page below a path of the daemon run as a page, but without an origin.
const sandbox = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"

// inside lets a page load from its own host alone.
const inside = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; form-action 'self'; base-uri 'self'"

// upgrade returns the protocol to which a request asks to change, "" for none. Only a WebSocket is one.
func (at place) upgrade(r *http.Request) string {
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") ||
		!token(r.Header.Values("Connection"), "upgrade") {
		return ""
	}
	return "websocket"
}

// token reports whether a list of a header has a word.
func token(values []string, word string) bool {
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(one), word) {
				return true
			}
		}
	}
	return false
}

// clean removes the headers of the connection.
func clean(h http.Header) {
	for _, v := range h.Values("Connection") {
		for one := range strings.SplitSeq(v, ",") {
			h.Del(strings.TrimSpace(one))
		}
	}
	for _, name := range hop {
		h.Del(name)
	}
}

// request is the request that the program on the port gets.
func (at place) request(r *http.Request, port int, upgrade string) *http.Request {
	h := r.Header.Clone()
	clean(h)
	for _, name := range ours {
		h.Del(name)
	}
	if at.kind != byHost {
		h.Del("Cookie")
	} else {
		keepCookies(h)
	}
	if at.kind == byKey || secret(h.Get("Authorization")) || len(h.Values("Authorization")) > 1 {
		h.Del("Authorization")
	}
	local := "localhost:" + itoa(port)
	// A program compares where a request comes from with its own name.
	if u, err := url.Parse(h.Get("Origin")); err == nil && at.kind == byHost && strings.EqualFold(u.Host, at.host) {
		h.Set("Origin", "http://"+local)
	}
	if u, err := url.Parse(h.Get("Referer")); err == nil && at.kind == byHost && strings.EqualFold(u.Host, at.host) {
		u.Host = local
		withoutSecret(u)
		h.Set("Referer", u.String())
	} else {
		h.Del("Referer") // it may hold the secret of the address
	}
	h.Set("X-Forwarded-Proto", "http")
	if at.kind == byHost {
		h.Set("X-Forwarded-Host", at.host)
	} else {
		h.Set("X-Forwarded-Prefix", at.shown())
	}
	h.Set("Connection", "close")
	if upgrade != "" {
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", upgrade)
	}
	if _, ok := h["User-Agent"]; !ok {
		h.Set("User-Agent", "") // none, not that of the library
	}
	to := &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
	if at.host != "" {
		withoutSecret(to)
	}
	to.Scheme, to.Host = "http", local
	return (&http.Request{Method: r.Method, URL: to, Host: local, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).
		WithContext(r.Context())
}

// withoutSecret takes the secret of an address out of a query, and leaves the rest of it as it is.
func withoutSecret(u *url.URL) {
	parts := strings.Split(u.RawQuery, "&")
	kept := slices.DeleteFunc(slices.Clone(parts), func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		return err == nil && name == parameter
	})
	if len(kept) < len(parts) {
		u.RawQuery = strings.Join(kept, "&")
	}
}

// shown is the prefix without the secret, which the program does not need.
func (at place) shown() string {
	if at.kind == byPath {
		return strings.TrimSuffix(pathPrefix, "/")
	}
	return at.prefix
}

// secret reports whether a header of authorization holds a secret of Agentbox.
func secret(value string) bool {
	_, bearer, _ := strings.Cut(value, " ")
	bearer = strings.TrimSpace(bearer)
	for _, f := range []principal.Form{principal.KeyForm, principal.TokenForm, principal.AccessForm, principal.RefreshForm,
		principal.EngineForm} {
		if f.Is(bearer) || f.Is(value) {
			return true
		}
	}
	return false
}

// keepCookies leaves the cookies of the program, without that of the address.
func keepCookies(h http.Header) {
	r := http.Request{Header: h}
	all := r.Cookies()
	h.Del("Cookie")
	for _, c := range all {
		if c.Name != parameter {
			r.AddCookie(c)
		}
	}
}

// answer writes the headers of an answer, cleaned. Those of the daemon stay.
func (at place) answer(to, from http.Header, x *ports.Exposure) {
	h := from.Clone()
	clean(h)
	h.Del("Content-Security-Policy-Report-Only")
	for _, name := range theirs {
		h.Del(name)
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Agentbox-") || at.kind == byKey && strings.HasPrefix(name, "Access-Control-") {
			h.Del(name)
		}
	}
	at.cookies(h)
	if l := h.Get("Location"); l != "" {
		h.Set("Location", at.location(l, x.Port))
	}
	policies := h.Values("Content-Security-Policy")
	h.Del("Content-Security-Policy")
	switch at.kind {
	case byKey:
		// The daemon's own policy lets a page do nothing.
		for _, name := range []string{"X-Content-Type-Options", "Referrer-Policy", "X-Request-Id", "X-Correlation-Id", "X-Workspace-Id"} {
			h.Del(name)
		}
	case byPath:
		to.Set("Content-Security-Policy", sandbox)
		to.Set("Referrer-Policy", "no-referrer")
		h.Del("Referrer-Policy")
		if x.External() {
			break
		}
		to.Add("Content-Security-Policy", inside)
	case byHost:
		to.Del("Content-Security-Policy")
		to.Add("Content-Security-Policy", "frame-ancestors 'self'")
		if !x.External() {
			to.Add("Content-Security-Policy", inside)
		}
	}
	if at.kind != byKey {
		for _, p := range policies { // each one only takes away
			to.Add("Content-Security-Policy", p)
		}
	}
	to.Del("Cache-Control")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	for name, values := range h {
		if name == "Content-Security-Policy" {
			continue
		}
		to[name] = slices.Clone(values)
	}
}

// cookies keeps the cookies that the program sets for its own host, and no others.
func (at place) cookies(h http.Header) {
	set := h.Values("Set-Cookie")
	h.Del("Set-Cookie")
	if at.kind != byHost {
		return
	}
	for _, line := range set {
		c, err := http.ParseSetCookie(line)
		if err != nil || c.Name == parameter {
			continue
		}
		c.Domain = "" // of this host alone
		c.Secure = false
		if c.SameSite == http.SameSiteNoneMode {
			c.SameSite = http.SameSiteLaxMode
		}
		if text := c.String(); text != "" {
			h.Add("Set-Cookie", text)
		}
	}
}

// location turns an address of the program's own host into one at which its client reaches it.
func (at place) location(l string, port int) string {
	u, err := url.Parse(l)
	if err != nil {
		return l
	}
	own := u.Host == "" && strings.HasPrefix(u.Path, "/")
	if name := u.Hostname(); u.Port() == itoa(port) && (name == "localhost" || name == "127.0.0.1" || name == "::1" || name == "0.0.0.0") {
		own = true
	}
	if !own {
		return l
	}
	u.Scheme, u.Host, u.User = "", "", nil
	rest := "/" + strings.TrimLeft(u.String(), "/")
	return at.prefix + rest
}

// upgraded writes the headers of an answer that changes the protocol.
func (at place) upgraded(to, from http.Header) {
	for _, name := range []string{"Sec-Websocket-Accept", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions"} {
		if v := from.Get(name); v != "" {
			to.Set(name, v)
		}
	}
	to.Set("Upgrade", "websocket")
	to.Set("Connection", "Upgrade")
}
