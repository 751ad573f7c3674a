package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/evidence"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/step"
)

// Recorded holds an engine's records of a run, each list in the order of recording.
type Recorded struct {
	Steps     []step.Step     `json:"steps"`
	Calls     []step.Call     `json:"tool_calls"`
	Artifacts []step.Artifact `json:"artifacts"`
}

// Steps returns everything that was recorded of a run that an engine executes.
func (c *Client) Steps(ctx context.Context, of id.Run) (Recorded, error) {
	var all Recorded
	for _, list := range []string{join("/v1/runs/", escape(string(of)), "/steps"), "/v1/toolcalls", "/v1/artifacts"} {
		for cursor := "x"; cursor != ""; {
			q := url.Values{"limit": {"100"}}
			if list[len(list)-6:] != "/steps" {
				q.Set("run_id", string(of))
			}
			if cursor != "x" {
				q.Set("cursor", cursor)
			}
			var page struct {
				Recorded
				Next string `json:"next_cursor"`
			}
			if err := c.get(ctx, list, q, &page); err != nil {
				return all, err
			}
			for _, s := range page.Steps {
				all.Steps = append([]step.Step{s}, all.Steps...)
			}
			for _, t := range page.Calls {
				all.Calls = append([]step.Call{t}, all.Calls...)
			}
			for _, a := range page.Artifacts {
				all.Artifacts = append([]step.Artifact{a}, all.Artifacts...)
			}
			cursor = page.Next
		}
	}
	return all, nil
}

// Evidence returns the evidence of a run, and collects it first where that is wanted.
func (c *Client) Evidence(ctx context.Context, of id.Run, finalize bool) (evidence.Record, error) {
	var got struct {
		Evidence evidence.Record `json:"evidence"`
	}
	path := join("/v1/runs/", escape(string(of)), "/evidence")
	if finalize {
		err := c.post(ctx, path+"/finalize", nil, &got)
		return got.Evidence, err
	}
	err := c.get(ctx, path, nil, &got)
	return got.Evidence, err
}

// ArtifactList is a page of artifacts, the newest first.
type ArtifactList struct {
	Artifacts []step.Artifact `json:"artifacts"`
	Next      string          `json:"next_cursor"` // empty at the end
}

// Artifacts returns artifacts, the newest first: of one run where it is named.
func (c *Client) Artifacts(ctx context.Context, of id.Run, p Page) (ArtifactList, error) {
	var got ArtifactList
	err := c.get(ctx, "/v1/artifacts", p.values("run_id", string(of)), &got)
	return got, err
}

// Artifact returns an artifact.
func (c *Client) Artifact(ctx context.Context, a id.Artifact) (step.Artifact, error) {
	var got step.Artifact
	err := c.get(ctx, join("/v1/artifacts/", escape(string(a))), nil, &got)
	return got, err
}

// ArtifactContent returns the content of an artifact; the caller closes it.
func (c *Client) ArtifactContent(ctx context.Context, a id.Artifact) (io.ReadCloser, error) {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: join("/v1/artifacts/", escape(string(a)), "/content")})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// NewArtifact is an artifact whose content is sent by itself.
type NewArtifact struct {
	Kind   string       `json:"kind"`
	Title  string       `json:"title,omitempty"`
	Media  string       `json:"mime_type,omitempty"`
	Size   int64        `json:"size_bytes"`
	Digest event.Digest `json:"sha256"`
}

// PutArtifact records an artifact and sends its content.
func (c *Client) PutArtifact(ctx context.Context, in id.Step, token string, a NewArtifact, content io.Reader) (step.Artifact, error) {
	var made step.Artifact
	if err := c.call(ctx, http.MethodPost, join("/v1/steps/", escape(string(in)), "/artifacts"), nil, a, &made, claimed(token,
		"")); err != nil {
		return made, err
	}
	err := c.exchange(ctx, request{
		method: http.MethodPut, path: join("/v1/artifacts/", escape(string(made.ID)), "/content"), body: content, size: a.Size,
		media: "application/octet-stream", header: claimed(token, ""),
	}, &made)
	return made, err
}
