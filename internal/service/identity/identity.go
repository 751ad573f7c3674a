// Package identity keeps the principals: people, agents, services and engines, with their keys and capability tokens.
//
// It decides who may give what to whom. The gate decides whether a principal may manage principals at all.
package identity

import (
	"context"
	"errors"
	"io"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log     journal.Journal
	Docs    projection.Reader // of the gate's definitions
	Gate    policy.Gate
	Clock   event.Clock
	IDs     *id.Source
	Entropy io.Reader // of keys and of secrets
	Secret  []byte    // under which the tokens of engines and of sessions are sealed

	BootstrapToken string // by which the first login of a workspace is set; "" for none
}

// Service keeps the principals and their credentials. Its parts are objects of their own, each in the file of its name. Make it with New;
// any goroutine may call its methods.
type Service struct {
	*core
	*callers
	*people
	*keys
	*sessions
	*tokens
	*engines
}

// New returns a service of the given parts.
func New(parts Parts) *Service {
	c := &core{Parts: parts}
	p := &people{c}
	t := &tokens{c}
	return &Service{
		core: c, callers: &callers{c}, people: p, keys: &keys{c},
		sessions: &sessions{c, p, make(chan struct{}, maxHashing), scryptN}, tokens: t, engines: &engines{c, t},
	}
}

// core is the shared code of the service's parts: it reads the acting principal and drafts events.
type core struct {
	Parts
	parsed       projection.Known[principal.Principal]
	parsedTokens projection.Known[token.Token]
	tenants      projection.Known[workspace.Workspace]
}

var (
	errNobody = fault.New(fault.NotFound, "principal_not_found", "there is no such principal in this workspace")
	// errStranger is errNobody about the acting principal.
	errStranger = fault.New(fault.Denied, policy.ReasonPrincipalNotFound, "there is no such principal in this workspace")
)

// acting returns the acting principal, or the one in whose name somebody acts. It reads it each time: authority is never cached.
func (r *core) acting(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Principal, error) {
	doc, _, err := r.parsed.Load(ctx, r.Docs, ws, principal.Projection, string(p))
	if errors.Is(err, projection.ErrNotFound) || err == nil && doc.ID != p {
		return principal.Principal{}, errStranger
	}
	return doc, err
}

// who returns a principal of the workspace.
func (r *core) who(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Principal, uint64, error) {
	doc, version, err := projection.Load[principal.Principal](ctx, r.Docs, ws, principal.Projection, string(p))
	if errors.Is(err, projection.ErrNotFound) || err == nil && doc.ID != p {
		return principal.Principal{}, 0, errNobody
	}
	return doc, version, err
}

// reaches reports whether who manages target: who is a person with the role admin or above, and target's role is not above theirs.
func reaches(who, target principal.Principal) bool {
	return who.Kind == id.User && !who.Quarantined && who.Role.AtLeast(principal.Admin) && (target.Kind != id.User ||
		who.Role.AtLeast(target.Role))
}

// issuer returns who counts as having issued a credential that origin makes.
func (r *core) issuer(ctx context.Context, ws id.Workspace, origin event.Origin) (id.Principal, error) {
	if origin.Issuer == "" {
		return principal.IssuerOf(origin, ""), nil
	}
	by, _, err := r.who(ctx, ws, origin.Issuer)
	if err != nil && !errors.Is(err, errNobody) {
		return "", err
	}
	return principal.IssuerOf(origin, by.Role), nil
}

// draft makes an event of the workspace about a thing.
func (r *core) draft(typ string, origin event.Origin, ws id.Workspace, data any, entity, key string) event.Draft {
	d := event.New(typ, origin, ws, "", data).About(entity, key)
	d.OccurredAt = r.Clock.Now().UTC()
	return d
}

// refused records that the gate refuses what policy alone would not: why is the refusal, and is returned.
func (r *core) refused(ctx context.Context, origin event.Origin, a policy.Action, why error) error {
	return policy.RecordRefusal(ctx, r.Gate, r.Log.Append, origin, a, why)
}

// mayGive checks that the person who gives a role manages people and has that role or a higher one.
func (r *core) mayGive(ctx context.Context, p id.Principal, ws id.Workspace, role principal.Role) error {
	who, err := r.acting(ctx, ws, p)
	if err != nil {
		return err
	}
	if !role.AtLeast(principal.Viewer) {
		return principal.ErrInvalidRole
	}
	if who.Kind != id.User || who.Quarantined || !who.Role.AtLeast(principal.Admin) || !who.Role.AtLeast(role) {
		return principal.ErrMayNotGive
	}
	return nil
}

// derived returns a capability token and those that it was derived from, up to the root. It reads them each time, so that the revocation of
// one affects all below it at once. It returns token.ErrNotFound if one of them does not exist.
func (r *core) derived(ctx context.Context, ws id.Workspace, t id.Token) ([]token.Token, error) {
	return token.Chain(t, func(t id.Token) (token.Token, error) {
		doc, _, err := r.parsedTokens.Load(ctx, r.Docs, ws, token.Projection, string(t))
		if errors.Is(err, projection.ErrNotFound) {
			err = token.ErrNotFound
		}
		return doc, err
	})
}

// living refuses to record anything in an archived workspace. It returns the document versions that the log must expect, so that the record
// and an archiving are ordered.
func (r *core) living(ctx context.Context, ws id.Workspace) ([]event.DocumentVersion, error) {
	if ws == id.DefaultWorkspace {
		return nil, nil
	}
	doc, version, err := r.tenants.Load(ctx, r.Docs, ws, workspace.Workspaces, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return nil, err
	}
	if doc.Archived() {
		return nil, workspace.ErrArchived
	}
	return []event.DocumentVersion{{Projection: workspace.Workspaces, Key: string(ws), Version: version}}, nil
}
