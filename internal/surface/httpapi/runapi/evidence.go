package runapi

import (
	"context"
	"encoding/json"
	"net/http"

	"agentbox/internal/domain/evidence"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/engines"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// collected is the evidence of a run.
type collected struct {
	evidence.Record
	Manifest json.RawMessage `json:"manifest" doc:"What manifest_hash covers, in canonical JSON"`
}

type evidenceAnswer struct {
	Evidence collected `json:"evidence"`
}

type finalizedAnswer struct {
	Evidence collected `json:"evidence"`
	Created  bool      `json:"created" doc:"Whether this request has collected it"`
}

// Evidence are the operations for the evidence of runs.
type Evidence struct {
	access.Part
	engines *engines.Service
}

// NewEvidence returns the operations for the evidence of runs.
func NewEvidence(p access.Part, engines *engines.Service) *Evidence {
	return &Evidence{p, engines}
}

// Register adds the operations to the server.
func (s *Evidence) Register() {
	type runPath struct {
		Run string `path:"run_id" doc:"The run"`
	}
	wire.Handle(s.Server, wire.Operation{
		ID: "get-evidence", Needs: wire.Shows("evidence", "run_id"), Method: http.MethodGet, Path: "/v1/runs/{run_id}/evidence", Tag: "engines",
		Summary: "Show the evidence of a run",
		Detail: "Which events tell of it, under which hashes. That of an engine's run is collected when it ends; that of a run in a space " +
			"when somebody asks for it.",
	}, func(ctx context.Context, c wire.Call, in *runPath) (*struct{ Body evidenceAnswer }, error) {
		found, err := s.collected(ctx, c, id.Run(in.Run))
		return &struct{ Body evidenceAnswer }{evidenceAnswer{found}}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "finalize-evidence", Engines: true, Needs: wire.Does(policy.EvidenceCollect, "run_id"), Method: http.MethodPost,
		Path: "/v1/runs/{run_id}/evidence/finalize", Tag: "engines", Summary: "Collect the evidence of a run that has ended",
		Repeat: wire.RepeatRecalled,
	}, func(ctx context.Context, c wire.Call, in *runPath) (*struct{ Body finalizedAnswer }, error) {
		created, err := wire.Once(c, func() (bool, error) { return true, nil }, func() (bool, error) {
			return s.engines.Evidence.Finalize(ctx, c.Once(), c.Caller.Workspace, id.Run(in.Run))
		})
		if err != nil {
			return nil, err
		}
		found, err := s.collected(ctx, c, id.Run(in.Run))
		return &struct{ Body finalizedAnswer }{finalizedAnswer{found, created}}, err
	})
}

func (s *Evidence) collected(ctx context.Context, c wire.Call, r id.Run) (collected, error) {
	doc, manifest, err := s.engines.Evidence.Of(ctx, c.Caller.Workspace, r)
	return collected{doc, manifest}, err
}
