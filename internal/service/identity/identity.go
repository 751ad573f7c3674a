// Package identity keeps who may act: people, agents, services and engines, their keys and capability tokens.
//
// It decides who may give what to whom; whether somebody may keep principals at all is the gate's to say.
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
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are what a registrar is made of.
type Parts struct {
	Log     journal.Journal
	Docs    projection.Reader // of the gate's definitions
	Gate    policy.Gate
	Clock   event.Clock
	IDs     *id.Source
	Entropy io.Reader // of secrets
	Secret  []byte    // under which secrets are sealed; the gate has the same

	BootstrapToken string // by which the first login of a workspace is set; "" for none
}

// Service keeps principals and what they act with. Make it with New; every method may be called from any goroutine.
type Service struct {
	Parts
	hashing chan struct{} // holds those who stretch a passphrase
}

// New returns a registrar of the given parts.
func New(parts Parts) *Service { return &Service{parts, make(chan struct{}, maxHashing)} }

var errNobody = fault.New(fault.NotFound, "principal_not_found", "there is no such principal in this workspace")

// who returns a principal of the workspace.
func (r *Service) who(ctx context.Context, ws id.Workspace, p id.Principal) (principal.Principal, uint64, error) {
	doc, version, err := projection.Load[principal.Principal](ctx, r.Docs, ws, principal.Projection, string(p))
	if errors.Is(err, projection.ErrNotFound) || err == nil && doc.ID != p {
		return principal.Principal{}, 0, errNobody
	}
	return doc, version, err
}

// reaches reports whether one principal keeps another: he is a person of the role admin at least, and not below the other.
func reaches(who, target principal.Principal) bool {
	return who.Kind == id.User && !who.Quarantined && who.Role.AtLeast(principal.Admin) && (target.Kind != id.User || who.Role.AtLeast(target.Role))
}

// issuer returns who counts as having issued a credential that origin makes.
func (r *Service) issuer(ctx context.Context, ws id.Workspace, origin event.Origin) (id.Principal, error) {
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
func (r *Service) draft(typ string, origin event.Origin, ws id.Workspace, data any, entity, key string) event.Draft {
	d := event.New(typ, origin, ws, "", data).About(entity, key)
	d.OccurredAt = r.Clock.Now().UTC()
	return d
}
