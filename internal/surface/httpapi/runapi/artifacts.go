package runapi

import (
	"context"
	"mime"
	"net/http"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/step"
	"agentbox/internal/service/engines"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// ArtifactPath names an artifact.
type ArtifactPath struct {
	Artifact string `path:"artifact_id" doc:"The artifact"`
}

// Artifacts are the operations for artifacts.
type Artifacts struct {
	access.Part
	engines *engines.Service
}

// NewArtifacts returns the operations for artifacts.
func NewArtifacts(p access.Part, engines *engines.Service) *Artifacts {
	return &Artifacts{p, engines}
}

// Register adds the operations to the server.
func (s *Artifacts) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "create-artifact", Engines: true, Needs: wire.Does(policy.ArtifactCreate, "step_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/steps/{step_id}/artifacts", Tag: "engines", Summary: "Record an output of a run", Repeat: wire.RepeatRecalled,
		Status: http.StatusCreated,
	}, s.createArtifact)
	wire.Handle(s.Server, wire.Operation{ID: "list-artifacts", Needs: wire.Shows("artifact", "run_id", "step_id"), Method: http.MethodGet,
		Path: "/v1/artifacts", Tag: "engines", Summary: "Artifacts, the newest first"},
		func(ctx context.Context, c wire.Call, in *OfRun[id.Artifact]) (*struct{ Body artifactList }, error) {
			of, err := in.of()
			if err != nil {
				return nil, err
			}
			found, err := s.engines.Look.Artifacts(ctx, c.Caller.Workspace, of, string(in.Cursor.After), in.Limit+1)
			if err != nil {
				return nil, err
			}
			out := artifactList{}
			out.Artifacts, out.Next = access.Cut(found, in.Limit, func(x step.Artifact) string { return string(x.ID) })
			out.Artifacts, err = access.Visible(ctx, s.Access, c, out.Artifacts, func(x step.Artifact) label.Resource {
				return label.Resource{Type: label.OfArtifact, ID: string(x.ID)}
			})
			return &struct{ Body artifactList }{out}, err
		})
	wire.Handle(s.Server, wire.Operation{ID: "get-artifact", Needs: wire.Shows("artifact", "artifact_id"), Method: http.MethodGet,
		Path: "/v1/artifacts/{artifact_id}", Tag: "engines", Summary: "Show an artifact"},
		func(ctx context.Context, c wire.Call, in *ArtifactPath) (*struct{ Body step.Artifact }, error) {
			doc, err := s.engines.Look.Artifact(ctx, c.Caller.Workspace, id.Artifact(in.Artifact))
			return &struct{ Body step.Artifact }{doc}, err
		})
	wire.Stream[struct {
		ArtifactPath
		Token   string `header:"X-Claim-Token" doc:"The token of the run's claim"`
		RawBody []byte `contentType:"application/octet-stream"`
	}](s.Server, wire.Operation{
		ID: "write-artifact", Engines: true, Needs: wire.Does(policy.ArtifactStore, "artifact_id").PastLabels(), Method: http.MethodPut,
		Path: "/v1/artifacts/{artifact_id}/content", Tag: "engines", Summary: "Send the content of an artifact", Rate: wire.RateFiles,
		Answers: map[int]any{http.StatusOK: step.Artifact{}},
		Detail:  "The content must match the artifact's size_bytes and sha256, and have at most 1 GiB. Equal content is stored once.",
	}, s.writeArtifact)
	wire.Stream[ArtifactPath](s.Server, wire.Operation{
		ID: "read-artifact", Needs: wire.Shows("artifact", "artifact_id"), Method: http.MethodGet, Path: "/v1/artifacts/{artifact_id}/content",
		Tag: "engines", Summary: "Read the content of an artifact", Rate: wire.RateFiles,
		Media: "application/octet-stream", Detail: "Takes Range, If-None-Match and If-Range. The ETag is the content's SHA-256.",
	}, s.readArtifact)
}

func (s *Artifacts) createArtifact(ctx context.Context, c wire.Call, in *struct {
	StepPath
	Body artifactRequest
}) (*struct{ Body step.Artifact }, error) {
	token, err := oneToken(in.Token, in.Body.Token)
	if err != nil {
		return nil, err
	}
	doc, err := wire.Once(c, func() (step.Artifact, error) {
		return access.Told[step.Artifact](ctx, s.Access, c, step.ArtifactProjection, step.ArtifactEntity)
	}, func() (step.Artifact, error) { return s.addArtifact(ctx, c, token, id.Step(in.Step), in.Body) })
	return &struct{ Body step.Artifact }{doc}, err
}

func (s *Artifacts) addArtifact(ctx context.Context, c wire.Call, token string, of id.Step, b artifactRequest) (step.Artifact, error) {
	q := engines.ArtifactRequest{Step: of, Kind: b.Kind, Title: b.Title, Media: b.Media, Size: b.Size, Metadata: b.Metadata}
	if b.Content != nil {
		q.Content = *b.Content
	}
	if b.Digest != "" {
		if err := q.Digest.UnmarshalText([]byte("sha256:" + strings.TrimPrefix(b.Digest, "sha256:"))); err != nil || q.Digest.IsZero() {
			return step.Artifact{}, fault.New(fault.Invalid, "invalid_field", "sha256 is not a hash of 64 hexadecimal digits")
		}
	}
	return s.engines.Artifacts.Add(ctx, c.Once(), c.Caller.Workspace, token, q)
}

func (s *Artifacts) writeArtifact(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	if r.ContentLength > step.MaxArtifact {
		return fault.New(fault.Exhausted, "artifact_too_large", "an artifact may have %d bytes", step.MaxArtifact)
	}
	sent := &access.Body{Reader: s.Patient(w, r)}
	doc, err := s.engines.Artifacts.Store(r.Context(), c.Origin(), c.Caller.Workspace, r.Header.Get("X-Claim-Token"),
		id.Artifact(r.PathValue("artifact_id")), sent)
	if err != nil && sent.Broken != nil {
		err = access.Unreadable(sent.Broken)
	}
	if err != nil {
		return err
	}
	return wire.AnswerJSON(w, http.StatusOK, doc)
}

func (s *Artifacts) readArtifact(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	doc, content, err := s.engines.Artifacts.Open(r.Context(), c.Caller.Workspace, id.Artifact(r.PathValue("artifact_id")))
	if err != nil {
		return err
	}
	defer content.Close()
	h := w.Header()
	h.Set("ETag", `"`+artifactDigest(doc).String()+`"`)
	h.Set("Content-Type", "application/octet-stream") // the media type is an engine's word, and browsers must not act on it
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": string(doc.ID)}))
	ranged := &access.RangeWriter{ResponseWriter: w}
	http.ServeContent(ranged, r, "", doc.CreatedAt, content)
	if ranged.Refused {
		return fault.New(fault.Invalid, "range_not_satisfiable", "the range %.64q lies beyond the content", r.Header.Get("Range"))
	}
	return nil
}

func artifactDigest(a step.Artifact) event.Digest {
	if a.Stored != nil {
		return a.Stored.Digest
	}
	return a.Digest
}
