package merkle

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"agentbox/internal/domain/fault"
)

// Witness takes checkpoints by the C2SP protocol tlog-witness. It keeps the newest of each origin, requires a proof that each continues the
// one before, and signs the ones that it takes.
type Witness interface {
	// Add hands in a checkpoint with the proof that it continues the tree of an earlier size, and returns the witness's signature lines. The
	// error is a *Stale where the witness holds another size than that, and a fault for every other refusal.
	Add(ctx context.Context, old uint64, path []Hash, signed []byte) ([]byte, error)
	// Latest returns the newest checkpoint that the witness holds of an origin. ErrNone where it holds none, or does not tell.
	Latest(ctx context.Context, origin string) ([]byte, error)
}

// Stale is the error of a witness that holds a checkpoint of another size than the one that a proof begins at.
type Stale struct{ Size uint64 }

// Error names the checkpoint that the witness holds.
func (s *Stale) Error() string {
	return fmt.Sprintf("the witness holds a checkpoint of %d events", s.Size)
}

// Unwrap returns the fault that a caller is shown.
func (s *Stale) Unwrap() error {
	return fault.New(fault.Conflict, "witness_holds_another", "%s", s.Error())
}

// algCosignature is the first byte of an encoded key of a cosignature/v1 with Ed25519.
const algCosignature = 4

// Cosigner signs checkpoints as a witness: a C2SP cosignature/v1, which says when it was made.
type Cosigner struct {
	name string
	key  ed25519.PrivateKey
	now  func() time.Time
}

var _ note.Signer = (*Cosigner)(nil)

// NewCosigner returns a witness's signer with the name and the key of a private key made by NewKey.
func NewCosigner(private PrivateKey, now func() time.Time) (*Cosigner, error) {
	signer, _, err := private.Signer()
	if err != nil {
		return nil, err
	}
	raw, err := private.raw()
	if err != nil {
		return nil, err
	}
	return &Cosigner{signer.Name(), raw, now}, nil
}

// Name returns the witness's name.
func (c *Cosigner) Name() string { return c.name }

// KeyHash returns the id of the witness's key.
func (c *Cosigner) KeyHash() uint32 { return cosignatureID(c.name, c.key.Public().(ed25519.PublicKey)) }

// PublicKey returns the key that verifies the witness's signatures, in the form of a C2SP vkey.
func (c *Cosigner) PublicKey() string {
	raw := c.key.Public().(ed25519.PublicKey)
	return fmt.Sprintf("%s+%08x+%s", c.name, cosignatureID(c.name, raw), base64Of(append([]byte{algCosignature}, raw...)))
}

// Sign signs the text of a checkpoint and the present time.
func (c *Cosigner) Sign(text []byte) ([]byte, error) {
	at := c.now().Unix()
	return append(binary.BigEndian.AppendUint64(nil, uint64(at)), ed25519.Sign(c.key, cosigned(at, text))...), nil
}

func cosigned(at int64, text []byte) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", at), text...)
}

func cosignatureID(name string, key ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n"), append([]byte{algCosignature}, key...)...))
	return binary.BigEndian.Uint32(sum[:])
}

// cosignatureVerifier verifies the signatures of one witness.
type cosignatureVerifier struct {
	name string
	id   uint32
	key  ed25519.PublicKey
	at   int64 // of the last signature that was verified
}

// CosignedAt verifies that a witness signed a checkpoint, and returns when. The key is one of a C2SP vkey with a cosignature key.
func CosignedAt(signed []byte, witnessKey string) (time.Time, error) {
	invalid := fault.New(fault.Invalid, "witness_key_invalid",
		"that is not a witness's public key: a name, a plus, eight digits, a plus, and base64")
	parts := strings.SplitN(strings.TrimSpace(witnessKey), "+", 3)
	if len(parts) != 3 {
		return time.Time{}, invalid
	}
	hash, err1 := hex.DecodeString(parts[1])
	raw, err2 := base64.StdEncoding.DecodeString(parts[2])
	if err1 != nil || err2 != nil || len(hash) != 4 || len(raw) != 1+ed25519.PublicKeySize || raw[0] != algCosignature {
		return time.Time{}, invalid
	}
	v := &cosignatureVerifier{name: parts[0], id: cosignatureID(parts[0], raw[1:]), key: raw[1:]}
	if binary.BigEndian.Uint32(hash) != v.id {
		return time.Time{}, invalid
	}
	if _, err := note.Open(signed, note.VerifierList(v)); err != nil {
		return time.Time{}, fault.Wrap(err, fault.Invalid, "checkpoint_invalid", "the checkpoint is not valid: %s has not signed it", v.name)
	}
	return time.Unix(v.at, 0).UTC(), nil
}

// Name implements note.Verifier.
func (v *cosignatureVerifier) Name() string { return v.name }

// KeyHash implements note.Verifier.
func (v *cosignatureVerifier) KeyHash() uint32 { return v.id }

// Verify implements note.Verifier.
func (v *cosignatureVerifier) Verify(text, sig []byte) bool {
	if len(sig) != 8+ed25519.SignatureSize {
		return false
	}
	v.at = int64(binary.BigEndian.Uint64(sig))
	return ed25519.Verify(v.key, cosigned(v.at, text), sig[8:])
}
