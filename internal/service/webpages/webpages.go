// Package webpages fetches pages for agents.
//
// It asks the gate about every address, also about the targets of redirects.
package webpages

import (
	"context"
	"errors"
	"math"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/web"
	"agentbox/internal/kernel/deadline"
)

// Parts are the dependencies of the service.
type Parts struct {
	Gate   policy.Gate
	Append func(context.Context, event.Batch) (event.Receipt, error) // records refusals
	Client web.Fetcher
	Clock  event.Clock
}

// Service fetches pages. Make it with New; any goroutine may use it.
type Service struct{ Parts }

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{p} }

// Query describes a page to fetch.
type Query struct {
	Origin    event.Origin // of the request
	Workspace id.Workspace
	Room      id.Room
	Space     id.Space // its policy decides about the hosts
	Run       id.Run
	Call      id.ToolCall // that wants the page
	Tool      string
	URL       string
	Method    string // GET or HEAD

	// Most is the time limit for all requests together, without the time in which a person is asked. 0 means no limit.
	Most time.Duration
}

// Page is a fetched page.
type Page struct {
	web.Answer
	URL string // where it was found, after all redirects

	// Worked is the time that the requests took. It is also set if Get returns an error.
	Worked time.Duration
}

// errLate ends a request at the limit of its time.
var errLate = fault.New(fault.Conflict, "fetch_time_exceeded", "the page did not come within the time of the call")

// Get fetches a page. While a person is asked it waits. An error is a refusal of the gate, or one of the package web of the domain.
func (s *Service) Get(ctx context.Context, q Query) (Page, error) {
	if q.Method != "GET" && q.Method != "HEAD" {
		return Page{}, web.ErrMethod
	}
	at, err := web.Clean(q.URL)
	if err != nil {
		return Page{}, err
	}
	worked := time.Duration(0)
	for hop := 0; ; hop++ {
		answer, err := s.one(ctx, q, at, &worked)
		if err != nil || answer.Location == "" {
			return Page{answer, at, worked}, err
		}
		if hop == web.MaxRedirects {
			return Page{Worked: worked}, web.ErrRedirects
		}
		if at, err = web.Next(at, answer.Location); err != nil {
			return Page{Worked: worked}, err
		}
	}
}

// one sends one request, and adds its time to worked. If the host turns out to have an address that is not public, one asks the gate about
// a private host.
func (s *Service) one(ctx context.Context, q Query, at string, worked *time.Duration) (web.Answer, error) {
	r := web.Request{URL: at, Method: q.Method, Private: web.Inward(at)}
	for {
		permit, err := s.permit(ctx, q, r)
		if err != nil {
			return web.Answer{}, err
		}
		answer, err := s.fetch(ctx, permit, r, q.Most, worked)
		if fault.CodeOf(err) != web.ErrPrivate.Code || r.Private {
			return answer, err
		}
		r.Private = true
	}
}

// fetch redeems a permit within the rest of the time.
func (s *Service) fetch(ctx context.Context, p policy.Permit, r web.Request, most time.Duration,
	worked *time.Duration) (web.Answer, error) {
	if most <= 0 {
		most = math.MaxInt64
	}
	bounded, end := deadline.Within(ctx, s.Clock, most-*worked, errLate)
	defer end()
	began := s.Clock.Now()
	answer, err := s.Client.Fetch(bounded, p, r)
	*worked += max(s.Clock.Now().Sub(began), 0)
	if err != nil && errors.Is(context.Cause(bounded), errLate) {
		err = errLate
	}
	return answer, err
}

// permit asks the gate about a request again and again until a person has answered.
func (s *Service) permit(ctx context.Context, q Query, r web.Request) (policy.Permit, error) {
	action := policy.Action{
		Type: r.Action(), Workspace: q.Workspace, Room: q.Room, Principal: q.Origin.Principal, Token: q.Origin.Token, Space: q.Space, Run: q.Run,
		Subject: string(q.Call), Tool: q.Tool, Method: r.Method, Target: r.URL,
	}
	for {
		ruling, approval, err := policy.Client{Gate: s.Gate, Append: s.Append}.Ask(ctx, q.Origin, action)
		if err == nil {
			permit, _, err := s.Gate.Begin(ctx, ruling, approval, event.Batch{Workspace: q.Workspace})
			return permit, err
		}
		if fault.KindOf(err) != fault.Waiting {
			return policy.Permit{}, err
		}
		if !errand.Pause(ctx, s.Clock, errand.Ask) {
			return policy.Permit{}, context.Cause(ctx)
		}
	}
}
