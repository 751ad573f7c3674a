package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/httpapi/wire"
)

// forwardedHeader names the member that has forwarded a request. Such a request is forwarded no further: two members that each hold the
// other for its home would send it to and fro.
const forwardedHeader = "Agentbox-Forwarded-By"

// reachTime is how long it may take to reach another member.
const reachTime = 5 * time.Second

// elsewhere says who answers a request that not every member can; nil for a daemon that works alone.
func (ms *membership) elsewhere() wire.Elsewhere {
	if ms.member == nil {
		return nil
	}
	dialer := &net.Dialer{Timeout: reachTime}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: reachTime, MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true,
	}
	ms.app.closers = append(ms.app.closers, func() error {
		transport.CloseIdleConnections()
		return nil
	})
	return func(ctx context.Context, r *http.Request, c wire.Call, home wire.Home, value string) (http.Handler, error) {
		m, err := ms.home(ctx, c.Caller.Workspace, home, value)
		if err != nil || m.Node == "" || m.Node == ms.node {
			return nil, err
		}
		if by := r.Header.Get(forwardedHeader); by != "" {
			return nil, node.Away(m.Node, "and the node "+string(ms.node)+", to which "+clip(by)+" has forwarded it, is another one")
		}
		return ms.forwarding(transport, m, c)
	}
}

func clip(text string) string { return text[:min(len(text), 64)] }

// home is the member that answers; one without a name is this one, which says what is wrong.
func (ms *membership) home(ctx context.Context, ws id.Workspace, home wire.Home, value string) (node.Member, error) {
	if home == wire.AtLeader {
		if ms.leads.Load() {
			return node.Member{}, nil
		}
		return ms.leader(ctx)
	}
	if home == wire.AtRun {
		doc, err := ms.app.Runs.History.Find(ctx, ws, id.Run(value))
		if fault.KindOf(err) == fault.NotFound || err == nil && doc.Space == "" {
			return node.Member{}, nil
		}
		if err != nil {
			return node.Member{}, err
		}
		value = string(doc.Space)
	}
	s, err := ms.app.Spaces.Catalog.Space(ctx, ws, id.Space(value))
	if fault.KindOf(err) == fault.NotFound || err == nil && (s.Status == space.Destroyed || s.Node == "" || s.Node == ms.node) {
		return node.Member{}, nil
	}
	if err != nil {
		return node.Member{}, err
	}
	all, err := ms.member.Together.Members(ctx)
	if err != nil {
		return node.Member{}, err
	}
	for _, m := range all {
		if m.Node == s.Node {
			if !m.Alive {
				return m, node.Away(m.Node, "whose daemon does not work now")
			}
			return m, nil
		}
	}
	return node.Member{}, node.Away(s.Node, "which has never worked on this log together with others")
}

// leader is the member that does what only one may.
func (ms *membership) leader(ctx context.Context) (node.Member, error) {
	all, err := ms.member.Together.Members(ctx)
	if err != nil {
		return node.Member{}, err
	}
	for _, m := range all {
		if m.Leads && m.Node != ms.node {
			return m, nil
		}
	}
	return node.Member{}, fault.New(fault.Unavailable, "leader_unknown",
		"no daemon of the log is the leader at this moment, and only the leader can do this").With("ask again in a moment")
}

// forwarding answers a request with what another member answers to it, as it comes.
func (ms *membership) forwarding(transport http.RoundTripper, m node.Member, c wire.Call) (http.Handler, error) {
	to, err := url.Parse(m.Address)
	if err != nil || to.Host == "" {
		return nil, node.Away(m.Node, "whose address cannot be used")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(&httputil.ReverseProxy{
			Transport: transport, FlushInterval: -1,
			Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(to)
				p.Out.Host = to.Host
				p.Out.URL.Path, p.Out.URL.RawPath, p.Out.URL.RawQuery = p.In.URL.Path, p.In.URL.RawPath, p.In.URL.RawQuery
				p.Out.Header.Set(forwardedHeader, string(ms.node))
				p.Out.Header.Set("X-Request-Id", string(c.Request))
				p.Out.Header.Set("X-Correlation-Id", string(c.Correlation))
			},
			ModifyResponse: func(res *http.Response) error {
				for name := range res.Header {
					w.Header().Del(name) // the answering daemon sets it once
				}
				return nil
			},
			ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
				if errors.Is(err, context.Canceled) {
					return // the client has gone
				}
				ms.app.logger.Warn("forward a request", "code", "node_unreachable", "node", m.Node, "error", err)
				wire.Refuse(w, c, node.Away(m.Node, "which cannot be reached"))
			},
		}).ServeHTTP(w, r)
	}), nil
}
