package runapi

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// Transcripts are the operations for transcripts of runs.
type Transcripts struct {
	access.Part
	spaces    *spaces.Service
	runs      *runs.Service
	prover    *audit.Prover
	spool     access.Spool
	of        *Runs
	importing chan struct{} // holds one: a transcript is read into memory as a whole
}

// NewTranscripts returns the operations for transcripts of runs.
func NewTranscripts(p access.Part, spaces *spaces.Service, runs *runs.Service, prover *audit.Prover, spool access.Spool,
	of *Runs) *Transcripts {
	return &Transcripts{p, spaces, runs, prover, spool, of, make(chan struct{}, 1)}
}

// Register adds the operations to the server.
func (s *Transcripts) Register() {
	wire.Stream[struct {
		Run    string `path:"run_id" doc:"The run"`
		Redact string `query:"redact" default:"env" doc:"What is taken out, separated by commas: env, content, output; or none"`
		Files  bool   `query:"files" doc:"Carry the files with which the run began, at most 16 MiB of them and none that the caller may not read, so that it can be replayed elsewhere"`
	}](s.Server, wire.Operation{
		ID: "export-run", Home: wire.AtRun, Needs: wire.Shows("run", "run_id"), Method: http.MethodGet, Path: "/v1/runs/{run_id}/transcript",
		Tag: "runs", Summary: "Export a run as a transcript", Media: "application/x-ndjson",
		Detail: "JSON Lines: a header, the operations, their outcomes, the events of the run, the files it began with, the proof of the " +
			"events, and an end line that holds the " +
			"SHA-256 of all before it; a transcript without its end is cut off. Events have their data only with redact=none. Of an imported run " +
			"it is the transcript with which it came.",
	}, s.exportRun)
	wire.Stream[struct {
		RawBody []byte `contentType:"application/x-ndjson"`
	}](s.Server, wire.Operation{
		ID: "import-run", Needs: wire.Does(policy.RunImport), Method: http.MethodPost, Path: "/v1/runs/import", Tag: "runs",
		Summary: "Import a transcript of a run that was executed elsewhere",
		Repeat:  wire.RepeatByService, Rate: wire.RateFiles, Answers: map[int]any{http.StatusCreated: run.Run{}},
		Detail: "The run becomes a record of its own, with an id of its own, marked as imported: what it says was not done here. Its events " +
			"are held against their hashes, their chain and " +
			"the proof that came with them, and what contradicts itself is refused. The same file again is answered with the first record. At " +
			"most 256 MiB, one import at a time.",
	}, s.importRun)
}

func (s *Transcripts) exportRun(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	what := runs.Export{Redact: []string{run.RedactEnv}}
	switch asked := r.URL.Query().Get("redact"); asked {
	case "":
	case "none":
		what.Redact = nil
	default:
		what.Redact = strings.Split(asked, ",")
	}
	files, err := wire.Boolean(r, "files", false)
	if err != nil {
		return err
	}
	doc, err := s.of.find(r.Context(), c, RunPath{Run: r.PathValue("run_id")})
	if err != nil {
		return err
	}
	if files {
		what.Files = func(ctx context.Context, doc run.Run, start run.Snapshot) (io.ReadCloser, int, error) {
			return s.carried(ctx, c, doc, start)
		}
	}
	what.Prove = func(ctx context.Context, doc run.Run) (*run.Proof, error) {
		return s.prover.ProveRun(ctx, doc.Workspace, doc.ID)
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": string(doc.ID) + ".jsonl"}))
	return s.runs.Transcripts.Write(r.Context(), doc.Workspace, doc.ID, what, w)
}

// carried returns the archive of the files with which a run began. It spools the archive first, so that a slow reader does not block the
// space's snapshots.
func (s *Transcripts) carried(ctx context.Context, c wire.Call, doc run.Run, start run.Snapshot) (io.ReadCloser, int, error) {
	read, write := io.Pipe()
	done := make(chan int, 1)
	go func() {
		omitted, err := s.spaces.Snapshots.Carry(ctx, c.Origin(), doc.Workspace, doc.Space, start.Root, run.MaxCarriedContent, write)
		write.CloseWithError(err)
		done <- omitted
	}()
	source := &access.Body{Reader: read}
	spooled, _, err := s.spool(ctx, source, run.MaxCarriedArchive)
	read.CloseWithError(err) // where the spool gave up, the archive ends too
	omitted := <-done
	if source.Broken != nil {
		err = source.Broken
	}
	return spooled, omitted, err
}

// again rewinds the spooled content to its beginning.
func again(spooled io.Seeker) error {
	_, err := spooled.Seek(0, io.SeekStart)
	return err
}

func (s *Transcripts) importRun(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-ndjson" {
		return fault.New(fault.Invalid, "unsupported_media_type", "a transcript is sent with `Content-Type: application/x-ndjson`")
	}
	select {
	case s.importing <- struct{}{}:
		defer func() { <-s.importing }()
	default:
		return fault.New(fault.Unavailable, "busy", "another transcript is being imported; send it again in a moment")
	}
	tooLarge := fault.New(fault.Exhausted, "transcript_too_large", "a transcript that is imported may have %d bytes", run.MaxTranscriptBytes)
	if r.ContentLength > run.MaxTranscriptBytes {
		return tooLarge
	}
	sent := &access.Body{Reader: s.Patient(w, r)}
	spooled, ref, err := s.spool(r.Context(), sent, run.MaxTranscriptBytes)
	switch {
	case fault.CodeOf(err) == "content_too_large":
		err = tooLarge
	case err != nil && sent.Broken != nil:
		err = access.Unreadable(sent.Broken)
	}
	if err != nil {
		return err
	}
	defer spooled.Close()
	t, err := run.ReadTranscript(spooled)
	if err != nil {
		return err
	}
	attested, err := audit.Attest(&t)
	if err != nil {
		return err
	}
	if err := again(spooled); err != nil {
		return err
	}
	doc, err := s.runs.Transcripts.Import(c.Lasting(r.Context()), c.Origin(), c.Caller.Workspace, t, run.Input{Digest: ref.Digest,
		Size: ref.Size}, spooled, attested, c.ServiceKey())
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/runs/"+string(doc.ID))
	return wire.AnswerJSON(w, http.StatusCreated, doc)
}
