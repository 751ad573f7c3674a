package portapi

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/ports"
	"agentbox/internal/surface/httpapi/wire"
)

// The names by which a preview is addressed.
const (
	domain      = ".localhost"       // which every browser takes for its own host, and no resolver for another
	pathPrefix  = "/preview/"        // of addresses below the daemon's own host
	parameter   = "agentbox_preview" // of the first address, and the name of the cookie that follows from it
	tokenHeader = "X-Preview-Token"  // of programs
	e2bHeader   = "E2b-Traffic-Access-Token"
	maxQuery    = 8 << 10
)

// hostName is the name of the host of a port: port, space in small letters.
func hostName(s id.Space, port int) string {
	return itoa(port) + "-" + strings.ToLower(strings.Replace(string(s), "_", "-", 1)) + domain
}

// portOf is the port of a host with its colon, "" for none.
func portOf(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return ""
	}
	return ":" + port
}

// named reports whether the host of a request is one of a preview, and which port of which space it names. A host below localhost that
// names none is a preview's too, so that it gets nowhere else.
func named(host string) (s id.Space, port int, ours bool) {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	label, ok := strings.CutSuffix(strings.ToLower(name), domain)
	if !ok {
		return "", 0, false
	}
	number, rest, _ := strings.Cut(label, "-")
	port, err = space.ReadPort(number)
	if number == "" || err != nil || len(rest) < 4 || rest[:3] != "spc" || rest[3] != '-' && rest[3] != '_' {
		return "", 0, true
	}
	s = id.Space("spc_" + strings.ToUpper(rest[4:]))
	if _, err := id.Parse[id.Space](string(s)); err != nil {
		return "", 0, true
	}
	return s, port, true
}

// Serve answers a request at an address of a preview, and returns false for any other.
func (s *Ports) Serve(w http.ResponseWriter, r *http.Request) bool {
	sp, port, ours := named(r.Host)
	below := strings.HasPrefix(r.URL.Path, pathPrefix)
	if !ours && (!below || !s.OwnHost(r.Host)) {
		return false
	}
	wire.Answer(s.Server, w, r, func(w http.ResponseWriter, r *http.Request) error {
		switch {
		case ours && sp == "":
			return fault.New(fault.NotFound, "preview_not_found", "the host names no port of a space, as in 8080-spc-01m7…"+domain)
		case ours:
			return s.atHost(w, r, sp, port)
		}
		return s.atPath(w, r)
	})
	return true
}

// atPath answers below a path of the daemon's own host. Its pages have no origin, so that they are nobody to the daemon.
func (s *Ports) atPath(w http.ResponseWriter, r *http.Request) error {
	secret, rest, whole := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), pathPrefix), "/")
	x, err := s.ports.Redeem(r.Context(), secret)
	if err != nil {
		return err
	}
	if !whole {
		w.Header().Set("Location", pathPrefix+secret+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	to, err := url.PathUnescape("/" + rest)
	if err != nil {
		return fault.New(fault.Invalid, "invalid_request", "the path cannot be read")
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = to, "/"+rest
	return s.relay(w, r, x, place{kind: byPath, prefix: pathPrefix + secret})
}

// outsideKey is the context key of the request at an address that is handed to the operation request-port.
type outsideKey struct{}

// atHost answers at the host of a port.
func (s *Ports) atHost(w http.ResponseWriter, r *http.Request, sp id.Space, port int) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return errNoOrigin
	}
	if token := r.Header.Get(e2bHeader); token != "" {
		bearer, ok := "", false
		if s.open != nil {
			bearer, ok = s.open(sp, token)
		}
		if !ok {
			return ports.ErrUnsigned
		}
		s.ServeHTTP(w, inner(r, bearer, sp, port))
		return nil
	}
	secret, sent, err := secretOf(r)
	if err != nil {
		return err
	}
	x, err := s.ports.Redeem(r.Context(), secret)
	if err != nil {
		return err
	}
	if x.Space != sp || x.Port != port {
		return ports.ErrUnsigned
	}
	if sent {
		// From now on the browser sends it as a cookie of this host alone, and it stands neither in its history nor in a Referer.
		http.SetCookie(w, &http.Cookie{Name: parameter, Value: secret, Path: "/", Expires: x.ExpiresAt, HttpOnly: true,
			SameSite: http.SameSiteLaxMode})
		to := *r.URL
		withoutSecret(&to)
		to.Scheme, to.Host = "", ""
		w.Header().Set("Location", "/"+strings.TrimLeft(to.String(), "/"))
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return s.relay(w, r, x, place{kind: byHost, host: r.Host})
}

// secretOf returns the secret of an address as a request has it: in a header, in the query of the first request, or in the cookie.
func secretOf(r *http.Request) (secret string, first bool, err error) {
	if h := r.Header.Get(tokenHeader); h != "" {
		return h, false, nil
	}
	if len(r.URL.RawQuery) <= maxQuery && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		if q := r.URL.Query().Get(parameter); q != "" {
			return q, true, nil
		}
	}
	if c, err := r.Cookie(parameter); err == nil {
		return c.Value, false, nil
	}
	return "", false, fault.New(fault.Denied, "unauthenticated", "the request has no secret of a preview: open the whole address").
		With("ask for one: agentbox space preview SPACE PORT")
}

// inner is the request that the operation request-port gets for one at the host of a port.
func inner(r *http.Request, bearer string, sp id.Space, port int) *http.Request {
	in := r.Clone(context.WithValue(r.Context(), outsideKey{}, r))
	prefix := "/v1/spaces/" + string(sp) + "/ports/" + itoa(port) + "/proxy"
	in.URL = &url.URL{Path: prefix + "/"} // the path and the query of the program are with the request outside
	in.Host = "localhost"
	in.RequestURI = in.URL.RequestURI()
	in.Header = http.Header{"Authorization": {"Bearer " + bearer}}
	return in
}

// within returns a context that ends with the address.
func (s *Ports) within(ctx context.Context, x *ports.Exposure) (context.Context, context.CancelFunc) {
	if x.ExpiresAt.IsZero() {
		return context.WithCancel(ctx)
	}
	return s.Within(ctx, max(x.ExpiresAt.Sub(s.Clock.Now()), time.Nanosecond), nil)
}
