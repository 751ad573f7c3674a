package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
)

// maxInlineDisplay is how many bytes of text the event of an artifact holds. Longer texts, and other types, become stored content.
const maxInlineDisplay = 16 << 10

// The kinds of artifacts that hold values of a cell: the value of its last expression, and its displays.
const (
	kindResult  = "result"
	kindDisplay = "display"
)

// artifacts makes artifacts of the displays of a command, names them in its result, and returns their events. It leaves out a display that
// cannot be stored, because the effect has happened and its outcome must be recorded.
func (r *execution) artifacts(ctx context.Context, t task, result *run.Result) (drafts []event.Draft) {
	ctx = context.WithoutCancel(ctx)
	for _, d := range t.shown {
		made, err := r.artifact(ctx, t, d, result)
		if err != nil {
			r.x.Logger.Error("keep what a command has shown", "code", "display_not_kept", "run", r.doc.ID, "operation", t.op.ID, "error", err)
			if !slices.Contains(result.Omitted, "displays") {
				result.Omitted = append(result.Omitted, "displays")
			}
			continue
		}
		drafts = append(drafts, made...)
	}
	return drafts
}

// artifact makes one artifact.
func (r *execution) artifact(ctx context.Context, t task, d space.Display, result *run.Result) ([]event.Draft, error) {
	size, digest := int64(len(d.Data)), event.DigestOf(d.Data)
	told := run.Display{
		Artifact: id.New[id.Artifact](r.x.IDs), Value: d.Value, Result: d.Result, Type: d.Type, Media: d.Media, Size: size, Digest: digest,
		Rows: d.Rows, Columns: d.Columns, Width: d.Width, Height: d.Height,
	}
	meta, err := json.Marshal(struct {
		Operation string `json:"operation_id"`
		Value     int    `json:"value"`
		Type      string `json:"type,omitempty"`
		Rows      int    `json:"rows,omitempty"`
		Columns   int    `json:"columns,omitempty"`
		Width     int    `json:"width,omitempty"`
		Height    int    `json:"height,omitempty"`
	}{t.op.ID, d.Value, d.Type, d.Rows, d.Columns, d.Width, d.Height})
	if err != nil {
		return nil, err
	}
	created := step.ArtifactCreated{
		Artifact: told.Artifact, Run: r.doc.ID, Kind: kindDisplay, Title: d.Type, Media: d.Media, Size: &size, Digest: digest,
		Content:  step.Content{Type: step.None},
		Metadata: meta, Operation: t.op.ID,
	}
	if d.Result {
		created.Kind = kindResult
	}
	about := func(typ string, data any) event.Draft {
		return event.New(typ, r.origin, r.doc.Workspace, r.doc.Room, data).About(step.ArtifactEntity, string(told.Artifact)).In(r.doc.ID,
			t.action.Step)
	}
	if textual(d.Media) && size <= maxInlineDisplay {
		created.Content = step.Content{Type: step.Text, Text: valid(d.Data)}
		result.Displays = append(result.Displays, told)
		return []event.Draft{about(step.EventArtifactCreated, created)}, nil
	}
	if err := r.x.contentRoom(ctx, r.doc.Workspace, size); err != nil {
		return nil, err
	}
	stored, err := r.x.Blobs.Put(ctx, bytes.NewReader(d.Data), size)
	if err != nil {
		return nil, err
	}
	result.Displays = append(result.Displays, told)
	kept := step.ArtifactStored{Artifact: told.Artifact, Run: r.doc.ID, Content: step.Stored{Digest: stored.Digest, Size: stored.Size}}
	return []event.Draft{about(step.EventArtifactCreated, created), about(step.EventArtifactStored, kept)}, nil
}

func textual(media string) bool {
	return strings.HasPrefix(media, "text/") || media == space.DisplaySVG || media == space.DisplayJSON
}
