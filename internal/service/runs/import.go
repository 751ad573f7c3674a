package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/projection"
)

// Import records a run that was executed elsewhere, from its transcript. Content is the file itself with this digest and size. Attested is
// the result of its check. The same file again returns the first record, and so does the same key, which may be empty.
func (x *Transcripts) Import(ctx context.Context, origin event.Origin, ws id.Workspace, t run.Transcript, file run.Input, content io.Reader,
	attested run.Attestation, key string) (run.Run, error) {
	if err := t.Admissible(); err != nil {
		return run.Run{}, err
	}
	known, err := projection.List[run.Run](ctx, x.Docs, projection.Query{
		Workspace: ws, Name: run.Projection, Index: projection.Index{Name: "transcript", Value: file.Digest.String()}, Limit: 1,
	})
	if err != nil || len(known) > 0 {
		return append(known, run.Run{})[0], err
	}
	r := id.New[id.Run](x.IDs)
	ruling, err := x.Gate.Judge(ctx, policy.Action{
		Type: policy.RunImport, Workspace: ws, Principal: origin.Principal, Token: origin.Token, Run: r, Content: file.Digest, Size: file.Size,
	})
	if err == nil && ruling.Decision.Outcome != policy.Allow {
		err = ruling.Decision.Refusal()
	}
	if err != nil {
		return run.Run{}, err
	}
	message := run.Message{ProtocolVersion: run.Protocol}
	for _, a := range t.Asked {
		message.Operations = append(message.Operations, a.Operation)
	}
	if err := x.contentRoom(ctx, ws, 2*file.Size); err != nil { // the file, and the contents that are unpacked from it for the check
		return run.Run{}, err
	}
	defer x.Blobs.Hold()() // until the event names them
	if kept, err := x.Blobs.Put(ctx, content, run.MaxTranscriptBytes); err != nil || kept.Digest != file.Digest {
		return run.Run{}, errors.Join(err, checkKept(kept.Digest, file.Digest))
	}
	recorded := t.Header.Run
	if recorded.Input, err = x.store(ctx, message, run.MaxInputBytes); err != nil {
		return run.Run{}, err
	}
	outcomes, err := x.store(ctx, t.Outcomes, run.MaxTranscriptBytes)
	if err != nil {
		return run.Run{}, err
	}
	draft := event.New(run.EventImported, origin, ws, "", run.ImportedData{Run: r, Recorded: recorded, From: run.Imported{
		Run: recorded.ID, Workspace: recorded.Workspace, Transcript: file, Outcomes: outcomes, Redacted: t.Header.Redacted,
		Carries: len(t.Files) > 0, Attested: attested, By: origin.Principal, At: x.Clock.Now().UTC(),
	}}).In(r, "")
	batch := event.Batch{
		Workspace: ws, Drafts: []event.Draft{draft}, Documents: []event.DocumentVersion{{Projection: run.Projection, Key: string(r)}},
	}
	if key != "" {
		batch.Key, batch.Digest = "import:"+key, file.Digest
	}
	_, receipt, err := x.Gate.Begin(ctx, ruling, "", batch)
	if err != nil {
		return run.Run{}, err
	}
	i := slices.IndexFunc(receipt.Events, func(e event.Event) bool { return e.Type == run.EventImported })
	if i < 0 {
		return run.Run{}, fault.New(fault.Internal, "event_missing", "the log did not return the run's import")
	}
	return x.History.Find(ctx, ws, receipt.Events[i].Run)
}

// checkKept refuses a file that changed after its hash was decided on.
func checkKept(kept, file event.Digest) error {
	if kept == file {
		return nil
	}
	return policy.ErrPermitMismatch
}

// store stores a value as JSON.
func (x *Transcripts) store(ctx context.Context, v any, most int64) (run.Input, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return run.Input{}, err
	}
	stored, err := x.Blobs.Put(ctx, bytes.NewReader(raw), most)
	return run.Input{Digest: stored.Digest, Size: stored.Size}, err
}

// copyImported writes the transcript of an imported run: its original one, without the classes that are to be removed now.
func (x *Transcripts) copyImported(ctx context.Context, doc run.Run, w *run.TranscriptWriter) error {
	content, err := x.Blobs.Open(ctx, doc.Imported.Transcript.Digest)
	if err != nil {
		return err
	}
	defer content.Close()
	t, err := run.ReadTranscript(content)
	if err != nil {
		return err
	}
	return w.Copy(t)
}
