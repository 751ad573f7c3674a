package keys

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/vault"
)

// Grants keeps the grants of logins at MCP servers in a folder, sealed as keys are. Any goroutine may call its methods.
type Grants struct{ *files }

var _ mcp.Grants = (*Grants)(nil)

// OpenGrants returns a store of grants in a folder, which it makes.
func OpenGrants(folder string, sealing vault.Keys, entropy io.Reader) (*Grants, error) {
	kept, err := openFiles(folder, "mcp-logins/", mcp.MaxGrant, sealing, entropy)
	return &Grants{kept}, err
}

// Grant implements mcp.Grants. A grant that cannot be opened is none: a person logs in again.
func (g *Grants) Grant(_ context.Context, ws id.Workspace, server string) (mcp.Grant, error) {
	content, err := g.read(ws, server)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errBroken) {
		return mcp.Grant{}, mcp.ErrLogin
	}
	return mcp.NewGrant(string(content)), err
}

// Keep implements mcp.Grants.
func (g *Grants) Keep(_ context.Context, permit policy.Permit, ws id.Workspace, server string, grant mcp.Grant) error {
	a, err := permit.Redeem(policy.MCPConfigure)
	if err != nil {
		return err
	}
	if a.Workspace != ws || a.Subject != server || a.Method != mcp.MethodLogin {
		return policy.ErrPermitMismatch
	}
	return g.write(ws, server, []byte(grant.Reveal()))
}

// Renew implements mcp.Grants.
func (g *Grants) Renew(_ context.Context, ws id.Workspace, server string, grant mcp.Grant) error {
	return g.write(ws, server, []byte(grant.Reveal()))
}

// Forget implements mcp.Grants. Nobody can open the copy in a backup of the folder any more.
func (g *Grants) Forget(_ context.Context, ws id.Workspace, server string) error {
	return g.forget(ws, server)
}
