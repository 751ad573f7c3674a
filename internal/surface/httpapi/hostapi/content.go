package hostapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gc"
	"agentbox/internal/service/runs"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// contentState describes the content that is stored beside the log.
type contentState struct {
	Usage content.Usage `json:"usage" doc:"What the log of the workspace names"`
	Quota int64         `json:"quota_bytes" doc:"What it may name; 0 for without limit"`
	Rule  content.Rule  `json:"rule" doc:"Which snapshots of a space a sweep keeps beside the newest"`
	Sweep content.Swept `json:"sweep" doc:"What a sweep would free now"`
}

// Content are the operations for the content that the log names.
type Content struct {
	access.Part
	runs *runs.Service
	gc   *gc.Service
}

// NewContent returns the operations for the content that the log names.
func NewContent(p access.Part, runs *runs.Service, gc *gc.Service) *Content {
	return &Content{p, runs, gc}
}

// Register adds the operations to the server.
func (s *Content) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "get-content", Home: wire.AtLeader, Needs: wire.Shows("content"), Method: http.MethodGet, Path: "/v1/content", Tag: "content",
		Summary: "What is kept beside the log, and what a sweep would free", Rate: wire.RateFiles,
		Detail: "Content are the operations of runs and results that are too long for their event. Snapshots are those of the spaces that live.",
	}, s.getContent)
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "sweep-content", Home: wire.AtLeader, Needs: wire.Does(policy.ContentSweep), Method: http.MethodPost, Path: "/v1/content/sweep",
		Tag: "content", Summary: "Free what nothing names", Rate: wire.RateFiles,
		Repeat: wire.RepeatRecalled,
		Detail: "Content that no event names goes, and snapshots that the operator's rule lets go. The daemon does the same by itself every " +
			"six hours.",
	}, s.swept, func(ctx context.Context, c wire.Call, _ *struct{}) (content.Swept, error) {
		return s.gc.Sweep(ctx, c.Once(), c.Caller.Workspace)
	}, func(swept content.Swept) *struct{ Body content.Swept } { return &struct{ Body content.Swept }{swept} })
}

func (s *Content) getContent(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body contentState }, error) {
	used, err := s.gc.Usage(ctx, c.Caller.Workspace)
	if err != nil {
		return nil, err
	}
	found, err := s.gc.Survey(ctx, c.Caller.Workspace)
	if err != nil {
		return nil, err
	}
	return &struct{ Body contentState }{contentState{Usage: used, Quota: s.runs.MaxContent, Rule: s.gc.Rule, Sweep: found}},
		nil
}

// swept finds the result of an earlier request's sweep.
func (s *Content) swept(ctx context.Context, c wire.Call) (content.Swept, error) {
	return s.gc.Swept(ctx, c.Caller.Workspace, c.Repeated)
}
