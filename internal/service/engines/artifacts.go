package engines

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"mime"
	"net/url"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/blob"
)

// Artifacts are the files that engines keep beside their runs.
type Artifacts struct{ service *Service }

// ArtifactRequest is an output of a run.
type ArtifactRequest struct {
	Step     id.Step
	Kind     string // a word
	Title    string // at most step.MaxTitle characters
	Media    string // a media type
	Size     *int64 // of the content; at most step.MaxArtifact
	Digest   event.Digest
	Content  step.Content
	Metadata json.RawMessage // any JSON of at most step.MaxValue bytes, or nil
}

// check refuses an invalid artifact, and fills in the fields that follow from its content.
func (q *ArtifactRequest) check() error {
	if q.Kind == "" {
		return step.ErrMissingKind
	}
	if q.Content.Type == "" {
		q.Content.Type = step.None
	}
	c := q.Content
	if err := either(word("kind", q.Kind), texts(text{"title", q.Title, step.MaxTitle}, text{"mime_type", q.Media, step.MaxMedia},
		text{"content.uri", c.URI, step.MaxURI})); err != nil {
		return err
	}
	if err := either(fits("metadata", q.Metadata, step.MaxValue), either(fits("content", json.RawMessage(c.Text), step.MaxValue),
		fits("content", c.JSON, step.MaxValue))); err != nil {
		return err
	}
	if _, _, err := mime.ParseMediaType(q.Media); q.Media != "" && err != nil {
		return fault.New(fault.Invalid, "invalid_field", "mime_type %.100q is not a media type", q.Media)
	}
	if q.Size != nil && (*q.Size < 0 || *q.Size > step.MaxArtifact) {
		return fault.New(fault.Exhausted, "artifact_too_large", "size_bytes is %d; an artifact may have %d bytes", *q.Size, step.MaxArtifact)
	}
	if c.Type != step.None && c.Type != step.Text && c.Type != step.JSON && c.Type != step.URI || c.Text != "" && c.Type != step.Text ||
		c.JSON != nil && c.Type != step.JSON ||
		c.URI != "" && c.Type != step.URI || c.Type == step.JSON && c.JSON == nil {
		return fault.New(fault.Invalid, "invalid_content",
			"content has the type none, text, json or uri, and beside it the field of that name alone")
	}
	if u, err := url.Parse(c.URI); c.Type == step.URI && (err != nil || u.Scheme == "" || u.User != nil) {
		return fault.New(fault.Invalid, "invalid_content", "content.uri is not an absolute URI without a password")
	}
	if raw, here := c.Bytes(); here {
		size, digest := int64(len(raw)), event.DigestOf(raw)
		if q.Size != nil && *q.Size != size || !q.Digest.IsZero() && q.Digest != digest {
			return step.ErrOtherContent
		}
		q.Size, q.Digest = &size, digest
	}
	return nil
}

// Add records an output of a run. Content that is sent by itself comes afterwards, with Store.
func (ar *Artifacts) Add(ctx context.Context, origin event.Origin, ws id.Workspace, token string, q ArtifactRequest) (step.Artifact,
	error) {
	if err := q.check(); err != nil {
		return step.Artifact{}, err
	}
	s, err := ar.service.Look.Step(ctx, ws, q.Step)
	if err != nil {
		return step.Artifact{}, err
	}
	a := id.New[id.Artifact](ar.service.IDs)
	_, receipt, err := ar.service.record(ctx, origin, Hold{Workspace: ws, Run: s.Run, Token: token}, func(doc run.Run) (entry, error) {
		if doc.Status != run.Running {
			return entry{}, run.ErrNotRunning
		}
		created := step.ArtifactCreated{
			Artifact: a, Run: doc.ID, Kind: q.Kind, Title: q.Title, Media: q.Media, Size: q.Size, Digest: q.Digest, Content: q.Content,
			Metadata: q.Metadata, Fence: doc.Fence,
		}
		return entry{
			action: policy.Action{Type: policy.ArtifactCreate, Step: s.ID, Content: digest(q.Kind, q.Title, q.Media, q.Digest, q.Content,
				q.Metadata)},
			drafts: []event.Draft{draft(step.EventArtifactCreated, origin, doc, created).About(step.ArtifactEntity, string(a)).In(doc.ID, s.ID)},
			expect: []event.DocumentVersion{{Projection: step.ArtifactProjection, Key: string(a)}},
		}, nil
	})
	if err = running(err); err != nil {
		return step.Artifact{}, err
	}
	return step.Artifact{}.Evolve(receipt.Events[0])
}

// Store keeps the content of an artifact if it matches the declared size and hash. It is idempotent.
func (ar *Artifacts) Store(ctx context.Context, origin event.Origin, ws id.Workspace, token string, a id.Artifact,
	content io.Reader) (step.Artifact, error) {
	doc, err := ar.service.Look.Artifact(ctx, ws, a)
	if err != nil {
		return doc, err
	}
	if doc.Content.Type != step.None || doc.Size == nil || doc.Digest.IsZero() {
		return doc, step.ErrUndeclared
	}
	h := Hold{Workspace: ws, Run: doc.Run, Token: token}
	owner, err := ar.service.Find(ctx, ws, doc.Run) // a caller who may not write should not send a gigabyte first
	if err != nil {
		return doc, err
	}
	if err := running(owner.MayWrite(token, ar.service.left(owner))); err != nil {
		return doc, err
	}
	if doc.Stored != nil {
		return doc, nil
	}
	if _, err := ar.service.contentRoom(ctx, ws, *doc.Size); err != nil {
		return doc, err
	}
	defer ar.service.Blobs.Hold()()
	stored, err := ar.service.Blobs.Put(ctx, &verified{from: content, hash: sha256.New(), left: *doc.Size, want: doc.Digest}, *doc.Size)
	if errors.Is(err, errMismatch) || errors.Is(err, blob.ErrTooLarge) {
		err = step.ErrOtherContent
	}
	if err != nil {
		return doc, err
	}
	_, receipt, err := ar.service.record(context.WithoutCancel(ctx), origin, h, func(r run.Run) (entry, error) {
		now, version, err := found[step.Artifact](ctx, ar.service.Docs, ws, step.ArtifactProjection, string(a), step.ErrArtifactNotFound)
		if err != nil {
			return entry{}, err
		}
		if r.Status != run.Running {
			return entry{}, run.ErrNotRunning
		}
		if now.Stored != nil {
			return entry{}, errStored
		}
		room, err := ar.service.contentRoom(ctx, ws, stored.Size) // again: it may have been taken while the content was sent
		if err != nil {
			return entry{}, err
		}
		kept := step.ArtifactStored{Artifact: a, Run: r.ID, Content: step.Stored{Digest: stored.Digest, Size: stored.Size}, Fence: r.Fence}
		return entry{
			action: policy.Action{Type: policy.ArtifactStore, Step: doc.Step, Subject: string(a), Content: stored.Digest, Size: stored.Size},
			drafts: []event.Draft{draft(step.EventArtifactStored, origin, r, kept).About(step.ArtifactEntity, string(a)).In(r.ID, doc.Step)},
			expect: append(room, event.DocumentVersion{Projection: step.ArtifactProjection, Key: string(a), Version: version}),
		}, nil
	})
	if errors.Is(err, errStored) {
		return ar.service.Look.Artifact(ctx, ws, a)
	}
	if err = running(err); err != nil {
		return doc, err
	}
	return doc.Evolve(receipt.Events[0])
}

// Keep records an output of a run together with its content. A step has one output of a kind with the same title and content: a repeat
// completes or returns that one, also after a crash. Before another one is recorded, more is asked with the number of outputs of the kind
// that the run has; its error is returned. It may be nil.
func (ar *Artifacts) Keep(ctx context.Context, origin event.Origin, ws id.Workspace, token string, q ArtifactRequest, content []byte,
	more func(have int) error) (step.Artifact, error) {
	size := int64(len(content))
	q.Size, q.Digest = &size, event.DigestOf(content)
	have := 0
	kept, err := ar.first(ctx, ws, Of{Step: q.Step}, func(a step.Artifact) bool {
		return a.Kind == q.Kind && a.Title == q.Title && a.Digest == q.Digest && !a.Redacted
	})
	if err == nil && kept.ID == "" && more != nil {
		var s step.Step
		if s, err = ar.service.Look.Step(ctx, ws, q.Step); err != nil {
			return step.Artifact{}, err
		}
		if _, err = ar.first(ctx, ws, Of{Run: s.Run}, func(a step.Artifact) bool {
			if a.Kind == q.Kind {
				have++
			}
			return false
		}); err == nil {
			err = more(have)
		}
	}
	if err == nil && kept.ID == "" {
		kept, err = ar.Add(ctx, origin, ws, token, q)
	}
	if err != nil || kept.Stored != nil {
		return kept, err
	}
	return ar.Store(ctx, origin, ws, token, kept.ID, bytes.NewReader(content))
}

// first returns the newest artifact that fits, or none.
func (ar *Artifacts) first(ctx context.Context, ws id.Workspace, of Of, fits func(step.Artifact) bool) (step.Artifact, error) {
	const page = 1000
	for after := ""; ; {
		found, err := ar.service.Look.Artifacts(ctx, ws, of, after, page)
		if err != nil {
			return step.Artifact{}, err
		}
		for _, a := range found {
			if after = string(a.ID); fits(a) {
				return a, nil
			}
		}
		if len(found) < page {
			return step.Artifact{}, nil
		}
	}
}

var (
	errStored   = errors.New("the content is stored")
	errMismatch = fault.New(step.ErrOtherContent.Kind, step.ErrOtherContent.Code, "%s", step.ErrOtherContent.Msg)
)

// verified reads content and fails at its end if the content differs from the declaration, so that only declared content is stored.
type verified struct {
	from io.Reader
	hash hash.Hash
	left int64
	want event.Digest
}

// Read implements io.Reader.
func (v *verified) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	v.hash.Write(p[:n])
	if v.left -= int64(n); v.left < 0 {
		return 0, errMismatch
	}
	if errors.Is(err, io.EOF) && (v.left != 0 || event.Digest(v.hash.Sum(nil)) != v.want) {
		return 0, errMismatch
	}
	return n, err
}

// Open returns the content of an artifact, from its event or stored; the caller closes it.
func (ar *Artifacts) Open(ctx context.Context, ws id.Workspace, a id.Artifact) (step.Artifact, io.ReadSeekCloser, error) {
	doc, err := ar.service.Look.Artifact(ctx, ws, a)
	if err != nil {
		return doc, nil, err
	}
	if raw, here := doc.Content.Bytes(); here {
		return doc, inEvent(raw), nil
	}
	if doc.Stored == nil {
		return doc, nil, step.ErrNoContent
	}
	content, err := ar.service.Blobs.Open(ctx, doc.Stored.Digest)
	return doc, content, err
}
