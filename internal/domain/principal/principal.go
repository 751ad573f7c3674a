// Package principal is who acts: people, agents and services, the roles that they have, and the keys by which they are known.
package principal

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"io"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Role is what a person may do in a workspace. Agents and services have none.
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

// Principal is the document of one who acts.
type Principal struct {
	ID          id.Principal     `json:"principal_id"`
	Workspace   id.Workspace     `json:"workspace_id"`
	Kind        id.PrincipalKind `json:"kind"`
	Role        Role             `json:"role,omitempty"` // of a user
	Name        string           `json:"display_name"`
	Quarantined bool             `json:"quarantined,omitempty"` // it exists and may do nothing
	Reason      string           `json:"reason,omitempty"`      // of the quarantine
	CreatedBy   id.Principal     `json:"created_by,omitempty"`
	CreatedAt   time.Time        `json:"created_at"`
}

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
	CreatedAt time.Time    `json:"created_at"`
	RevokedAt time.Time    `json:"revoked_at,omitzero"`
}

// secretBytes of chance make a key; its SHA-256 needs no salt and no stretching, for nobody can guess 256 bits.
const secretBytes = 32

const bearerPrefix = "abk_"

// encoding is that of a key's secret: letters and digits only, so that a double click selects it.
var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewBearer makes the text of a key from a source of chance. It names the workspace and the key, so that it is found without a search.
func NewBearer(ws id.Workspace, key id.Key, entropy io.Reader) (string, error) {
	var secret [secretBytes]byte
	if _, err := io.ReadFull(entropy, secret[:]); err != nil {
		return "", fault.Wrap(err, fault.Internal, "no_randomness", "no key can be made: the source of chance failed")
	}
	return bearerPrefix + strings.TrimPrefix(string(ws), "ws_") + "." + strings.TrimPrefix(string(key), "key_") + "." + encoding.EncodeToString(secret[:]), nil
}

// ParseBearer takes the text of a key apart. It says nothing about whether there is such a key.
func ParseBearer(bearer string) (id.Workspace, id.Key, bool) {
	rest, ok := strings.CutPrefix(bearer, bearerPrefix)
	parts := strings.Split(rest, ".")
	if !ok || len(bearer) > 256 || len(parts) != 3 || len(parts[2]) != encoding.EncodedLen(secretBytes) {
		return "", "", false
	}
	ws, err := id.ParseWorkspace("ws_" + parts[0])
	if err != nil {
		return "", "", false
	}
	key, err := id.Parse[id.Key]("key_" + parts[1])
	if err != nil {
		return "", "", false
	}
	return ws, key, true
}

// HashBearer returns what is stored of a key.
func HashBearer(bearer string) event.Digest { return sha256.Sum256([]byte(bearer)) }

// Opens reports, in a time that does not depend on where they differ, whether a bearer is this key and the key is in force.
func (k Key) Opens(bearer string) bool {
	hash := HashBearer(bearer)
	return subtle.ConstantTimeCompare(hash[:], k.Hash[:]) == 1 && k.ID != "" && k.RevokedAt.IsZero()
}

// Caller is who a request comes from, as its key says.
type Caller struct {
	Principal id.Principal
	Workspace id.Workspace
	Role      Role
	Key       id.Key
}

// ErrUnauthenticated refuses a request without a key that opens anything. It says the same whatever was wrong with the key.
var ErrUnauthenticated = fault.New(fault.Denied, "unauthenticated", "this needs a valid API key").
	With("Send the header Authorization: Bearer KEY. On the daemon's own machine the key lies in owner.key in its data directory.")
