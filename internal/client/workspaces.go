package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"agentbox/internal/domain/id"
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

// ImportWorkspace sends the file of a workspace, of size bytes, or -1 where that is not known. An empty public key means the one that came along;
// the same idempotency key, which may be empty, imports once, however often it is sent.
func (c *Client) ImportWorkspace(ctx context.Context, file io.Reader, size int64, publicKey, key string) (ImportedWorkspace, error) {
	var done ImportedWorkspace
	q := request{method: http.MethodPost, path: "/v1/workspaces/import", body: file, size: size, media: "application/gzip", header: idempotent(key)}
	if publicKey != "" {
		q.query = url.Values{"public_key": {publicKey}}
	}
	err := c.exchange(ctx, q, &done)
	return done, err
}
