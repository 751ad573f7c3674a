package hostapi

import (
	"mime"
	"net/http"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/transfer"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// workspaceMedia is the type of a workspace's file.
const workspaceMedia = "application/gzip"

// importedWorkspace describes an imported workspace.
type importedWorkspace struct {
	Workspace id.Workspace `json:"workspace_id"`
	File      event.Digest `json:"file_sha256"`
	Made      time.Time    `json:"made_at" doc:"When the file was written"`
	Events    uint64       `json:"events"`
	Contents  int          `json:"contents"`
	Missing   int          `json:"contents_missing" doc:"That events name and that were not there any more"`
	Root      string       `json:"root_hash" doc:"Of the tree over all events, in base64"`
	Signed    uint64       `json:"checkpoint_size" doc:"Of the last checkpoint that was signed for it elsewhere; 0 for none"`
	PublicKey string       `json:"public_key" doc:"That verifies it"`
	Spaces    int          `json:"spaces_ended" doc:"That lived there; their files stayed there"`
}

// Workspaces are the operations for the file of a whole workspace.
type Workspaces struct {
	access.Part
	transfer *transfer.Importer
	spool    access.Spool
	most     int64
}

// NewWorkspaces returns the operations for the file of a whole workspace.
func NewWorkspaces(p access.Part, transfer *transfer.Importer, spool access.Spool, most int64) *Workspaces {
	return &Workspaces{p, transfer, spool, most}
}

// Register adds the operations to the server.
func (s *Workspaces) Register() {
	wire.Stream[struct {
		Key     string `query:"public_key" maxLength:"1000" doc:"The key that must have signed the checkpoint in the file; the one that came along unless given"`
		RawBody []byte `contentType:"application/gzip"`
	}](s.Server, wire.Operation{
		ID: "import-workspace", Home: wire.AtLeader, Needs: wire.Does(policy.WorkspaceImport).From(principal.Admin), Method: http.MethodPost,
		Path: "/v1/workspaces/import", Tag: "service", Summary: "Take in a workspace of another installation",
		Repeat: wire.RepeatByService, Rate: wire.RateFiles, Waits: true, Answers: map[int]any{http.StatusCreated: importedWorkspace{}},
		Detail: "The file is what `agentbox export` writes. Its events are recorded exactly as they were, so that what was proven elsewhere " +
			"holds here: all of them in one step, when the " +
			"whole file was held against its hashes and its checkpoint, or none. The workspace must have no events here. Its spaces end as moved. " +
			"Whoever writes to the log waits meanwhile. " +
			"Only owners and admins of ws_dev may, one at a time.",
	}, s.importWorkspace)
}

func (s *Workspaces) importWorkspace(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != workspaceMedia {
		return fault.New(fault.Invalid, "unsupported_media_type", "a workspace is sent with `Content-Type: %s`", workspaceMedia)
	}
	file := transfer.File{}
	if key := r.URL.Query().Get("public_key"); key != "" {
		var err error
		if file.Key, err = merkle.ParsePublicKey(key); err != nil {
			return err
		}
	}
	most := s.most
	tooLarge := fault.New(fault.Exhausted, "workspace_file_too_large", "the file of a workspace that is sent may have %d bytes", most).
		With("stop the daemon and import it into its data directory: agentbox import FILE")
	if r.ContentLength > most {
		return tooLarge
	}
	if err := s.transfer.May(r.Context(), c.Origin(), c.Caller.Workspace); err != nil {
		return err // before anything of it is kept
	}
	sent := &access.Body{Reader: s.Patient(w, r)}
	spooled, ref, err := s.spool(r.Context(), sent, most)
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
	file.Ref, file.Content = ref, spooled
	doc, err := s.transfer.Import(c.Lasting(r.Context()), c.Origin(), c.Caller.Workspace, file, c.ServiceKey())
	if err != nil {
		return err
	}
	return wire.AnswerJSON(w, http.StatusCreated, imported(doc))
}

func imported(i workspace.Import) importedWorkspace {
	return importedWorkspace{
		Workspace: i.Workspace, File: i.File, Made: i.Made, Events: i.Events, Contents: i.Contents, Missing: i.Missing, Root: i.Root,
		Signed:    i.Signed,
		PublicKey: i.PublicKey, Spaces: i.Spaces,
	}
}
