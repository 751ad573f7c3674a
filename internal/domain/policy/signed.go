package policy

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// SignedPermit is the right of an engine outside of the daemon to do one thing once: to work on a run that it has claimed, or to make one
// tool call. Its receiver checks it with the public key alone. It is bound to the fencing token of the claim, so it is worthless once
// another engine has the run.
type SignedPermit struct {
	Kind      string       `json:"kind"` // run or tool_call
	Workspace id.Workspace `json:"workspace_id"`
	Run       id.Run       `json:"run_id"`
	Engine    id.Principal `json:"engine_id"`
	Fence     uint64       `json:"fence"`
	Attempt   id.Attempt   `json:"attempt_id,omitempty"`
	Call      id.ToolCall  `json:"tool_call_id,omitempty"`
	Tool      string       `json:"tool_name,omitempty"`
	Action    event.Digest `json:"action_sha256,omitzero"` // that was decided on
	IssuedAt  time.Time    `json:"issued_at"`
	BeginBy   time.Time    `json:"begin_by"` // the permitted action must begin before that
}

// The kinds of signed permit.
const (
	PermitRun  = "run"
	PermitCall = "tool_call"
)

// The two ways in which the daemon records the report of an engine.
const (
	Permitted = "permitted" // a signed permit for it was shown
	Attested  = "attested"  // nobody but the engine vouches for it
)

// MaxSignedPermit is how long the text of a signed permit may be, in bytes.
const MaxSignedPermit = 2_000

// signedPrefix begins the text of a signed permit. signedDomain begins the signed bytes, so that no other signature of the key counts as
// one.
const (
	signedPrefix = "prm_"
	signedDomain = "agentbox permit 1\n"
)

// ErrPermitInvalid refuses a signed permit of another installation, or one for another purpose.
var ErrPermitInvalid = fault.New(fault.Denied, "permit_invalid", "the permit is not one of this daemon for this action").
	With("send the permit that was in the answer to the claim or to the tool call, or none")

// Seal signs permits with a key of the installation. The zero Seal signs nothing and opens nothing.
type Seal struct{ key ed25519.PrivateKey }

// NewSeal returns the seal of a seed, ed25519.SeedSize bytes of chance.
func NewSeal(seed []byte) (Seal, error) {
	if len(seed) != ed25519.SeedSize {
		return Seal{}, fault.New(fault.Unavailable, "permit_key_invalid", "the secret of permits has %d bytes, not %d", len(seed),
			ed25519.SeedSize)
	}
	return Seal{ed25519.NewKeyFromSeed(seed)}, nil
}

// Public returns the key that verifies the permits; nil of the zero Seal.
func (s Seal) Public() ed25519.PublicKey {
	if s.key == nil {
		return nil
	}
	return s.key.Public().(ed25519.PublicKey)
}

// Sign returns the text of a permit: prm_, the permit as JSON in base64url, a dot, and the signature in base64url. The same permit always
// has the same text. It is empty of the zero Seal.
func (s Seal) Sign(p SignedPermit) string {
	if s.key == nil {
		return ""
	}
	p.IssuedAt, p.BeginBy = p.IssuedAt.UTC(), p.BeginBy.UTC()
	raw, err := json.Marshal(p)
	if err != nil {
		return "" // which no value of the type is
	}
	signature := ed25519.Sign(s.key, append([]byte(signedDomain), raw...))
	return signedPrefix + base64.RawURLEncoding.EncodeToString(raw) + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// Open reads the text of a permit that was signed with this seal.
func (s Seal) Open(text string) (SignedPermit, error) { return OpenPermit(s.Public(), text) }

// OpenPermit reads the text of a permit and verifies its signature. The caller must check its purpose and its time.
func OpenPermit(key ed25519.PublicKey, text string) (SignedPermit, error) {
	rest, ok := strings.CutPrefix(text, signedPrefix)
	body, signed, whole := strings.Cut(rest, ".")
	strict := base64.RawURLEncoding.Strict()
	raw, err := strict.DecodeString(body)
	signature, err2 := strict.DecodeString(signed)
	if !ok || !whole || err != nil || err2 != nil || len(text) > MaxSignedPermit || len(key) != ed25519.PublicKeySize ||
		!ed25519.Verify(key, append([]byte(signedDomain), raw...), signature) {
		return SignedPermit{}, ErrPermitInvalid
	}
	var p SignedPermit
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return SignedPermit{}, ErrPermitInvalid
	}
	return p, nil
}
