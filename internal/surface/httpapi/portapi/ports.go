// Package portapi has the operations for ports of spaces, and answers requests at their addresses.
package portapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/ports"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// Ports are the operations for ports of spaces, and what answers at the addresses of previews.
type Ports struct {
	access.Part
	ports *ports.Service
	open  OpenToken
}

// OpenToken returns the key that a token of a space stands for, as the packages of E2B send it.
type OpenToken func(s id.Space, token string) (bearer string, ok bool)

// New returns the operations for ports of spaces. Without OpenToken, no token of E2B is known.
func New(p access.Part, ports *ports.Service, open OpenToken) *Ports { return &Ports{p, ports, open} }

// PortPath names a port of a space.
type PortPath struct {
	Space string `path:"space_id" doc:"The space"`
	Port  string `path:"port" doc:"The port, 1 to 65535"`
}

type portList struct {
	Ports []ports.Listed `json:"ports" nullable:"false"`
}

type previewRequest struct {
	TTL      int64 `json:"ttl_seconds,omitempty" minimum:"10" maximum:"604800" doc:"How many seconds the address holds; an hour by default"`
	External bool  `json:"external,omitempty" doc:"Pages may load scripts, images and data from other hosts, by the browser that shows them"`
}

// preview is the address of a port.
type preview struct {
	ID        id.Exposure `json:"exposure_id"`
	Space     id.Space    `json:"space_id"`
	Port      int         `json:"port"`
	URL       string      `json:"url" doc:"For a browser: an origin of its own, below localhost. Everybody who has it reaches the port until it ends"`
	PathURL   string      `json:"path_url" doc:"For programs, and browsers that do not find names below localhost: below a path of the daemon. Pages there run in a sandbox and have no cookies"`
	Host      string      `json:"host" doc:"The host of the address, without its secret"`
	Token     string      `json:"token" doc:"The secret part of the address; a program sends it as the header x-preview-token to the host"`
	ExpiresAt time.Time   `json:"expires_at"`
}

type portsClosed struct {
	Closed int `json:"closed" doc:"For how many principals and addresses it was open"`
}

// Register adds the operations to the server.
func (s *Ports) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-ports", Home: wire.AtSpace, Needs: wire.Shows("space", "space_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/ports", Tag: "ports", Summary: "List the ports of a space",
		Detail: "Those on which a program listens, and those that are open. A space of the tier nano has none: ports_not_here.",
	}, s.list)
	wire.Handle(s.Server, wire.Operation{
		ID: "preview-port", Home: wire.AtSpace, Needs: wire.Does(policy.PortExpose, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/ports/{port}/preview", Tag: "ports", Summary: "Make an address of a port, for everybody who has it",
		Repeat: wire.RepeatByService,
		Detail: "It holds until its end, until the port is closed, and while the space lives and its daemon runs. Whoever has it reaches the " +
			"program that listens and nothing else. The program may be started later.",
	}, s.preview)
	wire.Handle(s.Server, wire.Operation{
		ID: "close-port", Home: wire.AtSpace, Needs: wire.Does(policy.PortExpose, "space_id").PastLabels(), Method: http.MethodDelete,
		Path: "/v1/spaces/{space_id}/ports/{port}", Tag: "ports", Summary: "Close a port",
		Detail: "Every connection ends at once, and every address of the port is invalid.",
	}, s.close)
	wire.Stream[struct {
		PortPath
		Path string `path:"path" doc:"The path that the program gets, with its query"`
	}](s.Server, wire.Operation{
		ID: "request-port", Home: wire.AtSpace, Needs: wire.Does(policy.PortExpose, "space_id"), Method: http.MethodGet, Any: true,
		Path: "/v1/spaces/{space_id}/ports/{port}/proxy/{path}", Tag: "ports", Summary: "Send a request to a port",
		Rate: wire.RateFiles, Media: "application/octet-stream",
		Detail: "Takes every method, body and query, and upgrades to a WebSocket. The first request opens the port. The program gets neither " +
			"the caller's key nor a cookie, and its answer sets none. Its pages run no scripts under this address; use preview-port for those.",
	}, s.request)
}

func (s *Ports) list(ctx context.Context, c wire.Call, in *struct {
	Space string `path:"space_id" doc:"The space"`
}) (*struct{ Body portList }, error) {
	all, err := s.ports.List(ctx, c.Caller.Workspace, id.Space(in.Space))
	return &struct{ Body portList }{portList{all}}, err
}

func (s *Ports) preview(ctx context.Context, c wire.Call, in *struct {
	PortPath
	Body *previewRequest
}) (*struct{ Body preview }, error) {
	port, err := space.ReadPort(in.Port)
	if err != nil {
		return nil, err
	}
	a := ports.Address{Workspace: c.Caller.Workspace, Space: id.Space(in.Space), Port: port, Key: c.ServiceKey(),
		By: ports.Credential{Key: c.Caller.Key, Session: c.Caller.Session}}
	if in.Body != nil {
		a.TTL, a.External = time.Duration(in.Body.TTL)*time.Second, in.Body.External
	}
	x, secret, err := s.ports.Preview(ctx, c.Origin(), a)
	if err != nil {
		return nil, err
	}
	own := c.Host()
	host := hostName(x.Space, x.Port) + portOf(own)
	return &struct{ Body preview }{preview{
		ID: x.ID, Space: x.Space, Port: x.Port, Host: host, Token: secret, ExpiresAt: x.ExpiresAt,
		URL:     "http://" + host + "/?" + parameter + "=" + secret,
		PathURL: "http://" + own + pathPrefix + secret + "/",
	}}, nil
}

func (s *Ports) close(ctx context.Context, c wire.Call, in *PortPath) (*struct{ Body portsClosed }, error) {
	port, err := space.ReadPort(in.Port)
	if err != nil {
		return nil, err
	}
	n, err := s.ports.Close(ctx, c.Origin(), c.Caller.Workspace, id.Space(in.Space), port)
	if err != nil {
		return nil, err
	}
	return &struct{ Body portsClosed }{portsClosed{n}}, nil
}

// proxied is the number of parts in the path of the operation request-port before the part that the program gets.
const proxied = 7

// request sends a request of a caller with a key to the port.
func (s *Ports) request(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	port, err := space.ReadPort(r.PathValue("port"))
	if err != nil {
		return err
	}
	x, err := s.ports.Reach(r.Context(), c.Origin(), c.Caller.Workspace, id.Space(r.PathValue("space_id")), port)
	if err != nil {
		return err
	}
	at := place{kind: byKey}
	parts := strings.SplitN(r.URL.EscapedPath(), "/", proxied+1)
	at.prefix = strings.Join(parts[:proxied], "/")
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = "/"+r.PathValue("path"), "/"+parts[proxied]
	if outside, ok := r.Context().Value(outsideKey{}).(*http.Request); ok { // it came by an address of its own, with a token of E2B
		at = place{kind: byHost, host: outside.Host}
		to := *outside.URL
		r.URL, r.Header, r.Host = &to, outside.Header.Clone(), outside.Host
	}
	return s.relay(w, r, x, at)
}

var errNoOrigin = fault.New(fault.Denied, "origin_not_allowed", "requests of pages from other origins are refused")
