package peopleapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/service/workspaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// workspaceRequest asks for a workspace. Missing fields take their defaults.
type workspaceRequest struct {
	Workspace id.Workspace   `json:"workspace_id,omitempty" maxLength:"63" doc:"ws_ and 1 to 60 of a-z, 0-9, - and _; a new one unless given"`
	Kind      workspace.Kind `json:"kind,omitempty" enum:"community,private" doc:"private unless given"`
	Name      string         `json:"display_name,omitempty"`
	Tasks     int            `json:"max_concurrent_tasks,omitempty" minimum:"1" maximum:"1000" doc:"5 unless given"`
	Owner     string         `json:"owner_name,omitempty" doc:"How its owner is called"`
}

// madeWorkspace is a workspace that was made, and how its owner gets in.
type madeWorkspace struct {
	workspace.Workspace
	Owner id.Principal `json:"owner_principal_id"`
	KeyID id.Key       `json:"key_id"`
	Key   string       `json:"key,omitempty" doc:"The owner's first key. Shown once: a repeat of the request does not have it"`
}

// workspaceChange says what changes of a workspace.
type workspaceChange struct {
	Name  string `json:"display_name,omitempty"`
	Tasks int    `json:"max_concurrent_tasks,omitempty" minimum:"1" maximum:"1000" doc:"How many of its runs run at the same time; the others wait"`
}

type archiveRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

type workspaceList struct {
	Workspaces []workspace.Workspace `json:"workspaces" nullable:"false"`
	Next       string                `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

// WorkspacePath names a workspace.
type WorkspacePath struct {
	Workspace string `path:"workspace_id" doc:"The workspace"`
}

// Tenants are the operations for workspaces.
type Tenants struct {
	access.Part
	workspaces *workspaces.Service
}

// NewTenants returns the operations for workspaces.
func NewTenants(p access.Part, workspaces *workspaces.Service) *Tenants {
	return &Tenants{p, workspaces}
}

// Register adds the operations to the server.
func (s *Tenants) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "create-workspace", Needs: wire.Does(policy.WorkspaceCreate), Method: http.MethodPost, Path: "/v1/workspaces", Tag: "service",
		Summary: "Make a workspace",
		Status:  http.StatusCreated, Repeat: wire.RepeatByService,
		Detail: "Only owners and admins of ws_dev may. The answer has the first key of the new workspace's owner, which is shown once.",
	}, func(ctx context.Context, c wire.Call, in *struct{ Body workspaceRequest }) (*struct{ Body madeWorkspace }, error) {
		b := in.Body
		made, err := s.workspaces.Create(ctx, c.Once(), c.Caller.Workspace, workspaces.Request{
			Created: workspace.Created{Workspace: b.Workspace, Kind: b.Kind, Name: b.Name, Tasks: b.Tasks}, Owner: b.Owner,
		})
		return &struct{ Body madeWorkspace }{madeWorkspace{made.Workspace, made.Owner, made.Key.ID, made.Text}}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "list-workspaces", Needs: wire.Shows("workspace"), Method: http.MethodGet, Path: "/v1/workspaces", Tag: "service",
		Summary: "List workspaces, by name",
		Detail:  "The owners and admins of ws_dev see every workspace of the installation, everybody else their own.",
	}, func(ctx context.Context, c wire.Call, in *access.Page[id.Workspace]) (*struct{ Body workspaceList }, error) {
		found, err := s.workspaces.List(ctx, c.Caller, in.Cursor.After, in.Limit+1)
		out := workspaceList{}
		out.Workspaces, out.Next = access.Cut(found, in.Limit, func(w workspace.Workspace) string { return string(w.ID) })
		return &struct{ Body workspaceList }{out}, err
	})
	wire.Handle(s.Server, wire.Operation{ID: "get-workspace", Needs: wire.Shows("workspace"), Method: http.MethodGet,
		Path: "/v1/workspaces/{workspace_id}", Tag: "service", Summary: "Show a workspace"},
		func(ctx context.Context, c wire.Call, in *WorkspacePath) (*struct{ Body workspace.Workspace }, error) {
			found, err := s.workspaces.Workspace(ctx, c.Caller, id.Workspace(in.Workspace))
			return &struct{ Body workspace.Workspace }{found}, err
		})
	wire.Handle(s.Server, wire.Operation{
		ID: "archive-workspace", Needs: wire.Does(policy.WorkspaceArchive).From(principal.Admin), Method: http.MethodPost,
		Path: "/v1/workspaces/{workspace_id}/archive", Tag: "service", Summary: "Archive a workspace",
		Repeat: wire.RepeatByService,
		Detail: "Nothing is done or said in it any more; everything in it can be read, redacted, and ended. Its own owners and admins may, and " +
			"those of ws_dev, who may unarchive it.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		WorkspacePath
		Body archiveRequest
	}) (*struct{ Body workspace.Workspace }, error) {
		done, err := s.workspaces.Archive(ctx, c.Once(), c.Caller, id.Workspace(in.Workspace), in.Body.Reason)
		return &struct{ Body workspace.Workspace }{done}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "unarchive-workspace", Needs: wire.Does(policy.WorkspaceUnarchive).From(principal.Admin), Method: http.MethodPost,
		Path: "/v1/workspaces/{workspace_id}/unarchive", Tag: "service", Summary: "Unarchive a workspace",
		Repeat: wire.RepeatByService,
		Detail: "Everything in it goes on as it was. Only owners and admins of ws_dev may.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		WorkspacePath
		Body archiveRequest
	}) (*struct{ Body workspace.Workspace }, error) {
		done, err := s.workspaces.Unarchive(ctx, c.Once(), c.Caller, id.Workspace(in.Workspace), in.Body.Reason)
		return &struct{ Body workspace.Workspace }{done}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "update-workspace", Needs: wire.Does(policy.WorkspaceUpdate).From(principal.Admin), Method: http.MethodPatch,
		Path: "/v1/workspaces/{workspace_id}", Tag: "service", Summary: "Change a workspace", Repeat: wire.RepeatByService,
		Detail: "How it is called and how many of its runs run at the same time; what is left out stays. A lower number ends nothing: what " +
			"runs goes on, and nothing else starts before there is room. Only owners and admins of ws_dev may.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		WorkspacePath
		Body workspaceChange
	}) (*struct{ Body workspace.Workspace }, error) {
		done, err := s.workspaces.Update(ctx, c.Once(), c.Caller, workspace.Updated{Workspace: id.Workspace(in.Workspace),
			Name: in.Body.Name, Tasks: in.Body.Tasks})
		return &struct{ Body workspace.Workspace }{done}, err
	})
}
