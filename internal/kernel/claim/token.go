package claim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// SecretBytes is the length of the secret from which tokens are made.
const SecretBytes = 32

// Tokens derives the tokens of claims from a secret of the installation. So the answer to a claim can be repeated if it was lost, and no
// token is stored.
type Tokens struct{ secret [SecretBytes]byte }

// NewTokens returns tokens of a secret, SecretBytes of chance.
func NewTokens(secret []byte) (Tokens, error) {
	var t Tokens
	if len(secret) != SecretBytes {
		return t, fault.New(fault.Unavailable, "claim_key_invalid", "the secret of claim tokens has %d bytes, not %d", len(secret), SecretBytes)
	}
	copy(t.secret[:], secret)
	return t, nil
}

// NewSecret draws a secret.
func NewSecret(entropy io.Reader) ([]byte, error) {
	secret := make([]byte, SecretBytes)
	if _, err := io.ReadFull(entropy, secret); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "no_randomness", "no secret can be made: the source of chance failed")
	}
	return secret, nil
}

// Token returns the token of one claim.
func (t Tokens) Token(ws id.Workspace, r id.Run, attempt id.Attempt, fence uint64) string {
	mac := hmac.New(sha256.New, t.secret[:])
	fmt.Fprintf(mac, "agentbox claim 1\n%s\n%s\n%s\n%d\n", ws, r, attempt, fence)
	return "clm_" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil))
}
