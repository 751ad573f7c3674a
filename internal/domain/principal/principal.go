// Package principal describes the principals: people, agents and services, their roles, and the keys that identify them.
package principal

import (
	"cmp"
	"crypto/subtle"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Role is the role of a person in a workspace, which sets their rights. Agents and services have none.
type Role string

// The roles, from the mightiest to the least. The owner of a workspace is its overlord.
const (
	Overlord Role = "overlord"
	Admin    Role = "admin"
	Operator Role = "operator"
	Member   Role = "member"
	Viewer   Role = "viewer"
)

var rank = map[Role]int{Overlord: 5, Admin: 4, Operator: 3, Member: 2, Viewer: 1}

// AtLeast reports whether the role is another one or mightier. An unknown role is nothing.
func (r Role) AtLeast(other Role) bool { return rank[r] >= rank[other] && rank[r] > 0 }

// Issues reports whether a person of this role may receive a credential that lets them act as a person of the other role. An owner may for
// everybody except owners. An admin may for those who neither manage principals nor answer questions. So nobody gets the credential of a
// peer who could be their second person in the two-person rule.
func (r Role) Issues(other Role) bool {
	switch r {
	case Overlord:
		return other != Overlord
	case Admin:
		return !other.AtLeast(Operator)
	}
	return false
}

// System is the daemon itself, as the principal that ends expired things.
const System id.Principal = "svc_00000000000000000000000000"

// Principal is the document of a principal.
type Principal struct {
	ID          id.Principal     `json:"principal_id"`
	Workspace   id.Workspace     `json:"workspace_id"`
	Kind        id.PrincipalKind `json:"kind"`
	Role        Role             `json:"role,omitempty"` // of a user
	Name        string           `json:"display_name"`
	Quarantined bool             `json:"quarantined,omitempty"`  // it exists and may do nothing
	Reason      string           `json:"reason,omitempty"`       // of the quarantine
	Legacy      string           `json:"legacy_actor,omitempty"` // type:id, by which another program knew it
	CreatedBy   id.Principal     `json:"created_by,omitempty"`
	CreatedAt   time.Time        `json:"created_at"`
}

// ParseRole reads a role.
func ParseRole(text string) (Role, error) {
	if role := Role(text); rank[role] > 0 {
		return role, nil
	}
	return "", ErrInvalidRole
}

// ErrInvalidRole refuses an unknown role.
var ErrInvalidRole = fault.New(fault.Invalid, "invalid_role", "the role must be overlord, admin, operator, member or viewer")

// ErrMayNotGive refuses to give somebody more than one has, or to keep principals without the role for it.
var ErrMayNotGive = fault.New(fault.Denied, policy.ReasonRoleTooLow,
	"only an owner or an admin keeps principals, and nobody gives more rights than they have, or changes principals above them").
	With("Ask an owner.")

// MaxName is the length of a display name in bytes.
const MaxName = 200

// ErrInvalidName refuses a display name that is empty, too long or not plain text.
var ErrInvalidName = fault.New(fault.Invalid, "invalid_display_name", "a name must be 1 to %d bytes of text in one line", MaxName)

// CheckName refuses names that cannot be shown safely.
func CheckName(name string) error {
	if name == "" || len(name) > MaxName || strings.TrimSpace(name) != name || strings.ToValidUTF8(name, "") != name ||
		strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }) {
		return ErrInvalidName
	}
	return nil
}

// Key is the document of an API key. The key itself is shown once and stored nowhere.
type Key struct {
	ID        id.Key       `json:"key_id"`
	Workspace id.Workspace `json:"workspace_id"`
	Principal id.Principal `json:"principal_id"`
	Hash      event.Digest `json:"secret_sha256"`
	Name      string       `json:"name,omitempty"`
	IssuedBy  id.Principal `json:"issued_by,omitempty"` // a principal who may know it besides its owner
	CreatedAt time.Time    `json:"created_at"`
	RevokedAt time.Time    `json:"revoked_at,omitzero"`
}

// Opens reports, in a time that does not depend on where they differ, whether a bearer is this key and the key is in force.
func (k Key) Opens(bearer string) bool {
	hash := HashBearer(bearer)
	return subtle.ConstantTimeCompare(hash[:], k.Hash[:]) == 1 && k.ID != "" && k.RevokedAt.IsZero()
}

// SpaceAgent is how the name of the agent begins that a space has for itself; the id of the space follows.
const SpaceAgent = "agent-of-"

// Caller is who a request comes from, as its credentials say.
type Caller struct {
	Principal id.Principal // the acting principal
	Workspace id.Workspace
	Role      Role         // of a person
	Key       id.Key       // "" where it was another credential
	Session   id.Session   // "" where it was another credential
	Engine    bool         // it is known by the token of an engine
	Token     id.Token     // the capability token under which they act; "" if they act with their full rights
	By        id.Principal // the authenticated principal, if that is another one who acts for the principal
	Issuer    id.Principal // the issuer of the credential, if that is not the principal whom it names
}

// IssuerOf returns the principal who counts as the issuer of a credential that origin makes. Role is the role of origin's own issuer.
// Normally the issuer is the principal who makes the credential. If that principal acts with a credential from somebody else, that issuer
// counts instead. So nobody can hide the origin of a credential by making a second one with it. Credentials that an owner issued are the
// exception. Otherwise nobody could ever make a credential that counts as their own.
func IssuerOf(origin event.Origin, role Role) id.Principal {
	if origin.Issuer != "" && role != Overlord {
		return origin.Issuer
	}
	return cmp.Or(origin.By, origin.Principal)
}

// ErrUnauthenticated refuses a request without a valid key. Its text is the same for every fault of a key.
var ErrUnauthenticated = fault.New(fault.Denied, "unauthenticated", "this needs a valid API key").
	With("Send the header Authorization: Bearer KEY. On the daemon's own machine the key lies in owner.key in its data directory.")

// MayActFor reports whether a principal may act for another. Services, owners and admins may act for an agent; nobody acts for anybody
// else.
func (p Principal) MayActFor(other Principal) bool {
	return other.Kind == id.Agent && !p.Quarantined && (p.Kind == id.Service || p.Kind == id.User && p.Role.AtLeast(Admin))
}
