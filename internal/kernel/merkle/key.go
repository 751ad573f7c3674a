package merkle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"agentbox/internal/domain/fault"
)

// PublicKey is the key that verifies checkpoints, in the form of C2SP signed-note: name+hash+key.
type PublicKey string

// PrivateKey is the key that signs checkpoints, in the form of golang.org/x/mod/sumdb/note. It is a secret.
type PrivateKey string

// algEd25519 is the first byte of an encoded Ed25519 key of a signed note.
const algEd25519 = 1

// NewKey makes a key for an installation. Its name follows from the key, so that no two installations have the same.
func NewKey(entropy io.Reader) (PrivateKey, PublicKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(entropy, seed); err != nil {
		return "", "", fmt.Errorf("draw a signing key: %w", err)
	}
	raw := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	name := InstallationOf(raw)
	public, err := note.NewEd25519VerifierKey(name, raw)
	if err != nil {
		return "", "", fmt.Errorf("make a signing key: %w", err)
	}
	_, rest, _ := strings.Cut(public, "+")
	hash, _, _ := strings.Cut(rest, "+")
	private := "PRIVATE+KEY+" + name + "+" + hash + "+" + base64Of(append([]byte{algEd25519}, seed...))
	return PrivateKey(private), PublicKey(public), nil
}

// InstallationOf returns the name of the installation that a key makes: agentbox/ and 16 digits of the SHA-256 of the key.
func InstallationOf(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return "agentbox/" + hex.EncodeToString(sum[:8])
}

// ParsePublicKey reads a public key. Its error names the problem with the text.
func ParsePublicKey(text string) (PublicKey, error) {
	key := PublicKey(strings.TrimSpace(text))
	if _, err := key.verifier(); err != nil {
		return "", err
	}
	return key, nil
}

// Name returns the installation that the key names.
func (k PublicKey) Name() string {
	name, _, _ := strings.Cut(string(k), "+")
	return name
}

// Raw returns the 32 bytes of the Ed25519 key, for tools that know nothing of notes.
func (k PublicKey) Raw() ed25519.PublicKey {
	parts := strings.SplitN(string(k), "+", 3)
	if len(parts) != 3 {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != algEd25519 {
		return nil
	}
	return raw[1:]
}

func (k PublicKey) verifier() (note.Verifier, error) {
	v, err := note.NewVerifier(string(k))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "public_key_invalid",
			"that is not a public key; agentbox audit key prints one: a name, a plus, eight digits, a plus, and base64")
	}
	return v, nil
}

// Signer returns what signs with the key, and the public key that belongs to it.
func (k PrivateKey) Signer() (note.Signer, PublicKey, error) {
	signer, err := note.NewSigner(strings.TrimSpace(string(k)))
	if err != nil {
		return nil, "", fault.Wrap(err, fault.Unavailable, "signing_key_invalid", "the signing key cannot be read")
	}
	raw, err := k.raw()
	if err != nil {
		return nil, "", err
	}
	public, err := note.NewEd25519VerifierKey(signer.Name(), raw.Public().(ed25519.PublicKey))
	return signer, PublicKey(public), err
}

// raw returns the Ed25519 key.
func (k PrivateKey) raw() (ed25519.PrivateKey, error) {
	parts := strings.SplitN(strings.TrimSpace(string(k)), "+", 5) // PRIVATE, KEY, the name, its hash, and base64, which may have a plus in it
	if len(parts) == 5 {
		seed, err := base64.StdEncoding.DecodeString(parts[4])
		if err == nil && len(seed) == 1+ed25519.SeedSize && seed[0] == algEd25519 {
			return ed25519.NewKeyFromSeed(seed[1:]), nil
		}
	}
	return nil, fault.New(fault.Unavailable, "signing_key_invalid", "the signing key cannot be read")
}
