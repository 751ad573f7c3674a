package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/workspace"
)

// ImportedWorkspace says what a daemon took in.
type ImportedWorkspace struct {
	Workspace id.Workspace `json:"workspace_id"`
	Events    uint64       `json:"events"`
	Contents  int          `json:"contents"`
	Missing   int          `json:"contents_missing"`
	Root      string       `json:"root_hash"`
	Signed    uint64       `json:"checkpoint_size"` // 0 where none was signed
	PublicKey string       `json:"public_key"`
	Spaces    int          `json:"spaces_ended"`
}

// ImportWorkspace sends the file of a workspace, of size bytes, or -1 where that is not known. An empty public key means the one that
// came along; the same idempotency key, which may be empty, imports once, however often it is sent.
func (c *Client) ImportWorkspace(ctx context.Context, file io.Reader, size int64, publicKey, key string) (ImportedWorkspace, error) {
	var done ImportedWorkspace
	q := request{method: http.MethodPost, path: "/v1/workspaces/import", body: file, size: size, media: "application/gzip",
		header: idempotent(key)}
	if publicKey != "" {
		q.query = url.Values{"public_key": {publicKey}}
	}
	err := c.exchange(ctx, q, &done)
	return done, err
}

// WorkspaceRequest asks for a workspace; missing fields take the daemon's defaults.
type WorkspaceRequest struct {
	Workspace id.Workspace `json:"workspace_id,omitempty"`
	Kind      string       `json:"kind,omitempty"` // community or private
	Name      string       `json:"display_name,omitempty"`
	Tasks     int          `json:"max_concurrent_tasks,omitempty"`
	Owner     string       `json:"owner_name,omitempty"`
}

// MadeWorkspace is a workspace that was made, and the first key of its owner, which is shown once.
type MadeWorkspace struct {
	workspace.Workspace
	Owner id.Principal `json:"owner_principal_id"`
	KeyID id.Key       `json:"key_id"`
	Key   string       `json:"key,omitempty"`
}

// WorkspaceList is a page of workspaces, by name.
type WorkspaceList struct {
	Workspaces []workspace.Workspace `json:"workspaces"`
	Next       string                `json:"next_cursor"` // empty at the end
}

// CreateWorkspace makes a workspace.
func (c *Client) CreateWorkspace(ctx context.Context, q WorkspaceRequest) (MadeWorkspace, error) {
	var made MadeWorkspace
	err := c.post(ctx, "/v1/workspaces", q, &made)
	return made, err
}

// Workspaces lists the workspaces that the key's principal sees.
func (c *Client) Workspaces(ctx context.Context, p Page) (WorkspaceList, error) {
	var l WorkspaceList
	err := c.get(ctx, "/v1/workspaces", p.values(), &l)
	return l, err
}

// Workspace returns a workspace.
func (c *Client) Workspace(ctx context.Context, ws id.Workspace) (workspace.Workspace, error) {
	var found workspace.Workspace
	err := c.get(ctx, join("/v1/workspaces/", escape(string(ws))), nil, &found)
	return found, err
}

// WorkspaceChange is a change of a workspace; zero fields stay as they are.
type WorkspaceChange struct {
	Name  string `json:"display_name,omitempty"`
	Tasks int    `json:"max_concurrent_tasks,omitempty"`
}

// UpdateWorkspace changes how a workspace is called and how many of its runs run at the same time.
func (c *Client) UpdateWorkspace(ctx context.Context, ws id.Workspace, q WorkspaceChange) (workspace.Workspace, error) {
	var done workspace.Workspace
	err := c.call(ctx, http.MethodPatch, join("/v1/workspaces/", escape(string(ws))), nil, q, &done, nil)
	return done, err
}

// UnarchiveWorkspace lets things be done in an archived workspace again.
func (c *Client) UnarchiveWorkspace(ctx context.Context, ws id.Workspace, reason string) (workspace.Workspace, error) {
	var done workspace.Workspace
	err := c.post(ctx, join("/v1/workspaces/", escape(string(ws)), "/unarchive"), map[string]string{"reason": reason}, &done)
	return done, err
}

// ArchiveWorkspace ends what is done in a workspace until it is unarchived.
func (c *Client) ArchiveWorkspace(ctx context.Context, ws id.Workspace, reason string) (workspace.Workspace, error) {
	var done workspace.Workspace
	err := c.post(ctx, join("/v1/workspaces/", escape(string(ws)), "/archive"), map[string]string{"reason": reason}, &done)
	return done, err
}
