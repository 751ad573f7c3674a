package principal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"io"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Form is how the secrets of one kind begin; it tells them apart at a glance.
type Form string

// The forms of secrets.
const (
	KeyForm     Form = "abk_"    // of an API key
	TokenForm   Form = "abt_"    // the bearer of a capability token
	AccessForm  Form = "atk_"    // of a session, for an hour
	RefreshForm Form = "rtk_"    // of a session, to be exchanged for new ones
	EngineForm  Form = "engtok_" // of an engine
)

// secretBytes of chance make a secret; its SHA-256 needs no salt and no stretching, for nobody can guess 256 bits.
const secretBytes = 32

// maxSecret is the length of a secret's text in bytes.
const maxSecret = 256

// encoding is that of the chance in a secret: letters and digits only, so that a double click selects it.
var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// New makes the text of a secret from a source of chance. It names the workspace and the thing whose secret it is, so that this is found
// without a search. The name is an identifier of the form prefix_ULID.
func (f Form) New(ws id.Workspace, name string, entropy io.Reader) (string, error) {
	var secret [secretBytes]byte
	if _, err := io.ReadFull(entropy, secret[:]); err != nil {
		return "", fault.Wrap(err, fault.Internal, "no_randomness", "no key can be made: the host's source of randomness failed")
	}
	_, ulid, _ := strings.Cut(name, "_")
	return string(f) + strings.TrimPrefix(string(ws), "ws_") + "." + ulid + "." + encoding.EncodeToString(secret[:]), nil
}

// Is reports whether a text begins like a secret of the form.
func (f Form) Is(text string) bool { return strings.HasPrefix(text, string(f)) }

// parse takes the text of a secret apart. It says nothing about whether there is such a thing, or whether the ULID is one.
func (f Form) parse(text string) (ws id.Workspace, ulid string, ok bool) {
	rest, ok := strings.CutPrefix(text, string(f))
	parts := strings.Split(rest, ".")
	if !ok || len(text) > maxSecret || len(parts) != 3 || len(parts[2]) != encoding.EncodedLen(secretBytes) {
		return "", "", false
	}
	ws, err := id.ParseWorkspace("ws_" + parts[0])
	return ws, parts[1], err == nil
}

// HashSecret returns the stored hash of a secret. Every reader of the log may try to guess the secret, so it must be long and random.
func HashSecret(text string) event.Digest { return sha256.Sum256([]byte(text)) }

// Seal returns the stored form of a secret that may be easy to guess. Without the installation's key, nobody can check a guess against it.
func Seal(key []byte, text string) event.Digest {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return event.Digest(mac.Sum(nil))
}

// ParseEngine takes the token of an engine apart.
func ParseEngine(text string) (id.Workspace, id.EngineToken, bool) {
	ws, ulid, ok := EngineForm.parse(text)
	token, err := id.Parse[id.EngineToken]("engtok_" + ulid)
	if !ok || err != nil {
		return "", "", false
	}
	return ws, token, true
}

// ParseAccess takes the access token of a session apart.
func ParseAccess(text string) (id.Workspace, id.Session, bool) { return parseSession(AccessForm, text) }

// ParseRefresh takes the refresh token of a session apart.
func ParseRefresh(text string) (id.Workspace, id.Session, bool) {
	return parseSession(RefreshForm, text)
}

func parseSession(f Form, text string) (id.Workspace, id.Session, bool) {
	ws, ulid, ok := f.parse(text)
	session, err := id.Parse[id.Session]("ses_" + ulid)
	if !ok || err != nil {
		return "", "", false
	}
	return ws, session, true
}

// NewBearer makes the text of an API key.
func NewBearer(ws id.Workspace, key id.Key, entropy io.Reader) (string, error) {
	return KeyForm.New(ws, string(key), entropy)
}

// ParseBearer takes the text of an API key apart. It says nothing about whether there is such a key.
func ParseBearer(bearer string) (id.Workspace, id.Key, bool) {
	ws, ulid, ok := KeyForm.parse(bearer)
	key, err := id.Parse[id.Key]("key_" + ulid)
	if !ok || err != nil {
		return "", "", false
	}
	return ws, key, true
}

// ParseToken takes the bearer of a capability token apart.
func ParseToken(bearer string) (id.Workspace, id.Token, bool) {
	ws, ulid, ok := TokenForm.parse(bearer)
	token, err := id.Parse[id.Token]("cap_" + ulid)
	if !ok || err != nil {
		return "", "", false
	}
	return ws, token, true
}

// HashBearer returns the stored hash of a key.
func HashBearer(bearer string) event.Digest { return HashSecret(bearer) }
