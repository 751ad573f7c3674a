// Package authority reads the acting principal, their capability tokens, and whether the workspace is active.
//
// It reads everything each time: authority is never cached.
package authority

import (
	"context"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the reader.
type Parts struct {
	Docs  projection.Reader
	Clock event.Clock
}

// Reader reads the documents on which authority rests. Make it with New; any goroutine may call its methods.
type Reader struct {
	Parts
	people  projection.Known[principal.Principal]
	tokens  projection.Known[token.Token]
	tenants projection.Known[workspace.Workspace]
}

// New returns a reader of the given parts.
func New(parts Parts) *Reader { return &Reader{Parts: parts} }

// ErrNobody means that the workspace does not know a principal.
var ErrNobody = fault.New(fault.Denied, policy.ReasonPrincipalNotFound, "there is no such principal in this workspace")

// ErrNotDecider refuses an answer from somebody whose role does not reach.
var ErrNotDecider = fault.New(fault.Denied, policy.ReasonRoleTooLow, "your role may not decide this").
	With("An operator decides what happens once inside; an admin or the owner decides what leaves the machine, and standing approvals.")

// Person is Who, with the version of the document.
func (r *Reader) Person(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Principal, uint64, error) {
	doc, version, err := r.people.Load(ctx, r.Docs, ws, principal.Projection, string(p))
	if errors.Is(err, projection.ErrNotFound) || err == nil && doc.ID != p {
		return principal.Principal{}, 0, ErrNobody
	}
	return doc, version, err
}

// Who returns the principal's document. It reads it each time: authority is never cached.
func (r *Reader) Who(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Principal, error) {
	doc, _, err := r.Person(ctx, ws, p)
	return doc, err
}

// Chain returns a capability token and those that it was derived from, up to the root. It reads them each time, so that the revocation of
// one affects all below it at once. It returns token.ErrNotFound if one of them does not exist.
func (r *Reader) Chain(ctx context.Context, ws id.Workspace, t id.Token) ([]token.Token, error) {
	return token.Chain(t, func(t id.Token) (token.Token, error) {
		doc, _, err := r.tokens.Load(ctx, r.Docs, ws, token.Projection, string(t))
		if errors.Is(err, projection.ErrNotFound) {
			err = token.ErrNotFound
		}
		return doc, err
	})
}

// Permits checks whether a capability token, and every token that it was derived from, permits a use. It refuses if a principal who handed
// the token on is quarantined: the tokens that they handed on are suspended with them. Code is "" if the use is permitted.
func (r *Reader) Permits(ctx context.Context, ws id.Workspace, t id.Token, holder func(id.Principal) (bool, error), u token.Use) (code,
	reason string, err error) {
	chain, err := r.Chain(ctx, ws, t)
	if errors.Is(err, token.ErrNotFound) {
		return policy.ReasonTokenNotFound, token.ErrNotFound.Msg, nil
	}
	if err != nil {
		return "", "", err
	}
	holds, err := holder(chain[0].IssuedTo)
	if err != nil {
		return "", "", err
	}
	if !holds {
		return policy.ReasonTokenMismatch, "the capability token was issued to somebody else", nil
	}
	for _, doc := range chain {
		from, err := r.Who(ctx, ws, doc.GrantedBy)
		if err != nil && !errors.Is(err, ErrNobody) {
			return "", "", err
		}
		if err != nil || from.Quarantined {
			return policy.ReasonAgentQuarantined, "whoever granted the capability token, or one that it was derived from, is quarantined", nil
		}
	}
	code, reason = token.Permits(chain, u, r.Clock.Now())
	return code, reason, nil
}

// Living refuses a record in an archived workspace for which no judgement was made. It returns the document versions that the log must
// expect, so that the record and a concurrent archiving are ordered.
func (r *Reader) Living(ctx context.Context, ws id.Workspace) ([]event.DocumentVersion, error) {
	if ws == id.DefaultWorkspace {
		return nil, nil
	}
	doc, version, err := r.Workspace(ctx, ws)
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return nil, err
	}
	if doc.Archived() {
		return nil, workspace.ErrArchived
	}
	return []event.DocumentVersion{{Projection: workspace.Workspaces, Key: string(ws), Version: version}}, nil
}

// Workspace returns the document of a workspace and its version. projection.ErrNotFound means that it has none.
func (r *Reader) Workspace(ctx context.Context, ws id.Workspace) (workspace.Workspace, uint64, error) {
	return r.tenants.Load(ctx, r.Docs, ws, workspace.Workspaces, string(ws))
}
